"""The quick reader of large edge lists gives what the reader of tables gives, or leaves the file to it."""

import pytest

from unspool.datasets import quick_edges
from unspool.datasets.edge_files import read_edges
from unspool.datasets.numbers import Numbers

pytest.importorskip("pyarrow")

#: Files, and whether the quick reader takes them.
TEXTS = {
    "numbers": ("e.csv", "0,1\n1,2\n12,3\n", True),
    "a header": ("e.csv", "source,target\n0,1\n1,2\n", True),
    "a header turned": ("e.csv", "dst,src\n0,1\n1,2\n", True),
    "no end": ("e.csv", "Source,Target\n0,1\n1,2", True),
    "windows": ("e.csv", "from,to\r\n0,1\r\n1,2\r\n", True),
    "tabs": ("e.tsv", "0\t1\n5\t2\n", True),
    "blanks": ("e.txt", "0 1\n5 2\n", True),
    "zero and one": ("e.csv", "0,1\n7,9\n", True),
    "a line": ("e.csv", "3,4\n", False),
    "leading zeros": ("e.csv", "0,1\n007,2\n", False),
    "leading zero first": ("e.csv", "00,1\n7,2\n", False),
    "names": ("e.csv", "source,target\nada,bob\n", False),
    "a name": ("e.csv", "0,1\n1,bob\n", False),
    "weights": ("e.csv", "0,1,2.5\n1,2,3\n", False),
    "a third column": ("e.csv", "source,target\n0,1,4\n1,2,5\n", False),
    "ragged": ("e.csv", "0,1\n1\n2,3,4\n", False),
    "an empty cell": ("e.csv", "0,1\n,2\n", False),
    "blank lines": ("e.csv", "0,1\n\n1,2\n\n", False),
    "a comment": ("e.txt", "# a list\n0 1\n1 2\n", False),
    "two blanks": ("e.txt", "0  1\n1  2\n", False),
    "both blanks": ("e.txt", "0 1\n1\t2\n", False),
    "quotes": ("e.csv", '0,1\n"1",2\n', False),
    "other words": ("e.csv", "a,b\n0,1\n", False),
    "a mark": ("e.csv", "\ufeffsource,target\n0,1\n", False),
    "negative": ("e.csv", "0,1\n-1,2\n", False),
    "huge": ("e.csv", "0,1\n99999999999999999999,2\n", False),
    "old lines": ("e.csv", "0,1\r1,2\r", False),
    "an id of letters and a number": ("e.csv", "u,v\n1,2\n", True),
}


def outcome(path):
    try:
        held = read_edges(path)
    except ValueError as problem:
        return str(problem)
    rows = [(s, t, held.where(e)) for e, (s, t) in enumerate(zip(held.sources, held.targets, strict=True))]
    weights = None if held.weights is None else held.weights.tolist()
    return rows, weights, held.bare, held.heads, held.file, held.undirected, held.unused, held.nodes


@pytest.mark.parametrize("name", TEXTS)
def test_both_readers_agree(name, tmp_path, monkeypatch):
    file, text, taken = TEXTS[name]
    (tmp_path / file).write_bytes(text.encode())
    slow = outcome(tmp_path / file)
    monkeypatch.setattr(quick_edges, "LEAST", 0)
    assert outcome(tmp_path / file) == slow
    quick = quick_edges.quick_edges(
        tmp_path / file, {".csv": ",", ".tsv": "\t", ".txt": None}[(tmp_path / file).suffix]
    )
    assert (quick is not None) is (taken or name in ("a line", "other words"))


def test_only_large_files_are_read_quickly(tmp_path):
    (tmp_path / "small.csv").write_text("0,1\n1,2\n")
    (tmp_path / "large.csv").write_text("source,target\n" + "1000000,2000000\n" * 70_000)
    assert not isinstance(read_edges(tmp_path / "small.csv").sources, Numbers)
    large = read_edges(tmp_path / "large.csv")
    assert isinstance(large.sources, Numbers)
    assert large.where(69_999) == "large.csv, line 70001"
    assert large.targets[5] == "2000000"
