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
        0 of the 56 cells of Table 2 are met with the printed settings, which were fixed before anything was run (1 were run; ...
    """
    found = explained(results)
    if not any(one.readings for one in found):
        return []
    printed = tally(results.of("table2"), "paper")
    by = [one.by.first.preset for one in found if one.by is not None]
    more, authors = len(by), by.count("official")
    most = max(sum(reading.first.preset != "official" for reading in one.readings) for one in found)
    lead = Paragraph([
        Mark(f"{printed.met} of the {printed.printed} cells of Table 2", Tone.NEAR),
        f" are met with the printed settings, which were fixed before anything was run ({printed.absent}). The paper leaves things open, so each of the "
        f"{len(found)} that miss was run again, with one thing changed at a time: up to {most} ways for a cell, thought of after the miss was seen and "
        f"judged by the printed test number, since what is asked is what the paper may have meant. For {more - authors} of them one of these readings meets the print, "
        f"for {authors} only the settings of the model's authors ('official') do, for {len(found) - more} none. Of so many tries some would meet by chance, and "
        "different cells need different readings: this explains single cells, and is not a count of cells that one protocol reproduces. No other table is built on it.",
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
