"""A stack of trials is the single trials: every number of every epoch, any size, any order, refilled or made smaller."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import unspool as us
from study.batch.contract import EPOCHS, AsyncBatchContract
from study.double_loader import DoubleLoader, alone, numbers
from unspool import datasets, train
from unspool.study.batch.stacked_batch import StackedBatch
from unspool.study.engine.batching import open_batch, signature
from unspool.train import PreparedTrial, TaskKind, Trial, TrialLoader

pytestmark = pytest.mark.long


class Own(nn.Module):
    """What a user may write."""

    def __init__(self, in_features, out_features, *, width=6, dropout=0.3, slope=0.5):
        super().__init__()
        self.first, self.last = us.nn.Linear(in_features, width), us.nn.Linear(width, out_features)
        self.drop, self.scale, self.slope = us.nn.Dropout(dropout), nn.Parameter(torch.ones(width)), slope

    def forward(self, x, graph):
        h = nn.functional.leaky_relu(graph @ self.first(self.drop(x)), self.slope)
        return graph @ self.last(self.drop(h) * self.scale)


class Declared(us.models.Model):
    """A model of one's own that declares its settings."""

    hidden: int = us.setting(6, "width", at_least=1)
    dropout: float = us.setting(0.3, "rate", at_least=0, below=1)
    pull: float = us.setting(0.2, "how strongly a node keeps its own signal", above=0, at_most=1)

    def build(self):
        self.p_pre = us.nn.Perceptron([self.in_features, self.hidden, self.out_features], self.dropout)
        self.propagation = us.unroll(us.Fidelity(self.pull) + us.Smoothness(0.8), us.GradientDescent(step=0.5), 3)


SMALL = {"hidden": 6, "depth": 3}
EACH = {"masks": us.models.Masks.EACH_HOP, "propagation_dropout": 0.4}
MODELS = {
    "UGDGNN": (us.models.UGDGNN, SMALL, ("first", "linear", "convolution")),
    "GCN": (us.models.GCN, {"hidden": 6}, ("first",)),
    "GCN-batch-norm": (us.models.GCN, {"hidden": 6, "batch_norm": True}, ()),
    "APPNP": (us.models.APPNP, SMALL, ("first", "linear")),
    "DAGNN": (us.models.DAGNN, SMALL, ("gate", "first")),
    "GPRGNN": (us.models.GPRGNN, SMALL, ("linear",)),
    "UGDGNN-each": (us.models.UGDGNN, {**SMALL, **EACH}, ("first", "convolution")),
    "UGDGNN-hidden-each": (us.models.UGDGNN, {**SMALL, **EACH, "channels": us.models.Channels.HIDDEN}, ("first",)),
    "GPRGNN-each": (us.models.GPRGNN, {**SMALL, **EACH}, ("linear",)),
    "APPNP-each": (us.models.APPNP, {**SMALL, **EACH}, ("first", "linear")),
    "GCNII": (us.models.GCNII, SMALL, ("convolution",)),
    "MLP": (us.models.MLP, {"hidden": 6}, ("linear",)),
    "SGC": (us.models.SGC, {"depth": 2}, ("linear",)),
    "FairGNN": (us.models.FairGNN, SMALL, ("first",)),
    "declared": (Declared, {}, ("first", "linear")),
    "own": (Own, {}, None),
}


def seven(name):
    """Trials of one model that differ in all that may differ in a stack."""
    kind, settings, decayed = MODELS[name]
    for i in range(7):
        decay = 0.01 * i if decayed is None else dict.fromkeys(decayed, 0.01 * i)
        config = train.TrainConfig(lr=0.01 * (i + 1), weight_decay=decay, epochs=EPOCHS)
        more = {"teleport": 0.1 + 0.1 * i} if name in ("APPNP", "GPRGNN") else {}
        more |= {"pull": 0.1 + 0.1 * i} if name == "declared" else {}
        more |= {"dropout": 0.1 * (i + 1)} if name != "SGC" else {}
        yield Trial(kind, {**settings, **more}, config, seed=i)


