"""Trials: what decides a result but the data, built, told, stored and read again."""

import json
import pickle

import numpy as np
import pytest
import torch
from torch import nn

import unspool as us
from unspool.models.registry import name_of
from unspool.train import LowerLevel, TrainConfig, Trial


class Own(nn.Module):
    def __init__(self, in_features, out_features, width=4, act=torch.relu):
        super().__init__()
        self.first, self.second, self.act = nn.Linear(in_features, width), nn.Linear(width, out_features), act

    def forward(self, x, graph):
        return self.second(self.act(self.first(x)))


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


@pytest.mark.parametrize("kind", us.models.MODELS)
def test_a_seed_builds_the_same_weights_anywhere(kind):
    trial = Trial(kind, seed=3)
    torch.manual_seed(8)
    before = torch.get_rng_state()
    first = trial.build(5, 3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(9)
    assert same(first, trial.build(5, 3))
    torch.manual_seed(3)
    assert same(first, trial.make(5, 3))  # from the generator as it stands
    torch.manual_seed(3)
    assert same(first, kind(5, 3))
    assert not same(first, trial.with_seed(4).build(5, 3)) or not list(first.parameters())


@pytest.mark.parametrize("kind", us.models.MODELS)
def test_trials_come_back_from_plain_values(kind):
    config = TrainConfig(lr=0.02, weight_decay={"first": 0.1}, optimiser=torch.optim.AdamW)
    trial = Trial(kind, kind.schema.complete({}), config, seed=3, normalise_rows=True, preset="paper")
    plain = json.loads(json.dumps(trial.to_plain(), allow_nan=False))
    again = Trial.from_plain(plain)
    assert (again.model, again.settings, again.config) == (kind, dict(trial.settings), config)
    assert (again.seed, again.normalise_rows, again.preset) == (3, True, "paper")
    assert again.key("cora") == trial.key("cora")
    assert again.to_plain() == trial.to_plain()
    assert pickle.loads(pickle.dumps(trial)).key("cora") == trial.key("cora")


def test_numbers_of_numpy_and_torch_are_stored_as_numbers():
    trial = Trial(us.models.APPNP, {"teleport": np.float64(0.2), "depth": np.int64(3), "dropout": torch.tensor(0.5)})
    plain = json.loads(json.dumps(trial.to_plain()))
    assert plain["settings"] == {
        **us.models.APPNP.schema.to_plain(us.models.APPNP.schema.complete({})),
        "depth": 3,
        "teleport": 0.2,
    }
    assert Trial.from_plain(plain).key("") == trial.key("")
    assert str(trial).startswith("APPNP(teleport=0.2, depth=3, dropout=0.5), ")
    warm = Trial(
        us.models.GPRGNN, {"depth": 2, "start": us.models.HopStart.WARM, "warm": np.arange(3, dtype="float32")}
    )
    assert json.loads(json.dumps(warm.to_plain()))["settings"]["warm"] == [0.0, 1.0, 2.0]


def test_a_class_of_ones_own_comes_back_where_it_is_named():
    trial = Trial(Own, {"width": 5})
    plain = trial.to_plain()
    assert plain["model"] == name_of(Own)
    with pytest.raises(us.IncompatibleError, match="is not imported just because a file names it"):
        Trial.from_plain(plain)
    assert Trial.from_plain(plain, Own).key("") == trial.key("")
    changed = {**plain, "code": "0.0123456789abcdef"}
    with pytest.raises(us.IncompatibleError, match="the code of Own has changed since this trial was trained"):
        Trial.from_plain(changed, Own)


class Weighted(us.models.SGC):
    weights_of: object = us.setting((), "one weight for each hop", of=object)
    filter_of: object = us.setting(np.ones(3), "a filter", of=object)


@pytest.mark.parametrize("name", ["weights_of", "filter_of"])
@pytest.mark.parametrize("made", [np.asarray, torch.tensor, lambda values: [np.asarray(values)]])
def test_arrays_among_the_settings_are_told_apart_by_their_entries(name, made):
    def key(*values):
        return Trial(Weighted, {name: made(values)}).key("")

    assert key(2.0, 1.0) == key(2.0, 1.0)
    assert len({Trial(Weighted).key(""), key(2.0, 1.0), key(2.0, 3.0), key(1.0), key(1.0, 1.0, 2.0)}) == 5


def test_objects_that_files_know_by_name_only_are_named():
    trial = Trial(Own, {"act": torch.tanh})
    plain = json.loads(json.dumps(trial.to_plain()))
    assert plain["settings"]["act"] == {"object": trial.shown("act")}
    with pytest.raises(us.IncompatibleError, match=r"the setting act of this trial is an object .*tanh\)"):
        Trial.from_plain(plain, Own)
    assert "tanh" in str(trial)

    def mine(groups, lr):
        return torch.optim.SGD(groups, lr=lr)

    plain = Trial(us.models.GCN, config=TrainConfig(optimiser=mine)).to_plain()
    with pytest.raises(us.IncompatibleError, match=r"cannot be built again from a file .*optimiser='mine'"):
        Trial.from_plain(plain)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"depth": 0}, "depth"),
        ({"breadth": 3}, "breadth"),
        ({"masks": "never"}, "masks"),
        ({"hidden": {"type": "x"}}, "hidden"),
    ],
)
def test_settings_that_do_not_fit_are_named_when_a_trial_is_read(change, argument):
    plain = Trial(us.models.APPNP, {"hidden": 8}).to_plain()
    with pytest.raises(us.InputError) as caught:
        Trial.from_plain({**plain, "settings": {**plain["settings"], **change}})
    assert (caught.value.argument, caught.value.owner) == (argument, "APPNP")


