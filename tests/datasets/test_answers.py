"""What is asked of nodes, read from files: several labels, the order of classes, and how much each node counts."""

import numpy as np
import pytest
import scipy.sparse
import torch

from unspool import datasets
from unspool.errors import DataError, InputError

pytestmark = pytest.mark.filterwarnings("ignore::unspool.graph.EdgeDirectionWarning")

EDGES = "source,target\n" + "".join(f"{i},{(i + 1) % 8}\n" for i in range(8))
HEAD = "id,a,sport,music,size,visits,counted"
ROWS = [
    "0,1.5,1,0,low,3,1", "1,2.5,0,1,mid,0,2", "2,0.5,yes,,high,1,0.5", "3,1,no,true,low,2,0",
    "4,2,,,,,", "5,1,1.0,False,mid,4,1", "6,0,0,0,high,2,3", "7,3,1,1,low,1,1",
]  # fmt: skip


@pytest.fixture
def read(tmp_path):
    (tmp_path / "e.csv").write_text(EDGES)

    def made(head=HEAD, rows=ROWS, **columns):
        (tmp_path / "n.csv").write_text("\n".join([head, *rows]) + "\n")
        return datasets.from_files(tmp_path / "e.csv", tmp_path / "n.csv", feature_columns=["a"], **columns)

    return made


def test_several_labels_are_read_cell_by_cell(read):
    data = read(label_columns=["sport", "music"])
    nan = float("nan")
    wanted = [[1, 0], [0, 1], [1, nan], [0, 1], [nan, nan], [1, 0], [0, 0], [1, 1]]
    np.testing.assert_array_equal(data.targets.numpy(), wanted)
    assert data.classes == ("sport", "music")
    assert data.multilabel
    assert data.strata.tolist() == [0, 0, 0, 0, -1, 0, 0, 0]
    assert "2 labels, yes or no each" in repr(data)
    assert "1 nodes without a label" in repr(data)


def test_nodes_without_all_numbers_are_counted(read):
    rows = [f"{row},{'' if i in (1, 2) else i},{'' if i == 2 else i}" for i, row in enumerate(ROWS)]
    data = read(f"{HEAD},p,q", rows, target_columns=["p", "q"])
    assert data.strata.tolist() == [0, -1, -1, 0, 0, 0, 0, 0]
    assert "2 nodes without all of the numbers to predict" in repr(data)
    assert "1 nodes without the number to predict" in repr(read(f"{HEAD},p,q", rows, target_columns=["q"]))


def test_weights_are_read_beside_the_labels(read):
    data = read(target_columns=["visits"], sample_weight_column="counted")
    np.testing.assert_array_equal(data.sample_weight.numpy(), [1, 2, 0.5, 0, np.nan, 1, 3, 1])
    assert read(target_columns=["visits"]).hash != data.hash
    part = data.largest_component()
    assert part.sample_weight.shape == (part.nodes,)


def test_weights_and_answers_are_not_features(read, tmp_path):
    read()
    rows = ["id,a,visits,counted", *(f"{i},{i},{i},{1 + i}" for i in range(8))]
    (tmp_path / "n.csv").write_text("\n".join(rows) + "\n")
    data = datasets.from_files(
        tmp_path / "e.csv", tmp_path / "n.csv", target_columns=["visits"], sample_weight_column="counted"
    )
    assert data.feature_names == ("a",)


def test_a_file_of_labels_has_its_weights_beside_them(read, tmp_path):
    read()
    rows = ["id,size,w", *(f"{i},{('low', 'high')[i % 2]},{1 + i}" for i in reversed(range(8)))]
    (tmp_path / "y.csv").write_text("\n".join(rows) + "\n")
    data = datasets.from_files(
        tmp_path / "e.csv", tmp_path / "n.csv", tmp_path / "y.csv", feature_columns=["a"], sample_weight_column="w"
    )
    assert data.sample_weight.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert data.labels.tolist() == [1, 0] * 4


def test_classes_are_numbered_in_their_order(read):
    data = read(label_column="size", class_order=["low", "mid", "high"], split=lambda d: None)
    assert data.labels.tolist() == [0, 1, 2, 0, -1, 1, 2, 0]
    assert data.ordered
    assert "3 classes in order" in repr(data)
    plain = read(label_column="size", split=lambda d: None)
    assert not plain.ordered
    assert plain.hash != data.hash
    assert plain.in_order(data.classes).hash == data.hash


def test_sparse_tables_of_labels_are_read():
    table = scipy.sparse.csr_array(np.array([[1, 0], [1, 1], [0, 0], [0, 1], [1, 0], [0, 1]]))
    data = datasets.from_tensors([[0, 1], [1, 0]], labels=table)
    assert torch.equal(data.targets, torch.tensor(table.toarray()).float())


ARGUMENTS = {
    "one of several": ({"label_columns": ["sport"]}, "label_columns"),
    "one twice": ({"label_columns": ["sport", "sport"]}, "label_columns"),
    "labels and numbers": ({"label_columns": ["sport", "music"], "target_columns": ["visits"]}, "label_columns"),
    "a class and labels": ({"label_column": "size", "label_columns": ["sport", "music"]}, "label_column"),
    "weights of nothing": ({"sample_weight_column": "counted"}, "sample_weight_column"),
    "an order of numbers": ({"target_columns": ["visits"], "class_order": ["low", "mid"]}, "class_order"),
    "an order of others": ({"label_column": "size", "class_order": ["low", "mid"]}, "class_order"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_what_does_not_go_together(read, case):
    columns, argument = ARGUMENTS[case]
    with pytest.raises(InputError) as caught:
        read(**columns)
    assert caught.value.argument == argument


CELLS = {
    "a share": ({"label_columns": ["sport", "music"]}, "0,1,0.5,0,low,3,1", "n.csv, line 2, column 'sport'", "'0.5'"),
    "minus one": ({"label_columns": ["sport", "music"]}, "0,1,1,-1,low,3,1", "n.csv, line 2, column 'music'", "'-1'"),
    "negative": ({"label_column": "size", "sample_weight_column": "counted"}, "0,1,1,1,low,3,-1", "n.csv, line 2, column 'counted'", "'-1'"),
    "a word": ({"label_column": "size", "sample_weight_column": "counted"}, "0,1,1,1,low,3,much", "n.csv, line 2, column 'counted'", "'much'"),
    "infinite": ({"label_column": "size", "sample_weight_column": "counted"}, "0,1,1,1,low,3,inf", "n.csv, line 2, column 'counted'", "'inf'"),
}  # fmt: skip


@pytest.mark.parametrize("case", CELLS)
def test_cells_that_are_neither(read, case):
    columns, first, where, told = CELLS[case]
    with pytest.raises(DataError) as caught:
        read(rows=[first, *ROWS[1:]], **columns)
    assert caught.value.where == where
    assert told in caught.value.problem


def test_a_column_that_is_not_there(read):
    with pytest.raises(ValueError, match="nothere"):
        read(label_column="size", sample_weight_column="nothere")


def test_labels_and_targets_are_one_answer_too_many():
    with pytest.raises(InputError) as caught:
        datasets.from_tensors([[0, 1], [1, 0]], labels=[[1, 0], [1, 1]] * 3, targets=[1.0] * 6)
    assert caught.value.argument == "labels"
