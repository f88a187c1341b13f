"""Presets: the paper's last table cell by cell, the authors' settings, and groups that cover all parameters."""

import json

import pytest
import torch

import unspool as us
from unspool import models
from unspool.reproduce.presets import GRAND, OFFICIAL, PAPER, PRESETS, STABLE, base_model, knows
from unspool.theory import printed_tables
from unspool.train import DEFAULT, Monitor, Stop, Trial

SILENT = (models.JKNet, models.UGDGNN, models.MLP)  # whose authors publish no settings that we know
DATASETS = ["cora", "citeseer", "pubmed", "cs", "physics", "photo", "arxiv"]

# Table 4 as printed: learning rate, weight decay, dropout, layer, alpha.
COLUMNS = ["GCN", "SGC", "APPNP", "JKNet", "GCNII", "DAGNN", "GPRGNN", "UGDGNN"]
TABLE = {
    "cora": """
        0.01 0.05 0.005 0.05 0.01 0.01 0.01 0.005
        5e-4 5e-5 5e-5 5e-4 5e-4 5e-4 5e-4 5e-4
        0.8 * 0.1 0.5 0.5 0.8 0.5 0.8
        * * 5 5 20 10 10 5
        * * 0.1 * * * 0.1 *""",
    "citeseer": """
        0.05 0.05 0.01 0.05 0.05 0.005 0.005 0.01
        5e-4 5e-5 5e-4 5e-4 0 5e-4 5e-4 5e-5
        0.5 * 0.1 0.8 0.5 0.5 0.5 0.8
        * * 5 5 20 5 10 5
        * * 0.2 * * * 0.1 *""",
    "pubmed": """
        0.005 0.05 0.005 0.05 0.05 0.005 0.01 0.005
        5e-4 5e-5 5e-4 5e-4 0 5e-4 5e-4 5e-4
        0.1 * 0.1 0.8 0.5 0.8 0.1 0.1
        * * 5 5 20 20 20 5
        * * 0.2 * * * 0.5 *""",
    "cs": """
        0.005 0.005 0.05 0.05 0.01 0.005 0.01 0.005
        5e-5 5e-5 5e-5 5e-5 5e-4 5e-4 0 5e-5
        0.8 * 0.8 0.8 0.1 0.8 0.5 0.1
        * * 20 5 20 10 5 5
        * * 0.2 * * * 0.1 *""",
    "physics": """
        0.01 0.005 0.005 0.01 0.05 0.005 0.005 0.005
        0 0 5e-4 0 5e-4 0 5e-5 0
        0.5 * 0.1 0.8 0.5 0.8 0.1 0.8
        * * 10 5 20 5 20 5
        * * 0.1 * * * 0.5 *""",
    "photo": """
        0.01 0.05 0.05 0.05 0.01 0.05 0.005 0.005
        0 0 5e-5 5e-5 5e-5 5e-4 5e-4 0
        0.8 * 0.1 0.5 0.1 0.5 0.1 0.5
        * * 10 10 5 5 5 5
        * * 0.1 * * * 0.1 *""",
    "arxiv": """
        0.005 0.05 0.01 0.005 0.005 0.005 0.01 0.005
        0 0 0 5e-4 5e-4 0 5e-4 0
        0.1 * 0.1 0.1 0.1 0.1 0.1 0.1
        * * 5 10 10 20 5 10
        * * 0.1 * * * 0.1 *""",
}


def cell(dataset, model):
    rows = [line.split() for line in TABLE[dataset].strip().splitlines()]
    assert [len(row) for row in rows] == [8] * 5
    return [None if row[COLUMNS.index(model)] == "*" else float(row[COLUMNS.index(model)]) for row in rows]


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("name", COLUMNS)
def test_the_table_of_the_paper(name, dataset):
    rate, decay, dropout, depth, alpha = cell(dataset, name)
    trial = PAPER.trial(getattr(models, name), dataset)
    assert trial.config.lr == rate
    assert trial.settings.get("dropout") == dropout
    assert trial.settings["depth"] == (2 if depth is None else depth)  # GCN and SGC have 2 layers, says the text
    assert trial.settings.get("teleport") == alpha
    assert trial.settings.get("hidden", 64) == 64
    assert trial.config.epochs == 1000
    assert trial.config.stop is Stop.NEVER
    assert PAPER.search(getattr(models, name), dataset) == {}
    for role in trial.build(10, 3).parameter_groups():
        assert trial.config.decay_of(role) == (0.0 if role == "hops" else decay)


