"""A table as a value: HTML that sorts and scrolls, and the same table in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from unspool.report.text import Tone, clean, lowered, number, shown, signed, to_html, to_markdown

#: Longer words get a column that is wide enough to read them in.
LONG = 28


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and by what it is sorted.

    Args:
        text: what is shown; lines after the first are small.
        order: the number it is sorted by; cells without one come last, or are sorted by their text where the column is one of words.
        tone: a colour; the text must say the same.
    """

    text: str
    order: float | None = None
    tone: Tone | None = None

    @staticmethod
    def number(value: float | None, digits: int = 2) -> Cell:
        """A number with so many decimals, or a dash.

        Example:
            >>> Cell.number(0.125).text, Cell.number(None).text, Cell.number(float("nan")).order
            ('0.12', '–', None)
        """
        return Cell(shown(value, digits), number(value))

    @staticmethod
    def count(value: int) -> Cell:
        """A whole number.

        Example:
            >>> Cell.count(1234).text
            '1,234'
        """
        return Cell(f"{value:,}", float(value))

    @staticmethod
    def signed(value: float | None, tone: Tone | None = None) -> Cell:
        """A difference with its sign.

        Example:
            >>> Cell.signed(0.4).text, Cell.signed(-0.25).text, Cell.signed(0.0).text, Cell.signed(None).text
            ('+0.40', '−0.25', '±0.00', '–')
        """
        return Cell(signed(value), value, tone)


#: The rows of a table while they are written.
Rows = list[list["str | Cell"]]


class Formula(Cell):
    """A cell that holds a formula; what follows an underscore stands lower.

    Example:
        >>> "<sub>T</sub>" in Table("c", ["f"], [[Formula("‖H‖²_T")]]).html()
        True
    """


@dataclass(frozen=True)
class Heat(Cell):
    """A cell whose background is as strong as its share of a whole, in the colour of its tone.

    Example:
        >>> "--heat: 25%" in Table("c", ["a", "f"], [["row", Heat("3", 3.0, Tone.WORSE, 0.5)]]).html()
        True
    """

    share: float = 0.0


class Kind(Enum):
    """What a table is for; also the name of its style."""

    SORTABLE = "sortable"
    FACTS = "facts"


@dataclass(frozen=True)
class Column:
    """A heading; columns of numbers stand to the right and are sorted as numbers."""

    name: str
    numbers: bool = True


def text_columns(*names: str) -> list[Column]:
    """Columns of words.

    Example:
        >>> [column.numbers for column in text_columns("model", "dataset")]
        [False, False]
    """
    return [Column(name, numbers=False) for name in names]


