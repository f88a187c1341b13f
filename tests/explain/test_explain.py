"""Everything around the split: what changed, features, odd nodes and models, text, JSON, memory."""

import json
import math

import networkx
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import unspool as us
from reference.cases import CASES, build, edge_lists, graphs, signal, sparse_signal
from unspool.explain import Against, Outputs, explain, find_node
from unspool.explain.explaining import run_propagation

GRAPHS = graphs()


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CASES if name != "FairGNN"])  # its groups reach beyond edges
def test_without_neighbours_means_with_all_edges_cut(name):
    model, (index, _, nodes), node = build(name).eval(), edge_lists()["isolated"], 3
    graph, x = GRAPHS["isolated"][0], signal(nodes)
    found = explain(model, x, graph, node)
    kept = index[:, ((index != node).all(0)) | (index[0] == index[1])]
    cut = us.Graph.from_edges(kept, nodes=nodes).to(torch.float64)
    assert torch.allclose(found.change.alone, model(x, cut)[node], atol=1e-8)
    with torch.no_grad():
        z = model.p_pre(x)
        h = run_propagation(model.propagation, z, graph, x)
    assert torch.equal(found.change.before, z[node])
    assert torch.equal(found.change.after, h[node])
    if found.change.comparable:
        assert found.change.distance == pytest.approx(float((z - h)[node].norm()), abs=1e-12)
        cosine = torch.nn.functional.cosine_similarity(z[node], h[node], dim=0)
        assert found.change.cosine == pytest.approx(float(cosine), abs=1e-10)
    else:
        assert name.startswith(("GCN", "JKNet-concatenate"))
        assert "change the width" in str(found)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CASES if name != "FairGNN"])
def test_an_isolated_node_has_only_itself(name):
    model, (graph, _) = build(name), GRAPHS["isolated"]
    node = graph.nodes - 1
    found = explain(model, signal(graph.nodes), graph, node)
    assert found.split.nodes.tolist() == [node]
    assert found.degree == 0
    assert found.parts.neighbours == 0
    assert torch.allclose(found.change.alone, found.score.outputs, atol=1e-9)
    assert "no neighbours" in str(found)
    assert "no other node contributes" in str(found)
    if found.response is not None and found.split.by_hop is not None:
        # A = 1 at an isolated node: the network does to it what it does to frequency zero.
        assert found.parts.own + found.parts.bias == pytest.approx(found.score.value, abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("name", ["SGC", "APPNP", "PPNP", "AirGNN"])
@pytest.mark.parametrize("where", ["small", "weighted", "isolated"])
def test_shares_of_all_nodes_sum_to_the_objective(name, where):
    model, (graph, _) = build(name).eval(), GRAPHS[where]
    x = signal(graph.nodes)
    with torch.no_grad():
        z = model.p_pre(x)
        h = run_propagation(model.propagation, z, graph, x)
        found = [explain(model, x, graph, node).terms for node in range(graph.nodes)]
        before, after = (float(model.objective.value(at, z, graph)) for at in (z, h))
    assert [t.term for t in found[0]] == [t.formula() for t in model.objective.terms]
    assert sum(t.before for terms in found for t in terms) == pytest.approx(before, rel=1e-10)
    assert sum(t.after for terms in found for t in terms) == pytest.approx(after, rel=1e-10)
    assert all(t.after >= 0 for terms in found for t in terms)


def test_objectives_without_known_numbers_have_no_shares():
    graph, x = us.testing.small_graph(), signal(12)
    for name in ("GCNII", "UGDGNN", "UGDGNN-general", "GCN"):
        assert explain(build(name), x, graph, 0).terms == ()
    directed = GRAPHS["directed"][0]
    assert explain(build("APPNP"), signal(13), directed, 0).terms == ()


@pytest.mark.parametrize("name", ["APPNP", "PPNP", "UGDGNN", "JKNet", "GCN", "DAGNN", "SGC-pos", "MLP"])
@pytest.mark.parametrize("dense", [True, False])
def test_features_sum_to_the_own_part(name, dense):
    model, graph = build(name).eval(), us.testing.small_graph()
    x, node = sparse_signal(12), 4
    given = x if dense else x.to_sparse()
    found = explain(model, given, graph, node, feature_names=[f"word {i}" for i in range(6)])
    shares = found.features
    assert shares.columns.tolist() == x[node].nonzero().flatten().tolist()
    assert torch.equal(shares.values, x[node][shares.columns])
    assert float(shares.shares.sum()) + shares.rest == pytest.approx(found.parts.own, abs=1e-10)
    if name in ("APPNP", "SGC-pos", "PPNP", "GCN"):  # encoders without biases
        assert abs(shares.rest) < 1e-10
    assert shares.names == tuple(f"word {i}" for i in shares.columns)
    with torch.no_grad():  # the derivative through the encoder, by a small move of one feature
        column, step = int(shares.columns[0]), 1e-6
        ends = []
        for sign in (1, -1):
            moved = x[node].clone()
            moved[column] *= 1 + sign * step
            ends.append(float(model.p_pre(moved[None])[0] @ found.split.slope))
    assert float(shares.shares[0]) == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6)


