"""Names that are whole numbers are read without a text for every edge, and give what texts give."""

import numpy as np
import pytest

from unspool import datasets
from unspool.datasets.edge_files import read_edges
from unspool.datasets.numbers import Numbers, names_in_order, numbered_places

INDEX = np.array([[0, 7, 12, 7, 100], [12, 0, 100, 12, 7]])


def table(path, kind):
    if kind == "csv":
        path.write_text("source,target\n" + "\n".join(f"{s},{t}" for s, t in INDEX.T) + "\n")
    elif kind == "npy":
        np.save(path, INDEX)
    else:
        arrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(arrow.table({"source": INDEX[0], "target": INDEX[1].astype(np.int16)}), path)
    return path


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_numbered_files_are_the_data_sets_that_texts_are(kind, tmp_path):
    made = datasets.from_files(table(tmp_path / f"e.{kind}", kind), directed=False)
    texts = datasets.from_files(table(tmp_path / "e.csv", "csv"), directed=False)
    assert made.hash == texts.hash
    assert made.names == texts.names == ("0", "7", "12", "100")
    assert isinstance(read_edges(tmp_path / f"e.{kind}").sources, Numbers)


@pytest.mark.parametrize("kind", ["npy", "parquet", "csv"])
def test_a_node_that_the_features_lack_is_named_with_its_place(kind, tmp_path):
    (tmp_path / "x.csv").write_text("id,a\n0,1\n7,2\n12,3\n")
    with pytest.raises(ValueError, match=r"(edge|row|line) \d+: node '100' is not among the 4?3? ?nodes of x.csv"):
        datasets.from_files(table(tmp_path / f"e.{kind}", kind), tmp_path / "x.csv", directed=False)


def test_they_are_sequences_of_texts():
    names = Numbers(np.array([3, -1, 10]))
    assert list(names) == ["3", "-1", "10"] == [names[i] for i in range(3)]
    assert names[-1] == "10"
    assert list(names[1:]) == ["-1", "10"]
    assert "3" in names
    assert not {"03", "x", "", "9" * 30} & {n for n in ("03", "x", "", "9" * 30) if n in names}


def test_what_needs_other_words_is_left_to_them():
    assert names_in_order(Numbers(np.array([1])), ["a"]) is None
    assert names_in_order(Numbers(np.array([-1])), Numbers(np.array([1]))) is None
    assert numbered_places(Numbers(np.array([1, 2])), {"1": 0}) is None
    assert numbered_places(["1"], {"1": 0}) is None
