"""unspool study run: what is typed about settings, and the trials that come of it."""

import pytest

import unspool as us
from cli.people import ask, refuse
from cli.study.small import rows
from unspool.cli.data_options import DataOptions
from unspool.cli.study.space_options import SpaceOptions
from unspool.study.search.space import declared_search

pytestmark = pytest.mark.long


OWN = DataOptions(edges="friends.csv")


def trials(*models, **how):
    """The trials of a space on data that no preset knows."""
    return SpaceOptions(models, **{"seeds": 1, **how}).space(OWN).trials("own data")


def test_random_draws_and_the_papers_grid(tmp_path):
    draw = ["--random", "4", "--range", "lr=0.001:0.1:log", "--range", "depth=2..6", "--range", "dropout=0.1:0.9"]
    small = ["study", "run", "APPNP", "--dataset", "contextual_sbm", "--seeds", "1", "--jobs", "1"]
    ask(*small, "--epochs", "2", "--setting", "bias=true,false", *draw, "--out", tmp_path / "a.db")
    held = [row.trial for row in rows(tmp_path / "a.db")]
    assert len(held) == 4
    assert all(0.001 <= one["config"]["lr"] <= 0.1 and 2 <= one["settings"]["depth"] <= 6 for one in held)
    assert len({one["config"]["lr"] for one in held}) == 4
    assert "APPNP: 324 settings × 1 seed" in ask(
        *small, "--paper-grid", "--seconds", "0.0001", "--out", tmp_path / "b.db"
    )


def test_a_draw_without_ranges_looks_where_the_models_say():
    found = trials("APPNP", count=20)
    spans = declared_search(us.models.APPNP)
    assert {"lr", "weight_decay", "depth", "dropout", "teleport"} <= set(spans)
    for name in spans:
        values = [getattr(one.config, name) if name in one.config.settings else one.settings[name] for one in found]
        assert len(set(values)) > 1, name
    said = trials("APPNP", count=20, config={"lr": "0.3"})  # one value is nothing to draw from
    assert {one.config.lr for one in said} == {0.3}
    assert len({one.settings["depth"] for one in said}) > 1


def test_words_of_training(tmp_path):
    out = tmp_path / "study.db"
    said = [
        "--monitor",
        "valid_score,last_epoch",
        "--optimiser",
        "adam,sgd",
        "--stop",
        "never",
        "--setting",
        "weights=pos",
    ]
    small = ["study", "run", "SGC", "--dataset", "grid", "--epochs", "2", "--seeds", "1", "--jobs", "1"]
    ask(*small, *said, "--seconds", "0.00001", "--out", out)
    held = [row.trial for row in rows(out)]
    assert {(one["config"]["monitor"], one["config"]["optimiser"]) for one in held} == {
        ("valid_score", "Adam"), ("valid_score", "SGD"), ("last_epoch", "Adam"), ("last_epoch", "SGD"),
    }  # fmt: skip
    assert all(one["config"]["stop"] == "never" and one["settings"]["weights"] == "pos" for one in held)


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("lr", "0.1, 2e-2", [0.1, 0.02]),
        ("weight_decay", "first=0.1;linear=0.2, 0", [{"first": 0.1, "linear": 0.2}, 0.0]),
        ("lower_level", "unrolled,exact", [us.train.LowerLevel.UNROLLED, us.train.LowerLevel.EXACT]),
        ("stop", "never,above-mean", [us.train.Stop.NEVER, us.train.Stop.ABOVE_MEAN]),
        ("min_epochs", "0,7", [0, 7]),
    ],
)
def test_options_of_training_take_lists(name, text, values):
    for how in ({"config": {name: text}}, {"settings": (f"{name}={text}",)}):
        assert [getattr(one.config, name) for one in trials("APPNP", **how)] == values


@pytest.mark.parametrize(
    ("model", "pair", "values"),
    [
        ("GPRGNN", "start=ppr,uniform", [us.models.HopStart.PPR, us.models.HopStart.UNIFORM]),
        ("AirGNN", "adjoint=none,checkpointed(every=2)", [None, us.unrolling.Checkpointed(every=2)]),
        ("GCN", "batch-norm=yes,no", [True, False]),
        ("GPRGNN", "propagation_dropout=none,0.5", [None, 0.5]),
    ],
)
def test_settings_take_lists_of_what_they_are(model, pair, values):
    name = pair.partition("=")[0].replace("-", "_")
    assert [one.settings[name] for one in trials(model, settings=(pair,))] == values


def test_a_setting_that_only_some_models_have_is_given_to_those():
    found = trials("GCN", "APPNP", settings=("teleport=0.1,0.2",), short={"depth": "2"})
    assert [(one.name, one.settings.get("teleport")) for one in found] == [
        ("GCN", None),
        ("APPNP", 0.1),
        ("APPNP", 0.2),
    ]
    assert {one.settings["depth"] for one in found} == {2}


def test_patience_switches_stopping_on_where_a_preset_never_stops():
    found = SpaceOptions(("SGC",), seeds=1, config={"patience": "7"}).space(DataOptions()).trials("citeseer")
    assert [(one.preset, one.config.stop, one.config.patience) for one in found] == [
        ("paper", us.train.Stop.PATIENCE, 7)
    ]


def test_each_preset_is_a_setting_of_its_own():
    found = (
        SpaceOptions(("GCN",), seeds=1, presets=("paper", "official", "default"))
        .space(DataOptions())
        .trials("citeseer")
    )
    assert [one.preset for one in found] == ["paper", "official", "default"]


def test_a_setting_that_no_model_has_is_told_with_all_there_are_and_what_is_near():
    said = refuse("study", "run", "GCN", "APPNP", "--setting", "teleprot=0.1")
    assert "GCN takes hidden, depth" in said
    assert "APPNP takes hidden, depth, teleport" in said
    assert "did you mean teleport?" in said


def test_a_range_among_settings_is_sent_to_its_option():
    assert "a range is --range dropout=0.1:0.5, with --random N" in refuse(
        "study", "run", "GCN", "--setting", "dropout=0.1:0.5", "--random", "3"
    )