def test_a_node_without_features_is_no_trouble():
    model, graph = build("APPNP"), us.testing.small_graph()
    found = explain(model, sparse_signal(12), graph, 1)
    assert found.features.columns.numel() == 0
    assert found.change.cosine is None
    assert found.parts.own == 0
    assert "not zero" not in str(found)
    json.loads(found.to_json())


@pytest.mark.parametrize("name", ["UGDGNN", "PPNP", "GCN", "SGC-pos"])
def test_sparse_features_and_edge_lists_give_the_same(name):
    model, (index, _, nodes) = build(name), edge_lists()["karate"]
    x, graph = sparse_signal(nodes), GRAPHS["karate"][0]
    plain, sparse = explain(model, x, graph, 33), explain(model, x.to_sparse(), index, 33)
    assert torch.allclose(plain.split.total, sparse.split.total, atol=1e-12)
    assert torch.equal(plain.split.nodes, sparse.split.nodes)
    assert torch.allclose(plain.features.shares, sparse.features.shares, atol=1e-12)


@pytest.mark.parametrize("where", ["directed", "karate", "isolated"])
def test_distances_are_shortest_ways(where):
    index, _, nodes = edge_lists()[where]
    network = networkx.DiGraph(index.flip(0).T.tolist())  # from a node to those it sees
    found = explain(build("SGC", depth=6), signal(nodes), GRAPHS[where][0], 5)
    ways = networkx.single_source_shortest_path_length(network, 5)
    assert dict(zip(found.split.nodes.tolist(), found.distance.tolist(), strict=True)) == ways
    assert found.degree == sum(d == 1 for d in ways.values())
    assert sum(found.by_distance.values()) == pytest.approx(float(found.split.total.sum()), abs=1e-12)


def test_one_output_is_a_number_or_two_classes():
    graph, x = us.testing.small_graph(), signal(12)
    torch.manual_seed(0)
    for kind in (us.models.UGDGNN, us.models.PPNP, us.models.GCN, us.models.SGC):
        model = kind(6, 1).double().eval()
        found = explain(model, x, graph, 2)
        output = float(model(x, graph)[2, 0].detach())
        assert found.score.value == pytest.approx(output, abs=1e-12)
        assert found.score.probabilities is None
        assert "predicted" not in str(found).replace("predicted as", "")
        assert "explained: the output =" in str(found)
        two = explain(model, x, graph, 2, classes=("no", "yes"), labels=torch.ones(12, dtype=torch.int64))
        assert two.score.names[two.score.predicted] == ("yes" if output > 0 else "no")
        assert float(two.score.probabilities[1]) == pytest.approx(1 / (1 + math.exp(-output)), abs=1e-12)
        assert "true label yes" in str(two)
        with pytest.raises(ValueError, match="one output"):
            explain(model, x, graph, 2, against=Against.RUNNER_UP)


def test_several_numbers_are_no_classes():
    graph, x, model = us.testing.small_graph(), signal(12), build("GPRGNN").eval()
    outputs = model(x, graph)[5].detach()
    for target in (None, 2):
        found = explain(model, x, graph, 5, target=target, outputs=Outputs.NUMBERS)
        assert found.score.value == pytest.approx(float(outputs[target or 0]), abs=1e-12)
        assert "predicted" not in str(found)
        assert found.record()["predicted"] is None
    lead = explain(model, x, graph, 5, target=2, against=1, outputs=Outputs.NUMBERS)
    assert lead.score.value == pytest.approx(float(outputs[2] - outputs[1]), abs=1e-12)
    with pytest.raises(ValueError, match="no runner-up"):
        explain(model, x, graph, 5, against=Against.RUNNER_UP, outputs=Outputs.NUMBERS)


