"""Spaces: the same trials every time, defaults and presets where nothing is said, and one sentence for what makes no sense."""

import math
import pickle

import numpy as np
import pytest
import torch
from torch import nn

import unspool as us
from unspool.errors import UNSHOWN, InputError
from unspool.settings import choice, integers, log_uniform, uniform
from unspool.study.search import space as spaces
from unspool.study.search.space import declared_search, grid
from unspool.train import DEFAULT, LowerLevel, Monitor, Precision, Preset, Rates, Stop, TrainConfig, Trial
from unspool.train.upper import Upper

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


class Mine(us.models.Model):
    """Declares its settings, and where to search some of them."""

    hidden: int = us.setting(7, "width", at_least=1, search=choice([4, 8]))
    pull: float = us.setting(0.4, "strength", above=0, at_most=1, search=uniform(0.2, 0.6))
    kept: bool = us.setting(True, "nobody searches it")

    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        self.propagation = us.unroll(
            us.Fidelity(self.pull) + us.Smoothness(1 - self.pull), us.GradientDescent(step=0.5), 2
        )


class Wider(us.models.GCN):
    """A named model with other defaults."""

    hidden = 7
    dropout = 0.4


class Again:  # a class of the user's may have the name of one of ours
    class UGDGNN(Mine):
        pass


class Printed(Preset):
    """Settings of somebody's paper, for some data."""

    def __init__(self, name="printed", lr=0.2, **settings):
        self.name, self.lr, self.settings = name, lr, settings

    def trial(self, model, dataset):
        if dataset == "texas":
            raise us.IncompatibleError(f"{self.name} says nothing about texas; use the defaults")
        config = TrainConfig(lr=self.lr, epochs=300, stop=Stop.NEVER)
        return Trial(model, self.settings, config, normalise_rows=dataset == "cora", preset=self.name)


def keys(space, dataset="cora"):
    return [t.key("") for t in space.trials(dataset)]


# -- grids -------------------------------------------------------------------------------------------------------------


def test_a_grid_is_every_combination_in_order():
    trials = grid(GCN, seed=[3, 1], lr=[0.1, 0.2], hidden=(4, 8)).trials("cora")
    told = [(t.config.lr, t.settings["hidden"], t.seed) for t in trials]
    assert told == [(r, h, s) for r in (0.1, 0.2) for h in (4, 8) for s in (3, 1)]


@pytest.mark.long
@pytest.mark.parametrize("dataset", ["cora", "texas", "Photo"])
@pytest.mark.parametrize(
    "model", [*us.models.MODELS, Mine, Wider, Again.UGDGNN, Own], ids=lambda kind: kind.__qualname__
)
def test_a_grid_without_choices_is_the_models_own_defaults(model, dataset):
    """Named models and those of the user's alike, on any data."""
    (trial,) = grid(model, seed=0).trials(dataset)
    assert (trial.settings, trial.config, trial.seed) == ({}, TrainConfig(), 0)
    assert (trial.normalise_rows, trial.preset) == (False, "default")
    assert (
        keys(grid(model, seed=0), dataset)
        == keys(grid(model, seed=0, preset=DEFAULT), dataset)
        == [Trial(model).key("")]
    )
    if issubclass(model, us.models.Model):
        assert trial.build(4, 2).settings == model.schema.complete({})


def test_a_random_draw_leaves_the_other_settings_at_their_defaults():
    for kind in (GCN, Mine, Wider, Own):
        (trial,) = spaces.random(kind, count=1, lr=uniform(0.1, 0.2)).trials("cora")
        assert (trial.settings, trial.preset, trial.normalise_rows) == ({}, "default", False)
        assert trial.config == TrainConfig(lr=trial.config.lr)


def test_a_class_that_changes_a_default_has_it():
    (trial,) = grid(Wider, seed=0).trials("cora")
    model = trial.build(4, 2)
    assert (model.settings["hidden"], model.settings["dropout"]) == (7, 0.4)
    assert model.settings["bias"] == GCN(4, 2).settings["bias"]


# -- presets -----------------------------------------------------------------------------------------------------------


