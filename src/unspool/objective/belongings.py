"""What a term or an algorithm keeps: its coefficients, wherever they are, and what would train without being owned."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from unspool.graph import Graph
from unspool.objective.coefficient import Coefficient

#: What is looked at but not into.
_CLOSED = (Tensor, nn.Module, Graph, type, types.FunctionType, types.MethodType, types.ModuleType, str, bytes, property)


def coefficients_of(owner: Any) -> tuple[Coefficient, ...]:
    """Every coefficient that an object keeps: in fields and other attributes, in lists, tuples, dicts and parts of its own.

    Example:
        >>> import unspool as us
        >>> from types import SimpleNamespace
        >>> coefficients_of(SimpleNamespace(kept=[us.Fixed(0.5), {"more": us.Fixed(2.0)}]))
        (Fixed(0.5), Fixed(2.0))
    """
    found = [thing for _, thing in _things("", owner, set(), into_coefficients=False) if isinstance(thing, Coefficient)]
    return tuple(dict.fromkeys(found))


def check_owned(name: str, owner: Any) -> None:
    """Refuse what would train but be in no state dict and no stack of trials: tensors, modules, coefficients of a class."""
    for attribute, part in _on_its_class(owner).items():
        for place, thing in _things(f"{name}.{attribute}", part, set(), into_coefficients=False):
            if isinstance(thing, Coefficient) and thing.leaves:
                # Trap: a copy of the network has copies of its coefficients, but no copy of the class.
                raise TypeError(
                    f"{place} is a coefficient on the class, which all its instances would share; make it a field"
                )
    computed = (getattr(leaf, "module", None) for c in coefficients_of(owner) for leaf in c.leaves)
    owned = {id(module) for module in computed if module is not None}
    for place, thing in _things(name, owner, set(), into_coefficients=True):
        if isinstance(thing, Tensor) and thing.requires_grad:
            raise TypeError(
                f"{place} is a tensor that requires gradients, which the network would not own; use Learnable(tensor)"
            )
        if isinstance(thing, nn.Module) and id(thing) not in owned and any(p.requires_grad for p in thing.parameters()):
            raise TypeError(
                f"{place} is a module with parameters, which the network would not own; apply it before the network, or wrap it: "
                "Computed(module) is a coefficient"
            )


def depends_on_strangers(run: Callable[[], Iterable[Any]]) -> bool:
    """Whether what a function returns depends on tensors that ask for gradients and were there before it ran.

    Tensors that a function makes for its own differentiation are others in every run.

    Example:
        >>> import torch
        >>> outside = torch.ones(2, requires_grad=True)
        >>> depends_on_strangers(lambda: [2 * outside]), depends_on_strangers(lambda: [torch.ones(2, requires_grad=True)])
        (True, False)
    """
    first = _origins(run())
    return bool(first) and any(one is other for other in _origins(run()) for one in first)


def _origins(results: Iterable[Any]) -> list[Tensor]:
    """The tensors at which the history of some results begins."""
    asking = [t for t in results if isinstance(t, Tensor) and t.requires_grad]
    found = [t for t in asking if t.grad_fn is None]
    nodes: list[Any] = [t.grad_fn for t in asking if t.grad_fn is not None]
    seen: set[Any] = set(nodes)
    while nodes:
        node = nodes.pop()
        if hasattr(node, "variable"):
            found.append(node.variable)
        for before, _ in node.next_functions:
            if before is not None and before not in seen:
                seen.add(before)
                nodes.append(before)
    return found


def _things(place: str, thing: Any, seen: set[int], into_coefficients: bool) -> Iterator[tuple[str, Any]]:
    """Everything within reach of an object, once, with the way there."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    yield place, thing
    if isinstance(thing, _CLOSED) or (isinstance(thing, Coefficient) and not into_coefficients):
        return
    for way, part in _parts(thing):
        yield from _things(place + way, part, seen, into_coefficients)


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in thing.items())  # pyright: ignore[reportUnknownVariableType]
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from ((f"[{i}]", part) for i, part in enumerate(thing))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    else:
        yield from ((f".{name}", part) for name, part in _attributes(thing).items())


def _attributes(thing: Any) -> dict[str, Any]:
    """What an object keeps of its own under a name, in slots too."""
    found: dict[str, Any] = dict(getattr(thing, "__dict__", {}))
    for cls in type(thing).__mro__:
        for name, part in vars(cls).items():
            if isinstance(part, types.MemberDescriptorType) and hasattr(thing, name):
                found.setdefault(name, getattr(thing, name))
    return found


def _on_its_class(thing: Any) -> dict[str, Any]:
    """What stands on the class of an object, unless the object has its own of that name."""
    own, found = _attributes(thing), dict[str, Any]()
    for cls in type(thing).__mro__:
        for name, part in vars(cls).items():
            if name not in own and isinstance(part, Coefficient | list | tuple | dict):
                found.setdefault(name, part)  # pyright: ignore[reportUnknownArgumentType]
    return found
