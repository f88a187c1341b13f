"""Each raw layout, in small files made here: our reading equals that of PyTorch Geometric's loaders."""

import gzip
import importlib.util
import os
import pickle
import zipfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
import torch_geometric.datasets as pyg
from click.testing import CliRunner
from torch_geometric.utils import homophily

from unspool import datasets
from unspool.cli.main import cli
from unspool.datasets import splits
from unspool.datasets.components import sorted_edges
from unspool.datasets.features import to_numpy
from unspool.datasets.named_sets import read_raw
from unspool.datasets.readers.pickled import unpickled
from unspool.datasets.sources import SOURCES

pytestmark = pytest.mark.long


PARTS = (("train", "train_mask"), ("valid", "val_mask"), ("test", "test_mask"))


def seeded(seed):
    return np.random.default_rng(seed)


def dense(data):
    held = to_numpy(data.features)
    return torch.as_tensor(held if isinstance(held, np.ndarray) else held.toarray())


def assert_equal(ours, theirs):
    """Edges, features and labels of a PyG ``Data`` are ours, bit for bit."""
    assert torch.equal(dense(ours), theirs.x)
    assert torch.equal(ours.labels, theirs.y)
    assert np.array_equal(ours.edge_index.numpy(), sorted_edges(theirs.edge_index.numpy(), theirs.num_nodes))
    assert ours.edge_index.shape == theirs.edge_index.shape  # neither has repeats


def assert_equal_split(split, data, column=None):
    for part, name in PARTS:
        mask = getattr(data, name)
        assert torch.equal(split.mask(part), mask if column is None else mask[:, column])


def masks(random, nodes):
    codes = random.permutation(np.arange(nodes) % 4)
    return {"train_mask": codes == 0, "val_mask": codes == 1, "test_mask": codes == 2}


# -- making files ------------------------------------------------------------------------------------------------------


def make_benchmark(root, folder, stem, nodes=40):
    """With self-loops, one-way edges, repeated entries and counts above one."""
    random = seeded(1)
    raw = root / folder / "raw"
    raw.mkdir(parents=True)
    row, col = random.integers(nodes, size=(2, 150))
    row[:5] = col[:5]
    links = scipy.sparse.csr_matrix((np.ones(150, np.float32), (row, col)), shape=(nodes, nodes))
    words = scipy.sparse.random(nodes, 30, density=0.1, rng=random, format="csr", dtype=np.float32)
    words.data = np.ceil(words.data * 3).astype(np.float32)
    parts = {
        f"{p}_{k}": getattr(m, k)
        for p, m in (("adj", links), ("attr", words))
        for k in ("data", "indices", "indptr", "shape")
    }
    np.savez(raw / f"{stem}.npz", **parts, labels=np.arange(nodes) % 2)


def make_webkb(root, name="texas", nodes=30):
    random = seeded(2)
    raw = root / "WebKB" / name / "raw"
    raw.mkdir(parents=True)
    lines = [f"{i}\t{','.join(map(str, random.integers(2, size=50)))}\t{i % 5}" for i in range(nodes)]
    make_geom(raw, name, lines, random, nodes)


def make_actor(root, nodes=30):
    """Nodes in no order, words listed twice."""
    random = seeded(3)
    raw = root / "Actor" / "raw"
    raw.mkdir(parents=True)
    lines = [f"{i}\t{','.join(map(str, random.integers(90, size=5)))}\t{i % 5}" for i in random.permutation(nodes)]
    make_geom(raw, "film", lines, random, nodes)


def make_geom(raw, prefix, lines, random, nodes):
    (raw / "out1_node_feature_label.txt").write_text("node_id\tfeature\tlabel\n" + "\n".join(lines) + "\n")
    edges = [f"{a}\t{b}" for a, b in random.integers(nodes, size=(60, 2))]
    (raw / "out1_graph_edges.txt").write_text("node_id\tnode_id\n" + "\n".join([*edges, edges[0], "4\t4"]) + "\n")
    for number in range(10):
        np.savez(raw / f"{prefix}_split_0.6_0.2_{number}.npz", **masks(random, nodes))


