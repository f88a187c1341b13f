"""One setting: its name, kind, range, default and meaning, said once."""

from __future__ import annotations

from typing import Any

from unspool.errors import InputError
from unspool.settings.kinds import (
    Anything,
    EnumMember,
    Flag,
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
from unspool.settings.ranges import Range


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
        self.name, self.owner = name, owner.__name__
        if self.default is not REQUIRED:
            self.default = self.accept(self.default)

    def __get__(self, holder: Any, owner: type | None = None) -> Any:
        """The value that an object was built with; of a class, the setting itself."""
        return self if holder is None else holder.settings[self.name]

    def __set__(self, holder: Any, value: Any) -> None:
        raise AttributeError(
            f"{self.name} is a setting of {type(holder).__name__}, fixed when it is built; build another one, or "
            f"give what you want to keep another name"
        )

    def accept(self, value: Any) -> Any:
        """The value as it is kept, or one sentence that names the setting."""
        try:
            return self.kind.accept(value)
        except Mismatch:
            raise InputError(self.name, value, self.kind.expected, self.hint, owner=self.owner) from None

    def parse(self, text: str) -> Any:
        """The value that was typed, or one sentence."""
        try:
            return self.kind.parse(text.strip())
        except Mismatch:
            raise InputError(self.name, text, self.typed, self.hint, owner=self.owner) from None

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
        except Mismatch:
            raise InputError(self.name, plain, self.typed, self.hint, owner=self.owner) from None

    @property
    def typed(self) -> str:
        """What fits on a command line, in words."""
        kind = self.kind.inner if isinstance(self.kind, Nullable) else self.kind
        rest = " or none" if isinstance(self.kind, Nullable) else ""
        if isinstance(kind, EnumMember | Instance):
            return f"one of {', '.join(kind.names)}{rest}"
        if isinstance(kind, Listed):
            return f"{kind.expected}, with slashes between them{rest}"
        return f"{'true or false' if isinstance(kind, Flag) else kind.expected}{rest}"

    def shown(self, value: Any) -> str:
        """The value for people, as it would be typed; nothing for a setting that has no default."""
        return "" if value is REQUIRED else self.kind.shown(value)

    def with_default(self, default: Any) -> Setting:
        """The same setting with another default."""
        return Setting(self.name, default, self.meaning, self.kind, self.search, self.hint)

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
        >>> Calm(5, 2, pull=0.2).settings
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
    kind = Nullable(kind) if default is None and not isinstance(kind, Anything) else kind
    made = Setting("default", default, meaning, kind, search, hint)
    if default is not REQUIRED:
        made.accept(default)  # here, where it is written: what __set_name__ raises, Python 3.11 buries
    return made


def _bounded(kind: Kind, at_least: Any, at_most: Any, above: Any, below: Any) -> Kind:
    if all(end is None for end in (at_least, at_most, above, below)):
        return kind
    if isinstance(kind, Listed):
        return Listed(_bounded(kind.each, at_least, at_most, above, below))
    if isinstance(kind, Whole):
        return Whole(at_least if above is None else above + 1, at_most if below is None else below - 1)
    if isinstance(kind, Real):
        low, high = at_least if above is None else above, at_most if below is None else below
        return Real(low, high, above is not None, below is not None)
    raise TypeError(f"ends are for numbers, and this setting is {kind.expected}")
