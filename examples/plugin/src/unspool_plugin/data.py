"""A data set: two interleaved half circles, each point joined with its nearest neighbours."""

import numpy as np
import torch

from unspool import datasets


def two_moons(points: int = 300, neighbours: int = 6, noise: float = 0.12, seed: int = 0) -> datasets.Dataset:
    """Two classes of points in the plane, and the graph of their nearest neighbours."""
    rng = np.random.default_rng(seed)
    label = np.arange(points) % 2
    angle = np.pi * rng.random(points)
    place = np.stack([np.cos(angle), np.sin(angle)], 1) * np.where(label, -1, 1)[:, None] + label[:, None] * [1.0, 0.4]
    place += noise * rng.normal(size=place.shape)
    distance = ((place[:, None] - place) ** 2).sum(-1)
    near = np.argsort(distance, 1)[:, 1 : neighbours + 1]
    edges = np.stack([np.repeat(np.arange(points), neighbours), near.ravel()])
    return datasets.from_tensors(
        torch.as_tensor(edges), torch.as_tensor(place, dtype=torch.float32), torch.as_tensor(label), name="moons",
        directed=False,
    )  # fmt: skip
