"""Data sets made on the spot, with knobs: how homophilic, how noisy, how large."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.datasets import splits
from unspool.datasets.components import sorted_edges
from unspool.datasets.dataset import Dataset
from unspool.graph import Graph, Normalisation
from unspool.graph import generators as graphs

Array = np.ndarray[Any, Any]


def contextual_sbm(
    nodes: int = 1000,
    classes: int = 4,
    homophily: float = 0.8,
    degree: float = 8.0,
    features: int = 16,
    signal: float = 1.0,
    seed: int = 0,
) -> Dataset:
    r"""A contextual stochastic block model: a random graph whose edges know the classes, and noisy features that do too.

    Each of nodes · degree / 2 distinct edges joins two nodes of one class with probability ``homophily``, and of two
    different classes otherwise. Features are :math:`x_i = s\,\mu_{y_i} + \varepsilon_i` with unit vectors
    :math:`\mu_c`, orthogonal to each other where there is room, noise :math:`\varepsilon_i \sim N(0, I)` and
    :math:`s` = ``signal``. A model of Deshpande et al. (2018), here with a fixed number of edges.

    Args:
        nodes: how many; classes have nearly equal sizes.
        classes: how many.
        homophily: 1 for strong homophily, 1/classes for a graph that says nothing, 0 for strong heterophily.
        degree: mean number of neighbours.
        features: columns of X.
        signal: distance of a class's mean from the origin, in standard deviations of the noise.
        seed: of the generator, and of the split (60/20/20 % of each class).

    Example:
        >>> round(contextual_sbm(homophily=0.1, seed=3).statistics().homophily, 1)
        0.1
        >>> contextual_sbm(nodes=30, classes=3, degree=28)
        Traceback (most recent call last):
            ...
        ValueError: 30 nodes in 3 classes have 135 pairs inside classes, fewer than the 336 edges asked for; lower degree or homophily
    """
    _check(nodes, classes, homophily, degree, features)
    random = np.random.default_rng(seed)
    labels = random.permutation(np.arange(nodes) % classes)
    edges = round(nodes * degree / 2)
    inside = int(random.binomial(edges, homophily)) if 0 < homophily < 1 else round(edges * homophily)
    size = np.bincount(labels, minlength=classes)
    pairs = int((size * (size - 1) // 2).sum())
    _room(nodes, classes, "inside", pairs, round(edges * homophily), "lower degree or homophily")
    across = nodes * (nodes - 1) // 2 - pairs
    _room(nodes, classes, "between", across, edges - round(edges * homophily), "lower degree or raise homophily")
    inside = max(min(inside, pairs), edges - across)
    within = _drawn(random, labels, inside, alike=True)
    between = _drawn(random, labels, edges - inside, alike=False)
    index = np.concatenate([within, between], axis=1)
    means = _directions(random, classes, features)
    x = signal * means[labels] + random.standard_normal((nodes, features))
    return _dataset(f"contextual SBM, homophily {homophily:g}", index, None, x, labels, classes, seed)


def grid(rows: int = 20, cols: int = 20, regions: int = 4, noise: float = 0.5, seed: int = 0) -> Dataset:
    """A picture of ``rows`` × ``cols`` pixels in coloured regions, seen through noise: denoise it, or name the regions.

    The true signal is the indicator of each pixel's region, one channel per region; features are that plus noise.

    Args:
        rows: height.
        cols: width.
        regions: how many classes; each pixel belongs to the nearest of as many random points.
        noise: standard deviation of the noise.
        seed: of the generator, and of the split.

    Example:
        >>> data = grid(8, 8, regions=2)
        >>> clean = torch.nn.functional.one_hot(data.labels)
        >>> denoised = data.graph @ data.features
        >>> bool((denoised - clean).norm() < (data.features - clean).norm())
        True
    """
    graph = graphs.grid(rows, cols, loops=0, normalise=Normalisation.NONE)
    place = np.stack(np.meshgrid(np.arange(rows), np.arange(cols), indexing="ij"), axis=-1).reshape(-1, 2)
    return _regions(f"grid {rows}×{cols}", graph, place / max(rows, cols), regions, noise, seed)


def sensor(nodes: int = 200, neighbours: int = 6, regions: int = 4, noise: float = 0.5, seed: int = 0) -> Dataset:
    """Sensors scattered over a map of regions, each joined to its nearest ones, reporting their region through noise.

    Built on :func:`unspool.graph.sensor`, whose positions the same ``seed`` gives again; edges have weights.

    Args:
        nodes: how many sensors.
        neighbours: how many nearest ones each is joined to.
        regions: how many classes.
        noise: standard deviation of the noise.
        seed: of the positions, the regions, the noise and the split.

    Example:
        >>> sensor(100).graph
        Graph(nodes=100, edges=..., undirected, symmetric normalisation, float32, cpu)
    """
    graph, positions = graphs.sensor(nodes, neighbours, seed, loops=0, normalise=Normalisation.NONE)
    return _regions(f"sensor {nodes}", graph, positions.numpy(), regions, noise, seed)


def _regions(name: str, graph: Graph, place: Array, regions: int, noise: float, seed: int) -> Dataset:
    if regions < 1 or 3 * regions > graph.nodes:
        raise ValueError(f"regions={regions}: {graph.nodes} nodes allow 1 to {graph.nodes // 3} regions")
    if noise < 0 or not np.isfinite(noise):
        raise ValueError(f"noise={noise}: the standard deviation is a finite number of at least 0")
    random = np.random.default_rng([seed, 1])
    for _ in range(1000):
        centres = place[random.choice(graph.nodes, regions, replace=False)]
        labels = ((place[:, None] - centres[None]) ** 2).sum(-1).argmin(1)
        if np.bincount(labels, minlength=regions).min() >= 3:  # every region can be split in three
            break
    else:
        raise ValueError(f"regions={regions}: no map with three nodes in each was found; ask for fewer")
    x = np.eye(regions)[labels] + noise * random.standard_normal((graph.nodes, regions))
    matrix = graph.to_scipy().tocoo()
    index = np.stack([matrix.col, matrix.row]).astype(np.int64)
    weight = None if (matrix.data == 1).all() else torch.as_tensor(matrix.data, dtype=torch.float64)
    return _dataset(name, index, weight, x, labels, regions, seed)


def _dataset(
    name: str, index: Array, weight: Tensor | None, x: Array, labels: Array, classes: int, seed: int
) -> Dataset:
    if weight is None:
        index = sorted_edges(np.concatenate([index, index[::-1]], axis=1), labels.size)
    else:
        order = np.lexsort((index[1], index[0]))
        index, weight = index[:, order], weight[torch.as_tensor(order)]
    known = torch.as_tensor(labels, dtype=torch.int64)
    return Dataset(
        name=name,
        edge_index=torch.as_tensor(index),
        features=torch.as_tensor(x, dtype=torch.float32),
        labels=known,
        classes=tuple(str(c) for c in range(classes)),
        split=splits.random(known, seed=seed),
        edge_weight=weight,
        notes=(f"generated with seed {seed}",),
    )


def _check(nodes: int, classes: int, homophily: float, degree: float, features: int) -> None:
    if classes < 2 or nodes < 3 * classes:
        raise ValueError(f"{nodes} nodes in {classes} classes: ask for at least 2 classes of at least 3 nodes")
    if not 0 <= homophily <= 1:
        raise ValueError(f"homophily={homophily}: the share of edges inside classes lies between 0 and 1")
    if not 0 <= degree < nodes:
        raise ValueError(f"degree={degree}: {nodes} nodes can have 0 to {nodes - 1} neighbours on average")
    if features < 1:
        raise ValueError(f"features={features}: ask for at least one")


def _room(nodes: int, classes: int, where: str, pairs: int, wanted: int, way_out: str) -> None:
    if wanted > pairs:
        raise ValueError(
            f"{nodes} nodes in {classes} classes have {pairs} pairs {where} classes, fewer than the {wanted} edges asked "
            f"for; {way_out}"
        )


def _drawn(random: np.random.Generator, labels: Array, count: int, alike: bool) -> Array:
    """``count`` distinct pairs of nodes, all of one class or all of two, uniformly among such pairs."""
    nodes = labels.size
    keys = np.zeros(0, dtype=np.int64)
    for _ in range(200):
        if keys.size >= count:
            break
        pair = random.integers(nodes, size=(2, max(64, 4 * (count - keys.size) * int(labels.max() + 1))))
        low, high = pair.min(axis=0), pair.max(axis=0)
        fits = (low != high) & ((labels[low] == labels[high]) == alike)
        keys = np.unique(np.concatenate([keys, low[fits] * nodes + high[fits]]))
    if keys.size < count:  # nearly all pairs are wanted: list them
        low, high = np.triu_indices(nodes, k=1)
        fits = (labels[low] == labels[high]) == alike
        keys = low[fits] * nodes + high[fits]
    keys = random.permutation(keys)[:count]
    return np.stack([keys // nodes, keys % nodes])


def _directions(random: np.random.Generator, classes: int, features: int) -> Array:
    """One unit vector per class, orthogonal to each other if features ≥ classes."""
    draw = random.standard_normal((features, classes))
    if features >= classes:
        return np.linalg.qr(draw)[0].T
    return (draw / np.linalg.norm(draw, axis=0)).T
