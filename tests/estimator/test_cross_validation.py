"""Nothing of the scored nodes reaches training: not their labels, nor by scaling; and where they are absent, nothing at all."""

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

import unspool as us
from unspool.estimator import NodeClassifier, NodeRegressor, NodeSplit, Unseen, cross_validate_nodes

pytestmark = pytest.mark.long

QUICK = {"epochs": 10, "seed": 3}


class Recorder:
    """A scorer that keeps what was trained, and scores nothing."""

    def __init__(self):
        self.found = []

    def __call__(self, estimator, x, y):
        self.found.append(
            (
                estimator,
                np.asarray(x),
                estimator.predict_proba().copy() if hasattr(estimator, "predict_proba") else estimator.predict().copy(),
            )
        )
        return 0.0


def trained(x, y, graph, kind=NodeClassifier, **options):
    scorer = Recorder()
    cross_validate_nodes(kind("APPNP", **QUICK), x, y, graph, cv=NodeSplit(3), scoring=scorer, **options)
    return scorer.found


def test_it_is_cross_val_score_where_nothing_else_is_asked(data, x):
    y = data.labels.numpy()
    found = cross_validate_nodes(
        NodeClassifier("APPNP", **QUICK), x, y, data.graph, cv=NodeSplit(3), scoring="neg_log_loss"
    )
    bound = NodeClassifier("APPNP", features=x, graph=data.graph, **QUICK)
    assert np.array_equal(found, cross_val_score(bound, np.arange(90), y, cv=NodeSplit(3), scoring="neg_log_loss"))


@pytest.mark.parametrize("unseen", Unseen)
def test_labels_of_scored_nodes_do_not_count(unseen, data, x):
    y = data.labels.numpy()
    for fold, (_, test, before) in enumerate(trained(x, y, data.graph, unseen=unseen)):
        folds = list(NodeSplit(3).split(np.arange(90), y))
        changed = y.copy()
        changed[test] = -1
        clf = NodeClassifier("APPNP", **QUICK)
        # The same fold by hand, with labels of the scored nodes gone.
        assert np.array_equal(folds[fold][1], test)
        if unseen is Unseen.PRESENT:
            assert np.array_equal(clf.fit(x, changed, graph=data.graph).predict_proba(), before)


def test_targets_are_scaled_by_what_is_learnt_from(data, x):
    y = 100 * x[:, 0]
    plain = trained(x, y, data.graph, NodeRegressor)
    for estimator, test, _ in plain:
        far = y.copy()
        far[test] += 1e6
        folds = NodeSplit(3).split(np.arange(90), y)
        train = next(learn for learn, scored in folds if np.array_equal(scored, test))
        other = NodeRegressor("APPNP", features=x, graph=data.graph, **QUICK).fit(train, far[train])
        assert (other.mean_, other.deviation_) == (estimator.mean_, estimator.deviation_)


def test_features_are_scaled_by_what_is_learnt_from(data, x):
    seen = []

    class Spy(StandardScaler):
        def fit(self, rows, y=None):
            seen.append(len(rows))
            return super().fit(rows)

    found = trained(x, data.labels.numpy(), data.graph, transform=Spy())
    assert seen == [60, 60, 60]
    estimator, test, _ = found[0]
    train = np.setdiff1d(np.arange(90), test)
    assert np.allclose(estimator.features_.numpy(), StandardScaler().fit(x[train]).transform(x), atol=1e-6)


def test_absent_nodes_change_nothing_in_training(data, x):
    """Their features may be anything: the weights stay, and so do predictions for whoever does not see them."""
    y = data.labels.numpy()
    before = trained(x, y, data.graph, unseen=Unseen.ABSENT)
    test = before[0][1]
    poisoned = x.copy()
    poisoned[test] += 100.0
    after = trained(poisoned, y, data.graph, unseen=Unseen.ABSENT)
    present = trained(poisoned, y, data.graph, unseen=Unseen.PRESENT)

    def weights(found):
        return [p.detach().clone() for p in found[0][0].model_.parameters()]

    same = [bool((a == b).all()) for a, b in zip(weights(before), weights(after), strict=True)]
    assert all(same)
    assert not all(bool((a == b).all()) for a, b in zip(weights(before), weights(present), strict=True))
    assert before[0][2].shape == (90, 3)


def test_groups_stay_together(data, x):
    y, groups = data.labels.numpy(), np.arange(90) // 5
    for train, test in NodeSplit(3).split(np.arange(90), y, groups):
        assert not set(groups[train]) & set(groups[test])
    for train, test in NodeSplit(3).split(np.arange(90), x[:, 0], groups):
        assert not set(groups[train]) & set(groups[test])
    found = cross_validate_nodes(NodeClassifier("SGC", **QUICK), x, y, data.graph, cv=NodeSplit(3), groups=groups)
    assert found.shape == (3,)
    with pytest.raises(ValueError, match="groups"):
        next(NodeSplit(3).split(np.arange(90), y, groups[:5]))


def test_unlabelled_nodes_are_in_no_fold(data, x, partly):
    for _, test, _ in trained(x, partly, data.graph):
        assert (partly[test] >= 0).all()


def test_an_estimator_moves_to_another_graph(data, x):
    clf = NodeClassifier("SGC", normalise_rows=True, **QUICK).fit(abs(x), data.labels.numpy(), graph=data.graph)
    ring = us.graph.ring(12)
    wanted = clf.predict_proba(abs(x[:12]), graph=ring)
    assert np.array_equal(clf.move_to(abs(x[:12]), ring).predict_proba([3, 5]), wanted[[3, 5]])
