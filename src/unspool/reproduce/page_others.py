"""Heterophilous sets, searches, and the machine, on the page."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from unspool.report import Block, Code, Column, Folded, Notes, Paragraph, Table, Tone, facts
from unspool.report import Cell as Shown
from unspool.report.text import plain, shown
from unspool.reproduce.cells import Cell, choose
from unspool.reproduce.page_cells import NAMES, ORDER, called, distinct, place
from unspool.reproduce.results import Record, Results, Search

_NAMES = {"memory_gb": "memory (GB)"}


def heterophily(rows: Sequence[Record]) -> list[Block]:
    """Accuracy on graphs whose neighbours differ, and each model's mean rank."""
    cells = choose(rows)
    if not cells:
        return [Paragraph(["Not run yet: unspool reproduce heterophily"])]
    words = "Graphs whose edges mostly join nodes of different classes, ten recorded splits. Free coefficients can become a high-pass filter there; fixed ones cannot."
    presets = distinct((c.first.preset for c in cells), ())
    tables = [ranked([c for c in cells if c.first.preset == preset], preset) for preset in presets]
    return [Paragraph([words]), *tables]


def ranked(cells: Sequence[Cell], preset: str) -> Table:
    """Models by datasets with ranks, the best mean rank first; models with equal means share a rank.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> rows = [example_record(s, model=m, test_score=v) for s in range(2) for m, v in (("GCN", 0.6), ("UGDGNN", 0.8))]
        >>> print(ranked(choose(rows), "default").markdown().splitlines()[-2])
        | UGDGNN | 80.00 ± 0.00<br>rank 1 | 1.00 |
    """
    found = {(c.first.model, c.first.dataset): c for c in cells if not math.isnan(c.mean)}
    datasets = distinct((d for _, d in found), NAMES)
    models = distinct((m for m, _ in found), ORDER)
    ranks = {(m, d): _rank(found, m, d) for m, d in found}
    mean = {m: statistics.fmean(r for (n, _), r in ranks.items() if n == m) for m in models}
    rows: list[list[str | Shown]] = []
    for model in sorted(models, key=lambda m: (mean[m], place(m, ORDER))):
        entries = [_ranked(found.get((model, d)), ranks.get((model, d))) for d in datasets]
        rows.append([model, *entries, Shown(shown(mean[model], 2), mean[model])])
    caption = f"Test accuracy (%) on heterophilous graphs, preset {preset}; first in a column is coloured"
    return Table(caption, [Column("model", numbers=False), *map(called, datasets), "mean rank"], rows)


def searches(found: Sequence[Search]) -> list[Block]:
    """What was searched: spaces, counts, and what validation chose."""
    if not found:
        return [Paragraph(["No search is recorded in this folder: unspool reproduce grid, or table2 --preset tuned"])]
    words = "Settings are chosen by the mean validation score over seeds; test scores play no part in the choice."
    ordered = sorted(
        found, key=lambda s: (s.experiment, s.preset, place(s.dataset, tuple(NAMES)), place(s.model, ORDER))
    )
    tried, trials = sum(s.settings for s in found), sum(s.trials for s in found)
    total = f" {len(found)} cells were searched: {tried:,} settings, {trials:,} trials."
    return [Paragraph([words + total]), _spaces(ordered), Folded("What was chosen, cell by cell", [_choices(ordered)])]


def machine(results: Results) -> list[Block]:
    """Time, hardware and exact commands."""
    known = dict(results.machine)
    if not known:
        return [Paragraph(["The folder has no machine.json, so nothing is known about the machine."])]
    runs = known.pop("experiments", {})
    blocks: list[Block] = []
    if isinstance(runs, Mapping) and runs:
        blocks.append(_runs(runs))
        commands = list(dict.fromkeys(c for told in runs.values() for c in _commands(told)))
        blocks += [Paragraph(["Exact commands:"]), Code("\n".join(commands))] if commands else []
    missing = known.pop("not_run", {})
    if isinstance(missing, Mapping) and missing:
        blocks += [Paragraph(["Not run:"]), Notes([str(why) for why in missing.values()])]
    several = known.pop("machines", [])
    for one in [*several, *([known] if known else [])]:
        pairs = [pair for name, value in one.items() for pair in _flat(str(name), value)]
        title = f"Machine and versions: {one['hardware']}" if len(several) > 1 else "Machine and versions"
        blocks.append(facts(title, pairs))
    return blocks


