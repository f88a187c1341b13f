"""All settings of a class, and classes that declare theirs."""

from __future__ import annotations

import copy
import dataclasses
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
        plain: attributes that look like settings and are none, with how each is written.

    Example:
        >>> import unspool as us
        >>> schema = us.models.MLP.schema
        >>> list(schema), schema["hidden"].kind.expected
        (['hidden', 'dropout', 'bias'], 'a whole number of at least 1')
        >>> schema.complete({"dropout": 0})
        {'hidden': 64, 'dropout': 0.0, 'bias': True}
    """

    def __init__(
        self,
        owner: str,
        settings: Mapping[str, Setting],
        takes_more: bool = False,
        plain: Mapping[str, str] | None = None,
    ) -> None:
        self.owner, self.takes_more, self._settings = owner, takes_more, dict(settings)
        self._plain = {} if plain is None else dict(plain)

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
            self.hint(name),
            owner=self.owner,
        )

    def hint(self, name: str) -> str | None:
        """What may be meant by a name that is no setting.

        Example:
            >>> import unspool as us
            >>> us.models.MLP.schema.hint("hiden")
            'did you mean hidden?'
        """
        if name in self._plain:
            return f"{self.owner}.{name} is a plain attribute; write {self._plain[name]}"
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
    """A default that nobody else holds: whoever changes a list, or one inside it, must not change it for all."""
    if type(default) in (list, tuple, set):
        return type(default)(_own(one) for one in default)
    if type(default) is dict:
        return {name: _own(one) for name, one in default.items()}
    if not dataclasses.is_dataclass(default) or isinstance(default, type):
        return default  # Trap: deepcopy would copy tensors, too, which are then no longer equal to the default
    held = {field.name: getattr(default, field.name) for field in dataclasses.fields(default)}
    own = {name: _own(value) for name, value in held.items()}
    params: Any = type(default).__dict__.get("__dataclass_params__")
    if params is not None and params.frozen and all(own[name] is value for name, value in held.items()):
        return default
    made = copy.copy(default)
    for name, value in own.items():
        object.__setattr__(made, name, value)
    return made


def positional(*, kw_only: bool) -> Any:
    """What tells type checkers that an argument is given by position."""
    return kw_only


@dataclass_transform(kw_only_default=True, field_specifiers=(positional,))
class Declared:
    """A class whose attributes declare its settings: :class:`~unspool.models.Model` and :class:`~unspool.train.TrainConfig`.

    A subclass inherits the settings of its parents, adds its own, and changes a default by writing ``depth = 20``; plain classes among its
    parents may do both. The order is that of the declarations, those of parents first.
    """

    schema: ClassVar[Schema] = Schema("", {})

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _check_names(cls)
        found: dict[str, Setting] = {}
        defaults: dict[str, Any] = {}
        for base in reversed(cls.__mro__):  # as Python looks attributes up
            for name, value in vars(base).items():
                if isinstance(value, Setting):
                    found[name] = value
                    defaults.pop(name, None)
                elif name in found:
                    defaults[name] = value
        for name, one in found.items():
            twice = one.name != name or (
                name in vars(cls) and one.owner != cls.__name__
            )  # one object, used more than once
            if twice or name in defaults:
                found[name] = one.declared_in(cls, name, defaults.get(name, one.default))
                setattr(cls, name, found[name])
        cls.schema = Schema(cls.__name__, found, plain=_plain_attributes(cls, found))
        cls.__signature__ = inspect.Signature(cls.schema.parameters())

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings with their values, fixed once they are there."""
        return types.MappingProxyType(vars(self)["settings"])

    @settings.setter
    def settings(self, values: Mapping[str, Any]) -> None:
        if "settings" in vars(self):
            raise AttributeError(
                f"the settings of a {type(self).__name__} are fixed when it is built; build another one"
            )
        # In the object's own dictionary, and as a plain one: copies and pickles take it as it is.
        vars(self)["settings"] = dict(values)


def check_unchanged(kind: type[Declared]) -> None:
    """Refuse a class that was given something else in the place of a setting after it was made: its objects would not be what they say."""
    for name, one in kind.schema.items():
        if getattr(kind, name, None) is not one:
            raise TypeError(
                f"{kind.__name__}.{name} is a setting, and was assigned after the class was made; write {name} = ... in a subclass"
            )


def _check_names(cls: type[Declared]) -> None:
    """Refuse settings that are new in a class and called like something else that its objects have."""
    parents = [base for base in cls.__mro__[1:] if issubclass(base, Declared)]
    known = {one for base in parents for one in base.__mro__}
    for base in cls.__mro__:
        for name in [name for name, value in vars(base).items() if isinstance(value, Setting)]:
            if any(name in one.schema for one in parents):
                continue
            brought = any(isinstance(vars(one).get(name), Setting) for one in cls.__mro__[1:])
            if name == "self" or any(name in _attributes(one) for one in (known if brought else cls.__mro__[1:])):
                raise TypeError(
                    f"{cls.__name__}.{name} cannot be a setting: every {cls.__mro__[1].__name__} has something else of that name; "
                    "choose another"
                )


def _plain_attributes(cls: type, settings: Mapping[str, Setting]) -> dict[str, str]:
    """Numbers, words and the like that people wrote into a class, and how each would be declared as a setting."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.partition(".")[0] in ("unspool", "torch", "builtins"):
            continue
        for name, value in vars(base).items():
            if (
                not name.startswith("_")
                and name not in settings
                and isinstance(value, bool | int | float | str | enum.Enum)
            ):
                shown = str(value) if isinstance(value, enum.Enum) else repr(value)
                found[name] = f"{name}: {type(value).__name__} = us.setting({shown}, '...')"
    return found


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
    unknown = Anything(tuples=isinstance(default, tuple))
    try:
        kind = _kind_in(hint) or (None if default is REQUIRED else kind_of(default)) or unknown
    except TypeError:  # an enum that files cannot tell apart
        kind = unknown
    if default is None and not isinstance(kind, Anything | Nullable):
        kind = Nullable(kind)
    if default is not REQUIRED and not _fits(kind, default):  # an annotation that the default itself gives the lie
        kind = unknown
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
