"""Finding links: some edges are taken out of the graph, and the network is asked for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.errors import InputError
from unspool.graph import Graph
from unspool.train.loss import Link
from unspool.train.task import Task

#: How often random pairs are drawn before the graph counts as full.
ATTEMPTS = 50


def link_task(data: Any, *, valid: float = 0.05, test: float = 0.1, seed: int = 0) -> Task:
    """Make the task of finding the missing links of a dataset's graph.

    A share of the links is held back for validation and test; the network sees a graph without them, and without their
    way back. Training pairs are the links that stay. Each part has as many pairs that are not links anywhere in the whole graph, drawn
    uniformly and each once; those of validation and test stay the same in every epoch, those of training are drawn anew (see
    :class:`~unspool.train.Link`).

    Args:
        data: anything with ``features``, ``edge_index`` and ``nodes``; edges count once, whichever way they run.
        valid, test: shares of the links that are held back; a test share of 0 holds none back for a test.
        seed: which ones, and which pairs stand against them.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> task = train.link_task(datasets.contextual_sbm(nodes=80, classes=2, seed=0), valid=0.1, test=0.2)
        >>> model = us.models.GPRGNN(task.x.shape[1], 8)  # h_u · h_v decides
        >>> train.fit(model, task, train.TrainConfig(epochs=3)).best.valid_score > 0
        True
    """
    for name, share in (("valid", valid), ("test", test)):
        if not (0 < share < 1 or (name == "test" and share == 0)) or valid + test >= 1:
            raise ValueError(
                f"{name}={share}: shares of the links lie between 0 and 1, and some must stay for training"
            )
    if getattr(data, "directed", False):
        raise InputError(
            "directed",
            True,
            f"links without a direction: hᵤ · hᵥ says the same of both, and {data.name} is directed",
            "leave it out",
        )
    links, weight = _once(data.edge_index.cpu(), getattr(data, "edge_weight", None), data.nodes)
    counts = [round(valid * links.shape[0]), round(test * links.shape[0])]
    if links.shape[0] - sum(counts) < 1 or counts[0] < 1 or (test > 0 and counts[1] < 1):
        raise ValueError(
            f"{links.shape[0]} links are too few to hold {valid:g} and {test:g} of them back; give a graph with more edges, or larger shares"
        )
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(links.shape[0], generator=generator)
    held = {"valid": order[: counts[0]], "test": order[counts[0] : sum(counts)], "train": order[sum(counts) :]}
    others = _no_links(links, data.nodes, links.shape[0], seed)
    pairs = torch.cat([links, others])
    target = torch.cat([torch.ones(len(links)), torch.zeros(len(others))])
    ids = {part: torch.cat([chosen, chosen + len(links)]).sort().values for part, chosen in held.items()}
    kept = held["train"].sort().values
    graph = Graph.from_edges(links[kept].T, data.nodes, None if weight is None else weight[kept], directed=False)
    names = getattr(data, "names", None)
    graph = graph if names is None else replace(graph, names=names)
    device = data.features.device
    return Task(
        data.features, graph.to(device), target.to(device), ids["train"].to(device), ids["valid"].to(device), ids["test"].to(device),
        Link(pairs.to(device)),
    )  # fmt: skip


def _once(edges: Tensor, weight: Tensor | None, nodes: int) -> tuple[Tensor, Tensor | None]:
    """Every link once, smaller end first, without loops; of two directions the larger weight counts, as in the whole graph."""
    low, high = edges.min(0).values, edges.max(0).values
    apart = low != high
    code, place = np.unique((low * nodes + high)[apart].numpy(), return_inverse=True)
    ends = torch.as_tensor(code)
    kept = None
    if weight is not None:
        heavy = weight.cpu()[apart]
        kept = torch.zeros(len(code), dtype=heavy.dtype).scatter_reduce(
            0, torch.as_tensor(place).reshape(-1), heavy, "amax"
        )
    return torch.stack([ends // nodes, ends % nodes], dim=1), kept


def _no_links(links: Tensor, nodes: int, count: int, seed: int) -> Tensor:
    """Random pairs that are no links, each once."""
    taken = links[:, 0] * nodes + links[:, 1]
    if nodes * (nodes - 1) // 2 - links.shape[0] < count:
        raise ValueError(
            f"the graph links more than half of all pairs of its {nodes} nodes: too few are left as negative examples"
        )
    rng, found = np.random.default_rng(seed), np.empty(0, dtype=np.int64)
    for _ in range(ATTEMPTS):
        ends = np.sort(rng.integers(0, nodes, (2 * count + 10, 2)), axis=1)
        code = (ends[:, 0] * nodes + ends[:, 1])[ends[:, 0] != ends[:, 1]]
        code = code[~np.isin(code, taken.numpy())]
        found = np.concatenate([found, code])
        _, first = np.unique(found, return_index=True)
        found = found[np.sort(first)]
        if found.size >= count:
            break
    else:
        everything = np.arange(nodes * nodes)
        free = everything[(everything // nodes < everything % nodes) & ~np.isin(everything, taken.numpy())]
        found = rng.permutation(free)
    chosen = torch.as_tensor(found[:count])
    return torch.stack([chosen // nodes, chosen % nodes], dim=1)