# -- inside ------------------------------------------------------------------------------------------------------------


def _rank(found: Mapping[tuple[str, str], Cell], model: str, data: str) -> int:
    own = round(found[model, data].mean, 2)
    return 1 + sum(round(c.mean, 2) > own for (_, d), c in found.items() if d == data)


def _ranked(cell: Cell | None, rank: int | None) -> str | Shown:
    if cell is None or rank is None:
        return Shown("not run", tone=Tone.QUIET)
    return Shown(f"{cell.text}\nrank {rank}", cell.mean, Tone.BETTER if rank == 1 else None)


def _spaces(ordered: Sequence[Search]) -> Table:
    """Each space once, with the models that were searched in it."""
    groups: dict[tuple[str, str, str], list[Search]] = {}
    for one in ordered:
        groups.setdefault((one.experiment, one.preset, _space(one)), []).append(one)
    heads = [Column(n, numbers=False) for n in ("experiment", "preset", "models", "values of each setting")]
    rows: list[list[str | Shown]] = []
    for (experiment, preset, space), own in groups.items():
        many = sum(s.trials for s in own)
        models = ", ".join(distinct((s.model for s in own), ORDER))
        rows.append([experiment, preset, models, space, _whole(own[0].settings), _whole(len(own)), _whole(many)])
    return Table("Search spaces", [*heads, "settings in a cell", "cells", "trials in all"], rows)


def _choices(ordered: Sequence[Search]) -> Table:
    names = ("experiment", "preset", "dataset", "model")
    heads = [*(Column(n, numbers=False) for n in names), "settings tried", "trials", "validation (%)", "seeds"]
    rows: list[list[str | Shown]] = []
    for one in ordered:
        data = called(one.dataset) + (f", {one.variant}" if one.variant else "")
        score = Shown(shown(100 * one.valid_score, 2), 100 * one.valid_score)
        numbers = [_whole(one.settings), _whole(one.trials), score, _whole(one.seeds)]
        rows.append([one.experiment, one.preset, data, one.model, *numbers, plain(one.chosen)])
    return Table("Settings that validation chose", [*heads, Column("chosen", numbers=False)], rows)


def _space(one: Search) -> str:
    return "; ".join(f"{name}: {plain(list(values))}" for name, values in one.space.items())


def _whole(number: int) -> Shown:
    return Shown(f"{number:,}", float(number))


def _runs(runs: Mapping[str, Any]) -> Table:
    heads = [Column("experiment", numbers=False), "trials", "wall time (s)", "trials per second"]
    rows: list[list[str | Shown]] = []
    for name, told in runs.items():
        trials, seconds = (told.get(k) if isinstance(told, Mapping) else None for k in ("trials", "seconds"))
        rate = (
            trials / seconds if isinstance(trials, int) and isinstance(seconds, int | float) and seconds > 0 else None
        )
        counts = Shown("–" if trials is None else f"{trials:,}", None if trials is None else float(trials))
        rows.append([str(name), counts, Shown(shown(seconds, 1), seconds), Shown(shown(rate, 2), rate)])
    return Table("Trials and wall time", heads, rows)


def _commands(run: Any) -> list[str]:
    found = run.get("commands", run.get("command", [])) if isinstance(run, Mapping) else []
    return [found] if isinstance(found, str) else [str(c) for c in found]


def _flat(name: str, value: Any) -> list[tuple[str, str]]:
    """Nested facts, one pair for each; lists of words on one line."""
    if isinstance(value, Mapping):
        return [(str(k) if name in ("hardware", "versions") else f"{name}: {k}", _words(v)) for k, v in value.items()]
    return [(_NAMES.get(name, name), _words(value))]


def _words(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else plain(value)
