"""What stands in a table is read, or refused; no row, column, class or digit is lost on the way."""

import gzip
import io
import zipfile
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from numpy.lib import format as npy

from unspool import datasets
from unspool.datasets.files import read_signals
from unspool.datasets.labels import encode
from unspool.datasets.node_files import Columns
from unspool.errors import DataError, InputError


def ring(names):
    return "source,target\n" + "".join(f"{a},{b}\n" for a, b in pairwise([*names, names[0]]))


def read(place, e, x=None, y=None, ending="csv", **how):
    paths = []
    for name, text in (("e", e), ("x", x), ("y", y)):
        if text is not None:
            (place / f"{name}.{ending}").write_text(text)
        paths.append(None if text is None else place / f"{name}.{ending}")
    return datasets.from_files(*paths, **how)


# -- classes -----------------------------------------------------------------------------------------------------------

DISTINCT = [
    (str(2**53), str(2**53 + 1)), ("007", "7"), ("1_0", "10"), ("+1", "1"), ("a", "A"), ("0", "00"),
    ("inf", "Infinity"), ("１", "1"), ("-0", "0"),
]  # fmt: skip


@pytest.mark.parametrize("pair", DISTINCT, ids="|".join)
@pytest.mark.parametrize("door", ["table", "features", "npy", "tensors", "names"])
def test_distinct_classes_stay_distinct(tmp_path, pair, door):
    names, labels = [f"n{i}" for i in range(12)], [pair[i % 2] for i in range(12)]
    if door == "tensors":
        data = datasets.from_tensors([[0], [1]], np.ones((12, 1)), labels)
    elif door == "names":
        data = datasets.from_tensors([[0], [1]], np.ones((12, 1)), np.array(labels, dtype=object))
    elif door == "npy":
        np.save(tmp_path / "y.npy", np.array(labels))
        (tmp_path / "e.csv").write_text(ring(list(map(str, range(12)))))
        data = datasets.from_files(tmp_path / "e.csv", None, tmp_path / "y.npy")
    elif door == "table":
        data = read(
            tmp_path, ring(names), y="id,label\n" + "".join(f"{n},{c}\n" for n, c in zip(names, labels, strict=True))
        )
    else:
        x = "id,a,team\n" + "".join(f"{n},1,{c}\n" for n, c in zip(names, labels, strict=True))
        data = read(tmp_path, ring(names), x, label_column="team")
    assert sorted(data.classes) == sorted(pair)
    assert [data.classes[int(k)] for k in data.labels] == labels


def test_large_whole_numbers_with_gaps_in_parquet(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    labels = [2**53, 2**53 + 1, None] * 4
    parquet.write_table(pyarrow.table({"id": [str(i) for i in range(12)], "label": labels}), tmp_path / "y.parquet")
    (tmp_path / "e.csv").write_text(ring(list(map(str, range(12)))))
    data = datasets.from_files(tmp_path / "e.csv", None, tmp_path / "y.parquet")
    assert data.classes == (str(2**53), str(2**53 + 1))
    assert int((data.labels < 0).sum()) == 4


def test_points_that_tables_with_gaps_give_are_taken_off():
    assert encode(["1.0", "", "2.0"], str)[1] == ("1", "2")
    assert encode(["10", "9", "-3"], str)[1] == ("-3", "9", "10")
    with pytest.raises(ValueError, match="the same number, written differently"):
        encode(["1", "1.0"], str)


def test_words_that_mean_no_label_are_counted(tmp_path):
    y = "id,label\n" + "".join(f"{i},{'none' if i % 3 == 0 else 'ab'[i % 2]}\n" for i in range(12))
    assert "4 × 'none' read as no label" in read(tmp_path, ring(list(map(str, range(12)))), y=y).notes


def test_class_numbers_beyond_counting_are_refused():
    with pytest.raises(ValueError, match=r"the label of node 1 is 9007199254740992.*give such names as text"):
        datasets.from_tensors([[0], [1]], np.ones((3, 1)), np.array([0, 2**53, 0]))


# -- comments ----------------------------------------------------------------------------------------------------------


def test_names_that_begin_with_a_hash_are_names(tmp_path):
    names = ["#love", "peace", "#war", "joy"]
    x = "id,a\n" + "".join(f"{n},{i}\n" for i, n in enumerate(names))
    data = read(tmp_path, ring(names), x)
    assert data.names == tuple(names)
    assert data.edge_index.shape[1] == 4
    issues = ["#12", "#15", "#16"]
    assert read(tmp_path, "".join(f"{a},{b}\n" for a, b in pairwise(issues))).names == ("#12", "#15", "#16")


def test_comments_at_the_top_of_an_edge_list(tmp_path):
    snap = "# Directed graph: three nodes\n# FromNodeId\tToNodeId\n#\n0\t1\n1\t2\n"
    for ending in ("tsv", "txt"):
        data = read(tmp_path, snap, ending=ending)
        assert (data.nodes, data.edge_index.shape[1]) == (3, 2)


@pytest.mark.parametrize(("part", "text", "line"), [
    ("e", "#love,peace\nlove,war\n", 1),
    ("e", "0,1\n#1,2\n2,3\n", 2),
    ("e", "0,1\n# 1,2\n2,3\n", 2),
    ("e", "source,target\n0,1\n# 1,2\n", 3),
    ("x", "#id,a\n0,1\n1,2\n2,3\n3,4\n", 1),
    ("x", "# written by hand\nid,a\n0,1\n1,2\n2,3\n3,4\n", 1),
    ("x", "id,a\n0,1\n#1,2\n2,3\n3,4\n", 3),
    ("y", "id,label\n0,a\n# 1,b\n2,a\n3,b\n", 3),
])  # fmt: skip
def test_lines_that_may_be_comments_are_refused(tmp_path, part, text, line):
    held = {"e": ring("0123"), "x": None, "y": None} | {part: text}
    with pytest.raises(ValueError, match=rf"^{part}\.csv, line {line}(:| begins with #: )"):
        read(tmp_path, **held)


# -- headers -----------------------------------------------------------------------------------------------------------


def pandas_table(header, values):
    return ",".join(map(str, header)) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in values)


