"""Spaces: the same trials every time, presets where nothing is said, and one sentence for what makes no sense."""

import math
import pickle
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import unspool as us
from unspool.models import preset_tables as tables
from unspool.reproduce.search import candidates
from unspool.reproduce.table2 import as_printed
from unspool.study import Trial, identity
from unspool.study.search import space as spaces
from unspool.study.search.ranges import choice, integers, log_uniform, uniform, unit
from unspool.study.search.space import grid, paper_grid
from unspool.train import Plan, Precision, Select, Stop

GCN, GPRGNN, SGC, UGDGNN = us.models.GCN, us.models.GPRGNN, us.models.SGC, us.models.UGDGNN


class Own(nn.Module):
    def __init__(self, features, classes, width=8, bend=0.0):
        super().__init__()


class Open(nn.Module):
    def __init__(self, features, classes, **more):
        super().__init__()


class Needy(nn.Module):
    def __init__(self, features, classes, *, heads):
        super().__init__()


class Odd(nn.Module):
    def __init__(self, width=8):
        super().__init__()


def keys(space, dataset="cora"):
    return [t.key("") for t in space.trials(dataset)]


def test_a_grid_is_every_combination_in_order():
    trials = grid(GCN, seed=[3, 1], rate=[0.1, 0.2], hidden=(4, 8)).trials("cora")
    told = [(t.plan.rate, t.settings["hidden"], t.seed) for t in trials]
    assert told == [(r, h, s) for r in (0.1, 0.2) for h in (4, 8) for s in (3, 1)]


@pytest.mark.parametrize("dataset", ["cora", "texas"])
@pytest.mark.parametrize("model", us.models.MODELS)
def test_a_grid_without_choices_is_the_preset(model, dataset):
    how = us.models.preset(model, dataset, "paper" if dataset == "cora" else "default")
    (trial,) = grid(model, seed=0).trials(dataset)
    assert (trial.settings, trial.plan, trial.seed) == (how.settings, how.plan(), 0)
    assert (trial.normalise_rows, trial.preset) == (how.normalise_features, how.name)


def test_presets_can_be_chosen():
    plain, official = grid(GCN, seed=0, preset=["default", "Official"]).trials("cora")
    assert plain.preset == "default"
    assert official.settings["hidden"] == 16
    with pytest.raises(us.IncompatibleError, match="UGDGNN has no official setting"):
        grid(UGDGNN, preset="official").trials("cora")


class Mine(us.models.Model):
    def __init__(self, in_features, out_features, *, hidden=7, depth=3, dropout=0.4):
        super().__init__(in_features, out_features, hidden=hidden, depth=depth, dropout=dropout)


class Wider(us.models.GCN):
    def __init__(self, in_features, out_features, *, hidden=7, dropout=0.4):
        super().__init__(in_features, out_features, hidden=hidden, dropout=dropout)


class Again:  # a class of the user's may have the name of one of ours
    class UGDGNN(Mine):
        pass


@pytest.mark.parametrize("kind", [Mine, Wider, Again.UGDGNN])
@pytest.mark.parametrize("dataset", ["cora", "Photo", "texas"])
def test_a_class_of_ones_own_keeps_its_defaults(kind, dataset):
    for space in (grid(kind, seed=0), spaces.random(kind, count=1, rate=uniform(0.1, 0.2))):
        (trial,) = space.trials(dataset)
        assert (trial.settings, trial.preset, trial.normalise_rows) == ({}, "default", False)
    with pytest.raises(TypeError, match=f"{kind.__name__} is not of this package"):
        paper_grid(kind)


def test_a_class_of_ones_own_gets_a_preset_that_is_asked_for():
    (mine,) = grid(Wider, seed=0, preset="paper").trials("cora")
    (ours,) = grid(GCN, seed=0, preset="paper").trials("cora")
    assert mine.settings == {name: ours.settings[name] for name in ("hidden", "dropout")}  # it takes no depth
    assert (mine.plan, mine.normalise_rows) == (ours.plan, ours.normalise_rows)
    # Trap: by its name alone it would get the settings of a model that it has nothing to do with.
    (named,) = grid(Again.UGDGNN, seed=0, preset="paper").trials("cora")
    (plain,) = grid(Mine, seed=0, preset="paper").trials("cora")
    assert (named.settings, named.plan) == (plain.settings, plain.plan)
    with pytest.raises(us.IncompatibleError, match="UGDGNN has no official setting"):
        grid(Again.UGDGNN, preset="official").trials("cora")


