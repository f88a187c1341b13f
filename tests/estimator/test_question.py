"""Estimators that are asked for more than classes and numbers: losses by name, several labels, order, counts, weights."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.metrics import d2_tweedie_score, f1_score
from sklearn.model_selection import cross_val_score

import unspool as us
from unspool import models
from unspool.errors import DataError
from unspool.estimator import NodeClassifier, NodeRegressor, NodeSplit
from unspool.train import TaskKind

QUICK = {"epochs": 15, "hidden": 8, "seed": 3}
GRAPH = us.graph.ring(12)
X = np.arange(24.0).reshape(12, 2) / 10
Y = np.array([0, 1, 2] * 4)


def quick(**more):
    return NodeClassifier(models.APPNP, **(QUICK | more))


@pytest.fixture(scope="module")
def several(data):
    truth = data.labels.numpy()
    return np.stack([truth == 0, truth != 1, truth == 2], axis=1).astype(float)


@pytest.mark.long
def test_several_labels_are_learnt_and_predicted_as_scikit_learn_does(data, x, several):
    known = several.copy()
    known[::3] = np.nan  # nothing is known
    known[1::3, 2] = np.nan  # something is
    clf = quick(epochs=60).fit(x, known, graph=data.graph)
    assert clf.kind_ is TaskKind.MULTILABEL
    assert clf.classes_.tolist() == [0, 1, 2]
    chances, said = clf.predict_proba(), clf.predict()
    assert chances.shape == said.shape == several.shape
    assert np.array_equal(said, chances > 0.5)
    assert clf.score(x, several) == pytest.approx(f1_score(several, said, average="micro"))
    assert clf.score(x, several) > 0.7
    hidden = np.where(np.isnan(known), 1 - several, np.nan)  # what was not known does not count
    assert clf.score(x, known) != clf.score(x, hidden)


def test_sparse_labels_and_ids_are_as_good(data, x, several):
    dense = quick().fit(x, several, graph=data.graph).predict_proba()
    assert np.array_equal(dense, quick().fit(x, scipy.sparse.csr_matrix(several), graph=data.graph).predict_proba())
    ids = np.arange(data.nodes)
    bound = quick(features=x, graph=data.graph).fit(ids, several)
    assert np.array_equal(dense, bound.predict_proba(ids))


def test_order_and_two_classes_are_losses_by_name(data, x):
    truth = data.labels.numpy()
    names = np.array(["low", "mid", "high"])[truth]
    numbered = quick(loss="ordinal").fit(x, truth, graph=data.graph)
    named = quick(loss=TaskKind.ORDINAL, class_order=["low", "mid", "high"]).fit(x, names, graph=data.graph)
    assert named.classes_.tolist() == ["low", "mid", "high"]
    assert np.array_equal(numbered.predict_proba(), named.predict_proba())
    np.testing.assert_allclose(named.predict_proba().sum(1), 1)
    assert named.predict_proba().shape == (data.nodes, 3)
    two = quick(loss="binary").fit(x, truth > 0, graph=data.graph)
    assert two.model_.out_features == 1
    np.testing.assert_allclose(two.predict_proba().sum(1), 1)
    assert np.array_equal(two.predict(), two.predict_proba()[:, 1] > 0.5)


@pytest.mark.long
def test_counts_are_expected_in_their_own_units(data, x):
    visits = 10 * data.labels.numpy() + np.arange(data.nodes) % 3
    reg = NodeRegressor(models.APPNP, loss="counts", **(QUICK | {"epochs": 200})).fit(x, visits, graph=data.graph)
    found = reg.predict()
    assert (found > 0).all()
    assert reg.mean_ == 0
    assert reg.score(x, visits) == pytest.approx(d2_tweedie_score(visits, found, power=1))
    assert reg.score(x, visits) > 0.4
    both = NodeRegressor(models.APPNP, loss="counts", **QUICK).fit(x, np.stack([visits, visits], 1), graph=data.graph)
    assert both.predict().shape == (data.nodes, 2)


def test_weights_move_what_is_predicted(data, x):
    truth = np.where(data.labels.numpy() == 0, 0, 1)
    plain, heavy = (
        quick().fit(x, truth, graph=data.graph),
        quick(class_weight={0: 20, 1: 1}).fit(x, truth, graph=data.graph),
    )
    assert heavy.predict_proba()[:, 0].mean() > plain.predict_proba()[:, 0].mean()
    by_node = quick().fit(x, truth, graph=data.graph, sample_weight=np.where(truth == 0, 20, 1))
    np.testing.assert_allclose(by_node.predict_proba(), heavy.predict_proba(), rtol=1e-5)
    ids = np.arange(data.nodes)[::2]
    bound = quick(features=x, graph=data.graph)
    one = bound.fit(ids, truth[ids], sample_weight=1 + ids % 3).predict_proba(ids)
    other = bound.fit(ids, truth[ids]).predict_proba(ids)
    assert not np.array_equal(one, other)


def test_questions_are_parameters_like_any_other(data, x):
    made = quick(loss="ordinal", class_weight="balanced", features=x, graph=data.graph)
    assert clone(made).get_params()["class_weight"] == "balanced"
    assert cross_val_score(made, np.arange(data.nodes), data.labels.numpy(), cv=NodeSplit(2)).shape == (2,)


WRONG = {
    "an unknown loss": (quick(loss="hinge"), Y, "loss"),
    "the regressor's": (quick(loss="counts"), Y, "loss"),
    "three are not two": (quick(loss="binary"), Y, "loss"),
    "names without an order": (quick(loss="ordinal"), np.array(list("abc") * 4), "class_order"),
    "another order": (quick(loss="ordinal", class_order=["a", "b"]), np.array(list("abc") * 4), "class_order"),
    "an order of classes": (quick(class_order=[0, 1, 2]), Y, "class_order"),
    "a class without weight": (quick(class_weight={0: 1, 1: 2}), Y, "class_weight"),
    "weights of labels": (quick(class_weight={0: 1, 1: 2}), np.array([[1, 1], [1, 0]] * 6), "class_weight"),
    "classes of numbers": (NodeRegressor(class_weight="balanced", **QUICK), Y, "class_weight"),
    "the classifier's": (NodeRegressor(loss="ordinal", **QUICK), Y, "loss"),
}


@pytest.mark.parametrize("case", WRONG)
def test_questions_that_make_no_sense(case):
    made, y, argument = WRONG[case]
    with pytest.raises(us.InputError) as caught:
        made.fit(X, y, graph=GRAPH)
    assert caught.value.argument == argument


DATA = {
    "neither yes nor no": (quick(), np.array([[1, 2], [1, 0]] * 6), None, "y, row 0"),
    "a negative count": (NodeRegressor(loss="counts", **QUICK), Y - 1, None, "y"),
    "half a count": (NodeRegressor(loss="counts", **QUICK), Y / 2, None, "y"),
    "a negative weight": (quick(), Y, np.where(Y == 1, -1, 1), "sample_weight"),
    "too few weights": (quick(), Y, np.ones(5), "sample_weight"),
    "a weight of nothing": (quick(valid_share=0), Y, np.where(np.arange(12) == 4, np.nan, 1), "node 4"),
    "weights of zero": (quick(), Y, np.zeros(12), "the train set"),
}


@pytest.mark.parametrize("case", DATA)
def test_answers_and_weights_that_cannot_be(case):
    made, y, weight, where = DATA[case]
    with pytest.raises(DataError) as caught:
        made.fit(X, y, graph=GRAPH, sample_weight=weight)
    assert caught.value.where == where
