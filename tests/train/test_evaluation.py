"""A trained model is evaluated on the split of its own trial, with scikit-learn's numbers, whatever it predicts."""

import numpy as np
import pytest
import torch
from sklearn import metrics

import unspool as us
from unspool import datasets, train
from unspool.evaluate import Uncalibrated
from unspool.train.evaluation import Evaluation, evaluate_trained, temperature_of

pytestmark = pytest.mark.long

CONFIG = train.TrainConfig(epochs=25)
TRIAL = train.Trial(us.models.APPNP, {"hidden": 8, "depth": 3}, CONFIG, seed=2)


def trained(data, kind=None, trial=TRIAL):
    loader = train.TrialLoader(data, kind=kind)
    model, run = train.train_trial(trial, loader)
    return evaluate_trained(model, loader, trial), run, model, loader


@pytest.mark.parametrize("kind", [train.TaskKind.CLASSES, train.TaskKind.BINARY], ids=lambda k: k.value)
def test_classes(kind):
    data = datasets.contextual_sbm(nodes=150, classes=2, seed=0)
    found, run, model, loader = trained(data, kind)
    split = loader.split(2)
    with torch.no_grad():
        output = model(data.features, data.graph).double()
    chances = (output.softmax(-1)[:, 1] if kind is train.TaskKind.CLASSES else output.sigmoid()[:, 0]).numpy()[
        split.test
    ]
    truth = data.labels.numpy()[split.test]
    assert found.items == found.classes.nodes == split.test.numel()
    assert found.classes.auc == pytest.approx(metrics.roc_auc_score(truth, chances), abs=1e-6)
    assert found.classes.accuracy == pytest.approx(metrics.accuracy_score(truth, chances > 0.5), abs=1e-12)
    assert found.raw.log_loss == pytest.approx(metrics.log_loss(truth, chances), abs=1e-6)
    scored = {"accuracy": found.classes.accuracy, "AUC": found.classes.auc}
    assert scored[loader.score] == pytest.approx(run.best.test_score, abs=1e-6)
    assert found.train_support == tuple(np.bincount(data.labels.numpy()[split.train]).tolist())
    assert found.calibration.nodes == split.valid.numel()
    assert found.calibrated is None or found.calibrated.log_loss > 0
    assert [m.probability for m in found.mistakes] == sorted((m.probability for m in found.mistakes), reverse=True)
    assert all(data.labels[m.node] == int(m.truth) and m.truth != m.predicted for m in found.mistakes)


def test_numbers_come_in_their_own_units():
    chance = torch.Generator().manual_seed(0)
    base = datasets.contextual_sbm(nodes=120, classes=2, seed=0)
    y = torch.stack(
        [1000 + 50 * base.labels + torch.randn(120, generator=chance), torch.randn(120, generator=chance)], 1
    )
    data = datasets.from_tensors(base.edge_index, base.features, targets=y)
    found, run, model, loader = trained(data)
    test, task = loader.split(2).test, loader.task(2)
    with torch.no_grad():
        said = task.scaling.undo(model(task.x, task.graph).double())[test].numpy()
    truth = y.double().numpy()[test]
    for k, one in enumerate(found.numbers):
        assert one.rmse == pytest.approx(metrics.root_mean_squared_error(truth[:, k], said[:, k]), rel=1e-4)
        assert one.r2 == pytest.approx(metrics.r2_score(truth[:, k], said[:, k]), abs=1e-4)
    assert found.numbers[0].mean_rmse > 10
    assert np.array(found.points).shape == (len(test), 2)
    assert abs(found.misses[0].truth - found.misses[0].predicted) == pytest.approx(
        np.abs(truth - said)[:, 0].max(), rel=1e-4
    )
    assert np.isfinite(run.best.test_score)


@pytest.mark.parametrize("kind", [train.TaskKind.RANKING, train.TaskKind.LINKS], ids=lambda k: k.value)
def test_other_kinds_have_fewer_entries(kind):
    data = datasets.contextual_sbm(nodes=100, classes=2, seed=0)
    if kind is train.TaskKind.RANKING:
        data = datasets.from_tensors(data.edge_index, data.features, targets=torch.arange(100.0))
    found, *_ = trained(data, kind)
    assert found == Evaluation(items=found.items)
    assert found.items > 0


def test_few_validation_nodes_fit_no_temperature():
    data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    split = data.split
    small = data.with_split(datasets.Split(split.train, split.valid[:8], split.test, data.nodes))
    found, *_ = trained(small)
    assert found.calibration.temperature is None
    assert found.calibration.reason is Uncalibrated.FEW_NODES
    assert found.calibrated is None


def test_evaluating_draws_nothing_and_leaves_the_model_as_it_was():
    data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    loader = train.TrialLoader(data)
    model, _ = train.train_trial(TRIAL, loader)
    model.train()
    state = torch.get_rng_state()
    a = evaluate_trained(model, loader, TRIAL)
    assert torch.equal(state, torch.get_rng_state())
    assert model.training
    assert a == evaluate_trained(model, loader, TRIAL)


@pytest.mark.parametrize(
    "card",
    [
        {},
        {"evaluation": 3},
        {"evaluation": {"calibration": {"temperature": "x"}}},
        {"evaluation": {"calibration": {"temperature": -1}}},
    ],
)
def test_a_card_without_a_temperature(card):
    assert temperature_of(card) is None
