"""Scores of pairs and recommendations against plain loops, in blocks or not, with ties and with bad input."""

import numpy as np
import pytest
import torch

import unspool as us
from unspool import datasets, links
from unspool.errors import IncompatibleError, InputError
from unspool.links import LinkScorer, scoring


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=70, classes=2, seed=1)


def outputs(count=1, channels=5, nodes=70):
    generator = torch.Generator().manual_seed(count)
    return [torch.randn(nodes, channels, generator=generator, dtype=torch.float64) for _ in range(count)]


def plain_chance(held, u, v):
    return float(np.mean([1 / (1 + np.exp(-float(h[u] @ h[v]))) for h in held]))


@pytest.mark.parametrize("models", [1, 3])
def test_pairs_score_their_inner_product(data, models):
    held = outputs(models)
    pairs = torch.randint(0, 70, (200, 2), generator=torch.Generator().manual_seed(0))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    found, near = LinkScorer(held, data.graph).score(pairs), data.graph.to_dense()
    chance = [plain_chance(held, u, v) for u, v in pairs.tolist()]
    assert found.probability.numpy() == pytest.approx(chance, abs=1e-12)
    assert found.score.sigmoid().numpy() == pytest.approx(chance, abs=1e-12)
    assert found.edge.tolist() == [bool(near[u, v] != 0) for u, v in pairs.tolist()]
    assert found.edge.any()
    assert not found.edge.all()


@pytest.mark.parametrize("block", [1, 200, 1 << 22], ids=["row by row", "some rows", "at once"])
@pytest.mark.parametrize("models", [1, 2])
def test_recommendations_are_the_best_that_are_new(data, models, block, monkeypatch):
    monkeypatch.setattr(scoring, "BLOCK", block)
    held, near = outputs(models), data.graph.to_dense()
    found = LinkScorer(held, data.graph).recommend([3, 50, 0], k=4)
    assert found.node.tolist() == [3] * 4 + [50] * 4 + [0] * 4
    assert found.rank.tolist() == [1, 2, 3, 4] * 3
    for node in (3, 50, 0):
        free = [v for v in range(70) if v != node and near[node, v] == 0]
        best = sorted(free, key=lambda v: -plain_chance(held, node, v))[:4]
        assert found.other[found.node == node].tolist() == best
        chance = [plain_chance(held, node, v) for v in best]
        assert found.probability[found.node == node].numpy() == pytest.approx(chance, abs=1e-12)


def test_all_nodes_are_recommended_to_when_nobody_is_named(data):
    found = LinkScorer(outputs(), data.graph).recommend(k=2)
    assert found.node.tolist() == [node for node in range(70) for _ in range(2)]


def test_equal_scores_stand_in_the_order_of_the_nodes():
    found = LinkScorer([torch.ones(8, 1)], us.graph.ring(8)).recommend([0, 5], k=3)
    assert found.other.tolist() == [2, 3, 4, 0, 1, 2]


def test_large_scores_are_told_apart():
    # Both probabilities are 1 in double precision, of one model and of two.
    h = torch.tensor([[10.0], [5.0], [6.0], [0.0]])
    for held in ([h], [h, h]):
        found = LinkScorer(held, us.Graph.from_edges([[0], [3]], 4, directed=False)).recommend([0], k=2)
        assert found.other.tolist() == [2, 1]
        assert found.score.tolist() == pytest.approx([60.0, 50.0])


def test_who_is_linked_with_almost_all_gets_fewer():
    star = us.Graph.from_edges([[0] * 5, list(range(1, 6))], 6, directed=False)
    found = LinkScorer([torch.randn(6, 2)], star).recommend(k=5)
    assert (found.node == 0).sum() == 0
    assert all(int((found.node == node).sum()) == 4 for node in range(1, 6))


def test_a_graph_without_edges_has_only_new_links():
    scorer = LinkScorer([torch.randn(4, 2)], us.Graph.from_edges(torch.empty(2, 0, dtype=torch.int64), 4))
    assert not scorer.score([[0, 1], [2, 3]]).edge.any()
    assert scorer.recommend(k=3).node.numel() == 12


def test_no_pairs_have_no_scores(data):
    assert LinkScorer(outputs(), data.graph).score(torch.empty(0, 2, dtype=torch.int64)).score.shape == (0,)


def test_functions_are_the_scorer(data):
    torch.manual_seed(0)
    model = us.models.APPNP(data.features.shape[1], 6).eval()
    with torch.no_grad():
        h = model(data.features, data.graph).double()
    scored = links.score_pairs(model, data.features, data.graph, [[0, 5], [7, 2]])
    assert scored.score.tolist() == pytest.approx([float(h[0] @ h[5]), float(h[7] @ h[2])], abs=1e-12)
    listed = links.score_pairs(model, data.features, data.edge_index, [[0, 5]])
    assert float(listed.score) == pytest.approx(float(scored.score[0]), rel=1e-5)
    assert links.recommend(model, data.features, data.graph, k=3).node.numel() == 210
    wide = links.score_pairs(model, data.features.double(), data.graph, [[0, 5]])  # brought to the type of the weights
    assert float(wide.score) == pytest.approx(float(scored.score[0]), abs=1e-6)


@pytest.mark.parametrize(
    ("ask", "argument"),
    [
        (lambda s: s.score([[0, 0]]), "pairs"),
        (lambda s: s.score([[0, 70]]), "pairs"),
        (lambda s: s.score([[-1, 2]]), "pairs"),
        (lambda s: s.score([0, 1]), "pairs"),
        (lambda s: s.score([[0, 1, 2]]), "pairs"),
        (lambda s: s.score([[0.0, 1.0]]), "pairs"),
        (lambda s: s.recommend([70]), "nodes"),
        (lambda s: s.recommend([]), "nodes"),
        (lambda s: s.recommend(k=0), "k"),
        (lambda s: s.recommend(k=70), "k"),
        (lambda s: s.recommend(k=2.5), "k"),
        (lambda s: s.recommend(k=True), "k"),
    ],
)
def test_bad_questions_are_refused(data, ask, argument):
    with pytest.raises(InputError) as caught:
        ask(LinkScorer(outputs(), data.graph))
    assert caught.value.argument == argument


def test_directed_graphs_and_other_models_are_refused(data):
    with pytest.raises(InputError) as caught:
        LinkScorer(outputs(nodes=3), us.Graph.from_edges([[0, 1], [1, 2]], 3, directed=True))
    assert caught.value.argument == "graph"
    model = us.models.SGC(data.features.shape[1], 4)
    model.card = {"task": {"kind": "classes"}}
    with pytest.raises(IncompatibleError, match="trained on classes"):
        links.score_pairs(model, data.features, data.graph, [[0, 1]])
    with pytest.raises(ValueError, match="node 1"):
        LinkScorer([torch.tensor([[1.0], [torch.inf]])], us.graph.path(2))
