"""Lists, objects with fields, what may be missing, and what nobody has said anything about."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from unspool.settings.kinds.kind import Kind, Mismatch
from unspool.settings.kinds.single import Flag, Real, Whole, unwrapped
from unspool.text import plain_number


@dataclass(frozen=True)
class Listed(Kind):
    """A list of values of one kind."""

    each: Kind

    @property
    def expected(self) -> str:
        """What fits, in words."""
        return f"a list, each {self.each.expected}"

    def accept(self, value: Any) -> list[Any]:
        """A list of accepted values; arrays and tensors of one dimension count."""
        if hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1:
            value = value.tolist()
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
            raise Mismatch
        return [self.each.accept(one) for one in value]

    def parse(self, text: str) -> list[Any]:
        """With slashes between: commas separate the values of a search."""
        return [self.each.parse(part.strip()) for part in text.split("/")]

    def to_plain(self, value: Any) -> list[Any]:
        """One by one."""
        return [self.each.to_plain(one) for one in value]

    def from_plain(self, plain: Any) -> list[Any]:
        """Back, one by one."""
        if not isinstance(plain, list):
            raise Mismatch
        return [self.each.from_plain(one) for one in plain]

    def shown(self, value: Any) -> str:
        """As it would be typed."""
        return "/".join(self.each.shown(one) for one in value)


@dataclass(frozen=True)
class Instance(Kind):
    """An object of one of some dataclasses whose fields are plain values: ``Checkpointed(every=5)``.

    It is known by the arguments that make it: a field that the constructor does not take (``init=False``) follows from them.
    """

    types: tuple[type, ...]

    def __post_init__(self) -> None:
        for one in self.types:
            if any(f.name == "type" for f in dataclasses.fields(one)):
                raise TypeError(
                    f"{one.__name__} has a field called type, which files use for the name of the class; rename the field"
                )

    @property
    def expected(self) -> str:
        """What fits, in words."""
        return f"one of {', '.join(f'{one.__name__}(...)' for one in self.types)}"

    @property
    def names(self) -> tuple[str, ...]:
        """The classes as they are typed, with their fields."""
        fields = ("; ".join(f"{f.name}=..." for f in _arguments(one)) for one in self.types)
        return tuple(
            one.__name__.lower() + (f"({held})" if held else "") for one, held in zip(self.types, fields, strict=True)
        )

    def accept(self, value: Any) -> Any:
        """An object of exactly one of the classes: a subclass could not be built again from its fields."""
        if type(value) not in self.types:
            raise Mismatch
        return value

    def parse(self, text: str) -> Any:
        """``checkpointed`` or ``checkpointed(every=5)``; fields are numbers."""
        name, bracket, rest = text.partition("(")
        kind = next((one for one in self.types if one.__name__.lower() == name.strip().lower()), None)
        if kind is None or (bracket and not rest.endswith(")")):
            raise Mismatch
        try:
            pairs = [part.partition("=") for part in rest.removesuffix(")").split(";") if part.strip()]
            return kind(**{key.strip(): _number(value.strip()) for key, _, value in pairs})
        except (TypeError, ValueError):
            raise Mismatch from None

    def to_plain(self, value: Any) -> dict[str, Any]:
        """The name of its class, and its fields, if the object can be made again from them."""
        held = {f.name: getattr(value, f.name) for f in _arguments(type(value))}
        plain = {"type": type(value).__name__} | {name: Anything().to_plain(one) for name, one in held.items()}
        again = self.from_plain(plain)
        if any(repr(getattr(again, name)) != repr(unwrapped(one)) for name, one in held.items()):
            raise Mismatch
        return plain

    def from_plain(self, plain: Any) -> Any:
        """Back: only the classes of the setting are made, whatever a file says."""
        if not isinstance(plain, dict):
            raise Mismatch
        kind = next((one for one in self.types if one.__name__ == plain.get("type")), None)
        if kind is None:
            raise Mismatch
        tuples = {f.name for f in _arguments(kind) if _is_tuple(f)}
        given = {
            name: _as_tuples(value) if name in tuples else value for name, value in plain.items() if name != "type"
        }
        try:
            return kind(**given)
        except (TypeError, ValueError):
            raise Mismatch from None

    def shown(self, value: Any) -> str:
        """As it would be typed."""
        held = "; ".join(f"{f.name}={getattr(value, f.name)}" for f in _arguments(type(value)))
        return type(value).__name__.lower() + (f"({held})" if held else "")


@dataclass(frozen=True)
class Nullable(Kind):
    """A kind of values, or None."""

    inner: Kind

    @property
    def expected(self) -> str:
        """What fits, in words."""
        return f"{self.inner.expected}, or None"

    def accept(self, value: Any) -> Any:
        """None, or what the kind accepts."""
        return None if value is None else self.inner.accept(value)

    def parse(self, text: str) -> Any:
        """``none``, or what the kind reads."""
        return None if text.lower() == "none" else self.inner.parse(text)

    def to_plain(self, value: Any) -> Any:
        """None, or as the kind has it."""
        return None if value is None else self.inner.to_plain(value)

    def from_plain(self, plain: Any) -> Any:
        """Back from that."""
        return None if plain is None else self.inner.from_plain(plain)

    def shown(self, value: Any) -> str:
        """As it would be typed."""
        return "none" if value is None else self.inner.shown(value)


@dataclass(frozen=True)
class Anything(Kind):
    """Whatever a constructor takes that says nothing about it; only plain values can be stored and typed.

    Files know lists alone, so a setting has one sort of sequence: tuples where its default is one, lists otherwise.
    """

    tuples: bool = False

    @property
    def expected(self) -> str:
        """What fits, in words."""
        return "any value"

    def accept(self, value: Any) -> Any:
        """As it is, but for the sort of its sequences."""
        return _as_tuples(value) if self.tuples else _as_lists(value)

    def parse(self, text: str) -> Any:
        """A number or a truth value where it reads as one, otherwise text."""
        for kind in (Whole(), Real(), Flag()):
            try:
                return kind.parse(text)
            except Mismatch:
                continue
        return text

    def to_plain(self, value: Any) -> Any:
        """As it is, if JSON can hold it."""
        value = unwrapped(value)
        if type(value) in (list, tuple):  # one of another class would come back without it
            return [self.to_plain(one) for one in value]
        if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum)):
            return value
        raise Mismatch

    def shown(self, value: Any) -> str:
        """Of what cannot be stored, the name of its class."""
        try:
            return str(self.to_plain(value))
        except Mismatch:
            return type(value).__name__


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(one) for one in value) if type(value) in (list, tuple) else value


def _as_lists(value: Any) -> Any:
    return [_as_lists(one) for one in value] if type(value) in (list, tuple) else value


def _arguments(kind: Any) -> list[dataclasses.Field[Any]]:
    """The fields of a dataclass that its constructor takes."""
    return [f for f in dataclasses.fields(kind) if f.init]


def _is_tuple(field: dataclasses.Field[Any]) -> bool:
    """Whether a field holds tuples, as its default or its annotation says, which may be text."""
    said = field.type if isinstance(field.type, str) else str(getattr(field.type, "__name__", field.type))
    return isinstance(field.default, tuple) or said.removeprefix("typing.").lower().startswith("tuple")


def _number(text: str) -> float:
    return int(plain_number(text)) if text.lstrip("+-").isdigit() else float(plain_number(text))
