"""Edges come out of every kind of file in pieces, and what cannot be one is named with its place."""

import gzip

import numpy as np
import pytest

from unspool.datasets import edge_chunks as reading
from unspool.datasets.edge_chunks import edge_chunks, has_weights

INDEX = np.array([[0, 3, 2, 1, 5], [1, 2, 2, 0, 4]])
WEIGHT = np.array([1.0, 0.5, 2.0, 1e-3, 4.0])


def rows(separator, header=None, weight=False):
    lines = [
        separator.join(map(str, row)) for row in (zip(*INDEX, WEIGHT, strict=True) if weight else INDEX.T.tolist())
    ]
    return "\n".join([*([header] if header else []), *lines]) + "\n"


def parquet(path, weight=False):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as format_

    columns = {"other": ["x"] * 5, "target": INDEX[1].astype(np.int32), "source": INDEX[0]}
    format_.write_table(arrow.table(columns | ({"weight": WEIGHT} if weight else {})), path)


FILES = {
    "e.csv": lambda p: p.write_text(rows(",")),
    "headed.csv": lambda p: p.write_text(rows(",", "src,dst")),
    "blank.csv": lambda p: p.write_text(rows(",").replace("\n", "\n\n")),
    "windows.csv": lambda p: p.write_bytes(rows(",", "from,to").replace("\n", "\r\n").encode()),
    "mark.csv": lambda p: p.write_bytes(b"\xef\xbb\xbf" + rows(",", "source,target").encode()),
    "no end.csv": lambda p: p.write_text(rows(",").rstrip("\n")),
    "e.tsv": lambda p: p.write_text(rows("\t")),
    "snap.txt": lambda p: p.write_text("# a list\n# From To\n" + rows("\t")),
    "wide.txt": lambda p: p.write_text(rows("  ")),
    "e.csv.gz": lambda p: p.write_bytes(gzip.compress(rows(",").encode())),
    "e.npy": lambda p: np.save(p, INDEX.astype(np.int32)),
    "e.parquet": parquet,
}
WEIGHTED = {
    "w.csv": lambda p: p.write_text(rows(",", weight=True)),
    "headed.csv": lambda p: p.write_text(rows(",", "source,target,weight", weight=True)),
    "w.txt": lambda p: p.write_text(rows(" ", weight=True)),
    "w.parquet": lambda p: parquet(p, weight=True),
}


def gathered(path, **how):
    parts = list(edge_chunks([path], **how))
    index = np.concatenate([np.stack([source, target]) for source, target, _ in parts], axis=1)
    return index, None if parts[0][2] is None else np.concatenate([weight for *_, weight in parts])