def make_platonov(root, stem, nodes=30):
    random = seeded(4)
    raw = root / "HeterophilousGraphDataset" / stem / "raw"
    raw.mkdir(parents=True)
    parts = [masks(random, nodes) for _ in range(10)]
    stacked = {f"{key}s": np.stack([part[key] for part in parts]) for key in parts[0]}
    edges = np.unique(np.sort(random.integers(nodes, size=(60, 2)), axis=1), axis=0)
    x = random.random((nodes, 7)).astype(np.float32)
    np.savez(raw / f"{stem}.npz", node_features=x, node_labels=np.arange(nodes) % 3, edges=edges, **stacked)


def make_planetoid(root, name="Cora", nodes=1800, classes=3, train=60, gap=False):
    """The eight pickled files, with repeated links, self-loops, test ids out of order and, on request, missing."""
    random = seeded(5)
    raw = root / "Planetoid" / name / "raw"
    raw.mkdir(parents=True)
    known = nodes - 1000
    x = scipy.sparse.csr_matrix((random.random((nodes, 20)) < 0.1).astype(np.float32))
    y = np.eye(classes, dtype=np.int32)[random.integers(classes, size=nodes)]
    test = known + random.permutation(1000)
    if gap:
        test = test[(test != known + 17) & (test != known + 400)]
    graph = defaultdict(list, {i: [int(j) for j in random.integers(nodes, size=3)] for i in range(nodes)})
    for i in range(0, nodes, 7):
        graph[i] += [graph[i][0], i]
    parts = {
        "x": x[:train], "tx": x[test], "allx": x[:known], "y": y[:train], "ty": y[test], "ally": y[:known], "graph": graph,
    }  # fmt: skip
    for part, held in parts.items():
        (raw / f"ind.{name.lower()}.{part}").write_bytes(pickle.dumps(held, protocol=2))
    (raw / f"ind.{name.lower()}.test.index").write_text("\n".join(map(str, test)) + "\n")


def make_arxiv(root, nodes=50):
    random = seeded(6)
    folder = root / "ogbn_arxiv"
    tables = {
        "raw/edge": random.integers(nodes, size=(120, 2)),
        "raw/node-feat": np.round(random.standard_normal((nodes, 6)), 6),
        "raw/node-label": (np.arange(nodes) % 4)[:, None],
        "raw/node_year": np.full((nodes, 1), 2017),
        "split/time/train": np.arange(0, 20)[:, None],
        "split/time/valid": np.arange(20, 30)[:, None],
        "split/time/test": np.arange(30, 50)[:, None],
    }
    for name, table in tables.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(",".join(repr(v.item()) for v in row) for row in table)
        path.write_bytes(gzip.compress((text + "\n").encode()))
    return tables


# -- laws --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "folder", "stem", "loader"),
    [
        ("cs", "Coauthor/CS", "ms_academic_cs", lambda root: pyg.Coauthor(root / "Coauthor", "CS")),
        ("physics", "Coauthor/Physics", "ms_academic_phy", lambda root: pyg.Coauthor(root / "Coauthor", "Physics")),
        ("photo", "Amazon/Photo", "amazon_electronics_photo", lambda root: pyg.Amazon(root / "Amazon", "Photo")),
        ("Computers", "Amazon/Computers", "amazon_electronics_computers", lambda root: pyg.Amazon(root / "Amazon", "Computers")),
    ],
)  # fmt: skip
def test_gnn_benchmark(tmp_path, name, folder, stem, loader):
    make_benchmark(tmp_path, folder, stem)
    ours = datasets.load(name, tmp_path, split=lambda d: splits.per_class(d.labels, 3, 3))
    assert_equal(ours, loader(tmp_path)[0])
    assert ours.notes[:3] == ("features binarised", "self-loops dropped", "every edge runs both ways")


