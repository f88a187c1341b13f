"""What is learnt beside scikit-learn's own model of the same question, which does not see the graph."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score, d2_tweedie_score, f1_score
from sklearn.multioutput import MultiOutputClassifier

import unspool as us
from unspool import datasets, train
from unspool.train import TaskKind, TrainConfig, Trial, TrialLoader

pytestmark = pytest.mark.slow

NODES = 400
#: A propagation that helps where neighbours are alike.
TRIAL = Trial(us.models.APPNP, {"depth": 6, "hidden": 16, "dropout": 0.1}, TrainConfig(epochs=200, patience=60))


@pytest.fixture(scope="module")
def base():
    """Four groups whose neighbours are alike and whose features are poor, so that a graph helps."""
    return datasets.contextual_sbm(nodes=NODES, classes=4, seed=0)


def asked(base, **answer):
    return datasets.from_tensors(base.edge_index, base.features, **answer)


def trained(data, kind=None, **more):
    loader = TrialLoader(data, kind=kind, **more)
    model, run = train.train_trial(TRIAL, loader)
    task = loader.task()
    with torch.no_grad():
        answer = loader.kind.answer(model(task.x, task.graph).double())
    return answer.numpy(), run.best.test_score, task


def tables(data, task):
    x = data.features.numpy()
    return x[task.train], x[task.test], task.train.numpy(), task.test.numpy()


def test_several_labels(base):
    group = base.labels.numpy()
    rows = np.stack([group < 2, group % 2 == 0, group == 3], axis=1).astype(float)
    answer, score, task = trained(asked(base, labels=torch.tensor(rows)))
    x, x_test, learnt, test = tables(base, task)
    plain = MultiOutputClassifier(LogisticRegression()).fit(x, rows[learnt]).predict(x_test)
    ours, theirs = (f1_score(rows[test], said, average="micro") for said in (answer[test] > 0.5, plain))
    assert score == pytest.approx(ours, abs=1e-5)
    assert ours > theirs


def test_ordered_classes(base):
    answer, score, task = trained(asked(base, labels=base.labels), TaskKind.ORDINAL)
    x, x_test, learnt, test = tables(base, task)
    truth = base.labels.numpy()
    plain = LogisticRegression().fit(x, truth[learnt]).predict(x_test)
    ours, theirs = (
        cohen_kappa_score(truth[test], said, weights="quadratic") for said in (answer[test].argmax(1), plain)
    )
    assert score == pytest.approx(ours, abs=1e-5)
    assert ours > theirs


def test_counts(base):
    visits = np.random.default_rng(0).poisson(np.array([1, 4, 9, 20])[base.labels.numpy()])
    data = asked(base, targets=torch.tensor(visits).float())
    answer, score, task = trained(data, TaskKind.COUNTS)
    found = task.scaling.undo(torch.as_tensor(answer)).numpy()[:, 0]
    x, x_test, learnt, test = tables(base, task)
    plain = PoissonRegressor(max_iter=500).fit(x, visits[learnt]).predict(x_test)
    ours, theirs = (d2_tweedie_score(visits[test], said, power=1) for said in (found[test], plain))
    assert score == pytest.approx(ours, abs=1e-4)
    assert ours > theirs


def test_balanced_classes_find_more_of_the_rare_one(base):
    rare = (base.labels == 3) & (torch.arange(NODES) % 3 == 0)
    data = asked(base, labels=rare.long())
    truth = rare.numpy().astype(int)
    found = {}
    for rule in (None, "balanced"):
        answer, _, task = trained(data, class_weight=rule)
        x, x_test, learnt, test = tables(base, task)
        plain = LogisticRegression(class_weight=rule).fit(x, truth[learnt]).predict(x_test)
        found[rule] = [balanced_accuracy_score(truth[test], said) for said in (answer[test].argmax(1), plain)]
    assert found["balanced"][0] > found[None][0] + 0.1
    assert found["balanced"][0] > found["balanced"][1]
