"""Graph signal denoising behind scikit-learn's interface: no labels, no training."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from unspool.algorithm.exact import find_minimiser
from unspool.denoise import Choice, Covariance, DenoisingProblem
from unspool.denoise.missing import observed
from unspool.denoise.problem import read_problem
from unspool.denoise.solve import choose, objective_of, solve
from unspool.estimator.inputs import read_graph, read_ids, read_signal
from unspool.graph import Graph, Normalisation
from unspool.objective import Objective, as_objective
from unspool.ops import SolveReport

Array = np.ndarray[Any, Any]


class GraphDenoiser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Denoise signals on a graph: the exact minimiser of a denoising problem, with a weight that the data choose.

    .. math:: \min_H\; \alpha\lVert H - X\rVert_T^2 + (1 - \alpha)\lVert BH\rVert_F^2

    Needs no labels. NaN entries are missing: they count in no fidelity, and are filled in from their neighbours. ``x`` is said in two ways, as in :class:`~unspool.estimator.NodeClassifier`: signals on all nodes, or node
    ids with features and graph bound, which a grid search can cut into folds.

    Args:
        weight: α in (0, 1], or a rule that chooses it: :class:`~unspool.estimator.SURE`, :class:`~unspool.estimator.GCV` or
            :class:`~unspool.estimator.HeldOut`. When omitted, SURE for smooth signals without missing values, and HeldOut otherwise.
        problem: what is minimised: ``"smooth"`` (above), ``"tv"`` (regions with sharp borders, ‖BH‖₂,₁ as the penalty), ``"slopes"``
            (straight lines with few bends, ‖LH‖₂,₁), ``"trend"`` (slopes and curves that change now and then, ‖BLH‖₂,₁) or
            ``"robust"`` (a few nodes far off, ‖H − X‖₂,₁ as the fidelity).
        noise_covariance: Σ, of the noise over features, where it is known: one variance per feature, or a matrix. Then
            T = σ²Σ⁻¹ with σ² the mean variance (otherwise T = I), so that noisy features, and noisy mixtures of them, are smoothed
            more; SURE takes the noise level from it, GCV needs it up to a factor only. For features of different units give it, or
            scale them before.
        objective: a problem of your own instead, whose weights are fixed; it need not be smooth.
        features: signals on all nodes, to bind them; then ``fit`` and ``transform`` take node ids.
        graph: the graph, to bind it. Edges run both ways, and an ``unspool.Graph`` must be undirected. Matrices, edge lists, NetworkX and PyG graphs are not normalised here,
            so that L is the plain Laplacian D − W and a constant signal stays as it is. An ``unspool.Graph`` is taken as it was
            made; the usual symmetric normalisation suits encoded features, and bends signals with a large mean.

    Attributes:
        weight_: α, where there is one.
        curve_: candidates and their scores, shape (candidates, 2), where a rule chose.
        noise_: the standard deviation of the noise, as the rule found it; with ``noise_covariance``, the root of the mean variance.
        objective_: the problem that was solved.
        report_: iterations and residual of the last solve, and whether its tolerance was met.
        denoised_: the denoised signals of ``fit``.
        graph_, n_features_in_: what it was fitted on.

    Example:
        >>> import numpy as np, unspool as us
        >>> graph, place = us.graph.sensor(300)
        >>> clean = np.sin(6 * place[:, 0].numpy())
        >>> noisy = clean + 0.5 * np.random.default_rng(0).standard_normal(300)
        >>> denoiser = GraphDenoiser()
        >>> denoised = denoiser.fit_transform(noisy, graph=graph)
        >>> bool(np.mean((denoised - clean) ** 2) < 0.3 * np.mean((noisy - clean) ** 2))
        True
        >>> noisy[::10] = np.nan
        >>> np.isnan(GraphDenoiser(problem="tv").fit_transform(noisy, graph=graph)).any()
        np.False_
        >>> noisy[::10] = 0.0
        >>> robust = GraphDenoiser(objective=us.RowSparseFidelity(0.4) + us.Smoothness(0.6))
        >>> robust.fit_transform(noisy, graph=graph).shape
        (300,)
    """

    # scikit-learn knows its first argument as X; an x would count as metadata to be routed.
    __metadata_request__fit = {"x": UNUSED}  # noqa: RUF012  read by name, never changed
    __metadata_request__transform = {"x": UNUSED}  # noqa: RUF012

    weight_: float | None
    curve_: Array | None
    noise_: float | None
    objective_: Objective
    report_: SolveReport
    denoised_: Array
    graph_: Graph
    n_features_in_: int

    def __init__(
        self,
        weight: Any = None,
        *,
        problem: Any = "smooth",
        noise_covariance: Any = None,
        objective: Any = None,
        features: Any = None,
        graph: Any = None,
    ) -> None:
        self.weight = weight
        self.problem = problem
        self.noise_covariance = noise_covariance
        self.objective = objective
        self.features = features
        self.graph = graph

    def fit(self, x: Any, y: Any = None, *, graph: Any = None) -> GraphDenoiser:
        """Choose the weight and denoise.

        Args:
            x: signals, shape (nodes,) or (nodes, features), an array, a tensor or a sparse matrix, with NaN where values are
                missing; or node ids.
            y: not looked at.
            graph: an ``unspool.Graph``, a SciPy adjacency matrix, a NetworkX graph, an ``edge_index`` or a PyG ``Data``.
        """
        signal = read_signal(x if self.features is None else self.features, missing=True)
        dtype = torch.float32 if signal.dtype == np.float32 else torch.float64
        given = self.graph if graph is None else graph
        place = read_graph(given, signal.shape[0], dtype, normalise=Normalisation.NONE, loops=0.0)
        if self.features is not None:
            read_ids(x, place.nodes)
        found = self._choose(signal, place)
        if found is None:
            self.weight_ = self.curve_ = self.noise_ = None
            self.objective_ = as_objective(self.objective)
        else:
            self.weight_, self.curve_, self.noise_ = found.weight, found.curve, found.noise
            seen = observed(torch.as_tensor(signal.reshape(place.nodes, -1)))
            self.objective_ = objective_of(found.weight, self._covariance(signal), self._problem(), seen)
        self.graph_, self.n_features_in_ = place, 1 if signal.ndim == 1 else signal.shape[1]
        self.denoised_ = self._solve(signal)
        return self

    def transform(self, x: Any) -> Array:
        """Denoise signals on the same graph with the weight that was chosen; for node ids, their denoised features."""
        check_is_fitted(self, "denoised_")
        if self.features is not None:
            return self.denoised_[read_ids(x, self.graph_.nodes)]
        signal = read_signal(x, missing=True)
        if signal.shape[0] != self.graph_.nodes:
            raise ValueError(
                f"x has {signal.shape[0]} rows, but the graph it was fitted on has {self.graph_.nodes} nodes"
            )
        width = 1 if signal.ndim == 1 else signal.shape[1]
        if width != self.n_features_in_:
            raise ValueError(
                f"X has {width} features, but GraphDenoiser is expecting {self.n_features_in_} features as input; for other "
                "signals make another with weight=denoiser.weight_"
            )
        return self._solve(signal)

    def fit_transform(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x: Any, y: Any = None, *, graph: Any = None
    ) -> Array:
        """``fit``, and the denoised rows of ``x``."""
        self.fit(x, y, graph=graph)
        return self.denoised_ if self.features is None else self.transform(x)

    def _choose(self, signal: Array, graph: Graph) -> Choice | None:
        if self.objective is not None:
            if self.weight is not None:
                raise ValueError("weight and objective are both given: an objective of your own has its weights inside")
            if self.noise_covariance is not None:
                raise ValueError(
                    "noise_covariance and objective are both given: say Fidelity(weight, metric=...) in your own objective"
                )
            if self._problem().name != "smooth":
                raise ValueError(f"problem={self.problem!r} and objective are both given: leave one of them out")
            return None
        x = torch.as_tensor(signal.reshape(graph.nodes, -1))
        return choose(x, graph, self.weight, self._covariance(signal), self._problem())

    def _problem(self) -> DenoisingProblem:
        return read_problem(self.problem)

    def _covariance(self, signal: Array) -> Covariance | None:
        if self.noise_covariance is None:
            return None
        return Covariance.read(self.noise_covariance, 1 if signal.ndim == 1 else signal.shape[1])

    def _solve(self, signal: Array) -> Array:
        x = torch.as_tensor(signal.reshape(self.graph_.nodes, -1))
        graph = self.graph_ if x.dtype == self.graph_.dtype else self.graph_.to(x.dtype)
        if self.weight_ is None:
            if observed(x) is not None:
                raise ValueError(
                    "x has missing values, which an objective of your own does not know of: write NodeFidelity(seen) and fill any number in, "
                    "or use problem=..."
                )
            found = find_minimiser(self.objective_, x, graph)
        else:
            found = solve(x, graph, self.weight_, self._covariance(signal), self._problem())
        self.report_ = found.report
        return found.h.numpy().reshape(signal.shape)

    def __sklearn_clone__(self) -> Any:
        # A graph and its signals are data, not settings: clones share them, where scikit-learn would copy them deeply.
        bare = copy.copy(self)
        bare.features = bare.graph = None
        made: Any = super(GraphDenoiser, bare).__sklearn_clone__()
        made.features, made.graph = self.features, self.graph
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
