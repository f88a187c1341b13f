"""What is in things that are more than they seem: arrays, tensors, choices, fields, descriptors, in names and plain values."""

from __future__ import annotations

import copyreg
import dataclasses
import functools
import gc
import re
import types
import warnings
from collections.abc import Mapping
from enum import Enum, Flag
from typing import Any

import numpy as np
from torch import Tensor

from unspool.identity.parts import ordered, without_caches
from unspool.settings import Schema, Setting

#: What Python notes down about classes and modules, beside what people write into them; some of it only once somebody asks: copying
#: or reducing an object leaves ``__slotnames__`` on its class, a warning leaves ``__warningregistry__`` in its module.
NOTES = frozenset({
    "__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__builtins__", "__cached__",
    "__dataclass_fields__", "__dataclass_params__", "__dict__", "__doc__", "__file__", "__firstlineno__", "__loader__", "__module__",
    "__name__", "__orig_bases__", "__package__", "__parameters__", "__path__", "__qualname__", "__signature__", "__slotnames__",
    "__spec__", "__static_attributes__", "__warningregistry__", "__weakref__", "_abc_impl",
})  # fmt: skip
#: How the library of enums keeps its books; what counts of them is taken elsewhere.
_BOOKS = frozenset(name for name in vars(Flag) if re.fullmatch(r"_[a-z0-9]\w*_", name)) - {"_boundary_"}
_OF_A_CHOICE = frozenset({"_value_", "_name_", "__objclass__", "_sort_order_", "_inverted_"})
#: What descriptors note down about the function inside them, and locks.
_OF_A_DESCRIPTOR = NOTES | {"__annotations__", "__isabstractmethod__", "__wrapped__", "attrname", "func", "lock"}
#: What is written in C.
COMPILED = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType,
    types.GetSetDescriptorType, types.MemberDescriptorType, types.ClassMethodDescriptorType,
)  # fmt: skip
#: Methods and descriptors, by what they are made of.
DESCRIPTORS: dict[type, tuple[str, ...]] = {
    types.MethodType: ("__self__", "__func__"), classmethod: ("__func__",), staticmethod: ("__func__",),
    property: ("fget", "fset", "fdel"), functools.cached_property: ("func",),
}  # fmt: skip
_METHODS = (types.FunctionType, classmethod, staticmethod, property)
_OF_A_MAP = frozenset({"_mmap", "filename", "mode", "offset"})


def words(text: str) -> list[str]:
    """The names in a text, any of which code may look up.

    Example:
        >>> words("helper.scale + {0.gain}")
        ['helper', 'scale', 'gain']
    """
    return re.findall(r"[^\W\d]\w*", text)


def array_type(array: np.ndarray[Any, Any]) -> str:
    """What the entries of an array are; of records, with names and places."""
    return array.dtype.str if array.dtype.names is None else repr(array.dtype)


def beside_entries(given: Any) -> list[tuple[str, Any]]:
    """What an array holds beside its entries: its class, where that is not NumPy's plain one, a mask, attributes.

    Example:
        >>> beside_entries(np.ones(2)), [name for name, _ in beside_entries(np.ma.array([1, 2], mask=[True, False]))]
        ([], ['class', 'attributes', 'mask', 'fill', 'hard'])
    """
    if type(given) is np.ndarray or isinstance(given, np.generic):
        return []
    masked = isinstance(given, np.ma.MaskedArray)
    held = {k: v for k, v in vars(given).items() if not (masked and k.startswith("_")) and k not in _OF_A_MAP}
    found: list[tuple[str, Any]] = [("class", type(given)), ("attributes", dict(ordered(held)))]
    if masked:
        found += [("mask", np.ma.getmaskarray(given)), ("fill", given.fill_value), ("hard", given.hardmask)]
    return found


def inside_ufunc(ufunc: np.ufunc) -> list[Any]:
    """The function that ``numpy.frompyfunc`` has wrapped, which no attribute tells; nothing of NumPy's own.

    Example:
        >>> inside_ufunc(np.add), len(inside_ufunc(np.frompyfunc(lambda x: x, 1, 1)))
        ([], 1)
    """
    return [held for held in gc.get_referents(ufunc) if callable(held)]


def beside_values(tensor: Tensor) -> dict[str, Any]:
    """What was set on a tensor, and the hooks that change its gradient; not what the compiler of torch notes down there."""
    held = {name: value for name, value in vars(tensor).items() if not name.startswith("_dynamo")}
    hooks: Mapping[int, Any] | None = getattr(tensor, "_backward_hooks", None)
    return {**dict(ordered(held)), **({"hooks": list(hooks.values())} if hooks else {})}


def members(kind: type[Enum]) -> list[tuple[str, Any]]:
    """The choices of an enum, each with its value and with what was set on it.

    Example:
        >>> members(Enum("Speed", {"SLOW": 1}))
        [('SLOW', [1, {}])]
    """
    return [
        (name, [choice.value, dict(ordered({k: v for k, v in without_caches(choice, vars(choice)).items() if k not in _OF_A_CHOICE}))])
        for name, choice in kind.__members__.items()
    ]  # fmt: skip


def written(kind: type) -> dict[str, Any]:
    """What people wrote into a class, its choices left out; of what it declares of settings, the defaults."""
    held = {
        name: value.default if isinstance(value, Setting) else value
        for name, value in vars(kind).items()
        if name not in NOTES and not isinstance(value, Schema) and not _is_asked_for(name, value)
    }
    if not issubclass(kind, Enum):
        return held
    kept = {name: value for name, value in held.items() if name not in kind.__members__}
    return {name: value for name, value in kept.items() if name not in _BOOKS or isinstance(value, _METHODS)}


def _is_asked_for(name: str, value: Any) -> bool:
    """Whether this is the empty record that Python makes when somebody asks for the annotations of a class without any."""
    return name == "__annotations__" and not value


def fields(kind: type) -> list[tuple[str, Any]]:
    """What the fields of a dataclass say about themselves; their types and defaults stand elsewhere in the class."""
    inherited = {id(one) for base in kind.__mro__[1:] for one in vars(base).get("__dataclass_fields__", {}).values()}
    return [
        (name, [dict(one.metadata), one.init, one.repr, one.compare, one.hash, one.kw_only])
        for name, one in vars(kind).get("__dataclass_fields__", {}).items()
        if isinstance(one, dataclasses.Field) and id(one) not in inherited
    ]


def of_descriptor(thing: Any) -> list[tuple[str, Any]]:
    """What a subclass of ``property`` or the like holds beside the functions: its class and attributes.

    Example:
        >>> of_descriptor(property()), len(of_descriptor(type("Mine", (property,), {})()))
        ([], 2)
    """
    if type(thing) in DESCRIPTORS:
        return []
    held = {name: value for name, value in getattr(thing, "__dict__", {}).items() if name not in _OF_A_DESCRIPTOR}
    return [("class", type(thing)), ("attributes", dict(ordered(held)))]


def reduced(thing: Any) -> str | list[Any] | None:
    """What ``pickle`` would take of an object: a name, or maker, arguments, state, items and pairs; None of what it cannot take.

    Example:
        >>> reduced(open), reduced(iter([1]))[1:3]
        ('open', [([1],), 0])
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            registered = copyreg.dispatch_table.get(type(thing))
            found: Any = thing.__reduce_ex__(4) if registered is None else registered(thing)
    except Exception:  # open files, locks, generators: pickle has no common error
        return None
    return found if isinstance(found, str) else [*found, None, None, None][:5]
