"""Which edges a robust network has let go of: the weights Γ that come out of its penalty, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.graph import edge_list
from unspool.graph.from_edge_index import graph_of
from unspool.nn.flatten import Densify
from unspool.objective import Computed, EdgePenalty, EdgeSmoothness
from unspool.ops import features_of
from unspool.spectral.linear_form import evaluating, graph_for, propagation_of
from unspool.unrolling import Unrolled


@dataclass(frozen=True, eq=False)
class EdgeWeights:
    """How much each edge counts in each layer of a robust network.

    Attributes:
        edges: the ends (i, j) of every edge with i < j, shape (2, edges).
        weights: Γ of layer k = 1 ... K, in the H that the layer begins with; shape (K, edges).
        whole: ρ′(0), the weight of an edge whose ends agree, against which others are small.
        names: the nodes' own names, where the graph has any.
    """

    edges: Tensor
    weights: Tensor
    whole: float
    names: tuple[Any, ...] | None = None

    def reduced(self, top: int = 10, layer: int = -1) -> list[tuple[Any, Any, float]]:
        """The edges that count least in a layer, as (one end, other end, Γ): the most reduced first.

        Args:
            top: how many.
            layer: from 0, or from the end: the last layer when omitted.
        """
        row = self.weights[layer]
        order = torch.argsort(row, stable=True)[:top].tolist()
        return [(*(self._name(int(end)) for end in self.edges[:, e]), float(row[e])) for e in order]

    def cut(self, below: float = 0.1, layer: int = -1) -> Tensor:
        """The edges whose weight in a layer is below a share of the whole one; shape (2, cut edges)."""
        return self.edges[:, self.weights[layer] < below * self.whole]

    def describe(self, top: int = 10, below: float = 0.1) -> str:
        """How many edges each layer lets go of, and which count least in the last."""
        count = self.edges.shape[1]
        lines = [f"{count} edges, of weight {self.whole:.3g} where the ends agree", "layer   mean weight   let go"]
        for k, row in enumerate(self.weights, start=1):
            gone = int((row < below * self.whole).sum())
            mean = float(row.mean()) if count else float("nan")
            lines.append(f"{k:>5}   {mean:>11.3g}   {gone:>6}")
        lines.append(f"(let go: below {below:.0%} of that weight)")
        if count:
            lines.append("the edges that count least in the last layer:")
            lines += [f"  {i} – {j}   {weight:.3g}" for i, j, weight in self.reduced(top)]
        return "\n".join(lines)

    def _name(self, node: int) -> Any:
        return node if self.names is None else self.names[node]

    def __str__(self) -> str:
        return self.describe()


@torch.no_grad()
def edge_weights(model: Any, x: Any, graph: Any) -> EdgeWeights:
    r"""Which edges a robust network has let go of, layer by layer.

    A network with :class:`~unspool.EdgePenalty` weighs the edge e by :math:`\Gamma_e = \rho'(\lVert (BH)_e\rVert^2)` at the H that a layer begins
    with: attention that comes out of the objective. Edges whose ends differ much count little in it. Weights that are computed from what is given
    (:class:`~unspool.models.TrustGNN`, :class:`~unspool.models.SignedGNN`) are the same in all layers.

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
    net = propagation_of(model)
    every = net.objective.terms if isinstance(net, Unrolled) else ()
    terms: list[Any] = [term for term in every if isinstance(term, EdgePenalty) or _computed(term)]
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
        problems = [net.problem(z, where, k, x if net.needs_features else None) for k in range(1, net.depth + 1)]
        state = net.algorithm.init(net.start.tensor(z), problems[0])
        rows: list[Tensor] = []
        for problem in problems:
            rows.append(terms[0].edge_weights(state[0], problem.given).to("cpu", torch.float64))
            state = net.algorithm.update(state, problem)
    return EdgeWeights(edge_list(where).cpu(), torch.stack(rows), _whole(terms[0]), where.names)


def _computed(term: Any) -> bool:
    return isinstance(term, EdgeSmoothness) and isinstance(term.edges, Computed)


def _whole(term: Any) -> float:
    """The weight of an edge whose ends agree."""
    penalty = term.penalty if isinstance(term, EdgePenalty) else getattr(term.edges.module, "penalty", None)
    return 1.0 if penalty is None else float(penalty.slope(torch.zeros((), dtype=torch.float64)))