def test_words_of_the_plan_change_the_plan():
    changes = {
        "rate": 0.3, "epochs": 7, "select": Select.LAST, "stop": Stop.PATIENCE, "patience": 3, "earliest": 2,
        "optimiser": torch.optim.SGD, "precision": Precision.BFLOAT16, "decay": {"first": 0.1},
    }  # fmt: skip
    (trial,) = grid(GCN, seed=0, **changes).trials("cora")
    assert {name: getattr(trial.plan, name) for name in changes} == changes


def test_one_number_decays_weights_and_not_hops():
    (trial,) = grid(UGDGNN, seed=0, decay=0.01).trials("cora")
    model = trial.build(4, 2)
    hops = {id(p) for p in model.parameter_groups()["hops"]}
    for group in trial.plan.groups(model):
        assert all((id(p) in hops) is (group["weight_decay"] == 0) for p in group["params"])
    (trial,) = grid(Own, seed=0, decay=0.01).trials("cora")
    assert trial.plan == Plan(decay=0.01)


def test_patience_is_meant():
    (trial,) = grid(GCN, seed=0, patience=20).trials("cora")
    assert trial.plan.stop is Stop.PATIENCE
    (trial,) = grid(GCN, seed=0, patience=20, stop=Stop.NEVER).trials("cora")
    assert trial.plan.stop is Stop.NEVER
    (trial,) = grid(us.models.DAGNN, seed=0, preset="official", patience=20).trials("cora")
    assert trial.plan.stop is Stop.ABOVE_MEAN


def test_both_dropouts_of_gprgnn_go_together():
    for trial in grid(GPRGNN, seed=0, dropout=[0.1, 0.8]).trials("cora"):
        assert trial.settings["propagation_dropout"] == trial.settings["dropout"]
    (trial,) = grid(GPRGNN, seed=0, dropout=0.1, propagation_dropout=0.3).trials("cora")
    assert trial.settings["propagation_dropout"] == 0.3
    (trial,) = grid(GPRGNN, seed=0, dropout=0.1).trials("texas")
    assert "propagation_dropout" not in trial.settings


@pytest.mark.parametrize("kind", [us.models.UGDGNN, us.models.APPNP])
def test_other_models_drop_nothing_before_the_hops_unless_told(kind):
    for trial in grid(kind, seed=0, dropout=[0.1, 0.8]).trials("cora"):
        assert "propagation_dropout" not in trial.settings
        assert float(trial.build(4, 3).p_pre.after.rate) == 0
    (trial,) = grid(kind, seed=0, dropout=0.1, propagation_dropout=0.3).trials("cora")
    assert trial.settings["propagation_dropout"] == 0.3


#: Keys of trials as they are without ``masks``: stored results are found by them.
BEFORE = {
    ("UGDGNN", "cora"): "02947c7f0cae9abfd8923cb2", ("UGDGNN", "bare"): "58e508f2d5e8ec2fbf7cbda7",
    ("GPRGNN", "cora"): "0c7c8839334c9ff515a63b64", ("GPRGNN", "bare"): "26a8fdbf029693ceb3a413a0",
    ("APPNP", "cora"): "e273b222602f1c3f8763d143", ("APPNP", "bare"): "e81e240d51032cbe02ac4238",
}  # fmt: skip
#: The same for JKNet before it had ``channels``.
JKNET = {"cora": "7f613506ab5756e3bbe47030", "bare": "f1b64926a2c19d069a1f568e"}


@pytest.mark.parametrize(("name", "where"), BEFORE)
def test_keys_outlive_settings_that_models_gain(name, where, monkeypatch):
    monkeypatch.setattr(identity, "NUMERICS", 1)
    kind = getattr(us.models, name)
    trial = Trial(kind) if where == "bare" else as_printed(kind, where, "paper")
    key = trial.key("x")
    assert key == BEFORE[name, where]
    said = {"masks": us.models.Masks.ONCE, **({} if name == "GPRGNN" else {"propagation_dropout": 0})}
    assert replace(trial, settings={**trial.settings, **said}).key("x") == key
    other = {"masks": us.models.Masks.EACH_HOP}
    assert replace(trial, settings={**trial.settings, **other}).key("x") != key
    assert replace(trial, settings={**trial.settings, "propagation_dropout": 0.3}).key("x") != key