@pytest.fixture(params=["pyarrow", "numpy"])
def _reader(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(reading, "quickly", lambda *_: None)


@pytest.mark.usefixtures("_reader")
@pytest.mark.parametrize("size", [1 << 20, 16])
@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_gives_the_same_edges_in_pieces_of_any_size(name, size, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BYTES", size)
    monkeypatch.setattr(reading, "EDGES", max(size // 8, 1))
    FILES[name](tmp_path / name)
    index, weight = gathered(tmp_path / name)
    assert np.array_equal(index, INDEX)
    assert weight is None
    assert index.dtype == np.int64


@pytest.mark.usefixtures("_reader")
@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_come_along(name, tmp_path):
    WEIGHTED[name](tmp_path / name)
    index, weight = gathered(tmp_path / name)
    assert np.array_equal(index, INDEX)
    assert np.array_equal(weight, WEIGHT)
    assert has_weights([tmp_path / name])


def test_another_column_can_be_the_weight(tmp_path):
    (tmp_path / "e.csv").write_text("minutes,source,target\n2.5,0,1\n3,1,2\n")
    index, weight = gathered(tmp_path / "e.csv", weight="minutes")
    assert index.tolist() == [[0, 1], [1, 2]]
    assert weight.tolist() == [2.5, 3.0]


BAD = {
    "a name": ("e.csv", "0,1\nada,2\n", r"e.csv, line 2: 'ada' is not a node id; node ids are whole numbers from 0"),
    "a fraction": ("e.csv", "0,1\n1.5,2\n", r"e.csv, line 2: '1.5' is not a node id"),
    "an empty cell": ("e.csv", "source,target\n0,1\n,2\n", r"e.csv, line 3: '' is not a node id"),
    "a short line": ("e.csv", "0,1\n1\n", r"e.csv, line 2: it has 1 column, not 2 as the first; correct the line"),
    "negative": ("e.csv", "0,1\n-4,2\n", r"e.csv, line 2: it names node -4, but node ids count from 0"),
    "a weight that is none": ("e.csv", "0,1,1.0\n1,2,-1\n", r"e.csv, line 2: the weight is -1, but weights are finite"),
    "too large an id": (
        "e.csv",
        "source,target\n\n0,1\n\n9,2147483647\n",
        r"e.csv, line 5: it names node 2147483647, and ids end at",
    ),
    "other columns": ("e.csv", "a,b\n0,1\n", r"it has no columns source and target \(it has a, b\); call them so"),
    "four columns": ("e.csv", "0,1,2,3\n", r"line 1: it has 4 columns, not 2 or 3"),
    "a long line": ("e.csv", "0,1\n1,2,3\n", r"e.csv, line 2: it has 3 columns, not 2 as the first"),
    "a long line with blanks": ("e.txt", "0 1\n1 2 3\n", r"e.txt, line 2: it has 3 columns, not 2 as the first"),
    "no weight": (
        "e.csv",
        "source,target,weight\n0,1,1\n1,2,\n",
        r"e.csv, line 3: the weight '' is not a number; correct it",
    ),
    "a comment below": ("e.txt", "0 1\n# 1 2\n", r"e.txt, line 2: '#' is not a node id"),
    "another kind": ("e.xlsx", "0", r"edges ending in '.xlsx' are not read in pieces"),
    "damaged": ("e.npy", "0", r"e.npy is damaged or not a numpy file"),
    "nothing": ("e.csv", "", r"is empty"),
}


@pytest.mark.usefixtures("_reader")
@pytest.mark.parametrize("name", BAD)
def test_what_is_no_edge_is_named(name, tmp_path):
    file, text, sentence = BAD[name]
    (tmp_path / file).write_text(text)
    with pytest.raises(ValueError, match=sentence):
        list(edge_chunks([tmp_path / file]))


@pytest.mark.usefixtures("_reader")
@pytest.mark.parametrize("name", FILES)
def test_an_id_that_is_not_there_is_named_with_its_place(name, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BYTES", 16)
    monkeypatch.setattr(reading, "EDGES", 2)
    FILES[name](tmp_path / name)
    text = (gzip.decompress if name.endswith(".gz") else bytes)((tmp_path / name).read_bytes()).splitlines()
    place = {".npy": "edge 4", ".parquet": "row 4"}.get(
        (tmp_path / name).suffix, f"line {[number for number, line in enumerate(text, 1) if line.strip()][-1]}"
    )
    with pytest.raises(
        ValueError, match=rf"{name}, {place}: it names node 5, but node ids run from 0 to 4; nodes=5 says so"
    ):
        list(edge_chunks([tmp_path / name], nodes=5))


def test_weights_in_some_files_alone_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text(rows(","))
    (tmp_path / "b.csv").write_text(rows(",", weight=True))
    with pytest.raises(ValueError, match=r"a.csv: it has no weights, and other files have; give all of them weights"):
        has_weights([tmp_path / "a.csv", tmp_path / "b.csv"])
    with pytest.raises(ValueError, match="it has no header, so it has no column 'w'"):
        list(edge_chunks([tmp_path / "a.csv"], "w"))


def test_a_packed_file_that_was_cut_is_named(tmp_path):
    whole = gzip.compress(rows(",").encode())
    for content in (whole[: len(whole) // 2], b"not packed", whole[:-9] + b"123456789"):
        (tmp_path / "e.csv.gz").write_bytes(content)
        with pytest.raises(ValueError, match=r"e.csv.gz: it is damaged \(.*\); make it again"):
            list(edge_chunks([tmp_path / "e.csv.gz"]))


def test_names_of_columns_are_refused_where_there_are_none(tmp_path):
    np.save(tmp_path / "e.npy", INDEX)
    with pytest.raises(
        ValueError, match=r"an array has no columns with names, so no 'w'; use a table, or leave weight_column=... out"
    ):
        list(edge_chunks([tmp_path / "e.npy"], "w"))


def test_names_in_parquet_are_refused(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as format_

    format_.write_table(arrow.table({"source": ["a"], "target": ["b"]}), tmp_path / "e.parquet")
    with pytest.raises(ValueError, match=r"column 'source': it holds (large_)?string; node ids are whole numbers"):
        list(edge_chunks([tmp_path / "e.parquet"]))
