"""What a module changes while it runs that no copy of it, no other trial and no captured epoch would know of."""

from __future__ import annotations

import contextlib
import hashlib
import io
import pickle
import random
from collections.abc import Generator, Hashable, Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.func import functional_call

from unspool.errors import IncompatibleError
from unspool.ops import SparseFeatures
from unspool.unrolling import Unrolled

#: What torch itself keeps in every module.
_TORCH = frozenset(vars(nn.Module()))
_OURS = ("unspool", "torch")


class Unstackable(RuntimeError):
    """A module that cannot share a pass with others; the message says why, about a trial: "its forward changes 'seen'"."""


class Conduct:
    """Remembers what a module is besides parameters and buffers, to say later what it has changed of that.

    A network is trained beside others, from a graph of kernels or from a snapshot as if parameters and buffers were all that it changes.
    One that counts its calls in a number of Python is not like that. Modules of this package and of torch are known to be.

    Args:
        model: after ``eval()``, as in every later look.

    Example:
        >>> class Warm(nn.Module):
        ...     __module__, seen = "my_models", 0
        ...     def forward(self, x):
        ...         self.seen += 1
        ...         return x * min(self.seen / 10, 1)
        >>> warm = Warm()
        >>> conduct = Conduct(warm)
        >>> _ = warm(1.0)
        >>> conduct.changed()
        'seen'
    """

    def __init__(self, model: nn.Module) -> None:
        self._watched = list(_watched(model))
        self._before = self._marks()
        self._generators = _generators()

    def changed(self) -> str | None:
        """The first attribute that is not what it was; None where all are."""
        now = self._marks() if self._watched else self._before
        return next((name for name in {**self._before, **now} if self._before.get(name) != now.get(name)), None)

    def drew(self) -> bool:
        """Whether NumPy's or Python's generator has moved on since this was last asked, while somebody's own part was at work."""
        before = self._generators
        self._generators = _generators() if self._watched else before
        return self._generators != before

    def _marks(self) -> dict[str, Hashable]:
        return {
            f"{name}{key}": _mark(value)
            for name, part in self._watched
            for key, value in {**_of_class(part), **vars(part), **_filled(part)}.items()
            if key not in _TORCH
        }


def assigned(model: nn.Module) -> tuple[int, ...]:
    """Which tensors the buffers are: others than before where the forward pass assigns them, and does not write into them.

    Example:
        >>> norm = nn.BatchNorm1d(2)
        >>> before = assigned(norm)
        >>> norm.running_mean += 1
        >>> assigned(norm) == before
        True
        >>> norm.running_mean = norm.running_mean + 1
        >>> assigned(norm) == before
        False
    """
    return tuple(map(id, model.buffers()))


def said_with(
    model: nn.Module, held: dict[str, Tensor], args: tuple[Any, ...], given: dict[str, Any]
) -> tuple[Tensor, dict[str, Tensor]]:
    """What a module says with other parameters and buffers, and the buffers to which it has assigned others.

    Args:
        model: the module.
        held: parameters and buffers by name, in the place of its own.
        args, given: what it is called with.

    Example:
        >>> class Mean(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.register_buffer("mean", torch.zeros(()))
        ...     def forward(self, x):
        ...         self.mean = 0.9 * self.mean + 0.1 * x.mean()
        ...         return x - self.mean
        >>> import torch
        >>> said_with(Mean(), {"mean": torch.ones(())}, (torch.ones(1),), {})
        (tensor([0.]), {'mean': tensor(1.)})
    """
    # Trap: functional_call puts what the module has assigned into the dictionary that it is given, and nowhere else.
    now = dict(held)
    output = functional_call(model, now, args, given)
    moved = {name: value for name, value in now.items() if value is not held[name]}
    own = dict(model.named_buffers()) if moved else {}
    for name, value in moved.items():
        old = held[name]
        if name not in own or value.requires_grad or (value.shape, value.dtype) != (old.shape, old.dtype):
            raise Unstackable(f"its forward assigns {name!r}, and not a tensor of the same shape without a gradient")
    return output, moved


def check_said(model: nn.Module, output: Any, task: Any) -> None:
    """Refuse what is not a tensor with a row for each node, where a loss reads one.

    Example:
        >>> import torch, unspool as us
        >>> from unspool import datasets, train
        >>> task = train.Task.of(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> check_said(nn.Linear(3, 2), torch.zeros(59, 2), task)
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: the forward of Linear gives a tensor of shape (59, 2): give one of shape (60, outputs), a row for each node
    """
    if isinstance(output, Tensor):
        free = task.target.is_floating_point() and output.ndim == 1
        if output.ndim > 0 and output.shape[0] == task.nodes and (output.ndim == 2 or free):
            return
        gives = f"a tensor of shape {tuple(output.shape)}"
    else:
        gives = "nothing" if output is None else f"a {type(output).__name__} and no tensor"
    raise IncompatibleError(
        f"the forward of {type(model).__name__} gives {gives}: give one of shape ({task.nodes}, outputs), a row for each node"
    )