def test_nodes_by_name():
    graph = us.Graph.from_networkx(networkx.path_graph(["ada", "bob", "cem", "dee"])).to(torch.float64)
    found = explain(build("SGC"), signal(4), graph, "cem", classes=("red", "green", "blue"))
    assert (found.node, found.name) == (2, "cem")
    assert "bob" in str(found)
    assert found.record()["nodes"][0]["name"] == "cem"
    with pytest.raises(ValueError, match=r"no node is called 'bop'; the nearest name is 'bob'"):
        explain(build("SGC"), signal(4), graph, "bop")


@pytest.mark.parametrize(
    ("node", "names", "message"),
    [
        (12, None, "no node 12: nodes are counted from 0 to 11"),
        (-1, None, "no node -1"),
        (True, None, "no node True"),
        (1.5, None, "no node 1.5"),
        ("12", None, "no node 12"),
        ("x", None, "nodes have no names here, only numbers from 0 to 11"),
        ("3", [str(10 * i) for i in range(12)], "no node is called '3'; the nearest name"),
        ("qqq", [f"node-{i}" for i in range(12)], "names look like 'node-0', 'node-1', 'node-2'"),
    ],
)
def test_bad_nodes_are_one_sentence(node, names, message):
    with pytest.raises(ValueError, match=message):
        find_node(node, 12, names)


def test_numbers_stand_for_places_where_names_are_words():
    assert find_node("3", 12, [f"node-{i}" for i in range(12)]) == 3
    assert find_node("30", 12, [str(10 * i) for i in range(12)]) == 3
    assert find_node(("a", 1), 2, [("b", 0), ("a", 1)]) == 1


def test_what_does_not_fit_is_refused():
    model, graph, x = build("APPNP"), us.testing.small_graph(), signal(12)
    with pytest.raises(us.InputError) as caught:
        explain(model, x, graph, 0, target=1, against=1)
    assert (caught.value.argument, caught.value.value) == ("against", 1)
    single = us.models.SGC(6, 1).double()
    for given in ({"against": 0}, {"target": 1}):
        with pytest.raises(us.InputError) as caught:
            explain(single, x, graph, 0, **given)
        assert caught.value.argument == next(iter(given))
    with pytest.raises(ValueError, match="against=7: expected the number of an output, counted from 0 to 2"):
        explain(model, x, graph, 0, against=7)
    with pytest.raises(ValueError, match="2 names of classes for a model with 3 outputs"):
        explain(model, x, graph, 0, classes=("a", "b"))
    with pytest.raises(ValueError, match="one signal is explained at a time"):
        explain(model, x[None], graph, 0)
    with pytest.raises(ValueError, match="expected one class per node"):
        explain(model, x, graph, 0, labels=torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ValueError, match="rows"):
        explain(model, x[:5], graph, 0)
    broken = build("GCN")
    with torch.no_grad():
        broken.p_pre.layers[0].weight[0] = torch.nan
    with pytest.raises(ValueError, match=r"p_pre\.layers\.0\.weight is not finite: training has diverged"):
        explain(broken, x, graph, 0)
    with torch.no_grad():
        huge = build("SGC")
        huge.p_pre.weight.fill_(1e308)
    with pytest.raises(ValueError, match="finite"):
        explain(huge, x.abs() + 10, graph, 0)


def test_a_model_that_computes_something_else_is_refused():
    class Doubling(us.models.APPNP):
        def forward(self, x, graph, edge_weight=None):
            return 2 * super().forward(x, graph, edge_weight)

    with pytest.raises(us.IncompatibleError, match=r"something else than p_pos\(propagation\(p_pre\(x\)\)\)"):
        explain(Doubling(6, 3).double(), signal(12), us.testing.small_graph(), 0)


@pytest.mark.parametrize("name", ["UGDGNN", "PPNP", "GCN-batch-norm"])
def test_the_model_is_left_as_it_was(name):
    model, graph, x = build(name).train(), us.testing.small_graph(), signal(12)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    first = explain(model, x, graph, 0)
    assert all(module.training for module in model.modules())
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    with torch.no_grad():
        again = explain(model, x, graph, 0)
    assert torch.equal(first.split.total, again.split.total)
    assert torch.equal(first.score.outputs, model.eval()(x, graph)[0].detach())


