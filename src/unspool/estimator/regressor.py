"""Regression on nodes behind scikit-learn's interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from torch import Tensor

from unspool.errors import UNSHOWN, InputError
from unspool.estimator.labels import has_target, read_targets
from unspool.estimator.node import NodeEstimator
from unspool.estimator.pyg import is_pyg, test_part
from unspool.estimator.question import read_kind
from unspool.train import Loss, TaskKind
from unspool.train.counts import check_counts
from unspool.train.scaling import Scaling

Array = np.ndarray[Any, Any]


class NodeRegressor(RegressorMixin, NodeEstimator):
    """Predict numbers at the nodes of a graph from a few of them: a model of :mod:`unspool.models` as an estimator.

    Trains with the mean squared error. Targets are standardised inside, column by column, with mean and deviation of the
    nodes that are learnt from, and predictions are given back on the scale of ``y``. ``loss="counts"`` is for whole numbers of at
    least 0: the Poisson deviance with a logarithmic link, so that expected counts are never negative.

    Arguments are those of :class:`~unspool.estimator.NodeClassifier` that do not speak of classes, and ``x`` is said in the same two ways: features of
    all nodes, or node ids with features and graph bound. In ``y``, of shape (rows,) or (rows, targets), NaN marks nodes
    without a target.

    Attributes:
        model_, run_, objective_, graph_, features_, n_features_in_, n_iter_, feature_names_in_: as of the classifier.
        mean_, deviation_: of the targets that were learnt from; of counts, 0 and their mean.
        kind_: what was learnt.

    Example:
        >>> import numpy as np, unspool as us
        >>> graph, place = us.graph.sensor(150)
        >>> height = np.sin(3 * place[:, 0].numpy()) + place[:, 1].numpy()
        >>> known = np.where(np.arange(150) % 3 == 0, height, np.nan)
        >>> reg = NodeRegressor(depth=2, dropout=0.0, epochs=60, seed=0).fit(place, known, graph=graph)
        >>> reg.score(place, height) > 0.9
        True
    """

    mean_: Array
    deviation_: Array
    kind_: TaskKind

    def predict(self, x: Any = None, graph: Any = None) -> Array:
        """The expected number (or row of numbers) at each row of ``x``, on the scale of the targets.

        Args:
            x: as in ``fit``; all nodes of the training graph when omitted.
            graph: the graph of these nodes; the one it was trained on when omitted. With :class:`unspool.graph.NewEdges`, ``x`` holds features of
                new nodes that these edges join to those it was trained on, and answers are for them.
        """
        found = self._output(x, graph)
        output = self.kind_.answer(found).numpy()
        wide = output * self.deviation_.reshape(1, -1) + self.mean_.reshape(1, -1)
        return wide if self.mean_.ndim else wide[:, 0]

    def score(self, x: Any, y: Any = None, graph: Any = None) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        """R² (of counts D²), the mean over targets, of the rows that have a target; 1 is perfect, 0 as good as the mean."""
        from sklearn.metrics import d2_tweedie_score, r2_score

        y = test_part(x) if y is None and is_pyg(x) else y
        found = self.predict(x, graph)
        truth = read_targets(y, found.shape[0])
        known = has_target(truth)
        if self.kind_ is TaskKind.NUMBERS:
            return float(r2_score(truth[known], found[known]))
        pairs = zip(np.atleast_2d(truth[known].T), np.atleast_2d(found[known].T), strict=True)
        return float(np.mean([d2_tweedie_score(t, np.maximum(f, np.finfo(float).tiny), power=1) for t, f in pairs]))

    def _learn(self, y: Any, count: int) -> tuple[Array, Array, Array]:
        said = read_kind(self.loss, (TaskKind.NUMBERS, TaskKind.COUNTS))
        self.kind_ = TaskKind.NUMBERS if said is None else said
        for name in ("class_weight", "class_order"):
            if getattr(self, name) is not None:
                raise InputError(name, UNSHOWN, "none, as numbers have no classes")
        target = read_targets(y, count)
        if self.kind_ is TaskKind.COUNTS:
            check_counts(torch.as_tensor(target.reshape(count, -1)), "y")
        return target, has_target(target), np.zeros(count, dtype=np.int64)

    def _scale(self, values: Array, train: Array) -> tuple[Tensor, int, Loss]:
        target = torch.as_tensor(values)
        measure = Scaling.of if self.kind_ is TaskKind.NUMBERS else Scaling.by_mean
        scaling = measure(target, torch.as_tensor(train))
        self.mean_, self.deviation_ = scaling.centre.numpy(), scaling.scale.numpy()
        scaled = scaling.apply(target).reshape(values.shape[0], -1)
        return scaled, int(scaled.shape[1]), self.kind_.loss()

    def _class_weight(self) -> None:
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
