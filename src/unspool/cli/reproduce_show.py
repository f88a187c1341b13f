"""What experiments found, as lists in the terminal or as JSON lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from unspool import datasets
from unspool.cli.reproduce_claims import echo_answers, print_answers, show_measured
from unspool.cli.study.file import columns, console_for
from unspool.cli.study.screen import echo, span
from unspool.models.preset_tables import DATASETS
from unspool.reproduce import results
from unspool.reproduce.after import AFTER
from unspool.reproduce.attacked import attacked_answers
from unspool.reproduce.cells import Cell, choose
from unspool.reproduce.claims import accuracy_answers
from unspool.reproduce.depth import by_depth, depth_answers, smoothing_answers
from unspool.reproduce.networks import read_networks
from unspool.reproduce.page_models import ends, side
from unspool.reproduce.readings import Explained, explained
from unspool.reproduce.robust import damage, robust_answers
from unspool.reproduce.settings import Scope
from unspool.reproduce.summary import Compared, compared, surpassed, tally
from unspool.reproduce.table1 import certified

_MARKS = {True: "yes", False: "no", None: ""}


def show_datasets(root: Path | None, as_json: bool) -> None:
    """Table 3."""
    rows = datasets.table3(root)
    if as_json:
        for row in rows:
            echo({"event": "dataset", **asdict(row)})
        return
    console = console_for()
    table = columns("set", "", "nodes", "edges", "features", "classes", "why they differ")
    for row in rows:
        table.add_row(row.name, "printed", *_numbers(row.printed))
        table.add_row("", "counted", *_numbers(row.counted), row.remark)
    console.print("Table 3: the data (erratum 12)\n", markup=False)
    console.print(table)
    console.print()


def show_table1(trials: int, seed: int, as_json: bool) -> bool:
    """Table 1; whether all certificates end as documented."""
    lines, every = certified(trials, seed)
    good = all(certificate.as_stated for certificate in every)
    if as_json:
        for line in lines:
            found = [{"statement": c.statement, "verdict": c.verdict.value, "error": c.error, "gap": c.gap, "condition": c.condition} for c in line.certificates]  # fmt: skip
            echo({"event": "objective", "model": line.model, "objective": line.objective, "reading": line.reading, "certificates": found})  # fmt: skip
        return good
    console = console_for()
    console.print("Table 1: the problem behind each model, and what became of the paper's statements about it\n")
    for line in lines:
        console.print(f"{line.model:8}{line.objective}\n{'':8}{line.reading}", markup=False)
        for c in line.certificates:
            error = "" if c.error is None else f" (error {c.error:.0e})"
            console.print(f"{'':10}{c.statement}: {c.verdict.value} {c.condition}".rstrip() + error, markup=False)
    as_said = sum(c.as_stated for c in every)
    console.print(f"\n{as_said} of {len(every)} statements of the paper end as documented (unspool verify lists all)\n")
    return good


def show_results(
    folder: Path, experiment: str, presets: Sequence[str], scope: Scope, console: Console, as_json: bool
) -> bool:
    """What the results of one experiment say, about the models and datasets that were asked for; False where they say nothing."""
    if experiment == "networks":
        return _networks(folder, scope, console, as_json)
    measured = show_measured(folder, experiment, scope, console, as_json)
    file = folder / f"{experiment}.csv"
    rows = experiment in results.EXPERIMENTS and file.is_file()
    return (rows and _show_rows(folder, experiment, presets, scope, console, as_json)) or measured


def _show_rows(
    folder: Path, experiment: str, presets: Sequence[str], scope: Scope, console: Console, as_json: bool
) -> bool:
    found = results.read(folder)
    names, where = {kind.__name__ for kind in scope.kinds(experiment)}, set(scope.asked(experiment)["datasets"])
    rows = [row for row in found.of(experiment) if row.model in names and row.dataset in where]
    searches = [s for s in found.searches if s.experiment == experiment and s.model in names and s.dataset in where]
    if not rows:
        return False
    if not as_json:
        _title(experiment, found, console)
    show: dict[str, Callable[..., None]] = {"depth": _depth, "robust": _robust, "attacked": _robust}
    if experiment == "readings":
        known = [one for one in explained(found) if one.cell.first.model in names and one.cell.first.dataset in where]
        _readings(known, console, as_json)
    elif experiment == "table2":
        for preset in presets:
            _table2(rows, preset, console, as_json)
    else:
        show.get(experiment, _plain)(rows, console, as_json)
    if experiment == "table2":
        searches = [s for s in searches if s.preset in presets]
    _searches(searches, console, as_json)
    return True


def _title(experiment: str, found: results.Results, console: Console) -> None:
    spent = found.machine.get("experiments", {}).get(experiment, {})
    told = (
        f": {spent['trials']:,} trials in {span(spent['seconds'])} on {', '.join(spent['hardware'])}" if spent else ""
    )
    console.print(f"\n{experiment}{told}\n", markup=False)


def _networks(folder: Path, scope: Scope, console: Console, as_json: bool) -> bool:
    """Which frequencies trained networks let through; False where there are none."""
    names, where = {kind.__name__ for kind in scope.kinds("networks")}, set(scope.asked("networks")["datasets"])
    table = columns("set", "model", "seeds", "at λ = 0", "at λ = 1", "at λ = 2", "passes")
    mine = [one for one in read_networks(folder) if one.model in names and one.dataset in where]
    for one in mine:
        if one.found.gain is None:
            why = one.found.trouble[0] if one.found.trouble else "no exact response"
            table.add_row(one.dataset, one.model, "", "", "", "", why)
            continue
        low, middle, high = ends(one)
        if as_json:
            echo(
                {
                    "event": "response",
                    "dataset": one.dataset,
                    "model": one.model,
                    "at_0": low,
                    "at_1": middle,
                    "at_2": high,
                }
            )
        numbers = [f"{value:.3f}" for value in (low, middle, high)]
        table.add_row(one.dataset, one.model, str(len(one.found.seeds)), *numbers, side(low, high))
    if mine and not as_json:
        console.print("Mean response of trained networks at low, middle and high frequencies")
        console.print(table)
    return bool(mine)


def _readings(found: Sequence[Explained], console: Console, as_json: bool) -> None:
    """Cells that miss as printed, each with every reading that was tried on it."""
    if as_json:
        for one in found:
            for c in one.readings:
                echo({"event": "reading", **_cell_record(c)})
        return
    table = columns("set", "model", "reading", "ours", "printed", "difference", "within?")
    for one in found:
        for c in (one.cell, *one.readings):
            printed = "" if c.printed is None else f"{c.printed[0]:.2f} ± {c.printed[1]:.2f}"
            name = "as printed" if c is one.cell else c.first.preset
            table.add_row(c.first.dataset, c.first.model, name, c.text, printed, _signed(c.difference), _MARKS[c.met])
    console.print("Cells of Table 2 that miss, and other readings of what the paper leaves open")
    console.print(table)
    more = sum(one.by is not None for one in found)
    console.print(f"\n{more} of {len(found)} cells are explained by a reading", markup=False)


# -- Table 2 -----------------------------------------------------------------------------------------------------------


def _table2(rows: Sequence[results.Record], preset: str, console: Console, as_json: bool) -> None:
    cells = compared(rows, preset)
    answers = accuracy_answers(rows, preset)
    if as_json:
        for one in cells:
            echo({"event": "cell", **_cell_record(one.cell), "causes": [str(cause) for cause in one.causes]})
        echo_answers(answers)
        return
    if not cells:
        silent = (
            "the authors of these models publish no settings for these sets" if preset == "official" else "no cells"
        )
        console.print(f"Table 2, preset {preset}: {silent}", markup=False)
        return
    console.print(f"Table 2, preset {preset}: test accuracy in per cent, mean ± standard deviation over the seeds")
    table = columns("set", "model", "ours", "printed", "difference", "within?", "seeds")
    for one in cells:
        row, c = one.cell.first, one.cell
        printed = "" if c.printed is None else f"{c.printed[0]:.2f} ± {c.printed[1]:.2f}"
        table.add_row(row.dataset, row.model, c.text, printed, _signed(c.difference), _MARKS[c.met], str(len(c.rows)))
    console.print(table)
    console.print(f"\n{tally(rows, preset)}", markup=False)
    _causes(cells, console)
    print_answers(answers, console)
    for against in surpassed(rows, preset) if preset == "tuned" else ():
        c = against.cell
        console.print(
            f"{c.first.dataset}: {c.first.model}, of {against.models} chosen by validation, {c.text}; the paper's best {against.paper:.2f}; "
            f"highest published {against.best:.2f} ({against.who})", markup=False,
        )  # fmt: skip


def _causes(cells: Sequence[Compared], console: Console) -> None:
    """Why cells may miss, each cause once with the cells it concerns."""
    told: dict[str, list[str]] = {}
    for one in cells:
        name = f"{one.cell.first.model} on {one.cell.first.dataset}"
        for cause in one.causes if one.causes else (None,) * (one.cell.met is False):
            told.setdefault("no cause is known" if cause is None else str(cause), []).append(name)
    if told:
        console.print("cells that miss, and what may explain it:")
    for cause, names in told.items():
        console.print(f"  {', '.join(names)}: {cause}", markup=False)


# -- the others --------------------------------------------------------------------------------------------------------


def _plain(rows: Sequence[results.Record], console: Console, as_json: bool) -> None:
    """One column for each set, the models below one another; the best mean validation score of a set is marked."""
    _matrix(choose(rows), lambda cell: cell.first.dataset, console, as_json)


def _depth(rows: Sequence[results.Record], console: Console, as_json: bool) -> None:
    cells = by_depth(rows)
    for name in dict.fromkeys(cell.first.dataset for cell in cells):
        if not as_json:
            console.print(f"{name}: test accuracy in per cent over depth")
        here = sorted((c for c in cells if c.first.dataset == name), key=lambda c: c.first.depth or 0)
        _matrix(here, lambda cell: str(cell.first.depth), console, as_json, short=True)
    answers = [a for model in dict.fromkeys(row.model for row in rows) for a in depth_answers(rows, model)]
    answers += smoothing_answers(rows)
    echo_answers(answers) if as_json else print_answers(answers, console)


def _share(cell: Cell) -> float:
    found = damage(cell.first.variant)
    return 0.0 if found is None else found[1]


def _robust(rows: Sequence[results.Record], console: Console, as_json: bool) -> None:
    cells = choose(rows, ("dataset", "variant", "model", "depth"))
    if as_json:
        _matrix(cells, lambda cell: cell.first.variant, console, as_json)
    for name in [] if as_json else dict.fromkeys(cell.first.dataset for cell in cells):
        told = [(cell, found) for cell in cells if cell.first.dataset == name and (found := damage(cell.first.variant))]
        kinds = sorted({kind for _, (kind, _) in told if kind}, key=lambda kind: (AFTER in kind, kind))
        for kind in kinds or [""]:
            # Clean data belong to every kind of damage; after training each has its own.
            here = [c for c, (k, _) in told if k == kind or (not k and AFTER not in kind)]
            here.sort(key=_share)
            console.print(f"{name}: test accuracy in per cent, {f'damage: {kind}' if kind else 'clean data'}")
            _matrix(here, lambda cell: f"{_share(cell):g} %" if _share(cell) else "clean", console, False, short=True)
    answers = attacked_answers(rows) if rows[0].experiment == "attacked" else robust_answers(rows)
    echo_answers(answers) if as_json else print_answers(answers, console)


def _matrix(
    cells: Sequence[Cell], column: Callable[[Cell], str], console: Console, as_json: bool, short: bool = False
) -> None:
    if as_json:
        for cell in cells:
            echo({"event": "cell", **_cell_record(cell)})
        return
    heads = list(dict.fromkeys(column(cell) for cell in cells))
    table = columns("model", *heads)
    lines: dict[str, dict[str, str]] = {}
    for cell in cells:
        lines.setdefault(_named(cell, cells), {})[column(cell)] = f"{cell.mean:.2f}" if short else cell.text
    for model, held in lines.items():
        table.add_row(model, *(held.get(head, "") for head in heads))
    console.print(table)
    console.print()


def _named(cell: Cell, cells: Sequence[Cell]) -> str:
    """The model, with its depth where the same data were given to it at several."""
    row = cell.first
    twins = {c.first.depth for c in cells if (c.first.model, c.first.dataset, c.first.variant) == (row.model, row.dataset, row.variant)}  # fmt: skip
    by_column = len({(c.first.dataset, c.first.variant) for c in cells}) == 1  # depth is what the columns are
    return row.model if len(twins) == 1 or by_column else f"{row.model} ({row.depth})"


def _searches(searches: Sequence[results.Search], console: Console, as_json: bool) -> None:
    """The space and the number of trials of each search, and what validation chose."""
    if as_json:
        for one in searches:
            echo({"event": "search", **asdict(one)})
        return
    if not searches:
        return
    places = {name: place for place, name in enumerate(DATASETS)}
    console.print("searched on validation data:")
    table = columns("set", "model", "preset", "settings", "trials", "chosen", "validation")
    for one in sorted(searches, key=lambda s: (s.preset, places.get(s.dataset, len(places)))):
        chosen = ", ".join(f"{name} {value}" for name, value in one.chosen.items())
        table.add_row(
            one.dataset, one.model, one.preset, str(one.settings), str(one.trials), chosen, f"{100 * one.valid_score:.2f} %"
        )  # fmt: skip
    console.print(table)
    spaces: dict[str, list[str]] = {}
    for one in searches:
        space = "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in one.space.items())
        spaces.setdefault(f"{one.model} ({one.preset}): {space}", []).append(one.dataset)
    console.print("space:")
    for space, names in spaces.items():
        console.print(f"  {space}, on {', '.join(dict.fromkeys(names))}", markup=False)


def _cell_record(cell: Cell) -> dict[str, Any]:
    row = cell.first
    return {
        "experiment": row.experiment, "dataset": row.dataset, "variant": row.variant, "model": row.model, "preset": row.preset,
        "depth": row.depth, "mean": cell.mean, "std": 100 * cell.test.std, "validation": 100 * cell.valid.mean,
        "seeds": len(cell.rows), "printed": None if cell.printed is None else list(cell.printed),
        "difference": cell.difference, "within": cell.met,
    }  # fmt: skip


def _signed(value: float) -> str:
    return "" if math.isnan(value) else f"{value:+.2f}"


def _numbers(values: Sequence[int | None] | None) -> list[str]:
    return ["–"] * 4 if values is None else ["–" if v is None else f"{v:,}" for v in values]