@pytest.mark.parametrize("width", [1, 2, 3, 10])
@pytest.mark.parametrize("kind", ["fractions", "whole", "binary"])
@pytest.mark.parametrize("answers", [False, True])
def test_a_header_that_counts_is_never_a_node(tmp_path, width, kind, answers):
    """Without header= it is refused, or seen; with it the rows are those of the file."""
    random = np.random.default_rng(width)
    draw = {
        "fractions": random.random,
        "whole": lambda s: random.integers(2, 9, s),
        "binary": lambda s: random.integers(2, size=s),
    }
    values = draw[kind]((12, width))
    y = pandas_table([0], [[i % 2] for i in range(12)]) if answers else None
    files = {"e": ring(list(map(str, range(12)))), "x": pandas_table(range(width), values), "y": y}
    with pytest.raises(DataError, match=r"may be the names of the columns.*header=\.\.\."):
        read(tmp_path, **files)
    data = read(tmp_path, **files, header=True)
    held = data.features if hasattr(data.features, "numpy") else data.features.to_dense()
    assert np.allclose(held.numpy(), values)
    assert data.feature_names == tuple(map(str, range(width)))
    if answers:
        assert data.labels.tolist() == [i % 2 for i in range(12)]


def test_years_as_columns_are_asked_for(tmp_path):
    x = pandas_table([2019, 2020, 2021], np.random.default_rng(0).random((4, 3)))
    with pytest.raises(ValueError, match="2019, 2020, 2021 may be the names of the columns"):
        read(tmp_path, ring("0123"), x)
    assert read(tmp_path, ring("01234"), x, header=False).nodes == 5


