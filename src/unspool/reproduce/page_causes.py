"""What the data files of the experiments know about cells: causes of deviations, and the highest published numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unspool.report import Block, Column, Paragraph, Table, Tone
from unspool.report import Cell as Shown
from unspool.report.text import shown
from unspool.reproduce.cells import Cell
from unspool.reproduce.page_cells import Standing, called, signed, standing
from unspool.reproduce.readings import Explained, explained
from unspool.reproduce.results import Record, Results
from unspool.reproduce.summary import causes_for, is_cut
from unspool.reproduce.summary import surpassed as best_tuned


def cause_of(cell: Cell) -> str:
    """Why a cell deviates by more than a printed standard deviation, as far as ``causes.toml`` knows; else nothing.

    Example:
        >>> from unspool.reproduce.cells import choose
        >>> from unspool.reproduce.results import example_record
        >>> low = [example_record(seed, model="JKNet", test_score=0.7) for seed in range(3)]
        >>> cause_of(choose(low)[0])[:45]
        'The paper does not say how JKNet combines its'
    """
    if standing(cell) in (None, Standing.WITHIN):
        return ""
    return " ".join(sentence(str(cause)) for cause in causes_for(cell))


def sentence(words: str) -> str:
    """Words with a capital letter and a full stop.

    Example:
        >>> sentence("the paper does not say")
        'The paper does not say.'
    """
    return f"{words[:1].upper()}{words[1:]}."


def causes_in(results: Results) -> Callable[[Cell], str]:
    """Tells of a cell the reading that was measured to explain it; where none was tried, what ``causes.toml`` knows.

    Example:
        >>> from unspool.reproduce.cells import choose
        >>> from unspool.reproduce.results import example_record
        >>> low = [example_record(seed, test_score=0.8) for seed in range(3)]
        >>> other = [example_record(seed, experiment="readings", preset="last epoch") for seed in range(3)]
        >>> causes_in(Results([*low, *other]))(choose(low)[0])
        'Explained by the reading "last epoch": 82.80 ± 0.20 (−0.44).'
    """
    found = {(one.cell.first.model, one.cell.first.dataset): one for one in explained(results)}

    def cause(cell: Cell) -> str:
        mine = cell.first.preset == "paper" and not is_cut(cell.first)
        one = found.get((cell.first.model, cell.first.dataset)) if mine else None
        measured = ""
        if one is not None and one.by is not None:
            name = one.by.first.preset
            by = "its authors' settings" if name == "official" else f'the reading "{name}"'
            measured = f"Explained by {by}: {one.by.text} ({signed(one.by.difference)})."
        elif one is not None and (near := [r for r in one.readings if r.first.preset != "official"]):
            best = near[0]
            measured = f'No reading that was tried explains it; the nearest is "{best.first.preset}": {best.text} ({signed(best.difference)}).'
        return measured if measured else cause_of(cell)

    return cause


def known_causes(found: Sequence[Explained]) -> list[str]:
    """What ``causes.toml`` knows about cells that miss, each cause once with the cells that it concerns."""
    told: dict[str, list[str]] = {}
    for one in found:
        row = one.cell.first
        for cause in causes_for(one.cell):
            told.setdefault(str(cause), []).append(f"{row.model} on {called(row.dataset)}")
    return [f"{', '.join(cells)}: {words}." for words, cells in told.items()]


def surpassed(rows: Sequence[Record]) -> list[Block]:
    """The best model of the tuned settings on each dataset, chosen on validation, against the highest published numbers.

    Only cells of one preset are compared: others keep another epoch, so that their validation scores mean something else.
    """
    found = best_tuned(rows)
    if not found:
        return [Paragraph(["Not run yet: unspool reproduce table2 --preset tuned"])] if rows else []
    heads = [Column(n, numbers=False) for n in ("dataset", "our best")] + [Column("of tuned models")]
    heads += [Column(n) for n in ("ours", "same family", "difference", "highest", "difference to it")]
    table: list[list[str | Shown]] = []
    for one in found:
        cell = one.cell
        pairs = [
            _published(one.family, one.family_who),
            _gap(cell, one.family),
            _published(one.best, one.who),
            _gap(cell, one.best),
        ]
        many = Shown(str(one.models), float(one.models))
        table.append([called(cell.first.dataset), cell.first.model, many, Shown(cell.text, cell.mean), *pairs])
    words = (
        "The model with the highest mean validation score of the tuned settings, one for each dataset, beside published numbers under "
        "the same protocol: the highest of the same family of networks, and the highest of any kind that we know."
    )
    return [Paragraph([words]), Table("Our best against published numbers (test accuracy, %)", heads, table)]


def _published(value: float, who: str) -> Shown:
    return Shown(f"{shown(value, 2)}\n{who}", value)


def _gap(cell: Cell, other: float) -> Shown:
    found = round(round(cell.mean, 2) - other, 2) + 0.0
    tone = Tone.BETTER if found > 0 else Tone.WORSE if found < 0 else Tone.NEAR
    return Shown(signed(found), found, tone)
