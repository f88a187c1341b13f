"""Baselines: only training labels go in, the same seed gives the same numbers, and every kind of target has some or says why not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import unspool as us
from unspool import datasets, train
from unspool.train.baselines import (
    Baseline,
    Baselines,
    BaselineScore,
    Skipped,
    baselines_key,
    measure_baselines,
    perceptron_of,
    read_baselines,
    write_baselines,
)

pytestmark = pytest.mark.long

TRIAL = train.Trial(us.models.GPRGNN, {"hidden": 8, "depth": 3}, train.TrainConfig(epochs=30))


def toy(kind):
    """A graph of two groups, with classes or numbers that follow them."""
    data = datasets.contextual_sbm(nodes=120, classes=2, seed=0)
    if kind in (train.TaskKind.NUMBERS, train.TaskKind.RANKING):
        chance = np.random.default_rng(0)
        numbers = 100.0 + 10 * data.labels.numpy() + chance.normal(0, 1, data.nodes)
        data = datasets.from_tensors(data.edge_index, data.features, targets=torch.as_tensor(numbers))
    if kind is train.TaskKind.COUNTS:
        counts = np.random.default_rng(0).poisson(1 + 4 * data.labels.numpy())
        data = datasets.from_tensors(data.edge_index, data.features, targets=torch.as_tensor(counts).double())
    if kind is train.TaskKind.MULTILABEL:
        rows = torch.stack([data.labels, 1 - data.labels], 1).double()
        data = datasets.from_tensors(data.edge_index, data.features, targets=rows, classes=("a", "b"))
    return train.TrialLoader(data, kind=kind)


@pytest.mark.parametrize("kind", train.TaskKind, ids=lambda k: k.value)
def test_every_kind_has_baselines_or_says_why_not(kind):
    found = measure_baselines(TRIAL, toy(kind), [0, 1])
    assert [one.baseline for one in found.entries] == list(Baseline)
    for one in found.entries:
        assert (one.skipped is None) == (len(one.scores) == 2)
        assert all(np.isfinite(one.scores))
    wanted = {"classes": 0.4, "binary": 0.5, "numbers": -1.0, "ranking": 0.5, "links": 0.5}
    if kind.value in wanted:
        assert found.mean(Baseline.CONSTANT) >= wanted[kind.value]
    if kind in (train.TaskKind.CLASSES, train.TaskKind.NUMBERS):
        assert found.mean(Baseline.GRAPH) > found.mean(Baseline.CONSTANT)


def test_the_constant_is_the_most_common_class_or_the_training_mean():
    loader = toy(train.TaskKind.CLASSES)
    counts = torch.bincount(loader.data.labels[loader.split(0).test])
    assert measure_baselines(TRIAL, loader, [0]).mean(Baseline.CONSTANT) == pytest.approx(
        float(counts.max() / counts.sum())
    )
    loader = toy(train.TaskKind.NUMBERS)
    split, y = loader.split(0), loader.data.targets.double().flatten()
    apart = (y[split.test] - y[split.train].mean()).square().sum()
    wanted = 1 - apart / (y[split.test] - y[split.test].mean()).square().sum()
    assert measure_baselines(TRIAL, loader, [0]).mean(Baseline.CONSTANT) == pytest.approx(float(wanted), abs=1e-5)


def test_test_labels_are_not_looked_at():
    """Whatever stands at test nodes, propagated labels say the same about them."""
    loader = toy(train.TaskKind.CLASSES)
    task = loader.task(0)
    from unspool.train.baselines import _spread

    changed = task.target.clone()
    changed[task.test] = 1 - changed[task.test]
    changed[task.valid] = 1 - changed[task.valid]
    for kind in (train.TaskKind.CLASSES, train.TaskKind.RANKING):
        a, b = (_spread(replace(task, target=y), kind, 1.0) for y in (task.target, changed))
        assert torch.equal(a, b)


def test_the_perceptron_is_a_trial_like_any_other():
    loader = toy(train.TaskKind.CLASSES)
    found = measure_baselines(TRIAL, loader, [0, 1, 2, 3, 4])
    assert found.seeds == (0, 1, 2)
    again = [train.train_trial(perceptron_of(TRIAL).with_seed(s), loader)[1].best.test_score for s in found.seeds]
    assert list(found.of(Baseline.FEATURES).scores) == again
    assert perceptron_of(TRIAL).settings == {"hidden": 8, "dropout": 0.5}
    assert perceptron_of(replace(TRIAL, config=TRIAL.config.replace(epochs=5000))).config.epochs == 200


def test_what_cannot_be_measured_says_why(monkeypatch):
    loader = toy(train.TaskKind.CLASSES)
    itself = measure_baselines(replace(TRIAL, model=us.models.MLP, settings={}), loader, [0])
    assert itself.of(Baseline.FEATURES).skipped is Skipped.ITSELF
    one_way = datasets.from_tensors(
        torch.tensor([[i, (i + 1) % 40] for i in range(40)]).T, torch.randn(40, 3), torch.arange(40) % 2, directed=True
    )
    found = measure_baselines(TRIAL, train.TrialLoader(one_way), [0])
    assert found.of(Baseline.GRAPH).skipped is Skipped.NO_LAPLACIAN
    wild = replace(TRIAL, config=TRIAL.config.replace(lr=1e30))
    assert measure_baselines(wild, loader, [0]).of(Baseline.FEATURES).skipped is Skipped.DIVERGED
    monkeypatch.setattr("unspool.train.baselines.NO_SEED", 1.0)
    monkeypatch.setattr("unspool.train.baselines.NO_GRAPH", 1.0)
    large = measure_baselines(TRIAL, loader, [0])
    assert [one.skipped for one in large.entries] == [None, Skipped.LARGE, Skipped.LARGE]


def test_an_interrupt_leaves_nothing_half_measured(monkeypatch):
    from unspool.train import baselines

    def cut(trial, loader):
        return None, type("Run", (), {"ending": train.Ending.INTERRUPTED})()

    monkeypatch.setattr(baselines, "train_trial", cut)
    assert measure_baselines(TRIAL, toy(train.TaskKind.CLASSES), [0]) is None


def test_a_key_belongs_to_what_decides_them():
    loader = toy(train.TaskKind.CLASSES)
    key = baselines_key(TRIAL, loader, [0])
    assert key == baselines_key(TRIAL.with_seed(7), toy(train.TaskKind.CLASSES), [0])
    # Another model of the same width has the same baselines.
    assert key == baselines_key(replace(TRIAL, model=us.models.APPNP, settings={"hidden": 8}), loader, [0])
    others = [
        baselines_key(replace(TRIAL, model=us.models.MLP, settings={"hidden": 8}), loader, [0]),
        baselines_key(replace(TRIAL, settings={"hidden": 9}), loader, [0]),
        baselines_key(replace(TRIAL, config=TRIAL.config.replace(lr=0.5)), loader, [0]),
        baselines_key(TRIAL, loader, [1]),
        baselines_key(TRIAL, toy(train.TaskKind.BINARY), [0]),
    ]
    assert len({key, *others}) == 6


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"key": "k", "score": 3}', "[" * 100_000])
def test_a_file_that_is_not_ours_is_nothing(text, tmp_path):
    assert read_baselines(tmp_path) is None
    (tmp_path / "baselines.json").write_text(text)
    assert read_baselines(tmp_path) is None
    made = Baselines("k", "d", "R²", (0,), (BaselineScore(Baseline.GRAPH, skipped=Skipped.LARGE),))
    write_baselines(tmp_path, made)
    assert read_baselines(tmp_path) == made
