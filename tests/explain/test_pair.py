"""Explanations of pairs: both sides sum to the score, against dense powers of the graph, in words, JSON and a picture."""

import json

import pytest
import torch

import unspool as us
from unspool.errors import InputError
from unspool.explain import Method, explain_pair, plot_pair


@pytest.fixture(scope="module")
def scene():
    generator = torch.Generator().manual_seed(0)
    data = us.datasets.contextual_sbm(nodes=40, classes=2, seed=2)
    return torch.randn(40, 6, generator=generator, dtype=torch.float64), data.graph.to(torch.float64)


def make(kind, **settings):
    torch.manual_seed(1)
    return kind(6, 5, **settings).double().eval()


LINEAR = [
    (us.models.SGC, {"depth": 2}), (us.models.APPNP, {"depth": 4, "teleport": 0.2}), (us.models.GPRGNN, {"depth": 3}),
    (us.models.UGDGNN, {"depth": 3}), (us.models.PPNP, {"teleport": 0.3}), (us.models.MLP, {}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "settings"), LINEAR, ids=[kind.__name__ for kind, _ in LINEAR])
def test_either_side_sums_to_the_score(scene, kind, settings):
    model, (x, graph) = make(kind, **settings), scene
    with torch.no_grad():
        h = model(x, graph)
    for a, b in ((0, 7), (3, 39), (12, 11)):
        found = explain_pair(model, x, graph, a, b)
        assert found.score == pytest.approx(float(h[a] @ h[b]), abs=1e-12)
        assert found.probability == pytest.approx(float((h[a] @ h[b]).sigmoid()), abs=1e-12)
        for side in found.sides:
            assert side.split.method is Method.EXACT
            assert abs(found.remainder(side)) < 1e-9
            assert side.own + side.neighbours + side.split.bias == pytest.approx(found.score, abs=1e-9)


def test_contributions_are_those_of_dense_powers(scene):
    model, (x, graph) = make(us.models.APPNP, depth=4, teleport=0.2), scene
    a, b = 5, 20
    with torch.no_grad():
        z, h, dense = model.p_pre(x), model(x, graph), graph.to_dense()
    weight = torch.zeros(40, 40, dtype=torch.float64)
    for k in range(4):
        weight += 0.2 * 0.8**k * torch.linalg.matrix_power(dense, k)
    weight += 0.8**4 * torch.linalg.matrix_power(dense, 4)
    found = explain_pair(model, x, graph, a, b)
    for side, node, other in ((found.sides[0], a, b), (found.sides[1], b, a)):
        plain = weight[node] * (z @ h[other])
        whole = torch.zeros(40, dtype=torch.float64)
        whole[side.split.nodes] = side.split.total
        torch.testing.assert_close(whole, plain, rtol=1e-9, atol=1e-12)
        assert side.split.by_hop.shape[0] == 5
        torch.testing.assert_close(side.split.by_hop.sum(0), side.split.total)
        assert dict(side.hop_rows())["0"] == pytest.approx(float(0.2 * z[node] @ h[other]), abs=1e-12)


def test_other_networks_are_split_to_first_order(scene):
    model, (x, graph) = make(us.models.GCN, hidden=8), scene
    found = explain_pair(model, x, graph, 0, 7)
    with torch.no_grad():
        other = model(x, graph)[7]
    z = x.clone().requires_grad_()
    # GCN has no encoder: its propagation sees the features themselves.
    (model(z, graph)[0] @ other).backward()
    plain = (z.grad * x).sum(1)
    side = found.sides[0]
    assert side.split.method is Method.FIRST_ORDER
    torch.testing.assert_close(side.split.total, plain[side.split.nodes], rtol=1e-9, atol=1e-12)
    assert "gradient × input" in str(found)
    assert "remainder" in str(found)


def test_what_is_said_of_the_graph(scene):
    (x, graph), model = scene, make(us.models.SGC)
    dense = graph.to_dense()
    near = [set(torch.nonzero(dense[n]).flatten().tolist()) - {n} for n in range(40)]
    linked = next((a, b) for a in range(40) for b in near[a] if near[a] & near[b])
    apart = next((a, b) for a in range(40) for b in range(40) if a != b and b not in near[a])
    for pair, edge in ((linked, True), (apart, False)):
        found = explain_pair(model, x, graph, *pair)
        assert found.edge is edge
        assert set(found.common.tolist()) == near[pair[0]] & near[pair[1]]
        assert [side.degree for side in found.sides] == [len(near[node]) for node in pair]
        assert ("linked already" in str(found)) is edge


def test_the_record_holds_the_numbers(scene):
    model, (x, graph) = make(us.models.APPNP, depth=3), scene
    found = explain_pair(model, x, graph, 2, 9)
    held = json.loads(found.to_json(top=3))
    assert held["score"] == found.score
    assert [side["node"] for side in held["sides"]] == [2, 9]
    assert [len(side["nodes"]) for side in held["sides"]] == [3, 3]
    for side in held["sides"]:
        assert sum(side["parts"].values()) == pytest.approx(found.score, abs=1e-12)
        assert sum(hop["contribution"] for hop in side["hops"]) == pytest.approx(found.score - side["parts"]["bias"])
    whole = found.record()["sides"][0]["nodes"]
    assert sum(node["contribution"] for node in whole) == pytest.approx(found.score, abs=1e-9)


def test_nodes_go_by_their_names(scene):
    from dataclasses import replace

    x, graph = scene
    named = replace(graph, names=tuple(f"n{k}" for k in range(40)))
    found = explain_pair(make(us.models.SGC), x, named, "n3", "n8")
    assert [side.node for side in found.sides] == [3, 8]
    assert "n3 and n8" in str(found)
    with pytest.raises(ValueError, match="n4"):
        explain_pair(make(us.models.SGC), x, named, "n3", "n44x")


def test_a_node_is_not_linked_with_itself(scene):
    with pytest.raises(InputError) as caught:
        explain_pair(make(us.models.SGC), *scene, 3, 3)
    assert caught.value.argument == "other"


def test_the_picture_is_written(scene, tmp_path):
    found = explain_pair(make(us.models.GCN), *scene, 3, 8)
    figure = plot_pair(found, tmp_path / "why.svg", top=40)
    assert len(figure.axes) == 4
    assert (tmp_path / "why.svg").stat().st_size > 10_000
    assert len(figure.axes[1].get_yticklabels()) <= 25
