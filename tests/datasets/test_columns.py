"""Columns of tables by request: left out, one for each category, weights of edges, names."""

import numpy as np
import pytest
import torch

from unspool import datasets
from unspool.datasets.one_hot import MOST
from unspool.errors import DataError, InputError

EDGES = "source,target,calls,since\na,b,2,1999\nb,c,3,2001\nc,d,1,2003\nd,a,5,2004\n"
PEOPLE = "id,age,plan,note,team\na,31,pro,hello,red\nb,45,,bye,red\nc,28,basic,so,blue\nd,50,pro,yes,blue\n"


def read(place, edges=EDGES, people=PEOPLE, **how):
    (place / "e.csv").write_text(edges)
    (place / "x.csv").write_text(people)
    usual = {"label_column": "team", "directed": False, "split": lambda d: datasets.Split([0], [2], [3], 4)}
    return datasets.from_files(place / "e.csv", place / "x.csv", **{**usual, **how})


def dense(data):
    x = data.features
    return (x if isinstance(x, torch.Tensor) else x.to_dense()).tolist()


def test_categories_become_columns_in_the_place_of_theirs(tmp_path):
    data = read(tmp_path, drop_columns=["note"], one_hot=["plan"])
    assert data.feature_names == ("age", "plan=basic", "plan=pro")
    assert dense(data) == [[31, 0, 1], [45, 0, 0], [28, 1, 0], [50, 0, 1]]
    assert data.categories == {"plan": ("basic", "pro")}
    assert any("1 empty" in note for note in data.notes)
    assert data.largest_component().categories == data.row_normalised().categories == data.categories


def test_known_categories_keep_their_order_and_their_columns(tmp_path):
    data = read(tmp_path, drop_columns=["note"], one_hot={"plan": ["pro", "gold", "basic"]})
    assert data.feature_names == ("age", "plan=pro", "plan=gold", "plan=basic")
    assert dense(data)[2] == [28, 0, 0, 1]


@pytest.mark.parametrize(
    ("how", "argument"),
    [
        ({"one_hot": ["team"]}, "one_hot"),
        ({"one_hot": ["plan"], "feature_columns": ["age"]}, "one_hot"),
        ({"drop_columns": ["nope"], "feature_columns": ["age"]}, "drop_columns"),
        ({"drop_columns": ["age"], "feature_columns": ["age"]}, "drop_columns"),
        ({"drop_columns": ["team"], "feature_columns": ["age"]}, "drop_columns"),
        ({"drop_columns": ["plan"], "one_hot": ["plan"]}, "drop_columns"),
        ({"drop_columns": ["id"], "id_column": "id"}, "drop_columns"),
    ],
)
def test_requests_that_contradict_each_other(tmp_path, how, argument):
    with pytest.raises(InputError) as caught:
        read(tmp_path, **how)
    assert caught.value.argument == argument


def test_an_unknown_category_is_refused_where_it_stands(tmp_path):
    with pytest.raises(DataError) as caught:
        read(tmp_path, drop_columns=["note"], one_hot={"plan": ["basic"]})
    assert caught.value.where == "x.csv, line 2, column 'plan'"


def test_a_category_that_would_take_the_name_of_another_column(tmp_path):
    people = (
        PEOPLE.replace("note", "plan=pro")
        .replace("hello", "1")
        .replace("bye", "2")
        .replace("so", "3")
        .replace("yes", "4")
    )
    with pytest.raises(ValueError, match="two columns called 'plan=pro'"):
        read(tmp_path, people=people, one_hot=["plan"])


def test_very_many_categories(tmp_path):
    """Ten thousand make a sparse matrix; more are taken for names."""
    for many, fits in ((MOST, True), (MOST + 1, False)):
        (tmp_path / "x.csv").write_text("id,c\n" + "".join(f"{i},k{i}\n" for i in range(many)))
        (tmp_path / "e.csv").write_text("source,target\n0,1\n")
        if fits:
            data = datasets.from_files(tmp_path / "e.csv", tmp_path / "x.csv", one_hot=["c"], directed=False)
            assert tuple(data.features.shape) == (many, many)
            continue
        with pytest.raises(DataError, match="10001 categories"):
            datasets.from_files(tmp_path / "e.csv", tmp_path / "x.csv", one_hot=["c"], directed=False)


