"""One setting: its name, kind, range, default and meaning, said once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from unspool.errors import InputError
from unspool.settings.kinds import (
    Anything,
    EnumMember,
    Instance,
    Kind,
    Listed,
    Mismatch,
    Nullable,
    Real,
    Whole,
    kind_named,
    kind_of,
)
from unspool.settings.ranges import Choice, Range


class _Required:
    def __repr__(self) -> str:
        return "required"

    def __reduce__(self) -> str:  # the same object in every process, and in every copy
        return "REQUIRED"


#: The default of a setting that has none, and must be given.
REQUIRED: Any = _Required()


class Setting:
    """One setting of a model or of training; made by :func:`setting`, as an attribute of a class.

    Attributes:
        name: of the attribute.
        default: what it is where nothing is said; ``REQUIRED`` where something must be.
        meaning: half a sentence for people.
        kind: which values fit, and how they are typed and stored.
        search: where a search looks that is told nothing else; None where it does not vary the setting.
        hint: a way out, for values that do not fit.
    """

    def __init__(
        self, name: str, default: Any, meaning: str, kind: Kind, search: Range | None = None, hint: str | None = None
    ) -> None:
        self.name, self.default, self.meaning, self.kind = name, default, meaning, kind
        self.search, self.hint = search, hint
        self.owner: str | None = None

    def __set_name__(self, owner: type, name: str) -> None:
        if self.owner is not None:  # of another name or class, too: whoever collects the settings of a class copies it
            return
        self.name, self.owner = name, owner.__name__
        if self.default is not REQUIRED:
            self.default = self.accept(self.default)

    def __get__(self, holder: Any, owner: type | None = None) -> Any:
        """The value that an object was built with; of a class, the setting itself."""
        return self if holder is None else vars(holder)["settings"][self.name]

    def __set__(self, holder: Any, value: Any) -> None:
        raise AttributeError(
            f"{self.name} is a setting of {type(holder).__name__}, fixed when it is built; build another one, or "
            f"give what you want to keep another name"
        )

    def __delete__(self, holder: Any) -> None:
        self.__set__(holder, None)

    def accept(self, value: Any) -> Any:
        """The value as it is kept, or one sentence that names the setting."""
        try:
            return self.kind.accept(value)
        except Mismatch as problem:
            raise InputError(self.name, value, self.kind.expected, self._way(problem), owner=self.owner) from None

    def parse(self, text: str) -> Any:
        """The value that was typed, or one sentence."""
        try:
            return self.kind.parse(text.strip())
        except Mismatch as problem:
            raise InputError(self.name, text, self.typed, self._way(problem), owner=self.owner) from None

    def _way(self, problem: Mismatch) -> str | None:
        """A way out: what the mismatch says of one, or the setting."""
        return str(problem) or self.hint

    def to_plain(self, value: Any) -> Any:
        """The value as something that JSON can hold, or one sentence."""
        try:
            return self.kind.to_plain(value)
        except Mismatch:
            raise InputError(
                self.name, value, "a value that can be stored: a number, text, or a list of them"
            ) from None

    def from_plain(self, plain: Any) -> Any:
        """Back from that."""
        try:
            return self.kind.from_plain(plain)
        except Mismatch as problem:
            raise InputError(self.name, plain, self.typed, self._way(problem), owner=self.owner) from None

    @property
    def typed(self) -> str:
        """What fits on a command line, in words."""
        kind = self.kind.inner if isinstance(self.kind, Nullable) else self.kind
        rest = " or none" if isinstance(self.kind, Nullable) else ""
        if isinstance(kind, EnumMember | Instance):
            return f"one of {', '.join(kind.names)}{rest}"
        if isinstance(kind, Listed):
            return f"{kind.expected}, with slashes between them{rest}"
        return f"{kind.typed}{rest}"

    def shown(self, value: Any) -> str:
        """The value for people, as it would be typed; nothing for a setting that has no default."""
        return "" if value is REQUIRED else self.kind.shown(value)

    def declared_in(self, owner: type, name: str, default: Any) -> Setting:
        """The same setting of a class, under a name and with a default that may be others."""
        made = Setting(name, default, self.meaning, self.kind, self.search, self.hint)
        made.__set_name__(owner, name)
        return made

    def __repr__(self) -> str:
        return f"<setting {self.name}: {self.typed}; {self.shown(self.default) or 'required'}>"


def setting(
    default: Any,
    meaning: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    of: Any = None,
    search: Range | None = None,
    hint: str | None = None,
) -> Any:
    """Declare a setting as an attribute of a :class:`~unspool.models.Model`: everything else follows from this line.

    The constructor's check, ``--setting`` on the command line, spaces of studies, files and ``unspool models NAME`` all read it.

    Args:
        default: what it is where nothing is said; its type is the kind of the setting (a number, a truth value, text, an enum).
        meaning: half a sentence for people.
        at_least, at_most, above, below: ends of its range, the first two included.
        of: the type, where the default does not tell it: ``float`` or ``int`` beside a default of None, ``[float]`` for a list, a tuple
            of dataclasses for objects of them. With a default of None the setting may be None.
        search: where a search looks that is told nothing else, such as ``us.study.log_uniform(0.01, 1)``.
        hint: a way out, for values that do not fit.

    Example:
        >>> import torch, unspool as us
        >>> class Calm(us.models.Model):
        ...     pull: float = us.setting(0.1, "how strongly a node keeps its own signal", above=0, at_most=1)
        ...     depth: int = us.setting(4, "number of layers", at_least=1)
        ...
        ...     def build(self):
        ...         self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        ...         problem = us.Fidelity(self.pull) + us.Smoothness(1 - self.pull)
        ...         self.propagation = us.unroll(problem, us.GradientDescent(step=0.5), self.depth)
        >>> dict(Calm(5, 2, pull=0.2).settings)
        {'pull': 0.2, 'depth': 4}
        >>> Calm(5, 2, pull=0)
        Traceback (most recent call last):
            ...
        unspool.errors.InputError: pull=0: expected a number in (0, 1]
    """
    kind = kind_of(default) if of is None else kind_named(of)
    if kind is None:
        raise TypeError(
            f"a default of {default!r} does not tell what the setting is; say it with of=, such as of=float"
        )
    kind = _bounded(kind, at_least, at_most, above, below)
    if isinstance(kind, Anything):
        kind = Anything(tuples=isinstance(default, tuple))
    elif default is None:
        kind = Nullable(kind)
    made = Setting("default", default, meaning, kind, search, hint)
    if default is not REQUIRED:
        made.accept(default)  # here, where it is written: what __set_name__ raises, Python 3.11 buries
    if search is not None:
        _check_search(kind, search)
    return made


def _check_search(kind: Kind, search: Any) -> None:
    if not isinstance(search, Range):
        raise InputError("search", search, "a range, such as integers(1, 9)", "one of a list is choice([1, 2])")
    for value in samples(search):
        try:
            kind.accept(value)
        except Mismatch:
            raise InputError(
                "search", str(search), f"values that the setting takes, and {value!r} is not {kind.expected}"
            ) from None


def samples(search: Range) -> Iterable[Any]:
    """What tells whether a range fits a setting: all values of a list, otherwise both ends."""
    return search.values if isinstance(search, Choice) else (search.at(0.0), search.at(1 - 2**-53))


def _bounded(kind: Kind, at_least: Any, at_most: Any, above: Any, below: Any) -> Kind:
    ends = {"at_least": at_least, "at_most": at_most, "above": above, "below": below}
    if all(end is None for end in ends.values()):
        return kind
    if isinstance(kind, Listed):
        return Listed(_bounded(kind.each, at_least, at_most, above, below))
    if not isinstance(kind, Whole | Real):
        raise TypeError(f"ends are for numbers, and this setting is {kind.expected}")
    for one, other in (("at_least", "above"), ("at_most", "below")):
        if ends[one] is not None and ends[other] is not None:
            raise TypeError(f"{one}={ends[one]!r} and {other}={ends[other]!r} are one end said twice; give one of them")
    least, most, over, under = (_end(name, end, kind) for name, end in ends.items())
    low, high = least if over is None else over, most if under is None else under
    if isinstance(kind, Whole):
        low = math.ceil(least) if least is not None else None if over is None else math.floor(over) + 1
        high = math.floor(most) if most is not None else None if under is None else math.ceil(under) - 1
    if (
        low is not None
        and high is not None
        and (low > high or (low == high and isinstance(kind, Real) and (over, under) != (None, None)))
    ):
        said = ", ".join(f"{name}={end}" for name, end in ends.items() if end is not None)
        raise ValueError(f"{said}: no number lies between these ends")
    if isinstance(kind, Whole):
        return Whole(low, high)
    return Real(low, high, over is not None, under is not None)


def _end(name: str, end: Any, kind: Kind) -> Any:
    """An end as a number of Python; a large whole one need not be a float."""
    if end is None:
        return None
    for one in (Whole(), Real()) if isinstance(kind, Whole) else (Real(),):
        try:
            return one.accept(end)
        except Mismatch:
            continue
    raise InputError(name, end, "a finite number")
