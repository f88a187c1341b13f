"""Cells that miss the printed number, under other readings of what the paper leaves open."""

from __future__ import annotations

from unspool.report import Block, Column, Folded, Mark, Notes, Paragraph, Table, Tone
from unspool.report import Cell as Shown
from unspool.reproduce.cells import Cell
from unspool.reproduce.page_causes import known_causes
from unspool.reproduce.page_cells import called, gap, signed, standing
from unspool.reproduce.readings import Explained, explained
from unspool.reproduce.results import Results
from unspool.reproduce.summary import tally


def readings(results: Results) -> list[Block]:
    """Which cells are explained by which reading, and behind a fold everything that was tried.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> low = [example_record(seed, test_score=0.8) for seed in range(3)]
        >>> other = [example_record(seed, experiment="readings", preset="last epoch") for seed in range(3)]
        >>> print(readings(Results([*low, *other]))[0].markdown())
        0 of 1 cells are met as printed, 1 more under a reading of what the paper leaves open, one change at a time, ...
    """
    found = explained(results)
    if not any(one.readings for one in found):
        return []
    printed = tally(results.of("table2"), "paper")
    by = [one.by.first.preset for one in found if one.by is not None]
    more, authors = len(by), by.count("official")
    lead = Paragraph([
        Mark(f"{printed.met} of {printed.printed} cells", Tone.NEAR),
        f" are met as printed, {more - authors} more under a reading of what the paper leaves open, one change at a time, and {authors} more "
        f"with the settings of the model's authors ('official'): {printed.met + more} of {printed.printed}. Readings explain; they choose "
        "nothing, and no other table is built on them.",
    ])  # fmt: skip
    why = known_causes(found)
    notes: list[Block] = [Paragraph(["What is known about them:"]), Notes(why)] if why else []
    return [lead, _summary(found), *notes, Folded("Every reading that was tried", [_listing(found)])]


def _summary(found: list[Explained]) -> Table:
    heads = [Column(n, numbers=False) for n in ("model", "dataset")]
    heads += [Column(n) for n in ("paper", "as printed", "difference")]
    heads += [Column("reading that explains it", numbers=False), Column("with it"), Column("difference")]
    rows: list[list[str | Shown]] = []
    for one in found:
        cell, best = one.cell, one.by
        why = "none of those tried" if one.readings else "none tried yet"
        ending: list[str | Shown] = [why, Shown("–"), Shown("–")]
        if best is not None:
            ending = [best.first.preset, Shown(best.text, best.mean), _gap(best, words=False)]
        printed = [_paper(cell), Shown(cell.text, cell.mean), _gap(cell, words=False)]
        rows.append([cell.first.model, called(cell.first.dataset), *printed, *ending])
    caption = "Cells below by more than one printed standard deviation, and the reading with which they are not (test accuracy, %)"
    return Table(caption, heads, rows)


def _listing(found: list[Explained]) -> Table:
    heads = [Column(n, numbers=False) for n in ("model", "dataset", "reading")]
    heads += [Column(n) for n in ("paper", "ours", "difference")]
    rows: list[list[str | Shown]] = [
        [
            one.cell.first.model,
            called(one.cell.first.dataset),
            c.first.preset,
            _paper(c),
            Shown(c.text, c.mean),
            _gap(c),
        ]
        for one in found
        for c in one.readings
    ]
    return Table("Readings of cells that miss (test accuracy, %)", heads, rows)


def _paper(cell: Cell) -> Shown:
    if cell.printed is None:
        return Shown("–")
    return Shown(f"{cell.printed[0]:.2f} ± {cell.printed[1]:.2f}", cell.printed[0])


def _gap(cell: Cell, *, words: bool = True) -> Shown:
    found, how = gap(cell), standing(cell)
    if found is None or how is None:
        return Shown("–")
    return Shown(f"{signed(found)} {how.value}" if words else signed(found), found, how.tone)
