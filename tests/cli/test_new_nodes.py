"""unspool predict --new-nodes: what the whole enlarged graph says, from tables with the columns of the training."""

import csv
import json

import numpy as np
import pytest

from cli.people import ask, own, refuse, train, write_people

pytestmark = pytest.mark.long

OLD = 54


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """People of whom six come later, two of them without a friend, and models that were trained before."""
    place = write_people(tmp_path_factory.mktemp("people"))
    (place / "before").mkdir()
    head, *rows = (place / "people.csv").read_text().splitlines()
    old = {row.split(",")[0] for row in rows[:OLD]}
    shuffled = [",".join(reversed(row.split(","))) for row in (head, *rows[OLD:])]  # columns are found by name
    top, *lines = (place / "friends.csv").read_text().splitlines()
    lonely = {row.split(",")[0] for row in rows[-2:]}
    lines = [line for line in lines if not lonely & set(line.split(","))]
    before = [line for line in lines if set(line.split(",")) <= old]
    (place / "friends.csv").write_text("\n".join([top, *lines]) + "\n")
    (place / "before/people.csv").write_text("\n".join([head, *rows[:OLD]]) + "\n")
    (place / "before/friends.csv").write_text("\n".join([top, *before]) + "\n")
    (place / "people_new.csv").write_text("\n".join(shuffled) + "\n")
    (place / "friends_new.csv").write_text("\n".join([top, *(line for line in lines if line not in before)]) + "\n")
    train(place / "team", *own(place / "before", "--label-column", "team"), "--seeds", 2, epochs=40)
    train(place / "price", *own(place / "before", "--target-column", "price"), model="APPNP")
    train(place / "exact", *own(place / "before", "--label-column", "team"), model="PPNP")
    train(place / "rank", *own(place / "before", "--target-column", "price", "--loss", "ranking"))
    train(place / "links", *own(place / "before"), "--loss", "links")
    return place


def new(place):
    return "--new-nodes", place / "people_new.csv", "--new-edges", place / "friends_new.csv"


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("kind", ["team", "price", "exact"])
def test_equal_to_the_whole_enlarged_graph(folder, kind, tmp_path):
    said = json.loads(ask("predict", folder / kind, *new(folder), "--out", tmp_path / "new.csv", "--json"))
    ask("predict", folder / kind, *own(folder), "--out", tmp_path / "all.csv")
    found, wanted = rows(tmp_path / "new.csv"), rows(tmp_path / "all.csv")[OLD:]
    assert [row["id"] for row in found] == [row["id"] for row in wanted]
    assert len(found) == said["nodes"] == said["new_nodes"] == 6
    for a, b in zip(found, wanted, strict=True):
        assert a.keys() == b.keys()
        numbers = [name for name in a if name not in ("id", "prediction")]
        assert np.allclose([float(a[n]) for n in numbers], [float(b[n]) for n in numbers], rtol=1e-5, atol=1e-6)


def test_people_read_how_much_of_the_graph_it_took(folder, tmp_path):
    told = ask("predict", folder / "team", *new(folder), "--out", tmp_path / "new.csv")
    assert "predicted 6 nodes" in told
    assert f"of {OLD} old nodes: all that lie within 2 hops of the new ones" in told
    assert "looks at the whole graph" in ask("predict", folder / "exact", *new(folder), "--out", tmp_path / "new.csv")


@pytest.mark.parametrize("way", ["--directed", "--undirected"])
def test_weighted_edges_that_run_one_way_or_both(way, folder, tmp_path):
    old, new = ["a,b,2.5", "b,c,0.5", "c,a,1", "d,a,3"], ["n,a,0.25", "b,n,4", "n,n,2", "d,n,1", "n,a,0.25"]
    for name, lines in (("old", old), ("new", new), ("all", old + new)):
        (tmp_path / f"{name}.csv").write_text("\n".join(["source,target,weight", *lines]) + "\n")
    people = ["id,x,y,team,part", "a,1,0,r,train", "b,0,1,s,train", "c,1,1,r,valid", "d,0,2,s,test"]
    (tmp_path / "x.csv").write_text("\n".join(people) + "\n")
    (tmp_path / "x_new.csv").write_text("id,y,x\nn,3,1\n")
    data = ("--edges", tmp_path / "old.csv", "--features", tmp_path / "x.csv", way)
    (tmp_path / "x_all.csv").write_text("\n".join([*people, "n,1,3,r,"]) + "\n")
    split = ("--label-column", "team", "--split-column", "part")
    train(tmp_path / "o", *data, *split, model="SGC")
    told = ask(
        "predict",
        tmp_path / "o",
        "--new-nodes",
        tmp_path / "x_new.csv",
        "--new-edges",
        tmp_path / "new.csv",
        "--out",
        tmp_path / "n.csv",
    )
    assert "listed more than once" in told
    every = ("--edges", tmp_path / "all.csv", "--features", tmp_path / "x_all.csv", "--label-column", "team")
    ask("predict", tmp_path / "o", *every, "--out", tmp_path / "a.csv")
    (found,), wanted = rows(tmp_path / "n.csv"), rows(tmp_path / "a.csv")[-1]
    assert found["id"] == wanted["id"] == "n"
    assert np.allclose([float(found[f"p_{c}"]) for c in "rs"], [float(wanted[f"p_{c}"]) for c in "rs"], rtol=1e-5)


def test_without_edges_and_without_ids(folder, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 3)))
    ask("predict", folder / "team", "--new-nodes", tmp_path / "x.npy", "--out", tmp_path / "new.csv")
    assert [row["id"] for row in rows(tmp_path / "new.csv")] == [str(OLD), str(OLD + 1)]


def test_wrong_input(folder, tmp_path):
    nodes, edges = folder / "people_new.csv", tmp_path / "e.csv"
    edges.write_text("source,target\np0,p1\n")
    assert "both nodes are in the graph already" in refuse(
        "predict", folder / "team", "--new-nodes", nodes, "--new-edges", edges
    )
    edges.write_text("source,target\np0,nobody\n")
    assert "'nobody' is neither in the graph nor in people_new.csv" in refuse(
        "predict", folder / "team", "--new-nodes", nodes, "--new-edges", edges
    )
    old = refuse("predict", folder / "team", "--new-nodes", folder / "before/people.csv")
    assert "'p0' is in the graph already" in old
    assert "--new-nodes" in refuse("predict", folder / "team", "--new-edges", edges)
    for more in (("--nodes", "p1"), ("--only", "test"), ("--top", 3), ("--pairs", edges)):
        assert "--new-nodes" in refuse("predict", folder / "team", *new(folder), *more)
    assert "ranks compare all nodes" in refuse("predict", folder / "rank", *new(folder))
    assert "trained on links" in refuse("predict", folder / "links", *new(folder))
    np.save(tmp_path / "x.npy", np.ones((2, 5)))
    assert "5 features a node" in refuse("predict", folder / "team", "--new-nodes", tmp_path / "x.npy")
    (tmp_path / "x.csv").write_text("id,a,b\nq,1,2\n")
    assert "'c'" in refuse("predict", folder / "team", "--new-nodes", tmp_path / "x.csv")
