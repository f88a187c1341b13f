"""Things by the names that people type: ``package.module:Class``."""

from __future__ import annotations

import importlib
from typing import Any

from unspool.errors import InputError


def import_named(name: str, argument: str, form: str) -> Any:
    """What ``package.module:Name`` leads to; the module is imported, so only a person may have given the name, never a file.

    Args:
        name: the name.
        argument: what it was given as, for errors.
        form: what it should look like, for errors, as in ``package.module:Class``.

    Example:
        >>> import_named("fractions:Fraction", "model", "package.module:Class").__name__
        'Fraction'
    """
    module, _, path = name.partition(":")
    if not all(part.isidentifier() for part in module.split(".")):
        raise InputError(argument, name, f"{form}, with the name of a module before the colon")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as problem:
        if problem.name is not None and not f"{module}.".startswith(f"{problem.name}."):
            raise  # something that the module itself imports
        hint = f"there is no module {problem.name} here or among the installed packages"
        raise InputError(argument, name, f"{form} of something that can be imported", hint) from None
    try:
        for part in path.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise InputError(argument, name, f"{form}, and {module} has no {path}") from None
    return found
