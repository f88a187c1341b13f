"""Data of one's own: all doors lead to the same data set, names are kept, gaps are no labels."""

import gzip
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch

from unspool import datasets

NAMES = ["ada", "bob", "cem", "dee", "eli", "fay", "gus", "hal", "ivo"]
PAIRS = [(0, 1), (1, 2), (2, 3), (5, 4), (6, 5), (7, 6)]  # ivo has no friends
WEIGHTS = [1.0, 2.0, 0.5, 1.0, 4.0, 1.0]
X = np.round(np.random.default_rng(0).standard_normal((9, 3)), 3).astype(np.float32)
TEAMS = ["red", "blue", "red", "blue", "red", "blue", None, "red", None]
LABELS = [1, 0, 1, 0, 1, 0, -1, 1, -1]


def expected(weighted=True, named=True):
    return datasets.from_tensors(
        torch.tensor(PAIRS).T, torch.as_tensor(X), LABELS, edge_weight=WEIGHTS if weighted else None,
        classes=("blue", "red"), names=NAMES if named else None,
    )  # fmt: skip


def lines(rows, separator=","):
    return "\n".join(separator.join("" if cell is None else str(cell) for cell in row) for row in rows) + "\n"


def node(i, named):
    return NAMES[i] if named else i


def write_table(path, rows):
    """By the file's ending: text, compressed text or Parquet (whose first row holds the names)."""
    if path.suffix == ".parquet":
        parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        columns = {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}
        parquet.write_table(pyarrow.table(columns), path)
        return path
    text = lines(rows, {".csv": ",", ".tsv": "\t", ".txt": " ", ".gz": ","}[path.suffix])
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("header", [["source", "target", "weight"], ["From", "To", "w"], None])
@pytest.mark.parametrize("ending", ["csv", "tsv", "txt", "csv.gz", "parquet"])
def test_edge_tables(tmp_path, ending, header, named):
    if ending == "parquet" and header is None:
        pytest.skip("Parquet always has names")
    rows = [(node(a, named), node(b, named), w) for (a, b), w in zip(PAIRS, WEIGHTS, strict=True)]
    edges = write_table(tmp_path / f"edges.{ending}", [header, *rows] if header else rows)
    ids = [["id"]] + [[node(i, named)] for i in range(9)]
    people = write_table(
        tmp_path / "people.csv", [[*i, *v] for i, v in zip(ids, [["a", "b", "c"], *X.tolist()], strict=True)]
    )
    teams = write_table(tmp_path / "teams.csv", [("id", "team"), *((node(i, named), TEAMS[i]) for i in range(9))])
    data = datasets.from_files(edges, people, teams)
    assert data.hash == expected(named=named).hash
    assert data.name == "edges"
    assert data.split == expected(named=named).split


FEATURES = {
    "csv": lambda p: write_table(p / "x.csv", [["id", "a", "b", "c"], *([n, *v] for n, v in zip(NAMES, X.tolist(), strict=True))]),
    "tsv, ids last": lambda p: write_table(p / "x.tsv", [["a", "b", "c", "node"], *([*v, n] for n, v in zip(NAMES, X.tolist(), strict=True))]),
    "parquet": lambda p: write_table(p / "x.parquet", [["name", "a", "b", "c"], *([n, *v] for n, v in zip(NAMES, X.tolist(), strict=True))]),
    "with the team": lambda p: write_table(p / "x.csv", [["id", "a", "b", "c", "team"], *([n, *v, t] for n, v, t in zip(NAMES, X.tolist(), TEAMS, strict=True))]),
}  # fmt: skip


@pytest.mark.parametrize("kind", list(FEATURES))
def test_feature_tables(tmp_path, kind):
    edges = write_table(
        tmp_path / "e.csv",
        [("source", "target", "weight"), *((NAMES[a], NAMES[b], w) for (a, b), w in zip(PAIRS, WEIGHTS, strict=True))],
    )
    x = FEATURES[kind](tmp_path)
    if kind == "with the team":
        data = datasets.from_files(edges, x, label_column="team")
    else:
        teams = write_table(tmp_path / "y.csv", [(n, t) for n, t in zip(NAMES, TEAMS, strict=True) if t is not None])
        data = datasets.from_files(edges, x, teams)
    assert data.hash == expected().hash


