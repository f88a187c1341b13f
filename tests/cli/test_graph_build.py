"""``unspool graph build``: edges in, a folder out, and one sentence where that cannot be."""

import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

import unspool as us
from cli.people import ask, refuse
from unspool.cli.graph_build import memory_bytes

INDEX = np.random.default_rng(0).integers(0, 300, (2, 2000))


@pytest.fixture
def edges(tmp_path):
    np.save(tmp_path / "e.npy", INDEX)
    return tmp_path / "e.npy"


def test_edges_become_a_graph(edges, tmp_path):
    said = ask("graph", "build", "--edges", str(edges), "--undirected", "--memory", "1GB", "--out", str(tmp_path / "g"))
    assert "Graph(nodes=300" in said
    with pytest.warns(UserWarning, match="more than once"):
        twin = us.Graph.from_edges(INDEX, 300, directed=False)
    assert torch.equal(us.Graph.open(tmp_path / "g").to_dense(), twin.to_dense())


def test_what_cannot_be_is_one_sentence(edges, tmp_path):
    out = ("--out", str(tmp_path / "g"))
    assert refuse("graph", "build", "--edges", str(edges), "--memory", "much", *out).startswith(
        "--memory much: expected a size"
    )
    assert "at least" in refuse("graph", "build", "--edges", str(edges), "--memory", "1KB", *out)
    (tmp_path / "bad.csv").write_text("0,1\nada,2\n")
    assert "bad.csv, line 2: 'ada' is not a node id" in refuse(
        "graph", "build", "--edges", str(tmp_path / "bad.csv"), *out
    )


@pytest.mark.long
def test_a_killed_build_goes_on(tmp_path):
    index = np.random.default_rng(1).integers(0, 200_000, (2, 3_000_000))
    np.save(tmp_path / "e.npy", index)
    command = [
        sys.executable, "-m", "unspool", "graph", "build", "--edges", str(tmp_path / "e.npy"), "--undirected", "--memory", "300MB",
        "--out", str(tmp_path / "g"),
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as started:
        for line in started.stderr:
            if line.startswith("bucket 2"):
                break
        started.send_signal(signal.SIGKILL)
    with pytest.raises(ValueError, match="not finished"):
        us.Graph.open(tmp_path / "g")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "bucket 1 of" not in done.stderr
    found = us.Graph.open(tmp_path / "g")
    with pytest.warns(UserWarning, match="more than once"):
        twin = us.Graph.from_edges(index, 200_000, directed=False)
    assert torch.equal(found.adjacency.forward.col, twin.adjacency.forward.col)
    assert torch.equal(found.adjacency.forward.crow, twin.adjacency.forward.crow)


@pytest.mark.parametrize(("text", "size"), [("8GB", 8 << 30), ("500 MB", 500 << 20), ("0.5g", 1 << 29), ("1024", 1024)])
def test_sizes_are_read_as_people_write_them(text, size):
    assert memory_bytes(text) == size
