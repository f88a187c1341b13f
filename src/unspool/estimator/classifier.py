"""Node classification behind scikit-learn's interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.metadata_routing import UNUSED
from torch import Tensor

from unspool.datasets.indicator import is_indicator
from unspool.errors import InputError
from unspool.estimator.labels import as_array, has_label, read_labels
from unspool.estimator.monitor import ClassesSoFar
from unspool.estimator.node import NodeEstimator
from unspool.estimator.pyg import is_pyg, test_part
from unspool.estimator.question import put_in_order, read_kind, read_several
from unspool.evaluate import Calibration, Uncalibrated
from unspool.train import Loss, MultiLabel, Task, TaskKind
from unspool.train.class_weight import ClassWeight
from unspool.train.evaluation import calibrate as fit_calibration

Array = np.ndarray[Any, Any]


class NodeClassifier(ClassifierMixin, NodeEstimator):
    r"""Classify the nodes of a graph from a few labels: a model of :mod:`unspool.models` as a scikit-learn estimator.

    Trains :math:`\min \sum_{i \in \text{labelled}} w_i\, U(y_i, \hat y_i)`, the upper level of the bilevel problem (3), with
    cross-entropy unless ``loss`` says otherwise; every node of the graph takes part in the propagation, whether it has a label or not.

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
        monitor: what decides which epoch's weights are kept, and when patience ends: a :class:`~unspool.train.Monitor`, or any scorer of
            scikit-learn, by its name (``"roc_auc"``) or as a function, on the nodes held back.
        patience: training ends after as many epochs without improvement; None for never.
        lr_schedule, lr_epochs, clip: how the learning rate changes, and the largest norm of the gradient (see
            :class:`~unspool.train.TrainConfig`).
        upper: the loss of training as a sum of terms (:mod:`unspool.train.upper`), or its text, such as
            ``"ce + 2*consistency(views=4, temperature=0.5) under drop_nodes(0.5)"``.
        batch_size: the most training nodes that a step sees (see :class:`~unspool.train.RowBatches`); all of them when omitted.
        callbacks: functions that are called after each epoch with a :class:`~unspool.train.Moment`, and may end training.
        warm_start: let ``fit`` go on from the weights that an earlier ``fit`` has learnt, with the same classes and features.
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
        loss: what is learnt, a :class:`~unspool.train.TaskKind` or its name: ``"classes"``, ``"binary"`` (two classes, one output), ``"ordinal"``
            (classes in order) or ``"multilabel"`` (several labels per node, ``y`` of shape (nodes, labels)). When omitted,
            ``"multilabel"`` where ``y`` has several columns, else ``"classes"``.
        class_weight: how much classes count: ``"balanced"`` as in scikit-learn, from the nodes that are learnt from, or a mapping with one
            weight for each class. With several labels, ``"balanced"`` weighs yes against no, label by label.
        class_order: for ``"ordinal"``, the classes from the lowest to the highest; needed where they are names.
        settings: of the model (``depth``, ``hidden``, ``dropout``, ...); searchable like any other argument.

    Attributes:
        classes_: the sorted classes; from the lowest to the highest under ``"ordinal"``, the numbers of the labels under ``"multilabel"``.
        kind_: what was learnt.
        model_: the trained ``torch.nn.Module``, in evaluation mode.
        run_: the training run: all epochs, the one that was chosen, and why it ended.
        calibration_: the temperature that makes probabilities mean what they say, or why there is none.
        objective_: the denoising problem that the model solves.
        graph_, features_: what it was trained on.
        n_features_in_, n_iter_: features of a node, epochs that were run.
        feature_names_in_: their names, where features came as a table whose columns have names.

    Example:
        >>> from unspool import datasets, models
        >>> data = datasets.contextual_sbm(nodes=120, classes=3, seed=0)
        >>> labels = data.labels.clone()
        >>> labels[data.split.test] = -1
        >>> clf = NodeClassifier("APPNP", depth=5, teleport=0.2, epochs=60, seed=0)
        >>> clf.fit(data.features, labels, graph=data.graph)
        NodeClassifier(depth=5, epochs=60, model='APPNP', teleport=0.2)
        >>> print(clf.objective_)
        0.2 ‖H − X‖²  +  0.8 ‖B H‖²
        >>> bool((clf.predict() == data.labels.numpy())[data.split.test].mean() > 0.6)
        True
    """

    # Nothing to route: how probabilities are wanted is said where they are asked for.
    __metadata_request__predict_proba = {"x": UNUSED}  # noqa: RUF012  as of the other methods

    classes_: Array
    kind_: TaskKind
    calibration_: Calibration

    def predict_proba(self, x: Any = None, graph: Any = None, *, calibrate: bool = True) -> Array:
        """The probability of each class, shape (rows, classes), or of each label; columns in the order of ``classes_``.

        Outputs are divided by the temperature that ``fit`` found on the nodes it held back (``calibration_``), as ``unspool predict`` does;
        without such nodes, or with fewer than ten, they are taken as they are. The most probable class is the same either way.

        Args:
            x: as in ``fit``; all nodes of the training graph when omitted.
            graph: the graph of these nodes; the one it was trained on when omitted. With :class:`unspool.graph.NewEdges`, ``x`` holds features of
                new nodes that these edges join to those it was trained on, and answers are for them.
            calibrate: False for the probabilities as the network gives them.
        """
        output = self._output(x, graph)
        warm = self.calibration_.temperature if calibrate else None
        found = self.kind_.answer(output if warm is None else output / warm).numpy()
        return np.concatenate([1 - found, found], axis=1) if self.kind_ is TaskKind.BINARY else found

    def predict(self, x: Any = None, graph: Any = None) -> Array:
        """The most probable class of each row of ``x`` (see :meth:`predict_proba`); of several labels, 1 where it is probable."""
        found = self.predict_proba(x, graph, calibrate=False)  # a temperature changes no class
        return (found > 0.5).astype(np.int64) if self.kind_ is TaskKind.MULTILABEL else self.classes_[found.argmax(1)]

    def score(self, x: Any, y: Any = None, graph: Any = None) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The share of labelled rows that are classified rightly; of several labels, the micro-averaged F1. What is not known does not count.

        Of a PyG ``Data`` object without ``y``, its ``test_mask`` says which nodes count.
        """
        y = test_part(x) if y is None and is_pyg(x) else y
        found = self.predict(x, graph)
        if self.kind_ is TaskKind.MULTILABEL:
            truth = torch.as_tensor(read_several(y, found.shape[0], said=True))
            return float(MultiLabel().score(torch.as_tensor(found).double() - 0.5, truth))
        truth = as_array(y).reshape(-1)
        if truth.shape != found.shape:
            raise ValueError(f"y has {truth.size} entries for {found.size} rows of x: give one per row")
        known = has_label(truth)
        if not known.any():
            raise ValueError("no entry of y is a label, so there is nothing to count")
        return float(np.mean(found[known] == truth[known]))

    def _trained(self, task: Task, chosen: bool) -> None:
        if self.kind_ not in (TaskKind.CLASSES, TaskKind.BINARY):
            self.calibration_ = Calibration(None, 0, Uncalibrated.OTHER_KIND)
        elif chosen:
            self.calibration_ = fit_calibration(self._output(None, None).numpy(), task)
        else:
            self.calibration_ = Calibration(None, 0, Uncalibrated.FEW_NODES)

    def _learn(self, y: Any, count: int) -> tuple[Array, Array, Array]:
        said = read_kind(self.loss, _KINDS)
        several = said is TaskKind.MULTILABEL or (said is None and is_indicator(y))
        self.kind_ = TaskKind.MULTILABEL if several else TaskKind.CLASSES if said is None else said
        if several:
            table = read_several(y, count, said is not None)
            self.classes_ = np.arange(table.shape[1])
            return table, np.asarray(~np.isnan(table).all(axis=1)), np.zeros(count, dtype=np.int64)
        codes, self.classes_ = read_labels(y, count)
        if self.kind_ is TaskKind.BINARY and self.classes_.size != 2:
            raise InputError("loss", self.loss, f"two classes to tell apart, and y has {self.classes_.size}")
        if self.kind_ is TaskKind.ORDINAL:
            codes, self.classes_ = put_in_order(codes, self.classes_, self.class_order)
        elif self.class_order is not None:
            raise InputError("class_order", self.class_order, "none, as it belongs to loss='ordinal'")
        return codes, codes >= 0, codes

    def _stand_in(self) -> Any:
        return ClassesSoFar(self.classes_)

    def _scale(self, values: Array, train: Array) -> tuple[Tensor, int, Loss]:
        many = {TaskKind.BINARY: 1, TaskKind.ORDINAL: len(self.classes_) - 1}
        target = torch.as_tensor(values)
        if self.kind_ is TaskKind.MULTILABEL:
            target = target.to(torch.get_default_dtype())
        return target, many.get(self.kind_, len(self.classes_)), self.kind_.loss()

    def _class_weight(self) -> ClassWeight | None:
        return self.kind_.class_weight(self.class_weight, self.classes_.tolist())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


_KINDS = (TaskKind.CLASSES, TaskKind.BINARY, TaskKind.ORDINAL, TaskKind.MULTILABEL)