@pytest.mark.parametrize("kind", ["webkb", "actor"])
def test_geom_gcn(tmp_path, kind):
    (make_webkb if kind == "webkb" else make_actor)(tmp_path)
    theirs = pyg.WebKB(tmp_path / "WebKB", "Texas")[0] if kind == "webkb" else pyg.Actor(tmp_path / "Actor")[0]
    ours = datasets.load("texas" if kind == "webkb" else "Actor", tmp_path)
    assert_equal(ours, theirs)
    for number in range(10):
        assert_equal_split(splits.geom_gcn(ours, number), theirs, number)
    assert ours.split == splits.geom_gcn(ours, 0)
    with pytest.raises(ValueError, match="comes with no split named 'geom-gcn-10'"):
        splits.geom_gcn(ours, 10)


@pytest.mark.parametrize("name", ["roman-empire", "Amazon_Ratings", "minesweeper", "tolokers", "questions"])
def test_heterophilous(tmp_path, name):
    stem = name.lower().replace("-", "_")
    make_platonov(tmp_path, stem)
    theirs = pyg.HeterophilousGraphDataset(tmp_path / "HeterophilousGraphDataset", name.replace("_", "-"))[0]
    ours = datasets.load(name, tmp_path)
    assert_equal(ours, theirs)
    for number in range(10):
        assert_equal_split(splits.fold(ours, number), theirs, number)


@pytest.mark.parametrize("name", ["chameleon_filtered", "squirrel_filtered"])
def test_filtered(tmp_path, name):
    make_platonov(tmp_path, name)
    assert datasets.load(name, tmp_path).split.name == "fold-0"


@pytest.mark.parametrize("name", ["Cora", "PubMed"])
def test_planetoid(tmp_path, name):
    make_planetoid(tmp_path, name)
    theirs = pyg.Planetoid(tmp_path / "Planetoid", name)[0]
    ours = datasets.load(name, tmp_path)
    assert_equal(ours, theirs)
    assert_equal_split(ours.split, theirs)
    assert list(ours.recorded) == ["public"]


def test_arxiv_is_read_from_the_csv_files_of_ogb(tmp_path):
    tables = make_arxiv(tmp_path)
    for name in ("arxiv", "ogbn-arxiv"):
        data = datasets.load(name, tmp_path)
    assert torch.equal(data.features, torch.as_tensor(tables["raw/node-feat"], dtype=torch.float32))
    assert data.labels.tolist() == tables["raw/node-label"][:, 0].tolist()
    assert np.array_equal(data.edge_index.numpy(), sorted_edges(tables["raw/edge"].T, 50))
    assert data.split.valid.tolist() == list(range(20, 30))
    assert data.split == splits.ogb(data)
    assert data.graph.undirected
    assert data.classes == ("0", "1", "2", "3")


def test_the_graph_of_arxiv_alone(tmp_path):
    (tmp_path / "ogbn_arxiv_nofeat").mkdir()
    np.savez(
        tmp_path / "ogbn_arxiv_nofeat" / "ogbn_arxiv_nofeat.npz", indptr=[0, 2, 2, 3], indices=[1, 2, 0], y=[0, 1, 1],
        train_idx=[0], valid_idx=[1], test_idx=[2],
    )  # fmt: skip
    data = datasets.load("arxiv-graph", tmp_path)
    assert data.edge_index.tolist() == [[0, 0, 2], [1, 2, 0]]
    assert data.features.to_dense().tolist() == torch.eye(3).tolist()
    assert "no features: every node has one of its own" in data.notes


def test_edge_homophily_is_that_of_pyg():
    data = datasets.load("citeseer")
    expected = homophily(data.edge_index, data.labels, method="edge")  # no loops, both directions: the same share
    assert data.statistics().homophily == pytest.approx(expected, abs=1e-6)


