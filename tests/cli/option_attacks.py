"""Random bad values for every option of every command, made from a seed, and judged.

``python -m cli.option_attacks 1000`` (in tests/) tries as many seeds and counts what came of them.
"""

import json
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
from unspool.cli.main import cli
from unspool.cli.sentence import sentence

WORDS = (
    "", " ", "nan", "inf", "-inf", "-1", "0", "1", "2", "1.5", "1e999", "1_0", "x", "None", "true", "a=b", "=", "a=", "depth=-1", "depth=x",
    "hidden=0", "[/red]", "[bold]", "\x1b[31mred", "\u202eabc", "naïve α", "'", '"', "a,b", "../..", ".", "/", "/dev/null", "no/such/file.csv",
    "x" * 300, "id", "team", "price", "p3", "red", "gcv", "classes", "adam", "cpu", "cuda", "citeseer", "grid", "random:0.5/0.5", "random:nan/1/1",
    "per-class:0/0", "per-class:1/1", "fold-99", "public", "%s", "$HOME", "\\", "-", "--", "\t", "é.csv", "out.csv", "0x10", "10" * 9,
)  # fmt: skip
#: Commands whose work is long, and which others look after.
LEFT_OUT = {"reproduce", "report", "verify", "demo", "study"}


def scene(place):
    """Friends, people, and a model trained on them."""
    write_people(place)
    files = ["--edges", str(place / "friends.csv"), "--features", str(place / "people.csv"), *COLUMNS]
    run(
        [
            "train",
            "APPNP",
            *files,
            "--label-column",
            "team",
            "--epochs",
            "1",
            "--no-report",
            "--quiet",
            "--out",
            str(place / "m"),
        ]
    )
    return place


def run(arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CliRunner().invoke(cli, arguments, standalone_mode=False)


def sound(name, place):
    """Arguments with which a command does something short."""
    files = ["--edges", str(place / "friends.csv"), "--features", str(place / "people.csv"), *COLUMNS]
    return {
        "train": ["APPNP", *files, "--label-column", "team", "--epochs", "1", "--no-report", "--jobs", "1", "--out", str(place / "o")],
        "predict": [str(place / "m" / "seed0"), "--out", str(place / "p.csv")],
        "explain": [str(place / "m" / "seed0"), "--node", "p3"],
        "denoise": [*files, "--out", str(place / "d.csv")],
        "spectrum": [str(place / "m" / "seed0"), "--out", str(place / "s.png")],
        "models": [], "datasets": [],
    }[name]  # fmt: skip


def asked(seed, place):
    """One command with one to three bad values, in options or arguments."""
    draw = np.random.default_rng(seed)
    names = sorted(set(cli.commands) - LEFT_OUT)
    name = names[draw.integers(len(names))]
    parameters = [p for p in cli.commands[name].params if p.name not in ("seeds", "epochs", "snapshot_every")]
    arguments = sound(name, place)
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
    return [name, *arguments]


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
        place, found = scene(Path(folder)), Counter()
        for seed in range(many):
            said, how = judge(seed, place)
            found[how] += 1
            if said is not None:
                print(seed, said[:600])
        print(dict(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))
