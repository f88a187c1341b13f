"""Folds over the labelled nodes of a graph, for scikit-learn's searches."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.datasets import Split
from unspool.estimator.labels import as_array, has_label, has_target, is_measured

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class NodeSplit:
    """Folds of labelled nodes, stratified by class; or one fold, the train and valid nodes of a data set's split.

    Give it as ``cv=`` to ``GridSearchCV`` or ``cross_val_score``, with node ids as X. Nodes without a label are in no fold;
    they take part in the propagation all the same, because features and graph are bound to the estimator.

    Args:
        folds: how many (numbers instead of classes are shuffled only), or an :class:`unspool.datasets.Split`, whose test nodes
            are never touched.
        seed: of the shuffling.

    Example:
        >>> import numpy as np
        >>> from sklearn.model_selection import cross_val_score
        >>> from unspool import datasets, models
        >>> from unspool.estimator import NodeClassifier
        >>> data = datasets.contextual_sbm(nodes=120, classes=3, seed=0)
        >>> clf = NodeClassifier(models.SGC, epochs=20, features=data.features, graph=data.graph)
        >>> nodes, y = np.arange(data.nodes), data.labels.numpy()
        >>> cross_val_score(clf, nodes, y, cv=NodeSplit(3)).shape
        (3,)
        >>> cross_val_score(clf, nodes, y, cv=NodeSplit(data.split)).shape
        (1,)
    """

    folds: int | Split = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.folds, Split) and not (isinstance(self.folds, numbers.Integral) and self.folds >= 2):
            raise ValueError(
                f"folds={self.folds!r}: expected a whole number of at least 2, or an unspool.datasets.Split"
            )

    def get_n_splits(self, x: Any = None, y: Any = None, groups: Any = None) -> int:
        """How many folds there are."""
        return 1 if isinstance(self.folds, Split) else int(self.folds)

    def split(self, x: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Positions in ``x`` to learn from and to score, fold by fold.

        Args:
            x: node ids; or anything with one row per node, whose positions then are the ids.
            y: labels, with -1, NaN, None or ``""`` where there is none (numbers: NaN).
            groups: whoever belongs together (accounts of one person, rows of one household) has one value, and is never in two folds.
        """
        from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

        if isinstance(self.folds, Split):
            yield _of_split(self.folds, x)
            return
        if y is None:
            raise ValueError("folds over labelled nodes need y, which says who is labelled")
        labels = as_array(y)
        measured = is_measured(labels)
        if not measured:
            labels = labels.reshape(-1)
        known = np.flatnonzero(has_target(labels) if measured else has_label(labels))
        if known.size < self.folds:
            raise ValueError(f"{known.size} labelled nodes cannot fill {self.folds} folds; ask for fewer")
        together = None if groups is None else _groups(groups, labels.shape[0])[known]
        kinds = (KFold, StratifiedKFold) if together is None else (GroupKFold, StratifiedGroupKFold)
        drawer = kinds[0 if measured else 1](self.folds, shuffle=True, random_state=self.seed)
        for train, test in drawer.split(known, labels[known], together):
            yield known[train], known[test]


def _groups(groups: Any, rows: int) -> Array:
    found = as_array(groups).reshape(-1)
    if found.shape[0] != rows:
        raise ValueError(f"groups has {found.shape[0]} entries for {rows} rows of x: give one per row")
    return found


def _of_split(split: Split, x: Any) -> tuple[Array, Array]:
    ids = as_array(x) if getattr(x, "ndim", 1) == 1 else np.zeros(0)
    if ids.dtype.kind not in "iu":
        rows = int(x.shape[0])
        if rows != split.nodes:
            raise ValueError(f"the split is one of {split.nodes} nodes, but x has {rows} rows; pass node ids")
        ids = np.arange(rows)
    parts = [np.flatnonzero(np.isin(ids, part.cpu().numpy())) for part in (split.train, split.valid)]
    for name, part in zip(("train", "valid"), parts, strict=True):
        if part.size == 0:
            raise ValueError(f"x names none of the split's {name} nodes")
    return parts[0], parts[1]
