"""Explaining one prediction: run the parts of the model, split the score, look at what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError
from unspool.explain.change import Change, feature_shares, term_shares
from unspool.explain.edges import edge_weights, weighing
from unspool.explain.explanation import Explanation
from unspool.explain.node import cut_off, distances, find_node, row_of
from unspool.explain.score import Against, Outputs, Readout, affine_head, choose, predictions
from unspool.explain.splitting import Split, split_gradient, split_minimiser, split_polynomial
from unspool.graph import Graph
from unspool.graph.from_edge_index import graph_of
from unspool.models.mlp import Still
from unspool.nn.flatten import Densify
from unspool.ops import Basis, SparseFeatures, features_of
from unspool.spectral import Response, response
from unspool.spectral.linear_form import Hops, Minimiser, Neither, evaluating, graph_for, propagation_of, read
from unspool.unrolling import Implicit, ReadBack, Unrolled


@dataclass(frozen=True, eq=False)
class Scene:
    """A model's three parts on their data, in evaluation mode: z goes in, h comes out."""

    p_pre: Any
    propagation: Any
    p_pos: Any
    x: Tensor | SparseFeatures
    graph: Graph
    z: Tensor
    h: Tensor
    outputs: Tensor

    def propagate(self, z: Tensor, graph: Graph) -> Tensor:
        """The propagation of some z: of all nodes, or of one that stands alone and so has no edge to compute weights of."""
        alone = z.shape[-2] != self.x.shape[-2]
        return run_propagation(self.propagation, z, graph, z if alone else self.x)


def explain(
    model: Any,
    x: Any,
    graph: Any,
    node: Any,
    *,
    target: int | None = None,
    against: int | Against | None = None,
    classes: Sequence[str] | None = None,
    labels: Tensor | None = None,
    feature_names: Sequence[str] | None = None,
    outputs: Outputs = Outputs.CLASSES,
) -> Explanation:
    r"""Which hops and which neighbours drove the prediction at a node, and what the denoiser changed there.

    A model is :math:`p_{pos}(\text{propagation}(p_{pre}(X)))`. Where its propagation is linear and p_pos a linear layer, the
    score of node i is exactly

    .. math:: s_i = \sum_k \sum_j p_k(A)_{ij}\, z_j C_k w + b,

    one number per hop k and node j, found with K sparse products of a single column. An exact minimiser (PPNP) takes one
    solve instead, and its hops are the terms of its Neumann series. Everything else (GCN, GCNII, AirGNN, DAGNN) is split to
    first order, :math:`\langle\partial s_i/\partial z_j, z_j\rangle`, and the remainder is reported.

    Args:
        model: a model, or a bare network such as ``unroll(...)``; looked at in evaluation mode, left as it was.
        x: features, dense or sparse, as the model takes them.
        graph: a graph or an ``edge_index``.
        node: its number, or its name where the graph has names.
        target: the class to explain; the predicted one when omitted (the first of several numbers).
        against: explain the lead over another class: its number, or ``Against.RUNNER_UP``.
        classes: names of the classes; two names for a single output that stands for two classes.
        labels: the true classes of all nodes, −1 where unknown, to be shown beside predictions.
        feature_names: names of the columns of x.
        outputs: whether the model's outputs are scores of classes, or numbers (regression); a single one without names is a
            number.

    Example:
        >>> import torch, unspool as us
        >>> from unspool.explain import explain
        >>> model, graph = us.models.APPNP(4, 2, teleport=0.2, depth=3).double(), us.graph.ring(8).to(torch.float64)
        >>> found = explain(model, torch.randn(8, 4, dtype=torch.float64), graph, node=5)
        >>> found.split.by_hop.shape, found.split.nodes.tolist()
        (torch.Size([4, 7]), [0, 2, 3, 4, 5, 6, 7])
        >>> abs(float(found.split.by_hop.sum()) - found.score.value) < 1e-12
        True
    """
    with evaluating(model), torch.no_grad():
        scene = run_parts(model, x, graph)
        place = find_node(node, scene.graph.nodes, scene.graph.names)
        score = choose(scene.outputs[place], target, against, classes, outputs)
        split = split_score(model, scene, place, score)
        change = _change(model, scene, place)
        features = feature_shares(scene.p_pre, scene.x, place, scene.z, split.slope, feature_names)
        shares = term_shares(scene.propagation, scene.z, scene.h, scene.graph, place)
    operator, names = scene.graph.operator, scene.graph.names
    found, why = _response(model, scene.graph)
    layers, refusal = _layers(scene.propagation, scene.graph)
    seen, _ = row_of(operator, place)
    return Explanation(
        model=type(model).__name__,
        objective=str(getattr(model, "objective", "")),
        node=place,
        name=str(place if names is None else names[place]),
        degree=int((seen != place).sum()),
        score=score,
        split=split,
        distance=distances(operator, place, split.nodes),
        predicted=predictions(scene.outputs[split.nodes.to(scene.outputs.device)]).cpu(),
        labels=_labels(labels, scene.graph.nodes, split.nodes),
        names=names,
        change=change,
        terms=shares,
        features=features,
        response=found,
        response_note=why,
        layers=layers,
        layers_note=refusal,
        edges=edge_weights(model, scene.x, scene.graph).of(place) if len(weighing(model)) == 1 else None,
    )


