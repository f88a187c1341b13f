"""What a summand of the upper level is, and how summands are weighed and added."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch
from torch import Tensor

from unspool.errors import IncompatibleError, InputError
from unspool.settings.kinds import Kind, Mismatch, Real, Whole
from unspool.train.summand import Summand
from unspool.train.upper.seen import At, Seen, has_classes, plain_loss

#: How many views a term may ask for.
VIEWS = Whole(1, 100)


class Term(Summand, ABC):
    """One summand of the upper level: a scalar function of what the network says in every view.

    A term is a frozen dataclass whose fields are what was said. Those that ``numbers`` names may be another number in every trial of a
    pack: :meth:`value` takes them from ``at``, never from ``self``. All else decides the shape of the computation.

    Attributes:
        name: what it is called on the command line and in files.
        numbers: fields that are numbers, with the values that fit.
        classes_only: whether it needs probabilities of classes.
    """

    name: ClassVar[str]
    numbers: ClassVar[dict[str, Kind]] = {}
    classes_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, kind in self.numbers.items():
            object.__setattr__(self, name, accepted(self, name, kind))

    @property
    def least_views(self) -> int:
        """How many views a step must have."""
        return 1

    @abstractmethod
    def value(self, seen: Seen, at: At) -> Tensor:
        """The term, a scalar."""

    @abstractmethod
    def formula(self) -> str:
        """As maths, in Unicode: pʳ is what view r says, p̄ the mean of the views, Y what is known."""

    def check(self, task: Any) -> None:
        """Raise one sentence where the term has no meaning on a task."""
        if self.classes_only and not has_classes(task.loss):
            raise IncompatibleError(
                f"the term {self.name} compares probabilities of classes, and {type(plain_loss(task.loss)).__name__} learns none; leave it "
                "out (consistency goes with any target)"
            )

    def prepare(self, task: Any) -> Term:
        """The term with all that it needs of a task, on its device."""
        self.check(task)
        return self

    @property
    def objects(self) -> tuple[Any, ...]:
        """What its text does not say: functions and tensors that were given."""
        return ()

    def text(self) -> str:
        """As it would be typed.

        Example:
            >>> from unspool.train.upper import Consistency
            >>> Consistency(views=4, temperature=0.5).text()
            'consistency(views=4, temperature=0.5)'
        """
        said = [
            f"{f.name}={shown(getattr(self, f.name))}"
            for f in fields(self)  # type: ignore[arg-type]
            if getattr(self, f.name) != f.default or f.name == "views"  # what a step costs is always said
        ]
        return self.name + (f"({', '.join(said)})" if said else "")

    def __str__(self) -> str:
        return self.formula()


@dataclass(frozen=True)
class Weight:
    """λ of a term, which may grow from 0 over the first epochs: in epoch e it is λ · min(1, e / warm_up).

    Example:
        >>> import torch
        >>> w = Weight(2.0, warm_up=100)
        >>> float(w.at(torch.tensor(50), {"weight": 2.0, "warm_up": 100.0})), str(w)
        (1.0, '2·min(1, e/100)')
    """

    value: float = 1.0
    warm_up: float = 0.0

    def __post_init__(self) -> None:
        for name in ("value", "warm_up"):
            object.__setattr__(self, name, accepted(self, name, Real(0)))

    def times(self, factor: float) -> Weight:
        """The same, multiplied by a number."""
        return Weight(self.value * _number("weight", factor), self.warm_up)

    @staticmethod
    def at(epoch: Tensor, at: At) -> Any:
        """Its value in an epoch, with the numbers of a trial."""
        ramp = epoch.to(torch.get_default_dtype() if epoch.device.type == "mps" else torch.float64) / _at_least_one(
            at["warm_up"]
        )
        return at["weight"] * ramp.clamp(max=1.0)

    def __str__(self) -> str:
        grows = f"min(1, e/{shown(self.warm_up)})" if self.warm_up > 0 else ""
        return f"{shown(self.value)}·{grows}" if grows and self.value != 1 else grows or shown(self.value)


@dataclass(frozen=True)
class WarmUp:
    """A factor that grows from 0 to 1 over the first epochs: ``2.0 * WarmUp(100) * Consistency()``.

    Args:
        epochs: after which it stays.

    Example:
        >>> from unspool.train.upper import Consistency
        >>> print(2.0 * WarmUp(100) * Consistency(views=2))
        2·min(1, e/100) ‖pʳ − p̄‖²   (mean over nodes and 2 views r)
    """

    epochs: float
    factor: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epochs", accepted(self, "epochs", Real(0)))
        object.__setattr__(self, "factor", accepted(self, "factor", Real(0)))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Summand):
            return other * self
        if isinstance(other, WarmUp):
            raise _grows_twice(self.epochs, other.epochs)
        return type(self)(self.epochs, self.factor * _number("weight", other))

    __rmul__ = __mul__

    def of(self, weight: Weight) -> Weight:
        """A weight that grows so; one that grows already is refused."""
        if self.epochs > 0 and weight.warm_up > 0:
            raise _grows_twice(self.epochs, weight.warm_up)
        return Weight(weight.value * self.factor, max(self.epochs, weight.warm_up))


def _grows_twice(outer: float, inner: float) -> IncompatibleError:
    return IncompatibleError(
        f"warm_up({shown(outer)}) stands before warm_up({shown(inner)}), and a weight grows once; keep one of them for each term"
    )


def _at_least_one(value: Any) -> Any:
    return value.clamp_min(1.0) if isinstance(value, Tensor) else max(value, 1.0)


def accepted(owner: Any, name: str, kind: Kind) -> Any:
    """A field as it is kept, or one sentence that names it."""
    value = getattr(owner, name)
    try:
        return kind.accept(value)
    except Mismatch:
        raise InputError(name, value, kind.expected, owner=type(owner).__name__) from None


def _number(name: str, value: Any) -> float:
    try:
        return Real(0).accept(value)
    except Mismatch:
        raise InputError(
            name, value, Real(0).expected, "the upper level is made small, so no term has a weight below 0"
        ) from None


def shown(value: Any) -> str:
    """A number or a word as it would be typed."""
    if isinstance(value, float):
        return Real().shown(value)
    if isinstance(value, str):
        return f"'{value}'" if '"' in value else f'"{value}"'
    return str(value)