class ChangedData(IncompatibleError):
    """A module has written into the features, which all that is trained on them shares."""


@contextlib.contextmanager
def reading(model: nn.Module, x: Any) -> Generator[None]:
    """Refuse a forward pass that cannot read sparse features, and one that writes into the features.

    Example:
        >>> import torch
        >>> x = torch.ones(2, 3)
        >>> with reading(nn.ReLU(inplace=True), x):
        ...     _ = nn.ReLU(inplace=True)(x)
        Traceback (most recent call last):
            ...
        unspool.train.conduct.ChangedData: the forward of ReLU writes into the features, which are not the data any more; let it start with x = x.clone()
    """
    before = _writes(x)
    try:
        yield
    except (TypeError, AttributeError) as problem:
        if SparseFeatures.__name__ not in str(problem):
            raise
        raise IncompatibleError(
            f"the forward of {type(model).__name__} does not take sparse features ({problem}): make its first layer a us.nn.Linear, or "
            "let it start with x = x.to_dense()"
        ) from problem
    if _writes(x) != before:
        raise ChangedData(
            f"the forward of {type(model).__name__} writes into the features, which are not the data any more; let it start with x = x.clone()"
        )


def _writes(x: Any) -> int:
    """How often a tensor was written to."""
    values = x.values if isinstance(x, SparseFeatures) else x
    return values._version if isinstance(values, Tensor) and not values.is_inference() else 0


def found_by_us(problem: BaseException) -> bool:
    """Whether a check of this package has found a problem; False for what somebody's own code raises.

    Example:
        >>> import torch, unspool as us
        >>> try:
        ...     us.graph.ring(5) @ torch.ones(4, 1)
        ... except ValueError as problem:
        ...     found_by_us(problem)
        True
    """
    frame = problem.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame is not None and str(frame.tb_frame.f_globals.get("__name__")).split(".")[0] in _OURS


def _generators() -> Hashable:
    """Where the generators are that a program shares."""
    kind, keys, place, *_ = np.random.get_state()  # noqa: NPY002
    return (hash(random.getstate()), kind, hash(np.asarray(keys).tobytes()), place)


def _watched(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """Parts that somebody else has written, by what their attributes are called after."""
    for name, part in model.named_modules():
        if not _ours(part):
            yield f"{name}." if name else "", part
        if isinstance(part, Unrolled):
            for held in (*part.objective.terms, part.algorithm):
                if not _ours(held) and hasattr(held, "__dict__"):
                    yield f"{type(held).__name__}.", held


def _of_class(part: Any) -> dict[str, Any]:
    """What is kept on the classes of a part: numbers that count, containers that fill."""
    kinds = [kind for kind in type(part).__mro__ if kind.__module__.split(".")[0] not in (*_OURS, "builtins")]
    kept: Any = (bool, int, float, str, list, dict, set, Tensor)
    return {
        f"{kind.__name__}.{key}": value
        for kind in kinds
        for key, value in vars(kind).items()
        if isinstance(value, kept) and not key.startswith("__")
    }


def _filled(part: Any) -> dict[str, Any]:
    """Which places for parameters, buffers and parts hold something, where it is a module; those that wait are filled once."""
    if not isinstance(part, nn.Module):
        return {}
    places: dict[str, Any] = vars(part)["_parameters"] | vars(part)["_buffers"] | vars(part)["_modules"]
    return {name: value is not None for name, value in places.items()}


def _ours(part: Any) -> bool:
    return type(part).__module__.split(".")[0] in _OURS


def _mark(value: Any) -> Hashable:
    """Equal where the value is: by what it is made of, tensors by how often they were written to."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    out = io.BytesIO()
    try:
        _Marker(out).dump(value)
    except Exception:  # what cannot be written out counts as what it is
        return id(value)
    return hashlib.sha256(out.getvalue()).hexdigest()


class _Marker(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        """What is not to be looked into."""
        if isinstance(obj, Tensor):
            return ("tensor", id(obj), obj._version)
        if isinstance(obj, nn.Module | type | FunctionType | BuiltinFunctionType):
            return ("other", id(obj))
        return None