@pytest.mark.long
@pytest.mark.parametrize("preset", [PAPER, OFFICIAL], ids=lambda one: one.name)
@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("kind", models.PAPER_MODELS)
def test_every_preset_builds_or_is_refused(kind, dataset, preset):
    if preset is OFFICIAL and (kind in SILENT or (kind is models.GCNII and dataset not in DATASETS[:3])):
        sentence = f"{kind.__name__} has no official setting on {dataset}: .*use the preset paper"
        with pytest.raises(us.IncompatibleError, match=sentence):
            preset.trial(kind, dataset)
        return
    trial = preset.trial(kind, dataset)
    assert (trial.model, trial.seed, trial.preset) == (kind, 0, preset.name)
    assert trial.schema.check(trial.settings) == trial.settings
    model = trial.build(5, 3)
    assert isinstance(model, kind)
    groups = trial.config.parameter_groups(model)
    covered = [id(p) for group in groups for p in group["params"]]
    assert sorted(covered) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    decay = trial.config.weight_decay
    assert isinstance(decay, float) or set(decay) <= {"first", "linear", "convolution", "gate", "hops"}
    optimiser = torch.optim.Adam(groups, lr=trial.config.lr)
    assert len(optimiser.param_groups) == len(groups)
    assert trial.normalise_rows == (dataset != "arxiv")
    again = Trial.from_plain(json.loads(json.dumps(trial.to_plain())))
    assert again.key("") == trial.key("")
    assert again.preset == preset.name


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("kind", models.PAPER_MODELS)
def test_what_is_still_to_be_chosen_holds_what_is_chosen_meanwhile(kind, dataset):
    search, trial = PAPER.search(kind, dataset), PAPER.trial(kind, dataset)
    assert set(search) <= {"lr", "dropout", "weight_decay", "depth", "teleport"}
    every = {**trial.schema.complete(trial.settings), **trial.config.settings}
    for name, values in search.items():
        assert every[name] in values
        one = trial.schema[name] if name in trial.schema else trial.config.schema[name]
        assert [one.accept(value) for value in values] == list(values)
    for line in PAPER.unstated(kind):
        assert line


def decays(kind, dataset):
    trial = OFFICIAL.trial(kind, dataset)
    return {role: trial.config.decay_of(role) for role in trial.build(5, 3).parameter_groups()}


def test_official_decay_goes_where_the_authors_put_it():
    assert decays(models.GPRGNN, "cora") == {"first": 5e-4, "linear": 5e-4, "hops": 0.0}  # γ is not decayed
    assert decays(models.DAGNN, "citeseer") == {"first": 0.02, "linear": 0.02, "gate": 0.02}  # the gate is
    assert decays(models.DAGNN, "cora")["gate"] == decays(models.DAGNN, "pubmed")["first"] == 0.005
    assert set(decays(models.DAGNN, "cs").values()) == set(decays(models.DAGNN, "physics").values()) == {0.0}
    assert set(decays(models.DAGNN, "photo").values()) == {5e-4}
    assert decays(models.GCNII, "cora") == {"first": 5e-4, "linear": 5e-4, "convolution": 0.01}
    assert decays(models.GCNII, "pubmed")["convolution"] == 5e-4
    assert decays(models.GCN, "cora") == {"first": 5e-4, "convolution": 0.0}
    assert set(decays(models.GCN, "arxiv").values()) == {0.0}
    assert decays(models.APPNP, "cora") == {"first": 0.005, "linear": 0.0}
    assert decays(models.PPNP, "cora") == {"first": 0.005, "linear": 0.0}
    assert set(decays(models.AirGNN, "cora").values()) == {5e-4}


