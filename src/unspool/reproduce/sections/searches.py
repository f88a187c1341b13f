"""Heterophilous sets, and searches: spaces, counts, and what validation chose."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from unspool.report import Block, Cell, Column, Folded, Paragraph, Rows, Table, Tone, counted, text_columns
from unspool.report.text import plain
from unspool.reproduce.entries import Entry, choose
from unspool.reproduce.records import Results, Search
from unspool.reproduce.sections.names import DATASET_ORDER, MODEL_ORDER, dataset_title, in_order, order_of
from unspool.reproduce.sections.not_run import NotRun, not_run


def heterophily_blocks(results: Results) -> list[Block]:
    """Accuracy on graphs whose neighbours differ, and each model's mean rank."""
    entries = choose(results.of("heterophily"))
    if not entries:
        return not_run("heterophily")
    words = "Graphs whose edges mostly join nodes of different classes, ten recorded splits. Free coefficients can become a high-pass filter there; fixed ones cannot."
    presets = in_order((entry.first.preset for entry in entries), ())
    tables = [rank_table([e for e in entries if e.first.preset == preset], preset) for preset in presets]
    return [Paragraph([words]), *tables]


def rank_table(entries: Sequence[Entry], preset: str) -> Table:
    """Models by datasets with ranks, the best mean rank first; models with equal means share a rank.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> found = [example_record(s, model=m, test_score=v) for s in range(2) for m, v in (("GCN", 0.6), ("UGDGNN", 0.8))]
        >>> print(rank_table(choose(found), "default").markdown().splitlines()[-2])
        | UGDGNN | 80.00 ± 0.00<br>rank 1 | 1.00 |
    """
    found = {(e.first.model, e.first.dataset): e for e in entries if not math.isnan(e.mean)}
    datasets = in_order((data for _, data in found), DATASET_ORDER)
    models = in_order((model for model, _ in found), MODEL_ORDER)
    ranks = {place: _rank(found, *place) for place in found}
    mean = {m: statistics.fmean(rank for (model, _), rank in ranks.items() if model == m) for m in models}
    rows: Rows = []
    for model in sorted(models, key=lambda m: (mean[m], order_of(m, MODEL_ORDER))):
        cells = [_ranked(found.get((model, data)), ranks.get((model, data))) for data in datasets]
        rows.append([model, *cells, Cell.number(mean[model])])
    caption = f"Test accuracy (%) on heterophilous graphs, preset {preset}; first in a column is coloured"
    return Table(caption, [*text_columns("model"), *map(dataset_title, datasets), "mean rank"], rows)


def search_blocks(results: Results) -> list[Block]:
    """What was searched: spaces, counts, and what validation chose."""
    found = results.searches
    if not found:
        return [NotRun(["No search is recorded in this folder: unspool reproduce grid, or table2 --preset tuned"])]
    words = "Settings are chosen by the mean validation score over seeds; test scores play no part in the choice."
    ordered = sorted(found, key=_order)
    tried, trials = sum(one.settings for one in found), sum(one.trials for one in found)
    cells = f"{counted(len(found), 'cell')} {'was' if len(found) == 1 else 'were'} searched"
    total = f" {cells}: {tried:,} settings, {trials:,} trials."
    spaces = Folded("The spaces, and how many settings of each were tried", [_spaces(ordered)])
    return [Paragraph([words + total]), spaces, Folded("What was chosen, cell by cell", [_choices(ordered)])]


# -- inside ------------------------------------------------------------------------------------------------------------


def _order(one: Search) -> tuple[object, ...]:
    return (one.experiment, one.preset, order_of(one.dataset, DATASET_ORDER), order_of(one.model, MODEL_ORDER))


def _rank(found: Mapping[tuple[str, str], Entry], model: str, dataset: str) -> int:
    own = round(found[model, dataset].mean, 2)
    return 1 + sum(round(entry.mean, 2) > own for (_, data), entry in found.items() if data == dataset)


def _ranked(entry: Entry | None, rank: int | None) -> Cell:
    if entry is None or rank is None:
        return Cell("not run", tone=Tone.QUIET)
    return Cell(f"{entry.text}\nrank {rank}", entry.mean, Tone.BETTER if rank == 1 else None)


def _spaces(ordered: Sequence[Search]) -> Table:
    """Each space once, with the models that were searched in it."""
    groups: dict[tuple[str, str, str], list[Search]] = {}
    for one in ordered:
        space = "; ".join(f"{name}: {plain(list(values))}" for name, values in one.space.items())
        groups.setdefault((one.experiment, one.preset, space), []).append(one)
    rows: Rows = []
    for (experiment, preset, space), own in groups.items():
        models = ", ".join(in_order((one.model for one in own), MODEL_ORDER))
        numbers = [own[0].settings, len(own), sum(one.trials for one in own)]
        rows.append([experiment, preset, models, space, *map(Cell.count, numbers)])
    columns = text_columns("experiment", "preset", "models", "values of each setting")
    return Table("Search spaces", [*columns, "settings in a cell", "cells", "trials in all"], rows)


def _choices(ordered: Sequence[Search]) -> Table:
    columns = [*text_columns("experiment", "preset", "dataset", "model"), "settings tried", "trials"]
    columns += ["validation (%)", "seeds", Column("chosen", numbers=False)]
    rows: Rows = []
    for one in ordered:
        counts = [Cell.count(one.settings), Cell.count(one.trials)]
        numbers = [*counts, Cell.number(100 * one.valid_score), Cell.count(one.seeds)]
        rows.append([one.experiment, one.preset, dataset_title(one.dataset), one.model, *numbers, plain(one.chosen)])
    return Table("Settings that validation chose", columns, rows)
