"""The upper level: a sum of weighted terms, and what every view of the data loses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from unspool.errors import IncompatibleError, InputError
from unspool.notebook import mathml, paragraphs
from unspool.train.loss import Loss
from unspool.train.summand import Summand
from unspool.train.upper.labels import ClassMass, Labels
from unspool.train.upper.perturbation import Perturbation
from unspool.train.upper.seen import Seen
from unspool.train.upper.term import Term, WarmUp, Weight, shown


@dataclass(frozen=True)
class Part:
    """A term with its weight."""

    term: Term
    weight: Weight = field(default_factory=Weight)

    def text(self) -> str:
        """As it would be typed."""
        factors = [shown(self.weight.value)] if self.weight.value != 1 else []
        factors += [f"warm_up({shown(self.weight.warm_up)})"] if self.weight.warm_up > 0 else []
        return "*".join([*factors, self.term.text()])

    def formula(self) -> str:
        """As maths."""
        plain = self.weight.value == 1 and self.weight.warm_up == 0
        return self.term.formula() if plain else f"{self.weight} {self.term.formula()}"


@dataclass(frozen=True, eq=False, repr=False)
class Upper(Summand):
    r"""The upper level U of the bilevel problem (3): what training makes small, as a sum of terms over R views of the data.

    .. math:: \min_W\; \sum_t \lambda_t\, U_t\bigl(Y, p^1, \ldots, p^R\bigr), \qquad p^r = \mathrm{softmax}\; p_{pos}(\bar X^r)

    A view is a pass of the same network with masks of its own. Made by adding terms to a loss; prints as maths.

    Attributes:
        parts: terms with their weights.
        perturbations: what every view loses besides the dropout of the network.

    Example:
        >>> from unspool.train import CrossEntropy
        >>> from unspool.train.upper import Consistency, DropNodes
        >>> upper = (CrossEntropy() + 2.0 * Consistency(views=4, temperature=0.5)).under(DropNodes(0.5))
        >>> print(upper)
        CE(Y, pʳ)  +  2 ‖pʳ − sharpen(p̄, 0.5)‖²   (mean over nodes and 4 views r, each under DropNodes(0.5))
        >>> upper.text()
        'ce + 2*consistency(views=4, temperature=0.5) under drop_nodes(0.5)'
        >>> Upper.parse(upper.text()) == upper
        True
    """

    parts: tuple[Part, ...]
    perturbations: tuple[Perturbation, ...] = ()

    def __post_init__(self) -> None:
        if not self.parts:
            raise IncompatibleError("an upper level needs at least one term, such as CrossEntropy()")

    # -- making ----------------------------------------------------------------------------------------------------

    @staticmethod
    def parse(text: str) -> Upper:
        """From what was typed: ``ce + 2*consistency(views=4)``, or the name of a TOML file."""
        from unspool.train.upper.language import read

        return read(text)

    def plus(self, other: Any) -> Upper:
        """The sum with another one, a term or a loss."""
        other = as_upper(other)
        return Upper(self.parts + other.parts, self.perturbations + other.perturbations)

    def times(self, factor: Any) -> Upper:
        """Every weight multiplied by a number, or by one that grows."""

        def scaled(weight: Weight) -> Weight:
            return factor.of(weight) if isinstance(factor, WarmUp) else weight.times(factor)

        return replace(self, parts=tuple(replace(one, weight=scaled(one.weight)) for one in self.parts))

    def under(self, *perturbations: Perturbation) -> Upper:
        """The same sum with views of data that lose something more."""
        for one in perturbations:
            if not isinstance(one, Perturbation):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError("under", one, "perturbations of the data, such as DropNodes(0.5)")
        return replace(self, perturbations=self.perturbations + perturbations)

    def prepare(self, task: Any) -> Upper:
        """The same with all that its terms need of a task; refused in one sentence where one has no meaning on it."""
        self._check_weights()
        for one in self.perturbations:
            one.check(task)
        return replace(self, parts=tuple(replace(one, term=one.term.prepare(task)) for one in self.parts))

    def check(self, task: Any) -> None:
        """Raise one sentence where a term has no meaning on a task."""
        self._check_weights()
        for one in (*(part.term for part in self.parts), *self.perturbations):
            one.check(task)

    def _check_weights(self) -> None:
        if all(part.weight.value == 0 for part in self.parts):
            raise IncompatibleError(
                f"every term of {self.text()} has the weight 0, so there is nothing to learn; give one of them another weight"
            )

    # -- asking ----------------------------------------------------------------------------------------------------

    @property
    def views(self) -> int:
        """R: as many as the term asks for that asks for most; every term sees all of them."""
        return max(part.term.least_views for part in self.parts)

    @property
    def numbers(self) -> dict[str, float]:
        """All numbers by name, those that trials of one pack may have of their own: weights, warm-ups, temperatures, rates.

        Example:
            >>> Upper.parse("ce + 2*consistency(views=4, temperature=0.5) under drop_nodes(0.3)").numbers
            {'0.weight': 1.0, '0.warm_up': 0.0, '1.weight': 2.0, '1.warm_up': 0.0, '1.temperature': 0.5, '1.confidence': 0.0, 'under.0.rate': 0.3}
        """
        found: dict[str, float] = {}
        for place, part in enumerate(self.parts):
            found |= {f"{place}.weight": part.weight.value, f"{place}.warm_up": part.weight.warm_up}
            for name in part.term.numbers:
                value = getattr(part.term, name)
                found[f"{place}.{name}"] = 1.0 if value is None else float(value)  # no temperature is one of 1
        return found | {f"under.{place}.rate": one.rate for place, one in enumerate(self.perturbations)}

    @property
    def shape(self) -> tuple[Any, ...]:
        """All that is not a number: trials with the same shape can be computed together.

        Example:
            >>> one, other = Upper.parse("ce + 2*consistency(views=4)"), Upper.parse("ce + consistency(views=4, temperature=0.5)")
            >>> one.shape == other.shape, one.shape == Upper.parse("ce + consistency(views=2)").shape
            (True, False)
        """
        # Trap: a text made for the asking has the place in memory of the one before it, so it counts by what it says.
        terms = tuple((type(p.term), p.term.least_views, *map(_identity, p.term.objects)) for p in self.parts)
        return terms, tuple(type(one) for one in self.perturbations)

    @property
    def objects(self) -> tuple[Any, ...]:
        """What its text does not say: functions and tensors that were given, and contents of folders."""
        return tuple(one for part in self.parts for one in part.term.objects)

    def value(self, seen: Seen, numbers: Mapping[str, Any] | None = None) -> Tensor:
        """U, a scalar.

        Args:
            seen: views of a network.
            numbers: by name as :attr:`numbers` has them; its own when omitted.
        """
        total: Any = 0.0
        for each in self.values(seen, numbers):
            total = total + each
        return total

    def values(self, seen: Seen, numbers: Mapping[str, Any] | None = None) -> list[Tensor]:
        """The summands of U, with their weights, in the order of the parts."""
        held = self.numbers if numbers is None else numbers
        found: list[Tensor] = []
        for place, part in enumerate(self.parts):
            at = {name: held[f"{place}.{name}"] for name in ("weight", "warm_up", *part.term.numbers)}
            found.append(Weight.at(seen.epoch, at) * part.term.value(seen, at))
        return found

    # -- printing --------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """As it would be typed, and as files keep it."""
        losses = " and ".join(one.text() for one in self.perturbations)
        return " + ".join(part.text() for part in self.parts) + (f" under {losses}" if losses else "")

    @property
    def formula(self) -> str:
        """The sum alone, in Unicode."""
        return "  +  ".join(part.formula() for part in self.parts)

    @property
    def note(self) -> str:
        """Over what the means are."""
        views = f" and {self.views} views r" if self.views > 1 else ""
        lost = " and ".join(str(one) for one in self.perturbations)
        under = f", {'each ' if self.views > 1 else ''}under {lost}" if lost else ""
        return f"mean over nodes{views}{under}"

    def html(self) -> str:
        """As MathML, for a notebook."""
        return mathml(self.formula) + paragraphs([self.note])

    _repr_html_ = html

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Upper):
            return False
        same = len(self.objects) == len(other.objects) and all(
            a is b or (isinstance(a, str) and a == b) for a, b in zip(self.objects, other.objects, strict=True)
        )
        return self.text() == other.text() and same

    def __hash__(self) -> int:
        return hash(self.text())

    def __str__(self) -> str:
        plain = self.note == "mean over nodes" and all(isinstance(p.term, Labels | ClassMass) for p in self.parts)
        return self.formula if plain and len(self.parts) == 1 else f"{self.formula}   ({self.note})"

    def __repr__(self) -> str:
        return f"Upper({self.text()})"


def _identity(given: Any) -> Any:
    return given if isinstance(given, str) else id(given)


def as_upper(given: Any) -> Upper:
    """A sum from a term or a loss.

    Example:
        >>> from unspool.train import CrossEntropy
        >>> print(as_upper(CrossEntropy()))
        CE(Y, pʳ)
    """
    if isinstance(given, Upper):
        return given
    if isinstance(given, Loss):
        return Upper((Part(Labels(given)),))
    if isinstance(given, Term):
        return Upper((Part(given),))
    raise TypeError(
        f"{given!r} is not a part of an upper level: add losses and terms, such as CrossEntropy() + Consistency(views=4)"
    )
