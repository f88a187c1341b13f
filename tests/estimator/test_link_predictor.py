"""LinkPredictor: scikit-learn's manners, any kind of graph, and the numbers of the other doors."""

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

import unspool as us
from unspool import links, models, train
from unspool.errors import IncompatibleError, InputError
from unspool.estimator import LinkPredictor

HOW = {"epochs": 12, "seed": 3, "device": "cpu"}


@pytest.fixture(scope="module")
def fitted(data):
    return LinkPredictor(models.SGC, **HOW).fit(data.features, graph=data.edge_index)


def test_settings_are_parameters():
    made = LinkPredictor(models.APPNP, depth=3, lr=0.02)
    assert made.get_params()["depth"] == 3
    again = clone(made.set_params(depth=4, epochs=7))
    assert (again.get_params()["depth"], again.epochs, again.lr, again.model) == (4, 7, 0.02, models.APPNP)
    assert again is not made
    with pytest.raises(NotFittedError):
        again.predict([[0, 1]])


def test_it_is_the_trial_of_the_other_doors(data, fitted):
    config = train.TrainConfig(epochs=12)
    loader = train.TrialLoader(data, kind=train.TaskKind.LINKS)
    model, run = train.train_trial(train.Trial(models.SGC, {}, config, 3), loader)
    assert fitted.run_.best == run.best
    pairs = np.array([[0, 1], [5, 80], [33, 2]])
    plain = links.score_pairs(model, data.features, data.graph, pairs)
    assert fitted.decision_function(pairs) == pytest.approx(plain.score.numpy(), abs=1e-9)
    assert fitted.predict_proba(pairs)[:, 1] == pytest.approx(plain.probability.numpy(), abs=1e-12)
    assert fitted.evaluation_ is not None
    assert fitted.evaluation_.to_plain() == train.evaluate_links(model, loader.task(3), 3).to_plain()
    assert fitted.evaluation_.network.auc == pytest.approx(run.best.test_score, abs=1e-6)


def test_probabilities_and_classes(fitted):
    pairs = [[0, 1], [5, 80], [33, 2], [7, 8]]
    chance = fitted.predict_proba(pairs)
    assert chance.shape == (4, 2)
    assert chance.sum(1) == pytest.approx(np.ones(4), abs=1e-15)
    assert fitted.predict(pairs).tolist() == (chance[:, 1] > 0.5).astype(int).tolist()
    assert fitted.classes_.tolist() == [0, 1]


def test_the_score_is_the_area_under_the_curve(data, fitted):
    chance = np.random.default_rng(0)
    pairs = chance.integers(0, data.nodes, (60, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    y = chance.integers(0, 2, len(pairs))
    assert fitted.score(pairs, y) == pytest.approx(roc_auc_score(y, fitted.decision_function(pairs)), abs=1e-12)
    assert fitted.score() == fitted.evaluation_.network.auc
    bare = LinkPredictor(models.SGC, test_share=0, **HOW).fit(data.features, graph=data.edge_index)
    assert bare.evaluation_ is None
    for wrong in ((), (None, y), (pairs, None), (pairs, np.ones(len(pairs)))):
        with pytest.raises(InputError):
            bare.score(*wrong)


def test_kinds_of_graphs_are_one(data, fitted):
    networkx = pytest.importorskip("networkx")
    pairs = [[0, 1], [5, 80]]
    expected = fitted.decision_function(pairs)
    dense = (data.graph.to_dense() != 0).numpy().astype(float)
    np.fill_diagonal(dense, 0)
    once = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]  # in one direction: links have none
    drawn = networkx.from_numpy_array(dense)
    for graph in (data.graph, scipy.sparse.csr_array(dense), once, once.numpy(), drawn):
        made = LinkPredictor(models.SGC, **HOW).fit(data.features.numpy(), graph=graph)
        assert made.decision_function(pairs) == pytest.approx(expected, abs=1e-6)


def test_weights_of_edges_come_through(data):
    weight = torch.rand(data.edge_index.shape[1], generator=torch.Generator().manual_seed(0)) + 0.5
    graph = us.Graph.from_edges(data.edge_index, 90, weight, directed=False)
    own = us.datasets.from_tensors(data.edge_index, data.features, edge_weight=weight, directed=False)
    loader = train.TrialLoader(own, kind=train.TaskKind.LINKS)
    _, run = train.train_trial(train.Trial(models.SGC, {}, train.TrainConfig(epochs=12), 3), loader)
    made = LinkPredictor(models.SGC, **HOW).fit(data.features, graph=graph)
    assert made.run_.best.valid_loss == pytest.approx(run.best.valid_loss, rel=1e-5)
    plain = LinkPredictor(models.SGC, **HOW).fit(data.features, graph=data.graph)
    assert made.run_.best.valid_loss != pytest.approx(plain.run_.best.valid_loss, rel=1e-5)


def test_nodes_go_by_their_names(data):
    networkx = pytest.importorskip("networkx")
    dense = (data.graph.to_dense() != 0).numpy().astype(float)
    np.fill_diagonal(dense, 0)
    named = networkx.relabel_nodes(networkx.from_numpy_array(dense), {k: f"n{k}" for k in range(90)})
    made = LinkPredictor(models.SGC, **HOW).fit(data.features, graph=named)
    by_name, by_number = (made.decision_function(pairs) for pairs in ([["n0", "n7"]], [[0, 7]]))
    assert by_name.tolist() == by_number.tolist()
    assert made.recommend(["n4"], k=2).node.tolist() == [4, 4]
    with pytest.raises(ValueError, match="n99"):
        made.predict([["n0", "n99"]])


def test_rows_are_normalised_as_elsewhere(data):
    x = data.features.abs()
    made = LinkPredictor(models.SGC, normalise_rows=True, **HOW).fit(x, graph=data.edge_index)
    assert made.features_.sum(1).numpy() == pytest.approx(np.ones(90), abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"valid_share": 0}, "valid_share"), ({"valid_share": 1.0}, "valid_share"), ({"test_share": -0.1}, "test_share"),
        ({"seed": -1}, "seed"), ({"epochs": 0}, "epochs"), ({"depht": 3}, "depht"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(data, settings, argument):
    with pytest.raises(InputError) as caught:
        LinkPredictor(models.SGC, **{**HOW, **settings}).fit(data.features, graph=data.edge_index)
    assert caught.value.argument == argument


def test_bad_data_are_refused(data, fitted):
    x, made = data.features, LinkPredictor(models.SGC, **HOW)
    with pytest.raises(InputError) as caught:
        made.fit(x, data.edge_index)  # where a classifier has its labels
    assert caught.value.argument == "y"
    with pytest.raises(ValueError, match="there is no graph"):
        made.fit(x)
    with pytest.raises(IncompatibleError):
        made.fit(x, graph=us.Graph.from_edges(data.edge_index[:, :30], 90, directed=True))
    with pytest.raises(IncompatibleError):
        made.fit(x, graph=us.Graph.from_edges(data.edge_index, 90, normalise=us.Normalisation.NONE, directed=False))
    with pytest.raises(ValueError, match="too few"):
        made.fit(x, graph=[[0, 1], [1, 2]])
    for pairs in ([0, 1], [[0, 1, 2]], [[0, 0]], [[0, 90]]):
        with pytest.raises(InputError) as caught:
            fitted.predict(pairs)
        assert caught.value.argument == "pairs"
