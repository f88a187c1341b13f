"""What a model is trained on: features, a graph, targets, three sets of nodes, and an upper loss."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from unspool.datasets.as_trained import Named
from unspool.errors import DataError, IncompatibleError, mention
from unspool.ops import SparseFeatures, features_of
from unspool.ops.stored_hops import StoredHops
from unspool.train.class_weight import ClassWeight, weights_of
from unspool.train.counts import Counts
from unspool.train.loss import CrossEntropy, Link, Loss, Regression, as_loss
from unspool.train.scaling import Scaling
from unspool.train.task_kind import TaskKind


@dataclass(frozen=True, eq=False)
class Task:
    """The upper level of the bilevel problem (3).

    Args:
        x: features, a tensor or sparse features; or hops on the disk.
        graph: the graph; None where the features are hops on the disk, which have seen it.
        target: one entry per node (a class, a number, a row of numbers); for :class:`~unspool.train.Link`, per pair.
        train, valid, test: ids of nodes (of pairs).
        loss: the upper loss, or any function of (output rows, target rows).
        scaling: how the targets were brought to size one, where :meth:`scaled` did so.
        weight: how much items count in the training and validation losses, one number each (of several labels, perhaps one per
            entry); None where all count the same. Scores never have weights.
        named: the features as they came, with names of columns and classes, for networks that were trained on others (teachers).

    Example:
        >>> from unspool import datasets
        >>> task = Task.of(datasets.load("citeseer"))
        >>> task.train.numel()
        120
    """

    x: Any
    graph: Any
    target: Tensor
    train: Tensor
    valid: Tensor
    test: Tensor
    loss: Any = field(default_factory=CrossEntropy)
    scaling: Scaling | None = None
    weight: Tensor | None = None
    named: Named | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", as_loss(self.loss))
        self._check_lengths()
        for name in ("train", "valid", "test"):
            ids = getattr(self, name)
            if ids.numel() == 0 and name != "test":
                raise ValueError(f"the {name} set is empty: nothing can be {'learnt' if name == 'train' else 'chosen'}")
            if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < self.target.shape[0]:
                raise ValueError(
                    f"the {name} set names item {int(ids.max())}, but there are {self.target.shape[0]} targets"
                )
            self.loss.check(self.target, ids, name)
        if self.weight is not None:
            self._check_weight(self.weight)

    def _check_weight(self, weight: Tensor) -> None:
        if type(self.loss).each is Loss.each:
            self.loss.each(self.target, self.target)  # says why not
        shapes = (self.target.shape[:1], self.target.shape)
        if weight.shape not in shapes:
            raise ValueError(f"weights of shape {tuple(weight.shape)} for {shapes[0][0]} targets: give one per target")
        for part in ("train", "valid"):
            ids = getattr(self, part)
            held, known = (
                weight[ids].reshape(ids.numel(), -1),
                torch.isfinite(self.target[ids].reshape(ids.numel(), -1)),
            )
            bad = torch.nonzero(~(torch.isfinite(held) & (held >= 0)).all(1)).flatten()
            if bad.numel():
                item = int(ids[bad[0]])
                told = (
                    "no weight"
                    if bool(torch.isnan(weight[item]).any())
                    else f"the weight {float(weight[item].min()):g}"
                )
                raise DataError(
                    f"node {item}",
                    f"it is in the {part} set and has {told}, and weights are finite numbers of at least 0",
                    "correct it, or take it out of the split",
                )
            if not bool((held * known).sum() > 0):
                raise DataError(
                    f"the {part} set",
                    "all weights are zero, so nothing counts",
                    f"correct {mention('sample_weight')} or {mention('class_weight')}, or choose another split",
                )

    def _check_lengths(self) -> None:
        nodes = self.nodes
        if isinstance(self.x, StoredHops):
            if isinstance(self.loss, Link):
                raise IncompatibleError(
                    "links are looked for in a graph, and hops on the disk hold none; train on the graph itself"
                )
        elif nodes != self.graph.nodes:
            raise ValueError(f"x has {nodes} rows, but the graph has {self.graph.nodes} nodes")
        if isinstance(self.loss, Link):
            if self.target.shape[0] != self.loss.pairs.shape[0]:
                raise ValueError(
                    f"{self.target.shape[0]} targets for {self.loss.pairs.shape[0]} pairs: give one per pair"
                )
            if int(self.loss.pairs.max()) >= nodes or int(self.loss.pairs.min()) < 0:
                raise ValueError(
                    f"a pair names node {int(self.loss.pairs.max())}, but node ids run from 0 to {nodes - 1}"
                )
        elif self.target.shape[0] != nodes:
            raise ValueError(f"{self.target.shape[0]} targets for {nodes} nodes: give one per node")

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return int(self.x.shape[-2])

    @staticmethod
    def of(data: Any, loss: Any = None) -> Task:
        """The task of a dataset (anything with features, graph, labels or targets, and a split).

        Without a loss: that of what the data ask for (:meth:`TaskKind.seen_in`), cross-entropy for labels and squared error
        for numbers. Under squared error numbers are learnt at mean 0 and size 1 (:meth:`scaled`); ``task.scaling.undo(output)``
        takes predictions back. Weights of the data's nodes (``sample_weight``) are those of the task.
        """
        split = data.split
        if split is None:
            raise ValueError(f"{data.name} has no split; give it one with data.with_split(...)")
        numbers = getattr(data, "targets", None)
        if loss is None:
            loss = TaskKind.seen_in(data).loss()
        target = data.labels if numbers is None else numbers
        weight = getattr(data, "sample_weight", None)
        parts = (split.train, split.valid, split.test)
        graph = None if isinstance(data.features, StoredHops) else data.graph
        return Task(data.features, graph, target, *parts, loss, weight=weight, named=_named(data)).scaled()

    def scaled(self) -> Task:
        """The same task with numbers at mean 0 and size 1, by its training nodes alone, where the loss is squared error; counts at mean 1.

        Everything that trains comes through here, so the same split gives the same numbers: ``unspool train``, studies, estimators. R² stays
        what it is, and so does D² of a count. Other losses see their targets as they came.

        Example:
            >>> from unspool import datasets
            >>> data = datasets.from_tensors([[0, 1], [1, 0]], targets=[5.0 * i for i in range(20)])
            >>> task = Task.of(data)
            >>> float(task.scaling.centre) > 0, bool(abs(task.target[task.train].mean()) < 1e-6)
            (True, True)
        """
        makers: dict[type, Any] = {Regression: Scaling.of, Counts: Scaling.by_mean}
        if type(self.loss) not in makers or self.scaling is not None:
            return self
        scaling = makers[type(self.loss)](self.target, self.train)
        return replace(self, target=scaling.apply(self.target), scaling=scaling)

    def with_class_weight(self, rule: ClassWeight | None) -> Task:
        """The same task with every node's weight multiplied by that of its class, counted on the training nodes.

        Example:
            >>> from unspool import datasets
            >>> from unspool.train.class_weight import Balance
            >>> task = Task.of(datasets.load("citeseer")).with_class_weight(Balance.BALANCED)
            >>> task.weight.shape, float(task.weight[task.train].sum())
            (torch.Size([3327]), 120.0)
        """
        if rule is None:
            return self
        each = weights_of(rule, self.target.cpu(), self.train.cpu())
        if self.weight is not None:
            own = self.weight.cpu()
            each = each * (own if own.ndim == each.ndim else own[:, None])
        return replace(self, weight=each.to(torch.get_default_dtype()).to(self.target.device))

    def loss_of(self, rows: Tensor, target: Tensor, ids: Tensor) -> Tensor:
        """The loss of some items, given what the network says of them, with their weights where there are any."""
        return self.loss.over(rows, target, None if self.weight is None else self.weight.index_select(0, ids))

    @functools.cached_property
    def digest(self) -> str:
        """A name for what is learnt, and from what (features, edges, targets, parts), so that a snapshot is not continued on
        another task."""
        weight = [] if self.weight is None else [self.weight]
        known = [self.target, self.train, self.valid, self.test]
        if isinstance(self.x, StoredHops):
            held = hashlib.sha256(f"{type(self.loss).__name__} {self.x.checksum};".encode())
            seen: list[Any] = [*known, *weight]
        else:
            held = hashlib.sha256(f"{type(self.loss).__name__} {self.graph.scale};".encode())
            x = features_of(self.x)
            features = x.operator.forward if isinstance(x, SparseFeatures) else x
            pairs = [self.loss.pairs] if isinstance(self.loss, Link) else []
            graph = [matrix.forward for matrix in (self.graph.operator, self.graph.smoother) if matrix is not None]
            seen = [features, *graph, *known, *pairs, *weight]
        for part in seen:
            for values in (part,) if isinstance(part, Tensor) else (part.crow, part.col, part.val):
                held.update(f"{values.dtype} {tuple(values.shape)};".encode())
                # Trap: no numbers at all (features that are all zero) may come with a stride of 0, which cannot be seen as bytes.
                flat = values.detach().cpu().contiguous().as_strided((values.numel(),), (1,))
                held.update(flat.view(torch.uint8).numpy().data)
        return held.hexdigest()

    def to(self, device: torch.device | str) -> Task:
        """The same task on another device."""
        ids = (self.train.to(device), self.valid.to(device), self.test.to(device))
        graph = None if self.graph is None else self.graph.to(device)
        parts = (self.x.to(device), graph, self.target.to(device), *ids, self.loss.to(device))
        weight = None if self.weight is None else self.weight.to(device)
        return Task(*parts, scaling=self.scaling, weight=weight, named=self.named)


def _named(data: Any) -> Named:
    return Named(data.features, getattr(data, "feature_names", None), getattr(data, "classes", ()))