@pytest.mark.parametrize("x", ["npy", "npz", "bare csv", "csv with names of columns"])
@pytest.mark.parametrize("y", ["csv", "npy", "npy with gaps", "ids"])
@pytest.mark.parametrize("e", ["npz", "npy", "scipy", "pairs"])
def test_files_without_names(tmp_path, e, x, y):
    index = np.array(PAIRS).T
    adjacency = scipy.sparse.coo_array((np.ones(6), (index[1], index[0])), shape=(9, 9)).tocsr()
    {
        "npz": lambda: np.savez(tmp_path / "e.npz", edge_index=index),
        "pairs": lambda: np.savez(tmp_path / "e.npz", edges=index.T),
        "npy": lambda: np.save(tmp_path / "e.npy", index),
        "scipy": lambda: scipy.sparse.save_npz(tmp_path / "e.npz", adjacency),
    }[e]()
    {
        "npy": lambda: np.save(tmp_path / "x.npy", X),
        "npz": lambda: scipy.sparse.save_npz(tmp_path / "x.npz", scipy.sparse.csr_array(X)),
        "bare csv": lambda: write_table(tmp_path / "x.csv", X.tolist()),
        "csv with names of columns": lambda: write_table(tmp_path / "x.csv", [["a", "b", "c"], *X.tolist()]),
    }[x]()
    gaps = np.where(np.array(LABELS) < 0, np.nan, LABELS)
    {
        "csv": lambda: write_table(tmp_path / "y.csv", [["label"], *([v] for v in LABELS)]),
        "npy": lambda: np.save(tmp_path / "y.npy", LABELS),
        "npy with gaps": lambda: np.save(tmp_path / "y.npy", gaps),
        "ids": lambda: write_table(tmp_path / "y.csv", [["node_id", "class"], *([i, f"{v}.0"] for i, v in enumerate(LABELS) if v >= 0)]),
    }[y]()  # fmt: skip
    held = {file.stem: file for file in tmp_path.iterdir()}
    data = datasets.from_files(held["e"], held["x"], held["y"])
    assert data.names is None
    assert data.classes == ("0", "1")
    assert data.labels.tolist() == LABELS
    assert torch.equal(data.features, torch.as_tensor(X))
    assert torch.equal(data.edge_index, expected(weighted=False).edge_index)


def network(directed=False):
    made = networkx.DiGraph() if directed else networkx.Graph()
    for name, x, team in zip(NAMES, X.tolist(), TEAMS, strict=True):
        made.add_node(name, a=x[0], b=x[1], c=x[2], **({} if team is None else {"team": team}))
    for (a, b), w in zip(PAIRS, WEIGHTS, strict=True):
        made.add_edge(NAMES[a], NAMES[b], weight=w)
    return made


def test_networkx_and_graphml(tmp_path):
    plain = datasets.from_networkx(network(True), ["a", "b", "c"], "team")
    assert plain.hash == expected().hash
    assert datasets.from_networkx(network(True), X, "team").hash == expected().hash
    networkx.write_graphml(network(True), tmp_path / "g.graphml")
    read = datasets.from_files(tmp_path / "g.graphml", feature_columns=["a", "b", "c"], label_column="team")
    assert read.hash == expected().hash
    beside = write_table(
        tmp_path / "x.csv", [["id", "a", "b", "c"], *([n, *v] for n, v in zip(NAMES, X.tolist(), strict=True))]
    )
    teams = write_table(tmp_path / "y.csv", list(zip(NAMES, TEAMS, strict=True)))
    assert datasets.from_files(tmp_path / "g.graphml", beside, teams).hash == expected().hash
    undirected = datasets.from_networkx(network(False), ["a", "b", "c"], "team")
    assert torch.equal(undirected.graph.to_dense(), expected().graph.to_dense())


@pytest.mark.long  # PyG takes seconds to import
def test_pyg_and_scipy():
    from torch_geometric.data import Data

    index = torch.tensor(PAIRS).T
    data = Data(x=torch.as_tensor(X), edge_index=index, y=torch.tensor(LABELS), edge_weight=torch.tensor(WEIGHTS))
    bare = datasets.from_tensors(index, X, LABELS, edge_weight=WEIGHTS)
    assert datasets.from_pyg(data).hash == bare.hash
    wide = Data(
        x=torch.as_tensor(X).to_sparse(),
        edge_index=index,
        y=torch.tensor(LABELS)[:, None],
        edge_attr=torch.tensor(WEIGHTS)[:, None],
    )
    assert datasets.from_pyg(wide).hash == bare.hash
    adjacency = scipy.sparse.coo_array((WEIGHTS, (index[1], index[0])), shape=(9, 9))
    assert datasets.from_scipy(adjacency, X, LABELS).hash == bare.hash
    assert datasets.from_scipy(adjacency.tocsc(), X, LABELS).hash == bare.hash