@pytest.mark.parametrize("where", JKNET)
def test_keys_of_jknet_outlive_its_channels(where, monkeypatch):
    monkeypatch.setattr(identity, "NUMERICS", 1)
    trial = Trial(us.models.JKNet) if where == "bare" else as_printed(us.models.JKNet, where, "paper")
    said, other = us.models.Channels.HIDDEN, us.models.Channels.CLASSES
    assert trial.key("x") == JKNET[where]
    assert replace(trial, settings={**trial.settings, "channels": said}).key("x") == JKNET[where]
    assert replace(trial, settings={**trial.settings, "channels": other}).key("x") != JKNET[where]


def test_starts_of_ugdgnn_have_keys_of_their_own():
    plain, ppr = Trial(us.models.UGDGNN), Trial(us.models.UGDGNN, {"start": us.models.HopStart.PPR})
    assert Trial(us.models.UGDGNN, {"start": us.models.HopStart.UNIFORM}).key("x") == plain.key("x") != ppr.key("x")


def test_masks_are_said_in_words():
    found = candidates(us.models.APPNP, "cora", "tuned", {"masks": ["once", "each_hop"], "propagation_dropout": [0.5]})
    assert [trial.settings["masks"] for trial in found.trials] == list(us.models.Masks)
    assert [trial.describe()["settings"]["masks"] for trial in found.trials] == ["once", "each_hop"]


def test_words_go_to_the_models_that_know_them():
    space = grid(GPRGNN, SGC, Own, seed=0, teleport=[0.1, 0.2], width=[4, 5, 6], preset="default")
    assert str(space) == "GPRGNN: 2 settings × 1 seed\nSGC: 1 setting × 1 seed\nOwn: 3 settings × 1 seed"
    assert [len(keys(grid(m, seed=0, teleport=[0.1, 0.2]))) for m in (Open, GPRGNN)] == [2, 2]


def test_foreign_modules_begin_from_a_plain_plan():
    (trial,) = grid(Own, seed=4, rate=0.5, width=3).trials("cora")
    assert (trial.settings, trial.plan, trial.normalise_rows, trial.preset) == (
        {"width": 3}, Plan(rate=0.5), False, "default",
    )  # fmt: skip
    assert isinstance(trial.build(5, 2), Own)


def test_repeats_are_dropped():
    assert len(grid(GCN, seed=[0, 0, 1], hidden=[8, 8, np.int64(8)])) == 2
    one = grid(GCN, seed=0)
    assert len(one + one) == 1
    assert len(one + grid(GCN, seed=range(3))) == 3
    assert len(keys(one + grid(GCN, seed=0, hidden=64, preset="paper"))) == 1  # said or not, it is the same
    assert len(grid(GCN, seed=0, bias=[True, 1, 1.0])) == 3


def test_arrays_and_their_numbers_are_values():
    arrays = grid(GCN, seed=np.arange(2), rate=torch.tensor([0.25, 0.5]), hidden=np.array([4, 8]))
    assert keys(arrays) == keys(grid(GCN, seed=range(2), rate=[0.25, 0.5], hidden=[4, 8]))
    single = grid(GCN, seed=np.int32(3), rate=np.float64(0.1), hidden=torch.tensor(4))
    assert keys(single) == keys(grid(GCN, seed=3, rate=0.1, hidden=4))


def test_a_value_may_be_a_list_inside_a_list():
    start = us.models.HopStart.WARM
    (trial,) = grid(GPRGNN, seed=0, depth=2, start=start, warm=[[0.5, 0.3, 0.2]]).trials("cora")
    assert trial.settings["warm"] == [0.5, 0.3, 0.2]


def test_trials_can_be_sent_to_other_processes():
    trials = paper_grid(SGC).trials("cora")
    assert [t.key("") for t in pickle.loads(pickle.dumps(trials))] == [t.key("") for t in trials]


@pytest.mark.parametrize(
    ("model", "settings"),
    [("UGDGNN", 81), ("APPNP", 324), ("GPRGNN", 324), ("SGC", 9), ("GCN", 27), ("JKNet", 81), ("GCNII", 81), ("DAGNN", 81),
     ("AirGNN", 81), ("PPNP", 108), ("MLP", 27)],
)  # fmt: skip
def test_the_paper_grid_is_counted_as_printed(model, settings):
    kind = getattr(us.models, model)
    space = paper_grid(kind, seed=range(2))
    assert str(space) == f"{model}: {settings} settings × 2 seeds"
    for dataset in ("cora", "texas"):
        trials = space.trials(dataset)
        assert len(trials) == len(space) == 2 * settings
        assert {(t.plan.epochs, t.plan.stop) for t in trials} == {(1000, Stop.NEVER)}