class StackedContract(AsyncBatchContract):
    name: str

    def open(self, members):
        return StackedBatch(members)

    def trials(self):
        return list(seven(self.name))[:4]

    def test_it_is_what_the_engine_opens(self, members):
        assert len({signature(member) for member in members}) == 1
        assert isinstance(open_batch(members[:2]), StackedBatch)


class TestNamed(StackedContract):
    name = "UGDGNN"


class Riding(StackedBatch):
    """The order of a GPU: the look at an epoch rides with the training pass of the next."""

    rides_on = frozenset({"cpu"})


class TestRiding(StackedContract):
    name = "UGDGNN"

    def open(self, members):
        return Riding(members)


class TestRidingWithMeans(TestRiding):
    """Running means move on in a training pass, and the look that rides with it must not see that."""

    name = "GCN-batch-norm"


class TestRidingOnNumbers(TestRiding):
    """Without dropout training and evaluation are the same pass."""

    name = "SGC"

    def wild(self):
        first = self.trials()[0]
        return Trial(first.model, first.settings, first.config.replace(lr=1e308), seed=first.seed)  # it is linear


class TestFixedHops(StackedContract):
    """Teleports are numbers of the objective, and tensors in a stack."""

    name = "APPNP"


class TestDeclared(StackedContract):
    name = "declared"


class TestOwn(StackedContract):
    name = "own"


def of_upper(i):
    """An upper level whose numbers differ from trial to trial."""
    text = f"ce + {i + 1}*consistency(views=2, temperature={0.4 + 0.1 * i}) + 0.1*entropy under drop_nodes({0.1 * i}) and drop_entries(0.2)"
    return train.upper.Upper.parse(text)


class TestUpper(StackedContract):
    """Views of all trials are one pass; weights, temperatures and rates are numbers of the slots."""

    name = "GCN"

    def trials(self):
        found = list(seven(self.name))[:4]
        return [replace(trial, config=trial.config.replace(upper=of_upper(i))) for i, trial in enumerate(found)]


class TestGroupsUnderUpper(TestUpper):
    """Columns that views leave as they are."""

    name = "FairGNN"


class TestRidingUpper(TestUpper):
    def open(self, members):
        return Riding(members)


class TestUpperOnWords(TestUpper):
    """Sparse features, which a perturbation of rows makes another matrix in every view."""

    def load(self):
        data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        words = data.features * (data.features > 1.0)
        return DoubleLoader(datasets.from_tensors(data.edge_index, words.to_sparse(), labels=data.labels))


class TestUpperWithMeans(TestRidingUpper):
    name = "GCN-batch-norm"


class TestNumbers(StackedContract):
    """Targets that each split scales for itself lie in the stack."""

    name = "GPRGNN"

    def load(self):
        data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        goals = data.features[:, :2] * 30 + 5
        return DoubleLoader(datasets.from_tensors(data.edge_index, data.features, targets=goals))


@pytest.fixture(scope="module")
def loader():
    return DoubleLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))


