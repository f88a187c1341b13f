"""Names of features, as scikit-learn keeps them: learnt from a table's columns, and compared with later tables."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def names_of(x: Any) -> list[str] | None:
    """The columns of a table (pandas, polars, ...) where all are named by text; None for everything else.

    Example:
        >>> from types import SimpleNamespace
        >>> names_of(SimpleNamespace(columns=["age", "calls"])), names_of(np.ones((2, 2)))
        (['age', 'calls'], None)
    """
    columns = getattr(x, "columns", None)
    if columns is None or callable(columns):
        return None
    names = list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def remember_names(estimator: Any, x: Any) -> None:
    """Set ``feature_names_in_``, or take it away where features have no names."""
    names = names_of(x)
    vars(estimator).pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)


def compare_names(estimator: Any, x: Any) -> None:
    """Refuse a table whose columns are not those of the training, or not in their order; warn where only one of the two has names."""
    known, names, who = getattr(estimator, "feature_names_in_", None), names_of(x), type(estimator).__name__
    if known is None and names is None:
        return
    if known is None:
        warnings.warn(f"X has feature names, but {who} was fitted without feature names", stacklevel=5)
    elif names is None:
        warnings.warn(f"X does not have valid feature names, but {who} was fitted with feature names", stacklevel=5)
    elif list(known) != names:
        raise ValueError(_difference(list(known), names))


def _difference(known: list[str], names: list[str]) -> str:
    """As scikit-learn says it."""
    said = "The feature names should match those that were passed during fit.\n"
    new, gone = sorted(set(names) - set(known)), sorted(set(known) - set(names))
    if new:
        said += "Feature names unseen at fit time:\n" + "".join(f"- {name}\n" for name in new[:5])
    if gone:
        said += "Feature names seen at fit time, yet now missing:\n" + "".join(f"- {name}\n" for name in gone[:5])
    return said if new or gone else said + "Feature names must be in the same order as they were in fit.\n"
