"""unspool models and unspool datasets: everything that exists is listed, and nothing else."""

import inspect
import json
from enum import Enum

import pytest
import torch

from cli.people import ask
from unspool import datasets, models


def lines(*arguments):
    return [json.loads(line) for line in ask(*arguments, "--json").splitlines()]


def test_every_model_is_listed_with_its_problem():
    text, records = ask("models"), lines("models")
    assert [record["model"] for record in records] == [kind.__name__ for kind in models.MODELS]
    for kind, record in zip(models.MODELS, records, strict=True):
        made = kind(4, 2)
        assert kind.__name__ in text
        assert (record["objective"], record["derivation"]) == (str(made.objective), made.derivation)
        assert record["about"]


def _is_refused(kind, name, choice, wanted):
    more = {"warm": [0.5] * 11} if choice is models.HopStart.WARM and "warm" in wanted else {}
    try:
        kind(4, 2, **{name: choice}, **more)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("kind", models.MODELS, ids=lambda kind: kind.__name__)
def test_a_model_is_listed_with_its_settings(kind):
    (record,) = lines("models", kind.__name__.lower())
    wanted = {
        name: p.default for name, p in inspect.signature(kind).parameters.items() if not name.endswith("_features")
    }
    assert list(record["settings"]) == list(wanted)
    for name, default in wanted.items():
        told = record["settings"][name]
        if isinstance(default, Enum):
            assert told["default"] == default.name.lower()
            for choice in type(default):
                assert (choice.name.lower() in told["choices"]) is not _is_refused(kind, name, choice, wanted)
        else:
            assert told == {"default": default, "choices": []}
    text = ask("models", kind.__name__)
    assert all(name in text for name in (kind.__name__, *wanted))


@pytest.mark.parametrize("which", ["paper", "official"])
def test_the_presets_of_a_model_are_listed(which):
    rows = [row for row in ask("models", "GCNII").splitlines() if which in row]
    for where in ("cora", "citeseer", "pubmed", "cs", "photo"):
        try:
            how = models.preset(models.GCNII, where, which)
        except ValueError:
            assert not any(f" {where} " in row for row in rows)
            continue
        (row,) = [row for row in rows if f" {where} " in row]
        assert f" {how.rate:g} " in row


def test_every_set_of_the_catalogue_is_listed(tmp_path):
    text, records = ask("datasets", "--data", tmp_path), lines("datasets", "--data", tmp_path)
    known = datasets.catalogue(tmp_path)
    assert len(known) > 15
    assert records == [{"name": entry.name, "about": entry.about, "where": entry.where} for entry in known]
    assert all(entry.name in text for entry in known)
    assert "UNSPOOL_DATA" in text


@pytest.mark.parametrize("name", ["citeseer", "contextual_sbm", "grid"])
def test_a_set_is_counted(name):
    held = datasets.load(name)
    (record,) = lines("datasets", name)
    text = ask("datasets", name)
    edges = {tuple(sorted(pair)) for pair in held.edge_index.T.tolist() if pair[0] != pair[1]}
    assert (record["nodes"], record["edges"]) == (held.nodes, len(edges))
    assert record["isolated"] == held.nodes - len({node for pair in edges for node in pair})
    assert record["features"] == held.features.shape[1]
    assert record["classes"] == int(torch.unique(held.labels[held.labels >= 0]).numel())
    assert (record["hash"], record["split"]["hash"]) == (held.hash, held.split.hash)
    assert record["splits"] == list(held.recorded)
    assert held.hash in text
    assert ", ".join(held.classes) in text


def test_presets_tell_what_is_decayed_and_what_is_searched():
    ugdgnn, ppnp = (ask("models", name) for name in ("ugdgnn", "ppnp"))
    assert "0.0005" in ugdgnn
    assert "gate" not in ugdgnn  # one number for all groups
    assert "prints no settings" not in ugdgnn
    assert "first 0.005" in ppnp  # of the official settings: the first layer alone
    assert (
        "The paper prints no settings of PPNP: its rows are where a search over decay, dropout, rate, teleport begins"
        in ppnp
    )
