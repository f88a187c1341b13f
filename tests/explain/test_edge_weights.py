"""The edges that a robust network lets go of."""

import json

import pytest
import torch

import unspool as us
from reference.cases import build, graphs, signal, sparse_signal
from unspool.explain import edge_weights, explain

GRAPH, A = graphs()["weighted"]


def test_a_wrong_edge_between_two_groups_is_let_go():
    """Two cliques with one edge between them, and signals far apart."""
    left = torch.combinations(torch.arange(5))
    index = torch.cat([left, left + 5, torch.tensor([[2, 7]])]).T
    graph = us.Graph.from_edges(index, nodes=10, directed=False).to(torch.float64)
    x = torch.cat([torch.zeros(5, 2), torch.full((5, 2), 4.0)]).double() + 0.1 * signal(10, 2)
    net = us.unroll(us.Fidelity(1.0) + us.EdgePenalty(us.Log(0.05), 4.0), us.Jacobi(), depth=6)
    found = edge_weights(net, x, graph)
    assert found.weights.shape == (6, 21)
    assert found.reduced(top=1)[0][:2] == (2, 7)
    assert found.cut().tolist() == [[2], [7]]
    assert found.reduced(top=1)[0][2] == pytest.approx(float(found.weights[-1].min()))
    text = str(found)
    assert "21 edges, of weight 1" in text
    assert "2 – 7" in text


@pytest.mark.parametrize("name", ["TWIRLS", "TWIRLS-capped", "TWIRLS-norm", "PGNN"])
def test_weights_are_slopes_at_what_each_layer_begins_with(name):
    model, x = build(name).eval(), signal(GRAPH.nodes)
    found = edge_weights(model, x, GRAPH)
    net = model.propagation
    with torch.no_grad():
        iterates = list(net.trace(model.p_pre(x), GRAPH))
    term = next(t for t in net.objective.terms if isinstance(t, us.EdgePenalty))
    squares = [(GRAPH.incidence() @ h).square().sum(1) for h in iterates[:-1]]
    assert torch.allclose(found.weights, torch.stack([term.penalty.slope(s) for s in squares]))
    assert torch.equal(found.edges, us.graph.edge_list(GRAPH))
    i, j = found.edges
    assert bool((A[i, j] > 0).all())
    assert bool((found.weights <= found.whole + 1e-12).all())


def test_training_mode_and_gradients_are_left_alone():
    model, x = build("TWIRLS").train(), sparse_signal(GRAPH.nodes)
    first = edge_weights(model, x, GRAPH)
    assert model.training
    assert not first.weights.requires_grad
    again = edge_weights(model.eval(), us.nn.SparseFeatures.from_tensor(x), GRAPH)
    assert torch.allclose(first.weights, again.weights)


def test_unnormalised_graphs_and_names():
    import networkx

    network = networkx.path_graph(["ada", "bob", "cyd"])
    graph = us.Graph.from_networkx(network, normalise=us.Normalisation.NONE).to(torch.float64)
    found = edge_weights(build("TWIRLS"), signal(3), graph)
    assert {found.reduced(top=1)[0][0], found.reduced(top=1)[0][1]} <= {"ada", "bob", "cyd"}


def test_networks_without_such_a_penalty_are_refused():
    with pytest.raises(us.IncompatibleError, match="APPNP weighs its edges by no EdgePenalty"):
        edge_weights(build("APPNP"), signal(GRAPH.nodes), GRAPH)
    two = us.unroll(us.Fidelity(1.0) + us.EdgePenalty(us.Log()) + us.EdgePenalty(us.Capped()), us.Jacobi(), 2)
    with pytest.raises(us.IncompatibleError, match="2 terms"):
        edge_weights(two, signal(GRAPH.nodes), GRAPH)


def test_a_graph_without_edges_has_none():
    graph = us.Graph.from_edges(torch.zeros(2, 0, dtype=torch.long), nodes=4).to(torch.float64)
    found = edge_weights(build("TWIRLS"), signal(4), graph)
    assert found.weights.shape == (4, 0)
    assert "0 edges" in str(found)


@pytest.mark.parametrize("name", ["TrustGNN", "SignedGNN"])
def test_computed_weights_are_shown_for_every_layer(name):
    model, x = build(name).eval(), signal(GRAPH.nodes)
    found = edge_weights(model, x, GRAPH)
    seen = x if name == "TrustGNN" else model.p_pre(x)
    wanted = model.propagation.computed["w"](seen, GRAPH).detach()
    assert found.weights.shape == (model.propagation.depth, us.graph.edge_list(GRAPH).shape[1])
    assert all(torch.allclose(row, wanted) for row in found.weights)
    assert found.whole == 1.0


class Signs(torch.nn.Module):
    """Weights that are given."""

    def __init__(self, weights):
        super().__init__()
        self.register_buffer("weights", torch.as_tensor(weights).double())

    def forward(self, x, graph):
        return self.weights


def test_edges_that_push_apart_are_not_taken_for_cut_ones():
    signs = us.Computed(Signs([-0.9, 0.01, 0.8, -0.02, -0.4]))
    net = us.unroll(us.Fidelity(1.0) + us.EdgeSmoothness(signs, 0.1), us.GradientDescent(), depth=2)
    found = edge_weights(net, signal(6), us.graph.path(6).to(torch.float64))
    assert found.cut().tolist() == [[1, 3], [2, 4]]
    assert [edge[:2] for edge in found.reduced(top=2)] == [(1, 2), (3, 4)]
    assert [edge[:2] for edge in found.repelling()] == [(0, 1), (4, 5), (3, 4)]
    text = str(found)
    assert "where the ends agree" not in text
    assert text.splitlines()[2].split() == ["1", "-0.102", "2", "3"]


@pytest.mark.parametrize("adjoint", ["fixed point", "exact"])
def test_a_network_that_jumps_shows_the_weights_where_it_arrives(adjoint):
    objective = us.Fidelity(1.0) + us.EdgePenalty(us.Power(1.0, smoothing=0.1), 2.0)
    net = (
        us.unroll(objective, us.Exact())
        if adjoint == "exact"
        else us.unroll(objective, us.Jacobi(), depth=3, adjoint=us.FixedPoint())
    )
    x = signal(GRAPH.nodes)
    found = edge_weights(net, x, GRAPH)
    squares = (GRAPH.incidence() @ net(x, GRAPH)).square().sum(1)
    assert torch.allclose(found.weights, us.Power(1.0, smoothing=0.1).slope(squares)[None])


@pytest.mark.parametrize("name", ["TWIRLS", "SignedGNN", "APPNP"])
def test_an_explanation_shows_how_much_the_edges_of_its_node_count(name):
    model, x, node = build(name).eval(), signal(GRAPH.nodes), 3
    found = explain(model, x, GRAPH, node)
    if name == "APPNP":
        assert found.edges is None
        assert "its edges count" not in str(found)
        return
    every = edge_weights(model, x, GRAPH)
    here = (every.edges == node).any(0)
    wanted = dict(zip(every.edges[:, here].sum(0).sub(node).tolist(), every.weights[-1, here].tolist(), strict=True))
    told = {int(row["name"]): row["weight"] for row in json.loads(found.to_json())["edge_weights"]}
    assert told == pytest.approx(wanted)
    assert set(told) == set(A[node].nonzero().flatten().tolist()) - {node}
    assert list(told.values()) == sorted(told.values())
    assert f"({len(wanted)} of {len(wanted)}, {found.edges.cut().shape[1]} let go; 1 is a whole one" in str(found)
