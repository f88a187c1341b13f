"""Table 2: accuracies next to the paper's, preset by preset, with every deviation in words and in a colour."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unspool.report import (
    Block,
    Cell,
    Folded,
    Heading,
    Mark,
    Notes,
    Paragraph,
    Rows,
    Table,
    Tone,
    counted,
    shown,
    signed,
    text_columns,
)
from unspool.reproduce.accuracy_claims import accuracy_tests
from unspool.reproduce.entries import Entry, Standing, choose
from unspool.reproduce.records import Record, Results
from unspool.reproduce.sections.claim_blocks import claim_blocks
from unspool.reproduce.sections.interpretations import causes_in
from unspool.reproduce.sections.names import (
    DATASET_ORDER,
    MODEL_ORDER,
    STANDING_TONES,
    dataset_title,
    entry_order,
    in_order,
)
from unspool.reproduce.sections.not_run import not_run
from unspool.reproduce.summary import Tally, against_published
from unspool.reproduce.table2 import unpublished
from unspool.theory.printed_tables import UNSTATED

#: Presets in the order in which they are shown, with what each is.
PRESETS = {
    "paper": "The settings that the paper prints in its Table 4; models without a column there are searched on its grid",
    "official": "The settings of each model's authors",
    "tuned": "A wider search of our own, chosen on validation",
}

#: Why a cell deviates, a sentence for each cause.
Cause = Callable[[Entry], tuple[str, ...]]


def table2_blocks(results: Results) -> list[Block]:
    """Everything about Table 2: for each preset a summary, a grid of entries and the list behind it."""
    records, cause = results.of("table2"), causes_in(results)
    entries = choose(records)
    if not entries:
        return not_run("table2")
    words = (
        "Test accuracy in per cent, mean ± standard deviation over seeds, ours above the paper's. "
        "The third line of a cell is the difference, and whether it stays within one printed standard deviation."
    )
    blocks: list[Block] = [Paragraph([words])]
    for preset in in_order((one.first.preset for one in entries), tuple(PRESETS)):
        own = [one for one in entries if one.first.preset == preset]
        what = [Paragraph([f"{PRESETS[preset]}."])] if preset in PRESETS else []
        blocks += [Heading(f"Preset {preset}"), *what, summary(own), grid(own, preset), *misses(own, preset, cause)]
        blocks += claim_blocks(accuracy_tests(records, preset), f"preset {preset}")
        if preset == "paper":
            blocks.append(Folded("What the paper does not state, and what was chosen here", [Notes(UNSTATED)]))
        blocks.append(Folded(f"Every cell of preset {preset}, with seeds and causes", [listing(own, preset, cause)]))
    return blocks


def grid_blocks(results: Results) -> list[Block]:
    """What the paper's own grid gives when every setting is run and validation chooses.

    Example:
        >>> grid_blocks(Results([]))[0].markdown()
        'Not run yet: unspool reproduce grid'
    """
    records = results.of("grid")
    entries = choose(records)
    if not entries:
        return not_run("grid")
    words = (
        "Every setting of the grid that the paper names, on all seeds; the one with the highest mean validation score, next to the printed "
        "cell. The paper's own choice among them need not be the same."
    )
    return [Paragraph([words]), grid(entries, "grid"), *claim_blocks(accuracy_tests(records, "grid"), "grid")]


def summary(entries: Sequence[Entry]) -> Paragraph:
    """How many of the 56 printed cells are met, and what was not run.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> summary(choose([example_record(seed) for seed in range(5)])).markdown()
        "1 of the 56 cells of Table 2 at or above the printed mean less one printed standard deviation: 0 above by more than that, 1 within, 0 below. 1 were run; ArXiv's 8 need features that are not at hand; 47 were not run. ..."
    """
    found = Tally.of(entries, entries[0].first.preset)
    standings = [one.standing for one in entries]
    many = {kind: standings.count(kind) for kind in Standing}
    tone = Tone.BETTER if found.met == found.printed else Tone.NEAR
    pieces: list[str | Mark] = [
        Mark(f"{found.met} of the {found.printed} cells of Table 2", tone),
        " at or above the printed mean less one printed standard deviation: "
        f"{many[Standing.ABOVE]} above by more than that, {many[Standing.WITHIN]} within, {many[Standing.BELOW]} below. {found.absent}.",
    ]
    own = [one.met for one in entries if one.first.model == "UGDGNN" and one.met is not None]
    if own:
        pieces.append(f" UGDGNN: {sum(own)} of {len(own)}.")
    seeds = sorted({len(one.records) for one in entries})
    pieces.append(f" Seeds per cell: {' to '.join(str(n) for n in dict.fromkeys((seeds[0], seeds[-1])))}.")
    return Paragraph(pieces)


def grid(entries: Sequence[Entry], preset: str) -> Table:
    """Models by datasets.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> print(grid(choose([example_record(seed) for seed in range(5)]), "paper").markdown().splitlines()[-1])
        | GCN | 83.00 ± 0.32<br>paper 83.24 ± 0.50<br>−0.24 within 1 std |
    """
    found = {(one.first.model, one.first.dataset): one for one in entries}
    datasets = in_order((one.first.dataset for one in entries), DATASET_ORDER)
    rows: Rows = [
        [model, *(_cell(found.get((model, data)), unpublished(model, data, preset)) for data in datasets)]
        for model in in_order((one.first.model for one in entries), MODEL_ORDER)
    ]
    return Table(f"Table 2, preset {preset}", [*text_columns("model"), *map(dataset_title, datasets)], rows)


def misses(entries: Sequence[Entry], preset: str, cause: Cause) -> list[Block]:
    """The cells that lie below by more than a printed standard deviation, cause by cause; nothing where there are none.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> misses(choose([example_record(seed) for seed in range(5)]), "paper", lambda entry: ())
        []
    """
    low = [one for one in entries if one.standing is Standing.BELOW]
    if not low:
        return []
    told: dict[str, list[str]] = {}
    for one in sorted(low, key=entry_order):
        cell = f"{one.first.model} on {dataset_title(one.first.dataset)} {signed(one.difference)}"
        for words in cause(one) or ("Not known.",):
            told.setdefault(words, []).append(cell)
    rows: Rows = [[", ".join(cells), words] for words, cells in told.items()]
    caption = f"{counted(len(low), 'cell')} of preset {preset} below by more than one printed standard deviation"
    columns = text_columns("cells, and by how much they differ", "cause of the deviation, and what explains it")
    return [Table(caption, columns, rows)]


def listing(entries: Sequence[Entry], preset: str, cause: Cause) -> Table:
    """One row for each cell."""
    heads = ["ours", "std", "paper", "its std", "difference", "in its std", "seeds"]
    words = text_columns("standing", "cause of the deviation")
    rows = [_line(one, " ".join(cause(one))) for one in sorted(entries, key=entry_order)]
    return Table(
        f"{counted(len(rows), 'cell')} of preset {preset}", [*text_columns("model", "dataset"), *heads, *words], rows
    )


def published_blocks(results: Results) -> list[Block]:
    """The best model of the tuned settings on each dataset, chosen on validation, against the highest published numbers.

    Only entries of one preset are compared: others keep another epoch, so that their validation scores mean something else.
    """
    records: list[Record] = results.of("table2")
    found = against_published(records)
    if not found:
        return not_run("table2 --preset tuned") if records else []
    columns = [*text_columns("dataset", "our best"), "of tuned models", "ours"]
    columns += ["same family", "difference", "highest", "difference to it"]
    rows: Rows = []
    for one in found:
        entry, pairs = one.entry, ((one.family, one.family_who), (one.best, one.who))
        numbers = [part for value, who in pairs for part in (_published(value, who), _gap(entry, value))]
        ours = [Cell.count(one.models), Cell(entry.text, entry.mean)]
        rows.append([dataset_title(entry.first.dataset), entry.first.model, *ours, *numbers])
    words = (
        "The model with the highest mean validation score of the tuned settings, one for each dataset, next to published numbers under "
        "the same protocol: the highest of the same family of networks, and the highest of any kind that we know."
    )
    return [Paragraph([words]), Table("Our best against published numbers (test accuracy, %)", columns, rows)]


# -- inside ------------------------------------------------------------------------------------------------------------


def _cell(entry: Entry | None, silent: bool) -> Cell:
    if entry is None:
        return Cell("none published" if silent else "not run", tone=Tone.QUIET)
    gap, standing, printed = entry.difference, entry.standing, entry.printed
    if gap is None or standing is None or printed is None:
        return Cell(entry.text, entry.mean)
    lines = [entry.text, f"paper {printed[0]:.2f} ± {printed[1]:.2f}", f"{signed(gap)} {standing.value}"]
    return Cell("\n".join(lines), entry.mean, STANDING_TONES[standing])


def _line(entry: Entry, cause: str) -> list[str | Cell]:
    standing = entry.standing
    mean, std = (None, None) if entry.printed is None else entry.printed
    tone = Tone.QUIET if standing is None else STANDING_TONES[standing]
    return [
        entry.first.model,
        dataset_title(entry.first.dataset),
        *map(Cell.number, (entry.mean, 100 * entry.test.std, mean, std)),
        Cell.signed(entry.difference, None if standing is None else tone),
        Cell.signed(_in_std(entry)),
        Cell.count(len(entry.records)),
        Cell("not in the paper" if standing is None else standing.value, tone=tone),
        cause,
    ]


def _in_std(entry: Entry) -> float | None:
    gap, printed = entry.difference, entry.printed
    return None if gap is None or printed is None or not printed[1] else gap / printed[1]


def _published(value: float, who: str) -> Cell:
    return Cell(f"{shown(value, 2)}\n{who}", value)


def _gap(entry: Entry, other: float) -> Cell:
    found = round(round(entry.mean, 2) - other, 2) + 0.0
    return Cell.signed(found, Tone.BETTER if found > 0 else Tone.WORSE if found < 0 else Tone.NEAR)
