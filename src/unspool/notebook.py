"""What objects look like in a notebook: small tables and formulas as HTML, in which other people's words are text and never markup."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence

from unspool.text import printable

#: Longer words are cut: a cell of a notebook is not the place to read a file.
LONGEST = 500
#: Small letters above and below the line, and what they stand for.
_ABOVE = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀᵏᴷⁿ", "0123456789+−TkKn", strict=True))
_BELOW = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ₖₑᵢⱼₙ", "0123456789+−keijn", strict=True))
_CLOSING = {"(": ")", "[": "]", "⟨": "⟩", "‖": "‖", "{": "}"}
_OPERATORS = "+−=≥≤<>·×/,;:|Σ∈←→±*%"


def escaped(value: object) -> str:
    """Any value as text of a page.

    Example:
        >>> escaped("<b>a</b> & 'b'")
        '&lt;b&gt;a&lt;/b&gt; &amp; &#x27;b&#x27;'
    """
    words = printable(str(value))
    return html.escape(words if len(words) <= LONGEST else words[: LONGEST - 1] + "…", quote=True)


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows under headings.

    Example:
        >>> table("Layers", ["layer", "objective"], [[1, 0.5]])
        '<table><caption>Layers</caption><thead><tr><th>layer</th><th>objective</th></tr></thead><tbody><tr><td>1</td><td>0.5</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escaped(one)}</th>" for one in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{escaped(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def facts(caption: str, pairs: Iterable[tuple[str, object]]) -> str:
    """Names and what they are; pairs without a second half are left out.

    Example:
        >>> facts("Graph", [("nodes", 6), ("notes", "")])
        '<table><caption>Graph</caption><tbody><tr><th>nodes</th><td>6</td></tr></tbody></table>'
    """
    kept = [(name, str(value)) for name, value in pairs if str(value)]
    body = "".join(f"<tr><th>{escaped(name)}</th><td>{escaped(value)}</td></tr>" for name, value in kept)
    return f"<table><caption>{escaped(caption)}</caption><tbody>{body}</tbody></table>"


def paragraphs(words: Iterable[str]) -> str:
    """Sentences, each a paragraph.

    Example:
        >>> paragraphs(["a < b"])
        '<p>a &lt; b</p>'
    """
    return "".join(f"<p>{escaped(one)}</p>" for one in words)


def mathml(formula: str) -> str:
    """A formula in Unicode as MathML, with real exponents and indices; browsers draw it without anything else.

    Example:
        >>> mathml("2 ‖H‖²")
        '<math display="block"><mrow><mn>2</mn><mspace width="0.2em"/><msup><mrow><mo>‖</mo><mi>H</mi><mo>‖</mo></mrow><mn>2</mn></msup></mrow></math>'
        >>> "<msubsup>" in mathml("‖B H‖²_(I − Wₖ)")
        True
    """
    return f'<math display="block">{_Reader(printable(formula)).row()}</math>'


class _Reader:
    """Reads a formula from left to right; whatever it does not know becomes an operator, so every text has a formula."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    @property
    def sign(self) -> str:
        """The character at hand; empty at the end."""
        return self.text[self.at : self.at + 1]

    def row(self, end: str = "") -> str:
        """Everything up to a closing sign or the end."""
        parts: list[str] = []
        while self.sign and self.sign != end:
            if self.sign == " ":
                self.at += 1
                parts.append("")
                continue
            parts.append(self._with_scripts(self._atom()))
        return f"<mrow>{_spaced(parts)}</mrow>"

    def _atom(self) -> str:
        sign = self.sign
        if sign in _CLOSING and self._closes(_CLOSING[sign]):
            self.at += 1
            inner = self.row(_CLOSING[sign]).removeprefix("<mrow>").removesuffix("</mrow>")
            self.at += 1
            return f"<mrow><mo>{escaped(sign)}</mo>{inner}<mo>{escaped(_CLOSING[sign])}</mo></mrow>"
        if sign.isdigit() and sign not in _ABOVE and sign not in _BELOW:
            return f"<mn>{self._run(lambda one: one.isdigit() or one in '.e')}</mn>"
        if sign.isalpha() and sign not in _ABOVE and sign not in _BELOW and sign not in _OPERATORS:
            return f"<mi>{self._run(_is_letter)}</mi>"
        self.at += 1
        return f"<mo>{escaped(sign)}</mo>"

    def _with_scripts(self, base: str) -> str:
        """The base with all that stands above and below it."""
        above, below = "", ""
        while self.sign and (self.sign in _ABOVE or self.sign in _BELOW or self.sign in "^_"):
            if self.sign in _ABOVE:
                above += _small(self._run(_ABOVE.__contains__), _ABOVE)
            elif self.sign in _BELOW:
                below += _small(self._run(lambda one: one in _BELOW or (one == "," and self._more_below())), _BELOW)
            else:
                kind, self.at = self.sign, self.at + 1
                script = self._script()
                above, below = (above + script, below) if kind == "^" else (above, below + script)
        if above and below:
            return f"<msubsup>{base}{_one(below)}{_one(above)}</msubsup>"
        return f"<msup>{base}{_one(above)}</msup>" if above else f"<msub>{base}{_one(below)}</msub>" if below else base

    def _script(self) -> str:
        """What follows an underscore or a caret: brackets and what they hold, or one atom with its own indices."""
        if self.sign == "(" and self._closes(")"):
            self.at += 1
            inner = self.row(")")
            self.at += 1
            return inner
        return self._with_scripts(self._atom()) if self.sign else ""

    def _run(self, fits: Callable[[str], bool]) -> str:
        start = self.at
        while self.sign and fits(self.sign):
            self.at += 1
        return escaped(self.text[start : self.at])

    def _more_below(self) -> bool:
        return self.text[self.at + 1 : self.at + 2] in _BELOW

    def _closes(self, closing: str) -> bool:
        """Whether this bracket is closed again, before one around it is; bars also divide, as in KL(H ‖ X)."""
        depth = 0
        for sign in self.text[self.at + 1 :]:
            if sign == closing and depth == 0:
                return True
            depth += (sign in "([⟨") - (sign in ")]⟩")
            if depth < 0:
                return False
        return False


def _is_letter(sign: str) -> bool:
    return (
        (sign.isalpha() or "\u0300" <= sign <= "\u036f") and sign not in _ABOVE and sign not in _BELOW and sign != "Σ"
    )


def _small(run: str, meaning: dict[str, str]) -> str:
    text = "".join(meaning.get(sign, sign) for sign in run)
    sign, rest = (f"<mo>{text[0]}</mo>", text[1:]) if text[0] in "+−" else ("", text)
    kind = "mn" if rest.replace(",", "").isdigit() else "mi"
    return sign + (f"<{kind}>{rest}</{kind}>" if rest else "")


def _one(parts: str) -> str:
    """Several scripts as one element."""
    return parts if parts.count("<m") == 1 else f"<mrow>{parts}</mrow>"


def _spaced(parts: Sequence[str]) -> str:
    """A little space where there was one between two operands; operators bring their own."""
    made = ""
    for place, part in enumerate(parts):
        before = next((one for one in reversed(parts[:place]) if one), "")
        gap = place > 0 and parts[place - 1] == "" and part
        made += '<mspace width="0.2em"/>' if gap and before and "<mo>" not in (before[:4], part[:4]) else ""
        made += part
    return made
