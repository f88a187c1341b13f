"""Modules as others write them: a stack gives what they give alone, or they train alone and the reason is said."""

import random
from itertools import count

import numpy as np
import pytest
import torch
from torch import nn

import unspool as us
from study.double_loader import DoubleLoader, alone, numbers
from unspool import datasets, train
from unspool.study.batch.stacked_batch import StackedBatch
from unspool.study.engine import train_trials
from unspool.study.engine.batching import Alone, signature
from unspool.study.engine.tracker import MemoryTracker
from unspool.train import Trial
from unspool.train.conduct import ChangedData, Unstackable
from unspool.train.epochs import WARM_UP, Epochs, make_optimiser


class Plain(nn.Module):
    """Two layers; what stands between them is the quirk."""

    def __init__(self, in_features, out_features, *, width=5):
        super().__init__()
        self.first, self.last = us.nn.Linear(in_features, width), us.nn.Linear(width, out_features)
        self.more(width)

    def more(self, width):
        pass

    def between(self, h):
        return torch.relu(h)

    def forward(self, x, graph):
        return self.last(graph @ self.between(graph @ self.first(x)))


class Assigns(Plain):
    """Running means in a buffer that is assigned, and not written into."""

    def more(self, width):
        self.register_buffer("scale", torch.ones(width))

    def between(self, h):
        if self.training:
            self.scale = 0.9 * self.scale + 0.1 * h.detach().abs().mean(0)
        return torch.relu(h) / (self.scale + 0.1)


class AssignsAlways(Assigns):
    def between(self, h):
        self.scale = 0.9 * self.scale + 0.1 * h.detach().abs().mean(0)
        return torch.relu(h) / (self.scale + 0.1)


class Warms(Plain):
    """Counts its calls in a number of Python."""

    def more(self, width):
        self.seen = 0

    def between(self, h):
        self.seen += self.training
        return torch.relu(h) * min(1.0, self.seen / 10)


class Keeps(Plain):
    """What it has seen first."""

    def more(self, width):
        self.kept = []

    def between(self, h):
        if not self.kept:
            self.kept.append(h.detach().abs().mean(0))
        return torch.relu(h) / self.kept[0]


class Loud(us.models.Model):
    """A setting is read in forward, another by a function that gets the model as a whole."""

    width: int = us.setting(5, "width", at_least=1)
    dropout: float = us.setting(0.2, "rate", at_least=0, below=1)
    scale: float = us.setting(1.0, "how loud")

    def build(self):
        self.p_pre = us.nn.Perceptron([self.in_features, self.width, self.out_features], self.dropout)
        self.propagation = us.HopNetwork(torch.tensor([0.5, 0.5]))

    def forward(self, *data, **more):
        return super().forward(*data, **more) * self.scale


class Whole(Loud):
    def forward(self, *data, **more):
        return super().forward(*data, **more) * loudness(self)


class Handed(Loud):
    """A part holds one of its methods; ``build`` has a helper, which reads the rate before anything runs."""

    def build(self):
        super().build()
        self.p_post = [self.louder]

    def louder(self, h):
        return h * self.scale

    def forward(self, *data, **more):
        return self.p_post[0](us.models.Model.forward(self, *data, **more))


class Helped(Loud):
    def build(self):
        self.encode()
        self.propagation = us.HopNetwork(torch.tensor([0.5, 0.5]))

    def encode(self):
        self.p_pre = us.nn.Perceptron([self.in_features, self.width, self.out_features], self.dropout)


def loudness(model):
    return model.scale


class Fills(Plain):
    """A buffer that waits for the first signal."""

    def more(self, width):
        self.register_buffer("mean", None)

    def between(self, h):
        if self.mean is None:
            self.mean = h.detach().abs().mean(0)
        return torch.relu(h) / self.mean


class Shrinks(Plain):
    """Writes into a parameter whenever it is called."""

    def more(self, width):
        self.scale = nn.Parameter(torch.ones(width))

    def between(self, h):
        with torch.no_grad():
            self.scale.mul_(0.98)
        return torch.relu(h) * self.scale


class Catches(Plain):
    """A function holds one of its parameters."""

    def more(self, width):
        scale = self.scale = nn.Parameter(torch.full((width,), 0.5))
        self.act = lambda h: torch.relu(h) * scale

    def between(self, h):
        return self.act(h)


class Lists(Plain):
    """A plain list holds a parameter a second time: a stack fills the first place alone."""

    def more(self, width):
        self.scale = nn.Parameter(torch.full((width,), 0.5))
        self.scales = [self.scale]

    def between(self, h):
        return torch.relu(h) * self.scales[0]


class Cyclic(Plain):
    """A plain attribute leads back to the module."""

    def more(self, width):
        self.ways = [self]


class Recurses(Plain):
    """A function that is made with itself."""

    def more(self, width):
        def again(h, times):
            return again(torch.relu(h), times - 1) if times else h

        self.act = again

    def between(self, h):
        return self.act(h, 2)


