"""The direction of edges at the command line: both ways and said so, or as listed with --directed, and so again in predict."""

import pytest

from cli.people import ask, card, own, refuse, train, write_people
from unspool import datasets

pytestmark = pytest.mark.long


CLASSES = ("--label-column", "team")
SHORT = ("--epochs", 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_people(tmp_path_factory.mktemp("people"))


def read(folder, **how):
    columns = {"feature_columns": ["a", "b", "c"], "label_column": "team"}
    return datasets.from_files(folder / "friends.csv", folder / "people.csv", **columns, **how)


@pytest.mark.parametrize("said", [(), ("--directed",), ("--undirected",)])
def test_train_says_which_way_edges_run_and_the_card_keeps_it(folder, tmp_path, said):
    found = train(tmp_path / "out", *own(folder, *CLASSES), *SHORT, *said, quiet=False)
    directed = {"--directed": True, "--undirected": False}.get(said[0]) if said else None
    data = read(folder, directed=directed)
    told = card(tmp_path / "out")["data"]
    assert told["hash"] == data.hash
    assert told["notes"] == list(data.notes)
    assert bool(data.notes) is (directed is not False)
    for note in data.notes:
        assert note in " ".join(found.split())
    assert told["source"].get("directed") is directed


def test_predict_lets_edges_run_as_they_did_in_training(folder, tmp_path):
    train(tmp_path / "model", *own(folder, *CLASSES), *SHORT, "--directed")
    files = {
        name: ask("predict", tmp_path / "model" / "seed0", *more, "--out", tmp_path / f"{name}.csv")
        for name, more in {"same": (), "again": own(folder), "other": own(folder, "--undirected")}.items()
    }
    text = {name: (tmp_path / f"{name}.csv").read_text() for name in files}
    assert text["same"] == text["again"] != text["other"]


def test_new_files_with_edges_listed_once_are_noted(folder, tmp_path):
    train(tmp_path / "model", *own(folder, *CLASSES), *SHORT)
    found = ask("predict", tmp_path / "model" / "seed0", *own(folder), "--out", tmp_path / "p.csv")
    assert "one direction" in found
    found = ask("denoise", *own(folder), "--weight", 0.3, "--out", tmp_path / "d.csv")
    assert "one direction" in found


def test_directed_belongs_to_files_of_ones_own(tmp_path):
    said = refuse("train", "--dataset", "citeseer", "--directed", "--out", tmp_path)
    assert "--directed" in said
    assert "--edges" in said


def test_links_have_no_direction(folder, tmp_path):
    assert "--directed" in refuse("train", *own(folder), "--loss", "links", "--directed", "--out", tmp_path)