@dataclass(frozen=True)
class Table:
    """Rows under headings; the first cell of a row names it.

    Args:
        caption: what the table says.
        columns: the headings; words alone are columns of numbers.
        rows: one cell per column.
        foot: rows that stay at the end, such as means.
        kind: whether the headings sort (with JavaScript; without it the table is as it was written), or whether it is a list of
            facts whose headings nobody needs.

    Example:
        >>> table = Table("Scores", ["seed", "test"], [["0", Cell("70.1 %", 70.1)]], foot=[["mean", "70.1 %"]])
        >>> print(table.markdown())
        **Scores**
        <BLANKLINE>
        | seed | test |
        |---:|---:|
        | 0 | 70.1 % |
        | **mean** | **70.1 %** |
        >>> "<caption><span>Scores</span></caption>" in table.html()
        True
    """

    caption: str
    columns: Sequence[str | Column]
    rows: Sequence[Sequence[str | Cell]]
    foot: Sequence[Sequence[str | Cell]] = ()
    kind: Kind = Kind.SORTABLE

    def __post_init__(self) -> None:
        for row in [*self.rows, *self.foot]:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.caption}: a row has {len(row)} cells under {len(self.columns)} headings")

    @property
    def heads(self) -> list[Column]:
        """The headings, each a column."""
        return [c if isinstance(c, Column) else Column(c) for c in self.columns]

    @property
    def texts(self) -> list[tuple[str, ...]]:
        """The rows as they read."""
        return [tuple(as_cell(entry).text for entry in row) for row in self.rows]

    def html(self) -> str:
        """A table in a box of its own that scrolls sideways, and that a keyboard can reach."""
        head = "".join(_heading(c) for c in self.heads)
        body = "\n".join(self._row(row) for row in self.rows)
        foot = "".join(self._row(row) for row in self.foot)
        caption = to_html(self.caption)
        return (
            f'<div class="scroll {self.kind.value}" role="region" aria-label="{caption}" tabindex="0">\n'
            f'<table class="{self.kind.value}">\n<caption><span>{caption}</span></caption>\n'
            f"{'' if self.kind is Kind.FACTS else f'<thead><tr>{head}</tr></thead>'}\n"
            f"<tbody>\n{body}\n</tbody>{f'<tfoot>{foot}</tfoot>' if foot else ''}\n</table>\n</div>"
        )

    def markdown(self) -> str:
        """The caption in bold, then the table."""
        lines = [f"**{to_markdown(self.caption)}**", ""]
        lines.append(_line([to_markdown(c.name) for c in self.heads]))
        lines.append("|" + "|".join("---:" if c.numbers else "---" for c in self.heads) + "|")
        lines += [_line(["<br>".join(map(to_markdown, as_cell(c).text.split("\n"))) for c in row]) for row in self.rows]
        for row in self.foot:
            words = [to_markdown(as_cell(c).text) for c in row]
            lines.append(_line([f"**{w}**" if w else "" for w in words]))
        return "\n".join(lines)

    def _row(self, row: Sequence[str | Cell]) -> str:
        cells: list[str] = []
        for place, (entry, column) in enumerate(zip(row, self.heads, strict=True)):
            cell = as_cell(entry)
            kind = "number" if column.numbers else "word long" if len(cell.text) > LONG else "word"
            kind += f" {cell.tone.value}" if cell.tone else ""
            order = "" if cell.order is None else f' data-order="{cell.order!r}"'
            tag, scope = ("th", ' scope="row"') if place == 0 else ("td", "")
            # Half a colour at most: the number must stay readable in light and dark.
            warm = f' style="--heat: {round(50 * cell.share)}%"' if isinstance(cell, Heat) and place else ""
            kind += " heat" if warm else ""
            cells.append(f'<{tag}{scope} class="{kind}"{order}{warm}>{_content(cell)}</{tag}>')
        return f"<tr>{''.join(cells)}</tr>"


def facts(caption: str, pairs: Sequence[tuple[str, str | Cell | None]]) -> Table:
    """Names and what they are; pairs whose second half is None or empty are left out.

    Example:
        >>> [row[0] for row in facts("Data", [("name", "Cora"), ("hash", None)]).rows]
        ['name']
    """
    kept = [[name, value] for name, value in pairs if value is not None and clean(as_cell(value).text)]
    return Table(caption, [Column("", numbers=False), Column("", numbers=False)], kept, kind=Kind.FACTS)


def _heading(column: Column) -> str:
    kind = "number" if column.numbers else "word"
    # Without JavaScript the button stays disabled, looks like text, and takes no focus.
    button = f'<button type="button" disabled>{to_html(column.name)}</button>'
    return f'<th scope="col" class="{kind}" aria-sort="none">{button}</th>'


def as_cell(entry: str | Cell) -> Cell:
    """A cell of a row, where words alone are cells too."""
    return entry if isinstance(entry, Cell) else Cell(entry)


def _content(cell: Cell) -> str:
    if isinstance(cell, Formula):
        return lowered(cell.text)
    first, *rest = cell.text.split("\n")
    return to_html(first) + "".join(f"<br><small>{to_html(line)}</small>" for line in rest)


def _line(words: list[str]) -> str:
    return f"| {' | '.join(words)} |"