def test_a_preset_is_an_object():
    (trial,) = grid(GCN, seed=3, preset=Printed(hidden=16)).trials("cora")
    assert trial.settings == {"hidden": 16}
    assert (trial.config.lr, trial.config.epochs, trial.config.stop) == (0.2, 300, Stop.NEVER)
    assert (trial.seed, trial.normalise_rows, trial.preset) == (3, True, "printed")
    (other,) = grid(GCN, seed=3, preset=Printed(hidden=16)).trials("pubmed")
    assert not other.normalise_rows  # it may depend on the data


def test_what_is_said_goes_before_the_preset():
    (trial,) = grid(GCN, seed=0, preset=Printed(hidden=16, dropout=0.1), hidden=4, lr=0.3, epochs=7).trials("cora")
    assert trial.settings == {"hidden": 4, "dropout": 0.1}
    assert (trial.config.lr, trial.config.epochs, trial.config.stop) == (0.3, 7, Stop.NEVER)


def test_presets_can_be_several():
    trials = grid(GCN, seed=0, preset=[None, Printed(hidden=16), Printed("other", lr=0.5)]).trials("cora")
    assert [t.preset for t in trials] == ["default", "printed", "other"]
    assert [t.config.lr for t in trials] == [0.01, 0.2, 0.5]
    assert {t.preset for t in spaces.random(GCN, count=8, preset=[DEFAULT, Printed()], lr=uniform(0.1, 0.2)).trials("cora")} == {"default", "printed"}  # fmt: skip


def test_two_presets_of_one_name_are_two():
    trials = grid(GCN, seed=0, preset=[Printed(lr=0.1), Printed(lr=0.2)]).trials("cora")
    assert [t.config.lr for t in trials] == [0.1, 0.2]


def test_a_preset_may_refuse():
    space = grid(GCN, seed=0, preset=Printed())
    with pytest.raises(us.IncompatibleError, match="printed says nothing about texas"):
        space.trials("texas")
    assert len(space.trials("cora")) == 1


def test_a_preset_suits_any_model():
    (trial,) = grid(Own, seed=0, preset=Printed(width=3)).trials("cora")
    assert (trial.settings, trial.preset) == ({"width": 3}, "printed")


@pytest.mark.parametrize("wrong", ["paper", "default", TrainConfig(), Printed, 3])
def test_a_preset_is_nothing_else(wrong):
    with pytest.raises(InputError) as caught:
        grid(GCN, preset=wrong)
    assert (caught.value.argument, caught.value.value) == ("preset", wrong)


# -- words -------------------------------------------------------------------------------------------------------------


def test_words_of_training_change_the_config():
    changes = {
        "lr": 0.3, "epochs": 7, "monitor": Monitor.LAST_EPOCH, "stop": Stop.PATIENCE, "patience": 3, "min_epochs": 2,
        "optimiser": torch.optim.SGD, "precision": Precision.BFLOAT16, "weight_decay": {"first": 0.1}, "lower_level": LowerLevel.EXACT,
        "lr_schedule": Rates.COSINE, "lr_epochs": 5, "clip": 1.0, "upper": Upper.parse("ce + entropy"), "batch_size": 32,
    }  # fmt: skip
    assert set(changes) == set(TrainConfig.schema)
    (trial,) = grid(us.models.APPNP, seed=0, **changes).trials("cora")
    assert {name: getattr(trial.config, name) for name in changes} == changes


def test_lower_levels_can_be_compared():
    trials = grid(us.models.APPNP, seed=0, lower_level=list(LowerLevel)).trials("cora")
    assert [t.config.lower_level for t in trials] == [LowerLevel.UNROLLED, LowerLevel.EXACT]
    with pytest.raises(ValueError, match="GPRGNN cannot be solved exactly"):
        grid(GPRGNN, seed=0, lower_level=LowerLevel.EXACT).trials("cora")


def test_one_number_decays_weights_and_not_hops():
    (trial,) = grid(UGDGNN, seed=0, weight_decay=0.01).trials("cora")
    model = trial.build(4, 2)
    hops = {id(p) for p in model.parameter_groups()["hops"]}
    for group in trial.config.parameter_groups(model):
        assert all((id(p) in hops) is (group["weight_decay"] == 0) for p in group["params"])
    (trial,) = grid(Own, seed=0, weight_decay=0.01).trials("cora")
    assert trial.config == TrainConfig(weight_decay=0.01)