@pytest.mark.parametrize("name", MODELS)
def test_a_stack_is_its_singles(name, loader):
    trials = list(seven(name))
    expected = [numbers(alone(trial, loader)) for trial in trials]
    members = [loader.prepare(trial) for trial in trials]
    assert len({signature(member) for member in members}) == 1
    # Numbers that a stack holds in tensors are multiplied in another order, and where a gradient is nearly zero Adam makes 1e-9 of rounding.
    near = 1e-7 if name == "GCNII" else 1e-9
    whole = StackedBatch(members).run_epochs(EPOCHS)
    np.testing.assert_allclose(Riding(members).run_epochs(EPOCHS), whole, rtol=1e-9, atol=1e-11)
    order = [4, 0, 2]
    some = StackedBatch([members[i] for i in order]).run_epochs(EPOCHS)
    for i in range(7):
        np.testing.assert_allclose(whole[:, i], expected[i], rtol=near, atol=1e-11)
    for place, i in enumerate(order):
        np.testing.assert_allclose(some[:, place], expected[i], rtol=near, atol=1e-11)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (us.models.GCN, {"hidden": 8}),
        (us.models.DAGNN, {"hidden": 8, "depth": 3}),
        (us.models.StableGNN, {"hidden": 8, "depth": 3, "head_layers": 2, "bias": True}),
    ],
)
def test_running_means_are_those_of_a_single_run_in_single_precision(kind, settings):
    """They would lag behind a bias that normalisation takes away, and that Adam moves by rounding: 1e-4 to 1e-3 of the validation loss."""
    plain = TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
    config = train.TrainConfig(epochs=20, weight_decay=0.0)
    trials = [Trial(kind, {**settings, "batch_norm": True}, config, seed=i) for i in range(3)]
    found = StackedBatch([plain.prepare(trial) for trial in trials]).run_epochs(20)
    for slot, trial in enumerate(trials):
        expected = numbers(train.train_trial(trial, plain)[1])
        np.testing.assert_allclose(found[:, slot, :2], expected[:, :2], rtol=1e-5)


@pytest.mark.parametrize("rates", [(0.0, 0.0, 0.0), (0.0, 0.5, 0.2)])
def test_dropout_of_rate_zero(rates, loader):
    trials = [Trial(us.models.MLP, {"dropout": r}, train.TrainConfig(epochs=3), seed=i) for i, r in enumerate(rates)]
    members = [loader.prepare(trial) for trial in trials]
    together = [m for m in members if signature(m) == signature(members[-1])]
    assert len(together) == (3 if not any(rates) else 2)
    found = StackedBatch(together).run_epochs(3)
    for place, member in enumerate(together):
        np.testing.assert_allclose(found[:, place], numbers(alone(member.trial, loader)), rtol=1e-9)


def test_every_trial_may_have_its_own_sets(loader):
    assert not torch.equal(loader.task(0).train, loader.task(1).train)
    trials = [Trial(us.models.MLP, config=train.TrainConfig(epochs=3), seed=seed) for seed in (0, 1)]
    found = StackedBatch([loader.prepare(trial) for trial in trials]).run_epochs(3)
    for slot, trial in enumerate(trials):
        np.testing.assert_allclose(found[:, slot], numbers(alone(trial, loader)), rtol=1e-9)


class Untested(DoubleLoader):
    """A task of one's own may have no test set."""

    def task(self, *given):
        found = super().task(*given)
        return replace(found, test=found.test[:0])


@pytest.mark.parametrize("kind", [TaskKind.BINARY, TaskKind.NUMBERS, TaskKind.RANKING])
def test_other_losses_without_a_test_set(kind):
    data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    if kind is not TaskKind.BINARY:
        data = datasets.from_tensors(data.edge_index, data.features, targets=data.labels.float())
    loader = Untested(data, kind=kind)
    trials = [Trial(us.models.MLP, config=train.TrainConfig(epochs=3), seed=s) for s in range(3)]
    members = [loader.prepare(trial) for trial in trials]
    assert isinstance(open_batch(members), StackedBatch)
    found = StackedBatch(members).run_epochs(3)
    for slot, trial in enumerate(trials):
        np.testing.assert_allclose(found[:, slot], numbers(alone(trial, loader)), rtol=1e-9)
    assert np.isnan(found[..., 3]).all()


def test_a_member_needs_no_generator(loader):
    ready = [loader.prepare(trial) for trial in list(seven("GCN"))[:2]]
    bare = [PreparedTrial(one.trial, one.model, one.task) for one in ready]
    np.testing.assert_array_equal(StackedBatch(ready).run_epochs(3), StackedBatch(bare).run_epochs(3))
