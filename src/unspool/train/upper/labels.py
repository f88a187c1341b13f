"""Terms that compare with what is known: the loss of the labels, and the same where classes are rarer than among the labelled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.settings.kinds import Kind, Real
from unspool.train.loss import CrossEntropy, Loss
from unspool.train.upper.seen import At, Seen, plain_loss
from unspool.train.upper.term import Term, shown

#: The share of the training nodes' class masses in those that are assumed, so that none is ever lost.
FLOOR = 0.1


@dataclass(frozen=True)
class Labels(Term):
    r"""The loss of the task on its training nodes, the mean over the views: :math:`\frac1R\sum_r \ell(Y, p^r)`.

    Args:
        loss: the loss that the task must have; whatever it has when omitted.

    Example:
        >>> from unspool.train import CrossEntropy
        >>> print(Labels(CrossEntropy()) + Labels())
        CE(Y, pʳ)  +  ℓ(Y, pʳ)   (mean over nodes)
    """

    name: ClassVar[str] = "loss"
    classes_only: ClassVar[bool] = False

    loss: Loss | None = None

    def value(self, seen: Seen, at: At) -> Tensor:
        """The mean over views of the loss of the training nodes."""
        del at
        if isinstance(plain_loss(seen.loss), CrossEntropy):
            # Trap: cross_entropy under vmap loads a package for symbolic maths (two seconds); a gather does not.
            return labelled_mean(seen, seen.outputs.index_select(1, seen.train).log_softmax(-1))
        each: list[Tensor] = []
        for output in seen.outputs.unbind(0):
            rows, wanted = seen.loss.learn(output, seen.train, seen.target)
            weight = None if seen.weight is None else seen.weight.index_select(0, seen.train)
            each.append(seen.loss.loss(rows, wanted) if weight is None else seen.loss.weighted(rows, wanted, weight))
        return torch.stack(each).mean(0)

    def check(self, task: Any) -> None:
        """The task has the loss that was said."""
        there = plain_loss(task.loss)
        if self.loss is not None and type(self.loss) is not type(there):
            raise IncompatibleError(
                f"the upper level asks for {type(self.loss).__name__}, and what is learnt here has {type(there).__name__}; write loss in its "
                "place, which is the loss of whatever is learnt"
            )

    def text(self) -> str:
        """``ce``, or ``loss`` for that of the task."""
        return "ce" if isinstance(self.loss, CrossEntropy) else "loss"

    @property
    def objects(self) -> tuple[Any, ...]:
        """A loss that has no word."""
        return () if self.loss is None or isinstance(self.loss, CrossEntropy) else (self.loss,)

    def formula(self) -> str:
        """CE(Y, pʳ)."""
        if self.loss is None:
            return "ℓ(Y, pʳ)"
        return f"{'CE' if isinstance(self.loss, CrossEntropy) else type(self.loss).__name__}(Y, pʳ)"


@dataclass(frozen=True)
class ClassMass(Term):
    r"""Cross-entropy for graphs whose classes are not as frequent as among the training nodes; it takes the place of ``ce``.

    .. math:: \mathrm{CE}\bigl(Y, \mathrm{softmax}(h^r - s)\bigr), \qquad s = \kappa \log(\pi/\pi_{train})

    with :math:`\pi_{train}` the classes' shares among the training nodes and :math:`\pi` what the network says of all others, the
    mean of its probabilities, no gradient through either. So the network is fitted to labels as they are drawn for training, while what it
    says itself, h, holds where the classes have mass π: at its end this is the fixed point of expectation maximisation for a shift of
    labels. A tenth of π is always :math:`\pi_{train}`, so that no class is lost.

    Trap: a rule of choice that weighs validation nodes by each network's own π has its best value where all nodes are in one class. In
    training validation nodes are counted as they are.

    Args:
        strength: κ; 0 gives plain cross-entropy.

    Example:
        >>> print(ClassMass())
        CE(Y, softmax(hʳ − log(π/π₀)))
    """

    name: ClassVar[str] = "class_mass"
    numbers: ClassVar[dict[str, Kind]] = {"strength": Real(0)}

    strength: float = 1.0

    def value(self, seen: Seen, at: At) -> Tensor:
        """The mean over views of the cross-entropy at the training nodes' class masses."""
        log_p = seen.log_p
        labels = seen.target.index_select(0, seen.train).long()
        there = (labels[:, None] == torch.arange(log_p.shape[-1], device=labels.device)).to(log_p.dtype)
        known = there.mean(0)
        said = (seen.unlabelled[:, None] * seen.mean).sum(0) / seen.unlabelled.sum().clamp_min(1)
        mass = (1 - FLOOR) * said + FLOOR * known
        shift = torch.where(known > 0, (mass / known.clamp_min(1e-12)).clamp_min(1e-12).log(), 0.0)
        return labelled_mean(seen, (log_p.index_select(1, seen.train) - at["strength"] * shift).log_softmax(-1))

    def check(self, task: Any) -> None:
        """One class per node, of two or more."""
        super().check(task)
        if task.target.is_floating_point() and task.target.ndim > 1:
            raise IncompatibleError(
                "the term class_mass is for nodes of one class each, and here they have several labels; write loss in its place"
            )

    def formula(self) -> str:
        """CE at shifted logits."""
        factor = "" if self.strength == 1 else f"{shown(self.strength)} "
        return f"CE(Y, softmax(hʳ − {factor}log(π/π₀)))"


def labelled_mean(seen: Seen, log_p: Tensor) -> Tensor:
    """The mean negative log likelihood of training nodes, by their log probabilities of shape (views, training nodes, classes)."""
    labels = seen.target.index_select(0, seen.train).long()
    each = -log_p.gather(-1, labels[None, :, None].expand(log_p.shape[0], -1, 1))[..., 0]
    if seen.weight is None:
        return each.mean()
    weight = seen.weight.index_select(0, seen.train).to(each.dtype)
    return ((weight * each).sum(-1) / weight.sum()).mean()
