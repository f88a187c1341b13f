"""Files never cause an import: whatever class or function a card or a study names, nothing of it is run unless a person names it too."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys

import pytest

import unspool as us
from cli.people import ask, own, refuse, train, write_people
from cli.study.resealed import resealed
from unspool.models.pretrained import read_card, write_card

pytestmark = pytest.mark.long


#: A module that leaves a mark when it is imported, and again when something of it is called.
CANARY = """
import pathlib

pathlib.Path({mark!r}).write_text("imported")

import unspool as us


class Net(us.models.GCN):
    pass


def roads():
    pathlib.Path({mark!r}).write_text("called")
    return us.datasets.grid(4, 4)
"""

CLASSES = ("canary_of_files:Net", "canary_of_files.inner:Net", "os:system", "canary_of_files", "Net")
FUNCTIONS = ("canary_of_files:roads", "os:system", "os:getcwd", "canary_of_files.inner:roads")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = write_people(tmp_path_factory.mktemp("people"))
    train(folder / "job", *own(folder, "--label-column", "team"), epochs=2)
    train(folder / "named", "--dataset", "contextual_sbm", epochs=2)
    small = ["--dataset", "contextual_sbm", "--epochs", "2", "--seeds", "2", "--jobs", "1", "--quiet"]
    ask("study", "run", "SGC", "MLP", *small, "--out", folder / "study.db")
    return folder


@pytest.fixture
def silent(tmp_path, monkeypatch):
    """A canary that can be imported from here; afterwards it must not have sung, and nothing new be loaded."""
    (tmp_path / "canary_of_files.py").write_text(CANARY.format(mark=str(tmp_path / "mark")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    ran = []
    monkeypatch.setattr("os.system", lambda *words: ran.append(words))
    yield tmp_path
    assert not (tmp_path / "mark").exists()
    assert "canary_of_files" not in sys.modules
    assert not ran


def commands(folder, model):
    """Everything that reads the card of a model."""
    return {
        "predict": ["predict", model, "--out", "p.csv"],
        "predict a job": ["predict", model.parent, "--out", "p.csv"],
        "explain": ["explain", model, "--node", "p3"],
        "spectrum": ["spectrum", model, "--edges", folder / "friends.csv", "--out", "s.png"],
        "train": ["train", "GCN", "--setting", "hidden=8", "--epochs", 2, "--no-report", "--resume", "--out", model.parent, *own(folder, "--label-column", "team")],
    }  # fmt: skip


def copied(place, job, target, change):
    """A trained model whose card says something else, under a checksum that fits."""
    model = shutil.copytree(place / job / "seed0", target / "job" / "seed0")
    card = read_card(model)
    change(card)
    write_card(model, card)
    return model


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("where", ["model", "origin", "trial"])
def test_a_card_that_names_a_class(place, silent, where, name):
    def change(card):
        if where == "origin":
            card["origin"] = {**card, "model": name, "origin": None}
        elif where == "trial":
            card["trial"]["model"] = name
        else:
            card["model"] = name

    model = copied(place, "job", silent, change)
    for words in commands(place, model).values():
        if where == "trial":
            ask(*words)  # how it was trained is of no concern to what it says
        else:
            assert re.search("is not imported just because a file names it|and not GCN; name that one", refuse(*words))
    if where == "trial":
        write_card(model, {**read_card(model), "key": "0" * 24})
        assert f"was trained with the model {name}, not GCN" in refuse(*commands(place, model)["train"])
        return
    with pytest.raises(us.IncompatibleError, match="is not imported just because a file names it"):
        us.load(model)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_card_that_names_a_function_for_its_data(place, silent, name):
    model = copied(place, "named", silent, lambda card: card["data"].update(source={"dataset": name}))
    for command in ("predict", "explain"):
        words = commands(place, model)[command]
        assert refuse(*words).startswith(
            f"the model was trained on {name}, which is not imported just because a file names it"
        )
    assert us.load(model).card["data"]["source"] == {"dataset": name}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_card_whose_data_are_called_like_a_function(place, silent, name):
    """Cards that give a name only: it is looked for among the data sets there are."""

    def change(card):
        card["data"]["name"] = name
        card["data"].pop("source")

    assert "does not say which data" in refuse("predict", copied(place, "named", silent, change), "--out", "p.csv")


READERS = {
    "status": [], "best": [], "show": ["1"], "compare": ["SGC", "MLP"], "importance": [], "plot": ["--out", "pictures"], "export": ["t.csv"],
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_a_study_that_names_a_class(place, silent, name):
    file = resealed(silent / "s.db", place / "study.db", trial={"model": name})
    resealed(silent / "t.db", file, number=2, trial={"model": name})
    for command, more in READERS.items():
        sides = [name, "MLP"] if command == "compare" else more
        ask("study", command, silent / "t.db", *sides)
    assert "is not imported just because a file names it" in refuse("study", "model", file, "1", "--out", "m")
    held = us.study.Study.open(file)
    with pytest.raises(us.IncompatibleError, match="is not imported just because a file names it"):
        held.model(1, data="contextual_sbm")
    # Others may go on with the study: trials that are there are not built.
    small = ["--dataset", "contextual_sbm", "--epochs", "2", "--seeds", "3", "--jobs", "1", "--quiet"]
    ask("study", "run", "SGC", *small, "--retry-failed", "--out", file)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_study_that_names_a_function_for_its_data(place, silent, name):
    file = resealed(silent / "s.db", place / "study.db", source={"dataset": name})
    for command, more in READERS.items():
        ask("study", command, file, *more)
    said = refuse("study", "model", file, "1", "--out", "m")
    assert (
        said
        == f"the study was run on {name}, which is not imported just because a file names it; name it with --dataset"
    )
    ask("study", "model", file, "1", "--dataset", "contextual_sbm", "--out", "m")


@pytest.mark.parametrize("setting", ["adjoint", "weights"])
def test_settings_of_a_file_build_nothing_but_what_the_model_declares(place, silent, setting):
    held = {"type": "canary_of_files:Net", "every": 2} if setting == "adjoint" else "canary_of_files:Net"
    file = resealed(silent / "s.db", place / "study.db", trial={"settings": {setting: held}})
    ask("study", "show", file, "1")
    assert refuse("study", "model", file, "1", "--out", "m")


def test_an_optimiser_is_of_torch(place, silent):
    with sqlite3.connect(place / "study.db") as link:
        (text,) = link.execute("SELECT trial FROM trial WHERE number = 1").fetchone()
    link.close()
    config = {**json.loads(text)["config"], "optimiser": "canary_of_files:Net"}
    file = resealed(silent / "s.db", place / "study.db", trial={"config": config})
    ask("study", "best", file)
    assert "cannot be built again from a file" in refuse("study", "model", file, "1", "--out", "m")


def test_whoever_names_a_class_imports_it(place, tmp_path, monkeypatch):
    """The canary can sing."""
    (tmp_path / "canary_of_files.py").write_text(CANARY.format(mark=str(tmp_path / "mark")))
    monkeypatch.chdir(tmp_path)
    code = "import sys; from unspool.cli.main import main; main()"
    model = copied(place, "job", tmp_path, lambda card: card.update(model="canary_of_files:Net"))
    done = subprocess.run(
        [sys.executable, "-c", code, "predict", str(model), "--model", "canary_of_files:Net", "--out", "p.csv"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mark").read_text() == "imported"
    assert (tmp_path / "p.csv").is_file()