@pytest.mark.parametrize(
    ("kind", "dataset", "settings", "rate"),
    [
        (models.GCN, "arxiv", {"depth": 3, "hidden": 256, "batch_norm": True}, 0.01),
        (models.GCN, "cora", {"depth": 2, "dropout": 0.5}, 0.01),
        (models.SGC, "cora", {"depth": 2}, 0.2),
        (models.APPNP, "cora", {"depth": 10, "hidden": 64, "teleport": 0.1, "dropout": 0.5, "bias": False}, 0.01),
        (models.APPNP, "cs", {"teleport": 0.2}, 0.01),
        (models.APPNP, "physics", {"teleport": 0.2}, 0.01),
        (models.GCNII, "cora", {"depth": 64, "hidden": 64, "strength": 0.5, "dropout": 0.6, "teleport": 0.1}, 0.01),
        (models.GCNII, "citeseer", {"depth": 32, "hidden": 256, "strength": 0.6, "dropout": 0.7}, 0.01),
        (models.GCNII, "pubmed", {"depth": 16, "hidden": 256, "strength": 0.4, "dropout": 0.5}, 0.01),
        (models.DAGNN, "cora", {"depth": 10, "dropout": 0.8}, 0.01),
        (models.DAGNN, "citeseer", {"depth": 10, "dropout": 0.5}, 0.01),
        (models.DAGNN, "pubmed", {"depth": 20, "dropout": 0.8}, 0.01),
        (models.DAGNN, "cs", {"depth": 5, "dropout": 0.8}, 0.01),
        (models.DAGNN, "photo", {"depth": 5, "dropout": 0.5}, 0.01),
        (models.DAGNN, "arxiv", {"depth": 16, "hidden": 256, "dropout": 0.2, "batch_norm": True}, 0.005),
        (models.GPRGNN, "cora", {"dropout": 0.5, "hidden": 64}, 0.01),
        (models.AirGNN, "cora", {"depth": 10, "hidden": 64, "dropout": 0.8}, 0.01),
    ],
)
def test_official_settings(kind, dataset, settings, rate):
    trial = OFFICIAL.trial(kind, dataset)
    every = trial.schema.complete(trial.settings)
    assert {name: every[name] for name in settings} == settings
    assert trial.config.lr == rate


@pytest.mark.parametrize("preset", [PAPER, OFFICIAL], ids=lambda one: one.name)
@pytest.mark.parametrize("dataset", DATASETS[:3])
def test_gprgnn_drops_as_much_before_the_hops_as_before_its_layers(dataset, preset):
    trial = preset.trial(models.GPRGNN, dataset)
    assert float(trial.build(5, 3).p_pre.after.rate) == pytest.approx(trial.settings["dropout"])


def test_official_runs_end_as_the_authors_end_them():
    def config(kind, dataset="cora"):
        found = OFFICIAL.trial(kind, dataset).config
        return found.epochs, found.monitor, found.stop, found.patience, found.min_epochs

    assert config(models.GCN)[:3] == (200, Monitor.VALID_LOSS, Stop.NEVER)
    assert config(models.GCN, "arxiv")[0] == 500
    assert config(models.SGC)[:2] == (100, Monitor.LAST_EPOCH)
    assert config(models.APPNP)[1:4] == (Monitor.VALID_SCORE, Stop.PATIENCE, 100)
    assert config(models.GCNII)[:4] == (1500, Monitor.VALID_LOSS, Stop.PATIENCE, 100)
    assert config(models.DAGNN) == (1000, Monitor.VALID_LOSS, Stop.ABOVE_MEAN, 100, 500)
    assert config(models.GPRGNN)[2:] == (Stop.ABOVE_MEAN, 200, 200)


def test_models_without_a_column_get_the_grid_of_the_paper():
    search = PAPER.search(models.PPNP, "cora")
    assert search["teleport"] == (0.1, 0.2, 0.5, 0.9)
    assert search["lr"] == (0.005, 0.01, 0.05)
    assert "depth" not in search
    assert PAPER.search(models.AirGNN, "cora")["depth"] == (5, 10, 20)
    assert "depth" not in PAPER.search(models.MLP, "cora")


