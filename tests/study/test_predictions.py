"""What networks of many trials predict is what each predicts alone, with the weights of the epoch that was chosen."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import unspool as us
from reference.cases import doubles
from study.double_loader import DoubleLoader
from unspool import datasets, train
from unspool.errors import DataError, IncompatibleError, InputError
from unspool.study.engine import train_trials
from unspool.study.engine.tracker import MemoryTracker
from unspool.train import Monitor, Stop, Trial

SMALL = {"hidden": 5, "depth": 2}
CONFIGS = [
    train.TrainConfig(lr=0.05, epochs=14),
    train.TrainConfig(lr=0.3, epochs=25, stop=Stop.PATIENCE, patience=3),
    train.TrainConfig(lr=0.2, epochs=23, stop=Stop.ABOVE_MEAN, patience=4, min_epochs=6),
    train.TrainConfig(lr=0.1, epochs=9, monitor=Monitor.LAST_EPOCH),
    train.TrainConfig(
        lr=0.2, epochs=17, monitor=Monitor.VALID_SCORE, stop=Stop.PATIENCE, patience=5,
        upper="ce + 2*consistency(views=2) under drop_nodes(0.5)",
    ),
]  # fmt: skip


class Noisy(nn.Module):
    """Draws from torch's generator, which a stack cannot."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.only = us.nn.Linear(in_features, out_features)

    def forward(self, x, graph):
        return self.only(nn.functional.dropout(x, 0.5, self.training))


TRIALS = [
    Trial(kind, {**SMALL, "dropout": 0.2 + 0.1 * place}, config, 3 * place)
    for kind in (us.models.UGDGNN, us.models.StableGNN)
    for place, config in enumerate(CONFIGS)
] + [Trial(Noisy, {}, CONFIGS[1], 5)]


@pytest.fixture(scope="module")
def loader():
    return DoubleLoader(datasets.contextual_sbm(nodes=60, classes=3, seed=0))  # each seed has its own split


@pytest.fixture(scope="module")
def alone(loader):
    """By trial, what its network says when it is trained by itself."""
    found = {}
    for trial in TRIALS:
        with doubles():
            model, _ = train.train_trial(trial, loader)
        with torch.no_grad():
            task = loader.task(trial.seed)
            found[trial] = model.eval()(task.x, task.graph)
    return found


@pytest.mark.parametrize(("most", "chunk"), [(1, 5), (3, 4), (64, 7), (64, 200)])
def test_the_engine_hands_over_what_the_chosen_weights_say(loader, alone, most, chunk):
    said = {}
    train_trials(TRIALS, loader.prepare, MemoryTracker(), most=most, chunk=chunk, keep=said.__setitem__)
    assert said.keys() == alone.keys()
    for trial, output in said.items():
        assert torch.allclose(output, alone[trial], atol=1e-9), trial


def test_predictions_are_probabilities_in_the_order_of_the_trials(loader, alone):
    said = us.study.predictions(TRIALS, loader)
    assert list(said) == TRIALS
    for trial, p in said.items():
        assert p.dtype == torch.float32
        assert torch.allclose(p.double(), alone[trial].softmax(-1), atol=1e-6)


def test_a_folder_keeps_them_and_trains_only_what_it_lacks(loader, tmp_path, monkeypatch):
    some = TRIALS[:3]
    first = us.study.predictions(some[:2], loader, folder=tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 2
    trained = []
    monkeypatch.setattr("unspool.study.predicting.train_trials", lambda trials, *_, **__: trained.append(list(trials)))
    again = us.study.predictions(some, loader, folder=tmp_path / "kept")
    assert trained == [some[2:]]
    assert list(again) == some[:2]
    assert all(torch.equal(again[trial], first[trial]) for trial in some[:2])


@pytest.mark.parametrize("spoil", [lambda b: b[:-3], lambda b: b[:200] + b"x" + b[201:], lambda _: b""])
def test_a_damaged_file_is_refused_by_name(loader, tmp_path, spoil):
    us.study.predictions(TRIALS[:1], loader, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(DataError, match=rf"{file.name}.*is not what was written there.*remove it, and run this again"):
        us.study.predictions(TRIALS[:1], loader, folder=tmp_path)


def test_when_time_is_up_what_has_not_ended_is_missing(loader):
    assert us.study.predictions(TRIALS, loader, seconds=1e-9) == {}


def test_numbers_come_in_the_units_of_the_targets():
    drawn = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    prices = 1000.0 + 50.0 * drawn.labels.double()
    data = replace(drawn, targets=prices[:, None])
    trial = Trial(us.models.APPNP, SMALL, train.TrainConfig(epochs=60, lr=0.05))
    (said,) = us.study.predictions([trial], data).values()
    assert said.shape == (60, 1)
    assert float((said[:, 0] - prices).abs().mean()) < 25.0


def test_what_cannot_predict_every_node_is_refused(loader):
    batches = Trial(us.models.MLP, {"hidden": 4}, train.TrainConfig(epochs=2, batch_size=8))
    with pytest.raises(IncompatibleError, match="it trains in batches"):
        us.study.predictions([batches], loader)
    wild = Trial(us.models.UGDGNN, SMALL, train.TrainConfig(epochs=4, lr=1e200))
    with pytest.raises(IncompatibleError, match="it diverged; leave it out"):
        us.study.predictions([wild], loader)
    broken = Trial(us.models.UGDGNN, {"hidden": 5, "depth": 0})
    with pytest.raises(IncompatibleError, match=r"has no prediction: .*depth"):
        us.study.predictions([broken], loader)
    links = train.TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0), kind=train.TaskKind.LINKS)
    with pytest.raises(IncompatibleError, match="predictions are about nodes"):
        us.study.predictions(TRIALS[:1], links)
    with pytest.raises(InputError, match="device"):
        us.study.predictions(TRIALS[:1], loader, device="cpu")


def test_scores_of_predictions_are_those_of_a_study():
    loader = train.TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
    grid = us.study.grid(us.models.GCN, hidden=[4, 8], epochs=15, seed=range(3))
    scores = {row.key: row.result.test_score for row in us.study.run(grid, loader).rows}
    for trial, p in us.study.predictions(grid, loader).items():
        task = loader.task(trial.seed)
        right = (p[task.test].argmax(-1) == task.target[task.test]).double().mean()
        assert float(right) == pytest.approx(scores[trial.key(loader.fingerprint)], abs=1e-6)
