"""Train the same 44 runs through every door, print their numbers, and compare them with those of another day.

The doors are ``unspool train``, ``study.run`` with the paper's preset, ``unspool study run`` on files, and an estimator. The numbers
that are kept in tests/package/doors.json were written by the code of before the settings were declared once:

    python tools/door_table.py --check tests/package/doors.json
    python tools/door_table.py --write numbers.json
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import unspool as us
from unspool import datasets, models, study
from unspool.cli.main import cli
from unspool.graph import EdgeDirectionWarning
from unspool.reproduce.presets import PAPER

#: What tells runs apart, and what is compared.
NAMES = ("door", "data", "model", "seed")
NUMBERS = ("epoch", "train_loss", "valid_loss", "valid_score", "test_score")
NODES, WIDTH, EDGES = 240, 8, 900
#: The models that are trained on files, and those that predict numbers.
OF_FILES, OF_NUMBERS = ("UGDGNN", "GPRGNN", "GCN", "APPNP", "AirGNN", "GCNII"), ("APPNP", "UGDGNN", "MLP")

Row = dict[str, Any]


def main() -> None:
    """Print all rows; with --check the largest difference too, and exit 1 where the selected epoch is another one."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--check", type=Path, metavar="FILE", help="a table to compare with")
    options.add_argument("--write", type=Path, metavar="FILE", help="where the table goes")
    said = options.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as place:
        for row in table(Path(place)):
            rows.append(row)
            print(json.dumps(row), flush=True)
    if said.write is not None:
        said.write.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")
    if said.check is not None:
        other, far, where = differences(json.loads(said.check.read_text(encoding="utf-8")), rows)
        print(f"{len(rows)} runs; the largest difference is {far:.2g}, relative ({where})")
        sys.exit("\n".join(other) if other else 0)


def differences(
    before: Sequence[Row], now: Sequence[Row], border: Mapping[str, float] | None = None
) -> tuple[list[str], float, str]:
    """Which runs are missing or select another epoch; the largest relative difference of a number; and where it is.

    Numbers that are not finite are infinitely far apart.

    Args:
        before, now: rows of two tables.
        border: by data set, what a score may move because a node lies on the border of two classes and rounding decides.

    Example:
        >>> row = {"door": "a", "data": "b", "model": "c", "seed": 0, "epoch": 3, **dict.fromkeys(NUMBERS[1:], 2.0)}
        >>> differences([row], [row | {"test_score": 2.5}])
        ([], 0.25, 'a, b, c, 0: test_score')
    """
    known, found = ({tuple(row[n] for n in NAMES): row for row in rows} for rows in (before, now))
    told = [f"{_words(key)}: is in one table only" for key in known.keys() ^ found.keys()]
    far, where = 0.0, "none"
    for key in known.keys() & found.keys():
        if known[key]["epoch"] != found[key]["epoch"]:
            told.append(f"{_words(key)}: epoch {found[key]['epoch']} instead of {known[key]['epoch']}")
        for name in NUMBERS[1:]:
            old, new = known[key][name], found[key][name]
            if name.endswith("score") and abs(new - old) <= (border or {}).get(known[key]["data"], 0.0):
                continue
            apart = abs(new - old) / max(abs(old), 1e-12)
            if not math.isfinite(apart):  # Trap: NaN is neither larger nor smaller than any number
                apart = math.inf
            if apart > far:
                far, where = apart, f"{_words(key)}: {name}"
    return told, far, where


def _words(key: Sequence[Any]) -> str:
    return ", ".join(map(str, key))


def table(place: Path) -> Iterator[Row]:
    """All runs, one after another.

    Args:
        place: a folder for files and results.
    """
    files, names = _write_files(place), [kind.__name__ for kind in models.PAPER_MODELS]
    teams = [*files, "--label-column", "team"]
    for name in names:
        yield _trained(place, name, "citeseer", 1, 20)
    yield from _python_study(names)
    for name in OF_FILES:
        yield _trained(place, name, "files, classes", 2, 30, *teams)
    yield from _studied(place, OF_FILES, "files, classes", 2, *teams)
    prices = [*files, "--target-column", "price"]
    for name in OF_NUMBERS:
        yield _trained(place, name, "files, numbers", 3, 30, *prices)
    yield from _studied(place, OF_NUMBERS, "files, numbers", 3, *prices)
    yield _trained(place, "APPNP", "files, links", 4, 20, *files, "--loss", "links")
    exact = _trained(place, "APPNP", "citeseer", 1, 10, "--lower-level", "exact")
    yield {**exact, "door": "train exact"}
    for name in ("GCN", "GPRGNN"):
        yield _estimated(name)


