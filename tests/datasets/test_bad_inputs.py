"""Every malformed input has its sentence, with the culprit and the way out.

``tools/bad_inputs.py`` makes a page of the documentation of it.
"""

import gzip

import numpy as np
import pytest
import scipy.sparse
import torch

from unspool import datasets

EDGES = "source,target\n0,1\n1,2\n2,3\n3,4\n4,5\n"
X = "id,a,b\n0,1,2\n1,1,2\n2,1,2\n3,1,2\n4,1,2\n5,1,2\n"
Y = "id,label\n0,x\n1,x\n2,x\n3,y\n4,y\n5,y\n"


def files(place, e=EDGES, x=X, y=Y, ending="csv", **how):
    """Write what is given and load it."""
    for name, content in (("e", e), ("x", x), ("y", y)):
        if content is not None:
            data = content.encode() if isinstance(content, str) else content
            (place / f"{name}.{ending}").write_bytes(data)
    paths = [
        place / f"{name}.{ending}" if content is not None else None for name, content in (("e", e), ("x", x), ("y", y))
    ]
    return datasets.from_files(*paths, **how)


def arrays(place, name, **held):
    np.savez(place / name, **held)
    return place / name


ONES = np.ones((6, 2))


def tensors(index=((0, 1, 2, 3, 4), (1, 2, 3, 4, 5)), x=ONES, y=(0, 0, 0, 1, 1, 1), **how):
    return datasets.from_tensors([list(side) for side in index], x, y, **how)


def weighted(text):
    return "source,target,weight\n0,1,1\n1,2," + text + "\n"


