"""Presets: the paper's last table cell by cell, the authors' settings, and groups that cover all parameters."""

import pytest
import torch

import unspool as us
from unspool import models
from unspool.models.presets import Select, Stop

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
    how = models.preset(getattr(models, name), dataset, "paper")
    assert how.rate == rate
    assert how.settings.get("dropout") == dropout
    assert how.settings["depth"] == (2 if depth is None else depth)  # GCN and SGC have 2 layers, says the text
    assert how.settings.get("teleport") == alpha
    assert how.settings.get("hidden", 64) == 64
    assert how.epochs == 1000
    assert not how.search
    model = how.build(10, 3)
    for group in how.groups(model):
        assert group["weight_decay"] == (0.0 if group["name"] == "hops" else decay)


@pytest.mark.parametrize("name", ["paper", "official"])
@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("kind", models.MODELS)
def test_every_preset_builds_or_is_refused(kind, dataset, name):
    if name == "official" and (kind in SILENT or (kind is models.GCNII and dataset not in DATASETS[:3])):
        sentence = f"{kind.__name__} has no official setting on {dataset}: .*use the preset 'paper'"
        with pytest.raises(us.IncompatibleError, match=sentence):
            models.preset(kind, dataset, name)
        return
    how = models.preset(kind, dataset, name)
    model = how.build(5, 3)
    assert isinstance(model, kind)
    groups = how.groups(model)
    covered = [id(p) for group in groups for p in group["params"]]
    assert sorted(covered) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    assert isinstance(how.decay, float) or set(how.decay) <= {"first", "linear", "convolution", "gate", "hops"}
    optimiser = torch.optim.Adam(groups, lr=how.rate)
    assert len(optimiser.param_groups) == len(groups)
    assert how.normalise_features == (dataset != "arxiv")
    assert set(how.search) <= {"rate", "dropout", "decay", "depth", "teleport"}
    for setting in set(how.search) & set(how.settings):
        assert how.settings[setting] in how.search[setting]


def decays(kind, dataset):
    how = models.preset(kind, dataset, "official")
    return {group["name"]: group["weight_decay"] for group in how.groups(how.build(5, 3))}


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
        (models.GPRGNN, "cora", {"dropout": 0.5, "propagation_dropout": 0.5, "hidden": 64}, 0.01),
        (models.AirGNN, "cora", {"depth": 10, "hidden": 64, "dropout": 0.8}, 0.01),
    ],
)
def test_official_settings(kind, dataset, settings, rate):
    how = models.preset(kind, dataset, "official")
    assert {name: how.settings.get(name) for name in settings} == settings
    assert how.rate == rate


def test_official_runs_end_as_the_authors_end_them():
    def plan(kind, dataset="cora"):
        how = models.preset(kind, dataset, "official")
        return how.epochs, how.select, how.stop, how.patience, how.earliest

    assert plan(models.GCN)[:3] == (200, Select.VALIDATION_LOSS, Stop.NEVER)
    assert plan(models.GCN, "arxiv")[0] == 500
    assert plan(models.SGC)[:2] == (100, Select.LAST)
    assert plan(models.APPNP)[1:4] == (Select.VALIDATION_ACCURACY, Stop.PATIENCE, 100)
    assert plan(models.GCNII)[:4] == (1500, Select.VALIDATION_LOSS, Stop.PATIENCE, 100)
    assert plan(models.DAGNN) == (1000, Select.VALIDATION_LOSS, Stop.ABOVE_MEAN, 100, 500)
    assert plan(models.GPRGNN)[2:] == (Stop.ABOVE_MEAN, 200, 200)


def test_models_without_a_column_get_the_grid_of_the_paper():
    how = models.preset(models.PPNP, "cora")
    assert how.search["teleport"] == (0.1, 0.2, 0.5, 0.9)
    assert how.search["rate"] == (0.005, 0.01, 0.05)
    assert "depth" not in how.search
    assert models.preset(models.AirGNN, "cora").search["depth"] == (5, 10, 20)
    assert "depth" not in models.preset(models.MLP, "cora").search


def test_settings_may_be_changed():
    model = models.preset(models.UGDGNN, "Cora").build(5, 3, depth=2, channels=models.Channels.HIDDEN)
    assert model.settings["depth"] == 2
    assert model.settings["dropout"] == 0.8


@pytest.mark.parametrize("alias", ["ArXiv", "ogbn-arxiv", "OGBN-ArXiv"])
def test_names_of_datasets_are_forgiving(alias):
    assert models.preset(models.GCN, alias).dataset == "arxiv"
    assert models.preset(models.GCN, "Coauthor-CS").dataset == "cs"
    assert models.preset(models.GCN, "amazon-photo").dataset == "photo"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((models.GCN, "reddit"), "no preset 'paper' for the dataset 'reddit'; there are presets for cora, citeseer"),
        ((models.GCN, "cora", "best"), "no preset called 'best': there are 'paper', 'official' and 'default'"),
        (("GCN", "cora"), "'GCN' is no model class; give one such as models.GPRGNN"),
        ((torch.nn.Linear, "cora"), "is no model class"),
    ],
)
def test_unknown_presets_are_named(arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        models.preset(*arguments)
