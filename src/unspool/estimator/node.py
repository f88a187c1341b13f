"""What node classifiers and regressors share: where features and graph come from, training, and the output per node."""

from __future__ import annotations

import copy
import numbers
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from unspool.datasets.as_trained import Named
from unspool.datasets.features import Features, row_normalise, row_normalise_like
from unspool.datasets.sample_weight import read_sample_weight
from unspool.deploy import predict_new_nodes
from unspool.device import check_device, device_for
from unspool.estimator.feature_names import compare_names, names_of, remember_names
from unspool.estimator.holdout import given_out, hold_out
from unspool.estimator.inputs import read_graph, read_ids, read_x
from unspool.estimator.monitor import NumbersSoFar, Scored, scorer_of
from unspool.estimator.pyg import is_pyg, parts_of
from unspool.estimator.settings import OpenSettings
from unspool.estimator.warm_start import Before
from unspool.graph import Graph, NewEdges
from unspool.models import UGDGNN
from unspool.objective import Objective
from unspool.ops.stored_hops import StoredHops
from unspool.train import Ending, Loss, Monitor, Rates, Run, Stop, Task, TaskKind, TrainConfig, Trial, fit, seeded
from unspool.train.class_weight import ClassWeight

Array = np.ndarray[Any, Any]
#: The defaults of estimators, studies and the command line.
_USUAL = TrainConfig()


