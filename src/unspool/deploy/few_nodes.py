"""Predictions for a few nodes from their neighbourhood alone, equal to those from the whole graph."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from unspool.datasets.features import rows_of
from unspool.graph import neighbourhood, part_of, path
from unspool.graph.subgraph import read_nodes
from unspool.ops import features_of
from unspool.ops.stored_hops import StoredHops

#: Operators that carry signals from node to node or between nodes and edges, one hop at most each.
_ONE_HOP = ("spmm", "index_select", "gather", "index_add", "scatter", "index_put", "aten::index", "take", "_sparse")
#: Nodes of the path on which a network is looked at, beyond those that its operators reach.
_BEYOND = 6
#: Depths beyond this are not looked for: such a neighbourhood is nearly always the whole graph.
_DEEPEST = 200


@dataclass(frozen=True, eq=False)
class NodePredictions:
    """What a network says of a few nodes, and how much of the graph it took.

    Attributes:
        output: one row per node that was asked for.
        hops: how many hops away the network looks; None where it looks at the whole graph.
        nodes_read, edges_read: how many nodes, and entries of the matrix A, the computation touched.
    """

    output: Tensor
    hops: int | None
    nodes_read: int
    edges_read: int


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Generator[None]:
    """Let a network predict as it does when it is not trained, without masks of dropout; each of its parts is then as it was.

    Example:
        >>> model = nn.Dropout(0.5)
        >>> with evaluating(model):
        ...     print(model(torch.ones(3)), model.training)
        tensor([1., 1., 1.]) False
        >>> model.training
        True
    """
    before = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for part, training in before:
            part.training = training


@torch.no_grad()
def predict_nodes(model: nn.Module, x: Any, graph: Any, nodes: Any) -> NodePredictions:
    """The output of a network for a few nodes, computed from their neighbourhood alone.

    Equal to ``model(x, graph)[nodes]``, because a network of K hops sees nothing beyond K hops; degrees and normalisation are those of
    the whole graph. A network that looks at all nodes at once (an exact minimiser, a mean over groups) is computed as a whole.

    Args:
        model: called as ``model(x, graph)``, as in evaluation mode.
        x: features of all nodes, a tensor or sparse features; or hops on the disk, whose rows are read.
        graph: the whole graph; not needed beside hops.
        nodes: ids of the nodes (rows of the hops), each once.

    Example:
        >>> import torch, unspool as us
        >>> graph, x = us.graph.ring(100), torch.eye(100)
        >>> model = us.models.APPNP(100, 3, depth=4).eval()
        >>> found = predict_nodes(model, x, graph, [7])
        >>> torch.allclose(found.output, model(x, graph)[[7]]), found.hops, found.nodes_read
        (True, 4, 9)
    """
    with evaluating(model):
        return _predicted(model, x, graph, nodes)


def _predicted(model: nn.Module, x: Any, graph: Any, nodes: Any) -> NodePredictions:
    if isinstance(x, StoredHops):
        rows = read_nodes(nodes, int(x.shape[0]))
        return NodePredictions(model(x, rows=rows), 0, int(rows.numel()), 0)
    wanted = read_nodes(nodes, graph.nodes)
    features = features_of(x)
    reach = receptive_hops(model)
    near = None if reach is None else neighbourhood(graph, wanted, reach.hops)
    if reach is None or near is None or near.numel() == graph.nodes:
        output: Tensor = model(features, graph)
        hops = None if reach is None else reach.hops
        return NodePredictions(output[wanted.to(output.device)], hops, graph.nodes, graph.operator.forward.col.numel())
    part = part_of(graph, near)
    if reach.uses_largest_frequency:
        # Kept where the part would work out its own, which is not that of the whole.
        part.__dict__["largest_frequency"] = graph.largest_frequency
    found: Tensor = model(rows_of(features, near), part)
    return NodePredictions(
        found[: wanted.numel()], reach.hops, int(near.numel()), int(part.operator.forward.col.numel())
    )


@dataclass(frozen=True)
class Reach:
    """How far a network looks: ``hops`` from a node at most, and whether it asks the graph for its largest frequency."""

    hops: int
    uses_largest_frequency: bool


@torch.no_grad()
def receptive_hops(model: nn.Module) -> Reach | None:
    """How many hops away a network looks, at most; None where it looks at the whole graph, or further than is worth a search.

    Two looks: the operators that the network runs are counted along every way from its input to its output, and on a long path
    everything beyond that distance is changed, which must leave the output as it was.

    Example:
        >>> import unspool as us
        >>> receptive_hops(us.models.SGC(5, 3, depth=2)).hops, receptive_hops(us.models.PPNP(5, 3))
        (2, None)
    """
    width = getattr(model, "in_features", None)
    if not isinstance(width, int):
        return None
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.zeros(()))
    chance = torch.Generator().manual_seed(0)
    with evaluating(model):
        probe = path(8).to(like.device).to(like.dtype)
        x = torch.randn(8, width, generator=chance).to(like)
        with _HopCounter() as counter:
            counter.begin(x)
            hops = counter.reached(model(x, probe))
        if hops is None or hops > _DEEPEST or not _is_blind_beyond(model, hops, width, like, chance):
            return None
        return Reach(hops, "largest_frequency" in vars(probe))


def _is_blind_beyond(model: nn.Module, hops: int, width: int, like: Tensor, chance: torch.Generator) -> bool:
    """Whether nothing changes at one end of a path when everything beyond some hops does."""
    line = path(hops + 1 + _BEYOND).to(like.device).to(like.dtype)
    for _ in range(2):
        x = torch.randn(line.nodes, width, generator=chance).to(like)
        other = x.clone()
        other[hops + 1 :] = 3 * torch.randn(_BEYOND, width, generator=chance).to(like)
        here, there = model(x, line)[0], model(other, line)[0]
        if not torch.allclose(here, there, rtol=1e-5, atol=1e-7):
            return False
    return True


class _HopCounter(TorchDispatchMode):
    """Follows how many hops lie between the input and every tensor; memory that is shared counts as one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self._hops: dict[int, float] = {}
        self._held: list[Tensor] = []  # memory that was given back would be taken for another's

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # torch would import its compiler, for seconds, at the first operator

    def begin(self, x: Tensor) -> None:
        """The input has come no hop."""
        self._hops[self._place(x)] = 0

    def reached(self, output: Tensor) -> int | None:
        """How many hops lie behind the output; None for all."""
        hops = self._hops.get(self._place(output), 0)
        return None if hops == float("inf") else int(hops)

    def _place(self, tensor: Tensor) -> int:
        self._held.append(tensor)
        return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else id(tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **({} if kwargs is None else kwargs))
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        behind = max((self._hops.get(self._place(t), -1.0) for t in tensors), default=-1.0)
        if behind < 0:  # it does not come from the input
            return found
        behind += _hops_of(func.name(), args)
        for made in tree_leaves(found):
            if isinstance(made, Tensor):
                place = self._place(made)
                self._hops[place] = max(behind, self._hops.get(place, 0.0))
        return found


def _hops_of(name: str, args: Any) -> float:
    """How many hops an operator goes."""
    if name.startswith("unspool::"):
        if "series" in name or "propagate" in name:
            return float(args[5 if "series" in name else 9].shape[0] - 1)
        if "powers" in name:
            return float(args[5])
        if "solve" in name:
            return float("inf")
        return 1.0 if "spmm" in name else 0.0
    return 1.0 if any(part in name for part in _ONE_HOP) else 0.0
