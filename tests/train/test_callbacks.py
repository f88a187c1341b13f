"""Who looks on: callbacks see every epoch and may end training; TensorBoard gets the numbers."""

import importlib.util
import sys
from types import ModuleType

import pytest

import unspool as us
from unspool import datasets, train
from unspool.train import Ending, TensorBoard, TrainConfig, Verdict


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=60, classes=3, seed=0)


TRIAL = train.Trial(us.models.GCN, {"hidden": 8}, TrainConfig(epochs=12, lr=0.02))


def test_callbacks_see_what_is_written_down(data):
    seen = []
    model, run = train.train_trial(TRIAL, data, callbacks=[seen.append])
    assert [m.epoch for m in seen] == list(range(1, 13))
    assert [(m.train_loss, m.valid_loss, m.valid_score, m.test_score) for m in seen] == [
        (e.train_loss, e.valid_loss, e.valid_score, e.test_score) for e in run.history
    ]
    assert seen[-1].best == run.best
    assert seen[-1].model is model
    assert {m.learning_rate for m in seen} == {0.02}


def test_looking_on_changes_nothing(data):
    plain = train.train_trial(TRIAL, data)[1]
    assert (
        train.train_trial(TRIAL, data, callbacks=[lambda m: None, lambda m: Verdict.GO_ON])[1].history == plain.history
    )


def test_a_callback_ends_training_and_the_best_weights_are_kept(data):
    _, run = train.train_trial(TRIAL, data, callbacks=[lambda m: Verdict.STOP if m.epoch == 5 else None])
    whole = train.train_trial(TRIAL, data)[1]
    assert (run.ending, len(run.history)) == (Ending.STOPPED, 5)
    assert run.best == min(whole.history[:5], key=lambda e: e.valid_loss)


def test_all_callbacks_are_called_when_one_stops(data):
    seen = []
    train.train_trial(TRIAL, data, callbacks=[lambda m: Verdict.STOP, seen.append])
    assert len(seen) == 1


def test_an_answer_that_is_none_of_both_is_refused(data):
    with pytest.raises(us.InputError) as caught:
        train.train_trial(TRIAL, data, callbacks=[lambda m: True])
    assert (caught.value.argument, caught.value.value) == ("callbacks", True)


class Writer:
    def __init__(self, folder=None):
        self.folder, self.rows, self.flushed = folder, [], 0

    def add_scalar(self, name, value, step):
        self.rows.append((name, value, step))

    def flush(self):
        self.flushed += 1


def test_tensorboard_gets_every_number(data):
    writer = Writer()
    _, run = train.train_trial(TRIAL, data, callbacks=[TensorBoard(writer=writer)])
    last = run.history[-1]
    assert writer.rows[-5:] == [
        ("loss/train", last.train_loss, 12),
        ("loss/valid", last.valid_loss, 12),
        ("score/valid", last.valid_score, 12),
        ("score/test", last.test_score, 12),
        ("learning_rate", 0.02, 12),
    ]
    assert writer.flushed == 12


def test_tensorboards_own_writer_is_made_where_it_is_installed(data, tmp_path, monkeypatch):
    fake = ModuleType("torch.utils.tensorboard")
    fake.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", fake)
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: object() if name == "tensorboard" else real(name, *a)
    )
    board = TensorBoard(tmp_path / "runs")
    assert board._writer.folder == str(tmp_path / "runs")


def test_without_tensorboard_a_sentence_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None)
    with pytest.raises(ModuleNotFoundError, match="unspool\\[tensorboard\\]"):
        TensorBoard(tmp_path)


@pytest.mark.parametrize("given", [{}, {"folder": "x", "writer": Writer()}])
def test_a_folder_or_a_writer(given):
    with pytest.raises(us.InputError):
        TensorBoard(**given)
