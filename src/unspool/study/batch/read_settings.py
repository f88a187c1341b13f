"""Which settings the methods of somebody's own model read after it is built: these are not in its parts alone."""

from __future__ import annotations

import dis
from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import Any

from unspool.models import Model

#: Methods that no forward pass runs.
_BEFORE = frozenset({"build", "objective"})
#: What follows a mention of ``self`` that does nothing but name an attribute.
_NAMED = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "LOAD_SUPER_ATTR")
#: Names by which everything can be reached.
_ANY = frozenset({"settings", "getattr", "vars", "__dict__", "__getattribute__"})


def read_settings(model: Model) -> dict[str, Any]:
    """The settings of a model that methods of classes outside this package may read, with their values.

    A method that hands ``self`` on as a whole may read all of them.

    Example:
        >>> import unspool as us
        >>> class Loud(us.models.SGC):
        ...     __module__ = "my_models"
        ...     scale: float = us.setting(2.0, "how loud")
        ...     def forward(self, x, graph):
        ...         return self.scale * super().forward(x, graph)
        >>> read_settings(Loud(5, 2, depth=3)), read_settings(us.models.SGC(5, 2))
        ({'scale': 2.0}, {})
    """
    settings: Mapping[str, Any] = vars(model)["settings"]
    methods = _methods(type(model))
    found: set[str] = set()
    # What takes the place of a method of Model, and whatever that mentions; helpers of build are not among them.
    waiting = [name for name in methods if hasattr(Model, name) and name not in _BEFORE]
    while waiting:
        for code in methods.pop(waiting.pop(), ()):
            names, whole = _reads(code)
            if whole or names & _ANY:
                return dict(settings)
            found |= names
            waiting += names & methods.keys()
    return {name: value for name, value in settings.items() if name in found}


def _methods(kind: type) -> dict[str, list[CodeType]]:
    """Methods and properties of somebody's own classes by name."""
    found: dict[str, list[CodeType]] = {}
    for one in kind.__mro__:
        if one.__module__.split(".")[0] in ("unspool", "torch", "builtins"):
            continue
        for name, value in vars(one).items():
            for part in (value, *(getattr(value, way, None) for way in ("fget", "func", "__func__", "__wrapped__"))):
                if isinstance(part, FunctionType):
                    found.setdefault(name, []).append(part.__code__)
    return found


def _reads(code: CodeType) -> tuple[set[str], bool]:
    """The names that some code mentions, and whether it hands its first argument on."""
    names, whole = set(code.co_names), False
    own = code.co_varnames[0] if code.co_argcount else None
    steps = list(dis.get_instructions(code))
    for step, then in zip(steps, [*steps[1:], None], strict=True):
        held = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        named = then is not None and then.opname.startswith(_NAMED) and len(held) == 1
        if own in held and not step.opname.startswith("STORE") and not named:
            whole = True
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= _reads(inner)[0]
    return names, whole
