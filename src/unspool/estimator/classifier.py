"""Node classification behind scikit-learn's interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.metadata_routing import UNUSED
from torch import Tensor

from unspool.estimator.labels import as_array, has_label, read_labels
from unspool.estimator.node import NodeEstimator
from unspool.evaluate import Calibration, Uncalibrated
from unspool.train import CrossEntropy, Loss, Task
from unspool.train.evaluation import calibrate as fit_calibration

Array = np.ndarray[Any, Any]


class NodeClassifier(ClassifierMixin, NodeEstimator):
    r"""Classify the nodes of a graph from a few labels: a model of :mod:`unspool.models` as a scikit-learn estimator.

    Trains :math:`\min \sum_{i \in \text{labelled}} U(y_i, \hat y_i)`, the upper level of the bilevel problem (3), with
    cross-entropy; every node of the graph takes part in the propagation, whether it has a label or not.

    Two ways to say what ``x`` is:

    - Features of all nodes, ``fit(x, y, graph=graph)``, with -1 (or NaN, None, ``""``) in ``y`` for nodes without a label.
      Works as the last step of a ``Pipeline``: ``pipe.fit(x, y, nodeclassifier__graph=graph)``.
    - Node ids, with features and graph bound: ``NodeClassifier(..., features=x, graph=graph).fit(ids, y[ids])``. Nodes that
      are not named count as unlabelled. Since ids can be cut into folds and rows of a graph cannot, this is the way for
      ``GridSearchCV`` and ``cross_val_score``. Clones share the bound data.

    Args:
        model: a class built as ``model(in_features, out_features, **settings)`` and called as ``model(x, graph)``, or its name.
        epochs: the most there are.
        lr: learning rate of Adam.
        weight_decay: one number for weight matrices and biases, or one per group of parameters (see
            :class:`unspool.train.TrainConfig`).
        monitor: what decides which epoch's weights are kept.
        patience: training ends after as many epochs without improvement; None for never.
        valid_share: share of each class's labelled nodes that is held back to choose the epoch. With 0 nothing is held back:
            all epochs are run and the last weights kept.
        normalise_rows: let every row of features sum to one first.
        seed: of the weights, the dropout and the nodes held back; the same seed gives the same numbers, bit for bit.
        device: where to train; a GPU where there is one when omitted, as everywhere.
        features: X of all nodes, to bind it; then ``fit`` and ``predict`` take node ids.
        graph: the graph, to bind it.
        directed: True to keep edges in the direction in which they are listed. Otherwise every edge runs both ways, as
            everywhere; False says that this is meant, and when nothing is said a warning tells where it changes something. An
            ``unspool.Graph`` is taken as it was made.
        settings: of the model (``depth``, ``hidden``, ``dropout``, ...); searchable like any other argument.

    Attributes:
        classes_: the sorted classes.
        model_: the trained ``torch.nn.Module``, in evaluation mode.
        run_: the training run: all epochs, the one that was chosen, and why it ended.
        calibration_: the temperature that makes probabilities mean what they say, or why there is none.
        objective_: the denoising problem that the model solves.
        graph_, features_: what it was trained on.
        n_features_in_, n_iter_: features of a node, epochs that were run.

    Example:
        >>> from unspool import datasets, models
        >>> data = datasets.contextual_sbm(nodes=120, classes=3, seed=0)
        >>> labels = data.labels.clone()
        >>> labels[data.split.test] = -1
        >>> clf = NodeClassifier(models.APPNP, depth=5, teleport=0.2, epochs=60, seed=0)
        >>> clf.fit(data.features, labels, graph=data.graph)
        NodeClassifier(depth=5, epochs=60, model=..., teleport=0.2)
        >>> print(clf.objective_)
        0.2 ‖H − X‖²  +  0.8 ‖B H‖²
        >>> bool((clf.predict() == data.labels.numpy())[data.split.test].mean() > 0.6)
        True
    """

    # Nothing to route: how probabilities are wanted is said where they are asked for.
    __metadata_request__predict_proba = {"x": UNUSED, "calibrate": UNUSED}  # noqa: RUF012  as of the other methods

    classes_: Array
    calibration_: Calibration

    def predict_proba(self, x: Any = None, graph: Any = None, *, calibrate: bool = True) -> Array:
        """The probability of each class, shape (rows, classes); columns in the order of ``classes_``.

        Outputs are divided by the temperature that ``fit`` found on the nodes it held back (``calibration_``), as ``unspool predict`` does;
        without such nodes, or with fewer than ten, they are taken as they are. The most probable class is the same either way.

        Args:
            x: as in ``fit``; all nodes of the training graph when omitted.
            graph: the graph of these nodes; the one it was trained on when omitted.
            calibrate: False for the probabilities as the network gives them.
        """
        output = self._output(x, graph)
        warm = self.calibration_.temperature if calibrate else None
        return (output if warm is None else output / warm).softmax(-1).numpy()

    def predict(self, x: Any = None, graph: Any = None) -> Array:
        """The most probable class of each row of ``x`` (see :meth:`predict_proba`)."""
        place = self._output(x, graph).argmax(-1).numpy()
        return self.classes_[place]

    def score(self, x: Any, y: Any, graph: Any = None) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The share of labelled rows that are classified rightly; rows without a label do not count."""
        found, truth = self.predict(x, graph), as_array(y).reshape(-1)
        if truth.shape != found.shape:
            raise ValueError(f"y has {truth.size} entries for {found.size} rows of x: give one per row")
        known = has_label(truth)
        if not known.any():
            raise ValueError("no entry of y is a label, so there is nothing to count")
        return float(np.mean(found[known] == truth[known]))

    def _trained(self, task: Task, chosen: bool) -> None:
        if chosen:
            self.calibration_ = fit_calibration(self._output(None, None).numpy(), task)
        else:
            self.calibration_ = Calibration(None, 0, Uncalibrated.FEW_NODES)

    def _learn(self, y: Any, count: int) -> tuple[Array, Array, Array]:
        codes, self.classes_ = read_labels(y, count)
        return codes, codes >= 0, codes

    def _scale(self, values: Array, train: Array) -> tuple[Tensor, int, Loss]:
        return torch.as_tensor(values), len(self.classes_), CrossEntropy()
