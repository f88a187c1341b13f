"""Learning rates that change and gradients that are clipped: as torch does it, after a break as without, alone and in studies."""

import math

import pytest
import torch

import unspool as us
from unspool import datasets, study, train
from unspool.train import Monitor, Rates, Stop, TrainConfig, Trial

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=60, classes=3, seed=0)


CHANGES = {
    "cosine": {"lr_schedule": Rates.COSINE, "lr_epochs": 10},
    "step": {"lr_schedule": Rates.STEP, "lr_epochs": 4},
    "clip": {"clip": 0.05},
}


def test_rates_are_those_of_torchs_schedulers():
    for config, scheduler in (
        (TrainConfig(lr=0.3, **CHANGES["step"]), lambda o: torch.optim.lr_scheduler.StepLR(o, 4)),
        (
            TrainConfig(lr=0.3, **CHANGES["cosine"]),
            lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10, eta_min=0.003),
        ),
    ):
        optimiser = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.3)
        other = scheduler(optimiser)
        for epoch in range(1, 11):
            assert math.isclose(config.rate(epoch), optimiser.param_groups[0]["lr"], rel_tol=1e-9)
            optimiser.step()
            other.step()


@pytest.mark.parametrize("change", CHANGES)
def test_training_equals_a_loop_written_out(change, data):
    """Plain gradient descent, so that a rate or a clipped gradient shows in every number."""
    config = TrainConfig(
        lr=0.5, weight_decay=0, epochs=12, optimiser=torch.optim.SGD, stop=Stop.NEVER, **CHANGES[change]
    )
    trial = Trial(us.models.SGC, config=config)
    _, run = train.train_trial(trial, data)
    model = trial.build(data.features.shape[1], 3)
    losses = []
    for epoch in range(1, 13):
        model.zero_grad()
        output = model(data.features, data.graph)
        loss = torch.nn.functional.cross_entropy(output[data.split.train], data.labels[data.split.train])
        loss.backward()
        losses.append(loss.item())
        size = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
        short = min(1.0, config.clip / (float(size) + 1e-6)) if config.clip is not None else 1.0
        with torch.no_grad():
            for p in model.parameters():
                p.sub_(config.rate(epoch) * short * p.grad)
    assert [e.train_loss for e in run.history] == pytest.approx(losses, rel=1e-4)
    plain = train.train_trial(Trial(us.models.SGC, config=config.replace(lr_schedule=Rates.CONSTANT, clip=None)), data)[
        1
    ]
    assert [e.train_loss for e in plain.history] != pytest.approx(losses, rel=1e-4)


@pytest.mark.parametrize("change", CHANGES)
def test_a_run_that_was_cut_off_goes_on_at_the_same_rate(change, data, tmp_path):
    config = TrainConfig(epochs=12, **CHANGES[change])
    trial = Trial(us.models.GCN, {"hidden": 8}, config)
    whole = train.train_trial(trial, data)[1]
    half = Trial(us.models.GCN, {"hidden": 8}, config.replace(epochs=6))
    train.train_trial(half, data, snapshot=tmp_path / "run.pt")
    assert train.train_trial(trial, data, snapshot=tmp_path / "run.pt")[1].history == whole.history


@pytest.mark.parametrize("change", CHANGES)
def test_studies_give_the_same_numbers(change, data):
    config = TrainConfig(epochs=10, **CHANGES[change])
    trials = [Trial(us.models.GCN, {"hidden": 8}, config, seed=s) for s in range(3)]
    found = {row.trial["seed"]: row.result for row in study.run(trials, data).rows}
    for trial in trials:
        result = found[trial.seed]
        alone = train.train_trial(trial, data)[1].result
        assert (result.epoch, result.epochs) == (alone.epoch, alone.epochs)
        assert result.valid_loss == pytest.approx(alone.valid_loss, rel=1e-9)


def test_the_training_loss_as_monitor(data):
    config = TrainConfig(epochs=30, monitor=Monitor.TRAIN_LOSS, patience=5)
    trial = Trial(us.models.GCN, {"hidden": 8}, config)
    run = train.train_trial(trial, data)[1]
    assert run.best == min(run.history, key=lambda e: e.train_loss)
    result = study.run([trial], data).rows[0].result
    assert (result.epoch, result.epochs) == (run.best.epoch, len(run.history))
    never = Trial(us.models.GCN, {"hidden": 8}, config.replace(stop=Stop.NEVER))
    assert study.run([never], data).rows[0].result.epoch == train.train_trial(never, data)[1].best.epoch


@pytest.mark.parametrize(
    ("name", "value"), [("clip", 0), ("clip", -1), ("clip", math.nan), ("lr_epochs", 0), ("lr_schedule", "cosine")]
)
def test_what_does_not_fit_is_named(name, value):
    with pytest.raises(us.InputError) as caught:
        TrainConfig(**{name: value})
    assert caught.value.argument == name
