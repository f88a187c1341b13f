"""Upper-level losses U(Y, p_pos(X̄)) of the bilevel problem (3), each with the score people read."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from unspool.errors import IncompatibleError, mention
from unspool.train.summand import Summand

#: Scores that are shares, and are shown in per cent wherever they are shown; others, such as R², are shown as they are.
SHARES = ("accuracy", "AUC", "pairs in order", "micro-F1")


class Loss(Summand, ABC):
    """What training makes small, and the number that is reported beside it (larger is better).

    A loss reads the rows it needs out of the network's output (:meth:`read`; the nodes' own rows unless it says otherwise)
    and compares them with the same rows of the target.
    """

    #: The name of the score.
    score_name: str = "score"

    def read(self, output: Tensor, ids: Tensor) -> Tensor:
        """What the network says about some items: here, items are nodes."""
        return output.index_select(0, ids)

    def learn(self, output: Tensor, ids: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """What a training step compares: rows of some items, and their targets."""
        return self.read(output, ids), target.index_select(0, ids)

    def check(self, target: Tensor, ids: Tensor, part: str) -> None:
        """Raise one sentence where the targets of a part cannot be learnt from, or scored; nothing is wrong here."""
        del target, ids, part

    def to(self, device: torch.device | str) -> Loss:
        """The same loss on another device."""
        return self

    @abstractmethod
    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The loss over some nodes, a scalar."""

    @abstractmethod
    def score(self, output: Tensor, target: Tensor) -> Tensor:
        """The score over the same nodes, a scalar."""

    def each(self, output: Tensor, target: Tensor) -> Tensor:
        """The loss of every node by itself, which weights need; a loss that compares nodes with each other has none."""
        raise IncompatibleError(
            f"{type(self).__name__} has no loss of single nodes, so they cannot have weights; leave {mention('sample_weight')} and "
            f"{mention('class_weight')} out"
        )

    def weighted(self, output: Tensor, target: Tensor, weight: Tensor) -> Tensor:
        """The weighted mean of the losses of single nodes, Σ wᵢ lᵢ / Σ wᵢ: the size of the weights does not matter, only their ratio."""
        return (weight * self.each(output, target)).sum() / weight.sum()

    def over(self, output: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
        """The loss over some nodes, with their weights where there are any."""
        return self.loss(output, target) if weight is None else self.weighted(output, target, weight)

    def sizes(self, target: Tensor, weight: Tensor | None) -> Tensor:
        """What every node adds to the number that the loss divides by: 1 each, or its weight."""
        return torch.ones(target.shape[0]) if weight is None else weight

    def check_rows(self) -> None:
        """Raise one sentence where the rows of some nodes are not enough for a loss of them."""
        if type(self).read is not Loss.read or type(self).learn is not Loss.learn:
            raise IncompatibleError(
                f"{type(self).__name__} reads more than the rows of single nodes, which is all that batches and hops on the disk have; leave "
                f"{mention('batch_size')} out, and train on a graph"
            )

    def check_batches(self) -> None:
        """Raise one sentence where parts of the nodes do not make up a loss of all."""
        self.check_rows()


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """One of several classes per node; the score is the accuracy.

    Example:
        >>> import torch
        >>> output, target = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0])
        >>> round(float(CrossEntropy().loss(output, target)), 4), float(CrossEntropy().score(output, target))
        (0.7201, 0.5)
    """

    score_name = "accuracy"

    def check(self, target: Tensor, ids: Tensor, part: str) -> None:
        """Every node of the part has a class, and there is more than one to learn."""
        found = target[ids]
        bad = torch.nonzero(found < 0).flatten()
        if bad.numel():
            raise ValueError(f"node {int(ids[bad[0]])} is in the {part} set but has no label; take it out of the split")
        if part == "train" and found.numel() and bool((found == found[0]).all()):
            raise ValueError(
                f"the train set holds one class alone (number {int(found[0])}), so there is nothing to tell apart and any accuracy would "
                "mean nothing; check the labels, or choose another split"
            )

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The mean negative log likelihood."""
        try:
            return functional.cross_entropy(output, target)
        except IndexError:
            raise ValueError(
                f"class {int(target.max())} occurs, but the model has {output.shape[-1]} outputs; build it with "
                f"out_features={int(target.max()) + 1} or more"
            ) from None

    def each(self, output: Tensor, target: Tensor) -> Tensor:
        """The negative log likelihood of every node."""
        return functional.cross_entropy(output, target, reduction="none")

    def score(self, output: Tensor, target: Tensor) -> Tensor:
        """The share of nodes whose largest output is the right class."""
        return (output.argmax(-1) == target).to(output.dtype).mean()


@dataclass(frozen=True)
class Binary(Loss):
    """Yes or no per node, from one output channel; the score is the area under the ROC curve.

    Example:
        >>> import torch
        >>> output, target = torch.tensor([[0.1], [0.9], [0.4]]), torch.tensor([0, 1, 1])
        >>> float(Binary().score(output, target))
        1.0
    """

    score_name = "AUC"

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The mean binary cross-entropy of the logits."""
        return functional.binary_cross_entropy_with_logits(output[..., 0], target.to(output.dtype))

    def each(self, output: Tensor, target: Tensor) -> Tensor:
        """The binary cross-entropy of every node."""
        return functional.binary_cross_entropy_with_logits(output[..., 0], target.to(output.dtype), reduction="none")

    def check(self, target: Tensor, ids: Tensor, part: str) -> None:
        """Both answers occur, or the area under the curve means nothing."""
        found = target[ids]
        bad = torch.nonzero((found != 0) & (found != 1)).flatten()
        if bad.numel():
            raise ValueError(
                f"target {float(found[bad[0]]):g} of item {int(ids[bad[0]])} in the {part} set: yes is 1 and no is 0"
            )
        if found.numel() and bool((found == found[0]).all()):
            raise ValueError(
                f"the {part} set holds only {'yes' if bool(found[0]) else 'no'}: AUC compares yes with no; choose another split"
            )

    def score(self, output: Tensor, target: Tensor) -> Tensor:
        """The chance that a random yes lies above a random no (ties count half)."""
        return area_under_curve(output[..., 0], target)


@dataclass(frozen=True)
class Regression(Loss):
    """Numbers per node; the score is R².

    Example:
        >>> import torch
        >>> target = torch.tensor([[1.0], [2.0], [3.0]])
        >>> float(Regression().loss(target, target)), float(Regression().score(target, target))
        (0.0, 1.0)
    """

    score_name = "R²"

    def check(self, target: Tensor, ids: Tensor, part: str) -> None:
        """Every number is finite, and those that are scored in the end are not all equal."""
        known = torch.isfinite(target).reshape(target.shape[0], -1).all(-1)
        bad = torch.nonzero(~known[ids]).flatten()
        if bad.numel():
            raise ValueError(
                f"node {int(ids[bad[0]])} is in the {part} set but has no number; take it out of the split"
            )
        found = target[ids]
        if part == "test" and found.numel() and bool((found == found[0]).all()):
            told = "one number alone" if ids.numel() == 1 else f"only {float(found.flatten()[0]):g}"
            raise ValueError(
                f"the test set holds {told}: R² compares errors with the spread of the numbers, which is 0; choose another split"
            )

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The mean squared error."""
        return functional.mse_loss(output, target.view(output.shape).to(output.dtype))

    def each(self, output: Tensor, target: Tensor) -> Tensor:
        """The squared error of every node, the mean over its numbers."""
        return (output - target.view(output.shape).to(output.dtype)).square().mean(-1)

    def score(self, output: Tensor, target: Tensor) -> Tensor:
        """1 − squared error / variance; NaN where all targets are equal, and there is none."""
        target = target.view(output.shape).to(output.dtype)
        spread = (target - target.mean(0)).square().sum()
        alike = (target == target[:1]).all()  # Trap: the mean of equal numbers may differ from them by a rounding error
        return torch.where(alike, torch.nan, 1 - (output - target).square().sum() / spread)


@dataclass(frozen=True)
class Ranking(Loss):
    r"""Put items in order: one output each, right where larger outputs belong to larger targets.

    .. math:: \frac{1}{|P|} \sum_{(i,j) \in P} \log(1 + e^{o_j - o_i}), \qquad P = \{(i, j) : t_i > t_j\}

    The score is the share of pairs in the right order (ties count half); for targets 0 and 1 it is the area under the ROC
    curve. All pairs are formed, so keep parts to some thousands of items.

    Example:
        >>> import torch
        >>> output, target = torch.tensor([[3.0], [1.0], [2.0]]), torch.tensor([10.0, 1.0, 5.0])
        >>> float(Ranking().score(output, target)), round(float(Ranking().loss(output, target)), 4)
        (1.0, 0.2512)
    """

    score_name = "pairs in order"

    def check(self, target: Tensor, ids: Tensor, part: str) -> None:
        """Every item has a number, and at least one pair has an order."""
        found = target[ids]
        bad = (
            torch.nonzero(~torch.isfinite(found.reshape(ids.numel(), -1).double().sum(-1))).flatten()
            if ids.numel()
            else ids
        )
        if bad.numel():
            raise ValueError(
                f"node {int(ids[bad[0]])} is in the {part} set but has no number; take it out of the split"
            )
        if found.numel() and bool((found == found.flatten()[0]).all()):
            raise ValueError(f"all targets of the {part} set are equal: there is nothing to rank; choose another split")

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The mean logistic loss over ordered pairs."""
        apart, before = _pairs(output, target)
        return (functional.softplus(-apart) * before).sum() / before.sum()

    def check_batches(self) -> None:
        """Nodes in different batches would never be compared."""
        raise IncompatibleError(
            f"Ranking compares every two items, and a batch would leave pairs out; leave {mention('batch_size')} out"
        )

    def score(self, output: Tensor, target: Tensor) -> Tensor:
        """The share of pairs in the right order."""
        apart, before = _pairs(output, target)
        right = (apart > 0).to(before.dtype) + 0.5 * (apart == 0).to(before.dtype)
        return (right * before).sum() / before.sum()


@dataclass(frozen=True, eq=False)
class Link(Binary):
    r"""Whether pairs of nodes are linked: logit :math:`h_u^\top h_v`, loss and score as in :class:`Binary`.

    Items are pairs, so the target has one entry per pair and the parts of the task are numbers of pairs. Links that are to
    be found must not lie in the graph that the network sees: :func:`unspool.train.link_task` takes them out. In training,
    pairs that stand for "no" are drawn anew in every epoch, at random among all pairs; a few of them may be links. With the
    same ones in every epoch a network learns them by heart.

    Args:
        pairs: node ids, shape (pairs, 2).

    Example:
        >>> import torch
        >>> loss = Link(torch.tensor([[0, 1], [0, 2]]))
        >>> loss.read(torch.tensor([[1.0, 2.0], [3.0, 0.5], [-1.0, 0.0]]), torch.tensor([0, 1])).flatten()
        tensor([ 4., -1.])
    """

    pairs: Tensor

    def read(self, output: Tensor, ids: Tensor) -> Tensor:
        """The inner product of both ends of some pairs."""
        ends = self.pairs.index_select(0, ids)
        return (output[ends[:, 0]] * output[ends[:, 1]]).sum(-1, keepdim=True)

    def learn(self, output: Tensor, ids: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """The links of the part against fresh random pairs."""
        wanted = target.index_select(0, ids)
        drawn = torch.randint(output.shape[0], (ids.shape[0], 2), device=output.device)
        ends = torch.where(wanted[:, None] > 0.5, self.pairs.index_select(0, ids), drawn)
        return (output[ends[:, 0]] * output[ends[:, 1]]).sum(-1, keepdim=True), wanted

    def to(self, device: torch.device | str) -> Link:
        """The same pairs on another device."""
        return Link(self.pairs.to(device))


@dataclass(frozen=True, eq=False)
class Own(Loss):
    """A loss of your own: any function of output and target rows, and perhaps one for the score.

    Without a score, the negative loss is reported. Whatever else the functions need (a graph, say) they bring along.

    Example:
        >>> import torch
        >>> absolute = Own(lambda output, target: (output - target).abs().mean())
        >>> output, target = torch.tensor([[1.0], [3.0]]), torch.tensor([[1.0], [2.0]])
        >>> float(absolute.loss(output, target)), float(absolute.score(output, target)), absolute.score_name
        (0.5, -0.5, '−loss')
    """

    function: Callable[[Tensor, Tensor], Tensor]
    scoring: Callable[[Tensor, Tensor], Any] | None = None
    score_name: str = "−loss"

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The user's function; it must come to one number."""
        found: Any = self.function(output, target)
        tensor = isinstance(found, Tensor)
        if not tensor or found.numel() != 1:
            what = f"a tensor of shape {tuple(found.shape)}" if tensor else f"a {type(found).__name__}"
            raise TypeError(f"the loss is {what}: expected a tensor with one number; take its mean or sum")
        return found.reshape(())

    def score(self, output: Tensor, target: Tensor) -> Tensor:
        """The user's score, or the negative loss."""
        if self.scoring is None:
            return -self.loss(output, target)
        return torch.as_tensor(self.scoring(output, target), dtype=output.dtype, device=output.device).reshape(())


def as_loss(given: Any) -> Loss:
    """A loss from what the user gave: one of ours, or any function of (output, target).

    Example:
        >>> import torch
        >>> as_loss(torch.nn.functional.mse_loss).score_name
        '−loss'
    """
    if isinstance(given, Loss):
        return given
    if isinstance(given, type) and issubclass(given, Loss):
        raise TypeError(f"loss={given.__name__} is the class; give an instance, {given.__name__}()")
    if not callable(given):
        raise TypeError(f"loss={given!r}: expected a Loss such as CrossEntropy(), or a function of output and target")
    function: Callable[[Tensor, Tensor], Tensor] = given  # type: ignore[assignment]
    return Own(function)


def area_under_curve(value: Tensor, yes: Tensor) -> Tensor:
    """The chance that a random yes lies above a random no, ties counted half; by ranks, so n log n.

    Example:
        >>> import torch
        >>> float(area_under_curve(torch.tensor([0.1, 0.4, 0.4, 0.9]), torch.tensor([0, 0, 1, 1])))
        0.875
    """
    wide, answer = value.double(), (yes > 0.5).double()
    ordered = wide.sort().values
    rank = (torch.searchsorted(ordered, wide) + torch.searchsorted(ordered, wide, right=True) + 1) / 2
    many = answer.sum()
    above = (rank * answer).sum() - many * (many + 1) / 2
    return (above / (many * (answer.numel() - many))).to(value.dtype)


def _pairs(output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    value, wanted = output.reshape(-1), target.reshape(-1)
    if value.numel() != wanted.numel():
        raise ValueError(
            f"ranking reads one output per item, found {math.prod(output.shape[1:])}; build the model with out_features=1"
        )
    return value[:, None] - value, (wanted[:, None] > wanted).to(value.dtype)