def test_embedding_equals_planetoid_where_test_ids_are_missing(tmp_path):
    """tools/embed_citeseer.py assembles the raw files as PyG does, gaps in the test ids included."""
    make_planetoid(tmp_path, "CiteSeer", gap=True)
    theirs = pyg.Planetoid(tmp_path / "Planetoid", "CiteSeer")[0]
    path = Path(__file__).parents[3] / "tools" / "embed_citeseer.py"
    spec = importlib.util.spec_from_file_location("embed_citeseer", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    with zipfile.ZipFile(tmp_path / "wheel.zip", "w") as wheel:
        for file in (tmp_path / "Planetoid" / "CiteSeer" / "raw").iterdir():
            wheel.write(file, f"{tool.FOLDER}/{file.name}")
    with zipfile.ZipFile(tmp_path / "wheel.zip") as wheel:
        ours = tool.read(wheel).dataset()
    assert_equal(ours, theirs)
    assert_equal_split(splits.public(ours), theirs)


# -- pickles -----------------------------------------------------------------------------------------------------------


class Attack:
    """Runs a command when it is unpickled freely."""

    def __init__(self, how, *arguments):
        self.how, self.arguments = how, arguments

    def __reduce__(self):
        return self.how, self.arguments


def attacks(marker):
    """Pickles that would leave a file behind."""
    command = f"touch {marker}"
    slots = pickle.dumps(np.zeros(1), protocol=2)
    return {
        "os.system": pickle.dumps(Attack(os.system, command), protocol=2),
        "exec": pickle.dumps(Attack(exec, f"open({str(marker)!r}, 'w')"), protocol=4),
        "inside a dictionary": pickle.dumps({0: [Attack(os.system, command)]}, protocol=2),
        "beside an array": pickle.dumps([np.zeros(2), Attack(os.system, command)], protocol=2),
        "an array of objects": pickle.dumps(np.array([Attack(os.system, command)], dtype=object), protocol=2),
        "by a long name": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c"
        + bytes([len(command)])
        + command.encode()
        + b"\x85R.",
        "an instance": f"(S{command!r}\nios\nsystem\n.".encode(),
        "our own class": pickle.dumps(Attack, protocol=2),
        "a persistent name": b"Pwhatever\n.",
        "numpy's own loader": slots.replace(b"_reconstruct", b"scalar"),
    }


@pytest.mark.parametrize("name", attacks(Path("x")))
def test_a_pickle_that_runs_code_is_refused_and_not_run(tmp_path, name):
    make_planetoid(tmp_path)
    marker = tmp_path / "touched"
    (tmp_path / "Planetoid" / "Cora" / "raw" / "ind.cora.x").write_bytes(attacks(marker)[name])
    with pytest.raises(ValueError, match=r"ind\.cora\.x .*; fetch it again$"):
        datasets.load("cora", tmp_path)
    assert not marker.exists()


def test_the_command_line_runs_no_pickle(tmp_path):
    make_planetoid(tmp_path)
    marker = tmp_path / "touched"
    (tmp_path / "Planetoid" / "Cora" / "raw" / "ind.cora.allx").write_bytes(attacks(marker)["os.system"])
    found = CliRunner().invoke(cli, ["datasets", "cora", "--data", str(tmp_path)], standalone_mode=False)
    assert isinstance(found.exception, ValueError)
    assert "system" in str(found.exception)
    assert not marker.exists()


def test_a_pickle_cannot_change_what_the_next_one_meets():
    hostile = b"\x80\x02cnumpy\ndtype\nN}U\x04codeU\x02O8s\x86b."  # sets an attribute of what stands for numpy.dtype
    with pytest.raises(Exception):  # noqa: B017
        unpickled(hostile)
    assert unpickled(pickle.dumps(np.arange(3), protocol=2)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("held", [
    np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(3, dtype=">i4"),
    np.array([True, False]), np.float32([[1.5]]),
])  # fmt: skip
def test_arrays_come_back_as_they_were(held):
    assert np.array_equal(unpickled(pickle.dumps(held, protocol=2)), held)


@pytest.mark.parametrize("seed", range(6))
def test_damaged_pickles_end_in_a_sentence(tmp_path, seed):
    """Flipped, lost and doubled bytes: the same content, or a sentence that names a file."""
    make_planetoid(tmp_path, nodes=1600)
    raw = tmp_path / "Planetoid" / "Cora" / "raw"
    random, source = seeded(seed), SOURCES["cora"]
    before = read_raw(source, raw.parent)
    for _ in range(12):
        file = sorted(raw.iterdir())[random.integers(8)]
        sound = file.read_bytes()
        data, where = bytearray(sound), int(random.integers(min(len(sound), 400)))
        kind = random.integers(3)
        data[where : where + 1 + kind] = bytes([data[where] ^ (1 << int(random.integers(8)))]) if kind else b""
        file.write_bytes(bytes(data))
        try:
            after = read_raw(source, raw.parent)
        except ValueError as problem:
            assert "fetch" in str(problem)  # noqa: PT017
        else:
            assert after.hash == before.hash or after.notes[-1].startswith("not the set as it was published")
        file.write_bytes(sound)


def test_a_set_that_is_not_the_published_one_says_so(tmp_path):
    make_planetoid(tmp_path)
    make_platonov(tmp_path, "tolokers")
    assert datasets.load("cora", tmp_path).notes[-1].startswith("not the set as it was published: its content is ")
    assert datasets.load("tolokers", tmp_path).notes[-1] == "no fingerprint of this set is known: unchecked"
    assert not any("published" in note for note in datasets.load("citeseer").notes)


# -- parts that do not fit ---------------------------------------------------------------------------------------------


def changed(path, **held):
    arrays = dict(np.load(path))
    np.savez(path, **(arrays | held))


@pytest.mark.parametrize("what", [
    {"edges": np.array([[0, 30]])}, {"edges": np.array([[0, -1]])}, {"node_labels": np.arange(29) % 3},
    {"node_labels": np.full(30, 0.5)}, {"node_features": np.full((30, 7), np.nan)}, {"train_masks": np.ones((10, 30), bool)},
    {"val_masks": np.zeros((10, 29), bool)}, {"test_masks": np.full((10, 30), 7)}, {"node_features": np.ones(30)},
    {"node_labels": np.arange(30) - 5}, {"edges": np.zeros((4, 3), int)},
], ids=lambda what: next(iter(what)))  # fmt: skip
def test_parts_that_do_not_fit_are_refused(tmp_path, what):
    make_platonov(tmp_path, "tolokers")
    changed(tmp_path / "HeterophilousGraphDataset" / "tolokers" / "raw" / "tolokers.npz", **what)
    with pytest.raises(ValueError, match=r"^the files in .*tolokers are not those of Tolokers .*; fetch them again$"):
        datasets.load("tolokers", tmp_path)


@pytest.mark.parametrize("what", [
    {"adj_indices": np.full(150, 99)}, {"attr_indptr": np.arange(41)[::-1]}, {"attr_shape": np.array([40, 2])},
    {"labels": np.zeros(7, int)}, {"adj_shape": np.array([40, 10**15])},
])  # fmt: skip
def test_indices_beyond_a_matrix_are_refused(tmp_path, what):
    make_benchmark(tmp_path, "Amazon/Photo", "amazon_electronics_photo")
    changed(tmp_path / "Amazon" / "Photo" / "raw" / "amazon_electronics_photo.npz", **what)
    with pytest.raises(ValueError, match=r"are not those of Photo .*; fetch them again$"):
        datasets.load("photo", tmp_path)


@pytest.mark.parametrize(("file", "line"), [
    ("out1_graph_edges.txt", "3\tx"), ("out1_graph_edges.txt", "3\t1e9"), ("out1_node_feature_label.txt", "30\t1,2\t0"),
    ("out1_node_feature_label.txt", f"30\t{','.join(['1'] * 50)}\tsix"),
])  # fmt: skip
def test_lines_that_are_not_numbers_are_refused(tmp_path, file, line):
    make_webkb(tmp_path)
    path = tmp_path / "WebKB" / "texas" / "raw" / file
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(ValueError, match=r"Texas .*; fetch them again$"):
        datasets.load("texas", tmp_path)


@pytest.mark.parametrize("part", ["train", "valid"])
def test_a_split_of_arxiv_that_overlaps_or_leaves_the_graph_is_refused(tmp_path, part):
    make_arxiv(tmp_path)
    path = tmp_path / "ogbn_arxiv" / "split" / "time" / f"{part}.csv.gz"
    path.write_bytes(gzip.compress(b"35\n" if part == "train" else b"-3\n"))
    with pytest.raises(ValueError, match="are not those of ogbn-arxiv"):
        datasets.load("arxiv", tmp_path)