class NodeEstimator(OpenSettings, ABC):
    """Trains a graph network on some nodes and answers for all; :class:`NodeClassifier` and :class:`NodeRegressor` are such.

    A subclass says what it learns (:meth:`_learn`), how the upper loss reads it (:meth:`_loss`), and turns outputs into
    predictions.
    """

    # scikit-learn knows its first argument as X; an x would count as metadata to be routed.
    __metadata_request__fit = {"x": UNUSED}  # noqa: RUF012  read by name, never changed
    __metadata_request__predict = {"x": UNUSED}  # noqa: RUF012
    __metadata_request__score = {"x": UNUSED}  # noqa: RUF012

    # Learnt by fit.
    model_: nn.Module
    run_: Run
    graph_: Graph | None
    features_: Features
    n_features_in_: int
    n_iter_: int

    def __init__(
        self,
        model: Any = UGDGNN,
        *,
        epochs: int = _USUAL.epochs,
        lr: float = _USUAL.lr,
        weight_decay: Any = _USUAL.weight_decay,
        monitor: Any = _USUAL.monitor,
        patience: int | None = _USUAL.patience,
        lr_schedule: Rates = _USUAL.lr_schedule,
        lr_epochs: int = _USUAL.lr_epochs,
        clip: float | None = _USUAL.clip,
        upper: Any = None,
        batch_size: int | None = _USUAL.batch_size,
        callbacks: Any = (),
        warm_start: bool = False,
        valid_share: float = 0.2,
        normalise_rows: bool = False,
        seed: int = 0,
        device: torch.device | str | None = None,
        features: Any = None,
        graph: Any = None,
        directed: bool | None = None,
        loss: TaskKind | str | None = None,
        class_weight: Any = None,
        class_order: Any = None,
        **settings: Any,
    ) -> None:
        self.model = model
        self.epochs = epochs
        self.lr = lr
        self.weight_decay = weight_decay
        self.monitor = monitor
        self.patience = patience
        self.lr_schedule = lr_schedule
        self.lr_epochs = lr_epochs
        self.clip = clip
        self.upper = upper
        self.batch_size = batch_size
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.valid_share = valid_share
        self.normalise_rows = normalise_rows
        self.seed = seed
        self.device = device
        self.features = features
        self.graph = graph
        self.directed = directed
        self.loss = loss
        self.class_weight = class_weight
        self.class_order = class_order
        self._settings = settings

    @abstractmethod
    def _learn(self, y: Any, count: int) -> tuple[Array, Array, Array]:
        """Read ``y``: values per row, which rows have one, and the stratum of each row."""

    @abstractmethod
    def _scale(self, values: Array, train: Array) -> tuple[Tensor, int, Loss]:
        """Targets for training, over all nodes, how many outputs the model needs, and its upper loss."""

    @abstractmethod
    def _class_weight(self) -> ClassWeight | None:
        """How much classes count, checked against those that were read."""

    def fit(self, x: Any, y: Any = None, *, graph: Any = None, valid: Any = None, sample_weight: Any = None) -> Any:
        """Train on the labelled nodes; all nodes of the graph take part in the propagation.

        ``fit(data)`` takes a ``Data`` object of PyTorch Geometric whole: ``x``, ``y``, the graph, ``train_mask`` (nodes outside the masks
        count as unlabelled) and ``val_mask`` (nodes that choose the epoch).

        Args:
            x: features of all nodes, shape (nodes, features): an array, a tensor, a table or a sparse matrix. If ``features``
                were given to the constructor, ids of the nodes that ``y`` speaks of, and all others count as unlabelled.
            y: one label or target per row of ``x``; -1 (classes) or NaN (numbers) where there is none. For a classifier, several columns
                are several labels per node: 1, 0, or NaN where it is not known.
            graph: an ``unspool.Graph``, an ``edge_index``, a SciPy adjacency matrix, a NetworkX graph or a PyG ``Data``; needed
                unless the constructor was given one.
            valid: ids of labelled nodes (or a mask over all nodes) that choose the epoch and are not learnt from; a share of
                ``valid_share`` when omitted.
            sample_weight: how much each row of ``x`` counts in the training and validation losses, numbers of at least 0; all the
                same when omitted.

        Returns:
            The estimator itself.
        """
        self._check_numbers()
        if is_pyg(x):
            x, y, graph, valid = parts_of(x, y, graph, valid)
        every, place, rows = self._read(x, graph)
        nodes = int(every.shape[0])
        given = nodes if rows is None else rows.size
        before = Before.of(self) if self.warm_start else None
        vars(self).pop("model_", None)  # old weights and new classes must not meet if training fails
        values, known, strata = self._learn(y, given)
        weight = None if sample_weight is None else read_sample_weight(sample_weight, given)
        if rows is not None:
            values, known, strata = _spread(rows, nodes, values, known, strata)
            weight = None if weight is None else torch.ones(nodes).index_copy_(0, torch.as_tensor(rows), weight)
        ids = np.flatnonzero(known)
        if valid is None:
            train, held = hold_out(ids, strata[ids], self.valid_share, self.seed)
        else:
            train, held = given_out(ids, read_ids(valid, nodes, "valid"))
        target, outputs, loss = self._scale(values, train)
        if not isinstance(self.monitor, Monitor):
            loss = Scored(loss, scorer_of(self.monitor), self._stand_in())
        chooser = held if held.size else train
        parts = [torch.as_tensor(part) for part in (train, chooser, ids[:0])]
        task = Task(every, place, target, parts[0], parts[1], parts[2], loss, weight=weight, named=self._named(x))
        task = task.with_class_weight(self._class_weight())
        self._train(task, outputs, chosen=held.size > 0, before=before)
        remember_names(self, self.features if self.features is not None else x)
        return self

    def _named(self, x: Any) -> Named | None:
        """What a teacher in the upper level finds columns and classes by."""
        if self.upper is None:
            return None
        given = x if self.features is None else self.features
        return Named(read_x(given), names_of(given), [str(name) for name in getattr(self, "classes_", ())])

    def _config(self, chosen: bool) -> TrainConfig:
        monitor = self.monitor if isinstance(self.monitor, Monitor) else Monitor.VALID_SCORE
        return TrainConfig(
            lr=self.lr,
            weight_decay=self.weight_decay,
            epochs=self.epochs,
            # Without nodes to choose by, every epoch is better than the one before; the training loss needs none.
            monitor=monitor if chosen or monitor is Monitor.TRAIN_LOSS else Monitor.LAST_EPOCH,
            stop=Stop.NEVER if self.patience is None else Stop.PATIENCE,
            patience=1 if self.patience is None else self.patience,
            lr_schedule=self.lr_schedule,
            lr_epochs=self.lr_epochs,
            clip=self.clip,
            upper=self.upper,
            batch_size=self.batch_size,
        )

    def _stand_in(self) -> Any:
        """What a scorer asks in the place of this estimator while it is trained."""
        return NumbersSoFar()

    def _train(self, task: Task, outputs: int, chosen: bool, before: Before | None) -> None:
        config = self._config(chosen)
        device = torch.device(device_for(self.device))
        features = int(task.x.shape[1])
        trial = Trial(self._model_class(), self._settings, config, self.seed)
        with seeded(self.seed, device):
            model = trial.make(features, outputs).to(device)
            if before is not None:
                before.hand_over(model, self)
            here = task if task.target.device == device else task.to(device)
            run = fit(model, here, config, callbacks=tuple(self.callbacks))
        self.model_, self.run_, self.n_iter_, self.n_features_in_ = model, run, len(run.history), features
        self.features_, self.graph_ = task.x, task.graph
        self._trained(task, chosen)
        if run.ending is Ending.INTERRUPTED:
            # The best weights so far are kept, but a grid search must not go on with the next candidate.
            raise KeyboardInterrupt

    def _trained(self, task: Task, chosen: bool) -> None:
        """What else is learnt from a task once the model is trained; ``chosen``: whether nodes were held back."""
        del task, chosen

    def _output(self, x: Any, graph: Any) -> Tensor:
        """What the model says, one row per row of ``x``: float64 on the CPU."""
        check_is_fitted(self, "model_")
        if is_pyg(x):
            x, graph = x.x, x if graph is None else graph
        if x is not None and self.features is None:
            compare_names(self, x)
        if isinstance(graph, NewEdges):
            return self._finite(self._new_output(x, graph))
        every, place, rows = self._read(x, graph, fitted=True)
        if every.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {every.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input"
            )
        device = next((p.device for p in self.model_.parameters()), torch.device("cpu"))
        with torch.no_grad():
            if isinstance(every, StoredHops):  # of which only what is asked for is read
                wanted = torch.arange(every.shape[0]) if rows is None else torch.as_tensor(rows)
                return self._finite(self.model_(every.to(device), rows=wanted).double().cpu(), wanted)
            place = place if place.device == device else place.to(device)
            output = self._finite(self.model_(every.to(device), place).double().cpu())
        return output if rows is None else output[torch.as_tensor(rows)]

    def _new_output(self, x: Any, edges: NewEdges) -> Tensor:
        """What the model says of new nodes with these features, joined to the nodes that it was trained on."""
        if self.graph_ is None:
            raise ValueError(
                "the model was trained on hops on the disk, which hold no graph that nodes could be joined to"
            )
        fresh = read_x(x)
        if fresh.shape[1] == self.n_features_in_ and self.normalise_rows:
            fresh = row_normalise_like(fresh, self.features_)
        where = next((p.device for p in self.model_.parameters()), torch.device("cpu"))
        old, graph = self.features_.to(where), self.graph_.to(where)
        return predict_new_nodes(self.model_, old, graph, fresh.to(where), edges).output.double().cpu()

    @staticmethod
    def _finite(output: Tensor, rows: Tensor | None = None) -> Tensor:
        """The same, or one sentence where it is not finite."""
        if not bool(torch.isfinite(output).all()):
            place = int(torch.nonzero(~torch.isfinite(output))[0, 0])
            node = place if rows is None else int(rows[place])
            raise ValueError(
                f"the model says nothing finite about node {node}: its features are far larger than in training; scale them alike"
            )
        return output

    def _read(self, x: Any, graph: Any, fitted: bool = False) -> tuple[Features, Any, Array | None]:
        """Features of all nodes, the graph (None beside hops on the disk), and the rows asked for (None: all)."""
        graph = self.graph if graph is None and not fitted else graph
        bound = self.features is not None
        if fitted and (bound or x is None):
            every = self.features_
        else:
            every = read_x(self.features if bound else x)
            every = row_normalise(every) if self.normalise_rows else every
        nodes = int(every.shape[0])
        if isinstance(every, StoredHops):
            if graph is not None:
                raise ValueError("the features are hops on the disk, which have seen their graph: leave graph=... out")
            return every, None, read_ids(x, nodes) if bound and x is not None else None
        if fitted and graph is None:
            graph = self.graph_
            if graph is not None and graph.nodes != nodes:
                raise ValueError(
                    f"x has {nodes} rows, but the graph it was trained on has {graph.nodes} nodes: pass the graph of these nodes as graph=..."
                )
        place = read_graph(graph, nodes, every.dtype, **({} if self.directed is None else {"directed": self.directed}))
        return every, place, read_ids(x, nodes) if bound and x is not None else None

    def move_to(self, features: Any, graph: Any) -> Any:
        """Bind other features and another graph to an estimator that is trained, to predict for its nodes by their ids.

        Args:
            features: of all nodes of the graph.
            graph: of any kind that ``fit`` takes.
        """
        check_is_fitted(self, "model_")
        self.features, self.graph = features, graph
        self.features_, self.graph_, _ = self._read(None, None)
        return self

    def _check_numbers(self) -> None:
        names = (
            "epochs", "lr", "weight_decay", "monitor", "patience", "lr_schedule", "lr_epochs", "clip", "upper", "batch_size",
        )  # fmt: skip
        for name in names:
            value = getattr(self, name)
            if name == "monitor" and not isinstance(value, Monitor):
                scorer_of(value)
            elif not (value is None and name == "patience"):
                TrainConfig.schema[name].accept(value)
        if not isinstance(self.seed, numbers.Integral) or self.seed < 0:
            raise ValueError(f"seed={self.seed!r}: expected a whole number of at least 0")
        if not isinstance(self.valid_share, numbers.Real) or not 0 <= self.valid_share < 1:
            raise ValueError(f"valid_share={self.valid_share!r}: expected a number in [0, 1)")
        check_device(device_for(self.device))

    @property
    def objective_(self) -> Objective:
        """The denoising problem that the trained model solves; prints as maths."""
        check_is_fitted(self, "model_")
        return getattr(self.model_, "objective")  # noqa: B009  a user's own model may have none, and says so

    def __sklearn_clone__(self) -> Any:
        # A graph and its features are data, not settings: clones share them, where scikit-learn would copy them deeply.
        # Callbacks may hold open files.
        bare = copy.copy(self)
        bare.features, bare.graph, bare.callbacks = None, None, ()
        made: Any = super(NodeEstimator, bare).__sklearn_clone__()
        made.features, made.graph, made.callbacks = self.features, self.graph, self.callbacks
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _spread(rows: Array, nodes: int, values: Array, known: Array, strata: Array) -> tuple[Array, Array, Array]:
    """What some rows say, over all nodes."""
    twice = np.flatnonzero(np.bincount(rows, minlength=nodes) > 1)
    if twice.size:
        raise ValueError(f"x names node {twice[0]} twice: give every node once")
    wide = []
    for part, empty in ((values, 0), (known, False), (strata, 0)):
        every = np.full((nodes, *part.shape[1:]), empty, dtype=part.dtype)
        every[rows] = part
        wide.append(every)
    return wide[0], wide[1], wide[2]