def test_patience_is_meant():
    never, above = Printed(), type("Above", (Printed,), {"trial": lambda self, model, dataset: Trial(model, config=TrainConfig(stop=Stop.ABOVE_MEAN))})()  # fmt: skip
    (trial,) = grid(GCN, seed=0, patience=20).trials("cora")
    assert (trial.config.stop, trial.config.patience) == (Stop.PATIENCE, 20)
    (trial,) = grid(GCN, seed=0, patience=20, preset=never).trials("cora")
    assert (trial.config.stop, trial.config.patience) == (Stop.PATIENCE, 20)
    (trial,) = grid(GCN, seed=0, patience=20, stop=Stop.NEVER, preset=never).trials("cora")
    assert trial.config.stop is Stop.NEVER
    (trial,) = grid(GCN, seed=0, patience=20, preset=above).trials("cora")
    assert trial.config.stop is Stop.ABOVE_MEAN


def test_both_dropouts_of_gprgnn_go_together():
    for trial in grid(GPRGNN, seed=0, dropout=[0.1, 0.8]).trials("cora"):
        model = trial.build(4, 3)
        assert (
            float(model.p_pre.after.rate) == float(model.p_pre.dropout.rate) == pytest.approx(trial.settings["dropout"])
        )
    (trial,) = grid(GPRGNN, seed=0, dropout=0.1, propagation_dropout=0.3).trials("cora")
    model = trial.build(4, 3)
    assert (float(model.p_pre.after.rate), float(model.p_pre.dropout.rate)) == pytest.approx((0.3, 0.1))


@pytest.mark.parametrize("kind", [us.models.UGDGNN, us.models.APPNP])
def test_other_models_drop_nothing_before_the_hops_unless_told(kind):
    for trial in grid(kind, seed=0, dropout=[0.1, 0.8]).trials("cora"):
        assert "propagation_dropout" not in trial.settings
        assert float(trial.build(4, 3).p_pre.after.rate) == 0
    (trial,) = grid(kind, seed=0, dropout=0.1, propagation_dropout=0.3).trials("cora")
    assert float(trial.build(4, 3).p_pre.after.rate) == pytest.approx(0.3)


def test_words_go_to_the_models_that_know_them():
    space = grid(GPRGNN, SGC, Own, Mine, seed=0, teleport=[0.1, 0.2], width=[4, 5, 6], pull=0.5)
    assert str(space) == (
        "GPRGNN: 2 settings × 1 seed\nSGC: 1 setting × 1 seed\nOwn: 3 settings × 1 seed\nMine: 1 setting × 1 seed"
    )
    assert [len(keys(grid(m, seed=0, teleport=[0.1, 0.2]))) for m in (Open, GPRGNN)] == [2, 2]


def test_foreign_modules_begin_from_a_plain_config():
    (trial,) = grid(Own, seed=4, lr=0.5, width=3).trials("cora")
    assert (trial.settings, trial.config, trial.normalise_rows, trial.preset) == (
        {"width": 3}, TrainConfig(lr=0.5), False, "default",
    )  # fmt: skip
    assert isinstance(trial.build(5, 2), Own)


def test_repeats_are_dropped():
    assert len(grid(GCN, seed=[0, 0, 1], hidden=[8, 8, np.int64(8)])) == 2
    one = grid(GCN, seed=0)
    assert len(one + one) == 1
    assert len(one + grid(GCN, seed=range(3))) == 3
    assert len(keys(one + grid(GCN, seed=0, hidden=64, dropout=0.5, lr=0.01))) == 1  # said or not, it is the same
    assert len(grid(GCN, seed=0, dropout=[0, 0.0])) == 2  # as it is said
    assert len(keys(grid(GCN, seed=0, dropout=[0, 0.0]))) == 1  # as it is meant