def test_trials_are_told_to_people():
    trial = Trial(us.models.APPNP, {"depth": 3, "masks": us.models.Masks.EACH_HOP}, TrainConfig(weight_decay={"first": 0.1, "hops": 0.0}), 7)  # fmt: skip
    assert str(trial) == "APPNP(depth=3, masks=each_hop), lr 0.01, weight decay first=0.1, seed 7"
    assert trial.name == "APPNP"
    assert trial.schema is us.models.APPNP.schema
    assert trial.shown("depth") == "3"


def test_the_lower_level_is_part_of_a_trial():
    exact = Trial(us.models.APPNP, config=TrainConfig(lower_level=LowerLevel.EXACT))
    assert exact.build(4, 2).solved_exactly
    assert not Trial(us.models.APPNP).build(4, 2).solved_exactly
    assert exact.key("") != Trial(us.models.APPNP).key("")
    assert same(exact.build(4, 2), Trial(us.models.APPNP).build(4, 2))  # the same weights begin


def test_another_seed_is_the_same_trial_otherwise():
    trial = Trial(us.models.GCN, {"hidden": 8}, TrainConfig(lr=0.1), 3, True, "paper")
    other = trial.with_seed(5)
    assert {**trial.to_plain(), "seed": 5} == other.to_plain()
    assert other.with_seed(3).key("") == trial.key("")


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"model": "GCN"}, "model"),
        ({"model": us.models.GCN(3, 2)}, "model"),
        ({"model": dict}, "model"),
        ({"settings": 3}, "settings"),
        ({"settings": [("hidden", 8)]}, "settings"),
        ({"config": {"lr": 0.1}}, "config"),
        ({"config": TrainConfig}, "config"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"seed": "3"}, "seed"),
        ({"seed": None}, "seed"),
        ({"seed": True}, "seed"),
    ],
)
def test_what_is_not_a_trial_is_named(given, argument):
    with pytest.raises(us.InputError) as caught:
        Trial(**{"model": us.models.GCN, **given})
    assert caught.value.argument == argument
    assert caught.value.value is given[argument]


def test_every_door_of_training_says_what_it_takes():
    data = us.datasets.contextual_sbm(nodes=30, classes=2, seed=0)
    doors = {
        "trial": [lambda: us.train.train_trial(us.models.GCN, data), lambda: us.train.repeat(us.models.GCN, data)],
        "kind": [lambda: us.train.TrialLoader(data, kind="links")],
        "config": [lambda: us.train.fit(us.models.GCN(16, 2), us.train.Task.of(data), {"lr": 0.1})],
        "seed": [
            lambda: us.train.repeat(Trial(us.models.GCN), data, seeds=[0.5]),
            lambda: Trial(us.models.GCN).with_seed(-1),
        ],
    }
    for argument, calls in doors.items():
        for call in calls:
            with pytest.raises(us.InputError) as caught:
                call()
            assert caught.value.argument == argument


def test_seeds_of_numpy_are_numbers():
    trial = Trial(us.models.GCN, seed=np.int64(3))
    assert type(trial.seed) is int
    assert trial.key("") == Trial(us.models.GCN, seed=3).key("")


def test_seeds_are_as_large_as_torch_takes_them():
    assert Trial(us.models.SGC, seed=2**63 - 1).build(3, 2)
    for seed in (2**63, 2**70):
        with pytest.raises(us.InputError) as caught:
            Trial(us.models.SGC, seed=seed)
        assert (caught.value.argument, caught.value.value) == ("seed", seed)
