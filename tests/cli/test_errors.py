"""What went wrong, as a person reads it: by options, in one line; faults of the program keep their traceback."""

import pickle

import pytest

import unspool as us
from unspool.cli.errors import option, sentence
from unspool.cli.main import cli
from unspool.errors import UNSHOWN, DataError, IncompatibleError, InputError, mention

#: (the problem, in Python, on the command line)
WORDED = [
    (InputError("weight_decay", -1.0, "a number"), "weight_decay=-1.0: expected a number", "--weight-decay -1.0: expected a number"),
    (InputError("labels", UNSHOWN, "a file", "give one"), "labels: expected a file; give one", "--labels: expected a file; give one"),
    (InputError("depth", 0, "more", owner="GCN"), "depth=0: expected more", "--setting depth=0: expected more"),
    (InputError("depht", UNSHOWN, "a setting", owner="GCN"), "depht: expected a setting", "--setting depht: expected a setting"),
    (InputError("lr", "x", "a number", owner="TrainConfig"), "lr='x': expected a number", "--lr x: expected a number"),
    (InputError("MODEL", "GNC", "a name"), "MODEL='GNC': expected a name", "MODEL GNC: expected a name"),
    (InputError("monitor", us.train.Monitor.LAST_EPOCH, "another"), "monitor=<Monitor.LAST_EPOCH: 'the last epoch'>: expected another", "--monitor last_epoch: expected another"),
    (InputError("a", 1, f"nothing beside {mention('label_column')}"), "a=1: expected nothing beside label_column=...", "--a 1: expected nothing beside --label-column"),
    (DataError("y.csv", "two columns", f"name one with {mention('target_columns')}"), "y.csv: two columns; name one with target_columns=...", "y.csv: two columns; name one with --target-column"),
    (DataError("", "no edges"), "no edges", "no edges"),
    (IncompatibleError(f"no decay; give {mention('weight_decay', 0)}"), "no decay; give weight_decay=0", "no decay; give --weight-decay 0"),
    (InputError("depth", 10**5000, "small"), "depth=<int>: expected small", "--depth <int>: expected small"),
    (IncompatibleError("in\n  two lines"), "in\n  two lines", "in two lines"),
    (ValueError("masks=Masks.EACH_HOP: no hops; take Layers.REDUCED"), None, "--setting masks=each_hop: no hops; take --setting layers=reduced"),
    (ValueError("keep lower_level=LowerLevel.UNROLLED"), None, "keep --lower-level unrolled"),
    (ValueError("build it without directed=True"), None, "build it without --directed"),
    (ValueError("Masks.CSV and Data.CSV are files"), None, "--setting masks=csv and Data.CSV are files"),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "python", "typed"), WORDED, ids=[case[2] for case in WORDED])
def test_one_problem_two_wordings(problem, python, typed):
    assert python is None or str(problem) == python
    assert sentence(problem) == typed


@pytest.mark.parametrize("problem", [case[0] for case in WORDED[:11]], ids=str)
def test_problems_cross_processes_whole(problem):
    again = pickle.loads(pickle.dumps(problem))
    assert (str(again), sentence(again), vars(again)) == (str(problem), sentence(problem), vars(problem))


def test_faults_of_the_program_have_no_sentence():
    assert sentence(RuntimeError("a fault")) is None
    assert sentence(RuntimeError("CUDA out of memory. Tried to allocate 8 GiB")).startswith("there is not enough")
    assert sentence(OSError(28, "No space left on device")).startswith("the disk is full")
    said = sentence(ValueError("bad shape\nException raised from matmul at x.cpp:1"))
    assert said == "bad shape"


def known(command, found):
    """All options of a command and of those below it."""
    for one in getattr(command, "commands", {}).values():
        known(one, found)
    for parameter in command.params:
        found.update([*parameter.opts, *parameter.secondary_opts])
    return found


@pytest.mark.parametrize(
    "argument",
    ["lr", "weight_decay", "epochs", "monitor", "stop", "patience", "min_epochs", "optimiser", "precision", "lower_level", "edges", "features",
     "labels", "id_column", "label_column", "target_columns", "feature_columns", "split_column", "header", "directed", "split", "dataset", "root",
     "loss", "normalise_rows", "preset", "device", "path", "resume", "model", "weight", "noise", "target", "against", "threads", "jobs", "seconds"],
)  # fmt: skip
def test_every_argument_that_sentences_speak_of_has_its_option(argument):
    """Names that the library raises and mentions; a new one that is not an option of that name needs a line in errors.py."""
    there = known(cli, set())
    assert all(word in there for word in option(argument).split(" or "))