#: (what is wrong, how, the sentence); {} stands for the folder.
CASES = [
    # edge lists
    ("an edge list names an unknown node", lambda p: files(p, e=EDGES + "5,eve\n"), "e.csv, line 7: node 'eve' is not among the 6 nodes of x.csv; add it there, or drop the line"),
    ("the edge file does not exist", lambda p: datasets.from_files(p / "no.csv"), "{}/no.csv does not exist; check the path"),
    ("the edge file is a folder", datasets.from_files, "{} is a folder, not a file; check the path"),
    ("the edge file is empty", lambda p: files(p, e=""), "{}/e.csv is empty; is it complete?"),
    ("the edge file holds only comments", lambda p: files(p, e="# nothing\n\n"), "{}/e.csv is empty; is it complete?"),
    ("the edge file holds only a header", lambda p: files(p, e="source,target\n"), "{}/e.csv holds a header and no rows; is it complete?"),
    ("an unknown ending", lambda p: files(p, ending="xlsx"), "{}/e.xlsx: edges ending in '.xlsx' are not supported; use .csv, .tsv, .txt, .parquet, .npz, .npy, .graphml or .pt"),
    ("one column of edges", lambda p: files(p, e="0;1\n1;2\n"), "{}/e.csv has 1 column, not 2 or 3 (source, target, weight); is the separator right?"),
    ("four columns of edges without names", lambda p: files(p, e="0,1,2,3\n"), "{}/e.csv has 4 columns, not 2 or 3 (source, target, weight); if the first line is a header, name two of its columns: edge_columns=..."),
    ("a header with unknown names", lambda p: files(p, e="a,b,since\n0,1,1999\n"), "e.csv, line 1: the third column is 'since', which is not a weight; if this line is a header, name its columns: edge_columns=..."),
    ("a header with two unknown names", lambda p: files(p, e="person,friend\n0,1\n1,2\n", x=None, y=None), "e.csv, line 1: 'person', 'friend' looks like a header; name its columns: edge_columns=..."),
    ("a header among names", lambda p: files(p, e="person,friend\na,b\n"), "e.csv, line 1: node 'person' is not among the 6 nodes of x.csv; add it there, or drop the line; if the line is a header, name its columns: edge_columns=..."),
    ("a header without a target", lambda p: files(p, e="source,goal\n0,1\n"), "{}/e.csv: it has no columns source and target (it has source, goal); name them: edge_columns=..."),
    ("a named edge column that is not there", lambda p: files(p, edge_columns=("a", "b")), "{}/e.csv has no column 'a'; it has source, target"),
    ("one name for two edge columns", lambda p: files(p, edge_columns=("source",)), "edge_columns=['source']: expected source, target and, if any, weight"),
    ("a line with too many cells", lambda p: files(p, e=EDGES + "1,2,3\n"), "e.csv, line 7: 3 columns, but line 1 has 2; correct the line"),
    ("a line without a target", lambda p: files(p, e=EDGES + "1,\n"), "e.csv, line 7, column 'target': the node is missing; correct the line"),
    ("a negative weight", lambda p: files(p, e=weighted("-2")), "e.csv, line 3: the weight is -2, but weights must not be negative; for dissimilar neighbours give signed weights to EdgeSmoothness instead"),
    ("a weight that is text", lambda p: files(p, e=weighted("big")), "e.csv, line 3, column 'weight': 'big' is not a number; encode it, or leave the column out"),
    ("a weight that is missing", lambda p: files(p, e=weighted("")), "e.csv, line 3, column 'weight': the cell is empty; fill it or drop the row"),
    ("an infinite weight", lambda p: files(p, e=weighted("inf")), "e.csv, line 3, column 'weight': inf is not a finite number; fill or drop it"),
    ("text that is not text", lambda p: files(p, e=b"\xff\xfe0,1\n"), "{}/e.csv is not UTF-8 text; save it as UTF-8, or give it its true ending"),
    ("a damaged npz", lambda p: ((p / "e.npz").write_bytes(b"PK junk"), datasets.from_files(p / "e.npz")), "{}/e.npz is damaged or not a numpy file (ValueError); make it again"),
    ("an npz without edges", lambda p: datasets.from_files(arrays(p, "e.npz", a=[1], b=[2])), "{}/e.npz holds a, b: expected edge_index of shape (2, edges), or a matrix of scipy.sparse.save_npz"),
    ("an edge_index of floats", lambda p: datasets.from_files(arrays(p, "e.npz", edge_index=[[0.5], [1]])), "{}/e.npz: edge_index holds float64 of shape (2, 1): expected integers of shape (2, edges)"),
    ("an edge_index on its side", lambda p: datasets.from_files(arrays(p, "e.npz", edge_index=[[0, 1], [1, 2], [2, 0]])), "{}/e.npz: edge_index holds int64 of shape (3, 2): expected integers of shape (2, edges)"),
    ("weights of another length", lambda p: datasets.from_files(arrays(p, "e.npz", edge_index=[[0], [1]], edge_weight=[1, 2])), "{}/e.npz: edge_weight has shape (2,), but there is 1 edge"),
    ("a negative weight in an npz", lambda p: datasets.from_files(arrays(p, "e.npz", edge_index=[[0], [1]], edge_weight=[-1.0])), "e.npz, edge 0: the weight is -1, but weights are finite and not negative"),
    ("a matrix that is not square", lambda p: (scipy.sparse.save_npz(p / "m.npz", scipy.sparse.csr_array(np.ones((2, 3)))), datasets.from_files(p / "m.npz")), "{}/m.npz: the adjacency matrix has shape (2, 3): it must be square"),
    ("a matrix without its values", lambda p: datasets.from_files(arrays(p, "m.npz", indices=[0], indptr=[0, 1], shape=[1, 1], format=b"csr")), "{}/m.npz is damaged (a sparse matrix without 'data'); write it with scipy.sparse.save_npz"),
    ("a matrix whose columns leave it", lambda p: datasets.from_files(arrays(p, "m.npz", data=[1.0], indices=[7], indptr=[0, 1], shape=[1, 1], format=b"csr")), "{}/m.npz is damaged (column 7 of 1 in a sparse matrix); write it with scipy.sparse.save_npz"),
    ("compressed text that is damaged", lambda p: ((p / "e.csv.gz").write_bytes(gzip.compress(b"0,1\n")[:-9]), datasets.from_files(p / "e.csv.gz")), "{}/e.csv.gz is damaged (Compressed file ended before the end-of-stream marker was reached); make it again"),
    ("a quote that is never closed", lambda p: files(p, e=EDGES + '5,"0\n'), "e.csv, line 7: unexpected end of data; correct the line"),
    ("a line that may be a comment", lambda p: files(p, e=EDGES + "#5,0\n"), "e.csv, line 7 begins with #: comments are allowed at the top only; drop the line, or the # if it is not a comment"),
    ("a first edge that may be a comment", lambda p: files(p, e="#love,peace\nlove,war\n", x=None, y=None), "e.csv, line 1 begins with #: write a space after it if the line is a comment, or give the file a header (source, target) if it is an edge"),
    ("columns of edges that are counted", lambda p: files(p, e="0,1,2\n0,1,0.5\n"), "e.csv, line 1: 0, 1, 2 may be the names of the columns, as pandas numbers them: call them source, target and weight; if it is an edge, write its weight as 2.0"),
    ("GraphML of an unknown encoding", lambda p: ((p / "g.graphml").write_text("<?xml version='1.0' encoding='klingon'?><graphml/>"), datasets.from_files(p / "g.graphml")), "{}/g.graphml is not well-formed GraphML (unknown encoding: klingon); export it again"),
    ("GraphML that is not XML", lambda p: ((p / "g.graphml").write_text("<graph"), datasets.from_files(p / "g.graphml")), "{}/g.graphml is not well-formed GraphML (unclosed token: line 1, column 0); export it again"),
    ("XML without a graph", lambda p: ((p / "g.graphml").write_text("<graphml/>"), datasets.from_files(p / "g.graphml")), "{}/g.graphml holds no graph; export it again as GraphML"),
    ("GraphML with a node twice", lambda p: ((p / "g.graphml").write_text("<graphml><graph><node id='a'/><node id='a'/></graph></graphml>"), datasets.from_files(p / "g.graphml")), "g.graphml lists node 'a' twice; every node needs its own id"),
    ("GraphML with an edge to nowhere", lambda p: ((p / "g.graphml").write_text("<graphml><graph><node id='a'/><edge source='a' target='b'/></graph></graphml>"), datasets.from_files(p / "g.graphml")), "g.graphml, edge 0: node 'b' is not among its 1 nodes; export it again"),
    # features
    ("a feature that is NaN", lambda p: files(p, x=X.replace("3,1,2", "3,1,nan")), "x.csv, line 5, column 'b': nan is not a finite number; fill or drop it"),
    ("a feature that is missing", lambda p: files(p, x=X.replace("3,1,2", "3,1,")), "x.csv, line 5, column 'b': the cell is empty; fill it or drop the row"),
    ("a feature that is text", lambda p: files(p, x=X.replace("3,1,2", "3,tall,2")), "x.csv, line 5, column 'a': 'tall' is not a number; leave the column out with drop_columns=a, or give each category a column with one_hot=a"),
    ("a feature too large for float32", lambda p: files(p, x=X.replace("3,1,2", "3,1e39,2")), "features: row 3, column 0 is 1e+39; bring it to another scale, since features are float32"),
    ("a number as Python writes it", lambda p: files(p, x=X.replace("3,1,2", "3,1_0,2")), "x.csv, line 5, column 'a': '1_0' is not a number; leave the column out with drop_columns=a, or give each category a column with one_hot=a"),
    ("a comment in a table of nodes", lambda p: files(p, x="# made by hand\n" + X), "x.csv, line 1 begins with #: tables of nodes have no comments; drop the line, or the # if it is not a comment"),
    ("a header behind a hash", lambda p: files(p, x="#" + X), "x.csv, line 1 begins with #: tables of nodes have no comments; drop the line, or the # if it is not a comment"),
    ("columns that are counted", lambda p: files(p, x="0,1,2\n" + "0.5,1,2\n" * 6), "x.csv, line 1: 0, 1, 2 may be the names of the columns (pandas numbers them like this) or the first node; say which with header=..."),
    ("two columns of one name", lambda p: files(p, x=X.replace("id,a,b", "id,a,a")), "{}/x.csv has two columns called 'a'; rename one"),
    ("a feature named twice", lambda p: files(p, feature_columns=["a", "a"]), "feature_columns: expected each column once, and 'a' is named twice"),
    ("the nodes' names as a feature", lambda p: files(p, feature_columns=["id", "a"]), "{}/x.csv: column 'id' names the nodes; take it out of feature_columns=..."),
    ("the answer among the features", lambda p: files(p, y=None, feature_columns=["a", "b"], label_column="b"), "feature_columns: expected columns to learn from, and 'b' is what is to be predicted; take it out"),
    ("nodes numbered in a column that is not called id", lambda p: files(p, x="who,a\n3,1\n1,1\n0,1\n2,1\n5,1\n4,1\n"), "{}/x.csv, column 'who' holds each of 0 to 5 once, in another order than the rows: if these are the nodes, call the column id; if not, name the nodes in a column called id"),
    ("a node with two rows of features", lambda p: files(p, x=X.replace("5,1,2", "2,1,2")), "x.csv, line 7: node '2' is in line 4 already; keep one"),
    ("a row of features without an id", lambda p: files(p, x=X.replace("5,1,2", ",1,2")), "x.csv, line 7, column 'id': the node's id is missing; correct the line"),
    ("a table of ids alone", lambda p: files(p, x="id\n0\n1\n"), "{}/x.csv: it has no column of features next to the ids; add one, or leave features=... out"),
    ("a feature column that is not there", lambda p: files(p, feature_columns=["c"]), "{}/x.csv has no column 'c'; it has id, a, b"),
    ("an id column that is not there", lambda p: files(p, x="1,2\n3,4\n", id_column="key"), "{}/x.csv has no header, so it has no column 'key'; add a first line with names"),
    ("features of an unknown format", lambda p: ((p / "e.csv").write_text(EDGES), (p / "x.json").write_text("{}"), datasets.from_files(p / "e.csv", p / "x.json")), "{}/x.json: features ending in '.json' are not supported; use .csv, .tsv, .txt, .parquet, .npy or .npz"),
    ("a damaged npy of features", lambda p: ((p / "e.csv").write_text(EDGES), (p / "x.npy").write_bytes(b"junk"), datasets.from_files(p / "e.csv", p / "x.npy")), "{}/x.npy is damaged or of another format (ValueError); write it with numpy.save"),
    ("an npz that is no SciPy matrix", lambda p: ((p / "e.csv").write_text(EDGES), datasets.from_files(p / "e.csv", arrays(p, "x.npz", a=[1]))), "{}/x.npz is damaged or of another format (a sparse matrix of the format '?', not csr, csc or coo); write it with scipy.sparse.save_npz"),
    ("features of one dimension", lambda p: ((p / "e.csv").write_text(EDGES), np.save(p / "x.npy", np.ones(6)), datasets.from_files(p / "e.csv", p / "x.npy")), "{}/x.npy holds float64 of shape (6,): expected numbers of shape (nodes, features)"),
    ("a Parquet file that is none", lambda p: (pytest.importorskip("pyarrow"), (p / "e.parquet").write_bytes(b"junk"), datasets.from_files(p / "e.parquet")), "{}/e.parquet is damaged or not a Parquet file (ArrowInvalid); make it again"),
    # labels
    ("a class with one example", lambda p: files(p, y=Y.replace("5,y", "5,rare")), "class 'rare' has only one example, so train, valid and test cannot each have one; merge it with another class, remove its labels, or pass a split of your own"),
    ("a label column with floats", lambda p: files(p, y="id,label\n0,1.5\n1,2.0\n"), "y.csv, line 2, column 'label': 1.5 is not a class: labels are whole numbers or names; numbers to predict are named with target_columns=..."),
    ("one class written in two ways", lambda p: files(p, y="id,label\n0,1\n1,1.0\n"), "y.csv, line 3, column 'label': the label is 1.0, and another is 1: the same number, written differently; write it one way"),
    ("labels of named nodes in a column of unknown name", lambda p: files(p, y="who,label\n" + Y.partition("\n")[2]), "{}/y.csv: it has the columns who, label, and it is not clear which names the nodes; name it with id_column=..., or call it id"),
    ("a label for an unknown node", lambda p: files(p, y=Y + "9,x\n"), "y.csv, line 8: node '9' is not among the 6 nodes of x.csv; add it there, or drop the line"),
    ("a node with two labels", lambda p: files(p, y=Y + "0,y\n"), "y.csv, line 8: node '0' is in line 2 already; keep one"),
    ("too few labels", lambda p: files(p, y="label\n1\n0\n"), "y.csv has 2 labels for the 6 nodes of x.csv; give one row per node, or an id column"),
    ("two columns that may be labels", lambda p: files(p, y="id,team,town\n0,x,y\n"), "{}/y.csv: it has the columns id, team, town, and it is not clear which is the label; name it with label_column=..."),
    ("a label column that is not there", lambda p: files(p, label_column="team"), "{}/y.csv has no column 'team'; it has id, label"),
    ("no label at all", lambda p: files(p, y="id,label\n0,\n1,-1\n"), "{}/y.csv, column 'label' holds no label at all; is it the right column?"),
    ("a label column and no table", lambda p: files(p, x=None, y=None, label_column="team"), "label_column='team': expected a column of a table, and there is none; give one with labels=... or features=..."),
    ("feature columns and no table", lambda p: files(p, x=None, y=None, feature_columns=["a"]), "feature_columns=['a']: expected columns of a table, and there is none; give one with features=..."),
    ("labels of an unknown format", lambda p: ((p / "y.json").write_text("{}"), (p / "e.csv").write_text(EDGES), datasets.from_files(p / "e.csv", labels=p / "y.json")), "{}/y.json: labels ending in '.json' are not supported; use .csv, .tsv, .txt, .parquet or .npy"),
    ("an unknown part in a split column", lambda p: files(p, y="id,label,part\n0,x,train\n1,x,dev\n", split_column="part"), "y.csv, line 3, column 'part': 'dev' is not a part; use train, valid, test or nothing"),
    ("a split column without test nodes", lambda p: files(p, y="id,label,part\n0,x,train\n1,x,valid\n", split_column="part"), "the split is empty: it has no test nodes; every part needs at least one"),
    ("a label column in an array", lambda p: ((p / "e.csv").write_text(EDGES), np.save(p / "x.npy", ONES), datasets.from_files(p / "e.csv", p / "x.npy", label_column="team")), "{}/x.npy: it has no columns, so no 'team'; give a table with labels=..."),
    ("a split column in an array", lambda p: ((p / "e.csv").write_text(EDGES), np.save(p / "y.npy", [0, 1]), datasets.from_files(p / "e.csv", None, p / "y.npy", split_column="part")), "{}/y.npy: it has no columns, so no 'part'; use a table, or split=..."),
    ("a split column without labels", lambda p: files(p, y=None, split_column="part"), "split_column='part': expected labels or numbers as well; name them with labels=... or label_column=..."),
    # tensors
    ("an edge beyond the features", lambda p: tensors(index=((0,), (7,))), "edge 0 names node 7, but node ids run from 0 to 5 (nodes=6)"),
    ("more labels than nodes", lambda p: tensors(y=(0, 1)), "2 labels for 6 nodes; give one per node, -1 where there is none"),
    ("more rows of features than nodes", lambda p: tensors(nodes=8, y=None), "6 rows of features for 8 nodes; give one row per node"),
    ("a NaN in a tensor", lambda p: tensors(x=torch.tensor([[1.0, 2.0]] * 5 + [[1.0, float("nan")]]), names=list("abcdef")), "features: row 5 (node 'f'), column 1 is nan; fill or drop it first"),
    ("a NaN in a sparse matrix", lambda p: tensors(x=scipy.sparse.coo_array(([np.nan], ([2], [1])), shape=(6, 3))), "features: row 2, column 1 is nan; fill or drop it first"),
    ("features that are text", lambda p: tensors(x=[["a"]] * 6), "features hold <U1: expected numbers; encode text first"),
    ("features of one dimension in a tensor", lambda p: tensors(x=torch.ones(6)), "features of shape (6,): expected (nodes, features), at least one of each"),
    ("labels with fractions", lambda p: tensors(y=torch.tensor([0, 0.5, 1, 1, 0, 0])), "the label of node 1: 0.5 is not a class: labels are whole numbers or names; numbers to predict are named with target_columns=..."),
    ("one-hot labels", lambda p: tensors(y=torch.eye(6)), "labels have shape (6, 6) and one yes in every row: for one-hot rows pass labels.argmax(1); for several labels per node add names as classes=..."),
    ("a label below -1", lambda p: tensors(y=(0, 0, 0, -5, 1, 1)), "the label of node 3 is -5: classes count from 0, and -1 marks nodes without a label"),
    ("a name twice", lambda p: tensors(names=list("abcdea")), "the node name 'a' is in rows 0 and 5; every node needs its own"),
    ("a class number that is a name", lambda p: tensors(y=(0, 0, 0, 2**53, 1, 1)), "the label of node 3 is 9007199254740992, but numbers of classes count from 0; give such names as text"),
    ("too few names", lambda p: tensors(names=list("abc")), "own data: 3 node names for 6 nodes; give one per node"),
    ("too few names of classes", lambda p: tensors(classes=["x"]), "own data: label 1 occurs, but there are names for 1 class"),
    ("a split of another graph", lambda p: tensors(split=datasets.Split([0], [1], [2], nodes=3)), "own data: the split is one of 3 nodes, the graph has 6"),
    ("a class with two examples", lambda p: tensors(y=(0, 0, 0, 0, 1, 1)), "class '1' has only two examples, so train, valid and test cannot each have one; merge it with another class, remove its labels, or pass a split of your own"),
    ("a graph without nodes", lambda p: datasets.from_tensors([[], []]), "the graph is empty: it needs at least one node (pass nodes=... to count isolated ones)"),
    ("a matrix that is dense", lambda p: datasets.from_scipy(np.eye(3)), "adjacency is a ndarray: expected a SciPy sparse matrix; wrap it in csr_array"),
    ("an adjacency that is not square", lambda p: datasets.from_scipy(scipy.sparse.csr_array(np.ones((2, 3)))), "the adjacency matrix has shape (2, 3): it must be square"),
    # names
    ("an unknown data set", lambda p: datasets.load("koraa"), "dataset='koraa': expected the name of a data set; did you mean cora? Your own files: edges=..."),
    ("a data set that is not here", lambda p: datasets.load("computers", p), "Computers: amazon_electronics_computers.npz is missing; put it at {}/Amazon/Computers/raw/amazon_electronics_computers.npz (published at https://github.com/shchur/gnn-benchmark/raw/master/data/npz/amazon_electronics_computers.npz), point UNSPOOL_DATA or root= at a folder that has Amazon/Computers/raw/amazon_electronics_computers.npz, or have it fetched with download=True"),
    ("regions beyond the grid", lambda p: datasets.grid(2, 2, regions=3), "regions=3: 4 nodes allow 1 to 1 regions"),
    ("homophily above one", lambda p: datasets.contextual_sbm(homophily=1.5), "homophily=1.5: the share of edges inside classes lies between 0 and 1"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "how", "sentence"), CASES, ids=[what for what, _, _ in CASES])
def test_the_sentence(tmp_path, what, how, sentence):
    with pytest.raises((FileNotFoundError, TypeError, ValueError)) as caught:
        how(tmp_path)
    assert str(caught.value) == sentence.replace("{}", str(tmp_path))


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "e.parquet").write_bytes(b"PAR1")
    with pytest.raises(
        ImportError,
        match=r"^reading e\.parquet needs pyarrow: pip install 'unspool\[parquet\]', or save the table as CSV$",
    ):
        datasets.from_files(tmp_path / "e.parquet")
