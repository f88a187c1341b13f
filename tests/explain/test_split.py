"""Contributions of hops and nodes: against dense references, against cutting, against small moves."""

import pytest
import torch

import unspool as us
from reference.cases import CASES, build, converted_models, doubles, edge_lists, graphs, signal
from unspool.explain import Against, Method, explain
from unspool.explain.explaining import run_propagation

pytestmark = pytest.mark.long


LINEAR = [
    name
    for name in CASES
    if name.split("-")[0] in ("SGC", "PPNP", "APPNP", "GPRGNN", "UGDGNN", "MLP", "GNNLF", "GNNHF", "GRAFF")
    or name in ("JKNet", "JKNet-classes")
]
CURVED = [name for name in CASES if name not in LINEAR]
GRAPHS = graphs()
ONE_WAY = ("PPNP", "PPNP-tolerance")  # need an undirected graph


def exact(name):
    """Models whose own solve is as exact as the split."""
    return (build(name, tolerance=1e-14) if name.startswith("PPNP") else build(name)).eval()


def cases(names):
    return [(n, g) for n in names for g in ("weighted", "directed", "karate") if not (n in ONE_WAY and g == "directed")]


def parts_of(model, graph, x):
    model.eval()
    with torch.no_grad():
        z = model.p_pre(x)
        return z, run_propagation(model.propagation, z, graph.with_general_laplacian(), x)


def score_of(model, graph, z, node, target, x=None):
    with torch.no_grad():
        h = run_propagation(model.propagation, z, graph.with_general_laplacian(), x)
        return float(model.p_pos(h)[node, target])