@pytest.mark.long
@pytest.mark.parametrize("name", list(CASES))
def test_text_and_json_of_every_model(name):
    model, (graph, _) = build(name), GRAPHS["karate"]
    labels = torch.arange(graph.nodes) % 4 - 1
    found = explain(model, signal(graph.nodes), graph, 33, classes=("red", "green", "blue"), labels=labels)
    text = found.describe(top=5)
    assert text.startswith(f"{type(model).__name__} at node 33, which has 17 neighbours")
    assert str(model.objective) in text
    assert "true label red" in text
    reached = len(found.split.nodes)
    assert (f"{min(5, reached - 1)} of {reached - 1}" in text) or reached == 1
    held = json.loads(found.to_json(top=5))
    assert held["classes"][held["predicted"]] in text
    assert len(held["nodes"]) == min(6, reached)
    everything = json.loads(found.to_json())
    total = sum(node["contribution"] for node in everything["nodes"])
    parts = everything["parts"]
    assert total + parts["bias"] + parts["remainder"] == pytest.approx(everything["score"], abs=1e-9)
    assert everything["all_other_nodes"] == pytest.approx(0, abs=1e-9)
    if everything["hops"] is not None:
        assert sum(h["contribution"] for h in everything["hops"]) == pytest.approx(total, abs=1e-9)
        assert sum(everything["nodes"][0]["by_hop"]) == pytest.approx(parts["own"], abs=1e-9)


def test_the_recorded_steps_are_the_network():
    """α alone does not say what a layer does: the record has β beside it."""
    gamma = [0.484, 0.360, -0.131, 0.287]
    model = us.models.GPRGNN(6, 3, depth=3, start=us.models.HopStart.WARM, warm=gamma).double()
    told = explain(model, signal(12).double(), us.testing.small_graph().to(torch.float64), 0).record()
    h = [1.0]
    for alpha, beta in zip(told["steps"], told["steps_beta"], strict=True):
        h = [(1 - alpha - beta) * a + beta * b for a, b in zip([*h, 0.0], [0.0, *h], strict=True)]
        h[0] += alpha
    assert h == pytest.approx(gamma, abs=1e-6)


def test_the_response_and_the_steps_are_those_of_the_network():
    graph, x = us.testing.small_graph(), signal(12)
    found = explain(build("PPNP"), x, graph, 0)
    where = torch.linspace(0, 2, 5, dtype=torch.float64)
    assert torch.allclose(found.response(where), 0.2 / (0.2 + 0.8 * where))
    assert found.bands["low"] > found.bands["middle"] > found.bands["high"]
    assert found.layers is None
    assert found.layers_note == ""
    appnp = explain(build("APPNP"), x, graph, 0)
    assert [layer.alpha for layer in appnp.layers.layers] == pytest.approx([0.2] * 4)
    assert "4 × (α 0.2, β 0.8)" in str(appnp)
    high = us.models.GPRGNN(6, 3, depth=1, start=us.models.HopStart.WARM, warm=[1.0, -1.0]).double()
    refused = explain(high, x, graph, 0)
    assert "a pure high-pass" in str(refused)
    curved = explain(build("GCN"), x, graph, 0)
    assert curved.response is None
    assert "can only be measured" in str(curved)
    directed = explain(build("GPRGNN"), signal(13), GRAPHS["directed"][0], 0)
    assert directed.response is None
    assert "no frequencies" in str(directed)


class Largest(TorchDispatchMode):
    """Remembers the most elements that any tensor had."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.numel())
        return made


@pytest.mark.long
@pytest.mark.parametrize("kind", [us.models.UGDGNN, us.models.PPNP, us.models.GCN, us.models.AirGNN])
def test_nothing_grows_faster_than_nodes_and_edges(kind):
    nodes, width = 50_000, 4
    random = torch.Generator().manual_seed(0)
    edges = torch.randint(nodes, (2, 2 * nodes), generator=random).unique(dim=1)
    graph = us.Graph.from_edges(edges, nodes, directed=False)
    x = torch.randn(nodes, 8, generator=random)
    model = kind(8, 3, hidden=width)
    graph.to(torch.float64)
    with Largest() as seen:
        found = explain(model, x, graph, 17)
    # 16 columns of a padded product are the widest that is made; n × n would be 2.5e9.
    assert seen.elements <= 16 * nodes
    assert found.split.nodes.numel() <= nodes
    assert abs(found.parts.remainder) < 1e-4 or kind in (us.models.GCN, us.models.AirGNN)
