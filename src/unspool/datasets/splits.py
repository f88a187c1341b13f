"""Ways to split nodes into train, valid and test: those that come with the data, and those that are drawn.

Drawn splits take labels and a seed; the same seed gives the same split. Recorded splits are read from the data set:

>>> from unspool import datasets
>>> data = datasets.load("citeseer")
>>> datasets.splits.public(data)
Split(public: 120 train, 500 valid, 1000 test of 3327 nodes, ...)
>>> datasets.splits.per_class(data.labels, train=20, valid=30, seed=1)
Split(per-class 20/30: 120 train, 180 valid, 3027 test of 3327 nodes, ...)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from unspool.datasets.split import DrawRule, Split
from unspool.errors import InputError
from unspool.text import plain_number

if TYPE_CHECKING:
    from unspool.datasets.dataset import Dataset

__all__ = [
    "Split",
    "by_name",
    "fold",
    "geom_gcn",
    "legacy_per_class",
    "ogb",
    "per_class",
    "public",
    "random",
    "recorded",
    "repetition",
]


def public(dataset: Dataset) -> Split:
    """Planetoid's split of Cora, CiteSeer and PubMed: 20 per class, then 500, and 1000 to test.

    Example:
        >>> from unspool import datasets
        >>> public(datasets.load("citeseer")).train[-1]
        tensor(119)
    """
    return recorded(dataset, "public")


def ogb(dataset: Dataset) -> Split:
    """OGB's split of ogbn-arxiv by year: papers until 2017, of 2018, and since 2019."""
    return recorded(dataset, "ogb")


def geom_gcn(dataset: Dataset, number: int) -> Split:
    """One of the ten splits (0 to 9) that Geom-GCN published: 48 % / 32 % / 20 %.

    On Cora they cover the largest component only (2485 of 2708 nodes); on CiteSeer numbers 4 and 5 do (2120 of 3327), the
    other eight cover all nodes.
    """
    return recorded(dataset, f"geom-gcn-{number}")


def fold(dataset: Dataset, number: int) -> Split:
    """One of the ten splits (0 to 9) in the files of Platonov et al.: the filtered and the heterophilous sets."""
    return recorded(dataset, f"fold-{number}")


def recorded(dataset: Dataset, name: str) -> Split:
    """A split that came with the data, by name; ``dataset.recorded`` lists them.

    Example:
        >>> from unspool import datasets
        >>> recorded(datasets.grid(4, 4), "public")
        Traceback (most recent call last):
            ...
        ValueError: grid 4×4 comes with no split named 'public' (it has none); draw one with splits.per_class or splits.random
    """
    if name not in dataset.recorded:
        have = ", ".join(dataset.recorded) if dataset.recorded else "none"
        raise ValueError(
            f"{dataset.name} comes with no split named {name!r} (it has {have}); "
            "draw one with splits.per_class or splits.random"
        )
    return Split.from_codes(dataset.recorded[name], name=name)


def per_class(labels: Tensor, train: int = 20, valid: int = 30, seed: int = 0) -> Split:
    """``train`` and ``valid`` nodes of every class, drawn at random, and all other labelled nodes to test.

    The split of CS, Physics, Photo and Computers in the literature ("20/30 per class").

    Args:
        labels: one class number per node, -1 for unlabelled nodes, which enter no part.
        train: how many nodes of each class are learnt from.
        valid: how many nodes of each class choose the epoch.
        seed: of the generator.

    Example:
        >>> import torch
        >>> labels = torch.arange(12) % 3
        >>> split = per_class(labels, train=2, valid=1, seed=0)
        >>> labels[split.train].bincount()
        tensor([2, 2, 2])
    """
    members = _members(labels)
    _check_counts(members, train, valid)
    drawn = _shuffled(members, seed)
    return _parts(drawn, train, valid, labels.numel(), "per-class", seed)


