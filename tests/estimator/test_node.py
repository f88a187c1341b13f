"""Node classifiers and regressors: what they learn, and that they say the same however the data are handed over."""

import pickle

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.exceptions import NotFittedError

import unspool as us
from unspool import models, train
from unspool.datasets.features import read_features, row_normalise
from unspool.errors import IncompatibleError, InputError
from unspool.estimator import NodeClassifier, NodeRegressor
from unspool.estimator.holdout import hold_out
from unspool.ops.features import SparseFeatures
from unspool.train.fitting import Diverged

QUICK = {"epochs": 25, "hidden": 8, "seed": 3}


def quick(**more):
    return NodeClassifier(models.APPNP, **(QUICK | more))


def test_fit_is_the_training_of_the_package(data, x, partly):
    valid = np.flatnonzero(partly >= 0)[::4]
    clf = quick(weight_decay=1e-3, patience=None).fit(x, partly, graph=data.graph, valid=valid)
    torch.manual_seed(3)
    model = models.APPNP(8, 3, hidden=8)
    learnt = np.setdiff1d(np.flatnonzero(partly >= 0), valid)
    ids = [torch.as_tensor(i) for i in (learnt, valid, valid[:0])]
    task = train.Task(data.features, data.graph, data.labels, *ids)
    run = train.fit(model, task, train.TrainConfig(lr=0.01, weight_decay=1e-3, epochs=25))
    assert run.history[-1].train_loss == clf.run_.history[-1].train_loss
    wanted = model(data.features, data.graph).detach().double().softmax(-1).numpy()
    assert np.array_equal(clf.predict_proba(calibrate=False), wanted)
    assert clf.n_iter_ == 25
    assert clf.n_features_in_ == 8
    assert str(clf.objective_) == "0.1 ‖H − X‖²  +  0.9 ‖B H‖²"


def test_labels_of_hidden_nodes_are_not_seen_but_the_nodes_are(data, x, partly):
    clf = quick().fit(x, partly, graph=data.graph)
    assert (clf.predict()[::3] == data.labels.numpy()[::3]).mean() > 0.7
    moved = x.copy()
    moved[::3] += 5.0  # features of unlabelled nodes reach labelled ones
    other = quick().fit(moved, partly, graph=data.graph)
    assert not np.array_equal(other.predict_proba()[1::3], clf.predict_proba()[1::3])


def test_same_seed_same_bits_and_the_callers_generator_is_left_alone(data, x, partly):
    before = torch.random.get_rng_state()
    first = quick().fit(x, partly, graph=data.graph).predict_proba()
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(99)
    assert np.array_equal(first, quick().fit(x, partly, graph=data.graph).predict_proba())
    assert not np.array_equal(first, quick(seed=4).fit(x, partly, graph=data.graph).predict_proba())


def test_ways_to_ask_agree(data, x, partly):
    clf = quick().fit(x, partly, graph=data.graph)
    everyone = clf.predict_proba()
    assert np.array_equal(everyone, clf.predict_proba(x))
    assert np.array_equal(everyone, clf.predict_proba(x, graph=data.graph))
    assert np.allclose(everyone.sum(1), 1)
    assert np.array_equal(clf.predict(), clf.classes_[everyone.argmax(1)])
    known = partly >= 0
    assert clf.score(x, partly) == (clf.predict() == partly)[known].mean()


def test_node_ids_with_bound_features_mean_the_same_as_gaps_in_y(data, x, partly):
    whole = quick().fit(x, partly, graph=data.graph)
    ids = np.random.default_rng(0).permutation(np.flatnonzero(partly >= 0))
    bound = quick(features=x, graph=data.graph).fit(ids, partly[ids])
    assert np.array_equal(bound.predict_proba(), whole.predict_proba())
    assert np.array_equal(bound.predict_proba(ids[:5]), whole.predict_proba()[ids[:5]])
    column = quick(features=x, graph=data.graph).fit(ids[:, None], partly[ids])
    assert np.array_equal(column.predict(ids[:7, None]), whole.predict()[ids[:7]])
    assert bound.score(ids, partly[ids]) == whole.score(x, partly)