def test_tables_of_numbers_alone_are_read_as_before(tmp_path):
    rows = [[1, 2], [0, 1], [5, 6], [0, 1]]
    assert read(tmp_path, ring("0123"), pandas_table(rows[0], rows[1:])).features.tolist() == rows
    flags = [[0, 1], [1, 0], [0, 1], [1, 1]]  # the first row comes again, and the edges name node 3
    assert read(tmp_path, ring("0123"), pandas_table(flags[0], flags[1:])).features.tolist() == flags
    labels = read(tmp_path, ring("012345"), y="0\n1\n0\n1\n0\n1\n")
    assert labels.labels.tolist() == [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize("e", ["0,1,2\n0,5,1.5\n5,6,1.0\n", "0,1\nada,bob\nbob,cem\n"])
def test_an_edge_list_whose_header_counts(tmp_path, e):
    with pytest.raises(ValueError, match="may be the names of the columns"):
        read(tmp_path, e)


def test_labels_without_features_whose_header_counts(tmp_path):
    y = "0\n" + "".join(f"{i % 2}\n" for i in range(12))
    with pytest.raises(ValueError, match=r"node 12, which would be the last, has no edge"):
        read(tmp_path, ring(list(map(str, range(12)))), y=y)
    assert read(tmp_path, ring(list(map(str, range(12)))), y=y, header=True).labels.tolist() == [
        i % 2 for i in range(12)
    ]


#: Cells that somebody may mean as a number, and that are none.
ODD = ["1_0", "NA", "0x1F", "true", '"1,234"', "5%", "٣", "l0"]


@pytest.mark.parametrize("cell", ODD)
@pytest.mark.parametrize("line", [0, 1])
def test_a_bad_cell_is_refused_in_every_line(tmp_path, cell, line):
    """Above all in the first: read as a heading it would give every node the features of the next."""
    rows = ["4,5", "6,7", "8,9"]
    rows.insert(line, f"{cell},3")
    with pytest.raises(ValueError, match=rf"^x\.csv, line {line + 1}[:,]"):
        read(tmp_path, ring("0123"), "\n".join(rows) + "\n")


@pytest.mark.parametrize("cell", ODD[:-1])
def test_a_bad_cell_of_a_single_column_is_refused(tmp_path, cell):
    with pytest.raises(DataError, match=r"may be the names of the columns.*header=\.\.\."):
        read(tmp_path, ring("0123"), f"{cell}\n4\n6\n8\n")


@pytest.mark.parametrize(
    "y", ["0,y\n1,n\n2,n\n3,y\n", "0,y\n1,n\n2,n\n3,n\n", "y\nn\nn\ny\n", "y\nn\nn\nn\n", "p,class\nq,b\nr,b\ns,class\n", "p,split\nq,b\nr,split\ns,b\n"]
)  # fmt: skip
def test_classes_called_as_headings_are_asked_for(tmp_path, y):
    nodes = "pqrs" if y.startswith("p") else "0123"
    with pytest.raises(DataError, match=r"may be the names of the columns.*header=\.\.\."):
        read(tmp_path, ring(nodes), y=y)
    data = read(tmp_path, ring(nodes), y=y, header=False, split=datasets.Split([0], [1], [2], 4))
    assert [data.classes[k] for k in data.labels] == [line.split(",")[-1] for line in y.split()]


@pytest.mark.parametrize(
    "head", ["id,a,b", "id,0,1", "Node,2019,2020", "a,b,id", "name,true,false", "id,id2,1_0", "x,y,z"]
)
def test_ordinary_headers_are_seen(tmp_path, head):
    data = read(tmp_path, ring("0123"), head + "\n" + "".join(f"{i},{i}.5,{i}\n" for i in range(4)))
    assert data.nodes == 4


@pytest.mark.parametrize("y", ["label\nred\nred\nblue\nblue\n", "id,y\n0,a\n1,b\n2,b\n3,a\n", "y\n0\n1\n1\n0\n", "node,team\n0,y\n1,n\n2,n\n3,y\n"])  # fmt: skip
def test_ordinary_headers_of_labels_are_seen(tmp_path, y):
    data = read(tmp_path, ring("0123"), y=y, split=datasets.Split([0], [1], [2], 4))
    assert [data.classes[k] for k in data.labels] == [line.split(",")[-1] for line in y.split()[1:]]


@pytest.mark.parametrize("x", ["id,a\nu,1\nv,2\nw,3\n", None])
def test_a_first_edge_between_nodes_called_as_headings_is_refused(tmp_path, x):
    with pytest.raises(ValueError, match=r"^e\.csv: the first line, u, v, .*'u'"):
        read(tmp_path, "u,v\nv,w\nw,u\n", x)
    assert read(tmp_path, "source,target\nu,v\nv,w\nw,u\n", x, directed=False).graph.edges == 3


def test_a_first_edge_whose_nodes_the_features_list_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^e\.csv: the first line, u, v, .*'u'"):
        read(tmp_path, "u,v\na,b\nb,c\n", "id,f\n" + "".join(f"{n},1\n" for n in "uvabc"))


@pytest.mark.parametrize(
    ("edge", "free"), [("u,v", "source,target"), ("source,target", "src,dst"), ("from,to", "source,target")]
)
def test_the_way_out_of_headings_that_are_nodes_is_one(tmp_path, edge, free):
    a, b = edge.split(",")
    rows = f"{a},{b}\n{b},c\nc,{a}\n"
    with pytest.raises(ValueError, match=f"write {free} above it"):
        read(tmp_path, rows)
    assert read(tmp_path, f"{free}\n{rows}", directed=False).graph.edges == 3


def test_a_heading_above_weights_is_one(tmp_path):
    assert read(tmp_path, "u,v,w\nu,v,1.5\nv,w,2\n", directed=False).graph.edges == 2


def test_bytes_that_are_not_text_are_refused(tmp_path):
    np.save(tmp_path / "y.npy", np.array([b"\xe4", b"\xf6"] * 2))
    (tmp_path / "e.csv").write_text(ring("0123"))
    with pytest.raises(ValueError, match=r"y\.npy, row 0: the label b'\\xe4'"):
        datasets.from_files(tmp_path / "e.csv", labels=tmp_path / "y.npy")


def test_classes_and_numbers_to_predict_together_are_refused(tmp_path):
    x = "id,a,team,price\n" + "".join(f"{i},1,t{i % 2},{i}\n" for i in range(9))
    with pytest.raises(InputError) as refused:
        read(tmp_path, ring("012345678"), x, label_column="team", target_columns=["price"])
    assert (refused.value.argument, refused.value.value) == ("label_column", "team")


# -- rows and columns --------------------------------------------------------------------------------------------------


def test_two_columns_of_one_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match="two columns called 't'; rename one"):
        read(tmp_path, ring("0123"), "id,t,t\n0,1,2\n1,1,2\n2,1,2\n3,1,2\n")


