"""Ctrl-C between two epochs: a snapshot of that moment, continued to the same numbers; fresh pairs for links."""

import os
import signal

import numpy as np
import pytest
import scipy.sparse
import torch

import unspool as us
from unspool import datasets, train


@pytest.fixture(autouse=True)
def listening():
    """Python's own handler, also where the tests run in the background, which shells let ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=90, classes=3, seed=1)


def made(epochs):
    return train.Trial(us.models.GCN, {"hidden": 8}, train.TrainConfig(epochs=epochs))


def test_ctrl_c_keeps_the_last_epoch_and_is_continued_from_there(data, tmp_path):
    trial, file = made(epochs=20), tmp_path / "run.pt"
    expected = train.train_trial(trial, data)[1]

    def watch(now, best):
        if now.epoch == 7:
            os.kill(os.getpid(), signal.SIGINT)

    cut = train.train_trial(trial, data, watch=watch, snapshot=file)[1]
    assert cut.ending is train.Ending.INTERRUPTED
    assert len(cut.history) == 7
    assert file.is_file()  # although no ten seconds have passed
    seen = []
    again = train.train_trial(trial, data, watch=lambda now, best: seen.append(now.epoch), snapshot=file)[1]
    assert seen[0] == 8
    assert again.history == expected.history


def test_a_snapshot_is_not_continued_with_fewer_epochs_than_it_holds(data, tmp_path):
    file = tmp_path / "run.pt"
    train.train_trial(made(epochs=6), data, snapshot=file)
    with pytest.raises(ValueError, match=r"holds 6 epochs already, more than epochs=4; give at least as many"):
        train.train_trial(made(epochs=4), data, snapshot=file)


class Pulled(us.models.SGC):
    gain = 0.5

    def forward(self, x, graph, edge_weight=None):
        return self.gain * super().forward(x, graph, edge_weight)


class Turned(Pulled):
    def forward(self, x, graph, edge_weight=None):
        return -3 * super().forward(x, graph, edge_weight)


def test_a_snapshot_is_not_continued_with_another_class_code_or_seed(data, tmp_path, monkeypatch):
    file, config = tmp_path / "run.pt", train.TrainConfig(epochs=4)
    began = train.Trial(Pulled, {}, config)
    train.train_trial(began, data, snapshot=file)
    more = config.replace(epochs=6)
    with pytest.raises(ValueError, match=r"run\.pt began with model .*:Pulled, not .*:Turned; continue it as it began"):
        train.train_trial(train.Trial(Turned, {}, more), data, snapshot=file)
    with pytest.raises(ValueError, match=r"run\.pt began with seed 0, not 2; continue it as it began"):
        train.train_trial(train.Trial(Pulled, {}, more, seed=2), data, snapshot=file)
    monkeypatch.setattr(Pulled, "gain", 0.25)
    with pytest.raises(ValueError, match=r"run\.pt began with other code of the model; continue it as it began"):
        train.train_trial(train.Trial(Pulled, {}, more), data, snapshot=file)
    monkeypatch.undo()
    assert len(train.train_trial(train.Trial(Pulled, {}, more), data, snapshot=file)[1].history) == 6


def test_links_meet_fresh_pairs_in_training_and_the_same_ones_in_evaluation(data):
    task = train.link_task(data, valid=0.1, test=0.2)
    output = torch.randn(data.nodes, 4, generator=torch.Generator().manual_seed(0))
    yes = task.target[task.train] > 0.5
    torch.manual_seed(0)
    (a, wanted), (b, _) = (task.loss.learn(output, task.train, task.target) for _ in range(2))
    assert torch.equal(wanted, task.target[task.train])
    assert torch.equal(a[yes], b[yes])
    assert torch.equal(a[yes], task.loss.read(output, task.train)[yes])
    assert float((a[~yes] != b[~yes]).float().mean()) > 0.9
    torch.manual_seed(0)
    assert torch.equal(task.loss.learn(output, task.train, task.target)[0], a)


def test_wrong_kinds_and_classes_are_named(data):
    with pytest.raises(us.InputError) as caught:
        train.TrainConfig(precision="bfloat16")
    assert (caught.value.argument, caught.value.value) == ("precision", "bfloat16")
    assert caught.value.expected == "one of Precision.FULL, Precision.BFLOAT16"
    with pytest.raises(ValueError, match="class 2 occurs, but the model has 2 outputs; build it with out_features=3"):
        train.fit(us.models.GCN(data.features.shape[1], 2), train.Task.of(data), train.TrainConfig(epochs=1))


def test_a_loss_that_is_not_a_number_is_called_so(data):
    split = data.split
    parts = (data.features, data.graph, data.labels, split.train, split.valid, split.test)
    task = train.Task(*parts, lambda output, target: output.sum() * float("nan"))
    with pytest.raises(ValueError, match="the training loss is not finite in epoch 1"):
        train.fit(us.models.GCN(data.features.shape[1], 3, hidden=8), task, train.TrainConfig(epochs=3))


def test_seconds_of_all_pieces_count(data, tmp_path):
    trial, file = made(epochs=12), tmp_path / "run.pt"

    def watch(now, best):
        if now.epoch == 6:
            os.kill(os.getpid(), signal.SIGINT)

    first = train.train_trial(trial, data, watch=watch, snapshot=file)[1]
    assert train.train_trial(trial, data, snapshot=file)[1].seconds > first.seconds > 0


def test_features_that_are_all_zero_have_snapshots(tmp_path):
    """Nothing is stored of them, and there are numbers to compare nevertheless."""
    labels = [i % 2 for i in range(20)]
    edges = [[*range(19)], [*range(1, 20)]]
    empty, full = (
        train.Task.of(
            datasets.from_tensors(edges, scipy.sparse.csr_array(value * np.eye(20, 3)), labels, directed=False)
        )
        for value in (0.0, 1.0)
    )
    assert empty.digest != full.digest
    train.fit(us.models.APPNP(3, 2), empty, train.TrainConfig(epochs=2), snapshot=tmp_path / "run.pt")
