"""Table 2 on the page: accuracies beside the paper's, preset by preset, with every deviation in words and in a colour."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from unspool.models.preset_tables import UNSTATED
from unspool.report import Block, Column, Folded, Heading, Mark, Notes, Paragraph, Table, Tone
from unspool.report import Cell as Shown
from unspool.report.text import counted, shown
from unspool.reproduce.cells import Cell, choose
from unspool.reproduce.claims import accuracy_answers
from unspool.reproduce.page_cells import NAMES, ORDER, Standing, called, distinct, gap, place, signed, standing
from unspool.reproduce.page_claims import answers_blocks
from unspool.reproduce.results import Record
from unspool.reproduce.summary import tallied
from unspool.reproduce.table2 import unpublished

#: Presets in the order in which they are shown, with what each is.
PRESETS = {
    "paper": "The settings that the paper prints in its Table 4; models without a column there are searched on its grid",
    "official": "The settings of each model's authors",
    "tuned": "A wider search of our own, chosen on validation",
}

Cause = Callable[[Cell], str]


def table2(rows: Sequence[Record], cause: Cause) -> list[Block]:
    """Everything about Table 2: a summary, then for each preset a grid of cells and the list behind it.

    Args:
        rows: the trials of the experiment.
        cause: why a cell deviates, in a sentence; empty where nothing is known.
    """
    cells = choose(rows)
    if not cells:
        return [Paragraph(["Not run yet: unspool reproduce table2"])]
    words = (
        "Test accuracy in per cent, mean ± standard deviation over seeds, ours above the paper's. "
        "The third line of a cell is the difference, and whether it stays within one printed standard deviation."
    )
    blocks: list[Block] = [Paragraph([words])]
    for preset in distinct((c.first.preset for c in cells), PRESETS):
        own = [c for c in cells if c.first.preset == preset]
        what = [Paragraph([f"{PRESETS[preset]}."])] if preset in PRESETS else []
        rest: list[Block] = [Notes(UNSTATED)] if preset == "paper" else []
        blocks += [Heading(f"Preset {preset}"), *what, summary(own), grid(own, preset), *misses(own, preset, cause)]
        blocks += answers_blocks(accuracy_answers(rows, preset), f"preset {preset}")
        blocks += [Folded("What the paper does not state, and what was chosen here", rest)] if rest else []
        blocks.append(Folded(f"Every cell of preset {preset}, with seeds and causes", [listing(own, preset, cause)]))
    return blocks


def whole_grid(rows: Sequence[Record]) -> list[Block]:
    """What the paper's own grid gives when every setting is run and validation chooses.

    Example:
        >>> whole_grid([])[0].markdown()
        'Not run yet: unspool reproduce grid'
    """
    cells = choose(rows)
    if not cells:
        return [Paragraph(["Not run yet: unspool reproduce grid"])]
    words = (
        "Every setting of the grid that the paper names, on all seeds; the one with the highest mean validation score, beside the printed "
        "cell. The paper's own choice among them need not be the same."
    )
    return [Paragraph([words]), grid(cells, "grid"), *answers_blocks(accuracy_answers(rows, "grid"), "grid")]


def summary(cells: Sequence[Cell]) -> Paragraph:
    """How many of the 56 printed cells are met, and what was not run.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> summary(choose([example_record(seed) for seed in range(5)])).markdown()
        "1 of the 56 cells of Table 2 at or above the printed mean less one printed standard deviation: 0 above by more than that, 1 within, 0 below. 1 were run; ArXiv's 8 need features that are not at hand; 47 were not run. ..."
    """
    known = [(c, s) for c in cells if (s := standing(c)) is not None]
    found = tallied(cells, cells[0].first.preset if cells else "paper")
    many = {kind: sum(s is kind for _, s in known) for kind in Standing}
    tone = Tone.BETTER if known and found.met == found.printed else Tone.NEAR
    pieces: list[str | Mark] = [
        Mark(f"{found.met} of the {found.printed} cells of Table 2", tone),
        " at or above the printed mean less one printed standard deviation: "
        f"{many[Standing.ABOVE]} above by more than that, {many[Standing.WITHIN]} within, {many[Standing.BELOW]} below. {found.absent}.",
    ]
    own = [s for c, s in known if c.first.model == "UGDGNN"]
    if own:
        pieces.append(f" UGDGNN: {sum(s is not Standing.BELOW for s in own)} of {len(own)}.")
    seeds = sorted({len(c.rows) for c in cells})
    pieces.append(f" Seeds per cell: {' to '.join(str(n) for n in dict.fromkeys((seeds[0], seeds[-1])))}.")
    return Paragraph(pieces)


def grid(cells: Sequence[Cell], preset: str) -> Table:
    """Models by datasets.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> print(grid(choose([example_record(seed) for seed in range(5)]), "paper").markdown().splitlines()[-1])
        | GCN | 83.00 ± 0.32<br>paper 83.24 ± 0.50<br>−0.24 within 1 std |
    """
    found = {(c.first.model, c.first.dataset): c for c in cells}
    datasets = distinct((c.first.dataset for c in cells), NAMES)
    rows: list[list[str | Shown]] = [
        [model, *(_cell(found.get((model, data)), unpublished(model, data, preset)) for data in datasets)]
        for model in distinct((c.first.model for c in cells), ORDER)
    ]
    return Table(f"Table 2, preset {preset}", [Column("model", numbers=False), *map(called, datasets)], rows)


def misses(cells: Sequence[Cell], preset: str, cause: Cause) -> list[Block]:
    """The cells that lie below by more than a printed standard deviation, and why; nothing where there are none.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> misses(choose([example_record(seed) for seed in range(5)]), "paper", lambda cell: "")
        []
    """
    low = [c for c in cells if standing(c) is Standing.BELOW]
    heads = [*(Column(n, numbers=False) for n in ("model", "dataset")), "difference", "in printed std"]
    rows: list[list[str | Shown]] = []
    for cell in sorted(low, key=_where):
        found, words = gap(cell), cause(cell)
        steps = None if found is None or cell.printed is None else found / cell.printed[1]
        numbers = [Shown("–" if v is None else signed(v), v) for v in (found, steps)]
        rows.append([cell.first.model, called(cell.first.dataset), *numbers, words if words else "not known"])
    caption = f"{counted(len(low), 'cell')} of preset {preset} below by more than one printed standard deviation"
    return (
        [Table(caption, [*heads, Column("cause of the deviation, and what explains it", numbers=False)], rows)]
        if low
        else []
    )


def listing(cells: Sequence[Cell], preset: str, cause: Cause) -> Table:
    """One row for each cell."""
    heads = ["ours", "std", "paper", "its std", "difference", "in its std", "seeds"]
    columns = [*(Column(n, numbers=False) for n in ("model", "dataset")), *heads]
    words = [Column(n, numbers=False) for n in ("standing", "cause of the deviation")]
    rows = [_line(cell, cause(cell)) for cell in sorted(cells, key=_where)]
    return Table(f"{counted(len(rows), 'cell')} of preset {preset}", [*columns, *words], rows)


def _cell(cell: Cell | None, silent: bool) -> str | Shown:
    if cell is None:
        return Shown("none published" if silent else "not run", tone=Tone.QUIET)
    found, how = gap(cell), standing(cell)
    if found is None or how is None or cell.printed is None:
        return Shown(cell.text, cell.mean)
    mean, std = cell.printed
    lines = [cell.text, f"paper {mean:.2f} ± {std:.2f}", f"{signed(found)} {how.value}"]
    return Shown("\n".join(lines), cell.mean, how.tone)


def _line(cell: Cell, cause: str) -> list[str | Shown]:
    found, how, std = gap(cell), standing(cell), 100 * cell.test.std
    mean, around = (None, None) if cell.printed is None else cell.printed
    steps = None if found is None or not around else found / around
    tone = None if how is None else how.tone
    last = Shown("not in the paper", tone=Tone.QUIET) if how is None else Shown(how.value, tone=tone)
    return [
        cell.first.model, called(cell.first.dataset), _number(cell.mean), _number(std), _number(mean), _number(around),
        Shown("–" if found is None else signed(found), found, tone), Shown("–" if steps is None else signed(steps), steps),
        Shown(str(len(cell.rows)), float(len(cell.rows))), last, cause,
    ]  # fmt: skip


def _where(cell: Cell) -> tuple[object, ...]:
    return (*place(cell.first.model, ORDER), *place(cell.first.dataset, tuple(NAMES)))


def _number(value: float | None) -> Shown:
    return Shown(shown(value, 2), None if value is None or math.isnan(value) else value)
