r"""Tables for papers: LaTeX with booktabs, every sign that LaTeX means something by escaped.

>>> from unspool.report.latex import to_latex
>>> print(to_latex("83.2 ± 0.5 % & −1"))
83.2 $\pm$ 0.5 \% \& $-$1
"""

from __future__ import annotations

from collections.abc import Sequence

from unspool.report.table import Cell, Table, as_cell
from unspool.report.text import Tone, clean

#: What a document needs before the tables.
PREAMBLE = (
    "% needs \\usepackage{booktabs}; Greek letters and signs need LuaLaTeX or XeLaTeX with a font that has them\n"
)

_SIGNS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "−": "$-$", "–": "--", "×": r"$\times$",
    "≤": r"$\leq$", "≥": r"$\geq$", "→": r"$\to$",
}  # fmt: skip


def to_latex(text: object) -> str:
    r"""Escaped for LaTeX, on one line.

    Example:
        >>> to_latex("a_b {c}")
        'a\\_b \\{c\\}'
    """
    return "".join(_SIGNS.get(sign, sign) for sign in " ".join(clean(text).split()))


def latex_table(table: Table) -> str:
    r"""A ``table`` with its caption; cells of several lines are stacked, cells with a good or bad tone are bold or italic.

    Example:
        >>> from unspool.report import text_columns
        >>> print(latex_table(Table("Scores", [*text_columns("model"), "test"], [["GCN", "83.2 ± 0.5"]])))
        \begin{table}
        \centering
        \caption{Scores}
        \begin{tabular}{lr}
        \toprule
        model & test \\
        \midrule
        GCN & 83.2 $\pm$ 0.5 \\
        \bottomrule
        \end{tabular}
        \end{table}
    """
    heads = table.heads
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{to_latex(table.caption)}}}"]
    lines += [rf"\begin{{tabular}}{{{''.join('r' if h.numbers else 'l' for h in heads)}}}", r"\toprule"]
    lines += [_row([h.name for h in heads]), r"\midrule"] if any(h.name for h in heads) else []
    lines += [_row(row) for row in table.rows]
    lines += [r"\midrule", *(_row(row) for row in table.foot)] if table.foot else []
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _row(row: Sequence[str | Cell]) -> str:
    return " & ".join(_cell(entry) for entry in row) + r" \\"


def _cell(entry: str | Cell) -> str:
    cell = as_cell(entry)
    lines = [to_latex(line) for line in cell.text.split("\n")]
    side = "r" if cell.order is not None else "l"
    words = lines[0] if len(lines) == 1 else rf"\shortstack[{side}]{{" + r" \\ ".join(lines) + "}"
    style = {Tone.BETTER: r"\textbf", Tone.WORSE: r"\textit"}.get(cell.tone) if cell.tone else None
    return words if style is None else f"{style}{{{words}}}"
