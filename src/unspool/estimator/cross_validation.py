"""Cross-validation on the nodes of a graph in which nothing of the scored nodes reaches training."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring

from unspool.estimator.inputs import read_graph, read_x
from unspool.estimator.labels import as_array
from unspool.estimator.node import NodeEstimator
from unspool.estimator.split import NodeSplit
from unspool.graph import Graph, without
from unspool.ops import SparseFeatures

Array = np.ndarray[Any, Any]


class Unseen(Enum):
    """What training knows of the nodes that are scored: all but their labels, or nothing.

    ``PRESENT``: their features and edges are there, as in prediction for nodes that are known today. ``ABSENT``: they are taken out of
    the graph, which is normalised anew, and come back only to be predicted, as in prediction for nodes that will come.
    """

    PRESENT = "present"
    ABSENT = "absent"


def cross_validate_nodes(
    estimator: NodeEstimator,
    x: Any,
    y: Any,
    graph: Any,
    *,
    cv: Any = None,
    scoring: Any = None,
    groups: Any = None,
    transform: Any = None,
    unseen: Unseen = Unseen.PRESENT,
) -> Array:
    """Scores of a node classifier or regressor over folds of the labelled nodes, without leaks.

    In each fold the labels of the scored nodes are hidden; targets are scaled, and ``transform`` is fitted, by the nodes that are learnt
    from alone; and the epoch is chosen by a share of those (``valid_share``).

    Args:
        estimator: a :class:`NodeClassifier` or a :class:`NodeRegressor`; it is cloned, not changed.
        x: features of all nodes.
        y: labels or targets of all nodes, with -1 or NaN where there is none.
        graph: of any kind that ``fit`` takes.
        cv: folds over nodes; ``NodeSplit(5)`` when omitted.
        scoring: the name of a scorer of scikit-learn, a scorer, or None for the estimator's own score.
        groups: one value per node; nodes of one group are never in two folds.
        transform: a transformer of scikit-learn for the features, such as ``StandardScaler()``.
        unseen: what training knows of the scored nodes.

    Returns:
        One score per fold.

    Example:
        >>> from sklearn.preprocessing import StandardScaler
        >>> from unspool import datasets
        >>> from unspool.estimator import NodeClassifier
        >>> data = datasets.contextual_sbm(nodes=120, classes=2, seed=0)
        >>> clf = NodeClassifier("SGC", epochs=20)
        >>> how = {"cv": NodeSplit(3), "scoring": "roc_auc", "transform": StandardScaler()}
        >>> cross_validate_nodes(clf, data.features, data.labels, data.graph, unseen=Unseen.ABSENT, **how).shape
        (3,)
    """
    every = read_x(x)
    place = read_graph(graph, int(every.shape[0]), every.dtype)
    labels = as_array(y)
    scorer = check_scoring(estimator, scoring=scoring)
    folds = NodeSplit(5) if cv is None else cv
    scores = [
        _score(clone(estimator), every, labels, place, train, test, scorer, transform, unseen)
        for train, test in folds.split(np.arange(place.nodes), labels, groups)
    ]
    return np.array(scores)


def _score(
    made: Any,
    x: Any,
    y: Array,
    graph: Graph,
    train: Array,
    test: Array,
    scorer: Any,
    transform: Any,
    unseen: Unseen,
) -> float:
    features = _transformed(x, train, transform)
    if unseen is Unseen.PRESENT:
        made.set_params(features=features, graph=graph).fit(train, y[train])
    else:
        kept = np.setdiff1d(np.arange(graph.nodes), test)
        made.set_params(features=features[kept], graph=without(graph, test)).fit(np.searchsorted(kept, train), y[train])
        made.move_to(features, graph)
    return float(scorer(made, test, y[test]))


def _transformed(x: Any, train: Array, transform: Any) -> Array:
    dense = (x.to_dense() if isinstance(x, SparseFeatures) else x).numpy()
    if transform is None:
        return dense
    made: Any = clone(transform)
    fitted = made.fit(dense[train])
    return np.asarray(fitted.transform(dense))
