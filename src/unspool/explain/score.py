"""The number that is explained: one output of one node, or the difference of two."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from unspool.errors import UNSHOWN, InputError
from unspool.nn import Bias, Dropout, Linear
from unspool.nn.flatten import Densify


class Readout(Protocol):
    """A number that is read from the outputs at a node, and linear in them: a score, or an inner product."""

    def of(self, outputs: Tensor) -> Tensor:
        """The number out of outputs of shape (..., classes)."""
        ...


class Against(Enum):
    """``RUNNER_UP``: compare with the best of the other classes, whichever it is at the node."""

    RUNNER_UP = "runner-up"


class Outputs(Enum):
    """What the outputs of a model are: ``CLASSES``, scores of which the largest wins, or ``NUMBERS``, each for itself."""

    CLASSES = "classes"
    NUMBERS = "numbers"


@dataclass(frozen=True, eq=False)
class Score:
    """What is explained: ``outputs[target]``, or ``outputs[target] − outputs[against]``.

    Attributes:
        outputs: all outputs of the node, shape (classes,), float64.
        target: the explained class; the predicted one unless asked otherwise.
        against: the class it is compared with, or None.
        names: the classes' names, or the numbers'.
        kind: whether outputs are scores of classes, or numbers.

    Example:
        >>> import torch
        >>> score = choose(torch.tensor([0.5, 2.0, 1.0]), against=Against.RUNNER_UP)
        >>> score.target, score.against, score.value, str(score)
        (1, 2, 1.0, 'the score of 1 minus that of 2')
    """

    outputs: Tensor
    target: int
    against: int | None
    names: tuple[str, ...]
    kind: Outputs = Outputs.CLASSES

    @property
    def value(self) -> float:
        """The explained number."""
        return float(self.of(self.outputs))

    @property
    def predicted(self) -> int:
        """The class with the largest output; with one output, whether it is positive."""
        return int(predictions(self.outputs[None])[0])

    @property
    def probabilities(self) -> Tensor | None:
        """The softmax of the outputs, or the logistic function of a single one that stands for two classes."""
        if self.kind is Outputs.NUMBERS:
            return None
        if self.outputs.numel() > 1:
            return torch.softmax(self.outputs, 0)
        up = torch.sigmoid(self.outputs)
        return torch.cat([1 - up, up])

    def of(self, outputs: Tensor) -> Tensor:
        """The explained number out of outputs of shape (..., classes)."""
        chosen = outputs[..., self.target]
        return chosen if self.against is None else chosen - outputs[..., self.against]

    def __str__(self) -> str:
        if self.outputs.numel() == 1:
            return "the output" if self.kind is Outputs.NUMBERS else f"the output (positive: {self.names[1]})"
        what = "the score of" if self.kind is Outputs.CLASSES else "the output"
        text = f"{what} {self.names[self.target]}"
        return text if self.against is None else f"{text} minus that of {self.names[self.against]}"


def choose(
    outputs: Tensor,
    target: int | None = None,
    against: int | Against | None = None,
    classes: Sequence[str] | None = None,
    kind: Outputs = Outputs.CLASSES,
) -> Score:
    """Decide what is explained, and refuse what a model does not have."""
    values = outputs.detach().to("cpu", torch.float64)
    if not bool(torch.isfinite(values).all()):
        raise ValueError(
            "the outputs at this node are not finite: training has diverged; explain an earlier checkpoint"
        )
    count = values.numel()
    names = class_names(count, classes)
    if len(names) == 1:
        kind = Outputs.NUMBERS
    if count == 1 and (against is not None or target not in (None, 0)):
        raise InputError(
            "target" if against is None else "against",
            UNSHOWN,
            "nothing: the model has one output, so there is no other to choose or compare with",
            "leave it out",
        )
    best = int(values.argmax()) if kind is Outputs.CLASSES else 0
    best = best if target is None else _checked(target, count, "target")
    other = _compared(values, best, against, kind)
    return Score(values, best, other, names, kind)


def _compared(values: Tensor, best: int, against: int | Against | None, kind: Outputs) -> int | None:
    if against is None:
        return None
    if isinstance(against, Against):
        if kind is Outputs.NUMBERS:
            raise ValueError("numbers have no runner-up; give the output to compare with by its number")
        others = values.clone()
        others[best] = -torch.inf
        return int(others.argmax())
    other = _checked(against, values.numel(), "against")
    if other == best:
        raise InputError("against", other, "another class than the one that is explained", "for example the runner-up")
    return other


def class_names(outputs: int, classes: Sequence[str] | None) -> tuple[str, ...]:
    """The given names, or numbers; one output may stand for two classes, or for none."""
    if classes is None or len(classes) == 0:
        return tuple(str(c) for c in range(outputs)) if outputs > 1 else ("output",)
    if len(classes) != outputs and not (outputs == 1 and len(classes) == 2):
        raise ValueError(f"{len(classes)} names of classes for a model with {outputs} outputs; give one per output")
    return tuple(str(name) for name in classes)


def predictions(outputs: Tensor) -> Tensor:
    """The predicted class of each row: the largest output, or the sign of a single one."""
    return (outputs[:, 0] > 0).long() if outputs.shape[1] == 1 else outputs.argmax(1)


def _checked(number: int, count: int, what: str) -> int:
    if isinstance(number, bool) or not 0 <= number < count:
        raise InputError(what, number, f"the number of an output, counted from 0 to {count - 1}")
    return int(number)


@dataclass(frozen=True, eq=False)
class Head:
    """The decoder as a linear functional on one row: score = h · weight + bias (float64, on the CPU)."""

    weight: Tensor
    bias: float


def affine_head(p_pos: Any, width: int, score: Readout) -> Head | None:
    """The functional behind a decoder of linear layers; None where the decoder is something else."""
    if not _is_affine(p_pos):
        return None
    exact = copy.deepcopy(p_pos).to("cpu", torch.float64)
    with torch.enable_grad():
        h = torch.zeros(1, width, dtype=torch.float64, requires_grad=True)
        value = score.of(exact(h))[0]
        (weight,) = torch.autograd.grad(value, h)
    return Head(weight[0], float(value.detach()))


def _is_affine(module: Any) -> bool:
    if isinstance(module, nn.Sequential):
        return all(_is_affine(part) for part in module)
    return isinstance(module, nn.Identity | Densify | Linear | Bias | Dropout | nn.Linear | nn.Dropout)