def test_names_of_classes_do_not_matter(data, x, partly):
    wanted = quick().fit(x, partly, graph=data.graph).predict()
    for names, gap in ((np.array(["ant", "bee", "cat"]), ""), (np.array(["ant", "bee", "cat"], dtype=object), None)):
        y = np.where(partly >= 0, names[partly], gap)
        clf = quick().fit(x, y, graph=data.graph)
        assert np.array_equal(clf.predict(), names[wanted])
        assert clf.score(x, y) == quick().fit(x, partly, graph=data.graph).score(x, partly)
    assert np.array_equal(quick().fit(x, partly.astype(float), graph=data.graph).predict(), wanted)
    with_gaps = np.where(partly >= 0, 10.0 * partly, np.nan)
    assert np.array_equal(quick().fit(x, with_gaps, graph=data.graph).predict(), 10.0 * wanted)
    tensor = quick().fit(torch.as_tensor(x), torch.as_tensor(partly), graph=data.graph)
    assert np.array_equal(tensor.predict(), wanted)


@pytest.mark.long
def test_kinds_of_graphs_and_features_agree(data, x, partly):
    wanted = quick().fit(x, partly, graph=data.graph).predict_proba()
    index, w = data.edge_index, data.edge_weight
    matrix = scipy.sparse.coo_array((np.ones(index.shape[1]), (index[1], index[0])), shape=(90, 90)).tocsr()
    network = networkx.Graph()
    network.add_nodes_from(range(90))
    network.add_edges_from(index.T.tolist())
    from torch_geometric.data import Data

    pyg = Data(edge_index=index, num_nodes=90)
    assert w is None
    for graph in (index, index.numpy(), matrix, network, pyg, data.graph.to(torch.float64)):
        assert np.allclose(quick().fit(x, partly, graph=graph).predict_proba(), wanted, atol=1e-6)
    fixed = x[::-1].copy()[::-1]
    fixed.setflags(write=False)
    assert np.array_equal(quick().fit(fixed, partly, graph=data.graph).predict_proba(), wanted)
    holes = x * (np.abs(x) > 2)
    dense = quick().fit(holes, partly, graph=data.graph).predict_proba()
    sparse = SparseFeatures.from_tensor(torch.as_tensor(holes))
    for kind in (scipy.sparse.csr_matrix(holes), torch.as_tensor(holes).to_sparse(), sparse, holes.tolist()):
        assert np.allclose(quick().fit(kind, partly, graph=data.graph).predict_proba(), dense, atol=1e-5)


def test_permuting_the_nodes_permutes_the_answer(data, x, partly):
    valid = np.flatnonzero(partly >= 0)[::4]
    plain = quick(dropout=0.0).fit(x, partly, graph=data.graph, valid=valid).predict_proba()
    order = np.random.default_rng(0).permutation(90)
    place = np.argsort(order)
    graph = us.Graph.from_edges(place[data.edge_index.numpy()], nodes=90, directed=False)
    moved = quick(dropout=0.0).fit(x[order], partly[order], graph=graph, valid=place[valid]).predict_proba()
    assert np.allclose(moved, plain[order], atol=1e-4)


def test_a_trained_model_goes_to_another_graph(data, x, partly):
    clf = quick().fit(x, partly, graph=data.graph)
    part = us.graph.ring(10)
    with torch.no_grad():
        wanted = clf.model_(torch.as_tensor(x[:10]), part).argmax(1).numpy()
    assert np.array_equal(clf.predict(x[:10], graph=part), clf.classes_[wanted])


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_the_held_back_share_is_stratified_and_not_learnt_from(data, x, partly, share):
    ids = np.flatnonzero(partly >= 0)
    learnt, held = hold_out(ids, partly[ids], share, seed=0)
    assert np.array_equal(np.union1d(learnt, held), ids)
    assert not np.intersect1d(learnt, held).size
    for c in range(3):
        assert abs((partly[held] == c).sum() - share * (partly == c).sum()) <= 0.5
    # Turning the labels of held-back nodes round changes which epoch is best, but nothing that is learnt before it.
    spoilt = partly.copy()
    spoilt[held] = (spoilt[held] + 1) % 3
    runs = [quick(patience=None).fit(x, y, graph=data.graph, valid=held).run_.history for y in (partly, spoilt)]
    assert [e.train_loss for e in runs[0]] == [e.train_loss for e in runs[1]]
    assert runs[0][-1].valid_loss != runs[1][-1].valid_loss


