"""What a term of the upper level is evaluated with: what the network says in every view, and what is known."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from unspool.graph import Graph
from unspool.train import ordinal
from unspool.train.loss import Binary, CrossEntropy, Link, Loss
from unspool.train.multilabel import MultiLabel
from unspool.train.ordinal import Ordinal

#: Numbers of a term by name, floats or tensors: in a pack of trials each has its own.
At = Mapping[str, Any]
#: Below this no probability counts as one.
TINY = 1e-30


class _Held:
    """Whether targets are constants still."""

    now = True


_HELD: ContextVar[_Held | None] = ContextVar("held", default=None)


@contextlib.contextmanager
def targets_held() -> Generator[None]:
    """Targets are constants for the gradients that are taken inside, and functions of the weights when these are differentiated after.

    A training step follows a field g whose targets move with the weights, although no gradient goes through them. Where targets are
    detached, the derivative of g takes them for numbers that never change.

    Example:
        >>> w = torch.tensor([3.0], requires_grad=True)
        >>> with targets_held():
        ...     slope = torch.autograd.grad((2 * w - as_target(w)).square().sum() / 2, w, create_graph=True)[0]
        >>> slope, torch.autograd.grad(slope, w)[0]  # 2 (2w − w), whose slope is 2
        (tensor([6.], grad_fn=<AddBackward0>), tensor([2.]))
    """
    held = _Held()
    token = _HELD.set(held)
    try:
        yield
    finally:
        held.now = False
        _HELD.reset(token)


def as_target(value: Tensor) -> Tensor:
    """A value through which no gradient goes; inside :func:`targets_held` only none of those that are taken there.

    Example:
        >>> as_target(torch.ones(1, requires_grad=True)).requires_grad
        False
    """
    held = _HELD.get()
    if held is None or not value.requires_grad:
        return value.detach()
    told = value.view_as(value)
    told.register_hook(lambda slope: torch.zeros_like(slope) if held.now else slope)
    return told


@dataclass(frozen=True, eq=False)
class Seen:
    """Views of one network, and the labels that it may learn from.

    Everything is a plain tensor function of these, without a look at values, so that trials stack and epochs can be captured.

    Attributes:
        outputs: what the network says, shape (views, nodes, outputs).
        target, train: as in :class:`~unspool.train.Task`.
        graph: the graph.
        loss: that of the task.
        weight: how much items count, or None.
        epoch: the number of this epoch from 1, a tensor.
    """

    outputs: Tensor
    target: Tensor
    train: Tensor
    graph: Graph
    loss: Loss
    epoch: Tensor
    weight: Tensor | None = None

    @functools.cached_property
    def log_p(self) -> Tensor:
        """Log probabilities, shape (views, nodes, classes); of several labels (views, nodes, labels, 2)."""
        found = log_probabilities(self.loss, self.outputs)
        assert found is not None  # Term.check saw to that
        return found

    @functools.cached_property
    def p(self) -> Tensor:
        """Probabilities, or what the network says where the target is no class."""
        return self.log_p.exp() if has_classes(self.loss) else self.outputs

    @functools.cached_property
    def mean(self) -> Tensor:
        """p̄, the mean of the views; no gradient goes through it."""
        return as_target(self.p).mean(0)

    @functools.cached_property
    def unlabelled(self) -> Tensor:
        """1 for nodes that are not learnt from, 0 for those that are; shape (nodes,)."""
        everyone = self.outputs.new_ones(self.outputs.shape[1])
        if isinstance(plain_loss(self.loss), Link):
            return everyone
        return everyone.scatter(0, self.train, torch.zeros_like(self.train, dtype=everyone.dtype))

    @functools.cached_property
    def known(self) -> Tensor:
        """The targets of what is learnt from; all others are -1 (classes) or NaN (numbers)."""
        learnt = torch.zeros_like(self.target, dtype=torch.bool)
        rows = self.train.view(-1, *(1,) * (self.target.ndim - 1)).expand(-1, *self.target.shape[1:])
        learnt = learnt.scatter(0, rows, torch.ones_like(rows, dtype=torch.bool))
        return torch.where(learnt, self.target, torch.nan if self.target.is_floating_point() else -1)


def plain_loss(loss: Loss) -> Loss:
    """The loss itself, where another one only gives it another score."""
    return getattr(loss, "inner", loss)


def has_classes(loss: Loss) -> bool:
    """Whether what is learnt are classes, so that a network says probabilities.

    Example:
        >>> from unspool.train import Regression
        >>> has_classes(CrossEntropy()), has_classes(Regression())
        (True, False)
    """
    plain = plain_loss(loss)
    return isinstance(plain, CrossEntropy | MultiLabel | Ordinal | Binary) and not isinstance(plain, Link)


def log_probabilities(loss: Loss, outputs: Tensor) -> Tensor | None:
    """The logarithm of what outputs say about each class, the classes last; None where there are none.

    Example:
        >>> log_probabilities(Binary(), torch.zeros(3, 1)).exp()
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000],
                [0.5000, 0.5000]])
    """
    plain = plain_loss(loss)
    if not has_classes(plain):
        return None
    if isinstance(plain, CrossEntropy):
        return functional.log_softmax(outputs, -1)
    if isinstance(plain, Ordinal):
        return ordinal.log_probabilities(outputs)
    logits = outputs[..., 0] if isinstance(plain, Binary) else outputs
    return torch.stack([functional.logsigmoid(-logits), functional.logsigmoid(logits)], dim=-1)


def sharpen(p: Tensor, temperature: Any) -> Tensor:
    """Distributions ∝ p^(1/T): nearer to their largest entry for T < 1.

    Example:
        >>> sharpen(torch.tensor([0.8, 0.2]), 0.5)
        tensor([0.9412, 0.0588])
    """
    return (p.clamp_min(TINY).log() / temperature).softmax(-1)
