"""Every model is its plain dense formula, in value and in gradient, on graphs of every kind."""

import pytest
import torch

import unspool as us
from reference.cases import BY_EDGES, CASES, build, close, edge_lists, graphs, signal, slopes
from reference.models import REFERENCES
from unspool import models

GRAPHS = graphs()


def reference(model, a, x):
    return REFERENCES[type(model).__name__](model, a, x)


@pytest.mark.parametrize("where", GRAPHS)
@pytest.mark.parametrize("name", CASES)
def test_is_its_reference(name, where):
    model, (graph, a) = build(name).eval(), GRAPHS[where]
    x = signal(graph.nodes)
    assert close(graph.to_dense(), a, 1e-14)
    if where == "directed" and name.startswith("PPNP"):
        with pytest.raises(us.IncompatibleError, match="undirected graph; build it without directed=True"):
            model(x, graph)
        return
    if where == "directed" and isinstance(model, BY_EDGES):
        with pytest.raises(us.IncompatibleError, match="this graph is directed, so no Laplacian BᵀB exists"):
            model(x, graph)
        return
    out, expected = model(x, graph), reference(model, a, x)
    assert out.shape == (graph.nodes, 3)
    assert close(out, expected)
    for mine, theirs in zip(slopes(out, model), slopes(expected, model), strict=True):
        assert close(mine, theirs)


@pytest.mark.long
@pytest.mark.parametrize("where", [name for name in edge_lists() if name != "directed"])  # graph/test_direction.py
@pytest.mark.parametrize("name", CASES)
def test_takes_edge_lists(name, where):
    index, weights, nodes = edge_lists()[where]
    model, x = build(name).eval(), signal(nodes)
    assert torch.equal(model(x, index, weights), model(x, GRAPHS[where][0]))
    assert torch.equal(model(x, index, edge_weight=weights), model(x, index, weights))


@pytest.mark.parametrize("name", CASES)
def test_features_have_gradients(name):
    model, (graph, a) = build(name).eval(), GRAPHS["isolated"]
    x = signal(graph.nodes).requires_grad_()
    (mine,) = torch.autograd.grad(model(x, graph).square().sum(), x)
    (theirs,) = torch.autograd.grad(reference(model, a, x).square().sum(), x)
    assert close(mine, theirs)


@pytest.mark.parametrize("name", CASES)
def test_permuting_nodes_permutes_the_output(name):
    index, weights, nodes = edge_lists()["weighted"]
    model, x = build(name).eval(), signal(nodes)
    order = torch.randperm(nodes, generator=torch.Generator().manual_seed(3))
    moved = model(x[order], torch.argsort(order)[index], weights)
    assert close(moved, model(x, index, weights)[order])


@pytest.mark.long
@pytest.mark.parametrize("how", [us.Normalisation.RANDOM_WALK, us.Normalisation.NONE])
@pytest.mark.parametrize(
    "name", [n for n, (kind, _) in CASES.items() if kind not in (models.PPNP, *BY_EDGES)]
)  # they refuse
def test_runs_on_the_matrix_that_the_graph_holds(name, how):
    index, _, nodes = edge_lists()["isolated"]
    graph = us.Graph.from_edges(index, nodes=nodes, normalise=how).to(torch.float64)
    model, x = build(name).eval(), signal(nodes)
    assert close(model(x, graph), reference(model, graph.to_dense(), x), 1e-9)


@pytest.mark.parametrize("name", CASES)
def test_prints_its_problem(name):
    model = build(name)
    assert str(model.objective)
    assert str(model.objective) in repr(model)
    assert model.derivation
