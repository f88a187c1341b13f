"""unspool datasets: everything that exists is listed, and counted when it is named."""

import json
import sys

import pytest
import torch

from cli.people import ask, refuse
from unspool import datasets


def lines(*arguments):
    return [json.loads(line) for line in ask(*arguments, "--json").splitlines()]


def test_every_set_of_the_catalogue_is_listed(tmp_path):
    text, records = ask("datasets", "--data", tmp_path), lines("datasets", "--data", tmp_path)
    known = datasets.catalogue(tmp_path)
    assert len(known) > 15
    assert records == [{"name": entry.name, "about": entry.about, "where": entry.where} for entry in known]
    assert all(entry.name in text for entry in known)
    assert "UNSPOOL_DATA" in text


def counted(record, held):
    edges = {tuple(sorted(pair)) for pair in held.edge_index.T.tolist() if pair[0] != pair[1]}
    assert (record["nodes"], record["edges"]) == (held.nodes, len(edges))
    assert record["isolated"] == held.nodes - len({node for pair in edges for node in pair})
    assert record["features"] == held.features.shape[1]
    assert record["classes"] == int(torch.unique(held.labels[held.labels >= 0]).numel())
    assert (record["hash"], record["split"]["hash"]) == (held.hash, held.split.hash)
    assert record["splits"] == list(held.recorded)


@pytest.mark.parametrize("name", ["citeseer", "contextual_sbm", "grid"])
def test_a_set_is_counted(name):
    held = datasets.load(name)
    (record,) = lines("datasets", name)
    counted(record, held)
    text = ask("datasets", name)
    assert held.hash in text
    assert ", ".join(held.classes) in text


def test_a_function_of_ones_own_is_counted(tmp_path, monkeypatch):
    """Of a module in the current folder, which the installed command does not look in by itself."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != ""])
    (tmp_path / "own_roads.py").write_text(
        "from unspool import datasets\n\n\ndef roads():\n    return datasets.grid(5, 6)\n"
    )
    (record,) = lines("datasets", "own_roads:roads")
    counted(record, datasets.grid(5, 6))
    assert refuse("datasets", "own_roads:lanes").startswith("NAME own_roads:lanes: expected package.module:function")
    assert refuse("datasets", "os:sep") == "NAME os:sep: expected a function that gives an unspool.datasets.Dataset"


@pytest.mark.parametrize("name", [".roads:f", "a b:f", ":f", "os:", "9:9", "os.path:no.such"])
def test_names_that_lead_nowhere_are_named(name):
    assert refuse("datasets", name).startswith(f"NAME {name}: expected package.module:function")