def test_masks_of_pyg_become_the_split():
    codes = torch.tensor([1, 1, 2, 3, 3, 0, 0, 2, 0])
    masks = {f"{part}_mask": codes == code for code, part in enumerate(("train", "val", "test"), start=1)}
    data = SimpleNamespace(
        edge_index=torch.tensor(PAIRS).T, x=torch.as_tensor(X), y=torch.tensor(LABELS), num_nodes=9, **masks
    )
    ours = datasets.from_pyg(data)
    assert torch.equal(ours.split.codes(), codes.to(torch.uint8))
    assert ours.split.name == "masks"
    two = {name: torch.stack([mask, mask.roll(1)], dim=1) for name, mask in masks.items()}
    ours = datasets.from_pyg(SimpleNamespace(**(vars(data) | two)))
    assert ours.split == datasets.splits.fold(ours, 0)
    assert torch.equal(datasets.splits.fold(ours, 1).codes(), codes.roll(1).to(torch.uint8))
    data.val_mask = data.train_mask
    with pytest.raises(ValueError, match=r"^the masks of data overlap; every node belongs to one part at most$"):
        datasets.from_pyg(data)


def test_a_split_column(tmp_path):
    edges = write_table(tmp_path / "e.csv", [(a, b) for a, b in PAIRS])
    parts = ["train", "valid", "test", "", "val", "TEST", "validation", "train", ""]
    y = write_table(tmp_path / "y.csv", [("id", "label", "part"), *((i, i % 2, p) for i, p in enumerate(parts))])
    data = datasets.from_files(edges, None, y, split_column="part", label_column="label")
    assert data.split.codes().tolist() == [1, 2, 3, 0, 2, 3, 2, 1, 0]
    assert data.split.name == "from the file"
    assert data.notes[-1] == "no features given: every node has one of its own"


def test_nodes_of_an_edge_list_alone(tmp_path):
    numbers = datasets.from_files(write_table(tmp_path / "a.csv", [(10, 9), (9, 100)]))
    assert numbers.names == ("9", "10", "100")
    words = datasets.from_files(write_table(tmp_path / "b.csv", [("b", "a"), ("a", "c")]))
    assert words.names == ("b", "a", "c")
    assert words.split is None
    assert words.classes == ()
    plain = datasets.from_files(write_table(tmp_path / "c.csv", [(0, 1), (1, 2)]))
    assert plain.names is None
    labelled = write_table(tmp_path / "y.csv", [("id", "label"), *((f"n{i}", "x") for i in range(4))])
    lonely = datasets.from_files(write_table(tmp_path / "d.csv", [("n1", "n0")]), labels=labelled)
    assert lonely.names == ("n1", "n0", "n2", "n3")  # labels may speak of nodes without edges


def test_comments_blank_lines_quotes_and_marks(tmp_path):
    file = tmp_path / "e.csv"
    file.write_bytes(b'\xef\xbb\xbf# made by hand\r\nsource,target\r\n\r\n"a, b",c\r\nc,d\r\n')
    data = datasets.from_files(file)
    assert data.names == ("a, b", "c", "d")


def test_repeats_and_one_way_edges_are_noted():
    data = datasets.from_tensors([[0, 0, 1, 2], [1, 1, 2, 1]], nodes=3)
    assert "listed more than once" in data.notes[0]
    assert "one direction" in data.notes[1]
    assert data.graph.edges == 2


def test_named_columns_make_a_header(tmp_path):
    edges = write_table(
        tmp_path / "e.csv", [("person", "friend", "since"), ("a", "b", 1999), ("b", "c", 2001), ("c", "d", 2000)]
    )
    people = write_table(tmp_path / "x.csv", [("person", "age", "town"), *((n, 30, "Bern") for n in "abcd")])
    teams = write_table(tmp_path / "y.csv", [("person", "team"), *((n, "red") for n in "dca")])
    data = datasets.from_files(
        edges,
        people,
        teams,
        edge_columns=("person", "friend"),
        id_column="person",
        feature_columns=["age"],
        label_column="team",
    )
    assert data.names == ("a", "b", "c", "d")
    assert data.edge_weight is None
    assert data.labels.tolist() == [0, -1, 0, 0]
    assert data.features.tolist() == [[30.0]] * 4


def test_what_is_given_can_change_afterwards_without_harm():
    index, x, y, w = np.array(PAIRS).T.copy(), X.copy(), np.array(LABELS), np.array(WEIGHTS)
    given = [index, x, y, w]
    data = datasets.from_tensors(index, x, y, edge_weight=w)
    before = fresh(data).hash
    for array in given:
        array[...] = 0
    assert fresh(data).hash == before
    for array in given:
        array.setflags(write=False)
    datasets.from_tensors(index, x, np.arange(9) // 3, edge_weight=w + 1)  # read-only arrays are fine too


def fresh(data):
    """A copy that has not remembered its hash."""
    import dataclasses

    return dataclasses.replace(data)
