"""Which nodes are learnt from, which choose the epoch, and which are only counted at the end."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.datasets.fingerprint import fingerprint

PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class DrawRule:
    """How a split was drawn, so that another seed can draw it again: a kind that ``splits.by_name`` knows, and its sizes."""

    kind: str
    sizes: tuple[float, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Three disjoint sets of nodes, checked when made; two splits are equal when they hold the same nodes.

    Make one with the functions of :mod:`unspool.datasets.splits`, or from indices of your own.

    Args:
        train: ids of the nodes whose labels are learnt from; kept in ascending order, as all three are.
        valid: ids of the nodes that choose the epoch and the hyper-parameters.
        test: ids of the nodes that are only counted at the end.
        nodes: how many nodes the graph has.
        name: where the split comes from.
        seed: of the generator that drew it, where one did.
        rule: how it did; none for splits that are not to be drawn again.

    Example:
        >>> split = Split(train=[0, 3], valid=[1], test=[4, 2], nodes=6)
        >>> split
        Split(own: 2 train, 1 valid, 2 test of 6 nodes, 9c5f542a)
        >>> Split(train=[0, 3], valid=[3], test=[4, 2], nodes=6)
        Traceback (most recent call last):
            ...
        ValueError: node 3 is in both train and valid; every node belongs to one part at most
    """

    train: Tensor
    valid: Tensor
    test: Tensor
    nodes: int
    name: str = "own"
    seed: int | None = None
    rule: DrawRule | None = None

    def __post_init__(self) -> None:
        for part in PARTS:
            object.__setattr__(self, part, _ids(getattr(self, part), part, self.nodes))
        owner = torch.full((self.nodes,), -1, dtype=torch.int64)
        for code, part in enumerate(PARTS):
            ids = getattr(self, part).cpu()
            taken = torch.nonzero(owner[ids] >= 0).flatten()
            if taken.numel():
                node = int(ids[taken[0]])
                first = PARTS[int(owner[node])]
                raise ValueError(f"node {node} is in both {first} and {part}; every node belongs to one part at most")
            owner[ids] = code

    @staticmethod
    def from_masks(train: Any, valid: Any, test: Any, name: str = "own") -> Split:
        """Read three boolean masks, one entry per node, as PyTorch Geometric keeps them.

        Example:
            >>> Split.from_masks([True, False, False], [False, True, False], [False, False, True]).test
            tensor([2])
        """
        masks = [torch.as_tensor(mask).detach().cpu().bool() for mask in (train, valid, test)]
        for part, mask in zip(PARTS, masks, strict=True):
            if mask.ndim != 1:
                raise ValueError(
                    f"the {part} mask has shape {tuple(mask.shape)}: expected one entry per node; "
                    "choose one column where a file holds several splits"
                )
            if mask.shape != masks[0].shape:
                raise ValueError(f"the {part} mask has {mask.numel()} entries, the train mask {masks[0].numel()}")
        return Split(*(torch.nonzero(mask).flatten() for mask in masks), nodes=masks[0].numel(), name=name)

    @staticmethod
    def from_codes(codes: Any, name: str = "own") -> Split:
        """Read one number per node: 0 for no part, 1 for train, 2 for valid, 3 for test.

        Example:
            >>> Split.from_codes([1, 1, 2, 0, 3])
            Split(own: 2 train, 1 valid, 1 test of 5 nodes, ...)
        """
        code = torch.as_tensor(codes).detach().cpu()
        return Split(*(torch.nonzero(code == k).flatten() for k in (1, 2, 3)), nodes=code.numel(), name=name)

    @functools.cached_property
    def hash(self) -> str:
        """32 hexadecimal digits that name these nodes; the name and the seed do not enter."""
        return fingerprint("split", self.nodes, *(getattr(self, part).cpu().numpy() for part in PARTS))

    def codes(self) -> Tensor:
        """One number per node: 0 for no part, 1 for train, 2 for valid, 3 for test (the inverse of ``from_codes``)."""
        codes = torch.zeros(self.nodes, dtype=torch.uint8)
        for code, part in enumerate(PARTS, start=1):
            codes[getattr(self, part).cpu()] = code
        return codes

    def mask(self, part: str) -> Tensor:
        """One part as a boolean mask over all nodes, for code that expects PyG's ``train_mask``.

        Example:
            >>> Split([0], [1], [2], nodes=4).mask("test")
            tensor([False, False,  True, False])
        """
        if part not in PARTS:
            raise ValueError(f"a split has the parts train, valid and test, not {part!r}")
        ids = getattr(self, part)
        return torch.zeros(self.nodes, dtype=torch.bool, device=ids.device).index_fill_(0, ids, True)

    def to(self, device: torch.device | str) -> Split:
        """The same split with its ids on another device."""
        return replace(self, **{part: getattr(self, part).to(device) for part in PARTS})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Split) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{getattr(self, part).numel()} {part}" for part in PARTS)
        return f"Split({self.name}: {sizes} of {self.nodes} nodes, {self.hash[:8]})"


def _ids(given: Any, part: str, nodes: int) -> Tensor:
    ids = torch.as_tensor(np.asarray(given) if isinstance(given, list | tuple) else given).detach()
    if ids.dtype is torch.bool:
        raise TypeError(f"{part} is a mask: give node ids, or use Split.from_masks")
    if ids.numel() == 0:
        raise ValueError(f"the split is empty: it has no {part} nodes; every part needs at least one")
    if ids.is_floating_point() or ids.ndim != 1:
        kind = str(ids.dtype).removeprefix("torch.")
        raise TypeError(f"{part} holds {kind} of shape {tuple(ids.shape)}: expected node ids, a list of whole numbers")
    ids = ids.long().sort().values
    if int(ids[0]) < 0 or int(ids[-1]) >= nodes:
        culprit = int(ids[0]) if int(ids[0]) < 0 else int(ids[-1])
        raise ValueError(f"{part} names node {culprit}, but node ids run from 0 to {nodes - 1}")
    twice = torch.nonzero(ids.diff() == 0).flatten()
    if twice.numel():
        raise ValueError(f"{part} names node {int(ids[twice[0]])} twice; list every node once")
    return ids