def test_a_column_is_a_feature_or_an_answer(tmp_path):
    x = "id,a,b\n" + "".join(f"{i},{i},{i % 2}\n" for i in range(9))
    for how in ({"label_column": "b"}, {"target_columns": ["b"]}):
        with pytest.raises(
            ValueError, match="feature_columns: expected columns to learn from, and 'b' is what is to be predicted"
        ):
            read(tmp_path, ring("012345678"), x, feature_columns=["a", "b"], **how)
    with pytest.raises(ValueError, match="each column once, and 'a' is named twice"):
        read(tmp_path, ring("012345678"), x, feature_columns=["a", "a"])
    with pytest.raises(ValueError, match="each column once, and 'b' is named twice"):
        read(tmp_path, ring("012345678"), x, target_columns=["b", "b"])
    with pytest.raises(ValueError, match="column 'id' names the nodes"):
        read(tmp_path, ring("012345678"), x, feature_columns=["id", "a"])


def test_labels_of_named_nodes_need_names(tmp_path):
    """By their order they would go to other nodes."""
    names = ["ada", "bob", "cem", "dee", "eli", "fay"]
    x = "id,a\n" + "".join(f"{n},1\n" for n in names)
    y = "person,label\n" + "".join(f"{n},{'xy'[i % 2]}\n" for i, n in enumerate(reversed(names)))
    with pytest.raises(ValueError, match="which names the nodes"):
        read(tmp_path, ring(names), x, y)
    x = x.replace("id,", "person,")
    data = read(tmp_path, ring(names), x, y, id_column="person")
    assert [data.classes[int(k)] for k in data.labels] == ["y", "x"] * 3


def test_a_column_that_numbers_the_nodes_in_another_order(tmp_path):
    x = "person,a\n" + "".join(f"{i},{i / 7}\n" for i in (3, 1, 0, 2))
    with pytest.raises(ValueError, match="if these are the nodes, call the column id"):
        read(tmp_path, ring("0123"), x)
    data = read(tmp_path, ring("0123"), x, id_column="person")
    assert data.names == ("3", "1", "0", "2")


def test_a_blank_line_in_one_column_is_a_node_without_a_value(tmp_path):
    y = "label\na\nb\n\nb\na\nb\na\n\n\n"
    assert read(tmp_path, ring("0123456"), y=y).labels.tolist() == [0, 1, -1, 1, 0, 1, 0]
    with pytest.raises(ValueError, match=r"line 4, column 'a': the cell is empty"):
        read(tmp_path, ring("012"), "a\n1\n2\n\n3\n")


def test_a_row_of_empty_cells_is_a_row(tmp_path):
    for x in ("a,b\n1,2\n,\n3,4\n", "a,b\n1,2\n3,4\n,\n"):
        with pytest.raises(ValueError, match=r"column 'a': the cell is empty"):
            read(tmp_path, ring("012"), x)


