"""What models of later papers do beyond the laws of all models: other graphs, exact minimisers, groups, starts."""

import pytest
import torch

import unspool as us
from reference.cases import build, edge_lists, graphs, signal
from unspool import models

pytestmark = pytest.mark.long

GRAPH, A = graphs()["weighted"]
N = GRAPH.nodes
L = torch.eye(N, dtype=torch.float64) - A
X = signal(N)


def bare(name="isolated"):
    """The same edges, not normalised and without loops."""
    index, _, nodes = edge_lists()[name]
    index = index[:, index[0] != index[1]]
    graph = us.Graph.from_edges(index, nodes=nodes, normalise=us.Normalisation.NONE, loops=0).to(torch.float64)
    return graph, graph.to_dense()


def test_twirls_is_its_authors_layer_on_a_graph_that_is_not_normalised():
    graph, a = bare()
    model = build("TWIRLS").eval()
    s, x = model.settings, signal(graph.nodes)
    h = z = model.p_pre(x)
    for _ in range(s["depth"]):
        gamma = a / (1 + (h[:, None] - h[None]).square().sum(-1) / s["threshold"])
        scale = s["smoothness"] * gamma.sum(1, keepdim=True) + 1
        h = (1 - s["step"]) * h + s["step"] * (s["smoothness"] * gamma @ h + z) / scale
    assert torch.allclose(model(x, graph), h, atol=1e-10)


@pytest.mark.parametrize("name", ["ElasticGNN", "SignedGNN"])
def test_fixed_steps_are_refused_on_a_graph_that_is_not_normalised(name):
    graph, _ = bare()
    with pytest.raises(us.IncompatibleError, match=r"build it with Normalisation\.SYMMETRIC"):
        build(name)(signal(graph.nodes), graph)


@pytest.mark.parametrize("name", ["ElasticGNN", "PGNN", "TWIRLS", "SignedGNN"])
def test_directed_graphs_are_refused_in_one_sentence(name):
    chain = us.Graph.from_edges(torch.tensor([[0, 1], [1, 2]]), nodes=3, directed=True).to(torch.float64)
    with pytest.raises(us.IncompatibleError, match=r"this graph is directed, .*; build it without directed=True"):
        build(name)(signal(3), chain)


@pytest.mark.parametrize("name", ["GNNLF", "GNNHF", "GRAFF", "GRAFF-untied"])
def test_linear_ones_run_as_one_polynomial(name):
    assert isinstance(build(name).propagation.adjoint, us.Polynomial)


def test_closed_forms():
    low, high = build("GNNLF").eval(), build("GNNHF").eval()
    mu, alpha = low.settings["mu"], low.settings["teleport"]
    fidelity = mu * torch.eye(N).double() + (1 - mu) * A
    closed = torch.linalg.solve(fidelity + (1 / alpha - 1) * L, fidelity @ low.p_pre(X))
    assert torch.allclose(low.solve_exactly()(X, GRAPH), closed, atol=1e-8)
    beta, alpha = high.settings["beta"], high.settings["teleport"]
    z = high.p_pre(X)
    inner = alpha * torch.eye(N).double() + (alpha * beta + 1 - alpha) * L
    closed = alpha * torch.linalg.solve(inner, z + beta * L @ z)
    assert torch.allclose(high.solve_exactly()(X, GRAPH), closed, atol=1e-8)


def test_elastic_layers_reach_the_minimiser_that_is_solved_for():
    model = build("ElasticGNN", depth=2000).eval()
    deep = model(X, GRAPH)
    assert torch.allclose(model.solve_exactly()(X, GRAPH), deep, atol=1e-6)


def test_graff_starts_as_the_heat_flow():
    torch.manual_seed(0)
    model = models.GRAFF(6, 3, hidden=4, depth=3, step=0.4).double().eval()
    z = model.p_pre(X)
    h = z
    for _ in range(3):
        h = h - 0.4 * (h - A @ h)
    assert torch.allclose(model.propagation(z, GRAPH), h, atol=1e-12)


def test_groups_come_closer_as_their_weight_grows():
    x = X.clone()
    x[:, 2] = (torch.arange(N) % 2).double()
    gaps = []
    for weight in (0.0, 0.5, 20.0):
        torch.manual_seed(0)
        model = models.FairGNN(6, 3, lambda1=weight, lambda2=0.5, group=2, depth=200).double().eval()
        p = model(x, GRAPH).detach().softmax(-1)
        first = x[:, 2] > 0
        gaps.append(float((p[first].mean(0) - p[~first].mean(0)).abs().sum()))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.2 * gaps[0]


def test_groups_that_are_missing_are_named():
    with pytest.raises(us.InputError, match="from 0 to 5"):
        models.FairGNN(6, 3, group=6)
    model = models.FairGNN(6, 3, group=1).double()
    lone = X.clone()
    lone[:, 1] = -1.0
    for x in (lone, us.nn.SparseFeatures.from_tensor(lone)):
        with pytest.raises(
            us.InputError, match="positive at some nodes and not at others; put the sensitive attribute"
        ):
            model(x, GRAPH)


def test_signs_do_not_depend_on_the_order_of_ends_and_can_be_negative():
    model = build("SignedGNN").eval()
    score = model.propagation.computed["w"]
    z = model.p_pre(X).detach()
    order = torch.arange(N - 1, -1, -1)
    turned = us.graph.permuted(GRAPH, order)
    mine = {
        (int(i), int(j)): w for (i, j), w in zip(us.graph.edge_list(GRAPH).T, score(z, GRAPH).tolist(), strict=True)
    }
    for (i, j), w in zip(us.graph.edge_list(turned).T, score(z[order], turned).tolist(), strict=True):
        ends = sorted((int(order[i]), int(order[j])))
        assert mine[tuple(ends)] == pytest.approx(w)
    assert all(-1 < w < 1 for w in mine.values())


@pytest.mark.parametrize("kind", [models.GNNHF, models.TWIRLS, models.SignedGNN, models.FairGNN])
def test_trials_with_other_settings_train_in_one_study(kind):
    data = us.datasets.contextual_sbm(nodes=40, classes=2, seed=0)
    name = {"GNNHF": "beta", "TWIRLS": "smoothness", "SignedGNN": "alpha", "FairGNN": "lambda1"}[kind.__name__]
    space = us.study.grid(kind, seed=range(2), epochs=3, hidden=4, depth=2, **{name: [0.5, 1.0]})
    found = us.study.run(space, data, device="cpu")
    assert len(found.rows) == 4
    assert all(row.result.valid_loss is not None for row in found.rows)
