"""A batch of one slot: whatever does not stack trains in it as it trains alone."""

import numpy as np
import pytest
import torch
from torch import nn

import unspool as us
from study.batch.contract import EPOCHS, BatchContract
from study.double_loader import DoubleLoader, alone, numbers
from unspool import datasets, train
from unspool.study.batch.single_trial import SingleTrial
from unspool.study.engine.batching import Alone, open_batch, signature
from unspool.train import PreparedTrial, TaskKind, Trial

pytestmark = pytest.mark.long


class Drawing(nn.Module):
    """Has parts of torch's own that draw from its generator, as people's modules do."""

    def __init__(self, in_features, out_features, *, width=6, rate=0.4):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(in_features, width), nn.ReLU(), nn.Dropout(rate), nn.Linear(width, out_features)
        )

    def forward(self, x, graph):
        return graph @ self.body(x)


class Noisy(nn.Module):
    """Draws anew in every call, also when it is evaluated."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.only = us.nn.Linear(in_features, out_features)

    def forward(self, x, graph):
        return self.only(x + 0.01 * torch.randn_like(x))


def config(**changes):
    return train.TrainConfig(epochs=EPOCHS, **changes)


class SingleContract(BatchContract):
    """Its numbers are those of train_trial to the last bit."""

    near = same = 0.0

    def open(self, members):
        return SingleTrial(members)

    def test_it_is_what_the_engine_opens(self, members):
        assert isinstance(open_batch(members[:1]), SingleTrial)


class TestStackable(SingleContract):
    """One trial that could be stacked, on a CPU."""

    def trials(self):
        return [Trial(us.models.UGDGNN, {"hidden": 6, "dropout": 0.1 + 0.2 * s}, config(lr=0.02), s) for s in range(2)]


class TestAnotherOptimiser(SingleContract):
    def trials(self):
        return [
            Trial(us.models.MLP, {"hidden": 6}, config(lr=0.1, optimiser=torch.optim.SGD), seed) for seed in range(2)
        ]

    def wild(self):
        return Trial(us.models.MLP, {"hidden": 6}, config(lr=1e200, optimiser=torch.optim.SGD))


class TestExactLowerLevel(SingleContract):
    def trials(self):
        settings = {"hidden": 6, "depth": 3}
        return [
            Trial(
                us.models.APPNP, {**settings, "teleport": 0.1 + 0.2 * s}, config(lower_level=train.LowerLevel.EXACT), s
            )
            for s in range(2)
        ]


class TestExactModel(SingleContract):
    """A model that is a minimiser by itself, and another optimiser."""

    def trials(self):
        return [
            Trial(us.models.PPNP, {"hidden": 6}, config(lr=0.1, optimiser=torch.optim.SGD), seed) for seed in range(2)
        ]


class TestDrawing(SingleContract):
    """Dropout of torch goes on where the weights left torch's generator."""

    def trials(self):
        return [Trial(Drawing, {"rate": 0.2 + 0.3 * seed}, config(lr=0.05), seed) for seed in range(2)]


class TestPerturbed(SingleContract):
    """Masks of the upper level's perturbations come from the trial's seed, not from torch's generator as it stands."""

    def trials(self):
        upper = "ce + consistency(views=2) under drop_nodes(0.3) and drop_entries(0.2)"
        return [Trial(us.models.MLP, {"hidden": 6}, config(upper=upper, lr=0.05), seed) for seed in range(2)]


class TestNoisy(SingleContract):
    def trials(self):
        return [Trial(Noisy, {}, config(lr=0.05), seed) for seed in range(2)]


class TestLinks(SingleContract):
    """The loss itself draws, and each seed has its own links."""

    def load(self):
        return DoubleLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0), kind=TaskKind.LINKS)

    def trials(self):
        return [Trial(us.models.GPRGNN, {"hidden": 6, "depth": 2}, config(lr=0.05), seed) for seed in range(2)]


@pytest.fixture(scope="module")
def loader():
    return DoubleLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))


def test_it_takes_one_trial(loader):
    some = [loader.prepare(Trial(us.models.MLP, seed=seed)) for seed in range(2)]
    for members in (some, []):
        with pytest.raises(ValueError, match=f"{len(members)} trials for a batch of one slot: give one"):
            SingleTrial(members)


def test_it_has_its_own_random_numbers(loader):
    def trained(between):
        batch = SingleTrial([loader.prepare(Trial(Noisy, seed=4))])
        first = batch.run_epochs(2)
        between()
        return np.concatenate([first, batch.run_epochs(2)])

    before = torch.get_rng_state()
    quiet = trained(lambda: None)
    assert torch.equal(before, torch.get_rng_state())
    assert np.array_equal(quiet, trained(lambda: torch.rand(7)))


def test_what_a_model_draws_depends_on_its_seed_alone(loader):
    """Two models whose constructors draw as much begin training at the same place of the generator, and others elsewhere."""
    narrow, wide = (Trial(Drawing, {"width": width, "rate": 0.5}, config(), 3) for width in (4, 9))
    for trial in (narrow, wide):
        found = SingleTrial([loader.prepare(trial)]).run_epochs(EPOCHS)[:, 0]
        assert np.array_equal(found, numbers(alone(trial, loader)))
    one, other = loader.prepare(narrow), loader.prepare(wide)
    assert not torch.equal(one.generator, other.generator)
    assert torch.equal(one.generator, loader.prepare(narrow).generator)


def test_without_a_generator_it_begins_as_the_seed_does(loader):
    ready = loader.prepare(Trial(Noisy, {}, config(), seed=2))
    found = SingleTrial([PreparedTrial(ready.trial, ready.model, ready.task)]).run_epochs(3)
    with train.seeded(2):
        run = train.fit(
            loader.prepare(ready.trial).model, ready.task, config(monitor=train.Monitor.LAST_EPOCH).replace(epochs=3)
        )
    assert np.array_equal(found[:, 0], numbers(run))


@pytest.mark.parametrize(
    "trial",
    [
        Trial(us.models.MLP, config=train.TrainConfig(optimiser=torch.optim.SGD)),
        Trial(us.models.MLP, config=train.TrainConfig(precision=train.Precision.BFLOAT16)),
        Trial(us.models.APPNP, config=train.TrainConfig(lower_level=train.LowerLevel.EXACT)),
        Trial(us.models.PPNP),
        Trial(us.models.AirGNN, {"adjoint": us.Checkpointed(every=2)}),
    ],
    ids=str,
)
def test_what_trains_alone(trial, loader):
    members = [loader.prepare(trial), loader.prepare(trial.with_seed(1))]
    assert all(isinstance(signature(member), Alone) for member in members)
    assert isinstance(open_batch(members[:1]), SingleTrial)
