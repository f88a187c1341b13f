"""What the data files of the experiments know about cells: causes of deviations, and the highest published numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from unspool.report import Block, Column, Paragraph, Table, Tone
from unspool.report import Cell as Shown
from unspool.report.text import shown
from unspool.reproduce.causes import causes_of
from unspool.reproduce.cells import Cell, choose
from unspool.reproduce.page_cells import NAMES, Standing, called, distinct, signed, standing
from unspool.reproduce.readings import explained
from unspool.reproduce.results import Record, Results
from unspool.reproduce.settings import read_settings


def cause_of(cell: Cell) -> str:
    """Why a cell deviates by more than a printed standard deviation, as far as ``causes.toml`` knows; else nothing.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> low = [example_record(seed, model="JKNet", test_score=0.7) for seed in range(3)]
        >>> cause_of(choose(low)[0])[:45]
        'the paper does not say how JKNet combines its'
    """
    if standing(cell) in (None, Standing.WITHIN):
        return ""
    row = cell.first
    return " ".join(f"{cause}." for cause in causes_of(row.model, row.dataset, row.preset))


def causes_in(results: Results) -> Callable[[Cell], str]:
    """Tells of a cell what ``causes.toml`` knows, after the reading that was measured to explain it.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> low = [example_record(seed, test_score=0.8) for seed in range(3)]
        >>> other = [example_record(seed, experiment="readings", preset="last epoch") for seed in range(3)]
        >>> causes_in(Results([*low, *other]))(choose(low)[0])
        'Explained by the reading "last epoch": 82.80 ± 0.20 (−0.44).'
    """
    found = {(one.cell.first.model, one.cell.first.dataset): one for one in explained(results)}

    def cause(cell: Cell) -> str:
        one = found.get((cell.first.model, cell.first.dataset)) if cell.first.preset == "paper" else None
        measured = ""
        if one is not None and one.by is not None:
            measured = f'Explained by the reading "{one.by.first.preset}": {one.by.text} ({signed(one.by.difference)}).'
        elif one is not None and one.readings:
            best = one.readings[0]
            measured = f'No reading that was tried explains it; the nearest is "{best.first.preset}": {best.text} ({signed(best.difference)}).'
        return f"{measured} {cause_of(cell)}".strip()

    return cause


def surpassed(rows: Sequence[Record]) -> list[Block]:
    """The best model of ours on each dataset, chosen on validation, against the highest published numbers."""
    cells = [c for c in choose(rows) if not math.isnan(c.mean) and not math.isnan(c.valid.mean)]
    tuned = [c for c in cells if c.first.preset == "tuned"]
    cells = tuned if tuned else cells
    known = read_settings("published")
    heads = [Column(n, numbers=False) for n in ("dataset", "our best")]
    heads += [Column(n) for n in ("ours", "same family", "difference", "highest", "difference to it")]
    table: list[list[str | Shown]] = []
    for data in distinct((c.first.dataset for c in cells if c.first.dataset in known), NAMES):
        best = max((c for c in cells if c.first.dataset == data), key=lambda c: c.valid.mean)
        one = known[data]
        pairs = [
            part
            for name in ("family", "best")
            for part in (_published(one[name], one["who" if name == "best" else "family_who"]), _gap(best, one[name]))
        ]
        who = f"{best.first.model}, preset {best.first.preset}"
        table.append([called(data), who, Shown(best.text, best.mean), *pairs])
    if not table:
        return []
    which = "of the tuned settings" if tuned else "of all presets in this folder"
    words = (
        f"The model with the highest mean validation score {which}, one for each dataset, beside published numbers under the same "
        "protocol: the highest of the same family of networks, and the highest of any kind that we know."
    )
    return [Paragraph([words]), Table("Our best against published numbers (test accuracy, %)", heads, table)]


def _published(value: float, who: str) -> Shown:
    return Shown(f"{shown(value, 2)}\n{who}", value)


def _gap(cell: Cell, other: float) -> Shown:
    found = round(round(cell.mean, 2) - other, 2) + 0.0
    tone = Tone.BETTER if found > 0 else Tone.WORSE if found < 0 else Tone.NEAR
    return Shown(signed(found), found, tone)