def test_arrays_and_their_numbers_are_values():
    arrays = grid(GCN, seed=np.arange(2), lr=torch.tensor([0.25, 0.5]), hidden=np.array([4, 8]))
    assert keys(arrays) == keys(grid(GCN, seed=range(2), lr=[0.25, 0.5], hidden=[4, 8]))
    single = grid(GCN, seed=np.int32(3), lr=np.float64(0.1), hidden=torch.tensor(4))
    assert keys(single) == keys(grid(GCN, seed=3, lr=0.1, hidden=4))


def test_a_value_may_be_a_list_inside_a_list():
    start = us.models.HopStart.WARM
    (trial,) = grid(GPRGNN, seed=0, depth=2, start=start, warm=[[0.5, 0.3, 0.2]]).trials("cora")
    assert trial.settings["warm"] == [0.5, 0.3, 0.2]


def test_trials_can_be_sent_to_other_processes():
    trials = grid(SGC, GPRGNN, seed=range(2), lr=[0.01, 0.2], preset=[DEFAULT, Printed()]).trials("cora")
    assert [t.key("") for t in pickle.loads(pickle.dumps(trials))] == [t.key("") for t in trials]


def test_a_grid_has_every_combination_once():
    space = grid(UGDGNN, seed=range(10), lr=[0.005, 0.01, 0.05], dropout=[0.1, 0.5, 0.8], weight_decay=[5e-5, 5e-4, 5e-3], depth=[5, 10, 20])  # fmt: skip
    trials = space.trials("cora")
    assert len(trials) == len({trial.key("") for trial in trials}) == 810


# -- random ------------------------------------------------------------------------------------------------------------


DRAWN = {
    "lr": log_uniform(1e-3, 1e-1), "depth": integers(2, 6), "dropout": uniform(0, 0.9), "bias": [True, False], "hidden": 8,
}  # fmt: skip


def test_the_same_draw_gives_the_same_settings():
    assert keys(spaces.random(GPRGNN, count=5, **DRAWN)) == keys(spaces.random(GPRGNN, count=5, **DRAWN))
    other = keys(spaces.random(GPRGNN, count=5, draw=1, **DRAWN))
    assert not set(keys(spaces.random(GPRGNN, count=5, **DRAWN))) & set(other)


def test_a_larger_draw_begins_like_a_smaller_one():
    few, many = (spaces.random(GPRGNN, count=n, seed=range(2), **DRAWN) for n in (3, 30))
    assert keys(many)[:6] == keys(few)
    assert len(many) == 60


def test_draws_do_not_depend_on_other_words_and_models():
    alone = spaces.random(GPRGNN, count=4, lr=DRAWN["lr"]).trials("cora")
    both = spaces.random(SGC, GPRGNN, count=4, **DRAWN).trials("cora")
    rates = [t.config.lr for t in alone]
    assert rates == [t.config.lr for t in both if t.model is GPRGNN] == [t.config.lr for t in both if t.model is SGC]


def test_draws_stay_in_their_ranges_and_fill_them():
    trials = spaces.random(GPRGNN, count=300, **DRAWN).trials("cora")
    rates = np.array([t.config.lr for t in trials])
    assert rates.min() >= 1e-3
    assert rates.max() <= 1e-1
    assert abs(np.mean(rates < 1e-2) - 0.5) < 0.1
    assert {t.settings["depth"] for t in trials} == {2, 3, 4, 5, 6}
    assert {t.settings["bias"] for t in trials} == {True, False}
    assert all(0 <= t.settings["dropout"] <= 0.9 and t.settings["hidden"] == 8 for t in trials)


# -- where settings say that searches look -------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("model", us.models.MODELS, ids=lambda kind: kind.__name__)
def test_a_search_that_is_told_nothing_looks_where_settings_say(model):
    declared = declared_search(model)
    assert {"lr", "weight_decay"} <= set(declared)
    trials = spaces.random(model, count=40).trials("cora")
    words = [{"lr": t.config.lr, "weight_decay": t.config.weight_decay, **t.settings} for t in trials]
    assert all(set(one) == set(declared) for one in words)
    assert all(len({repr(one[name]) for one in words}) > 1 for name in declared)
    for name in declared:
        for one in words:
            model.schema[name].accept(one[name]) if name in model.schema else TrainConfig.schema[name].accept(one[name])