@pytest.mark.parametrize("x", ['id,a\n0,1\n1,"2\n2,3\n', 'id,a\n0,1\n1,"2\n2,3"\n3,4\n', 'id,a\n"0"x,1\n'])
def test_a_quote_that_swallows_lines_is_refused(tmp_path, x):
    with pytest.raises(ValueError, match=r"x\.csv, line \d: .*; correct the line$"):
        read(tmp_path, ring("0123"), x)


@pytest.mark.parametrize("cell", ["1_0", "0x1f", "1,5", "١_٢", "True", "1 2"])
def test_cells_that_are_not_plain_numbers_are_refused(tmp_path, cell):
    with pytest.raises(ValueError, match="is not a number"):
        read(tmp_path, "source\ttarget\n0\t1\n", f"id\ta\n0\t1\n1\t{cell}\n", ending="tsv")


def test_dates_are_not_numbers(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[ns]")
    parquet.write_table(pyarrow.table({"id": ["0", "1"], "day": days}), tmp_path / "x.parquet")
    (tmp_path / "e.csv").write_text("source,target\n0,1\n")
    with pytest.raises(ValueError, match="is not a number"):
        datasets.from_files(tmp_path / "e.csv", tmp_path / "x.parquet")


def test_signals_keep_their_digits(tmp_path):
    values = [0.1, 16777217.0, 1e-40, 1 + 2**-52, -3e300]
    (tmp_path / "e.csv").write_text(ring("01234"))
    (tmp_path / "x.csv").write_text("key,id\n" + "".join(f"{i},{v!r}\n" for i, v in enumerate(values)))
    found = read_signals(tmp_path / "e.csv", tmp_path / "x.csv", Columns(id="key"))
    assert found.values[:, 0].tolist() == values
    assert (found.id_name, found.names) == ("key", ("id",))


def test_numbers_beyond_float32_are_refused_as_features(tmp_path):
    for value in ("1e39", "-3e300"):
        with pytest.raises(ValueError, match="bring it to another scale, since features are float32"):
            read(tmp_path, ring("012"), f"id,a\n0,1\n1,{value}\n2,0.5\n")


# -- damage and bombs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_damaged_gz_ends_in_a_sentence(tmp_path, seed):
    random = np.random.default_rng(seed)
    sound = gzip.compress(ring(list(map(str, range(60)))).encode())
    file = tmp_path / "e.csv.gz"
    for _ in range(40):
        data = bytearray(sound)
        for place in random.integers(len(data), size=random.integers(1, 4)):
            data[place] ^= 1 << int(random.integers(8))
        file.write_bytes(bytes(data[: random.integers(1, len(data) + 1)] if random.random() < 0.3 else data))
        try:
            found = datasets.from_files(file)
        except ValueError as problem:
            assert "e.csv.gz" in str(problem)  # noqa: PT017
        else:
            assert found.nodes == 60  # a flag or the time in the header


@pytest.mark.parametrize("lost", ["data", "indices", "indptr", "shape", "format"])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("part", ["edges", "features"])
def test_a_scipy_matrix_that_lacks_a_part(tmp_path, lost, kind, part):
    scipy.sparse.save_npz(tmp_path / "m.npz", scipy.sparse.csr_array(np.eye(3)).asformat(kind))
    held = dict(np.load(tmp_path / "m.npz"))
    if lost not in held:
        lost = {"indices": "row", "indptr": "col"}[lost]
    np.savez(tmp_path / "m.npz", **{name: value for name, value in held.items() if name != lost})
    (tmp_path / "e.csv").write_text(ring("012"))
    paths = (tmp_path / "m.npz",) if part == "edges" else (tmp_path / "e.csv", tmp_path / "m.npz")
    with pytest.raises(ValueError, match=r"m\.npz"):
        datasets.from_files(*paths)


@pytest.mark.parametrize("what", [
    {"indices": np.array([0, 9, 2])}, {"indices": np.array([0, -1, 2])}, {"indptr": np.array([0, 2, 1, 3])}, {"indptr": np.array([0, 3])},
    {"data": np.ones(2)}, {"shape": np.array([3])}, {"shape": np.array([3, 10**17])}, {"indices": np.ones(3)}, {"format": np.array(b"dia")},
    {"data": np.array([1, 2, 3 + 1j])}, {"data": np.ones((3, 1))}, {"shape": np.array([-3, 3])},
])  # fmt: skip
def test_a_scipy_matrix_whose_parts_do_not_fit(tmp_path, what):
    """SciPy would read beyond its memory."""
    scipy.sparse.save_npz(tmp_path / "m.npz", scipy.sparse.csr_array(np.eye(3)))
    np.savez(tmp_path / "m.npz", **(dict(np.load(tmp_path / "m.npz")) | what))
    (tmp_path / "e.csv").write_text(ring("012"))
    for paths in ((tmp_path / "m.npz",), (tmp_path / "e.csv", tmp_path / "m.npz")):
        with pytest.raises(ValueError, match=r"m\.npz is damaged"):
            datasets.from_files(*paths)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_every_kind_of_scipy_matrix_is_read(tmp_path, kind):
    random = np.random.default_rng(0)
    matrix = scipy.sparse.random_array((7, 5), density=0.4, rng=random, format=kind)
    scipy.sparse.save_npz(tmp_path / "x.npz", matrix)
    (tmp_path / "e.csv").write_text(ring("0123456"))
    found = read_signals(tmp_path / "e.csv", tmp_path / "x.npz", Columns())
    assert np.array_equal(found.values, matrix.toarray())


@pytest.mark.parametrize("encoding", ["klingon", "utf-7", "cp1252", "shift_jis", "idna", "utf-16", "rot13", "hex"])
def test_xml_of_any_encoding_is_read_or_refused(tmp_path, encoding):
    text = f"<?xml version='1.0' encoding='{encoding}'?><graphml><graph><node id='a'/><node id='b'/><edge source='a' target='b'/></graph></graphml>"
    (tmp_path / "g.graphml").write_text(text)
    try:
        assert datasets.from_files(tmp_path / "g.graphml").nodes == 2
    except ValueError as problem:
        assert "g.graphml is not well-formed GraphML" in str(problem)  # noqa: PT017


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setenv("UNSPOOL_LARGEST_GB", "0.01")


def bomb(kind, place):
    """A few kilobytes that unpack to fifty megabytes."""
    size = 50 * 2**20
    if kind == "gz":
        (place / "b.csv.gz").write_bytes(gzip.compress(b"0,1\n" * (size // 4)))
        return place / "b.csv.gz"
    if kind == "npz":
        np.savez_compressed(place / "b.npz", edge_index=np.zeros((2, size // 16), dtype=np.int64))
        return place / "b.npz"
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(
        pyarrow.table({"source": ["0" * 100] * (size // 100), "target": ["1"] * (size // 100)}), place / "b.parquet"
    )
    return place / "b.parquet"


@pytest.mark.long
@pytest.mark.parametrize("kind", ["gz", "npz", "parquet"])
def test_bombs_are_refused_by_their_size(tmp_path, small_limit, kind):
    pytest.importorskip("pyarrow")
    file = bomb(kind, tmp_path)
    assert file.stat().st_size < 2**18
    with pytest.raises(ValueError, match=r"unpacks to .* GB.* allowed; if that is right, set UNSPOOL_LARGEST_GB="):
        datasets.from_files(file)


def test_an_array_that_claims_to_be_huge_is_refused(tmp_path):
    head = io.BytesIO()
    npy.write_array_header_1_0(head, {"descr": "<i8", "fortran_order": False, "shape": (2, 10**14)})
    (tmp_path / "b.npy").write_bytes(head.getvalue() + bytes(64))
    with pytest.raises((ValueError, MemoryError)):
        datasets.from_files(tmp_path / "b.npy")
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("edge_index.npy", head.getvalue() + bytes(64))
    with pytest.raises((ValueError, MemoryError)):
        datasets.from_files(tmp_path / "b.npz")


@pytest.mark.parametrize("told", ["much", "-", "1e400"])
def test_a_limit_that_is_no_number(tmp_path, monkeypatch, told):
    monkeypatch.setenv("UNSPOOL_LARGEST_GB", told)
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(b"0,1\n"))
    with pytest.raises(ValueError, match=r"UNSPOOL_LARGEST_GB=.*: expected a number of gigabytes"):
        datasets.from_files(tmp_path / "e.csv.gz")


def test_text_that_is_none_is_refused(tmp_path):
    """Python ends in a SystemError when it makes a string of it."""
    (tmp_path / "e.csv").write_text(ring("0123"))
    for order in "<>":
        np.save(tmp_path / "y.npy", np.full(4, 0x7FFFFFFF, dtype=f"{order}u4").view(f"{order}U1"))
        with pytest.raises(ValueError, match=r"y\.npy is damaged"):
            datasets.from_files(tmp_path / "e.csv", None, tmp_path / "y.npy")