def test_without_a_share_all_labels_are_learnt_from_and_the_last_epoch_counts(data, x, partly):
    clf = quick(valid_share=0, lr=0.5, patience=2).fit(x, partly, graph=data.graph)
    losses = [epoch.valid_loss for epoch in clf.run_.history]
    assert np.argmin(losses) + 1 < 25  # there was a better epoch, but nobody to tell
    assert clf.run_.best.epoch == clf.n_iter_ == 25
    mask = np.zeros(90, dtype=bool)
    mask[np.flatnonzero(partly >= 0)[:20]] = True
    masked = quick().fit(x, partly, graph=data.graph, valid=mask).predict_proba()
    assert np.array_equal(masked, quick().fit(x, partly, graph=data.graph, valid=np.flatnonzero(mask)).predict_proba())


@pytest.mark.parametrize("ask", ["predict", "predict_proba"])
def test_what_is_not_a_number_is_not_a_class(data, x, partly, ask):
    clf = NodeClassifier(models.GPRGNN, **QUICK).fit(x, partly, graph=data.graph)
    with torch.no_grad():
        clf.model_.propagation.coefficients.fill_(3e38)
    with pytest.raises(ValueError, match="nothing finite about node 0"):
        getattr(clf, ask)(x, graph=data.graph)


def test_rows_can_be_normalised(data, x, partly):
    rows = row_normalise(read_features(x))
    wanted = quick().fit(rows, partly, graph=data.graph)
    clf = quick(normalise_rows=True).fit(x, partly, graph=data.graph)
    assert np.array_equal(clf.predict_proba(), wanted.predict_proba())
    assert np.array_equal(clf.predict_proba(x), wanted.predict_proba())


def test_every_model_of_the_package_can_be_trained(data, x, partly):
    for model in models.MODELS:
        clf = NodeClassifier(model, epochs=2).fit(x, partly, graph=data.graph)
        assert set(clf.predict()) <= {0, 1, 2}
        assert str(clf.objective_)


def test_a_model_of_ones_own(data, x, partly):
    class Hops(torch.nn.Module):
        def __init__(self, features, classes, hops):
            super().__init__()
            self.linear, self.hops = torch.nn.Linear(features, classes), hops

        def forward(self, x, graph):
            for _ in range(self.hops):
                x = graph @ x
            return self.linear(x)

    assert NodeClassifier(Hops, hops=2, epochs=60, lr=0.1).fit(x, partly, graph=data.graph).score(x, partly) > 0.7
    with pytest.raises(us.InputError) as caught:
        NodeClassifier(Hops).fit(x, partly, graph=data.graph)
    assert (caught.value.argument, caught.value.owner) == ("hops", "Hops")


def test_a_model_by_its_name_is_the_model(data, x, partly):
    wanted = quick().fit(x, partly, graph=data.graph).predict_proba()
    for name in ("APPNP", "appnp", "unspool.models:APPNP"):
        clf = NodeClassifier(name, **QUICK).fit(x, partly, graph=data.graph)
        assert np.array_equal(clf.predict_proba(), wanted)
        assert clf.get_params()["model"] == name


def test_fitted_estimators_are_pickled_whole(data, x, partly):
    clf = quick().fit(x, partly, graph=data.graph)
    again = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(again.predict_proba(), clf.predict_proba())
    assert repr(again) == repr(clf)


def test_a_fit_that_fails_leaves_no_mixture(data, x, partly):
    clf = quick().fit(x, partly, graph=data.graph)
    with pytest.raises(Diverged, match="learning rate 1e\\+30 is probably too large"):
        clf.set_params(lr=1e30).fit(x, partly % 2, graph=data.graph)
    with pytest.raises(NotFittedError):
        clf.predict()


