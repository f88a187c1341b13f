"""The data files that say what each experiment runs; they ship with the package."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def read_experiment(name: str) -> dict[str, Any]:
    """One of the data files under ``reproduce/experiments``.

    Example:
        >>> read_experiment("depth")["enough"]
        [4, 10]
    """
    file = resources.files("unspool.reproduce") / "experiments" / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))
