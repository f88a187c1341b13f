"""Models by name: those of this package, those that installed packages register, and any class as ``package.module:Class``.

A name that a *person* gives is imported. A name that a *file* brings along is not: what it names must be of this package, registered by an
installed one (entry points of the group ``unspool.models``), or given by whoever reads the file.
"""

from __future__ import annotations

import difflib
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from torch import nn

from unspool.errors import IncompatibleError, InputError, mention
from unspool.importing import by_name, entry_points, import_named, load_entry, only_one, warn_taken

#: The group of entry points in which packages register their models.
GROUP = "unspool.models"
_FORM = "package.module:Class"


def shipped() -> dict[str, type[nn.Module]]:
    """The models of this package by name.

    Example:
        >>> list(shipped())[:3]
        ['SGC', 'PPNP', 'APPNP']
    """
    from unspool import models

    return {kind.__name__: kind for kind in models.MODELS}


def registered() -> dict[str, EntryPoint]:
    """What installed packages register, by name; nothing is imported.

    The names of this package stay its own, and a name that two packages register is nobody's.
    """
    taken = {name.lower() for name in shipped()}
    return {
        found[0].name: found[0]
        for name, found in by_name(entry_points(group=GROUP)).items()
        if name not in taken and len({entry.value for entry in found}) == 1
    }


def unnamed() -> list[EntryPoint]:
    """What installed packages register under names that are taken: it is found as ``package.module:Class`` alone."""
    named = [entry.value for entry in registered().values()]
    return [entry for entry in entry_points(group=GROUP) if entry.value not in named]


def find_model(name: str) -> type[nn.Module]:
    """The class that a person names: ``GPRGNN`` in any case, a registered name, or ``package.module:Class``, which is imported.

    Example:
        >>> find_model("gprgnn").__name__, find_model("torch.nn:Bilinear").__name__
        ('GPRGNN', 'Bilinear')
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{name!r} is not the name of a model; give one such as 'GPRGNN', or 'package.module:Class'")
    if ":" in name:
        return _checked(import_named(name, "model", _FORM), name)
    known: dict[str, Any] = {one.lower(): kind for one, kind in shipped().items()}
    others = by_name(entry_points(group=GROUP)).get(name.lower(), [])
    if name.lower() in known:
        warn_taken(known[name.lower()].__name__, "model", others)
        return known[name.lower()]
    if others:
        entry = only_one(others, name, "model")
        return _checked(load_entry(entry, "model", _FORM), entry.value)
    every = {**{one.lower(): one for one in shipped()}, **{one.lower(): one for one in registered()}}
    near = difflib.get_close_matches(name.lower(), every, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(every[one] for one in near)}? " if near else ""
    raise InputError(
        "model", name, f"the name of a model ({', '.join(every.values())}), or package.module:Class for one of your own",
        hint.strip() or None,
    )  # fmt: skip


def name_of(kind: type) -> str:
    """The name under which files know a class: its own for models of this package, else ``package.module:Class``.

    Example:
        >>> import torch, unspool as us
        >>> name_of(us.models.GCN), name_of(torch.nn.Bilinear)
        ('GCN', 'torch.nn.modules.linear:Bilinear')
    """
    if shipped().get(kind.__name__) is kind:
        return kind.__name__
    return f"{_module_name(kind)}:{kind.__qualname__}"


def find_stored(name: Any, given: type[nn.Module] | None = None) -> type[nn.Module]:
    """The class that a file names, if it may be used: of this package, registered, or the one that was given.

    Args:
        name: what the file says.
        given: the class that whoever reads the file has named.

    Example:
        >>> find_stored("GCN").__name__
        'GCN'
        >>> find_stored("os:system")
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: the file holds a model os:system, which is not imported just because a file names it; ...
    """
    if given is not None:
        if not isinstance(name, str) or name not in (name_of(given), given.__name__):
            raise IncompatibleError(f"the file holds a model {name}, and not {name_of(given)}; name that one")
        return given
    if isinstance(name, str) and name in shipped():
        return shipped()[name]
    for entry in entry_points(group=GROUP):
        if entry.value == name or _may_be(entry, name):
            found = _checked(load_entry(entry, "model", _FORM), entry.value)
            if entry.value == name or name_of(found) == name:
                return found
    # What has no colon is of a newer version of this package, if anything.
    hint = "if you trust it, " if ":" in str(name) else "update unspool, or "
    raise IncompatibleError(
        f"the file holds a model {name}, which is not imported just because a file names it; {hint}give the class with {mention('model')}"
    )


def _may_be(entry: EntryPoint, name: Any) -> bool:
    """Whether a package registers a class under another module than its own, as packages do that export it at the top."""
    return isinstance(name, str) and _package_and_class(entry.value) == _package_and_class(name)


def _package_and_class(name: str) -> tuple[str, str]:
    module, _, path = name.partition(":")
    return module.partition(".")[0], path


def _checked(found: Any, name: str) -> type[nn.Module]:
    if not (isinstance(found, type) and issubclass(found, nn.Module)):
        raise InputError("model", name, "a class of models, that is, a subclass of torch.nn.Module")
    return found


def _module_name(kind: type) -> str:
    """The module of a class as it can be imported: of a script its own name, and not ``__main__``, which all scripts have."""
    module = kind.__module__
    held = sys.modules.get(module)
    if module not in ("__main__", "__mp_main__") or held is None:
        return module
    spec, file = getattr(held, "__spec__", None), getattr(held, "__file__", None)
    return spec.name if spec is not None else module if file is None else Path(file).stem
