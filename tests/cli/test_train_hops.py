"""unspool train --hops: training, predicting and studying from hops on the disk, without the graph."""

import csv
import json

import numpy as np
import pytest
import torch

import unspool as us
from cli.people import ask, refuse
from unspool import datasets

pytestmark = pytest.mark.long

QUICK = ("--seeds", 1, "--epochs", 12, "--no-report", "--depth", 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Hops as `unspool hops` writes them, with labels and a split, and without."""
    place, data = tmp_path_factory.mktemp("hops"), datasets.contextual_sbm(nodes=90, classes=3, seed=0)
    np.save(place / "edges.npy", data.edge_index.numpy())
    np.save(place / "x.npy", data.features.numpy())
    np.save(place / "y.npy", data.labels.numpy())
    np.savez(place / "split.npz", **{part: getattr(data.split, part).numpy() for part in ("train", "valid", "test")})
    ask("graph", "build", "--edges", place / "edges.npy", "--undirected", "--memory", "500MB", "--out", place / "graph")
    write = ("hops", place / "graph", "--features", place / "x.npy", "--depth", 3, "--memory", "500MB")
    ask(*write, "--labels", place / "y.npy", "--split", place / "split.npz", "--out", place / "hops")
    ask(*write, "--out", place / "bare")
    ask("train", "GraphFirstGPRGNN", "--hops", place / "hops", *QUICK, "--batch-size", 16, "--out", place / "out")
    return place


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_numbers_are_those_of_the_package(folder):
    trial = us.train.Trial(
        us.models.GraphFirstGPRGNN, {"depth": 3}, us.train.TrainConfig(epochs=12, batch_size=16), seed=0
    )
    model, run = us.train.train_trial(trial, us.hops.dataset(folder / "hops"))
    kept = us.load(folder / "out/seed0")
    assert kept.card["metrics"]["test_score"] == run.best.test_score
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), kept.parameters(), strict=True))


def test_predict_finds_the_hops_again(folder, tmp_path):
    said = json.loads(ask("predict", folder / "out", "--out", tmp_path / "all.csv", "--json"))
    found, model = rows(tmp_path / "all.csv"), us.load(folder / "out/seed0")
    assert said["nodes"] == len(found) == 90
    with torch.no_grad():
        wanted = model(us.hops.open(folder / "hops")).argmax(1)
    assert [row["prediction"] for row in found] == [str(int(i)) for i in wanted]
    ask("predict", folder / "out", "--nodes", "7,3", "--out", tmp_path / "few.csv")
    assert [row["prediction"] for row in rows(tmp_path / "few.csv")] == [found[i]["prediction"] for i in (7, 3)]
    ask("predict", folder / "out", "--hops", folder / "bare", "--out", tmp_path / "bare.csv")
    assert [row["prediction"] for row in rows(tmp_path / "bare.csv")] == [row["prediction"] for row in found]


def test_hops_of_another_normalisation_are_refused(folder, tmp_path):
    write = ("hops", folder / "graph", "--features", folder / "x.npy", "--depth", 3, "--normalise", "random-walk")
    ask(*write, "--labels", folder / "y.npy", "--split", folder / "split.npz", "--out", tmp_path / "h")
    said = refuse("predict", folder / "out", "--hops", tmp_path / "h", "--out", tmp_path / "p.csv")
    assert said.endswith(
        "trained with A normalised as symmetric, and here it is random-walk; give hops that were written with --normalise symmetric"
    )
    ask("train", "SGC", "--hops", tmp_path / "h", *QUICK, "--out", tmp_path / "out")
    ask("predict", tmp_path / "out", "--out", tmp_path / "p.csv")
    files = ("--edges", folder / "edges.npy", "--undirected", "--features", folder / "x.npy")
    assert "here it is symmetric" in refuse("predict", tmp_path / "out", *files, "--out", tmp_path / "p.csv")


def test_a_report_and_a_study(folder, tmp_path):
    ask("train", "SGC", "--hops", folder / "hops", "--epochs", 3, "--depth", 2, "--out", tmp_path / "sgc")
    assert (tmp_path / "sgc/report.html").is_file()
    grid = ("--depth", "1,2", "--epochs", 3, "--out", tmp_path / "s.db")
    ask("study", "run", "GraphFirstGPRGNN", "--hops", folder / "hops", *grid)
    assert "2" in ask("study", "status", tmp_path / "s.db")
    ask("study", "model", tmp_path / "s.db", 1, "--out", tmp_path / "kept")
    ask("predict", tmp_path / "kept", "--out", tmp_path / "p.csv")


def test_without_a_model_one_that_propagates_first_takes_the_hops_that_are_there(folder, tmp_path):
    ask("train", "--hops", folder / "hops", "--epochs", 2, "--no-report", "--no-baselines", "--out", tmp_path / "o")
    model = us.load(tmp_path / "o/seed0")
    assert (type(model), model.depth) == (us.models.GraphFirstUGDGNN, 3)
    ask("study", "run", "--hops", folder / "hops", "--epochs", 2, "--seeds", 1, "--out", tmp_path / "s.db")
    assert "GraphFirstUGDGNN" in ask("study", "best", tmp_path / "s.db")


def depths(file):
    """How deep the trials of a study are, and whether all of them ended well."""
    with us.study.Store(file) as store:
        found = list(store.rows())
    assert {row.status for row in found} == {us.study.Status.DONE}
    return {row.trial["settings"]["depth"] for row in found}


@pytest.mark.parametrize("models", [(), ("SGC", "GraphFirstGPRGNN")])
def test_random_depths_are_drawn_from_the_hops_that_are_there(folder, tmp_path, models):
    words = ("--hops", folder / "hops", "--epochs", 1, "--seeds", 1, "--random", 12)
    ask("study", "run", *models, *words, "--out", tmp_path / "all.db")
    assert depths(tmp_path / "all.db") == {1, 2, 3}
    ask("study", "run", *models, *words[:-1], 2, "--range", "lr=0.01:0.1", "--out", tmp_path / "lr.db")
    assert max(depths(tmp_path / "lr.db")) <= 3
    ask("study", "run", *models, *words[:-1], 4, "--range", "depth=1..2", "--out", tmp_path / "two.db")
    assert depths(tmp_path / "two.db") == {1, 2}
    ask("study", "run", *models, *words[:-1], 2, "--depth", 2, "--out", tmp_path / "one.db")
    assert depths(tmp_path / "one.db") == {2}


def test_a_range_of_ones_own_that_is_too_deep_is_refused_before_anything_is_written(folder, tmp_path):
    for words in (("--random", 8, "--range", "depth=2..20"), ("--depth", "2,5"), ("--random", 3, "--depth", 4)):
        said = refuse("study", "run", "SGC", "--hops", folder / "hops", "--epochs", 1, *words, "--out", tmp_path / "s")
        assert "hops 0 to 3 are stored; take a network of depth 3 at most, or write more hops" in said
        assert not (tmp_path / "s").exists()


def test_what_cannot_use_the_hops_is_refused_before_anything_is_written(folder, tmp_path):
    for words in (("train", "UGDGNN"), ("train", "SIGN", "--depth", 4), ("study", "run", "SGC", "GCN")):
        out = tmp_path / ("s.db" if words[0] == "study" else "o")
        said = refuse(*words, "--hops", folder / "hops", "--epochs", 2, "--out", out)
        assert "hops 0 to 3 are stored" in said or "cannot use stored hops" in said
        assert not out.exists()


def test_wrong_input(folder, tmp_path):
    train = ("train", "SGC", "--hops", folder / "hops", "--out", tmp_path / "o", *QUICK)
    bare = refuse("train", "SGC", "--hops", folder / "bare", "--out", tmp_path / "o", *QUICK)
    assert bare.endswith(
        "bare was written without labels, so nothing can be learnt from it; write hops again with --labels and --split"
    )
    for more in (("--edges", folder / "edges.npy"), ("--dataset", "citeseer"), ("--label-column", "a")):
        assert "--hops" in refuse(*train, *more)
    assert "propagates first" in refuse("train", "GCN", "--hops", folder / "hops", "--out", tmp_path / "o", *QUICK[:4])
    assert "hops 0 to 3 are stored" in refuse(*train[:4], "--depth", 5, "--epochs", 2, "--out", tmp_path / "o")
    assert "nowhere" in refuse("train", "SGC", "--hops", tmp_path / "nowhere", "--out", tmp_path / "o")
    assert "hops on the disk" in refuse(*train, "--normalise-rows")
    new = refuse("predict", folder / "out", "--new-nodes", folder / "x.npy")
    assert "hops on the disk" in new
