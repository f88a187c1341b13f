"""``unspool export`` and ``unspool predict --nodes``: from a trained folder to a file, and to a few nodes."""

import csv
import importlib.util
import json
import runpy
import shutil

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import unspool as us
from unspool.cli.errors import sentence
from unspool.cli.main import cli

pytestmark = pytest.mark.long


def typed(*words):
    """What a command prints, as JSON."""
    done = CliRunner().invoke(cli, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout.strip().splitlines()[-1])


def refused(*words):
    """What a person is told by a command that does not do what it was asked for."""
    done = CliRunner().invoke(cli, list(map(str, words)))
    assert done.exit_code != 0
    return sentence(done.exception)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files of two kinds, and models trained on them: teams, and prices with rows that are scaled."""
    place, chance = tmp_path_factory.mktemp("export"), np.random.default_rng(0)
    team = np.arange(60) % 3
    ends = np.stack([np.arange(60), (np.arange(60) + chance.choice([1, 2, 3], 60)) % 60])
    with (place / "edges.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["source", "target"], *[(f"n{i}", f"n{j}") for i, j in ends.T]])
    rows = [
        (
            f"n{i}",
            *np.round(np.eye(3)[team[i]] + chance.random(3), 4),
            "rgb"[team[i]],
            round(3 * team[i] + chance.random(), 3),
        )
        for i in range(60)
    ]
    with (place / "nodes.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "x", "y", "z", "team", "price"], *rows])
    base = [
        "--edges",
        place / "edges.csv",
        "--features",
        place / "nodes.csv",
        "--feature-column",
        "x",
        "--feature-column",
        "y",
        "--feature-column",
        "z",
    ]
    quick = ["--epochs", "15", "--no-report", "--json", "--undirected"]
    kinds = {
        "teams": ["APPNP", *base, "--label-column", "team"],
        "prices": ["GPRGNN", *base, "--target-column", "price", "--normalise-rows"],
    }
    for name, words in kinds.items():
        done = CliRunner().invoke(
            cli, ["train", *map(str, words), *quick, "--depth", "3", "--out", str(place / name)], catch_exceptions=False
        )
        assert done.exit_code == 0, done.output
    return place


def features(place):
    with (place / "nodes.csv").open() as file:
        return np.array([[float(row[c]) for c in "xyz"] for row in csv.DictReader(file)], dtype=np.float32)


def predicted(place, name, *more):
    out = place / f"{name}.csv"
    typed("predict", place / name, "--out", out, "--json", *more)
    with out.open() as file:
        rows = list(csv.DictReader(file))
    columns = [c for c in rows[0] if c.startswith(("p_", "predicted_"))]
    return [row["id"] for row in rows], np.array([[float(row[c]) for c in columns] for row in rows])


@pytest.mark.parametrize("name", ["teams", "prices"])
def test_exports_say_what_predict_says(name, made, tmp_path):
    _, wanted = predicted(made, name)
    x = features(made)
    numpy = typed("export", made / name, "--format", "numpy", "--out", tmp_path / "m.py", "--json")
    assert (numpy["nodes"], numpy["features"]) == (60, 3)
    assert np.allclose(runpy.run_path(str(tmp_path / "m.py"))["predict"](x), wanted, atol=1e-6)
    typed("export", made / name, "--out", tmp_path / "m.pt2", "--json")
    found = torch.export.load(tmp_path / "m.pt2").module()(
        torch.as_tensor(x)
    )  # without this package: deploy/test_torch_program.py
    assert np.allclose(found.detach().numpy(), wanted, atol=1e-6)


def test_a_few_nodes_are_predicted_as_among_all(made):
    ids, every = predicted(made, "teams")
    some = ["n7", "n41"]
    named, few = predicted(made, "teams", "--nodes", "n7,n41")
    assert named == some
    assert np.allclose(few, every[[ids.index(name) for name in some]], atol=1e-6)
    told = typed("predict", made / "teams", "--nodes", "n7", "--out", made / "one.csv", "--json")
    assert told["nodes"] == 1
    assert 1 < told["nodes_read"] < 60
    assert told["edges_read"] > 0


def test_it_says_how_much_was_read(made):
    said = (
        CliRunner()
        .invoke(cli, ["predict", str(made / "teams"), "--nodes", "n7", "--out", str(made / "one.csv")])
        .stdout
    )
    assert "of 60 nodes: all that lie within 3 hops" in said


def test_a_trained_folder_may_lie_anywhere(made, tmp_path):
    """Copied, renamed, and without the files it was trained on: the folder is all there is to a model."""
    shutil.copytree(made / "teams" / "seed0", tmp_path / "elsewhere")
    model, other = us.load(tmp_path / "elsewhere"), us.load(made / "teams")
    x, graph = torch.as_tensor(features(made)), us.graph.ring(60)
    with torch.no_grad():
        assert torch.equal(model(x, graph), other(x, graph))
    assert model.card["data"]["classes"] == ["b", "g", "r"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["export", "{place}/nothing"], "there is no model"),
        (["export", "{place}/teams", "--out", "model.txt"], "--out model.txt: expected a name that ends in .pt2"),
        (["export", "{place}/teams", "--format", "numpy", "--out", "m.pt2"], "expected a name that ends in .py"),
        (["predict", "{place}/teams", "--nodes", "n7,n7"], "--nodes n7,n7: expected every node once"),
        (["predict", "{place}/teams", "--nodes", "n7,"], "expected ids of nodes with commas between"),
        (["predict", "{place}/teams", "--nodes", "n99"], "no node is called 'n99'"),
        (["predict", "{place}/teams", "--nodes", "n7", "--only", "test"], "--only test: expected nothing"),
    ],
)
def test_bad_input(words, said, made, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert said in refused(*[word.format(place=made) for word in words])
    assert not [found for found in tmp_path.rglob("*") if found.is_file()]


def test_a_network_that_is_not_linear_is_sent_to_torch(made, tmp_path):
    words = [
        "--edges",
        made / "edges.csv",
        "--features",
        made / "nodes.csv",
        "--feature-column",
        "x",
        "--label-column",
        "team",
        "--undirected",
    ]
    typed("train", "GCN", *words, "--epochs", "3", "--no-report", "--out", tmp_path / "gcn", "--json")
    assert "--format torch" in refused("export", tmp_path / "gcn", "--format", "numpy", "--out", tmp_path / "gcn.py")
    assert not (tmp_path / "gcn.py").exists()


def test_tensorboard_is_asked_for_before_the_work(tmp_path, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "tensorboard" else real(name, *a))
    assert "unspool[tensorboard]" in refused("train", "--tensorboard", tmp_path / "runs", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
