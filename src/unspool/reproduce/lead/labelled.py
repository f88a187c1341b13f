"""What a search sees: labelled nodes alone, divided anew under every seed, and counted as their classes are among the others."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from unspool.datasets import Dataset, Split
from unspool.datasets.fingerprint import fingerprint
from unspool.train import Task, TrialLoader

#: How often a node of a class that is as frequent among the nodes as it should be is counted: shares are right to a tenth.
COPIES = 10


class CountedLoader(TrialLoader):
    """Data whose validation nodes count at the masses that the classes have among unlabelled nodes.

    Where validation nodes are drawn class by class, the share of them that is right is not that of other nodes. So a validation node is repeated as often as its
    class is more frequent elsewhere than among them; training and test nodes stay as they are.

    Args:
        data, device: as for any loader.
        mass: share of each class among unlabelled nodes; empty: validation nodes count as they are.

    Example:
        >>> from unspool import datasets
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> plain, counted = CountedLoader(data), CountedLoader(data, mass=(0.9, 0.1))
        >>> [round(float((one.first.target[one.first.valid] == 0).float().mean()), 1) for one in (plain, counted)]
        [0.5, 0.9]
    """

    def __init__(self, data: Dataset, device: torch.device | str = "cpu", mass: Sequence[float] = ()) -> None:
        self.mass = tuple(mass)
        super().__init__(data, device)

    @functools.cached_property
    def fingerprint(self) -> str:
        """That of the data, and of the masses where there are any."""
        found = super().fingerprint
        return f"{found}-{fingerprint([repr(share) for share in self.mass])[:8]}" if self.mass else found

    def _nodes(self, split: Split, rows: bool) -> Task:
        task = super()._nodes(split, rows)
        return replace(task, valid=counted(task.valid, task.target, self.mass))


class LabelledLoader(CountedLoader):
    """Data as a search may see them: without any test node.

    The nodes that a split has for training and validation are divided anew under every seed: as many of each class for training, and half of the others choose the
    epoch. The last half takes the place of the test nodes: its score says how good a setting is, and no epoch was chosen by it. The network still passes over the whole graph.

    Example:
        >>> from unspool import datasets
        >>> data = datasets.load("citeseer")
        >>> loader = LabelledLoader(data)
        >>> loader.split(3)
        Split(labelled nodes of public: 120 train, 250 valid, 250 test of 3327 nodes, ...)
        >>> bool(torch.isin(loader.split(3).test, data.split.valid).all()), loader.split(3).hash == loader.split(4).hash
        (False, False)
        >>> bool(torch.isin(loader.split(3).test, torch.cat([data.split.train, data.split.valid])).all())
        True
    """

    def split(self, seed: int) -> Split:
        """The labelled nodes of the split of a seed, divided anew."""
        if seed not in self._splits:
            self._splits[seed] = divided(super().split(seed), self.data.labels, seed)
        return self._splits[seed]

    def _nodes(self, split: Split, rows: bool) -> Task:
        task = super()._nodes(split, rows)
        return replace(task, test=counted(task.test, task.target, self.mass))


def divided(split: Split, labels: Tensor, seed: int) -> Split:
    """The training and validation nodes of a split, divided anew class by class; its test nodes are left out.

    Example:
        >>> divided(Split([0, 1], [2, 3, 4, 5], [6], nodes=7), torch.tensor([0, 1, 0, 1, 0, 1, 0]), seed=0)
        Split(labelled nodes of own: 2 train, 2 valid, 2 test of 7 nodes, ...)
    """
    known, generator = torch.cat([split.train, split.valid]), torch.Generator().manual_seed(seed)
    parts: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
    # Halves of odd numbers are larger in turns, so that both parts have as many nodes.
    larger = 0
    for number in labels[known].unique():
        own = known[labels[known] == number]
        own = own[torch.randperm(own.numel(), generator=generator)]
        first = int((labels[split.train] == number).sum())
        rest = own.numel() - first
        second = first + (rest + larger) // 2
        larger = (larger + rest) % 2
        for part, ids in zip(parts, own.tensor_split([first, second]), strict=True):
            part.append(ids)
    return Split(*map(torch.cat, parts), nodes=split.nodes, name=f"labelled nodes of {split.name}", seed=seed)


def balanced(split: Split, labels: Tensor) -> bool:
    """Whether as many validation nodes were taken of every class.

    Example:
        >>> labels = torch.tensor([0, 1, 0, 1, 1])
        >>> balanced(Split([0], [2, 3], [4], nodes=5), labels), balanced(Split([0], [1, 2, 3], [4], nodes=5), labels)
        (True, False)
    """
    counts = labels[split.valid].bincount(minlength=int(labels.max()) + 1)
    return bool((counts == counts[0]).all())


def counted(ids: Tensor, target: Tensor, mass: Sequence[float]) -> Tensor:
    """Nodes, each repeated so that the classes have the given shares among them, to a tenth, and none is lost.

    Example:
        >>> counted(torch.tensor([4, 5]), torch.tensor([0, 0, 0, 0, 0, 1]), (0.75, 0.25)).bincount()
        tensor([ 0,  0,  0,  0, 15,  5])
    """
    if not mass:
        return ids
    labels = target[ids].long()
    shares = labels.bincount(minlength=len(mass)) / labels.numel()
    wanted = torch.tensor(mass, dtype=torch.float64, device=ids.device) / shares
    return ids.repeat_interleave((COPIES * wanted[labels]).round().long().clamp_min(1))
