"""A stack of trials is the single trials: every number of every epoch, any size, any order, refilled or made smaller."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import unspool as us
from reference.cases import doubles
from unspool import datasets, train
from unspool.study.engine.groups import open_pack, signature, sort_trials
from unspool.study.pack import Member
from unspool.study.pack.adam import StackedAdam
from unspool.study.pack.alone import Alone
from unspool.study.pack.stacked import Stacked
from unspool.study.trial import Trial
from unspool.train.adam import Adam
from unspool.train.repeat import run_seed

EPOCHS = 12


class Own(nn.Module):
    """What a user may write."""

    def __init__(self, in_features, out_features, *, width=6, dropout=0.3, slope=0.5):
        super().__init__()
        self.first, self.last = us.nn.Linear(in_features, width), us.nn.Linear(width, out_features)
        self.drop, self.scale, self.slope = us.nn.Dropout(dropout), nn.Parameter(torch.ones(width)), slope

    def forward(self, x, graph):
        h = nn.functional.leaky_relu(graph @ self.first(self.drop(x)), self.slope)
        return graph @ self.last(self.drop(h) * self.scale)


class Noisy(nn.Module):
    """Draws from torch's generator, which a stack cannot."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.only = us.nn.Linear(in_features, out_features)

    def forward(self, x, graph):
        return self.only(nn.functional.dropout(x, 0.5, self.training))


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
    "own": (Own, {}, None),
}


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=60, classes=2, seed=0)


@pytest.fixture(scope="module")
def task(data):
    found = train.Task.of(data)
    return train.Task(
        found.x.to(torch.float64), found.graph.to(torch.float64), found.target, found.train, found.valid, found.test
    )


def ready(trial, task):
    with doubles():
        return Member(trial, trial.build(int(task.x.shape[1]), 2), task)


def alone(trial, task):
    with doubles():
        return run_seed(lambda: trial.model(int(task.x.shape[1]), 2, **trial.settings), trial.seed, task, trial.plan)[1]


def numbers(run):
    return np.array([[e.train_loss, e.valid_loss, e.valid_score, e.test_score] for e in run.history])


def seven(name):
    """Trials of one model that differ in all that may differ in a stack."""
    kind, settings, decayed = MODELS[name]
    for i in range(7):
        decay = 0.01 * i if decayed is None else dict.fromkeys(decayed, 0.01 * i)
        plan = train.Plan(rate=0.01 * (i + 1), decay=decay, epochs=EPOCHS)
        more = {"teleport": 0.1 + 0.1 * i} if name in ("APPNP", "GPRGNN") else {}
        yield Trial(kind, {**settings, "dropout": 0.1 * (i + 1), **more}, plan, seed=i)


@pytest.mark.parametrize("name", MODELS)
def test_a_stack_is_its_singles(name, task):
    trials = list(seven(name))
    expected = [numbers(alone(trial, task)) for trial in trials]
    members = [ready(trial, task) for trial in trials]
    assert len({signature(member) for member in members}) == 1
    whole = Stacked(members).advance(EPOCHS)
    order = [4, 0, 2]
    some = Stacked([members[i] for i in order]).advance(EPOCHS)
    for i in range(7):
        np.testing.assert_allclose(whole[:, i], expected[i], rtol=1e-9, atol=1e-11)
    for place, i in enumerate(order):
        np.testing.assert_allclose(some[:, place], expected[i], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["UGDGNN", "APPNP", "own"])
def test_refilled_and_made_smaller(name, task):
    trials = list(seven(name))
    members = [ready(trial, task) for trial in trials]
    expected = [numbers(alone(trial, task)) for trial in trials]
    pack = Stacked(members[:4])
    pack.advance(5)
    pack.put([1, 3], members[5:])
    first = pack.advance(3)
    smaller = pack.shrunk([3, 2])
    second = smaller.advance(4)
    assert smaller.slots == 2
    np.testing.assert_allclose(first[:, 1], expected[5][:3], rtol=1e-9)
    np.testing.assert_allclose(first[:, 0], expected[0][5:8], rtol=1e-9)
    np.testing.assert_allclose(np.concatenate([first[:, 3], second[:, 0]]), expected[6][:7], rtol=1e-9)
    np.testing.assert_allclose(np.concatenate([first[:, 2], second[:, 1]]), expected[2][5:], rtol=1e-9)


