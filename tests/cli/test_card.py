"""A card from anywhere: wrong kinds in any place are named, and what it calls its data is not read out to anyone."""

import copy
import os
import random
import shutil

import pytest
import torch
from click.testing import CliRunner

import unspool as us
from cli.people import own, train, write_people
from unspool.cli.main import cli
from unspool.models.pretrained import read_card, save_pretrained, write_card

pytestmark = pytest.mark.long


#: Stand in the place of every part of a card, one after another.
STRANGE = [
    5,
    -1,
    2.5,
    1e308,
    float("nan"),
    True,
    "word",
    "",
    [],
    [1],
    ["a", 2],
    [[]],
    {},
    {"a": 1},
    {"dataset": 5},
    10**30,
    [None],
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    place = write_people(tmp_path_factory.mktemp("people"))
    train(place / "classes", *own(place, "--label-column", "team"), epochs=3)
    train(place / "numbers", *own(place, "--target-column", "price", "--target-column", "size"), epochs=3)
    return place


@pytest.fixture
def place(trained, tmp_path):
    return shutil.copytree(trained / "classes" / "seed0", tmp_path / "seed0")


def asked(*words):
    """The exit code and the sentence, and no other kind of end."""
    done = CliRunner().invoke(cli, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        assert isinstance(done.exception, ValueError | TypeError | OSError), repr(done.exception)
        return 2, str(done.exception)
    return done.exit_code, done.output


def paths(held, before=()):
    """Every place in nested records."""
    for name, value in held.items():
        yield (*before, name)
        if isinstance(value, dict):
            yield from paths(value, (*before, name))


def put(held, path, value):
    changed = copy.deepcopy(held)
    inner = changed
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return changed


@pytest.mark.parametrize("job", ["classes", "numbers"])
@pytest.mark.parametrize("cases", [60, pytest.param(None, marks=pytest.mark.slow)])
def test_strange_values_in_every_place_of_a_card(trained, tmp_path, job, cases):
    """With a checksum that fits: whoever makes a card can make that, too."""
    place = shutil.copytree(trained / job / "seed0", tmp_path / "seed0")
    whole, out = read_card(place), tmp_path / "out.csv"
    assert asked("predict", place, "--out", out)[0] == 0
    expected = out.read_bytes()
    everything = [(path, value) for path in paths(whole) for value in STRANGE]
    for path, value in everything if cases is None else random.Random(0).sample(everything, cases):
        out.unlink(missing_ok=True)
        write_card(place, put(whole, path, value))
        code, said = asked("predict", place, "--out", out)
        where = f"{'.'.join(path)} = {value!r}: {said}"
        assert code == 0 or (code == 2 and said and "\n" not in said), where
        assert out.exists() == (code == 0), where
        # Classes and targets are names of columns, a task says what the outputs mean, and an evaluation holds the temperature of
        # probabilities; nothing else changes the table.
        if code == 0 and path[0] not in ("task", "evaluation") and path[-1] not in ("classes", "targets"):
            assert out.read_bytes() == expected, where


@pytest.mark.parametrize("command", ["predict", "explain", "train"])
def test_every_command_looks_at_the_card(trained, place, tmp_path, command):
    words = {
        "predict": ["predict", place, "--out", tmp_path / "a.csv"],
        "explain": ["explain", place, "--node", "p3"],
        "train": ["train", "GCN", "--setting", "hidden=8", "--epochs", 3, "--out", tmp_path, "--no-report", "--resume", *own(trained, "--label-column", "team")],
    }[command]  # fmt: skip
    whole = read_card(place)
    assert asked(*words)[0] == 0
    for path, value in (
        (("data",), "mine"),
        (("data", "source", "dataset"), 5),
        (("metrics",), []),
        (("task", "kind"), ["a"]),
        (("metrics", "test_score"), "high"),
        (("trial",), 3),
        (("trial", "preset"), 3),
        (("trial", "config"), []),
        (("key",), 5),
        (("data", "fingerprint"), 7),
        (("data", "source", "cloud"), "far"),
    ):
        write_card(place, put(whole, path, value))
        code, said = asked(*words)
        assert code == 2, path
        assert "model.json is damaged" in said


# -- the data that a card names ----------------------------------------------------------------------------------------


def test_a_card_from_outside_cannot_have_local_files_read_out(trained, place, tmp_path):
    """Wherever its paths point, nothing of the files there is printed or written, unless it is what was trained on."""
    secret = tmp_path / "secret.csv"
    secret.write_text("source,target\nhunter2,s3cret\n")
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    held, out = read_card(place), tmp_path / "out.csv"
    for key in ("edges", "features", "labels"):
        for named in (
            secret,
            tmp_path / "pipe.csv",
            tmp_path / "folder.csv",
            "/proc/self/environ",
            "/dev/zero",
            "/etc/passwd",
            "~/x.csv",
            "../x.csv",
            "http://localhost:1/x.csv",
            "\0",
        ):
            for known in (held["data"]["hash"], None, "0" * 32):
                write_card(place, put(put(held, ("data", "source", key), str(named)), ("data", "hash"), known))
                for words in (("predict", place, "--out", out), ("explain", place, "--node", "p3")):
                    code, said = asked(*words)
                    assert code == 2, (key, named)
                    assert "give the data with --edges" in said
                    assert not {"hunter2", "s3cret", "root:"} & set(said.replace(",", " ").split())
                    assert not out.exists()


def test_files_of_the_training_are_found_wherever_the_run_is(trained, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert asked("predict", place, "--out", tmp_path / "a.csv")[0] == 0
    assert asked("explain", place, "--node", "p3")[0] == 0


# -- numbers that are not ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_predictions_that_are_not_numbers_are_not_written(trained, place, tmp_path, value):
    model = us.load(place)
    with torch.no_grad():
        list(model.parameters())[-1].fill_(value)
    save_pretrained(
        model, place, **{name: held for name, held in read_card(place).items() if name in ("data", "task", "metrics")}
    )
    code, said = asked("predict", place, "--out", tmp_path / "a.csv")
    assert code == 2
    assert "finite" in said
    assert not (tmp_path / "a.csv").exists()
    assert asked("explain", place, "--node", "p3")[0] == 2


def test_features_beyond_all_numbers_are_not_predicted_from(trained, place, tmp_path):
    head, *lines = (trained / "people.csv").read_text().splitlines()
    huge = [",".join([row[0], *["3e38"] * 3, *row[4:]]) for row in (line.split(",") for line in lines)]
    (tmp_path / "people.csv").write_text("\n".join([head, *huge]) + "\n")
    shutil.copy(trained / "friends.csv", tmp_path)
    code, said = asked("predict", place, *own(tmp_path), "--out", tmp_path / "a.csv")
    assert (code, (tmp_path / "a.csv").exists()) == (2, False), said