class OwnMethod(Plain):
    def more(self, width):
        self.scale = nn.Parameter(torch.full((width,), 0.5))
        self.act = self.scaled

    def scaled(self, h):
        return torch.relu(h) * self.scale

    def between(self, h):
        return self.act(h)


class Chooses(Plain):
    """Its function is made when it is built, by a setting."""

    def __init__(self, in_features, out_features, *, sharp=1.0):
        super().__init__(in_features, out_features)
        self.act = (lambda h: torch.relu(h) * 1.5) if sharp > 1 else (lambda h: torch.tanh(sharp * h))

    def between(self, h):
        return self.act(h)


class Normed(Plain):
    """torch's old weight normalisation, which no copy can be made of."""

    def more(self, width):
        with pytest.warns(FutureWarning):
            self.middle = nn.utils.weight_norm(nn.Linear(width, width))

    def between(self, h):
        return torch.relu(self.middle(h))


class Overwrites(Plain):
    def forward(self, x, graph):
        x *= 1.01
        return super().forward(x, graph)


class Short(Plain):
    def forward(self, x, graph):
        return super().forward(x, graph)[1:]


class Pair(Plain):
    def forward(self, x, graph):
        return super().forward(x, graph), x


class Refuses(Plain):
    """Raises in its seventh epoch, as its author wanted."""

    def more(self, width):
        self.seen = 0

    def between(self, h):
        self.seen += self.training
        if self.seen == 7:
            raise ValueError("seven is enough")
        return torch.relu(h)


def load():
    return DoubleLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))


@pytest.fixture
def loader():
    return load()


def some(kind, **settings):
    """Trials that differ in their seeds, rates and lengths: with two slots, one is filled again while the other goes on."""
    return [
        Trial(kind, settings, train.TrainConfig(lr=0.02 * (seed + 1), epochs=6 + 4 * seed), seed) for seed in range(4)
    ]


def study(trials, loader):
    tracker = MemoryTracker()
    train_trials(trials, loader.prepare, tracker, most=2)
    return tracker


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Assigns, None),
        (AssignsAlways, None),
        (OwnMethod, None),
        (Warms, "Warms goes on one by one: its forward changes 'seen', which is neither a parameter nor a buffer"),
        (Keeps, "Keeps goes on one by one: its forward changes 'kept'"),
        (Fills, "Fills goes on one by one: its forward changes 'mean'"),
        (Shrinks, None),
        (Catches, None),
        (Lists, None),
        (Recurses, None),
        (Normed, None),
    ],
)
def test_among_others_it_gives_what_it_gives_alone(kind, said, loader, caplog):
    trials = some(kind)
    tracker = study(trials, loader)
    assert tracker.failures == {}
    for trial in trials:
        run, result = alone(trial, loader), tracker.results[trial]
        assert (result.epoch, result.epochs) == (run.best.epoch, len(run.history))
        assert result.valid_loss == pytest.approx(run.best.valid_loss, rel=1e-9)
    assert [r.getMessage()[: len(said)] for r in caplog.records] == ([] if said is None else [said])


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Catches, "its function <lambda> holds"),
        (Lists, "it holds 'scale' a second time where it is neither"),
        (Cyclic, "it cannot be compared with others (something in it holds itself)"),
        (Normed, "has a gradient and is no"),
    ],
)
def test_what_a_stack_would_share_is_known_before(kind, why, loader):
    (found,) = {signature(loader.prepare(trial)) for trial in some(kind)}
    assert isinstance(found, Alone)
    assert why in found.reason


def test_a_method_of_its_own_stacks(loader):
    (found,) = {signature(loader.prepare(trial)) for trial in some(OwnMethod)}
    assert not isinstance(found, Alone)


def test_functions_count_by_what_they_do(loader):
    """Not by where they lie: a place is given again when the model before is gone."""
    found = [signature(loader.prepare(some(Chooses, sharp=sharp)[0])) for sharp in (0.5, 0.7, 2.0, 0.5)]
    assert found[0] == found[3]
    assert len(set(found)) == 3


@pytest.mark.parametrize("kind", [Loud, Helped, Whole, Handed])
def test_settings_that_forward_reads_are_not_shared(kind, loader):
    """Their values are in no part of the model, and the first trial's would count for all."""
    trials = [*some(kind), *some(kind, scale=0.2), *some(kind, scale=3.0)]
    tracker = study(trials, loader)
    for trial in trials:
        assert tracker.results[trial].valid_loss == pytest.approx(alone(trial, loader).best.valid_loss, rel=1e-9)
    alike = [signature(loader.prepare(some(kind, dropout=rate)[0])) for rate in (0.3, 0.6)]
    assert (alike[0] == alike[1]) is (kind in (Loud, Helped))  # a rate is not read