def _write_files(place: Path) -> list[Any]:
    """A graph of three groups as files, with a class and a number of each node; the options that name them."""
    chance = np.random.default_rng(7)
    group = chance.integers(0, 3, NODES)
    centres = chance.normal(size=(3, WIDTH))
    x = centres[group] + 1.2 * chance.normal(size=(NODES, WIDTH))
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < EDGES:
        a, b = (int(v) for v in chance.integers(0, NODES, 2))
        if a != b and (group[a] == group[b] or chance.random() < 0.15):
            pairs.add((min(a, b), max(a, b)))
    (place / "edges.csv").write_text("source,target\n" + "".join(f"n{a},n{b}\n" for a, b in sorted(pairs)))
    number = x @ chance.normal(size=WIDTH) + 0.1 * chance.normal(size=NODES)
    head = "id," + ",".join(f"f{k}" for k in range(WIDTH)) + ",team,price"
    rows = (f"n{i}," + ",".join(f"{v:.6f}" for v in x[i]) + f",t{group[i]},{number[i]:.6f}" for i in range(NODES))
    (place / "nodes.csv").write_text("\n".join([head, *rows]) + "\n")
    columns = [word for k in range(WIDTH) for word in ("--feature-column", f"f{k}")]
    return ["--edges", place / "edges.csv", "--features", place / "nodes.csv", *columns]


def _type(*words: Any) -> None:
    """Run the command as it is typed."""
    done: Any = cli([str(word) for word in words], standalone_mode=False)
    if done:
        raise RuntimeError(f"unspool {_words(words)} ended with {done}")


def _trained(place: Path, model: str, data: str, seed: int, epochs: int, *more: Any) -> Row:
    """``unspool train``, and what the card says."""
    out = Path(tempfile.mkdtemp(dir=place))
    still = ["--device", "cpu", "--no-report", "--quiet"]
    _type("train", model, *more, "--epochs", epochs, "--first-seed", seed, *still, "--out", out)
    card = json.loads((out / f"seed{seed}" / "model.json").read_text(encoding="utf-8"))
    return _row("train", data, model, seed, card["metrics"])


def _studied(place: Path, names: Sequence[str], data: str, seed: int, *more: Any) -> Iterator[Row]:
    """``unspool study run``, and what its file says."""
    out = Path(tempfile.mkdtemp(dir=place)) / "study.db"
    still = ["--device", "cpu", "--quiet"]
    _type("study", "run", *names, *more, "--epochs", 30, "--seeds", 1, "--first-seed", seed, *still, "--out", out)
    for row in study.Study.open(out).rows:
        yield _row("study run", data, row.trial["model"], seed, vars(row.result))


def _python_study(names: Sequence[str]) -> Iterator[Row]:
    """``study.run`` with the settings of the paper."""
    grid = study.grid(*(getattr(models, name) for name in names), seed=1, epochs=20, preset=PAPER)
    for row in study.run(grid, datasets.load("citeseer"), device="cpu").rows:
        yield _row("study", "citeseer", row.trial["model"], 1, vars(row.result))


def _estimated(name: str) -> Row:
    """``NodeClassifier`` on tensors; the test score is counted by hand."""
    data = datasets.load("citeseer")
    assert data.split is not None
    labels = data.labels.clone()
    labels[data.split.test] = -1
    made = us.NodeClassifier(getattr(models, name), epochs=20, seed=1, device="cpu")
    made.fit(data.row_normalised().features, labels, graph=data.graph, valid=data.split.valid)
    right = (torch.as_tensor(made.predict()) == data.labels)[data.split.test].double().mean()
    return _row("estimator", "citeseer", name, 1, {**vars(made.run_.best), "test_score": float(right)})


def _row(door: str, data: str, model: str, seed: int, held: Mapping[str, Any]) -> Row:
    numbers = {name: held[name] for name in NUMBERS}
    return {"door": door, "data": data, "model": model, "seed": seed, **numbers}


if __name__ == "__main__":
    warnings.simplefilter("ignore", EdgeDirectionWarning)
    main()