def legacy_per_class(dataset: Dataset, train: int = 20, valid: int = 30, seed: int = 0) -> Split:
    """The faulty 20/30 split of several public scripts, for comparison only.

    Those scripts draw nodes per class *inside the largest component*, and then use the positions inside that component
    as ids of the whole graph. Where the graph is one component (CS, Physics) nothing happens. On Photo the ids point
    at other nodes: 83.6 % of them carry another label than the one they were drawn for, "20 per class" comes out as
    about [7, 35, 15, 19, 18, 18, 40, 7], and nodes outside the component can be drawn. Published numbers on Photo may
    rest on it. Use :func:`per_class` for anything new.

    Example:
        >>> import torch
        >>> from unspool import datasets
        >>> chain = torch.stack([torch.arange(3, 11), torch.arange(4, 12)])  # nodes 0, 1, 2 are isolated
        >>> data = datasets.from_tensors(chain, torch.eye(12), torch.arange(12) % 3, directed=False)
        >>> split = legacy_per_class(data, train=1, valid=1, seed=0)
        >>> bool((split.test < 9).all())  # positions inside the component of 9 nodes, not node ids
        True
    """
    from unspool.datasets.components import largest_component

    inside = largest_component(dataset.edge_index.cpu().numpy(), dataset.nodes)
    labels = dataset.labels.cpu()[torch.as_tensor(inside)]
    members = _members(labels)
    _check_counts(members, train, valid)
    drawn = _shuffled(members, seed)  # the fault, on purpose: positions in `inside` are never turned back into ids
    return _parts(drawn, train, valid, dataset.nodes, "legacy", seed)


def random(labels: Tensor, ratios: Sequence[float] = (0.6, 0.2, 0.2), seed: int = 0) -> Split:
    """Random shares of every class, so that all parts have the same mix of classes.

    Args:
        labels: one class number per node, -1 for unlabelled nodes, which enter no part.
        ratios: shares of train, valid and test; nodes beyond their sum enter no part.
        seed: of the generator.

    Example:
        >>> import torch
        >>> random(torch.zeros(10).long(), seed=3)
        Split(random 0.6/0.2/0.2: 6 train, 2 valid, 2 test of 10 nodes, ...)
    """
    shares = tuple(float(share) for share in ratios)
    if len(shares) != 3 or min(shares) <= 0 or sum(shares) > 1 + 1e-9 or not all(map(math.isfinite, shares)):
        raise InputError("ratios", tuple(ratios), "three positive shares with a sum of at most 1")
    drawn = _shuffled(_members(labels), seed)
    parts: tuple[list[Tensor], ...] = ([], [], [])
    for number, ids in drawn.items():
        if ids.numel() < 3:
            raise ValueError(
                f"class {number} has {_count(ids.numel())}, but train, valid and test need one each; merge the class "
                "with another, or set the label to -1"
            )
        for part, ids_of_part in zip(parts, ids.split(_sizes(ids.numel(), shares)), strict=False):
            part.append(ids_of_part)
    name = "random " + "/".join(f"{share:g}" for share in shares)
    rule = DrawRule("random", shares)
    return Split(*(torch.cat(part) for part in parts), nodes=labels.numel(), name=name, seed=seed, rule=rule)


def by_name(dataset: Dataset, text: str, seed: int = 0) -> Split:
    """A split from text, for the command line: ``public``, ``ogb``, ``geom-gcn-3``, ``fold-3``, ``per-class``, ``legacy``, ``random``.

    ``per-class:20/30`` and ``random:0.6/0.2/0.2`` name their sizes.

    Example:
        >>> from unspool import datasets
        >>> by_name(datasets.load("citeseer"), "random:0.5/0.25/0.25", seed=1).name
        'random 0.5/0.25/0.25'
    """
    kind, _, sizes = text.strip().lower().partition(":")
    try:
        numbers = [float(plain_number(size)) for size in sizes.split("/")] if sizes else []
    except ValueError:
        numbers = [math.nan]
    drawers = _drawers(dataset, seed)
    many = (0, 3) if kind == "random" else (0, 2)
    if kind in drawers and len(numbers) in many and all(map(math.isfinite, numbers)):
        if kind != "random" and not all(number.is_integer() and number >= 1 for number in numbers):
            raise InputError(
                "split", text, "whole numbers of at least 1, of training and of validation nodes per class"
            )
        try:
            return drawers[kind](*numbers)
        except InputError as problem:
            raise InputError("split", text, problem.expected, problem.hint) from None
    if kind in dataset.recorded and not sizes:
        return recorded(dataset, kind)
    have = [*dataset.recorded, "per-class", "per-class:20/30", "legacy", "random", "random:0.6/0.2/0.2"]
    raise InputError("split", text, f"one of {', '.join(have)} for {dataset.name}")


