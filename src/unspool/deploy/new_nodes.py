"""Predictions for nodes that a graph did not have, equal to those on the whole enlarged graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unspool.datasets.features import rows_of
from unspool.deploy.few_nodes import NodePredictions, evaluating, receptive_hops
from unspool.errors import UNSHOWN, IncompatibleError, InputError
from unspool.graph import Graph, around_new, enlarged
from unspool.ops import Operator, SparseFeatures, features_of
from unspool.ops.stored_hops import StoredHops


@torch.no_grad()
def predict_new_nodes(model: nn.Module, x: Any, graph: Graph, new: Any, edges: Any) -> NodePredictions:
    """The output of a network for new nodes, computed from the neighbourhood that they get in the old graph.

    Equal to the last rows of ``model(cat([x, new]), us.graph.enlarged(graph, len(new), edges))``: old neighbours have the degrees that the new
    edges give them. A network that looks at all nodes at once (an exact minimiser, a mean over groups), or asks the graph for its largest
    frequency, is computed on the whole enlarged graph. Nothing is trained, and ``graph`` stays as it is.

    Args:
        model: called as ``model(x, graph)``, as in evaluation mode.
        x: features of the old nodes, a tensor or sparse features.
        graph: the old graph.
        new: features of the new nodes, one row each, scaled as the old ones are.
        edges: what joins them, :class:`unspool.graph.NewEdges` or integers of shape (2, edges); the first new node is number ``graph.nodes``.

    Example:
        >>> import torch, unspool as us
        >>> graph, x = us.graph.path(99), torch.eye(100)
        >>> model = us.models.APPNP(100, 3, depth=4).eval()
        >>> found = predict_new_nodes(model, x[:99], graph, x[99:], [[99], [98]])
        >>> torch.allclose(found.output, model(x, us.graph.path(100))[99:], atol=1e-6), found.nodes_read
        (True, 5)
    """
    check_knows_edges(x)
    features = features_of(x)
    fresh = _read_new(new, features)
    count = int(fresh.shape[0])
    if features.shape[0] != graph.nodes:
        raise ValueError(f"x has {features.shape[0]} rows, but the graph has {graph.nodes} nodes")
    reach = receptive_hops(model)
    if reach is None or reach.uses_largest_frequency:
        place, near = enlarged(graph, count, edges), torch.arange(graph.nodes)
    else:
        place, near = around_new(graph, count, edges, reach.hops)
    known = features if near.numel() == graph.nodes else rows_of(features, near)
    with evaluating(model):
        output: Tensor = model(_stacked(known, fresh), place)
    hops = None if reach is None else reach.hops
    return NodePredictions(output[near.numel() :], hops, place.nodes, int(place.operator.forward.col.numel()))


def check_knows_edges(x: Any) -> None:
    """Refuse hops on the disk in the place of features."""
    if isinstance(x, StoredHops):
        raise IncompatibleError(
            "hops on the disk know no edges, and new nodes change those of their neighbours; give the features and the graph they were made of"
        )


def _read_new(new: Any, like: Tensor | SparseFeatures) -> Tensor | SparseFeatures:
    """Features of new nodes with the width, type and place of the old ones."""
    try:
        found = features_of(new if isinstance(new, Tensor | SparseFeatures) else torch.as_tensor(new))
    except (RuntimeError, ValueError, TypeError) as problem:
        raise InputError("new", UNSHOWN, f"one row of numbers for each new node ({problem})") from None
    if len(found.shape) != 2 or found.shape[0] < 1:
        raise InputError(
            "new", UNSHOWN, f"one row of features for each new node, and it has shape {tuple(found.shape)}"
        )
    if found.shape[1] != like.shape[1]:
        raise InputError(
            "new", UNSHOWN, f"{like.shape[1]} features a node, as the old nodes have, and it has {found.shape[1]}"
        )
    _check_finite(found)
    return found.to(like.device).to(like.dtype)


def _check_finite(found: Tensor | SparseFeatures) -> None:
    """Name the first new node whose features are no numbers."""
    sparse = isinstance(found, SparseFeatures)
    values = found.operator.forward.val if sparse else found
    wrong = torch.nonzero(~torch.isfinite(values.flatten())).flatten()
    if wrong.numel() == 0:
        return
    place = int(wrong[0])
    node = int(found.rows[place]) if sparse else place // max(int(found.shape[1]), 1)
    raise InputError(
        "new", UNSHOWN, f"finite features, and new node {node} has {float(values.flatten()[place])} among them"
    )


def _stacked(old: Tensor | SparseFeatures, new: Tensor | SparseFeatures) -> Tensor | SparseFeatures:
    """Old rows above new ones, sparse where the old ones are."""
    if isinstance(old, Tensor):
        return torch.cat([old, new if isinstance(new, Tensor) else new.to_dense()])
    below = new if isinstance(new, SparseFeatures) else SparseFeatures.from_tensor(new)
    shape = (int(old.shape[0] + below.shape[0]), int(old.shape[1]))
    csrs = (old.operator.forward, below.operator.forward)
    row = torch.cat([old.rows.long(), below.rows.long() + int(old.shape[0])])
    made = Operator.from_entries(
        row, torch.cat([csr.col.long() for csr in csrs]), torch.cat([csr.val for csr in csrs]), shape
    )
    return SparseFeatures.from_operator(made)
