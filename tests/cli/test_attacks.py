"""Spoilt folders, generated: every command refuses in a sentence or says what it says about the whole one; nothing hangs."""

import json
import shutil
import signal
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from cli.attacks import cases
from cli.people import own, same, train, write_people
from unspool import report
from unspool.cli.errors import sentence
from unspool.cli.main import cli
from unspool.cli.train import Reporter
from unspool.errors import IncompatibleError

pytestmark = pytest.mark.long


CLASSES = ("--label-column", "team")
FILES = {"weights": "*.safetensors"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished job, one that was cut off, and what commands say about them."""
    place = write_people(tmp_path_factory.mktemp("people"))
    train(place / "job", *own(place, *CLASSES))
    with pytest.MonkeyPatch.context() as patch:
        watch = Reporter.__call__

        def broken(self, now, best):
            if now.epoch == 9:
                raise KeyboardInterrupt
            watch(self, now, best)

        patch.setattr(Reporter, "__call__", broken)
        train(place / "cut", *own(place, *CLASSES), "--snapshot-every", 0, code=130)
    return place


class Late(BaseException):
    """It did not end; nobody takes this for damage of a file."""


@contextmanager
def in_time(seconds, what):
    """A test of its own against what never ends."""

    def late(number, frame):
        raise Late(what)

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def asked(*words):
    """Whether it was done, or the one sentence that was said instead."""
    done = CliRunner().invoke(cli, [str(word) for word in words])
    problem = done.exception
    if problem is None:
        return True, done.output
    if isinstance(problem, SystemExit):
        return False, done.output
    assert isinstance(problem, IncompatibleError | ValueError | TypeError | OSError | MemoryError | RuntimeError), repr(
        problem
    )
    said = sentence(problem)  # as the command line says it
    assert said, repr(problem)
    assert "\n" not in said
    return False, said


def explained(place):
    done, said = asked("explain", place, "--node", "p3", "--json")
    return done, json.loads(said.splitlines()[-1]) if done else said


@pytest.mark.parametrize("many", [60, pytest.param(1200, marks=pytest.mark.slow)])
def test_a_spoilt_folder_is_named_or_says_the_same(trained, tmp_path, many):
    out = tmp_path / "out.csv"
    assert asked("predict", trained / "job", "--out", out)[0]
    table, why = out.read_bytes(), explained(trained / "job")[1]
    history = report.seeds.read_job(trained / "job").seeds[0].history
    short = ["--epochs", 15, "--setting", "hidden=8", "--quiet", "--no-report"]
    words = ["train", "GCN", *short, *own(trained, *CLASSES), "--resume", "--out"]
    refused = 0
    for number, way, what, chance in cases(many):
        job = "cut" if what == "run.pt" else "job"
        root = shutil.copytree(trained / job, tmp_path / f"{number}")
        place = root / "seed0"
        file = place if what is None else next(place.glob(FILES.get(what, what)))
        way(file, chance)
        told = f"{number}: {way.__name__} of {what}"
        with in_time(60, told):
            if what != "run.pt":
                out.unlink(missing_ok=True)
                done, said = asked("predict", root, "--out", out)
                assert out.exists() == done, told
                assert not done or out.read_bytes() == table, f"{told}: {said}"
                again, found = explained(place)
                assert again == done, told
                assert not again or found == why, told
                refused += not done
            if what == "history.csv" and (place / "model.json").is_file():
                seed = report.seeds.read_job(root).seeds[0]
                assert seed.history == history or (seed.history == () and (seed.trouble or not file.is_file())), told
            done, said = asked(*words, root)
            refused += not done and what == "run.pt"
        if done and what == "run.pt":
            same(place, trained / "job" / "seed0")
        shutil.rmtree(root)
    assert refused > many / 3


NUMBERS = (
    "nan", "inf", "-inf", "1e999", "-1", "0", "1e-400", "99999999999999999999999", "1_0", "٣", "0x10", "1e5", "", " ", "None", "2.5", "true", "a;b=1",
    "first=nan", "first=-1", "first=0.1;first=0.2", ",", "1,2",
)  # fmt: skip
#: What settings and training may be given, by name; = begins a setting of the model.
OPTIONS = (
    "--epochs", "--lr", "--weight-decay", "--patience", "--monitor", "--stop", "--min-epochs", "--lower-level", "--optimiser", "--precision", "--dropout",
    "--depth", "--hidden", "=hidden", "=depth", "=dropout", "=bias", "=batch_norm", "=lr",
)  # fmt: skip
#: Those of each command beside them.
MORE = {"train": ("--seeds", "--first-seed", "--jobs", "--snapshot-every", "--device", "--loss", "--split", "--preset", "--threads"),
        "study run": ("--seeds", "--first-seed", "--random", "--range", "--draw", "--keep", "--at-once", "--seconds", "--preset", "--threads")}  # fmt: skip


@pytest.mark.parametrize("command", MORE)
def test_any_word_after_any_option_is_an_answer_or_a_sentence(trained, tmp_path, command):
    for option in (*OPTIONS, *MORE[command]):
        for word in NUMBERS:
            if (option, word) in (("--seeds", "1e5"), ("--jobs", "99999999999999999999999")):
                continue  # as many processes and seeds as that are an answer, and a long one
            end = [option, word] if option.startswith("-") else ["--setting", f"{option.removeprefix('=')}={word}"]
            few = ["--epochs", 2] if option != "--epochs" else ["--patience", 2]
            few = ["--patience", 1] if (option, word) == ("--epochs", "99999999999999999999999") else few
            still = ["--quiet", "--no-report"] if command == "train" else ["--quiet", "--seeds", 1, "--jobs", 1]
            place = tmp_path / ("o" if command == "train" else "o.db")
            words = [*command.split(), "GCN", *few, *still, *own(trained, *CLASSES), "--out", place, *end]
            with in_time(60, f"{option} {word!r}"):
                done, said = asked(*words)
            assert done or said.strip(), f"{option} {word!r}"
            shutil.rmtree(tmp_path / "o", ignore_errors=True)