@pytest.mark.parametrize(("name", "where"), cases(LINEAR))
def test_contributions_of_linear_models_sum_to_the_output(name, where):
    model, (graph, _) = exact(name), GRAPHS[where]
    x = signal(graph.nodes)
    for node in (0, graph.nodes // 2, graph.nodes - 1):
        found = explain(model, x, graph, node)
        outputs = model(x, graph)[node].detach()
        assert found.split.method is Method.EXACT
        assert torch.equal(found.score.outputs, outputs)
        assert found.score.target == int(outputs.argmax())
        total = float(found.split.by_hop.sum()) + found.split.bias
        assert total == pytest.approx(float(outputs.max()), abs=1e-10)
        assert float(found.split.total.sum()) + found.split.bias == pytest.approx(total, abs=1e-12)
        assert abs(found.parts.remainder) < 1e-10
        assert found.parts.total == pytest.approx(float(outputs.max()), abs=1e-12)


@pytest.mark.parametrize("name", list(converted_models()))
def test_models_made_from_others_are_split_too(name):
    model, (graph, _) = converted_models()[name], GRAPHS["weighted"]
    found = explain(model, signal(graph.nodes), graph, 3)
    assert found.split.method is Method.EXACT
    assert abs(found.parts.remainder) < 1e-10


def dense_hops(model):
    """The coefficients as the formulas have them, one matrix per hop."""
    width = model.p_pre(torch.zeros(1, model.in_features, dtype=torch.float64)).shape[1]
    eye, inner = torch.eye(width, dtype=torch.float64), model.propagation
    if isinstance(model, us.models.SGC):
        c = [0.0] * model.settings["depth"] + [1.0]
        return torch.stack([k * eye for k in c])
    if isinstance(model, us.models.APPNP):
        a, depth = model.settings["teleport"], model.settings["depth"]
        return torch.stack([a * (1 - a) ** k * eye for k in range(depth)] + [(1 - a) ** depth * eye])
    if isinstance(model, us.models.UGDGNN):
        xi = 1 - inner.zeta if inner.xi is None else inner.xi
        return torch.stack(
            [g * (z * eye + s * w) for g, z, s, w in zip(inner.gamma, inner.zeta, xi, inner.weight, strict=True)]
        )
    c = inner.coefficients
    return c if c.ndim == 3 else torch.stack([k * eye for k in c])


def dense_polynomials(a, count, chebyshev):
    eye = torch.eye(len(a), dtype=a.dtype)
    made = [eye, a]
    while len(made) < count:
        made.append(2 * a @ made[-1] - made[-2] if chebyshev else a @ made[-1])
    return made[:count]


HOPS = ("SGC", "SGC-pos", "APPNP", "JKNet", "GPRGNN-warm", "UGDGNN", "UGDGNN-hidden-free", "UGDGNN-chebyshev")


@pytest.mark.parametrize("name", HOPS)
@pytest.mark.parametrize("where", ["weighted", "directed"])
def test_each_hop_and_node_is_the_entry_of_the_dense_formula(name, where):
    model, (graph, a) = build(name), GRAPHS[where]
    x, node = signal(graph.nodes), 4
    z, _ = parts_of(model, graph, x)
    found = explain(model, x, graph, node, target=1)
    with torch.no_grad():
        c = dense_hops(model)
        zero = torch.zeros(1, c.shape[-1], dtype=torch.float64)
        for k, p in enumerate(dense_polynomials(a, len(c), name.endswith("chebyshev"))):
            carried = p[node][:, None] * (z @ c[k])
            expected = (model.p_pos(carried) - model.p_pos(zero))[:, 1]
            mine = torch.zeros(graph.nodes, dtype=torch.float64)
            mine[found.split.nodes] = found.split.by_hop[k]
            assert torch.allclose(mine, expected, atol=1e-12), k


@pytest.mark.parametrize(
    ("name", "where"), [(n, "isolated") for n in LINEAR] + [("PPNP", "karate"), ("JKNet", "directed")]
)
def test_a_contribution_is_what_the_output_loses_without_the_node(name, where):
    model, (graph, _) = exact(name), GRAPHS[where]
    x, node = signal(graph.nodes), 2
    found = explain(model, x, graph, node)
    z, _ = parts_of(model, graph, x)
    for p, j in enumerate(found.split.nodes.tolist()):
        without = z.clone()
        without[j] = 0
        lost = found.score.value - score_of(model, graph, without, node, found.score.target)
        assert float(found.split.total[p]) == pytest.approx(lost, abs=1e-10)
    without = z.clone()
    without[found.split.nodes] = 0
    rest = score_of(model, graph, without, node, found.score.target)
    assert found.split.bias == pytest.approx(rest, abs=1e-10)


@pytest.mark.parametrize("name", CURVED)
def test_first_order_contributions_are_derivatives(name):
    model, (graph, _) = build(name), GRAPHS["weighted"]
    x, node, step = signal(graph.nodes), 5, 1e-6
    found = explain(model, x, graph, node)
    assert found.split.method is Method.FIRST_ORDER
    assert "not linear" in str(found)
    assert "first order" in str(found)
    z, _ = parts_of(model, graph, x)
    mine = torch.zeros(graph.nodes, dtype=torch.float64)
    mine[found.split.nodes] = found.split.total
    for j in range(graph.nodes):
        move = torch.zeros_like(z)
        move[j] = step * z[j]
        up, down = (score_of(model, graph, z + s * move, node, found.score.target, x) for s in (1, -1))
        assert float(mine[j]) == pytest.approx((up - down) / (2 * step), abs=1e-7)
    assert found.parts.total == pytest.approx(found.score.value, abs=1e-12)
    assert found.parts.remainder == pytest.approx(found.score.value - float(mine.sum()), abs=1e-12)


def test_relu_networks_without_biases_have_no_remainder_and_others_do():
    graph, _ = GRAPHS["karate"]
    x = signal(graph.nodes)
    assert abs(explain(build("GCN-no-bias"), x, graph, 0).parts.remainder) < 1e-12
    assert abs(explain(build("GCN"), x, graph, 0).parts.remainder) > 1e-3


@pytest.mark.parametrize("name", [n for n in LINEAR if n != "MLP"])
def test_fidelity_is_what_a_graph_without_any_entry_leaves(name):
    model, (graph, _) = exact(name), GRAPHS["weighted"]
    x, node = signal(graph.nodes), 7
    found = explain(model, x, graph, node)
    z, _ = parts_of(model, graph, x)
    empty = us.Graph.from_edges(torch.zeros(2, 0, dtype=torch.int64), nodes=graph.nodes, loops=0.0).to(torch.float64)
    left = score_of(model, empty, z, node, found.score.target) - found.split.bias
    parts = found.parts
    assert parts.fidelity == pytest.approx(left, abs=1e-10)
    assert parts.fidelity + parts.returned + parts.neighbours + parts.bias == pytest.approx(
        found.score.value, abs=1e-10
    )
    assert parts.smoothness == pytest.approx(parts.returned + parts.neighbours, abs=1e-12)


@pytest.mark.parametrize("name", ["APPNP", "PPNP"])
def test_fidelity_and_smoothness_are_the_two_halves_of_the_last_step(name):
    model, (graph, a) = exact(name), GRAPHS["karate"]
    x, node, share = signal(graph.nodes), 9, 0.2
    found = explain(model, x, graph, node)
    z, h = parts_of(model, graph, x)
    before = h
    if name == "APPNP":  # H⁽ᴷ⁾ = (1−α) A H⁽ᴷ⁻¹⁾ + α Z
        before = z
        for _ in range(model.settings["depth"] - 1):
            before = (1 - share) * a @ before + share * z
    c = found.score.target
    assert found.parts.fidelity == pytest.approx(float(share * z[node, c]), abs=1e-10)
    assert found.parts.smoothness == pytest.approx(float((1 - share) * (a @ before)[node, c]), abs=1e-10)


@pytest.mark.parametrize("name", ["UGDGNN", "PPNP", "GCN", "DAGNN"])
def test_the_lead_over_another_class_is_the_difference_of_two_explanations(name):
    model, (graph, _) = exact(name), GRAPHS["small"]
    x = signal(graph.nodes)
    first, second = (explain(model, x, graph, 1, target=c) for c in (2, 0))
    both = explain(model, x, graph, 1, target=2, against=0)
    assert both.score.value == pytest.approx(first.score.value - second.score.value, abs=1e-12)
    assert torch.allclose(both.split.total, first.split.total - second.split.total, atol=1e-12)
    outputs = model(x, graph)[1]
    next_best = explain(model, x, graph, 1, against=Against.RUNNER_UP)
    assert [next_best.score.target, next_best.score.against] == outputs.argsort(descending=True)[:2].tolist()
    assert next_best.score.value > 0


@pytest.mark.parametrize("name", ["SGC", "PPNP", "UGDGNN-hidden", "GCN", "AirGNN"])
def test_renaming_nodes_renames_the_explanation(name):
    model, (graph, _), (index, weights, nodes) = exact(name), GRAPHS["weighted"], edge_lists()["weighted"]
    order = torch.randperm(nodes, generator=torch.Generator().manual_seed(3))
    x, place = signal(nodes), torch.argsort(order)
    moved = us.Graph.from_edges(place[index], nodes, weights).to(torch.float64)
    here, there = explain(model, x, graph, 6), explain(model, x[order], moved, int(place[6]))
    total = torch.zeros(2, graph.nodes, dtype=torch.float64)
    total[0, here.split.nodes] = here.split.total
    total[1, order[there.split.nodes]] = there.split.total
    assert torch.allclose(total[0], total[1], atol=1e-10)
    far = torch.full((2, graph.nodes), -2)
    far[0, here.split.nodes] = here.distance
    far[1, order[there.split.nodes]] = there.distance
    assert torch.equal(far[0], far[1])
    assert here.parts.own == pytest.approx(there.parts.own, abs=1e-10)


def test_bare_networks_of_every_kind():
    with doubles():
        weight = torch.randn(3, 3)
        metric = us.Fixed(weight @ weight.T + torch.eye(3))
        nets = {
            "polynomial": us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7), us.Accelerated(), depth=6),
            "stored": us.unroll(
                us.Fidelity(0.3) + us.Smoothness(0.7), us.GradientDescent(step=0.5), 4, adjoint=us.Stored()
            ),
            "diagonals": us.HopNetwork(torch.randn(4, 3)),
            "widening": us.HopNetwork(torch.randn(4, 3, 5)),
            "minimiser": us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7), us.Exact(1e-14)),
            "matrices": us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7, metric=metric), us.Exact(1e-14)),
        }
    plain = us.graph.grid(3, 4, normalise=us.Normalisation.NONE).to(torch.float64)
    for name, net in nets.items():
        for graph in (us.testing.small_graph(), plain):
            found = explain(net, signal(12, 3), graph, 5)
            assert found.split.method is Method.EXACT, name
            assert abs(found.parts.remainder) < 1e-9, name
            assert (found.split.by_hop is None) == (name == "matrices")


def test_decoders_that_are_not_linear_and_foreign_starts_are_said():
    graph, x = us.testing.small_graph(), signal(12)
    model = build("APPNP")
    model.p_pos = torch.nn.Softplus()
    found = explain(model, x, graph, 0)
    assert found.split.method is Method.FIRST_ORDER
    assert "the decoder Softplus is not linear" in str(found)
    start = torch.ones(12, 6, dtype=torch.float64)
    net = us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7), us.GradientDescent(step=0.5), depth=3, start=start)
    found = explain(net.double(), x, graph, 0, target=0)
    constant = float(net(torch.zeros_like(x), graph)[0, 0])
    assert found.parts.remainder == pytest.approx(constant, abs=1e-12)
    assert "starts at a tensor of its own" in str(found)
    assert found.change.alone is None
    assert found.record()["change"]["outputs_without_neighbours"] is None


def test_single_precision_is_split_in_double():
    graph, x = us.graph.grid(6, 6), signal(36).float()
    torch.manual_seed(1)
    model = us.models.UGDGNN(6, 3, depth=10)
    found = explain(model, x, graph, 8)
    assert found.split.total.dtype == torch.float64
    assert abs(found.parts.remainder) < 1e-6
