"""Parameters, clones, pipelines, grid searches and folds."""

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from unspool import datasets, models
from unspool.estimator import GCV, SURE, GraphDenoiser, NodeClassifier, NodeRegressor, NodeSplit

pytestmark = pytest.mark.long


KINDS = (NodeClassifier, NodeRegressor)


@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_parameters(kind):
    clf = kind(models.GPRGNN, depth=3, epochs=7, teleport=0.2)
    params = clf.get_params()
    assert (params["depth"], params["epochs"], params["teleport"], params["model"]) == (3, 7, 0.2, models.GPRGNN)
    assert "hidden" not in params  # the model's own default stays the model's
    assert clf.set_params(depth=5, lr=0.5, hidden=9) is clf
    assert clf.get_params() == {**params, "depth": 5, "lr": 0.5, "hidden": 9}
    assert clf.lr == 0.5
    made = clone(clf)
    assert made is not clf
    assert made.get_params() == clf.get_params()
    made.set_params(depth=1)
    assert clf.get_params()["depth"] == 5
    assert kind(**clf.get_params()).get_params() == clf.get_params()
    assert "depth=5" in repr(clf)
    assert "epochs=7" in repr(clf)


@pytest.mark.parametrize("make", [*KINDS, GraphDenoiser])
def test_clones_share_bound_data_and_nothing_that_was_learnt(make, data, x):
    est = make(features=x, graph=data.graph)
    target = x[:, 0] if make is NodeRegressor else data.labels.numpy()
    if make is not GraphDenoiser:
        est.set_params(epochs=2)
    est.fit(np.arange(90), target)
    made = clone(make_pipeline(est)).steps[0][1]
    assert made.graph is data.graph
    assert made.features is x
    assert not [name for name in vars(made) if name.endswith("_")]
    assert est.graph is data.graph  # the original keeps its own


def test_clones_keep_metadata_requests():
    clf = NodeClassifier(depth=2)
    with sklearn.config_context(enable_metadata_routing=True):
        clf.set_fit_request(graph=True)
        made = clone(clf)
        assert made.get_metadata_routing().fit.requests["graph"] is True
        assert "x" not in made.get_metadata_routing().fit.requests


def test_a_pipeline_prepares_features_of_all_nodes(data, x, partly):
    pipe = Pipeline([("scale", StandardScaler()), ("clf", NodeClassifier(epochs=10, depth=2))])
    pipe.fit(x, partly, clf__graph=data.graph)
    by_hand = NodeClassifier(epochs=10, depth=2).fit(StandardScaler().fit_transform(x), partly, graph=data.graph)
    assert np.array_equal(pipe.predict_proba(x), by_hand.predict_proba())
    assert np.array_equal(pipe.predict(x, graph=data.graph), by_hand.predict())
    assert pipe.score(x, partly) == by_hand.score(StandardScaler().fit_transform(x), partly)
    assert pipe.set_params(clf__depth=4).get_params()["clf__depth"] == 4
    sparse = make_pipeline(TruncatedSVD(4, random_state=0), NodeClassifier(epochs=3))
    assert sparse.fit(scipy.sparse.csr_array(x), partly, nodeclassifier__graph=data.graph).predict(x).shape == (90,)


def test_metadata_routing_carries_the_graph(data, x, partly):
    plain = Pipeline([("scale", StandardScaler()), ("clf", NodeClassifier(epochs=5))])
    plain.fit(x, partly, clf__graph=data.graph)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = NodeClassifier(epochs=5).set_fit_request(graph=True)
        pipe = make_pipeline(StandardScaler(), clf).fit(x, partly, graph=data.graph)
        assert np.array_equal(pipe.predict_proba(x), plain.predict_proba(x))


def test_a_grid_search_does_what_a_loop_does(data, x, partly):
    clf = NodeClassifier(models.APPNP, epochs=8, hidden=8, features=x, graph=data.graph)
    nodes = np.arange(90)
    folds = NodeSplit(2, seed=1)
    grid = {"depth": [1, 4], "dropout": [0.0, 0.5], "lr": [0.02]}
    search = GridSearchCV(clf, grid, cv=folds).fit(nodes, partly)
    found = {}
    for depth in grid["depth"]:
        for dropout in grid["dropout"]:
            scores = []
            for train, test in folds.split(nodes, partly):
                one = NodeClassifier(models.APPNP, epochs=8, hidden=8, depth=depth, dropout=dropout, lr=0.02)
                y = np.full(90, -1)
                y[train] = partly[train]
                one.fit(x, y, graph=data.graph)
                scores.append((one.predict()[test] == partly[test]).mean())
            found[depth, dropout] = np.mean(scores)
    results = search.cv_results_
    for params, score in zip(results["params"], results["mean_test_score"], strict=True):
        assert found[params["depth"], params["dropout"]] == score
    assert search.best_score_ == max(found.values())
    refit = NodeClassifier(models.APPNP, epochs=8, hidden=8, **search.best_params_).fit(x, partly, graph=data.graph)
    assert np.array_equal(search.predict(nodes), refit.predict())


