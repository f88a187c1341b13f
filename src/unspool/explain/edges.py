"""Which edges a robust network has let go of: the weights Γ that come out of its penalty, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from unspool.algorithm import Exact, Problem
from unspool.errors import IncompatibleError
from unspool.graph import Graph, edge_list
from unspool.graph.from_edge_index import graph_of
from unspool.nn.flatten import Densify
from unspool.objective import Computed, EdgePenalty, EdgeSmoothness, Given
from unspool.ops import features_of
from unspool.spectral.linear_form import evaluating, graph_for, propagation_of
from unspool.unrolling import FixedPoint, Implicit, Unrolled


@dataclass(frozen=True, eq=False)
class EdgeWeights:
    """How much each edge counts in each layer of a robust network.

    Attributes:
        edges: the ends (i, j) of every edge with i < j, shape (2, edges).
        weights: Γ of layer k = 1 ... K, in the H that the layer begins with; shape (K, edges). A network that jumps to its minimiser or fixed point has
            one row, at that point. Negative weights, which only :class:`~unspool.EdgeSmoothness` has, push the ends apart.
        whole: ρ′(0), the weight of an edge whose ends agree, against which others are small; 1 for weights that a module computes.
        names: the nodes' own names, where the graph has any.
    """

    edges: Tensor
    weights: Tensor
    whole: float
    names: tuple[Any, ...] | None = None

    def reduced(self, top: int = 10, layer: int = -1) -> list[tuple[Any, Any, float]]:
        """The edges that count least in a layer, as (one end, other end, Γ): those of the smallest size first, whatever their sign.

        Args:
            top: how many.
            layer: from 0, or from the end: the last layer when omitted.
        """
        return self._listed(torch.argsort(self.weights[layer].abs(), stable=True)[:top], layer)

    def of(self, node: int) -> EdgeWeights:
        """The edges of one node alone, by its number."""
        here = (self.edges == node).any(0)
        return replace(self, edges=self.edges[:, here], weights=self.weights[:, here])

    def repelling(self, top: int = 10, layer: int = -1) -> list[tuple[Any, Any, float]]:
        """The edges that push their ends apart in a layer, as (one end, other end, w): the most negative weights first.

        Args:
            top: how many.
            layer: from 0, or from the end: the last layer when omitted.
        """
        row = self.weights[layer]
        order = torch.argsort(row, stable=True)
        return self._listed(order[row[order] < 0][:top], layer)

    def cut(self, below: float = 0.1, layer: int = -1) -> Tensor:
        """The edges whose weight in a layer is in size below a share of the whole one; shape (2, cut edges)."""
        return self.edges[:, self.weights[layer].abs() < below * self.whole]

    def describe(self, top: int = 10, below: float = 0.1) -> str:
        """How many edges each layer lets go of (and pushes apart, where weights have signs), and which count least in the last."""
        count, signed = self.edges.shape[1], bool((self.weights < 0).any())
        what = "with weights of either sign" if signed else f"of weight {self.whole:.3g} where the ends agree"
        lines = [f"{count} edges, {what}", f"layer   mean weight   let go{'   pushed apart' if signed else ''}"]
        for k, row in enumerate(self.weights, start=1):
            gone, apart = int((row.abs() < below * self.whole).sum()), int((row < 0).sum())
            mean = float(row.mean()) if count else float("nan")
            lines.append(f"{k:>5}   {mean:>11.3g}   {gone:>6}{f'   {apart:>12}' if signed else ''}")
        of = (
            f"{below:.0%} of {self.whole:.3g}, in size; pushed apart: below 0"
            if signed
            else f"{below:.0%} of that weight"
        )
        lines.append(f"(let go: below {of})")
        if signed:
            lines += ["the edges that push most in the last layer:", *_shown(self.repelling(top))]
        if count:
            lines += ["the edges that count least in the last layer:", *_shown(self.reduced(top))]
        return "\n".join(lines)

    def _listed(self, chosen: Tensor, layer: int) -> list[tuple[Any, Any, float]]:
        row = self.weights[layer]
        return [(*(self._name(int(end)) for end in self.edges[:, e]), float(row[e])) for e in chosen.tolist()]

    def _name(self, node: int) -> Any:
        return node if self.names is None else self.names[node]

    def __str__(self) -> str:
        return self.describe()


@torch.no_grad()
def edge_weights(model: Any, x: Any, graph: Any) -> EdgeWeights:
    r"""Which edges a robust network has let go of, layer by layer.

    A network with :class:`~unspool.EdgePenalty` weighs the edge e by :math:`\Gamma_e = \rho'(\lVert (BH)_e\rVert^2)` at the H that a layer begins
    with: attention that comes out of the objective. Edges whose ends differ much count little in it. Weights that are computed from what is given
    (:class:`~unspool.models.TrustGNN`, :class:`~unspool.models.SignedGNN`) are the same in all layers; those of SignedGNN have signs.

    Args:
        model: a model such as :class:`~unspool.models.TWIRLS`, :class:`~unspool.models.PGNN` or :class:`~unspool.models.TrustGNN`, or an unrolled
            network.
        x: features of shape (nodes, features); dense or sparse.
        graph: a graph or an ``edge_index``.

    Returns:
        Edges and weights; prints as text.

    Example:
        >>> import torch, unspool as us
        >>> net = us.unroll(us.Fidelity(1.0) + us.EdgePenalty(us.Capped(1.0), 2.0), us.Jacobi(), depth=3)
        >>> x = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
        >>> found = us.explain.edge_weights(net, x, us.graph.path(4))
        >>> found.cut()
        tensor([[1],
                [2]])
        >>> found.reduced(top=1)
        [(1, 2, 0.0)]
    """
    net, terms = propagation_of(model), weighing(model)
    if len(terms) != 1:
        name = type(model).__name__
        raise IncompatibleError(
            f"{name} weighs its edges by no EdgePenalty, so it lets go of none; take TWIRLS, PGNN or TrustGNN, or unroll such a term"
            if not terms
            else f"{name} has {len(terms)} terms that weigh edges: look at each, term.edge_weights(h, given)"
        )
    x = features_of(x)
    where = graph_for(model, graph_of(graph, x.shape[-2], None, x.dtype))
    with evaluating(model):
        model(x, where)  # refuses what does not fit, in the model's own words
        z = Densify()(x) if net is model else model.p_pre(x)
        features = x if net.needs_features else None
        problems = [net.problem(z, where, k, features) for k in range(1, net.depth + 1)]
        rows = [terms[0].edge_weights(h, on.given) for h, on in _iterates(net, problems, z, where, features)]
    weights = torch.stack([row.to("cpu", torch.float64) for row in rows])
    return EdgeWeights(edge_list(where).cpu(), weights, _whole(terms[0], problems[0].given), where.names)


def _iterates(
    net: Unrolled, problems: list[Problem], z: Tensor, where: Graph, features: Any
) -> Iterator[tuple[Tensor, Problem]]:
    """What every layer begins with, and its problem; where the network jumps, the point that it jumps to."""
    if isinstance(net.adjoint, FixedPoint | Implicit) or isinstance(net.algorithm, Exact):
        yield (net(z, where) if features is None else net(z, where, features=features)), problems[0]
        return
    state = net.algorithm.init(net.start.tensor(z), problems[0])
    for problem in problems:
        yield state[0], problem
        state = net.algorithm.update(state, problem)


def _shown(edges: list[tuple[Any, Any, float]]) -> list[str]:
    return [f"  {i} – {j}   {weight:.3g}" for i, j, weight in edges]


def weighing(model: Any) -> list[Any]:
    """The terms of a network that weigh edges, each by what it sees there."""
    net = propagation_of(model)
    every = net.objective.terms if isinstance(net, Unrolled) else ()
    return [term for term in every if isinstance(term, EdgePenalty) or _computed(term)]


def _computed(term: Any) -> bool:
    return isinstance(term, EdgeSmoothness) and isinstance(term.edges, Computed)


def _whole(term: Any, given: Given) -> float:
    """The weight of an edge whose ends agree."""
    penalty = (
        term.penalty.filled(given) if isinstance(term, EdgePenalty) else getattr(term.edges.module, "penalty", None)
    )
    return 1.0 if penalty is None else float(penalty.slope(torch.zeros((), dtype=torch.float64)))