def test_an_interrupted_fit_keeps_its_weights_and_stops_a_search(data, x, partly, monkeypatch):
    from unspool.estimator import node

    def cut(model, task, config, **options):
        run = train.fit(model, task, config, **options)
        return train.Run(run.best, run.history, train.Ending.INTERRUPTED, run.seconds)

    monkeypatch.setattr(node, "fit", cut)
    clf = quick()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(x, partly, graph=data.graph)
    assert clf.predict().shape == (90,)


# -- regression ----------------------------------------------------------------------------------------------------


def test_regression_does_not_depend_on_units(data, x):
    target = x[:, 0] + 0.5 * x[:, 1]
    target[::4] = np.nan
    how = {"epochs": 40, "depth": 2, "dropout": 0.0}
    plain = NodeRegressor(**how).fit(x, target, graph=data.graph)
    scaled = NodeRegressor(**how).fit(x, 1000 * target - 7, graph=data.graph)
    assert np.allclose(scaled.predict(), 1000 * plain.predict() - 7, rtol=1e-3, atol=1)
    assert plain.predict().shape == (90,)
    known = ~np.isnan(target)
    off = ((plain.predict() - target)[known] ** 2).sum() / ((target[known] - target[known].mean()) ** 2).sum()
    assert np.isclose(plain.score(x, target), 1 - off)
    assert np.isclose(plain.score(x, target), scaled.score(x, 1000 * target - 7), atol=1e-3)
    assert plain.score(x, target) > 0.5


def test_several_targets_at_once(data, x):
    target = np.stack([x[:, 0], 100 * x[:, 1], np.full(90, 3.0)], axis=1)  # one of them constant
    reg = NodeRegressor(epochs=60, depth=2, dropout=0.0).fit(x, target, graph=data.graph)
    assert reg.predict().shape == (90, 3)
    assert np.allclose(reg.predict()[:, 2].mean(), 3.0, atol=0.5)
    assert np.corrcoef(reg.predict()[:, 1], target[:, 1])[0, 1] > 0.7
    ids = np.arange(60)
    bound = NodeRegressor(epochs=2, features=x, graph=data.graph).fit(ids, target[ids])
    assert bound.predict(ids[:4]).shape == (4, 3)
    learnt, _ = hold_out(ids, np.zeros(60), 0.2, seed=0)
    assert np.array_equal(bound.mean_, target[learnt].mean(0))
    assert np.array_equal(bound.deviation_, [*target[learnt].std(0)[:2], 1.0])


@pytest.mark.parametrize("normalise_rows", [False, True])
def test_new_nodes_are_answered_as_on_the_enlarged_graph(normalise_rows):
    chance = np.random.default_rng(0)
    x = (chance.random((43, 30)) < 0.1) * 1.0
    graph, new = us.graph.ring(40), us.graph.NewEdges([[40, 41, 42], [3, 40, 9]])
    whole = us.graph.enlarged(graph, 3, new)
    clf = quick(normalise_rows=normalise_rows, depth=3).fit(x[:40], np.arange(40) // 10, graph=graph)
    assert np.allclose(clf.predict_proba(x[40:], new), clf.predict_proba(x, whole)[40:], atol=1e-6)
    assert np.array_equal(clf.predict(x[40:], new), clf.predict(x, whole)[40:])
    reg = NodeRegressor(models.GCN, **QUICK).fit(x[:40], x[:40].sum(1), graph=graph)
    assert np.allclose(reg.predict(x[40:], graph=new), reg.predict(x, graph=whole)[40:], atol=1e-5)
    with pytest.raises(InputError, match="30 features"):
        clf.predict(x[40:, :7], new)


def test_new_rows_cannot_be_scaled_like_dense_ones():
    x = np.random.default_rng(0).random((21, 3))
    clf = quick(normalise_rows=True).fit(x[:20], np.arange(20) % 2, graph=us.graph.ring(20))
    with pytest.raises(IncompatibleError, match="smallest number"):
        clf.predict(x[20:], us.graph.NewEdges([[20], [0]]))
