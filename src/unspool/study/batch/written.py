"""What a model is but for the values of its state, written out: whether it may share a stack, and what must be equal for that."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import pickle
import sys
from collections import Counter
from collections.abc import Hashable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from torch import Tensor, nn

from unspool.models import Model
from unspool.nn import Dropout
from unspool.study.batch.read_settings import read_settings


class Unwritable(Exception):
    """A model that cannot be written out; the message says why, about the trial: "nothing in its model is trained"."""


def written(model: nn.Module) -> Hashable:
    """All that a model is but the values of its parameters and buffers: equal where two models differ in nothing else.

    Numbers, choices, parts and functions count; a function counts by its instructions and by what it was made with, wherever it lies.

    Example:
        >>> import unspool as us
        >>> written(us.models.GCN(5, 2)) == written(us.models.GCN(5, 2)), written(us.models.GCN(5, 2)) == written(us.models.GCN(5, 3))
        (True, False)
        >>> layer = nn.Linear(2, 1)
        >>> layer.doubled = (lambda weight: lambda: 2 * weight)(layer.weight)
        >>> written(layer)
        Traceback (most recent call last):
            ...
        unspool.study.batch.written.Unwritable: its function <lambda> holds parameters or parts of one trial; write a method instead
    """
    out = io.BytesIO()
    writer = _Writer(out, model)
    try:
        writer.dump(model)
    except Unwritable:
        raise
    except Exception as problem:  # open files, threads, locks: pickle has no common error
        if isinstance(problem, RecursionError) or "cyclic" in str(problem):
            raise Unwritable("it cannot be compared with others (something in it holds itself)") from None
        why = " ".join(str(problem).split())[:120]
        raise Unwritable(f"it cannot be compared with others ({type(problem).__name__}: {why})") from None
    writer.check()
    return hashlib.sha256(out.getvalue()).hexdigest(), tuple(writer.kinds)


def own_copy(model: nn.Module) -> nn.Module:
    """A copy of a model; the model itself where a copy would go on using its parameters, or cannot be made.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> own_copy(layer) is layer
        False
        >>> layer.double_weight = (lambda held: lambda: 2 * held)(layer.weight)  # a copy would double the weight of this one
        >>> own_copy(layer) is layer
        True
    """
    if any(_holds(value) for part in model.modules() for value in vars(part).values()):
        return model
    with contextlib.suppress(Exception):  # such as torch's old weight_norm, whose weights have a history
        return copy.deepcopy(model)
    return model


def _holds(value: Any, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a function holds state, or one in a container does."""
    inside: Any = ()
    if id(value) in seen:  # a function that calls itself
        return False
    if isinstance(value, FunctionType):
        inside = made_with(value)
        if any(map(_is_state, inside)):
            return True
    elif isinstance(value, dict):
        inside = value.values()  # type: ignore[reportUnknownMemberType]
    elif isinstance(value, list | tuple):
        inside = value  # type: ignore[reportUnknownVariableType]
    return any(_holds(one, seen | {id(value)}) for one in inside)


def _is_state(value: Any) -> bool:
    return isinstance(value, nn.Module | Tensor)


def made_with(function: FunctionType) -> list[Any]:
    """What a function was made with: the variables around it, and its default values.

    Example:
        >>> made_with((lambda rate: lambda x, bias=0.5: rate * x + bias)(2.0))
        [2.0, 0.5]
    """
    found: list[Any] = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not filled yet
            found.append(cell.cell_contents)
    return [*found, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def _own_tensors(part: nn.Module) -> list[Tensor]:
    """The tensors that a part keeps itself."""
    held = vars(part)
    kept = [*held["_parameters"].values(), *held["_buffers"].values()]
    if isinstance(part, Dropout):  # it remembers its rate, to see whether it is another
        kept += held.values()
    return [value for value in kept if isinstance(value, Tensor)]


class _Writer(pickle.Pickler):
    """Writes a module with shapes in the place of its state; functions and classes by their place in ``kinds``."""

    def __init__(self, out: io.BytesIO, model: nn.Module) -> None:
        super().__init__(out, protocol=4)
        # Trap: pickle writes a second mention of the same object differently, and equal strings need not be the same object.
        self.fast = True
        # Trap: numbers that id() gives are given again. What they stand for is held as long as it is compared.
        self.kinds: list[Hashable] = []
        self._places: dict[int, int] = {}
        held = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        self._known: dict[int, Any] = {
            id(value): ("state", tuple(value.shape), str(value.dtype), value.requires_grad) for value in held.values()
        }
        self._names = {id(value): name for name, value in held.items()}
        self._elsewhere = Counter[int]()
        self._parts = {id(part): name for name, part in model.named_modules()}
        for part in model.modules():
            if isinstance(part, Model):
                # The settings of a named model say how it was built; what matters of them is in its parts, unless its methods read them.
                self._known[id(vars(part)["settings"])] = ("settings", read_settings(part))
            for name, hooks in vars(part).items():
                if "_hooks" in name and isinstance(hooks, dict):  # by number, which no two hooks share
                    self._known[id(hooks)] = ("hooks", *hooks.values())  # type: ignore[reportUnknownArgumentType]

    def check(self) -> None:
        """Refuse a model that holds state in other places than a stack fills: a list of parameters, an object with one."""
        twice = next((name for place, name in self._names.items() if self._elsewhere[place] > 0), None)
        if twice is not None:
            raise Unwritable(f"it holds {twice!r} a second time where it is neither a parameter nor a buffer")

    def persistent_id(self, obj: Any) -> Any:
        """A short name for what is not to be written out."""
        if id(obj) in self._names:
            self._elsewhere[id(obj)] += 1
        if id(obj) in self._parts:  # now come its own, wherever it was found: a stack fills these
            self._elsewhere.subtract(map(id, _own_tensors(obj)))
        if id(obj) in self._known:
            return self._known[id(obj)]
        if isinstance(obj, Tensor):
            if obj.requires_grad:
                raise Unwritable(f"a tensor of shape {tuple(obj.shape)} in it has a gradient and is no parameter of it")
            return ("tensor", str(obj.dtype), str(obj.device), obj.detach().cpu().numpy().tobytes())
        if isinstance(obj, MethodType) and id(obj.__self__) in self._parts:
            owner = obj.__self__
            read = vars(owner)["settings"] if isinstance(owner, Model) else {}
            return ("method", self._parts[id(owner)], self._place(obj.__func__), dict(read))
        if isinstance(obj, FunctionType):
            return self._function(obj)
        if isinstance(obj, type | BuiltinFunctionType):
            return ("code", self._place(obj))
        return None

    def _function(self, function: FunctionType) -> Any:
        if getattr(sys.modules.get(function.__module__), function.__name__, None) is function:
            return ("code", self._place(function))
        around = made_with(function)
        if any(isinstance(one, nn.Module | nn.Parameter) or id(one) in self._known for one in around):
            raise Unwritable(
                f"its function {function.__name__} holds parameters or parts of one trial; write a method instead"
            )
        return ("made", function.__module__, self._place(function.__code__), around)

    def _place(self, kind: Hashable) -> int:
        if id(kind) not in self._places:
            self._places[id(kind)] = len(self.kinds)
            self.kinds.append(kind)
        return self._places[id(kind)]
