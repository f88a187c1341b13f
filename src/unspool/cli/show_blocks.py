"""The blocks of a page in the terminal: the same sentences and tables; numbers in the place of figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Printed
from rich.text import Text

from unspool.report import (
    Block,
    Cell,
    Code,
    Column,
    Figure,
    Folded,
    Heading,
    Maths,
    Notes,
    Paragraph,
    Section,
    Table,
    Tone,
)
from unspool.report.table import Kind, as_cell
from unspool.text import printable

#: Columns of words may be as narrow as this before a table is printed in pieces.
_WORDS = 30
_STYLES = {Tone.BETTER: "blue", Tone.WORSE: "red", Tone.NEAR: "", Tone.QUIET: "dim"}


class Detail(Enum):
    """``BRIEF``: of what a page folds away only the name. ``FULL``: everything."""

    BRIEF = "brief"
    FULL = "full"


def show_sections(sections: Iterable[Section], console: Console, detail: Detail = Detail.BRIEF) -> None:
    """Print sections under their headings."""
    for section in sections:
        console.print()
        console.print(Text(printable(section.heading), style="bold"))
        show_blocks(section.blocks, console, detail)


def show_blocks(blocks: Iterable[Block], console: Console, detail: Detail = Detail.BRIEF) -> None:
    """Print blocks one below the other.

    Example:
        >>> from unspool.cli.terminal import Terminal
        >>> show_blocks([Paragraph(["Means over seeds."]), Table("Scores", ["seed", "test"], [["0", "70.1"]])], Terminal(width=60))
        <BLANKLINE>
        Means over seeds.
        <BLANKLINE>
        Scores
        seed  test
           0  70.1
    """
    for block in blocks:
        if isinstance(block, Figure):  # drawings need a page; their numbers do not
            show_blocks(block.numbers, console, detail)
        elif isinstance(block, Folded) and detail is Detail.FULL:
            show_blocks(block.blocks, console, detail)
        elif isinstance(block, Folded):
            console.print(Text(f"({printable(block.summary)}: with --details)", style="dim"))
        else:
            console.print()
            _show(block, console)


def _show(block: Block, console: Console) -> None:
    if isinstance(block, Paragraph):
        console.print(_paragraph(block))
    elif isinstance(block, Heading):
        console.print(Text(printable(block.text), style="bold"))
    elif isinstance(block, Notes):
        for sentence in block.sentences:
            console.print(f"- {sentence}")
    elif isinstance(block, Code | Maths):
        console.print(Padding(Text(printable(block.text)), (0, 2)))
    elif isinstance(block, Table):
        _show_table(block, console)


def _paragraph(block: Paragraph) -> Text:
    made = Text("warning: " if block.kind == "warning" else "", style="red" if block.kind == "warning" else "")
    for piece in block.pieces:
        if isinstance(piece, str):
            made.append(printable(piece))
        else:
            made.append(printable(piece.text), style=_STYLES[piece.tone])
    return made


def _show_table(table: Table, console: Console) -> None:
    console.print(Text(printable(table.caption), style="italic"))
    rows = [[as_cell(entry) for entry in row] for row in (*table.rows, *table.foot)]
    several = any("\n" in cell.text for row in rows for cell in row)  # lines in a cell; then rows need air
    for places in _pieces(table.heads, rows, console.width):
        head = table.kind is not Kind.FACTS
        around = (0, 2, int(several), 0)
        printed = Printed(box=None, pad_edge=False, header_style="bold", show_header=head, padding=around)
        for column in [table.heads[place] for place in places]:
            side = "right" if column.numbers else "left"
            # Trap: no_wrap would cut digits off in a narrow terminal, and 0.2989 would pass for 0.298.
            printed.add_column(Text(printable(column.name)), justify=side, overflow="fold")
        for row in rows:
            printed.add_row(*(_text(row[place]) for place in places))
        console.print(printed)


def _pieces(heads: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int) -> list[list[int]]:
    """The columns of a table in pieces that fit; each begins with the columns of words that name the rows.

    Example:
        >>> heads = [Column("model", numbers=False), Column("K = 1"), Column("K = 2"), Column("K = 3")]
        >>> _pieces(heads, [[Cell("GCN"), Cell("83.10"), Cell("83.20"), Cell("83.30")]], 20)
        [[0, 1, 2], [0, 3]]
    """
    texts = [[head.name, *(row[place].text for row in rows)] for place, head in enumerate(heads)]
    widths = [2 + max(len(line) for text in column for line in text.split("\n")) for column in texts]
    widths = [size if head.numbers else min(size, _WORDS) for size, head in zip(widths, heads, strict=True)]
    named = min(next((place for place, head in enumerate(heads) if head.numbers), 1), 2)
    pieces = [list(range(named))]
    for place in range(named, len(heads)):
        piece = pieces[-1]
        if len(piece) > named and sum(widths[one] for one in [*piece, place]) > width + 2:
            pieces.append(list(range(named)))
        pieces[-1].append(place)
    return pieces


def _text(cell: Cell) -> Text:
    return Text(printable(cell.text), style="" if cell.tone is None else _STYLES[cell.tone])
