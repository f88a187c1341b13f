"""Words on their way to a page: cleaned, escaped, and numbers as people read them."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

#: What stands where a number is not known.
NONE = "–"

#: What stands lower: a word, or parentheses and what they hold, to three levels.
_LOW = re.compile(r"_(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|[^\s()_]+)")

#: Names and notes are cut at this many characters: a card may hold anything.
LONGEST = 2000


class Tone(Enum):
    """How a piece of text is coloured; the words must say the same, because not everyone sees the colour."""

    BETTER = "better"
    WORSE = "worse"
    NEAR = "near"
    QUIET = "quiet"


@dataclass(frozen=True)
class Mark:
    """Text with a tone.

    Example:
        >>> Mark("+0.40 points", Tone.BETTER).html()
        '<span class="better">+0.40 points</span>'
    """

    text: str
    tone: Tone

    def html(self) -> str:
        """As a span of that class."""
        return f'<span class="{self.tone.value}">{to_html(self.text)}</span>'


def clean(text: Any) -> str:
    r"""The text as UTF-8 can hold it and a page can show it: no control characters, no lone surrogates, not endless.

    Example:
        >>> clean("a\x00b\ud800c")
        'a�b�c'
    """
    words = str(text)
    if len(words) > LONGEST:
        words = words[: LONGEST - 1] + "…"
    return re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "�", words)


def to_html(text: Any) -> str:
    """Escaped for HTML, in content and in attributes.

    Example:
        >>> to_html("<script> & 'co'")
        '&lt;script&gt; &amp; &#x27;co&#x27;'
    """
    return html.escape(clean(text), quote=True)


def lowered(text: Any) -> str:
    """A formula in Unicode as HTML: what follows an underscore stands lower.

    Example:
        >>> lowered("‖H‖²_(I − T)")
        '‖H‖²<sub>I − T</sub>'
    """
    parts = _LOW.split(clean(text))
    low = [f"<sub>{to_html(p[1:-1] if p.startswith('(') else p)}</sub>" for p in parts[1::2]]
    return "".join(to_html(p) + (low[k] if k < len(low) else "") for k, p in enumerate(parts[::2]))


def to_markdown(text: Any) -> str:
    r"""Escaped for Markdown, on one line, also inside a table.

    Example:
        >>> print(to_markdown("<b> a_b | *c*"))
        &lt;b> a\_b \| \*c\*
    """
    line = " ".join(clean(text).split())
    line = re.sub(r"([\\`*_\[\]|~])", r"\\\1", line).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"^(\s*)([#>+-]|\d+[.)])(\s|$)", r"\1\\\2\3", line)


def number(value: Any) -> float | None:
    """A finite number, or None for everything else that may stand in a card.

    Example:
        >>> number(0.5), number("0.5"), number(float("nan")), number(True), number(None)
        (0.5, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def shown(value: Any, digits: int = 4) -> str:
    """A number with so many decimals, or a dash.

    Example:
        >>> shown(0.12345), shown(None), shown(-0.00001)
        ('0.1235', '–', '0.0000')
    """
    found = number(value)
    if found is None:
        return NONE
    if abs(found) >= 1e7:
        return f"{found:.{digits}g}".replace("-", "−")
    return f"{round(found, digits) + 0.0:.{digits}f}".replace("-", "−")


def signed(value: float | None, digits: int = 2) -> str:
    """A difference with its sign, or a dash.

    Example:
        >>> signed(0.4), signed(-0.25), signed(0.0)
        ('+0.40', '−0.25', '±0.00')
    """
    if value is None:
        return NONE
    return f"{'+' if value > 0 else '−' if value < 0 else '±'}{abs(value):.{digits}f}"


def plain(value: Any) -> str:
    """Whatever JSON holds, in words: settings, choices, lists.

    Example:
        >>> plain({"linear": 0.0005, "hops": 0.0}), plain(True), plain([])
        ('linear 0.0005, hops 0', 'yes', 'none')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plain(part)}" for key, part in value.items()) or "none"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(plain(part) for part in value) or "none"
    return "none" if value is None else str(value)


def counted(count: int, noun: str) -> str:
    """A number and its noun.

    Example:
        >>> counted(1, "seed"), counted(3, "seed")
        ('1 seed', '3 seeds')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"
