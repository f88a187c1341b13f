"""Why two nodes are thought to be linked: what reached each of them, as the other one sees it."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.errors import InputError
from unspool.explain.explaining import Scene, run_parts, split_score
from unspool.explain.node import distances, find_node, row_of
from unspool.explain.splitting import Split
from unspool.graph import Graph
from unspool.spectral.linear_form import evaluating


@dataclass(frozen=True, eq=False)
class Contraction:
    """The inner product of outputs with those of another node, which stand still meanwhile."""

    weight: Tensor

    def of(self, outputs: Tensor) -> Tensor:
        """⟨outputs, weight⟩."""
        return outputs @ self.weight.to(outputs.device, outputs.dtype)


@dataclass(frozen=True, eq=False)
class Side:
    """One end of a pair: the whole score, split over what reached this end.

    Attributes:
        node, name: this end.
        degree: how many other nodes it sees directly.
        split: contributions by hop and node.
        distance: edges between this end and each of ``split.nodes``; −1 where there is no way.
    """

    node: int
    name: str
    degree: int
    split: Split
    distance: Tensor

    @property
    def own(self) -> float:
        """The contribution of this end's own features."""
        return float(self.split.total[self.split.nodes == self.node].sum())

    @property
    def neighbours(self) -> float:
        """The contribution of all other nodes."""
        return float(self.split.total.sum()) - self.own

    def largest(self, count: int | None = None) -> list[int]:
        """Places in ``split.nodes`` of those that contribute most, by size; this end may be among them."""
        return torch.argsort(self.split.total.abs(), descending=True, stable=True).tolist()[:count]

    def hop_rows(self) -> list[tuple[str, float]]:
        """Contributions by hop where there are hops, else by distance."""
        if self.split.by_hop is not None:
            return list(zip(self.split.hops, self.split.by_hop.sum(1).tolist(), strict=True))
        far = torch.unique(self.distance).tolist()
        return [("no way" if d < 0 else str(d), float(self.split.total[self.distance == d].sum())) for d in far]


@dataclass(frozen=True, eq=False, repr=False)
class PairExplanation:
    r"""Why a pair of nodes scored what it did; printing it gives the whole story.

    The score :math:`h_a^\top h_b` is linear in each end. Seen from a, with h_b standing still, it is a sum over the hops and nodes whose
    features reached a; seen from b, over those that reached b. Both sums are the whole score.

    Attributes:
        model, objective: the model's name, and the problem it solves.
        score: h_a · h_b.
        edge: whether the two are linked in the graph; that edge takes part in the score then.
        sides: both ends.
        common: nodes that are neighbours of both.
        names: names of all nodes, or None.
    """

    model: str
    objective: str
    score: float
    edge: bool
    sides: tuple[Side, Side]
    common: Tensor
    names: tuple[Hashable, ...] | None

    @property
    def probability(self) -> float:
        """The logistic function of the score."""
        return float(torch.tensor(self.score, dtype=torch.float64).sigmoid())

    def remainder(self, side: Side) -> float:
        """What the parts of a side leave unexplained: rounding where its split is exact."""
        return self.score - float(side.split.total.sum()) - side.split.bias

    def name_of(self, node: int) -> str:
        """A node's name, or its number."""
        return str(node) if self.names is None else str(self.names[node])

    def describe(self, top: int = 10) -> str:
        """The text, with so many nodes of each side."""
        from unspool.explain.pair_text import describe

        return describe(self, top)

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        one, other = self.sides
        return f"PairExplanation({self.model}, {one.name} and {other.name}: {self.score:.4g}, {one.split.method.value})"

    def record(self, top: int | None = None) -> dict[str, Any]:
        """Everything as plain values; with ``top`` only so many nodes of each side."""
        return {
            "model": self.model,
            "objective": self.objective,
            "score": self.score,
            "probability": self.probability,
            "edge": self.edge,
            "common_neighbours": [self.name_of(node) for node in self.common.tolist()],
            "sides": [self._side_record(side, top) for side in self.sides],
        }

    def to_json(self, top: int | None = None) -> str:
        """:meth:`record` as JSON text."""
        return json.dumps(self.record(top), ensure_ascii=False)

    def _side_record(self, side: Side, top: int | None) -> dict[str, Any]:
        split = side.split
        return {
            "node": side.node,
            "name": side.name,
            "neighbours": side.degree,
            "method": split.method.value,
            "note": split.note,
            "parts": {
                "own": side.own, "neighbours": side.neighbours, "bias": split.bias, "remainder": self.remainder(side),
            },
            "hops": None if split.by_hop is None else [{"hop": k, "contribution": v} for k, v in side.hop_rows()],
            "nodes": [
                {
                    "node": int(split.nodes[p]), "name": self.name_of(int(split.nodes[p])), "edges": int(side.distance[p]),
                    "contribution": float(split.total[p]),
                    "by_hop": None if split.by_hop is None else split.by_hop[:, p].tolist(),
                }
                for p in side.largest(top)
            ],
        }  # fmt: skip


def explain_pair(model: Any, x: Any, graph: Any, node: Any, other: Any) -> PairExplanation:
    """Which hops and which neighbours speak for a link between two nodes, seen from either end.

    Exact where the propagation is linear (see :func:`~unspool.explain.explain`); to first order elsewhere, with what that leaves
    unexplained written beside it.

    Args:
        model: trained on links; looked at in evaluation mode, left as it was.
        x: features, dense or sparse.
        graph: a graph or an ``edge_index``.
        node, other: numbers, or names where the graph has names.

    Example:
        >>> import torch, unspool as us
        >>> model, graph = us.models.APPNP(4, 8, teleport=0.2, depth=3).double(), us.graph.ring(8).to(torch.float64)
        >>> found = explain_pair(model, torch.randn(8, 4, dtype=torch.float64), graph, 2, 4)
        >>> [abs(found.remainder(side)) < 1e-12 for side in found.sides], found.edge, found.common.tolist()
        ([True, True], False, [3])
    """
    with evaluating(model), torch.no_grad():
        scene = run_parts(model, x, graph)
        ends = [find_node(one, scene.graph.nodes, scene.graph.names) for one in (node, other)]
        if ends[0] == ends[1]:
            raise InputError("other", other, f"another node than {node}", "a node is not linked with itself")
        h = scene.outputs.detach().to("cpu", torch.float64)
        if not bool(torch.isfinite(h[ends]).all()):
            raise ValueError(
                "the outputs at these nodes are not finite: training has diverged; explain another checkpoint"
            )
        sides = [_side(model, scene, end, h[ends[1 - k]]) for k, end in enumerate(ends)]
    near = [_neighbours(scene.graph, end) for end in ends]
    return PairExplanation(
        model=type(model).__name__,
        objective=str(getattr(model, "objective", "")),
        score=float(h[ends[0]] @ h[ends[1]]),
        edge=bool((near[0] == ends[1]).any()),
        sides=(sides[0], sides[1]),
        common=near[0][torch.isin(near[0], near[1])],
        names=scene.graph.names,
    )


def _side(model: Any, scene: Scene, node: int, other: Tensor) -> Side:
    split = split_score(model, scene, node, Contraction(other))
    name = str(node if scene.graph.names is None else scene.graph.names[node])
    far = distances(scene.graph.operator, node, split.nodes)
    return Side(node, name, _neighbours(scene.graph, node).numel(), split, far)


def _neighbours(graph: Graph, node: int) -> Tensor:
    seen, value = row_of(graph.operator, node)
    return seen[(seen != node) & (value != 0)].cpu()