def test_models_of_ones_own_declare_their_search():
    assert {name: str(span) for name, span in declared_search(Mine).items()} == {
        "lr": "0.001 to 0.1 by factors", "weight_decay": "one of 0.0, 5e-05, 0.0005, 0.005", "hidden": "one of 4, 8", "pull": "0.2 to 0.6",
    }  # fmt: skip
    trials = spaces.random(Mine, count=30).trials("cora")
    assert {t.settings["hidden"] for t in trials} == {4, 8}
    assert all(0.2 <= t.settings["pull"] <= 0.6 and "kept" not in t.settings for t in trials)
    assert set(declared_search(Again.UGDGNN)) == set(declared_search(Mine))  # inherited, whatever the name


def test_a_plain_module_is_searched_in_its_training():
    assert set(declared_search(Own)) == {"lr", "weight_decay"}
    trials = spaces.random(Own, count=20).trials("cora")
    assert len({t.config.lr for t in trials}) == 20
    assert all(t.settings == {} for t in trials)


def test_values_that_stay_leave_the_rest_to_the_search():
    trials = spaces.random(GPRGNN, count=20, depth=4, epochs=7).trials("cora")
    assert {(t.settings["depth"], t.config.epochs) for t in trials} == {(4, 7)}
    assert len({t.config.lr for t in trials}) == 20
    # The values of the others are those that they have where nothing is said at all.
    assert [t.config.lr for t in trials] == [t.config.lr for t in spaces.random(GPRGNN, count=20).trials("cora")]


def test_a_range_that_is_given_is_searched_alone():
    trials = spaces.random(GPRGNN, count=20, dropout=uniform(0.1, 0.2)).trials("cora")
    assert {t.config.lr for t in trials} == {0.01}
    assert all(set(t.settings) == {"dropout"} for t in trials)
    listed = spaces.random(GPRGNN, count=20, dropout=[0.1, 0.2]).trials("cora")
    assert {t.settings["dropout"] for t in listed} == {0.1, 0.2}
    assert {t.config.lr for t in listed} == {0.01}


def test_a_search_on_top_of_a_preset():
    trials = spaces.random(GCN, count=5, preset=Printed(bias=False)).trials("cora")
    assert {(t.settings["bias"], t.config.epochs, t.preset) for t in trials} == {(False, 300, "printed")}
    assert len({t.config.lr for t in trials}) == 5


# -- what makes no sense -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "argument", "value"),
    [
        (lambda: grid(GCN, lr=[0.1, -1]), "lr", -1),
        (lambda: grid(GCN, lr="fast"), "lr", "fast"),
        (lambda: grid(GCN, weight_decay={"first": "x"}), "weight_decay", {"first": "x"}),
        (lambda: grid(GCN, weight_decay=-1), "weight_decay", -1),
        (lambda: grid(GCN, epochs=2.5), "epochs", 2.5),
        (lambda: grid(GCN, epochs=0), "epochs", 0),
        (lambda: grid(GCN, monitor="loss"), "monitor", "loss"),
        (lambda: grid(GCN, optimiser="adam"), "optimiser", "adam"),
        (lambda: grid(GCN, preset="papers"), "preset", "papers"),
        (lambda: grid(Own, preset="paper"), "preset", "paper"),
        (lambda: grid(GCN, deep=3), "deep", UNSHOWN),
        (lambda: grid(GCN, SGC, deep=3), "deep", UNSHOWN),
        (lambda: grid(GCN, rate=0.1), "rate", UNSHOWN),
        (lambda: grid(GCN, in_features=3), "in_features", UNSHOWN),
        (lambda: grid(Needy), "heads", UNSHOWN),
        (lambda: grid(GCN, hidden=0), "hidden", 0),
        (lambda: grid(GCN, hidden=2.5), "hidden", 2.5),
        (lambda: grid(GCN, hidden=True), "hidden", True),
        (lambda: grid(GCN, SGC, hidden=[4, -1]), "hidden", -1),
        (lambda: grid(GPRGNN, start="ppr"), "start", "ppr"),
        (lambda: grid(Mine, pull=1.5), "pull", 1.5),
        (lambda: grid(Own, width="wide"), "width", "wide"),
        (lambda: spaces.random(GCN, count=2, lr=uniform(-1, 1)), "lr", -1.0),
        (lambda: spaces.random(GCN, count=2, epochs=uniform(5, 9)), "epochs", 5.0),
        (lambda: spaces.random(GCN, count=2, dropout=uniform(0.5, 1.5)), "dropout", pytest.approx(1.5)),
    ],
)
def test_a_value_that_does_not_fit_is_named(wrong, argument, value):
    with pytest.raises(InputError) as caught:
        wrong()
    assert caught.value.argument == argument
    assert caught.value.value is UNSHOWN if value is UNSHOWN else caught.value.value == value
    assert "\n" not in str(caught.value)


