"""Whose code something is: ours, a package's, or the user's own."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

#: What this package stands on. Their versions are in no key, as they are in none of our own models'.
_GROUND = ("torch", "numpy", "scipy")
#: Where packages are installed. One that is edited in place lies elsewhere, and counts as the user's own.
_INSTALLED = ("site-packages", "dist-packages")


def foreign(module: Any) -> str | None:
    """What stands for all code of a module that is not the user's: ``unspool``, ``torch``, ``shap 0.49``; None for the user's own.

    Our own code is known by one number (:data:`~unspool.identity.NUMERICS`), other packages by name and version.

    Example:
        >>> foreign("unspool.models.gcn"), foreign("torch.nn"), foreign("__main__")
        ('unspool', 'torch', None)
    """
    if module is not None and not isinstance(module, str):
        return "compiled"  # of types that are written in C the name is a descriptor
    top = "__main__" if module is None else module.partition(".")[0]
    if top in ("__main__", "__mp_main__"):
        return None
    if top == "unspool" or top in _GROUND or top in sys.stdlib_module_names:
        return top
    return _installed(top)


def is_made_elsewhere(kind: type) -> bool:
    """Whether a class only seems to be of Python's library: what ``make_dataclass`` and ``types.new_class`` make says so of itself.

    Example:
        >>> import dataclasses
        >>> is_made_elsewhere(type("Mine", (), {"__module__": "types"})), is_made_elsewhere(dataclasses.Field)
        (True, False)
    """
    heap = bool(kind.__flags__ & 1 << 9)  # those of compiled code are not always to be found under their names
    if (
        not heap
        or str(kind.__module__).partition(".")[0] not in sys.stdlib_module_names
        or "<locals>" in kind.__qualname__
    ):
        return False
    held: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        held = getattr(held, name, None)
    return held is not kind


def is_own(module: str) -> bool:
    """Whether a module that need not be loaded yet is the user's own.

    Example:
        >>> is_own("torch.nn"), is_own("nowhere_to_be_found")
        (False, False)
    """
    try:
        there = (
            module.partition(".")[0] in sys.modules or importlib.util.find_spec(module.partition(".")[0]) is not None
        )
    except (ImportError, ValueError):
        there = False
    return there and foreign(module) is None


def named(module: str | None) -> str:
    """A module as people know it: of a script its own name, and not ``__main__``, which all scripts have.

    Example:
        >>> named("unspool.study")
        'unspool.study'
    """
    held = None if module is None else sys.modules.get(module)
    if module is None or held is None or module not in ("__main__", "__mp_main__"):
        return str(module)
    spec, file = getattr(held, "__spec__", None), getattr(held, "__file__", None)
    return spec.name if spec is not None else "__main__" if file is None else Path(file).stem


@functools.lru_cache(maxsize=1024)
def _installed(top: str) -> str | None:
    """Name and version of an installed package; None for what lies elsewhere, or has no version."""
    place = _place(top)
    if place is None or not any(part in _INSTALLED for part in place.parts):
        return None
    held = sys.modules.get(top)
    packages = importlib.metadata.packages_distributions().get(top, [])
    versions = [importlib.metadata.version(name) for name in sorted(set(packages))]
    version = " ".join(versions) if versions else getattr(held, "__version__", None)
    return None if version is None else f"{top} {version}"


def _place(top: str) -> Path | None:
    held = sys.modules.get(top)
    if isinstance(held, ModuleType):
        # Trap: a module may have a __getattr__ that answers to every name.
        found = [vars(held).get("__file__"), *vars(held).get("__path__", ())]
    else:
        try:
            spec = importlib.util.find_spec(top)
        except (ImportError, ValueError):
            spec = None
        found = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
    return next((Path(place) for place in found if isinstance(place, str)), None)
