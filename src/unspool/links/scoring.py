"""How probable links are: of pairs that somebody names, and the most probable new ones of each node."""

from __future__ import annotations

import operator as whole
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspool.errors import IncompatibleError, InputError
from unspool.graph import Graph
from unspool.graph.from_edge_index import graph_of
from unspool.ops import features_of

#: So many scores are held at once.
BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """What is said about pairs of nodes, in their order.

    Attributes:
        pairs: shape (pairs, 2).
        score: h_u · h_v, float64; of several models, the logit of their mean probability.
        probability: the logistic function of the score: the chance of a link where links and other pairs are equally many, as in training.
        edge: whether the pair is an edge of the graph already.
    """

    pairs: Tensor
    score: Tensor
    probability: Tensor
    edge: Tensor


@dataclass(frozen=True, eq=False)
class Recommendations:
    """New links, the best of each node first; all attributes have one entry per recommendation.

    Attributes:
        node: for whom.
        rank: 1 for the best of a node.
        other: who is recommended; never the node itself, nor one of its neighbours.
        score, probability: as in :class:`ScoredPairs`.
    """

    node: Tensor
    rank: Tensor
    other: Tensor
    score: Tensor
    probability: Tensor


class LinkScorer:
    """Scores pairs of one graph by what trained networks say about its nodes.

    The graph is the whole one, with every known edge, where training held some back: the more is known of a node, the better its links
    can be foreseen. A pair that is an edge already is scored with that edge in the graph.

    Args:
        outputs: what each model says about all nodes, shape (nodes, channels); several are averaged as probabilities.
        graph: whose edges are known; undirected, as h_u · h_v says the same of both directions.

    Example:
        >>> import torch, unspool as us
        >>> scorer = LinkScorer([torch.tensor([[2.0], [1.0], [-1.0], [0.5]])], us.graph.path(4))
        >>> scorer.score(torch.tensor([[0, 1], [0, 2]])).score.tolist()
        [2.0, -2.0]
        >>> scorer.recommend(k=1).other.tolist()  # 0 and 1 are neighbours, and so are 1 and 2, 2 and 3
        [3, 3, 0, 0]
    """

    def __init__(self, outputs: Sequence[Tensor], graph: Graph) -> None:
        if not graph.undirected:
            raise InputError(
                "graph",
                "directed",
                "links without a direction: h_u · h_v says the same of both",
                "let its edges run both ways",
            )
        self.outputs = [_checked(one).double().cpu() for one in outputs]
        self.nodes = graph.nodes
        forward = graph.operator.forward
        row = torch.repeat_interleave(torch.arange(self.nodes), forward.crow.cpu().long().diff())
        col = forward.col.cpu().long()
        near = (row != col) & (forward.val.cpu() != 0)
        self._codes = (row[near] * self.nodes + col[near]).sort().values

    @staticmethod
    @torch.no_grad()
    def of(models: Sequence[nn.Module], x: Any, graph: Any) -> LinkScorer:
        """The scorer of models on data that they fit; models that were trained on something else than links are refused."""
        x = features_of(x)
        place = graph_of(graph, int(x.shape[0]), None, x.dtype)
        return LinkScorer([_output(model, x, place) for model in models], place)

    def score(self, pairs: Any) -> ScoredPairs:
        """Score pairs, shape (pairs, 2)."""
        ends = self._pairs(pairs)
        parts = ends.split(max(1, BLOCK // max(one.shape[1] for one in self.outputs)))
        each = [_together([(h[part[:, 0]] * h[part[:, 1]]).sum(1) for h in self.outputs]) for part in parts]
        score = torch.cat(each)
        return ScoredPairs(ends, score, score.sigmoid(), self.is_edge(ends))

    def is_edge(self, pairs: Tensor) -> Tensor:
        """Which pairs are edges already."""
        code = pairs[:, 0] * self.nodes + pairs[:, 1]
        if not self._codes.numel():
            return torch.zeros_like(code, dtype=torch.bool)
        place = torch.searchsorted(self._codes, code).clamp(max=self._codes.numel() - 1)
        return self._codes[place] == code

    def recommend(self, nodes: Any = None, k: int = 10) -> Recommendations:
        """The most probable new links of some nodes, or of all; a node that is linked with almost everybody has fewer than k.

        Scores are held for some rows of the graph at a time, so memory grows with the nodes and not with their square. Equal scores
        are ordered by the numbers of the nodes.
        """
        ids = torch.arange(self.nodes) if nodes is None else self._nodes(nodes)
        count = _count(k, self.nodes)
        parts = [self._best(part, count) for part in ids.split(max(1, BLOCK // self.nodes))]
        node, rank, other, score = (torch.cat(one) for one in zip(*parts, strict=True))
        return Recommendations(node, rank, other, score, score.sigmoid())

    def _best(self, ids: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of a block of rows: nodes, ranks, others, scores."""
        score = _together([h[ids] @ h.T for h in self.outputs])
        first, last = (torch.searchsorted(self._codes, row * self.nodes) for row in (ids, ids + 1))
        for row, (begin, end) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            score[row, self._codes[begin:end] % self.nodes] = -torch.inf
        score[torch.arange(ids.numel()), ids] = -torch.inf
        least = score.topk(k, dim=1).values[:, -1:]
        # All that may be among the best, equal ones too; then in order, row by row.
        row, other = torch.nonzero((score >= least) & (score > -torch.inf), as_tuple=True)
        value = score[row, other]
        order = torch.argsort(value, descending=True, stable=True)
        order = order[torch.argsort(row[order], stable=True)]
        row, other, value = row[order], other[order], value[order]
        rank = torch.arange(row.numel()) - torch.searchsorted(row, torch.arange(ids.numel()))[row] + 1
        kept = rank <= k
        return ids[row[kept]], rank[kept], other[kept], value[kept]

    def _pairs(self, given: Any) -> Tensor:
        pairs = torch.as_tensor(given)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.is_floating_point() or pairs.dtype == torch.bool:
            found = f"{pairs.dtype} of shape {tuple(pairs.shape)}"
            raise InputError("pairs", found, "whole numbers of shape (pairs, 2), two nodes in each row")
        ends = self._nodes(pairs.reshape(-1), "pairs").reshape(-1, 2)
        same = torch.nonzero(ends[:, 0] == ends[:, 1]).flatten()
        if same.numel():
            hint = f"take row {int(same[0])} out: a node is not linked with itself"
            raise InputError("pairs", ends[same[0]].tolist(), "two nodes that differ", hint)
        return ends

    def _nodes(self, given: Any, what: str = "nodes") -> Tensor:
        ids = torch.as_tensor(given)
        if ids.ndim != 1 or ids.is_floating_point() or ids.dtype == torch.bool or (what == "nodes" and not ids.numel()):
            raise InputError(what, f"{ids.dtype} of shape {tuple(ids.shape)}", "the numbers of nodes in a row")
        outside = torch.nonzero((ids < 0) | (ids >= self.nodes)).flatten()
        if outside.numel():
            raise InputError(what, int(ids[outside[0]]), f"the numbers of nodes, from 0 to {self.nodes - 1}")
        return ids.long().cpu()


def score_pairs(model: nn.Module, x: Any, graph: Any, pairs: Any) -> ScoredPairs:
    """Score pairs of nodes with a model that was trained on links.

    Args:
        model: called as ``model(x, graph)``; give it in evaluation mode, as training and :func:`unspool.load` do.
        x: features of all nodes.
        graph: the whole graph, or an ``edge_index``.
        pairs: numbers of nodes, shape (pairs, 2); in any order, as often as you like.

    Example:
        >>> import torch, unspool as us
        >>> model = us.models.SGC(4, 8).eval()
        >>> scored = score_pairs(model, torch.eye(6, 4), us.graph.ring(6), [[0, 1], [0, 3]])
        >>> scored.edge.tolist()
        [True, False]
    """
    return LinkScorer.of([model], x, graph).score(pairs)


def recommend(model: nn.Module, x: Any, graph: Any, nodes: Any = None, *, k: int = 10) -> Recommendations:
    """The k most probable new links of some nodes, or of all; arguments as in :func:`score_pairs`.

    Example:
        >>> import torch, unspool as us
        >>> model = us.models.SGC(4, 8).eval()
        >>> found = recommend(model, torch.eye(6, 4), us.graph.ring(6), nodes=[0], k=9)
        Traceback (most recent call last):
            ...
        unspool.errors.InputError: k=9: expected a whole number from 1 to 5, as there are 6 nodes
        >>> sorted(recommend(model, torch.eye(6, 4), us.graph.ring(6), nodes=[0], k=5).other.tolist())
        [2, 3, 4]
    """
    return LinkScorer.of([model], x, graph).recommend(nodes, k)


def _output(model: Any, x: Any, graph: Graph) -> Tensor:
    card = getattr(model, "card", None)
    task = card.get("task") if isinstance(card, Mapping) else None
    kind = task.get("kind", "links") if isinstance(task, Mapping) else "links"
    if kind != "links":
        raise IncompatibleError(f"the model was trained on {kind}, and says nothing about pairs; train one on links")
    like = next((p for p in model.parameters() if p.is_floating_point()), None)
    if like is not None and like.dtype != x.dtype:
        x, graph = x.to(like.dtype), graph.to(like.dtype)
    return model(x, graph)


def _checked(output: Tensor) -> Tensor:
    if not bool(torch.isfinite(output).all()):
        node = int(torch.nonzero(~torch.isfinite(output))[0, 0])
        raise ValueError(
            f"the model says nothing finite about node {node}: its weights are not finite, or its features are far larger than in training; "
            "train again, or scale them"
        )
    return output


def _together(scores: list[Tensor]) -> Tensor:
    """The logit of the mean probability, without rounding large scores to 0 or 1."""
    if len(scores) == 1:
        return scores[0]
    held = torch.stack(scores)
    return torch.logsumexp(functional.logsigmoid(held), 0) - torch.logsumexp(functional.logsigmoid(-held), 0)


def _count(k: Any, nodes: int) -> int:
    try:
        count = whole.index(k)
    except TypeError:
        count = 0
    if isinstance(k, bool) or not 1 <= count < nodes:
        raise InputError("k", k, f"a whole number from 1 to {nodes - 1}, as there are {nodes} nodes")
    return count
