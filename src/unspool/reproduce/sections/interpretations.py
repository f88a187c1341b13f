"""Cells that miss the printed number: under other interpretations of what the paper leaves open, and what else is known about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unspool.report import Block, Cell, Folded, Mark, Notes, Paragraph, Rows, Table, Tone, signed, text_columns
from unspool.reproduce.entries import Entry, Standing
from unspool.reproduce.interpretations import Explained, explain_misses, interpretation_named
from unspool.reproduce.records import Results
from unspool.reproduce.sections.names import STANDING_TONES, dataset_title
from unspool.reproduce.sections.not_run import not_run
from unspool.reproduce.summary import Tally, causes_for, entries_of, is_cut


def interpretation_blocks(results: Results) -> list[Block]:
    """Which cells are explained by which interpretation, and behind a fold everything that was tried.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> low = [example_record(seed, test_score=0.8) for seed in range(3)]
        >>> other = [example_record(seed, experiment="interpretations", interpretation="last_epoch") for seed in range(3)]
        >>> print(interpretation_blocks(Results([*low, *other]))[0].markdown())
        0 of the 56 cells of Table 2 are met with the printed settings, which were fixed before anything was run (1 were run; ...
    """
    found = explain_misses(results)
    if not any(one.interpreted for one in found):
        return not_run("interpretations") if found else []
    printed = Tally.of(entries_of(results.of("table2"), "paper"), "paper")
    by = [one.by for one in found if one.by is not None]
    authors = sum(not one.first.interpretation for one in by)
    most = max(len(one.interpreted) for one in found)
    lead = Paragraph(
        [
            Mark(f"{printed.met} of the {printed.printed} cells of Table 2", Tone.NEAR),
            f" are met with the printed settings, which were fixed before anything was run ({printed.absent}). The paper leaves things open, "
            "such as which epoch is kept or how layers are combined; an interpretation is one way to fill such a gap. So "
            f"each of the {len(found)} that miss was run again, with one thing changed at a time: up to {most} ways for a cell, thought of after the "
            f"miss was seen and judged by the printed test number, since what is asked is what the paper may have meant. For {len(by) - authors} of "
            f"them one of these interpretations meets the print, for {authors} only the settings of the model's authors ('official') do, for "
            f"{len(found) - len(by)} none. Of so many tries some would meet by chance, and different cells need different interpretations: this "
            "explains single cells, and is not a count of cells that one protocol reproduces. No other table is built on it.",
        ]
    )
    why = known_causes(found)
    notes: list[Block] = [Paragraph(["What is known about them:"]), Notes(why)] if why else []
    return [lead, _summary(found), *notes, Folded("Every interpretation that was tried", [_listing(found)])]


def causes_in(results: Results) -> Callable[[Entry], tuple[str, ...]]:
    """Tells of an entry the interpretation that was measured to explain it; where none was tried, what ``causes.toml`` knows.

    Example:
        >>> from unspool.reproduce.entries import choose
        >>> from unspool.reproduce.records import example_record
        >>> low = [example_record(seed, test_score=0.8) for seed in range(3)]
        >>> other = [example_record(seed, experiment="interpretations", interpretation="last_epoch") for seed in range(3)]
        >>> causes_in(Results([*low, *other]))(choose(low)[0])
        ('Explained by the interpretation "last epoch": 82.80 ± 0.20 (−0.44).',)
    """
    found = {(one.entry.first.model, one.entry.first.dataset): one for one in explain_misses(results)}

    def cause(entry: Entry) -> tuple[str, ...]:
        mine = entry.first.preset == "paper" and not is_cut(entry.first)
        one = found.get((entry.first.model, entry.first.dataset)) if mine else None
        measured = "" if one is None else _measured(one)
        return (measured,) if measured else cause_of(entry)

    return cause


def _measured(one: Explained) -> str:
    if one.by is not None:
        by = f'the interpretation "{_name(one.by)}"' if one.by.first.interpretation else "its authors' settings"
        return f"Explained by {by}: {one.by.text} ({signed(one.by.difference)})."
    if one.interpreted:
        best = one.interpreted[0]
        nearest = f'the nearest is "{_name(best)}": {best.text} ({signed(best.difference)})'
        return f"No interpretation that was tried explains it; {nearest}."
    return ""


def cause_of(entry: Entry) -> tuple[str, ...]:
    """Why an entry deviates by more than a printed standard deviation, as far as ``causes.toml`` knows, a sentence for each cause.

    Example:
        >>> from unspool.reproduce.entries import choose
        >>> from unspool.reproduce.records import example_record
        >>> low = [example_record(seed, model="JKNet", test_score=0.7) for seed in range(3)]
        >>> cause_of(choose(low)[0])[0][:45]
        'The paper does not say how JKNet combines its'
    """
    if entry.standing in (None, Standing.WITHIN):
        return ()
    return tuple(f"{words[:1].upper()}{words[1:]}." for words in map(str, causes_for(entry)))


def known_causes(found: Sequence[Explained]) -> list[str]:
    """What ``causes.toml`` knows about cells that miss, each cause once with the cells that it concerns."""
    told: dict[str, list[str]] = {}
    for one in found:
        first = one.entry.first
        for cause in causes_for(one.entry):
            told.setdefault(str(cause), []).append(f"{first.model} on {dataset_title(first.dataset)}")
    return [f"{', '.join(cells)}: {words}." for words, cells in told.items()]


# -- inside ------------------------------------------------------------------------------------------------------------


def _name(entry: Entry) -> str:
    """What was tried: an interpretation, or a preset."""
    first = entry.first
    return interpretation_named(first.interpretation).text if first.interpretation else first.preset


def _summary(found: Sequence[Explained]) -> Table:
    columns = [*text_columns("model", "dataset"), "paper", "as printed", "difference"]
    columns += [*text_columns("interpretation that explains it"), "with it", "difference"]
    rows: Rows = []
    for one in found:
        entry, best = one.entry, one.by
        ending: list[str | Cell] = ["none of those tried" if one.tried else "none tried yet", Cell("–"), Cell("–")]
        if best is not None:
            ending = [_name(best), Cell(best.text, best.mean), _gap(best)]
        ours = [_paper(entry), Cell(entry.text, entry.mean), _gap(entry)]
        rows.append([entry.first.model, dataset_title(entry.first.dataset), *ours, *ending])
    caption = "Cells below by more than one printed standard deviation, and the interpretation with which they are not (test accuracy, %)"
    return Table(caption, columns, rows)


def _listing(found: Sequence[Explained]) -> Table:
    columns = [*text_columns("model", "dataset", "interpretation"), "paper", "ours", "difference"]
    rows: Rows = [
        [first.model, dataset_title(first.dataset), _name(one), _paper(one), Cell(one.text, one.mean), _gap(one, True)]
        for miss in found
        for one in miss.tried
        if (first := one.first)
    ]
    return Table("Interpretations of cells that miss (test accuracy, %)", columns, rows)


def _paper(entry: Entry) -> Cell:
    if entry.printed is None:
        return Cell("–")
    return Cell(f"{entry.printed[0]:.2f} ± {entry.printed[1]:.2f}", entry.printed[0])


def _gap(entry: Entry, words: bool = False) -> Cell:
    gap, standing = entry.difference, entry.standing
    if gap is None or standing is None:
        return Cell("–")
    return Cell(f"{signed(gap)} {standing.value}" if words else signed(gap), gap, STANDING_TONES[standing])