class Riding(StackedBatch):
    """The order of a GPU."""

    rides_on = frozenset({"cpu"})


def test_an_assigned_buffer_moves_on_under_the_look_of_a_gpu(loader):
    members = [loader.prepare(trial) for trial in some(Assigns)]
    found = Riding(members).run_epochs(6)
    for slot, member in enumerate(members):
        np.testing.assert_allclose(found[:, slot], numbers(alone(member.trial, loader))[:6], rtol=1e-9)


@pytest.mark.parametrize("kind", [AssignsAlways, Shrinks])
def test_what_evaluation_moves_cannot_ride(kind, loader):
    with pytest.raises(Unstackable, match="writes into 'scale', and not in training alone"):
        Riding([loader.prepare(trial) for trial in some(kind)]).run_epochs(2)


def test_a_module_that_writes_into_the_features_ends_the_study(loader):
    trials = some(Overwrites)
    with pytest.raises(ChangedData, match="the forward of Overwrites writes into the features"):
        study([*trials, *some(Plain)], loader)
    with pytest.raises(ChangedData):
        alone(trials[0], load())


@pytest.mark.parametrize(("kind", "gives"), [(Short, r"a tensor of shape \(59, 2\)"), (Pair, "a tuple")])
def test_an_output_without_a_row_for_each_node_is_refused(kind, gives, loader):
    trials = some(kind)
    with pytest.raises(us.IncompatibleError, match=rf"the forward of {kind.__name__} gives {gives}.*\(60, outputs\)"):
        alone(trials[0], loader)
    assert all("a row for each node" in why for why in study(trials, loader).failures.values())


def test_what_a_module_raises_is_not_taken_for_divergence(loader):
    trials, calm = some(Refuses), some(Plain)
    with pytest.raises(ValueError, match="seven is enough"):
        alone(trials[1], loader)
    tracker = study([*trials, *calm], loader)
    assert list(tracker.results) == [trials[0], *calm]  # six epochs are not seven
    assert set(tracker.failures.values()) == {"ValueError: seven is enough"}


class Draws(Plain):
    """From a generator that no trial's seed sets."""

    def between(self, h):
        return torch.relu(h) * (1 + 0.1 * random.random())


def test_one_draw_is_not_shared_by_all(loader, caplog):
    random.seed(0)
    found = study(some(Draws), loader).results
    assert len(found) == 4
    assert "Draws goes on one by one: its forward draws from NumPy's or Python's generator" in caplog.text


class Other(Plain):
    """Looks different whenever it is built, and at values."""

    built = count()

    def more(self, width):
        self.token = next(self.built)

    def between(self, h):
        return torch.relu(h) if h.max() > 0 else h


def test_a_model_that_is_never_the_same_ends(loader, caplog):
    trials = some(Other)
    tracker = MemoryTracker()
    train_trials(trials, loader.prepare, tracker, open_batch=StackedBatch)
    assert set(tracker.results) == set(trials)
    assert [r.getMessage() for r in caplog.records] == ["Other goes on one by one: its forward looks at values"]


class Dense(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.only = nn.Linear(in_features, out_features)

    def forward(self, x, graph):
        return graph @ self.only(x)


def test_a_layer_that_cannot_read_sparse_features_is_told_of_one_that_can():
    loader = train.TrialLoader(datasets.load("citeseer"))
    (failed,) = study([Trial(Dense, {}, train.TrainConfig(epochs=1))], loader).failures.values()
    assert failed.startswith("IncompatibleError: the forward of Dense does not take sparse features (linear()")
    assert failed.endswith("make its first layer a us.nn.Linear, or let it start with x = x.to_dense()")


def test_views_do_not_share_what_each_assigns(loader):
    """Each view of an upper level moves the means on; they go one after another then."""
    upper = "ce + consistency(views=2)"
    trials = [Trial(Assigns, {}, train.TrainConfig(lr=0.05, epochs=4, upper=upper), seed) for seed in range(2)]
    tracker = study(trials, loader)
    assert tracker.failures == {}
    for trial in trials:
        assert tracker.results[trial].valid_loss == pytest.approx(alone(trial, loader).best.valid_loss, rel=1e-9)


@pytest.mark.parametrize(("kind", "captured"), [(Plain, True), (Warms, False), (Assigns, False), (Keeps, True)])
def test_an_epoch_that_moves_more_than_tensors_is_not_captured(kind, captured, loader, monkeypatch):
    """A graph of kernels would neither count nor see the tensor that was assigned; what is filled once is there by then."""
    asked = []
    monkeypatch.setattr(Epochs, "_capture", lambda _: asked.append(True))
    member = loader.prepare(some(kind)[0])
    epochs = Epochs(member.model, make_optimiser(member.trial.config, member.model), member.task, member.trial.config)
    epochs._willing = True  # as on a GPU
    for _ in range(WARM_UP + 2):
        epochs()
    assert bool(asked) is captured