@pytest.mark.parametrize("model", sorted(tables.PAPER))
@pytest.mark.parametrize("dataset", tables.DATASETS)
def test_the_paper_grid_contains_what_the_paper_chose(model, dataset):
    kind = getattr(us.models, model)
    chosen = keys(grid(kind, seed=0, preset="paper"), dataset)
    assert set(chosen) <= set(keys(paper_grid(kind, seed=0), dataset))


def test_a_paper_grid_resolves_fast():
    space = paper_grid(UGDGNN)
    began = time.perf_counter()
    assert len(space.trials("cora")) == 810
    assert time.perf_counter() - began < 2  # 0.03 s where nothing else runs


DRAWN = {
    "rate": log_uniform(1e-3, 1e-1),
    "depth": integers(2, 6),
    "dropout": uniform(0, 0.9),
    "bias": [True, False],
    "hidden": 8,
}


def test_the_same_draw_gives_the_same_settings():
    assert keys(spaces.random(GPRGNN, count=5, **DRAWN)) == keys(spaces.random(GPRGNN, count=5, **DRAWN))
    assert not set(keys(spaces.random(GPRGNN, count=5, **DRAWN))) & set(
        keys(spaces.random(GPRGNN, count=5, draw=1, **DRAWN))
    )


def test_a_larger_draw_begins_like_a_smaller_one():
    few, many = (spaces.random(GPRGNN, count=n, seed=range(2), **DRAWN) for n in (3, 30))
    assert keys(many)[:6] == keys(few)
    assert len(many) == 60


def test_draws_do_not_depend_on_other_words_and_models():
    alone = spaces.random(GPRGNN, count=4, rate=DRAWN["rate"]).trials("cora")
    both = spaces.random(SGC, GPRGNN, count=4, **DRAWN).trials("cora")
    rates = [t.plan.rate for t in alone]
    assert rates == [t.plan.rate for t in both if t.model is GPRGNN] == [t.plan.rate for t in both if t.model is SGC]


def test_draws_stay_in_their_ranges_and_fill_them():
    trials = spaces.random(GPRGNN, count=300, **DRAWN).trials("cora")
    rates = np.array([t.plan.rate for t in trials])
    assert rates.min() >= 1e-3
    assert rates.max() <= 1e-1
    assert abs(np.mean(rates < 1e-2) - 0.5) < 0.1
    assert {t.settings["depth"] for t in trials} == {2, 3, 4, 5, 6}
    assert {t.settings["bias"] for t in trials} == {True, False}
    assert all(0 <= t.settings["dropout"] <= 0.9 and t.settings["hidden"] == 8 for t in trials)


def test_unit_numbers_are_spread_evenly():
    numbers = np.array([unit(d, i, w) for d in range(3) for i in range(500) for w in ("rate", "depth")])
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert np.abs(np.histogram(numbers, 10, (0, 1))[0] / 300 - 1).max() < 0.25
    assert unit(0, 0, "rate") == 0.365751564147221  # for ever


@pytest.mark.parametrize("top", [1 - 2**-53, 0.0])
def test_ranges_never_leave_their_ends(top):
    for low, high in ((0.1, 0.3), (1e-5, 7e-3), (0.7, 0.8)):
        assert low <= uniform(low, high).at(top) <= high
        assert low <= log_uniform(low, high).at(top) <= high
    assert integers(-1, 3).at(top) in (-1, 3)
    assert choice(["ab"]).at(top) == "ab"