def test_models_are_searchable_too(data, x, partly):
    clf = NodeClassifier(epochs=3, features=x, graph=data.graph)
    grid = [{"model": [models.APPNP], "teleport": [0.1, 0.5]}, {"model": [models.GCN], "depth": [2]}]
    search = GridSearchCV(clf, grid, cv=NodeSplit(2), error_score="raise").fit(np.arange(90), partly)
    assert len(search.cv_results_["params"]) == 3


def test_a_denoiser_and_a_linear_model_search_together(data, x, partly):
    pipe = make_pipeline(GraphDenoiser(0.5, features=x, graph=data.graph), LogisticRegression())
    grid = {"graphdenoiser__weight": [1.0, 0.1, GCV(), SURE()]}
    search = GridSearchCV(pipe, grid, cv=NodeSplit(3), error_score="raise").fit(np.arange(90), partly)
    scores = search.cv_results_["mean_test_score"]
    assert scores[1] > scores[0]  # smoothing helps on a homophilic graph
    by_hand = LogisticRegression().fit(
        GraphDenoiser(0.1).fit_transform(x, graph=data.graph)[partly >= 0], partly[partly >= 0]
    )
    pipe.set_params(graphdenoiser__weight=0.1).fit(np.flatnonzero(partly >= 0), partly[partly >= 0])
    assert np.allclose(pipe[-1].coef_, by_hand.coef_)


# -- folds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [-1, "", None, np.nan])
def test_folds_share_out_the_labelled_nodes(gap, partly):
    known = partly >= 0
    if gap == "":
        y = np.where(known, np.array(["a", "b", "c"])[partly], "")
    elif gap is None:
        y = np.where(known, np.array(["a", "b", "c"], dtype=object)[partly], None)
    else:
        y = np.where(known, partly, gap)
    folds = list(NodeSplit(4, seed=2).split(np.arange(90), y))
    assert len(folds) == NodeSplit(4).get_n_splits() == 4
    assert np.array_equal(np.sort(np.concatenate([test for _, test in folds])), np.flatnonzero(known))
    for train, test in folds:
        assert np.array_equal(np.union1d(train, test), np.flatnonzero(known))
        assert not np.intersect1d(train, test).size
        for c in range(3):
            assert abs((partly[test] == c).sum() - (partly == c).sum() / 4) < 1
    again = list(NodeSplit(4, seed=2).split(np.arange(90), y))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(folds, again, strict=True))
    other = list(NodeSplit(4, seed=3).split(np.arange(90), y))
    assert not all(np.array_equal(a[1], b[1]) for a, b in zip(folds, other, strict=True))


def test_folds_of_numbers_leave_gaps_out():
    y = np.random.default_rng(0).standard_normal((20, 2))
    y[::5] = np.nan
    for target in (y, y[:, 0]):
        tests = np.concatenate([test for _, test in NodeSplit(4).split(np.arange(20), target)])
        assert np.array_equal(np.sort(tests), np.flatnonzero(~np.isnan(y[:, 0])))


def test_a_split_is_one_fold_and_its_test_nodes_stay_out(data, x):
    split = data.split
    nodes = np.random.default_rng(0).permutation(90)
    ((train, valid),) = NodeSplit(split).split(nodes)
    assert np.array_equal(np.sort(nodes[train]), split.train.numpy())
    assert np.array_equal(np.sort(nodes[valid]), split.valid.numpy())
    ((train, valid),) = NodeSplit(split).split(x)
    assert np.array_equal(train, split.train.numpy())
    y = data.labels.numpy()
    clf = NodeClassifier(epochs=5, features=x, graph=data.graph)
    score = cross_val_score(clf, nodes, y[nodes], cv=NodeSplit(split))
    by_hand = clf.fit(nodes[np.isin(nodes, split.train)], y[nodes[np.isin(nodes, split.train)]])
    assert score[0] == by_hand.score(split.valid, y[split.valid])


def test_folds_say_what_is_wrong(data, x):
    with pytest.raises(ValueError, match="folds=1: expected a whole number of at least 2"):
        NodeSplit(1)
    with pytest.raises(ValueError, match="2 labelled nodes cannot fill 3 folds"):
        list(NodeSplit(3).split(np.arange(4), [0, 1, -1, -1]))
    with pytest.raises(ValueError, match="folds over labelled nodes need y"):
        list(NodeSplit(3).split(np.arange(4)))
    with pytest.raises(ValueError, match="the split is one of 90 nodes, but x has 10 rows"):
        list(NodeSplit(data.split).split(x[:10]))
    with pytest.raises(ValueError, match="none of the split's train nodes"):
        list(NodeSplit(data.split).split(data.split.valid.numpy()))
    assert repr(NodeSplit(datasets.Split([0], [1], [2], nodes=3))).startswith("NodeSplit(folds=Split(")
