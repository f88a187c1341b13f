"""Attacked graphs: one file, an edge list per strength; damaged files are named."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from unspool import datasets
from unspool.datasets.readers.attacked import STRENGTHS
from unspool.datasets.sources import SOURCES

NODES = 30


def arrays():
    random = np.random.default_rng(0)
    words = scipy.sparse.random(NODES, 12, density=0.3, rng=random, format="csr", dtype=np.float32)
    order = random.permutation(NODES)
    made = {f"features_{part}": getattr(words, part) for part in ("data", "indices", "indptr", "shape")}
    made |= {"labels": np.arange(NODES) % 3, "idx_train": order[:6], "idx_val": order[6:12], "idx_test": order[12:]}
    for number, strength in enumerate(STRENGTHS):
        ends = np.array([(a, b) for a in range(NODES) for b in range(a + 1, NODES)])
        name = "edges" if strength == "0" else f"edges_meta_{strength}"
        made[name] = random.permutation(ends)[: 40 + 5 * number].T.astype(np.int32)
    return made


@pytest.fixture
def root(tmp_path):
    (tmp_path / "Attacked").mkdir()
    np.savez(tmp_path / "Attacked" / "cora_metattack.npz", **arrays())
    return tmp_path


@pytest.mark.parametrize("strength", STRENGTHS)
def test_each_strength_has_its_own_edges_and_everything_else_in_common(root, strength):
    name = "cora-metattack" if strength == "0" else f"cora-metattack-{strength}"
    data, clean = (datasets.load(one, root, cache=root / "cache") for one in (name, "cora_metattack"))
    held = arrays()
    edges = held["edges" if strength == "0" else f"edges_meta_{strength}"]
    assert data.statistics().edges == edges.shape[1]
    pairs = {tuple(sorted(pair)) for pair in data.edge_index.T.tolist()}
    assert pairs == {tuple(sorted(pair)) for pair in edges.T.tolist()}
    for part, key in (("train", "idx_train"), ("valid", "idx_val"), ("test", "idx_test")):
        assert sorted(getattr(data.split, part).tolist()) == sorted(held[key].tolist())
    assert data.split.hash == clean.split.hash
    assert (data.labels == clean.labels).all()
    assert data.features.shape == clean.features.shape == (NODES, 12)


def test_the_split_stays_the_same_in_every_repetition(root):
    data = datasets.load("cora_metattack_0.25", root, cache=root / "cache")
    assert datasets.splits.repetition(data, 3).hash == data.split.hash


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"edges_meta_0.25": np.array([[0, 99], [1, 2]])}, "edges_meta_0.25 is empty or names nodes that are not among the 30"),
        ({"edges_meta_0.25": np.zeros(4, dtype=np.int32)}, "expected two rows"),
        ({"idx_val": np.array([-1])}, "idx_val is empty or names nodes"),
        ({"idx_val": np.arange(NODES)}, "a node is in two parts of the split"),
        ({"features_indices": np.array([500])}, "the features are not a sparse matrix"),
        ({"features_shape": np.array([29, 12])}, "not a sparse matrix|rows of features"),
        ({"labels": None}, "holds no array 'labels'"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named(root, change, told):
    file = root / "Attacked" / "cora_metattack.npz"
    held = {name: value for name, value in {**arrays(), **change}.items() if value is not None}
    np.savez(file, **held)
    with pytest.raises(ValueError, match=told) as caught:
        datasets.load("cora_metattack_0.25", root, cache=root / "cache")
    assert str(file) in str(caught.value)


REAL = Path(os.environ.get("UNSPOOL_DATA", "/nowhere"))


@pytest.mark.skipif(not (REAL / "Attacked").is_dir(), reason="the attacked graphs are not here")
@pytest.mark.parametrize(("name", "nodes", "edges"), [("cora", 2485, 5069), ("citeseer", 2110, 3668)])
def test_the_published_files_change_as_many_edges_as_they_say(name, nodes, edges, tmp_path):
    clean = datasets.load(f"{name}_metattack", REAL, cache=tmp_path)
    assert (clean.nodes, clean.statistics().edges) == (nodes, edges)
    before = {tuple(pair) for pair in clean.edge_index.T.tolist()}
    for strength in STRENGTHS[1:]:
        worse = datasets.load(f"{name}_metattack_{strength}", REAL, cache=tmp_path)
        changed = before ^ {tuple(pair) for pair in worse.edge_index.T.tolist()}
        assert len(changed) / 2 == pytest.approx(float(strength) * edges, abs=1.5)
    assert all(
        source.files == (f"{n}_metattack.npz",)
        for n in ("cora", "citeseer")
        for k, source in SOURCES.items()
        if k.startswith(f"{n}_met")
    )
