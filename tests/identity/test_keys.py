"""Keys of trials: the same computation has the same one in any spelling and in any process; another one has another."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import unspool as us
from unspool import identity
from unspool.train import DEFAULT, LowerLevel, Monitor, Precision, Rates, Stop, TrainConfig, Trial

#: Keys as they are. Stored results are found by them: whoever changes them raises FORMAT in train/trial.py.
KEYS = {
    "SGC": "70e0fa2ba6053aaeed6f8a0c",
    "PPNP": "9cc826a1de4f5b17bbd5b10a",
    "APPNP": "af68d2387a5e8c740fcb8c4c",
    "JKNet": "37a7023089337cb526d0bac9",
    "GPRGNN": "1b295ce626ef71c932ca751a",
    "GCN": "41c5c71a3d27166490d3ead9",
    "GCNII": "c4ee02e603062f45ca97ec36",
    "AirGNN": "c12dd840f41662161e9a657a",
    "DAGNN": "43ece42fb82d8ccc49926ff8",
    "UGDGNN": "6242a3c4598cf1658de46429",
    "MLP": "248ca847a4ca5626b871f39c",
    "every setting of training": "ac861e14fdbdb9a2bf32bedb",
    "ElasticGNN": "671a00519d417079a3a1d0e0",
    "PGNN": "e5368bff1de055e26ab43056",
    "TWIRLS": "e30525754bc2acc54edb98ab",
    "GNNLF": "6f0ecdb41dddbad4e4909d68",
    "GNNHF": "ffd1072e323102806c504cd9",
    "GRAFF": "79de15033e10bee023eb138d",
    "SignedGNN": "47df94468e024c7389d71b35",
    "FairGNN": "a4003a1785ae53802ffd7065",
    "TrustGNN": "5c9953ba6cb190369e3d29a3",
    "StableGNN": "e3a6b9d31ca7971182e9c9c4",
    "GraphFirstGPRGNN": "d348ceb66d6c5631e8cfeeb6",
    "GraphFirstUGDGNN": "786d38d03e1a18002c2fe9b0",
    "SIGN": "0835f52166812a1e63de0f4b",
    "a list": "7c1b6ba33dc51d4d882f9d94",
    "an object": "f280ebd0d30807531ca0057e",
    "a layer of torch": "bb11d2260433884da8e915aa",
}  # fmt: skip


def golden():
    warm = {"start": us.models.HopStart.WARM, "warm": [0.5, 0.5], "depth": 1}
    config = TrainConfig(
        lr=0.02, weight_decay={"hops": 0.0, "first": 0.1}, epochs=50, monitor=Monitor.VALID_SCORE, stop=Stop.ABOVE_MEAN, patience=7,
        min_epochs=3, optimiser=torch.optim.AdamW, precision=Precision.BFLOAT16, lower_level=LowerLevel.EXACT,
    )  # fmt: skip
    found = {kind.__name__: Trial(kind) for kind in us.models.MODELS}
    return found | {
        "every setting of training": Trial(us.models.APPNP, {"masks": us.models.Masks.EACH_HOP}, config, 3, normalise_rows=True),
        "a list": Trial(us.models.GPRGNN, warm), "an object": Trial(us.models.AirGNN, {"adjoint": us.Checkpointed(every=3)}),
        "a layer of torch": Trial(nn.Linear, {"bias": False}),
    }  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_keys_stay_what_they_are(name, monkeypatch):
    monkeypatch.setattr(identity, "NUMERICS", 1)
    assert golden()[name].key("5e1f") == KEYS[name]


def test_all_keys_are_held():
    assert set(golden()) == set(KEYS)
    assert len(set(KEYS.values())) == len(KEYS)


#: What settings are where nothing is said. They are in no key: whoever changes one raises NUMERICS in identity.
DEFAULTS = "1763a7472a8b5b8a"
#: The same of models that came after those of the paper.
LATER_DEFAULTS = "05d1cd793ef216a2"


@pytest.mark.parametrize("later", [False, True])
def test_defaults_stay_what_they_are(later):
    kinds = [kind for kind in us.models.MODELS if (kind in us.models.PAPER_MODELS) != later]
    held = {kind.__name__: kind.schema.to_plain(kind.schema.complete({})) for kind in kinds}
    if not later:
        held["TrainConfig"] = TrainConfig().to_plain()
    known = {
        name: {one: value for one, value in settings.items() if one not in GAINED.get(name, ())}
        for name, settings in held.items()
    }
    assert hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16] == (
        LATER_DEFAULTS if later else DEFAULTS
    )


#: Settings that models gained after the line above was written; their keys stayed.
GAINED: dict[str, tuple[str, ...]] = {
    "TrainConfig": ("lr_schedule", "lr_epochs", "clip", "upper", "batch_size"),
    "StableGNN": ("signal",),
    "TrustGNN": ("smoothings",),
}


def test_keys_outlive_settings_that_models_gain():
    class Before(us.models.GCN):
        pass

    class After(us.models.GCN):
        new: float = us.setting(0.5, "a setting that came later")

    After.__qualname__ = Before.__qualname__
    one, other = Trial(Before), Trial(After)
    third = replace(other, settings={"new": 0.6})
    for trial in (one, other, third):
        trial.__dict__["_marks"] = ("1", None)  # ours: code counts by one number
    assert one.key("x") == other.key("x")
    assert other.key("x") != third.key("x")


def key(kind=us.models.GCN, config=None, **settings):
    return Trial(kind, settings, TrainConfig() if config is None else config).key("x")


# -- one trial in many spellings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", us.models.MODELS, ids=lambda kind: kind.__name__)
def test_a_setting_that_is_said_at_its_default_is_the_same(kind):
    bare = key(kind)
    for name, one in kind.schema.items():
        assert key(kind, **{name: one.default}) == bare
    assert key(kind, **kind.schema.complete({})) == bare
    assert DEFAULT.trial(kind, "cora").key("x") == bare


def test_numbers_of_all_kinds_are_the_same():
    assert key(dropout=0) == key(dropout=0.0) == key(dropout=np.float64(0)) == key(dropout=torch.tensor(0.0))
    assert key(hidden=8) == key(hidden=np.int64(8)) == key(hidden=torch.tensor(8)) != key()
    assert Trial(us.models.GCN, seed=np.int64(1)).key("x") == Trial(us.models.GCN, seed=1).key("x")
    assert key(config=TrainConfig(lr=1)) == key(config=TrainConfig(lr=1.0)) == key(config=TrainConfig(lr=np.float64(1)))
    lists = ([0.5, 1.0], (0.5, 1), np.array([0.5, 1.0]), torch.tensor([0.5, 1.0]))
    assert len({key(us.models.GPRGNN, depth=1, start=us.models.HopStart.WARM, warm=one) for one in lists}) == 1


def test_the_order_of_words_does_not_count():
    assert key(hidden=8, dropout=0.1) == key(dropout=0.1, hidden=8)
    one, other = (
        TrainConfig(weight_decay=decay) for decay in ({"first": 0.1, "hops": 0.2}, {"hops": 0.2, "first": 0.1})
    )
    assert key(config=one) == key(config=other)
    assert one == other
    assert hash(one) == hash(other)


def test_how_one_came_by_the_settings_does_not_count():
    trial = Trial(us.models.GCN, {"hidden": 8})
    assert replace(trial, preset="paper").key("x") == trial.key("x")


def test_a_trial_comes_back_from_plain_values_with_its_key():
    for trial in golden().values():
        model = None if trial.model in us.models.MODELS else trial.model
        assert Trial.from_plain(trial.to_plain(), model).key("x") == trial.key("x")


# -- others --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", us.models.MODELS, ids=lambda kind: kind.__name__)
def test_every_setting_counts(kind):
    others = {
        int: lambda value: value + 1, float: lambda value: value / 2 if value else 0.25, bool: lambda value: not value,
        type(None): lambda value: 0.125, str: lambda value: f"{value}x",
    }  # fmt: skip
    changed = {"warm": [1.0], "adjoint": us.Checkpointed(every=2), "mu": 0.8, "p": 1.75}
    found = {None: key(kind)}
    for name, one in kind.schema.items():
        value = one.default
        if name in changed:
            other = changed[name]
        elif type(value) in others:
            other = others[type(value)](value)
        else:
            other = next(member for member in type(value) if member is not value)
        found[name] = key(kind, **{name: one.accept(other)})
    assert len(set(found.values())) == len(found)


def test_every_setting_of_training_counts():
    other = {
        "lr": 0.02, "weight_decay": 0.1, "epochs": 50, "monitor": Monitor.LAST_EPOCH, "stop": Stop.NEVER, "patience": 7, "min_epochs": 3,
        "optimiser": torch.optim.AdamW, "precision": Precision.BFLOAT16, "lower_level": LowerLevel.EXACT,
        "lr_schedule": Rates.COSINE, "lr_epochs": 50, "clip": 1.0, "upper": "ce + consistency(views=2)", "batch_size": 50,
    }  # fmt: skip
    assert set(other) == set(TrainConfig.schema)
    found = {key(us.models.APPNP, TrainConfig(**{name: value})) for name, value in other.items()}
    assert len(found | {key(us.models.APPNP)}) == len(other) + 1


def test_data_seeds_rows_and_models_count():
    trial = Trial(us.models.GCN)
    others = [Trial(us.models.MLP), trial.with_seed(1), replace(trial, normalise_rows=True)]
    assert len({trial.key("x"), trial.key("y"), *(other.key("x") for other in others)}) == 5


def test_decays_of_other_groups_are_others():
    decays = (0.1, {"first": 0.1}, {"first": 0.1, "linear": 0.1}, {"linear": 0.1}, {})
    assert len({key(config=TrainConfig(weight_decay=decay)) for decay in decays}) == len(decays)


def test_a_class_of_the_same_name_is_another():
    class GCN(us.models.GCN):
        pass

    assert key(GCN) != key(us.models.GCN)


def test_a_changed_default_of_ones_own_is_another():
    def made(width):
        class Mine(us.models.GCN):
            hidden = width

        return Mine

    assert key(made(8)) == key(made(8)) != key(made(4))
    assert key(made(8), hidden=4) == key(made(8), hidden=4)


def test_masks_and_starts_have_keys_of_their_own():
    masks, starts = us.models.Masks, us.models.HopStart
    for kind in (us.models.UGDGNN, us.models.GPRGNN, us.models.APPNP):
        assert key(kind) == key(kind, masks=masks.ONCE) != key(kind, masks=masks.EACH_HOP)
        assert key(kind) != key(kind, propagation_dropout=0.3)
    assert (
        key(us.models.UGDGNN) == key(us.models.UGDGNN, start=starts.UNIFORM) != key(us.models.UGDGNN, start=starts.PPR)
    )
    channels = us.models.Channels
    assert key(us.models.JKNet) == key(us.models.JKNet, channels=channels.HIDDEN) != key(us.models.JKNet, channels=channels.CLASSES)  # fmt: skip


def test_choices_are_stored_in_words():
    plain = Trial(
        us.models.APPNP, {"masks": us.models.Masks.EACH_HOP}, TrainConfig(monitor=Monitor.LAST_EPOCH)
    ).to_plain()
    assert (plain["settings"]["masks"], plain["config"]["monitor"]) == ("each_hop", "last_epoch")