def test_texts_of_any_script_and_numbers_of_any_size_are_categories(tmp_path):
    rows = ["ж", "日本", "a,b", "10000000000000000000001"]
    text = "id,c\n" + "".join(f'{i},"{text}"\n' for i, text in enumerate(rows))
    (tmp_path / "x.csv").write_text(text)
    (tmp_path / "e.csv").write_text("source,target\n0,1\n")
    data = datasets.from_files(tmp_path / "e.csv", tmp_path / "x.csv", one_hot=["c"], directed=False)
    assert data.categories == {"c": tuple(sorted(rows))}


def test_columns_of_edges_are_named_and_one_may_be_the_weight(tmp_path):
    plain = read(tmp_path, feature_columns=["age"])
    assert plain.edge_weight is None
    assert any(note.endswith("not used: calls, since") for note in plain.notes)
    weighted = read(tmp_path, feature_columns=["age"], weight_column="calls")
    assert sorted(weighted.edge_weight.tolist()) == [1, 2, 3, 5]
    assert any(note.endswith("not used: since") for note in weighted.notes)
    assert not read(tmp_path, feature_columns=["age"], weight_column="calls", drop_columns=["since"]).notes
    by_place = read(tmp_path, feature_columns=["age"], edge_columns=["source", "target", "calls"])
    assert by_place.hash == weighted.hash
    with pytest.raises(InputError):
        read(tmp_path, feature_columns=["age"], edge_columns=["source", "target", "calls"], weight_column="since")
    with pytest.raises(ValueError, match="no column 'nope'"):
        read(tmp_path, feature_columns=["age"], weight_column="nope")


def test_a_weight_column_names_the_header_too(tmp_path):
    data = read(
        tmp_path,
        edges="x,y,calls\na,b,2\nb,c,1\n",
        feature_columns=["age"],
        edge_columns=["x", "y"],
        weight_column="calls",
    )
    assert sorted(data.edge_weight.tolist()) == [1, 2]


def test_attributes_of_graphml_edges(tmp_path):
    import networkx

    network = networkx.Graph()
    network.add_edge("a", "b", minutes=2.0, kind="x")
    network.add_edge("b", "c", minutes=3.0)
    networkx.write_graphml(network, tmp_path / "g.graphml")
    assert datasets.from_files(tmp_path / "g.graphml").notes[-1].endswith("not used: kind, minutes")
    assert datasets.from_files(tmp_path / "g.graphml", weight_column="minutes").edge_weight.tolist() == [2, 3]
    with pytest.raises(DataError, match="no edge has an attribute"):
        datasets.from_files(tmp_path / "g.graphml", weight_column="hours")
    np.savez(tmp_path / "e.npz", edge_index=np.array([[0], [1]]))
    with pytest.raises(InputError) as caught:
        datasets.from_files(tmp_path / "e.npz", weight_column="minutes")
    assert caught.value.argument == "weight_column"


def test_labels_beside_columns_that_are_dropped(tmp_path):
    (tmp_path / "y.csv").write_text("id,when,kind\na,1,red\nb,2,red\nc,3,blue\nd,4,blue\n")
    (tmp_path / "e.csv").write_text("source,target\na,b\nc,d\n")
    how = {"directed": False, "split": lambda d: datasets.Split([0], [2], [3], 4)}
    with pytest.raises(DataError, match="not clear which is the label"):
        datasets.from_files(tmp_path / "e.csv", labels=tmp_path / "y.csv", **how)
    data = datasets.from_files(tmp_path / "e.csv", labels=tmp_path / "y.csv", drop_columns=["when"], **how)
    assert data.classes == ("blue", "red")
