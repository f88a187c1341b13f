"""Files of one's own, as small as they can be: sixty people in three teams, their friends, and what is known of them."""

import csv
import json
import random
from pathlib import Path

import torch
from click.testing import CliRunner

from unspool.cli.errors import sentence
from unspool.cli.main import cli
from unspool.models.pretrained import load_with_card

#: Red and green and blue speak through a, b and c; some cells of team and price are empty.
HEAD = "id,a,b,c,team,price,size,vip,part"
COLUMNS = ["--feature-column", "a", "--feature-column", "b", "--feature-column", "c"]
TEAMS = ("red", "green", "blue")


def write_people(folder, nodes=60, seed=0, first=0):
    """Write friends.csv and people.csv; returns the folder."""
    chance, folder = random.Random(seed), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    links = set()
    while len(links) < 3 * nodes:
        a, b = chance.randrange(nodes), chance.randrange(nodes)
        if a != b and (a % 3 == b % 3 or chance.random() < 0.1):
            links.add((min(a, b), max(a, b)))
    lines = [f"p{a + first},p{b + first}" for a, b in sorted(links)]
    (folder / "friends.csv").write_text("\n".join(["source,target", *lines]) + "\n")
    rows = [_person(i, first, chance) for i in range(nodes)]
    (folder / "people.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    return folder


def _person(i, first, chance):
    is_team = [float(i % 3 == team) for team in range(3)]
    features = [f"{value + chance.gauss(0, 0.5):.4f}" for value in is_team]
    price = 100 + 20 * is_team[0] - 30 * is_team[1] + chance.gauss(0, 1)
    size = 5 * is_team[2] + chance.gauss(0, 0.1)
    part = ("train", "valid", "test")[i // 3 % 3] if i % 10 else ""
    known = [
        TEAMS[i % 3] if i % 10 else "",
        f"{price:.3f}" if i % 7 else "",
        f"{size:.3f}",
        "yes" if i % 3 == 0 else "no",
    ]
    return ",".join([f"p{i + first}", *features, *known, part])


def cells(folder, name="people.csv"):
    """The table as a dictionary of columns of text."""
    head, *rows = [line.split(",") for line in (Path(folder) / name).read_text().splitlines()]
    return {column: [row[place] for row in rows] for place, column in enumerate(head)}


def own(folder, *more):
    """The options that name the files, with three columns as features."""
    return ["--edges", str(folder / "friends.csv"), "--features", str(folder / "people.csv"), *COLUMNS, *more]


def ask(*arguments, code=0):
    """Run the command as it is typed; the output, after a look at the exit code."""
    done = CliRunner().invoke(cli, [str(part) for part in arguments])
    assert done.exit_code == code, f"{done.output}\n{done.exception!r}"
    return done.output


def refuse(*arguments):
    """The sentence in which the command is refused."""
    done = CliRunner().invoke(cli, [str(part) for part in arguments])
    assert isinstance(done.exception, Exception), done.output
    assert not isinstance(done.exception, SystemExit), done.output
    return sentence(done.exception)


def train(out, *more, model="GCN", epochs=15, quiet=True, code=0):
    """``unspool train``, small; a GCN of width 8 when nothing else is said."""
    width = ["--setting", "hidden=8"] if model == "GCN" else []
    still = ["--quiet", "--no-report"] if quiet else []
    return ask("train", model, "--epochs", epochs, *width, *still, "--out", out, *more, code=code)


def card(place, seed=0):
    """What the folder of a seed says."""
    return load_with_card(place / f"seed{seed}")[1]


def history(place, seed=0):
    """All epochs of a seed, as numbers by name."""
    with (place / f"seed{seed}" / "history.csv").open(newline="") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def same(a, b):
    """Whether two folders hold the same run, but for the time it took."""
    (one, first), (two, second) = load_with_card(a), load_with_card(b)
    for found in (first, second):
        found["metrics"].pop("seconds")
    assert json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    assert all(torch.equal(p, q) for p, q in zip(one.parameters(), two.parameters(), strict=True))
    assert (a / "history.csv").read_text() == (b / "history.csv").read_text()