def test_settings_may_be_changed():
    trial = PAPER.trial(models.UGDGNN, "Cora")
    changed = Trial(trial.model, {**trial.settings, "depth": 2, "channels": models.Channels.HIDDEN}, trial.config)
    model = changed.build(5, 3)
    assert model.settings["depth"] == 2
    assert model.settings["dropout"] == 0.8
    assert trial.config.replace(epochs=5).epochs == 5


@pytest.mark.parametrize("preset", [PAPER, OFFICIAL], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("alias", "name"),
    [("ArXiv", "arxiv"), ("ogbn-arxiv", "arxiv"), ("OGBN-ArXiv", "arxiv"), ("Coauthor-CS", "cs"), ("amazon-photo", "photo"), ("CiteSeer", "citeseer")],
)  # fmt: skip
def test_names_of_datasets_are_forgiving(alias, name, preset):
    assert knows(alias)
    assert preset.trial(models.GCN, alias).key("") == preset.trial(models.GCN, name).key("")


@pytest.mark.parametrize("preset", [PAPER, OFFICIAL], ids=lambda one: one.name)
@pytest.mark.parametrize("dataset", ["reddit", "texas", "", "ogbn-products"])
def test_datasets_that_no_preset_knows_are_named(dataset, preset):
    assert not knows(dataset)
    with pytest.raises(us.InputError) as caught:
        preset.trial(models.GCN, dataset)
    assert (caught.value.argument, caught.value.value) == ("preset", preset.name)
    assert all(name in caught.value.expected for name in DATASETS)
    assert "default" in caught.value.hint


def test_presets_by_name():
    assert PRESETS == {"paper": PAPER, "official": OFFICIAL, "stable": STABLE, "grand": GRAND, "default": DEFAULT}
    assert all(one.name == name for name, one in PRESETS.items())
    assert set(printed_tables.DATASETS) == set(DATASETS)


@pytest.mark.parametrize("kind", [*models.MODELS, torch.nn.Bilinear])
def test_the_default_is_what_model_and_training_say_themselves(kind):
    trial = DEFAULT.trial(kind, "anything at all")
    assert dict(trial.settings) == {}
    assert trial.config == us.train.TrainConfig()
    assert (trial.seed, trial.normalise_rows, trial.preset) == (0, False, "default")


def test_a_class_of_ones_own_gets_what_the_model_gets_that_it_inherits_from():
    mine = type("GPRGNN", (models.GCN,), {"__module__": "my_models"})
    assert base_model(mine) == "GCN"
    assert PAPER.trial(mine, "cora").config == PAPER.trial(models.GCN, "cora").config
    assert PAPER.trial(mine, "cora").model is mine
    other = type("Other", (models.Model,), {"__module__": "my_models", "depth": us.setting(2, "layers")})
    assert PAPER.trial(other, "cora").settings == {"depth": 10}  # the middle of the grid, as far as it goes
    assert set(PAPER.search(other, "cora")) == {"lr", "dropout", "weight_decay", "depth"}
    with pytest.raises(us.IncompatibleError, match="Other has no official setting on cora"):
        OFFICIAL.trial(other, "cora")
    assert base_model(torch.nn.Linear) == ""  # the name of a class of the user's says nothing


def test_recipes_of_stable_networks():
    stable = STABLE.trial(models.StableGNN, "texas")
    assert stable.config.upper.views == 4
    assert stable.settings["depth"] == 3
    grand = GRAND.trial(models.StableGNN, "Cora")
    assert (grand.settings["depth"], grand.config.upper.views, grand.settings["hidden"]) == (8, 4, 32)
    for preset in (STABLE, GRAND):
        with pytest.raises(us.IncompatibleError, match=f"the preset {preset.name} is for StableGNN, and this is GCN"):
            preset.trial(models.GCN, "cora")
    with pytest.raises(us.IncompatibleError, match="GRAND has no published settings on texas"):
        GRAND.trial(models.StableGNN, "texas")