# -- inside ------------------------------------------------------------------------------------------------------------


def run_parts(model: Any, x: Any, graph: Any) -> Scene:
    """Run a model part by part, and refuse one whose parts do not make up the whole."""
    propagation = propagation_of(model)
    bare = propagation is model
    _check_weights(model)
    x = features_of(x)
    if len(x.shape) != 2:
        raise ValueError(f"x has shape {tuple(x.shape)}: one signal is explained at a time; expected (nodes, features)")
    graph = graph_of(graph, x.shape[0], None, x.dtype)
    outputs = model(x, graph)  # first, so that whatever does not fit is refused in the model's own words
    graph = graph_for(model, graph)
    p_pre, p_pos = (Densify(), nn.Identity()) if bare else (model.p_pre, model.p_pos)
    z = p_pre(x)
    h = run_propagation(propagation, z, graph, x)
    again = p_pos(h)
    size = float(outputs.abs().max()) + 1.0
    if again.shape != outputs.shape or float((again - outputs).abs().max()) > 1e-3 * size:
        raise IncompatibleError(
            f"{type(model).__name__} computes something else than p_pos(propagation(p_pre(x))), so its parts do not explain it"
        )
    return Scene(p_pre, propagation, p_pos, x, graph, z, h, outputs)


def run_propagation(propagation: Any, z: Tensor, graph: Graph, x: Tensor | SparseFeatures) -> Tensor:
    """The propagation of z; networks that compute coefficients from the features are given them."""
    return propagation(z, graph, features=x) if getattr(propagation, "needs_features", False) else propagation(z, graph)


def _check_weights(model: Any) -> None:
    for name, parameter in model.named_parameters() if isinstance(model, nn.Module) else ():
        if not bool(torch.isfinite(parameter).all()):
            raise ValueError(f"{name} is not finite: training has diverged; explain an earlier checkpoint")


def split_score(model: Any, scene: Scene, node: int, score: Readout) -> Split:
    """Split what is read at a node, exactly where the network is linear there."""
    head = affine_head(scene.p_pos, scene.h.shape[1], score)
    found = _read(model, scene)
    reason = found.reason if isinstance(found, Neither) else ""
    if head is None and not reason:
        reason = f"the decoder {type(scene.p_pos).__name__} is not linear"
    if head is not None and not isinstance(found, Neither):
        exact = scene.graph.to("cpu", dtype=torch.float64)
        if isinstance(found, Hops):
            operator = exact.require_laplacian() if isinstance(scene.propagation, Unrolled) else exact.operator
            return split_polynomial(scene.z, operator, node, found, head)
        split = split_minimiser(scene.z, exact, node, found, head)
        if split is not None:
            return split
    return split_gradient(scene.z, scene.graph, node, scene.propagate, scene.p_pos, score, head, reason)


def _read(model: Any, scene: Scene) -> Hops | Minimiser | Neither:
    if isinstance(scene.propagation, Still):
        return Hops(torch.ones(1, dtype=torch.float64), Basis.POWERS, None)
    try:
        return read(model, scene.graph)
    except IncompatibleError as problem:
        return Neither(str(problem))


def _change(model: Any, scene: Scene, node: int) -> Change:
    alone = cut_off(scene.graph, node)
    alone = graph_for(model, alone)
    before, after = (t[node].detach().to("cpu", torch.float64) for t in (scene.z, scene.h))
    try:
        outputs = scene.p_pos(scene.propagate(scene.z[node : node + 1], alone))[0]
    except (ValueError, IncompatibleError):  # a start of its own, weights of single edges: they fit this graph only
        return Change(before, after, None)
    return Change(before, after, outputs.detach().to("cpu", torch.float64))


def _response(model: Any, graph: Graph) -> tuple[Response | None, str]:
    """The response where it is known exactly; measuring one would take longer than all the rest."""
    inner = propagation_of(model)
    if isinstance(inner, Still):
        return None, "nothing travels along edges, so there is no frequency response"
    try:
        found = read(model, graph)
        if isinstance(found, Neither):
            return None, f"{found.reason}, so its response can only be measured: unspool spectrum does"
        return response(model, graph), ""
    except IncompatibleError as problem:
        return None, str(problem)


def _layers(propagation: Any, graph: Graph) -> tuple[ReadBack | None, str]:
    reader = getattr(propagation, "read_back", None)
    if not callable(reader) or isinstance(getattr(propagation, "adjoint", None), Implicit):
        return None, ""  # a minimiser takes no steps
    try:
        found = reader(graph) if isinstance(propagation, Unrolled) else reader()
    except IncompatibleError as problem:
        return None, str(problem)
    return (found, "") if isinstance(found, ReadBack) else (None, "")


def _labels(labels: Tensor | None, nodes: int, seen: Tensor) -> Tensor | None:
    if labels is None:
        return None
    known = torch.as_tensor(labels)
    if known.shape != (nodes,):
        raise ValueError(f"labels have shape {tuple(known.shape)}: expected one class per node, ({nodes},)")
    return known.cpu()[seen]
