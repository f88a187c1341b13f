"""All settings of a class, and classes that declare theirs."""

from __future__ import annotations

import copy
import difflib
import enum
import inspect
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, dataclass_transform
from weakref import WeakKeyDictionary

from unspool.errors import UNSHOWN, InputError
from unspool.settings.declaration import REQUIRED, Setting
from unspool.settings.kinds import Anything, Kind, Mismatch, Nullable, kind_named, kind_of


class Schema(Mapping[str, Setting]):
    """The settings of a class by name, in the order in which they are declared.

    Args:
        owner: the name of the class, for messages.
        settings: its settings.
        takes_more: whether the class takes settings that it does not name (``**settings``).

    Example:
        >>> import unspool as us
        >>> schema = us.models.MLP.schema
        >>> list(schema), schema["hidden"].kind.expected
        (['hidden', 'dropout', 'bias'], 'a whole number of at least 1')
        >>> schema.complete({"dropout": 0})
        {'hidden': 64, 'dropout': 0.0, 'bias': True}
    """

    def __init__(self, owner: str, settings: Mapping[str, Setting], takes_more: bool = False) -> None:
        self.owner, self.takes_more, self._settings = owner, takes_more, dict(settings)

    def __getitem__(self, name: str) -> Setting:
        return self._settings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    def takes(self, name: str) -> bool:
        """Whether the class takes a setting of this name."""
        return name in self._settings or self.takes_more

    def of(self, name: str) -> Setting:
        """The setting of this name, or one sentence that names those there are."""
        if name in self._settings:
            return self._settings[name]
        if self.takes_more:
            return Setting(name, REQUIRED, "", Anything())
        raise InputError(
            name,
            UNSHOWN,
            f"a setting of {self.owner}, which takes {', '.join(self) or 'none'}",
            self._near(name),
            owner=self.owner,
        )

    def _near(self, name: str) -> str | None:
        near = difflib.get_close_matches(name, self._settings, n=1)
        return f"did you mean {near[0]}?" if near else None

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The values that were given, checked one by one."""
        return {name: self.of(name).accept(value) for name, value in given.items()}

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All settings: those that were given, checked, and the defaults of the others."""
        checked = self.check(given)
        missing = [s.name for s in self.values() if s.default is REQUIRED and s.name not in checked]
        if missing:
            raise InputError(missing[0], UNSHOWN, f"a value: {self.owner} has no default for it", owner=self.owner)
        named = {s.name: checked[s.name] if s.name in checked else _own(s.default) for s in self.values()}
        return named | {name: value for name, value in checked.items() if name not in named}

    def parameters(self) -> list[inspect.Parameter]:
        """The settings as keywords of a constructor, for ``help`` and editors."""
        empty, keyword = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY
        return [
            inspect.Parameter(s.name, keyword, default=empty if s.default is REQUIRED else s.default)
            for s in self.values()
        ]

    def to_plain(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values as JSON can hold them."""
        return {name: self.of(name).to_plain(value) for name, value in values.items()}

    def from_plain(self, plain: Mapping[str, Any]) -> dict[str, Any]:
        """Back from that."""
        return {name: self.of(name).from_plain(value) for name, value in plain.items()}


def _own(default: Any) -> Any:
    """A default that nobody else holds: whoever changes a list must not change it for all."""
    return copy.copy(default) if isinstance(default, list | dict) else default


def positional(*, kw_only: bool) -> Any:
    """What tells type checkers that an argument is given by position."""
    return kw_only


@dataclass_transform(kw_only_default=True, field_specifiers=(positional,))
class Declared:
    """A class whose attributes declare its settings: :class:`~unspool.models.Model` and :class:`~unspool.train.TrainConfig`.

    A subclass inherits the settings of its parents, adds its own, and changes a default by writing ``depth = 20``. The order is that of
    the declarations, those of parents first.
    """

    schema: ClassVar[Schema] = Schema("", {})
    settings: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherited: dict[str, Setting] = {}
        for base in reversed(cls.__mro__[1:]):  # as Python looks attributes up; plain classes may bring settings, too
            inherited |= {name: value for name, value in vars(base).items() if isinstance(value, Setting)}
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Setting)}
        for name in set(inherited) & set(vars(cls)) - set(own):
            own[name] = inherited[name].with_default(vars(cls)[name])
            setattr(cls, name, own[name])
            own[name].__set_name__(cls, name)
        for name in own:
            if name not in inherited and any(name in _attributes(base) for base in cls.__mro__[1:]):
                raise TypeError(
                    f"{cls.__name__}.{name} cannot be a setting: every {cls.__mro__[1].__name__} has something else of that name; "
                    "choose another"
                )
        cls.schema = Schema(cls.__name__, inherited | own)
        cls.__signature__ = inspect.Signature(cls.schema.parameters())


def _attributes(kind: type) -> set[str]:
    """What a class has, and what it says its objects have."""
    return {*vars(kind), *vars(kind).get("__annotations__", ())}


_READ: WeakKeyDictionary[type, Schema] = WeakKeyDictionary()


def schema_of(kind: type) -> Schema:
    """The settings of any class that is built as ``kind(in_features, out_features, **settings)``.

    A class that declares its settings has them said; of others the keywords of the constructor are taken, with what their defaults and
    annotations tell.

    Example:
        >>> import torch
        >>> class Net(torch.nn.Module):
        ...     def __init__(self, in_features, out_features, width=8, gate: float | None = None):
        ...         super().__init__()
        >>> [(s.name, s.typed, s.default) for s in schema_of(Net).values()]
        [('width', 'a whole number', 8), ('gate', 'a finite number or none', None)]
    """
    declared = getattr(kind, "schema", None)
    if isinstance(declared, Schema):
        return declared
    if kind not in _READ:
        _READ[kind] = _read_constructor(kind)
    return _READ[kind]


def _read_constructor(kind: type) -> Schema:
    kinds = inspect.Parameter
    found = list(inspect.signature(kind).parameters.values())
    places = [p for p in found if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    if len(places) < 2 and not any(p.kind is kinds.VAR_POSITIONAL for p in found):
        raise TypeError(
            f"{kind.__name__}{inspect.signature(kind)} is not built as model(in_features, out_features, ...); wrap it in a class that is"
        )
    rest = [p for p in found if p not in places[:2] and p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)]
    hints = _hints(kind)
    made = {p.name: _from_parameter(kind.__name__, p, hints.get(p.name)) for p in rest}
    return Schema(kind.__name__, made, any(p.kind is kinds.VAR_KEYWORD for p in found))


def _from_parameter(owner: str, parameter: inspect.Parameter, hint: Any) -> Setting:
    default = REQUIRED if parameter.default is inspect.Parameter.empty else parameter.default
    kind = _kind_in(hint) or (None if default is REQUIRED else kind_of(default)) or Anything()
    if default is None and not isinstance(kind, Anything | Nullable):
        kind = Nullable(kind)
    if default is not REQUIRED and not _fits(kind, default):  # an annotation that the default itself gives the lie
        kind = Anything()
    made = Setting(parameter.name, default, "", kind)
    made.owner = owner
    return made


def _fits(kind: Kind, value: Any) -> bool:
    try:
        kind.accept(value)
    except Mismatch:
        return False
    return True


def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind.__init__)
    except Exception:  # names that are known to type checkers alone, or nowhere
        return {}


def _kind_in(hint: Any) -> Kind | None:
    """The kind that an annotation names; None where it names something else."""
    if isinstance(hint, type) and (hint in (bool, int, float, str) or issubclass(hint, enum.Enum)):
        return kind_named(hint)
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        inner = [one for one in typing.get_args(hint) if one is not type(None)]
        found = _kind_in(inner[0]) if len(inner) == 1 else None
        return None if found is None else Nullable(found)
    return None
