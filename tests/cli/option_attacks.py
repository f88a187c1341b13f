"""Random bad values for every option of every command, made from a seed, and judged.

``python -m cli.option_attacks 1000`` (in tests/) tries as many seeds and counts what came of them.
"""

import json
import os
import re
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import click
import numpy as np
from click.testing import CliRunner

from cli.people import COLUMNS, write_people
from datasets.attacks import RAW
from unspool.cli.errors import sentence
from unspool.cli.main import cli

WORDS = (
    "", " ", "nan", "inf", "-inf", "-1", "0", "1", "2", "1.5", "1e999", "1_0", "x", "None", "true", "a=b", "=", "a=", "depth=-1", "depth=x",
    "hidden=0", "[/red]", "[bold]", "\x1b[31mred", "\u202eabc", "naïve α", "'", '"', "a,b", "../..", ".", "/dev/null", "no/such/file.csv",
    "x" * 300, "id", "team", "price", "p3", "red", "gcv", "classes", "adam", "cpu", "cuda", "citeseer", "grid", "random:0.5/0.5", "random:nan/1/1",
    "per-class:0/0", "per-class:1/1", "per-class:inf/1", "per-class:1.5/2", "fold-99", "public", "%s", "$HOME", "\\", "-", "--", "\t", "é.csv", "out.csv",
    "0x10", "10" * 9,
    # of settings, training and studies
    "first=0.1;linear=0", "first=;", "=0.1", ";", "first=1;first=2", "nope=1", "valid_loss", "last-epoch", "above_mean", "never", "exact", "bfloat16", "lbfgs",
    "rprop", "0.1,0.2", "0.1,", ",", "depth=2,3", "dropout=0.1,x", "lr=0.1", "seed=1", "model=GCN", "lr=0.01:0.1:log", "depth=2..3", "depth=3..2", "bias=0..1",
    "lr=..", "lr=:", "teleport=0.1:0.2", "warm=1/2", "adjoint=checkpointed(every=0)", "adjoint=(", "masks=each_hop", "start=warm",
    # of classes and functions; none of these does anything when it is called without arguments
    "torch.nn:Linear", "torch.nn:Nope", "os:getcwd", "os:sep", "no_such_module:Net", ":", "::", "a:b:c", ".:x", "os.path:", "unspool.models:GCN",
)  # fmt: skip
#: Commands whose work is long, and which others look after.
LEFT_OUT = {"reproduce", "report", "verify", "demo"}
#: Options that only make the work longer.
LONG = {"seeds", "epochs", "snapshot_every", "jobs", "watch"}
#: Words of Python that nobody types.
PYTHON = re.compile(r"\w=\.\.\.|__\w+__|object at 0x|Error\b")


def leaves(command=cli, path=()):
    """All commands by the words that lead to them."""
    if isinstance(command, click.Group):
        found = [leaf for name, one in command.commands.items() for leaf in leaves(one, (*path, name)).items()]
        return dict(found)
    return {} if path[0] in LEFT_OUT else {path: command}


def scene(place):
    """Friends, people, a model trained on them, and a study."""
    write_people(place)
    files = ["--edges", str(place / "friends.csv"), "--features", str(place / "people.csv"), *COLUMNS]
    short = ["--epochs", "1", "--quiet"]
    for words in (
        ["train", "APPNP", *files, "--label-column", "team", "--no-report", *short, "--out", str(place / "m")],
        ["study", "run", "SGC", "MLP", "--dataset", "grid", "--seeds", "2", "--jobs", "1", *short, "--out", str(place / "s.db")],
    ):  # fmt: skip
        done = run(words)
        assert done.exception is None, done.exception
    return place


def run(arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CliRunner().invoke(cli, arguments, standalone_mode=False)


def sound(path, place):
    """Arguments with which a command does something short."""
    files = ["--edges", str(place / "friends.csv"), "--features", str(place / "people.csv"), *COLUMNS]
    study = str(place / "s.db")
    return {
        "train": ["APPNP", *files, "--label-column", "team", "--epochs", "1", "--no-report", "--jobs", "1", "--out", str(place / "o")],
        "predict": [str(place / "m" / "seed0"), "--out", str(place / "p.csv")],
        "explain": [str(place / "m" / "seed0"), "--node", "p3"],
        "denoise": [*files, "--out", str(place / "d.csv")],
        "spectrum": [str(place / "m" / "seed0"), "--out", str(place / "s.png")],
        "models": [], "datasets": [], "data check": [*files, "--label-column", "team"],
        "study run": ["SGC", "--dataset", "grid", "--epochs", "1", "--seeds", "1", "--jobs", "1", "--out", str(place / "r.db")],
        "study model": [study, "1", "--out", str(place / "n")],
        "study show": [study, "1"], "study compare": [study, "SGC", "MLP"], "study export": [study, str(place / "t.csv")],
        "study plot": [study, "--out", str(place / "pictures")],
    }.get(" ".join(path), [study])  # fmt: skip


def asked(seed, place):
    """One command with one to three bad values, in options or arguments."""
    draw = np.random.default_rng(seed)
    every = leaves()
    path = sorted(every)[draw.integers(len(every))]
    parameters = [p for p in every[path].params if p.name not in LONG]
    arguments = sound(path, place)
    for _ in range(int(draw.integers(1, 4))):
        chosen = parameters[draw.integers(len(parameters))]
        value = WORDS[draw.integers(len(WORDS))]
        if isinstance(chosen, click.Argument):
            if arguments and not arguments[0].startswith("-"):
                arguments[0] = value
            else:
                arguments.insert(0, value)
        elif chosen.is_flag:
            arguments.append(
                [*chosen.opts, *chosen.secondary_opts][draw.integers(len(chosen.opts) + len(chosen.secondary_opts))]
            )
        else:
            arguments += [chosen.opts[0], value]
    return [*path, *arguments]


def judge(seed, place):
    """(None, how it ended) where all is well; else (what went wrong, ...)."""
    arguments = asked(seed, place)
    found = run(arguments)
    problem, told = found.exception, found.output
    hidden = [sign for sign in told if sign not in "\n\t\r" and (ord(sign) < 32 or 127 <= ord(sign) < 160)]
    if hidden:
        return f"{arguments}: prints {hidden[:3]}", "raw"
    if problem is None:
        lines = told.splitlines() if "--json" in arguments and "--help" not in arguments else []
        if any(line.startswith("{") and not readable(line) for line in lines):
            return f"{arguments}: prints JSON that is none", "json"
        return None, "ran"
    if isinstance(problem, click.exceptions.Exit | click.ClickException | click.exceptions.Abort):
        return None, "usage"
    line = (
        sentence(problem)
        if isinstance(problem, ValueError | TypeError | OSError | ImportError | MemoryError | RuntimeError)
        else None
    )
    if line is None or "\n" in line or len(line) < 10 or any(raw in line for raw in RAW):
        return f"{arguments}: {type(problem).__name__}: {problem}", "traceback"
    if not line.startswith("the memory is too small") and PYTHON.search(line):
        return f"{arguments}: {line}", "python"
    return None, "refused"


def readable(line):
    try:
        json.loads(line, parse_constant=lambda word: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return False
    return True


def main(many):
    """Count the outcomes."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "a" / "b"  # some values are names of files and folders, ../.. among them
        here.mkdir(parents=True)
        os.chdir(here)
        place, found = scene(Path(folder)), Counter()
        for seed in range(many):
            said, how = judge(seed, place)
            found[how] += 1
            if said is not None:
                print(seed, said[:600])
        print(dict(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))