def repetition(dataset: Dataset, number: int) -> Split:
    """The split of the n-th repetition of an experiment, counted from 0.

    Random splits are drawn anew, recorded ones (``fold-0``, ``geom-gcn-0``) follow one another, and a split that stands alone,
    such as Planetoid's public one, stays.

    Example:
        >>> from unspool import datasets
        >>> data = datasets.load("citeseer")
        >>> repetition(data, 3).hash == data.split.hash  # public: always the same
        True
        >>> drawn = data.with_split(lambda d: per_class(d.labels, seed=5))
        >>> repetition(drawn, 0).hash == drawn.split.hash, repetition(drawn, 3).seed
        (True, 8)
    """
    split = dataset.split
    if split is None:
        raise ValueError(f"{dataset.name} has no split to repeat; give it one with data.with_split(...)")
    if split.rule is not None and split.seed is not None:
        return _drawers(dataset, split.seed + number)[split.rule.kind](*split.rule.sizes)
    stem, _, place = split.name.rpartition("-")
    if place.isdecimal() and split.name in dataset.recorded:
        many = sum(name.rpartition("-")[0] == stem for name in dataset.recorded)
        return recorded(dataset, f"{stem}-{(int(place) + number) % many}")
    return split


def _drawers(dataset: Dataset, seed: int) -> dict[str, Callable[..., Split]]:
    """What draws a split of each kind, given its sizes."""
    return {
        "per-class": lambda *n: per_class(dataset.strata, *map(int, n), seed=seed),
        "legacy": lambda *n: legacy_per_class(dataset, *map(int, n), seed=seed),
        "random": lambda *n: random(dataset.strata, n if n else (0.6, 0.2, 0.2), seed=seed),
    }


def _members(labels: Tensor) -> dict[int, Tensor]:
    """Ids of the nodes of every class that occurs, in ascending order."""
    known = labels.detach().cpu()
    if known.is_floating_point() or known.ndim != 1:
        raise TypeError(
            f"labels of shape {tuple(known.shape)} and dtype {str(known.dtype).removeprefix('torch.')}: expected one "
            "class number per node"
        )
    members = {int(c): torch.nonzero(known == c).flatten() for c in known.unique() if int(c) >= 0}
    if not members:
        raise ValueError("no node has a label, so there is nothing to split; give labels (-1 marks unlabelled nodes)")
    return members


def _shuffled(members: dict[int, Tensor], seed: int) -> dict[int, Tensor]:
    generator = torch.Generator().manual_seed(int(seed))
    return {number: ids[torch.randperm(ids.numel(), generator=generator)] for number, ids in members.items()}


def _check_counts(members: dict[int, Tensor], train: int, valid: int) -> None:
    if train < 1 or valid < 1:
        raise ValueError(f"train={train}, valid={valid}: ask for at least one node per class in each")
    for number, ids in members.items():
        if ids.numel() < train + valid:
            raise ValueError(
                f"class {number} has {_count(ids.numel())}, fewer than the {train} + {valid} asked for; "
                "ask for fewer, or merge the class with another"
            )


def _parts(drawn: dict[int, Tensor], train: int, valid: int, nodes: int, kind: str, seed: int) -> Split:
    cuts = [ids.tensor_split([train, train + valid]) for ids in drawn.values()]
    parts = (torch.cat(part) for part in zip(*cuts, strict=True))
    name = f"{'legacy per-class' if kind == 'legacy' else kind} {train}/{valid}"
    return Split(*parts, nodes=nodes, name=name, seed=seed, rule=DrawRule(kind, (train, valid)))


def _sizes(count: int, shares: tuple[float, ...]) -> list[int]:
    """Whole numbers near the shares of ``count``, none of them zero; the last entry is what is left over."""
    wanted = np.floor(np.cumsum(shares) * count + 0.5).astype(int)
    train = min(max(int(wanted[0]), 1), count - 2)
    valid = min(max(int(wanted[1]) - train, 1), count - train - 1)
    test = min(max(int(wanted[2]) - train - valid, 1), count - train - valid)
    return [train, valid, test, count - train - valid - test]


def _count(nodes: int) -> str:
    return f"{nodes} labelled node{'' if nodes == 1 else 's'}"