def test_a_word_that_nobody_knows_brings_those_that_are_known():
    with pytest.raises(InputError) as caught:
        grid(GCN, SGC, deep=3)
    assert "GCN takes hidden, depth, dropout" in caught.value.expected
    assert "SGC takes depth, bias, weights" in caught.value.expected
    assert "training takes lr, weight_decay" in caught.value.expected


@pytest.mark.parametrize(
    ("wrong", "error", "sentence"),
    [
        (grid, ValueError, "no model is given"),
        (lambda: grid(GCN(4, 2)), TypeError, "give the class GCN, not one that is built"),
        (lambda: grid("GCN"), TypeError, "'GCN' is not a model class"),
        (lambda: grid(GCN, lr=[]), ValueError, "lr: the list is empty"),
        (lambda: grid(GCN, seed=[]), ValueError, "seed: the list is empty"),
        (lambda: grid(GCN, seed=1.5), ValueError, "seed=1.5: expected a whole number"),
        (lambda: grid(GCN, seed=[0, -1]), ValueError, "seed=-1"),
        (lambda: grid(GCN, seed="0"), ValueError, "seed='0'"),
        (lambda: grid(GCN, seed=True), ValueError, "seed=True"),
        (lambda: grid(GCN, dropout=[0.1, math.nan]), ValueError, "dropout: nan is not a value"),
        (lambda: grid(GCN, lr=np.array([np.nan])), ValueError, "lr: nan is not a value"),
        (lambda: grid(GCN, lr={0.1, 0.2}), TypeError, "a set has no fixed order; give a list"),
        (lambda: grid(GCN, lr=iter([0.1])), TypeError, "no fixed order"),
        (lambda: grid(Odd), TypeError, "is not built as model.in_features, out_features"),
        (lambda: grid(GCN, lr=uniform(0.1, 1)), TypeError, "in the range 0.1 to 1; give a list, or use random"),
        (lambda: grid(GCN, seed=range(2000), hidden=range(1, 1000)), ValueError, "more than 1,000,000 trials"),
        (lambda: grid(GPRGNN, start=us.models.HopStart.WARM).trials("x"), ValueError, "GPRGNN.*cannot be built"),
        (lambda: grid(GCN).trials(None), TypeError, "expected the name of a dataset"),
        (lambda: spaces.random(GCN, count=0), ValueError, "count=0: expected a whole number of at least 1"),
        (lambda: spaces.random(GCN, count=2, draw=-1), ValueError, "draw=-1"),
        (lambda: spaces.random(GCN, count=2, lr=[uniform(1, 2), 3]), TypeError, "a range inside a list"),
        (lambda: spaces.random(GCN, count=2, lr=choice([math.nan])), ValueError, "nan"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(wrong, error, sentence):
    with pytest.raises(error, match=sentence) as caught:
        wrong()
    assert "\n" not in str(caught.value)


class Impatient(nn.Module):
    """A plain module with an argument that training has, too."""

    def __init__(self, in_features, out_features, patience=3):
        super().__init__()


def test_a_name_that_a_plain_module_and_training_have_is_refused():
    for make in (lambda: grid(Impatient, patience=[5, 7]), lambda: spaces.random(Impatient, count=2, patience=[5, 7])):
        with pytest.raises(InputError, match="an argument of Impatient and of training; rename that of the model"):
            make()
    assert len(grid(Impatient, seed=0, epochs=3)) == 1  # it keeps its default