def test_one_that_diverges_leaves_the_others_as_they_are(task):
    trials = list(seven("UGDGNN"))[:3]
    wild = Trial(trials[1].model, trials[1].settings, train.Plan(rate=1e200, epochs=EPOCHS), seed=1)
    fine = Stacked([ready(t, task) for t in trials]).advance(EPOCHS)
    mixed = Stacked([ready(t, task) for t in (trials[0], wild, trials[2])]).advance(EPOCHS)
    assert np.array_equal(mixed[:, [0, 2]], fine[:, [0, 2]])
    assert np.isfinite(mixed[0, 1, 0])
    assert np.isnan(mixed[-1, 1]).all()


@pytest.mark.parametrize("rates", [(0.0, 0.0, 0.0), (0.0, 0.5, 0.2)])
def test_dropout_of_rate_zero(rates, task):
    trials = [Trial(us.models.MLP, {"dropout": r}, train.Plan(epochs=3), seed=i) for i, r in enumerate(rates)]
    members = [ready(trial, task) for trial in trials]
    together = [m for m in members if signature(m) == signature(members[-1])]
    assert len(together) == (3 if not any(rates) else 2)
    found = Stacked(together).advance(3)
    for place, member in enumerate(together):
        np.testing.assert_allclose(found[:, place], numbers(alone(member.trial, task)), rtol=1e-9)


def test_every_trial_may_have_its_own_sets(task):
    moved = train.Task(task.x, task.graph, task.target, task.train.flip(0).sub(1).clamp_min(0), task.valid, task.test)
    trial = Trial(us.models.MLP, plan=train.Plan(epochs=3))
    pack = Stacked([ready(trial, task), ready(trial, moved)])
    found = pack.advance(3)
    np.testing.assert_allclose(found[:, 0], numbers(alone(trial, task)), rtol=1e-9)
    np.testing.assert_allclose(found[:, 1], numbers(alone(trial, moved)), rtol=1e-9)


@pytest.mark.parametrize("loss", [train.Binary(), train.Regression(), train.Ranking()])
def test_other_losses(loss, task):
    target = task.target.double()[:, None] if isinstance(loss, train.Regression) else task.target.double()
    other = train.Task(task.x, task.graph, target, task.train, task.valid, task.test[:0], loss)
    trials = [Trial(us.models.MLP, plan=train.Plan(epochs=3), seed=s) for s in range(3)]
    with doubles():
        members = [Member(t, t.build(int(task.x.shape[1]), 1), other) for t in trials]
        assert isinstance(open_pack(members), Stacked)
        found = Stacked(members).advance(3)
        for i, trial in enumerate(trials):
            build = lambda t=trial: t.model(int(task.x.shape[1]), 1)  # noqa: E731
            run = run_seed(build, trial.seed, other, trial.plan)[1]
            np.testing.assert_allclose(found[:, i], numbers(run), rtol=1e-9)
    assert np.isnan(found[..., 3]).all()


# -- who may share a stack ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "settings", "other", "same"),
    [
        (us.models.UGDGNN, {"depth": 2}, {"depth": 3}, False),
        (us.models.UGDGNN, {"dropout": 0.2}, {"dropout": 0.7}, True),
        (us.models.UGDGNN, {"dropout": 0.0}, {"dropout": 0.7}, False),
        (us.models.APPNP, {"teleport": 0.2}, {"teleport": 0.7}, True),
        (us.models.GPRGNN, {"teleport": 0.2}, {"teleport": 0.7}, True),
        (us.models.GCNII, {"teleport": 0.2}, {"teleport": 0.7}, False),
        (us.models.AirGNN, {"residual": 0.2}, {"residual": 0.7}, False),
        (us.models.GCN, {"bias": True}, {"bias": False}, False),
        (Own, {"slope": 0.2}, {"slope": 0.7}, False),
        (Own, {"dropout": 0.2}, {"dropout": 0.7}, True),
    ],
)
def test_what_must_agree(kind, settings, other, same, task):
    one, two = Trial(kind, settings), Trial(kind, other, train.Plan(rate=0.3, decay=0.1), seed=5)
    assert (signature(ready(one, task)) == signature(ready(two, task))) is same
    groups = sort_trials([one, two], lambda trial: ready(trial, task))
    assert len(groups) == (1 if same else 2)


