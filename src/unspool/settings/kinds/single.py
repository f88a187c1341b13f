"""Numbers, truth values, choices and words."""

from __future__ import annotations

import math
import numbers
import operator
from dataclasses import dataclass
from enum import Enum
from enum import Flag as Combination
from typing import Any

from unspool.settings.kinds.kind import Kind, Mismatch
from unspool.text import plain_number


@dataclass(frozen=True)
class Whole(Kind):
    """Whole numbers between two ends, both included."""

    low: int | None = None
    high: int | None = None

    @property
    def expected(self) -> str:
        """What fits, in words."""
        if self.low is not None and self.high is not None:
            return f"a whole number from {self.low} to {self.high}"
        if self.low is not None:
            return f"a whole number of at least {self.low}"
        return "a whole number" if self.high is None else f"a whole number of at most {self.high}"

    def accept(self, value: Any) -> int:
        """An int; numbers of NumPy and torch count, truth values do not."""
        value = unwrapped(value)
        if isinstance(value, bool):
            raise Mismatch
        try:
            number = operator.index(value)
        except TypeError:
            raise Mismatch from None
        if (self.low is not None and number < self.low) or (self.high is not None and number > self.high):
            raise Mismatch
        return number

    def parse(self, text: str) -> int:
        """In the digits 0 to 9."""
        try:
            return self.accept(int(plain_number(text)))
        except ValueError:
            raise Mismatch from None


@dataclass(frozen=True)
class Real(Kind):
    """Finite numbers between two ends, which may or may not be included."""

    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False

    @property
    def expected(self) -> str:
        """What fits, in words."""
        if self.low is not None and self.high is not None:
            ends = f"{'(' if self.low_open else '['}{self.low:g}, {self.high:g}{')' if self.high_open else ']'}"
            return f"a number in {ends}"
        if self.low is not None:
            return f"a finite number {'above' if self.low_open else 'of at least'} {self.low:g}"
        if self.high is not None:
            return f"a finite number {'below' if self.high_open else 'of at most'} {self.high:g}"
        return "a finite number"

    def accept(self, value: Any) -> float:
        """A float; numbers of NumPy and torch count, truth values do not."""
        value = unwrapped(value)
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise Mismatch
        try:
            number = float(value)
        except OverflowError:  # a whole number that no float can hold
            raise Mismatch from None
        if not math.isfinite(number) or not self._inside(number):
            raise Mismatch
        return number

    def _inside(self, number: float) -> bool:
        if self.low is not None and (number < self.low or (self.low_open and number == self.low)):
            return False
        return self.high is None or not (number > self.high or (self.high_open and number == self.high))

    def parse(self, text: str) -> float:
        """In the digits 0 to 9."""
        try:
            return self.accept(float(plain_number(text)))
        except ValueError:
            raise Mismatch from None

    def shown(self, value: Any) -> str:
        """With as many digits as it has."""
        return repr(float(value)).removesuffix(".0")


@dataclass(frozen=True)
class Flag(Kind):
    """True or false."""

    @property
    def expected(self) -> str:
        """What fits, in words."""
        return "True or False"

    @property
    def typed(self) -> str:
        """What fits where it is typed, in words."""
        return "true or false"

    def accept(self, value: Any) -> bool:
        """A bool, and nothing that merely counts as one."""
        if not isinstance(value, bool):
            raise Mismatch
        return value

    def parse(self, text: str) -> bool:
        """``true`` or ``yes``, ``false`` or ``no``."""
        known = {"true": True, "yes": True, "false": False, "no": False}
        if text.lower() not in known:
            raise Mismatch
        return known[text.lower()]

    def shown(self, value: Any) -> str:
        """As it would be typed."""
        return "true" if value else "false"


@dataclass(frozen=True)
class EnumMember(Kind):
    """One member of an enum; files and command lines have it by its name in small letters."""

    enum: type[Enum]

    def __post_init__(self) -> None:
        if issubclass(self.enum, Combination):
            raise TypeError(
                f"{self.enum.__name__} is a Flag, whose members can be combined, and a setting is one of some choices: make it an Enum"
            )
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise TypeError(
                f"{self.enum.__name__} has more than one member that is written {twice[0]} in files and on command lines, where capitals "
                "and hyphens do not count; rename one of them"
            )

    @property
    def expected(self) -> str:
        """What fits, in words."""
        return f"one of {', '.join(f'{self.enum.__name__}.{one.name}' for one in self.enum)}"

    @property
    def names(self) -> tuple[str, ...]:
        """The choices as they are typed."""
        return tuple(_typed(one.name) for one in self.enum)

    def accept(self, value: Any) -> Enum:
        """A member itself: names are for files and command lines."""
        if not isinstance(value, self.enum):
            raise Mismatch
        return value

    def parse(self, text: str) -> Enum:
        """By its name, in any case."""
        known = dict(zip(self.names, self.enum, strict=True))
        if _typed(text) not in known:
            raise Mismatch
        return known[_typed(text)]

    def to_plain(self, value: Any) -> str:
        """Its name in small letters."""
        return _typed(value.name)

    def from_plain(self, plain: Any) -> Enum:
        """Back from the name."""
        if not isinstance(plain, str):
            raise Mismatch
        return self.parse(plain)


@dataclass(frozen=True)
class Text(Kind):
    """Words."""

    @property
    def expected(self) -> str:
        """What fits, in words."""
        return "text"

    def accept(self, value: Any) -> str:
        """A str."""
        if not isinstance(value, str):
            raise Mismatch
        return value

    def parse(self, text: str) -> str:
        """As it is."""
        return text


def _typed(name: str) -> str:
    return name.lower().replace("-", "_")


def unwrapped(value: Any) -> Any:
    """A number of NumPy or torch as one of Python's; a vector with a single entry is none."""
    dimensions = getattr(value, "ndim", None)
    if dimensions is None or not hasattr(value, "item"):
        return value
    if dimensions > 0:
        raise Mismatch
    return value.item()
