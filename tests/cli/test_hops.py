"""``unspool hops``: a graph on the disk and features in, hops out, and one sentence where that cannot be."""

import numpy as np
import pytest
import torch

import unspool as us
from cli.people import ask, refuse
from unspool import train

NODES = 90
INDEX = np.random.default_rng(0).integers(0, NODES, (2, 400))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hops")
    np.save(folder / "e.npy", np.unique(INDEX, axis=1))
    np.save(folder / "x.npy", np.random.default_rng(1).standard_normal((NODES, 5)).astype(np.float32))
    np.save(folder / "y.npy", np.arange(NODES) % 3)
    thirds = np.split(np.random.default_rng(2).permutation(NODES), 3)
    np.savez(folder / "split.npz", train=thirds[0], valid=thirds[1], test=thirds[2])
    ask(
        "graph",
        "build",
        "--edges",
        str(folder / "e.npy"),
        "--undirected",
        "--nodes",
        str(NODES),
        "--out",
        str(folder / "g"),
    )
    return folder


def asked(place, *more):
    return "hops", str(place / "g"), "--features", str(place / "x.npy"), "--depth", "2", *more


def test_hops_are_those_of_python_and_are_trained_on(place, tmp_path):
    known = ["--labels", str(place / "y.npy"), "--split", str(place / "split.npz")]
    said = ask(*asked(place, *known, "--memory", "1GB", "--out", str(tmp_path / "h")))
    assert "StoredHops(rows=90, features=5, depth=2, float32, cpu)" in said
    graph, x = us.Graph.open(place / "g"), torch.from_numpy(np.load(place / "x.npy"))
    rows = torch.arange(NODES)
    assert torch.equal(us.hops.open(tmp_path / "h").take(rows)[:, 2], graph @ (graph @ x))
    trial = train.Trial(us.models.SIGN, {"depth": 2}, train.TrainConfig(epochs=2, batch_size=8), seed=0)
    assert len(train.train_trial(trial, us.hops.dataset(tmp_path / "h"))[1].history) == 2


def test_some_nodes_in_half_precision_of_another_matrix(place, tmp_path):
    np.save(tmp_path / "n.npy", np.array([7, 3]))
    more = ["--nodes", str(tmp_path / "n.npy"), "--half", "--normalise", "random-walk", "--out", str(tmp_path / "h")]
    assert "rows=2" in ask(*asked(place, *more))
    graph = us.Graph.open(place / "g", normalise=us.Normalisation.RANDOM_WALK)
    wanted = (graph @ torch.from_numpy(np.load(place / "x.npy")))[[7, 3]]
    found = us.hops.open(tmp_path / "h").take(torch.arange(2))[:, 1]
    assert torch.allclose(found, wanted, atol=0.02)
    assert not torch.equal(found, wanted)


def test_columns_of_a_table_are_chosen(place, tmp_path):
    rows = [f"{i},{i % 3},word" for i in range(NODES)]
    (tmp_path / "x.csv").write_text("\n".join(["id,a,b", *rows]) + "\n")
    words = ["hops", str(place / "g"), "--features", str(tmp_path / "x.csv"), "--depth", "1"]
    assert "leave the column out with --drop-column b" in refuse(*words, "--out", str(tmp_path / "h"))
    for name, choice in (("drop", ["--drop-column", "b"]), ("take", ["--feature-column", "a"])):
        assert "features=1" in ask(*words, *choice, "--out", str(tmp_path / name))
    assert us.hops.open(tmp_path / "drop").checksum == us.hops.open(tmp_path / "take").checksum
    for choice in (["--drop-column", "b", "--drop-column", "z"], ["--feature-column", "z"]):
        assert "z" in refuse(*words, *choice, "--out", str(tmp_path / "h"))
        assert "no names here" in refuse(*asked(place, *choice, "--out", str(tmp_path / "h")))


def test_what_cannot_be_is_one_sentence(place, tmp_path):
    out = ["--out", str(tmp_path / "h")]
    assert "expected at least 0.094GB for this graph" in refuse(*asked(place, "--memory", "1KB", *out))
    assert "split.npz: it holds train, valid, test, not one array" in refuse(
        *asked(place, "--labels", str(place / "split.npz"), *out)
    )
    assert "none.npy does not exist" in refuse(*asked(place, "--nodes", str(tmp_path / "none.npy"), *out))
    np.save(tmp_path / "none.npy", np.full(NODES, -1))
    assert "none.npy: no node has a label" in refuse(*asked(place, "--labels", str(tmp_path / "none.npy"), *out))
    np.savez(tmp_path / "mask.npz", train=np.ones(7, bool), valid=[1], test=[2])
    masked = refuse(*asked(place, "--labels", str(place / "y.npy"), "--split", str(tmp_path / "mask.npz"), *out))
    assert masked == "the split: the mask train has shape (7,), and there are 90 nodes; write ids, or a mask over all"
    alone = refuse(*asked(place, "--split", str(place / "split.npz"), *out))
    assert alone.startswith("--split says which nodes train, and without --labels there is nothing")
    assert not (tmp_path / "h").exists()
    (tmp_path / "bad.npy").write_text("no array")
    assert "bad.npy: it cannot be read" in refuse(*asked(place, "--labels", str(tmp_path / "bad.npy"), *out))
    nowhere = refuse("hops", str(tmp_path), "--features", str(place / "x.npy"), "--depth", "2", *out)
    assert "there is no graph in this folder" in nowhere