@pytest.mark.parametrize(
    "trial",
    [
        Trial(us.models.MLP, plan=train.Plan(optimiser=torch.optim.SGD)),
        Trial(us.models.MLP, plan=train.Plan(precision=train.Precision.BFLOAT16)),
        Trial(us.models.PPNP),
        Trial(us.models.AirGNN, {"adjoint": us.Checkpointed(every=2)}),
    ],
    ids=str,
)
def test_what_trains_alone(trial, task):
    assert signature(ready(trial, task)) is None
    assert isinstance(open_pack([ready(trial, task)]), Alone)


def test_one_trial_trains_alone_and_stays_as_it_was(task):
    member = ready(Trial(us.models.MLP), task)
    before = {name: value.clone() for name, value in member.model.state_dict().items()}
    pack = open_pack([member])
    pack.advance(3)
    assert isinstance(pack, Alone)
    assert all(torch.equal(value, before[name]) for name, value in member.model.state_dict().items())


@pytest.mark.parametrize("kind", [us.models.PPNP, us.models.MLP])
def test_alone_is_fit(kind, task):
    trials = [Trial(kind, plan=train.Plan(epochs=4, optimiser=torch.optim.SGD), seed=s) for s in (3, 4)]
    pack = Alone([ready(trials[0], task)])
    first = np.concatenate([pack.advance(3), pack.advance(1)])
    pack.put([0], [ready(trials[1], task)])
    second = pack.advance(4)
    assert np.array_equal(first[:, 0], numbers(alone(trials[0], task)))
    assert np.array_equal(second[:, 0], numbers(alone(trials[1], task)))
    with pytest.raises(ValueError, match="2 trials for a pack of one slot"):
        Alone([ready(t, task) for t in trials])


def test_alone_has_its_own_random_numbers(task):
    def trained(between):
        pack = Alone([ready(Trial(Noisy, seed=4), task)])
        first = pack.advance(2)
        between()
        return np.concatenate([first, pack.advance(2)])

    before = torch.get_rng_state()
    quiet = trained(lambda: None)
    assert torch.equal(before, torch.get_rng_state())
    assert np.array_equal(quiet, trained(lambda: torch.rand(7)))


# -- Adam ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["_step_each", "_step_together"])
def test_adam_is_adam(way, monkeypatch):
    torch.manual_seed(0)
    start = {"a": torch.randn(3, 4, 2, dtype=torch.float64), "b": torch.randn(3, dtype=torch.float64)}
    monkeypatch.setattr(StackedAdam, "_step_each", getattr(StackedAdam, way))
    stacked = {name: value.clone().requires_grad_() for name, value in start.items()}
    rates, decays = [0.1, 0.01, 0.5], {"a": [0.0, 0.1, 0.2], "b": [0.3, 0.0, 0.0]}
    adam = StackedAdam(stacked)
    adam.begin(range(3), rates, decays)
    singles = [{name: value[t].clone().requires_grad_() for name, value in start.items()} for t in range(3)]
    alone = [
        Adam([{"params": [v], "weight_decay": decays[n][t]} for n, v in one.items()], lr=rates[t])
        for t, one in enumerate(singles)
    ]
    for _ in range(5):
        adam.zero_grad()
        sum(value.cos().sum() for value in stacked.values()).backward()
        adam.step()
        for one, its in zip(singles, alone, strict=True):
            its.zero_grad()
            sum(value.cos().sum() for value in one.values()).backward()
            its.step()
    for t, one in enumerate(singles):
        for name, value in one.items():
            gap = (stacked[name][t] - value).abs().max()
            assert gap == 0 if way == "_step_each" else gap < 1e-13
    assert not math.isnan(float(stacked["a"].detach().sum()))