@pytest.mark.parametrize(
    ("wrong", "error", "sentence"),
    [
        (grid, ValueError, "no model is given"),
        (lambda: grid(GCN(4, 2)), TypeError, "give the class GCN, not one that is built"),
        (lambda: grid("GCN"), TypeError, "'GCN' is no model class"),
        (lambda: grid(GCN, rate=[]), ValueError, "rate: the list is empty"),
        (lambda: grid(GCN, seed=[]), ValueError, "seed: the list is empty"),
        (lambda: grid(GCN, seed=1.5), ValueError, "seed=1.5: expected a whole number"),
        (lambda: grid(GCN, seed=[0, -1]), ValueError, "seed=-1"),
        (lambda: grid(GCN, seed="0"), ValueError, "seed='0'"),
        (lambda: grid(GCN, seed=True), ValueError, "seed=True"),
        (lambda: grid(GCN, dropout=[0.1, math.nan]), ValueError, "dropout: nan is no value"),
        (lambda: grid(GCN, rate=np.array([np.nan])), ValueError, "rate: nan is no value"),
        (lambda: grid(GCN, rate={0.1, 0.2}), TypeError, "a set has no fixed order; give a list"),
        (lambda: grid(GCN, rate=iter([0.1])), TypeError, "no fixed order"),
        (lambda: grid(GCN, rate=[0.1, -1]), ValueError, "rate=-1"),
        (lambda: grid(GCN, rate="fast"), TypeError, "rate='fast': expected a number"),
        (lambda: grid(GCN, decay={"first": "x"}), TypeError, "expected a number"),
        (lambda: grid(GCN, decay=-1), ValueError, "decay=-1"),
        (lambda: grid(GCN, epochs=2.5), ValueError, "epochs=2.5: expected a whole number"),
        (lambda: grid(GCN, epochs=0), ValueError, "epochs=0"),
        (lambda: grid(GCN, select="loss"), TypeError, "expected one of Select.VALIDATION_LOSS"),
        (lambda: grid(GCN, optimiser="adam"), TypeError, "expected a class such as torch.optim.AdamW"),
        (lambda: grid(GCN, preset="papers"), ValueError, "preset='papers': there are 'paper', 'official', 'default'"),
        (lambda: grid(Own, preset="paper"), ValueError, "preset: there are none for Own"),
        (lambda: grid(GCN, deep=3), ValueError, "'deep' is no setting: GCN takes hidden, depth, dropout"),
        (lambda: grid(GCN, SGC, deep=3), ValueError, "SGC takes depth, bias, weights; the plan takes decay"),
        (lambda: grid(GCN, in_features=3), ValueError, "'in_features' is no setting"),
        (lambda: grid(Needy), ValueError, "Needy cannot be built without heads"),
        (lambda: grid(Odd), TypeError, "is not built as model.in_features, out_features"),
        (lambda: grid(GCN, rate=uniform(0, 1)), TypeError, "in the range 0 to 1; give a list, or use random"),
        (lambda: grid(GCN, seed=range(2000), hidden=range(1, 1000)), ValueError, "more than 1,000,000 trials"),
        (lambda: grid(GCN, hidden=0).trials("cora"), ValueError, "cannot be built: hidden=0"),
        (lambda: grid(GCN, hidden=2.5).trials("cora"), ValueError, "cannot be built: hidden=2.5"),
        (lambda: grid(GPRGNN, start="ppr").trials("x"), TypeError, "start"),
        (lambda: grid(GCN).trials(None), TypeError, "expected the name of a dataset"),
        (lambda: paper_grid(Own), TypeError, "the paper has no grid for it"),
        (lambda: paper_grid("GCN"), TypeError, "'GCN' is no model class"),
        (lambda: spaces.random(GCN, count=0), ValueError, "count=0: expected a whole number of at least 1"),
        (lambda: spaces.random(GCN, count=2, draw=-1), ValueError, "draw=-1"),
        (lambda: spaces.random(GCN, count=2, rate=uniform(-1, 1)), ValueError, "rate=-1"),
        (lambda: spaces.random(GCN, count=2, rate=[uniform(1, 2), 3]), TypeError, "a range inside a list"),
        (lambda: spaces.random(GCN, count=2, epochs=uniform(5, 9)), ValueError, "epochs=5.0: expected a whole number"),
        (lambda: spaces.random(GCN, count=2, rate=choice([math.nan])), ValueError, "nan"),
        (lambda: uniform(2, 1), ValueError, "the lower one first"),
        (lambda: uniform(0, math.inf), ValueError, "two finite ends"),
        (lambda: uniform("a", 1), TypeError, "both ends are numbers"),
        (lambda: log_uniform(0, 1), ValueError, "a low end above 0; for 0 to 1 use uniform"),
        (lambda: integers(1.5, 3), ValueError, "whole numbers; for others use uniform"),
        (lambda: choice([]), ValueError, "nothing to choose from"),
        (lambda: choice("ab"), TypeError, "expected a list of values"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_one_sentence(wrong, error, sentence):
    with pytest.raises(error, match=sentence) as caught:
        wrong()
    assert "\n" not in str(caught.value)
