"""Training on a GPU: captured epochs are the written ones, the same seed gives the same bits, cut-off runs end alike."""

import pytest
import torch

import unspool as us
from unspool import datasets, train
from unspool.train.epochs import WARM_UP, Epochs, make_optimiser

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

EPOCHS = 25


@pytest.fixture(scope="module")
def data():
    return datasets.load("citeseer").row_normalised()


@pytest.fixture(scope="module")
def task(data):
    return train.Task.of(data).to("cuda")


def build(kind, data, seed=0):
    torch.manual_seed(seed)
    return kind(data.features.shape[1], len(data.classes)).cuda()


def numbers(kind, data, task, captured, config, epochs=EPOCHS):
    model = build(kind, data)
    machine = Epochs(model, make_optimiser(config, model), task, config)
    machine._willing = captured
    found = [machine() for _ in range(epochs)]
    assert machine.captured == captured
    return found, model


@pytest.mark.parametrize("kind", us.models.MODELS, ids=lambda kind: kind.__name__)
def test_captured_epochs_are_the_written_ones(kind, data, task):
    config = train.TrainConfig(lr=0.01, weight_decay=5e-4)
    written, a = numbers(kind, data, task, False, config)
    replayed, b = numbers(kind, data, task, True, config)
    assert EPOCHS > WARM_UP + 10
    torch.testing.assert_close(torch.tensor(written), torch.tensor(replayed), rtol=1e-4, atol=1e-3)
    assert written[:WARM_UP] == replayed[:WARM_UP]
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("kind", us.models.MODELS, ids=lambda kind: kind.__name__)
def test_same_seed_same_bits(kind, data):
    config = train.TrainConfig(lr=0.01, weight_decay=5e-4, epochs=EPOCHS)
    loader = train.TrialLoader(data, "cuda")
    models, runs = zip(
        *(train.train_trial(train.Trial(kind, config=config, seed=3), loader) for _ in range(2)), strict=True
    )
    assert runs[0].history == runs[1].history
    assert all(torch.equal(p, q) for p, q in zip(models[0].parameters(), models[1].parameters(), strict=True))


class CutOff(BaseException):
    pass


@pytest.mark.parametrize("at", [2, WARM_UP + 1, 15])
def test_a_cut_off_run_ends_like_one_that_was_not(data, task, tmp_path, at):
    config = train.TrainConfig(epochs=EPOCHS)
    expected = train.fit(build(us.models.UGDGNN, data), task, config)

    def watch(now, best):
        if now.epoch == at:
            raise CutOff

    with pytest.raises(CutOff):
        train.fit(
            build(us.models.UGDGNN, data), task, config, watch=watch, snapshot=tmp_path / "run.pt", snapshot_every=0.0
        )
    again = build(us.models.UGDGNN, data, seed=9)
    assert train.fit(again, task, config, snapshot=tmp_path / "run.pt").history == expected.history


def test_a_loss_that_looks_at_values_runs_as_written(data, task):
    def loss(output, target):
        value = torch.nn.functional.cross_entropy(output, target)
        return value if float(value.detach()) > 0 else value * 2

    own = train.Task(task.x, task.graph, task.target, task.train, task.valid, task.test, loss)
    model = build(us.models.GCN, data)
    run = train.fit(model, own, train.TrainConfig(epochs=12))
    plain = train.fit(build(us.models.GCN, data), task, train.TrainConfig(epochs=12))
    for a, b in zip(run.history, plain.history, strict=True):
        assert a.train_loss == pytest.approx(b.train_loss, rel=1e-4)


@pytest.mark.parametrize("optimiser", [torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.NAdam])
def test_any_optimiser(data, task, optimiser):
    model = build(us.models.UGDGNN, data)
    run = train.fit(model, task, train.TrainConfig(lr=0.01, epochs=EPOCHS, optimiser=optimiser))
    assert run.history[-1].train_loss < run.history[0].train_loss


@pytest.mark.parametrize("kind", us.models.MODELS, ids=lambda kind: kind.__name__)
def test_bfloat16_learns_what_float32_learns(kind, data, task):
    full = train.fit(build(kind, data), task, train.TrainConfig(epochs=60))
    half = train.fit(build(kind, data), task, train.TrainConfig(epochs=60, precision=train.Precision.BFLOAT16))
    assert half.best.valid_score == pytest.approx(full.best.valid_score, abs=0.03)


def test_links_and_ranks_can_be_captured(data):
    task = train.link_task(data).to("cuda")
    model = build(us.models.GPRGNN, data)
    config = train.TrainConfig(epochs=EPOCHS)
    machine = Epochs(model, make_optimiser(config, model), task, config)
    found = [machine() for _ in range(EPOCHS)]
    assert machine.captured
    assert found[-1][0] < found[0][0]
    assert found[-1][2] > 0.6
