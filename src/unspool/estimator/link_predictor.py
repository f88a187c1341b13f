"""Links in scikit-learn's manner: learnt from a graph, asked for pairs of nodes."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from unspool import datasets
from unspool.datasets import Dataset
from unspool.datasets.features import Features, row_normalise
from unspool.device import check_device, device_for
from unspool.errors import UNSHOWN, IncompatibleError, InputError
from unspool.estimator.inputs import read_graph, read_x
from unspool.estimator.labels import as_array
from unspool.estimator.settings import OpenSettings
from unspool.explain import find_nodes
from unspool.graph import Graph, Normalisation, edge_list
from unspool.links import LinkScorer, Recommendations
from unspool.models import UGDGNN
from unspool.train import (
    Ending,
    LinkEvaluation,
    Monitor,
    Run,
    Stop,
    TrainConfig,
    Trial,
    evaluate_links,
    fit,
    link_task,
    seeded,
)  # fmt: skip
from unspool.train.loss import area_under_curve
from unspool.train.task_kind import PAIR_CHANNELS

Array = np.ndarray[Any, Any]
#: The defaults of estimators, studies and the command line.
_USUAL = TrainConfig()


class LinkPredictor(OpenSettings):
    r"""Learns which nodes of a graph are linked; a pair scores :math:`h_u^\top h_v`.

    Some links are held back by the seed, for choosing the epoch and for a test; the network is trained on a graph without them, and
    predicts with the whole one. With the same seed this is what ``unspool train --loss links`` does.

    Args:
        model: a class built as ``model(in_features, out_features, **settings)`` and called as ``model(x, graph)``, or its name.
        epochs: the most there are.
        lr: learning rate of Adam.
        weight_decay: one number for weight matrices and biases, or one per group of parameters.
        monitor: what decides which epoch's weights are kept.
        patience: training ends after as many epochs without improvement; None for never.
        upper: the loss of training as a sum of terms (:mod:`unspool.train.upper`), or its text, such as ``"loss + consistency(views=2)"``.
        valid_share, test_share: shares of the links that are held back to choose the epoch and to measure the result; with a test share of 0
            nothing is measured.
        normalise_rows: let every row of features sum to one first.
        seed: of the weights, the dropout, the links held back and the pairs that stand against them.
        device: where to train; a GPU where there is one when omitted.
        settings: of the model (``depth``, ``hidden``, ``dropout``, ...); searchable like any other argument.

    Attributes:
        classes_: 0 (not linked) and 1 (linked).
        model_: the trained ``torch.nn.Module``, in evaluation mode.
        run_: the training run.
        evaluation_: what it reaches on the test links, beside scores that need no training
            (:class:`~unspool.links.LinkEvaluation`); None where no links were held back for a test.
        graph_, features_: the whole graph and the features; predictions are made on these.
        n_features_in_, n_iter_: features of a node, epochs that were run.

    Example:
        >>> from unspool import datasets, models
        >>> data = datasets.contextual_sbm(nodes=120, classes=3, seed=0)
        >>> links = LinkPredictor(models.SGC, epochs=30, seed=0).fit(data.features, graph=data.edge_index)
        >>> links.predict_proba([[0, 1], [0, 2]]).shape
        (2, 2)
        >>> links.recommend([7], k=3).rank.tolist()
        [1, 2, 3]
        >>> bool(links.score() == links.evaluation_.network.auc > 0.5)
        True
    """

    # Learnt by fit.
    classes_: Array
    model_: nn.Module
    run_: Run
    evaluation_: LinkEvaluation | None
    graph_: Graph
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
        monitor: Monitor = _USUAL.monitor,
        patience: int | None = _USUAL.patience,
        upper: Any = None,
        valid_share: float = 0.05,
        test_share: float = 0.1,
        normalise_rows: bool = False,
        seed: int = 0,
        device: torch.device | str | None = None,
        **settings: Any,
    ) -> None:
        self.model = model
        self.epochs = epochs
        self.lr = lr
        self.weight_decay = weight_decay
        self.monitor = monitor
        self.patience = patience
        self.upper = upper
        self.valid_share = valid_share
        self.test_share = test_share
        self.normalise_rows = normalise_rows
        self.seed = seed
        self.device = device
        self._settings = settings

    def fit(self, x: Any, y: Any = None, *, graph: Any = None) -> LinkPredictor:
        """Learn from the edges of a graph.

        Args:
            x: features of all nodes, shape (nodes, features): an array, a tensor, a table or a sparse matrix.
            y: not used; links are learnt from the graph.
            graph: an ``edge_index``, an ``unspool.Graph`` (symmetric normalisation), a SciPy adjacency matrix, a NetworkX graph or a PyG
                ``Data``. Links have no direction: every edge counts once, whichever way it runs.
        """
        if y is not None:
            raise InputError("y", UNSHOWN, "nothing, as links are learnt from the graph", "give it as graph=...")
        config = self._config()
        kind, device = self._model_class(), torch.device(device_for(self.device))
        every = read_x(x)
        data = _dataset(row_normalise(every) if self.normalise_rows else every, graph)
        vars(self).pop("model_", None)
        task = link_task(data, valid=self.valid_share, test=self.test_share, seed=int(self.seed)).to(device)
        trial = Trial(kind, self._settings, config, int(self.seed))
        with seeded(self.seed, device):
            model = trial.make(int(every.shape[1]), PAIR_CHANNELS).to(device)
            run = fit(model, task, config)
        self.model_, self.run_, self.n_iter_, self.n_features_in_ = model, run, len(run.history), int(every.shape[1])
        self.features_, self.graph_, self.classes_ = data.features, data.graph, np.array([0, 1])
        self.evaluation_ = evaluate_links(model, task, int(self.seed)) if task.test.numel() else None
        if run.ending is Ending.INTERRUPTED:
            # The best weights so far are kept, but a search must not go on with the next candidate.
            raise KeyboardInterrupt
        return self

    def decision_function(self, pairs: Any) -> Array:
        """The score of each pair, h_u · h_v.

        Args:
            pairs: shape (pairs, 2): numbers of nodes, or their names where the graph has any.
        """
        return self._scorer().score(self._pairs(pairs)).score.numpy()

    def predict_proba(self, pairs: Any) -> Array:
        """The probabilities that pairs are not linked, and that they are, shape (pairs, 2): the logistic function of the score."""
        chance = self._scorer().score(self._pairs(pairs)).probability.numpy()
        return np.stack([1 - chance, chance], axis=1)

    def predict(self, pairs: Any) -> Array:
        """1 for pairs that are rather linked than not, else 0."""
        return (self.decision_function(pairs) > 0).astype(np.int64)

    def recommend(self, nodes: Any = None, k: int = 10) -> Recommendations:
        """The k most probable new links of some nodes (numbers or names), or of all; see :class:`~unspool.links.Recommendations`."""
        scorer = self._scorer()
        return scorer.recommend(None if nodes is None else self._found(np.asarray(nodes)), k)

    def score(self, pairs: Any = None, y: Any = None) -> float:
        """AUC: the chance that a random link scores above a random other pair.

        Args:
            pairs: which pairs; the links that were held back for the test and as many other pairs when omitted.
            y: 1 for those that are links, 0 for the others.
        """
        check_is_fitted(self, "model_")
        if pairs is None:
            if y is not None or self.evaluation_ is None:
                hint = "give pairs and y" if y is None else "leave y out too"
                raise InputError("pairs", None, "pairs, unless links were held back for a test", hint)
            return self.evaluation_.network.auc
        found, truth = self.decision_function(pairs), as_array(y).reshape(-1) if y is not None else np.empty(0)
        if truth.shape != found.shape or set(np.unique(truth).tolist()) != {0, 1}:
            raise InputError("y", UNSHOWN, f"0 or 1 for each of the {found.size} pairs, and both of them")
        return float(area_under_curve(torch.as_tensor(found), torch.as_tensor(truth.astype(np.float64))))

    def _scorer(self) -> LinkScorer:
        check_is_fitted(self, "model_")
        device = next((p.device for p in self.model_.parameters()), torch.device("cpu"))
        return LinkScorer.of([self.model_], self.features_.to(device), self.graph_.to(device))

    def _pairs(self, given: Any) -> Tensor:
        pairs = given if isinstance(given, Tensor) else np.asarray(given)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InputError("pairs", UNSHOWN, f"an array of shape (pairs, 2), found {tuple(pairs.shape)}")
        return self._found(pairs)

    def _found(self, given: Any) -> Tensor:
        """Nodes by number or by name."""
        if isinstance(given, Tensor) or given.dtype.kind not in "OSU":
            return torch.as_tensor(given)
        return find_nodes(given.reshape(-1).tolist(), self.graph_.nodes, self.graph_.names).reshape(given.shape)

    def _config(self) -> TrainConfig:
        check_device(device_for(self.device))
        if not isinstance(self.seed, numbers.Integral) or self.seed < 0:
            raise InputError("seed", self.seed, "a whole number of at least 0")
        for name in ("valid_share", "test_share"):
            share = getattr(self, name)
            number = isinstance(share, numbers.Real) and 0 <= float(share) < 1
            if not number or (name == "valid_share" and share == 0):
                raise InputError(name, share, "a share of the links, between 0 and 1")
        return TrainConfig(
            lr=self.lr, weight_decay=self.weight_decay, epochs=self.epochs, monitor=self.monitor,
            stop=Stop.NEVER if self.patience is None else Stop.PATIENCE, patience=1 if self.patience is None else self.patience, upper=self.upper,
        )  # fmt: skip


def _dataset(features: Features, graph: Any) -> Dataset:
    """Features and edges as the other doors have them: every link once, with its weight where there are weights."""
    made = read_graph(
        graph, int(features.shape[0]), torch.float64, **({} if isinstance(graph, Graph) else {"directed": False})
    )
    if not made.undirected or made.normalisation is not Normalisation.SYMMETRIC:
        raise IncompatibleError(
            "links have no direction, and the graph without those held back is normalised symmetrically; give an edge_index or an "
            "undirected Graph with Normalisation.SYMMETRIC"
        )
    ends = edge_list(made)
    row, col = made.operator.rows(), made.operator.forward.col.long()
    weight = made.operator.forward.val[row < col] * (made.degree[ends[0]] * made.degree[ends[1]]).sqrt()
    plain = bool(torch.allclose(weight, torch.ones_like(weight), rtol=1e-9, atol=0))
    return datasets.from_tensors(
        ends, features, nodes=made.nodes, edge_weight=None if plain else weight, names=made.names, directed=False,
        split=lambda _: None,
    )  # fmt: skip
