"""The one door to the terminal: what names and files contain is shown, never carried out."""

from __future__ import annotations

import unicodedata
from typing import Any

import click
from rich.console import Console
from rich.text import Text

#: Characters that change the order in which a terminal shows text, so that a name can pretend to be another.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
#: Control characters, separators of lines and paragraphs, and halves of characters (a file name that is not UTF-8).
_HIDDEN = frozenset({"Cc", "Zl", "Zp", "Cs"})


def printable(text: str) -> str:
    r"""The same text with everything that would steer a terminal written out; line feeds and tabs stay.

    The escapes are those of JSON, so that JSON lines stay JSON.

    Example:
        >>> print(printable("age\x1b[2J, α‖H−X‖²"))
        age\u001b[2J, α‖H−X‖²
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(sign if _plain(sign) else f"\\u{ord(sign):04x}" for sign in text)


def _plain(sign: str) -> bool:
    return sign in "\n\t" or (unicodedata.category(sign) not in _HIDDEN and sign not in _TURNING)


def echo(text: str, err: bool = False) -> None:
    """Print a line, on standard error if asked to."""
    click.echo(printable(text), err=err)


class Terminal(Console):
    """A console for which square brackets and colons in names are letters; say ``markup=True`` to colour a line of our own.

    Example:
        >>> Terminal(width=60).print("features: [/red] :cat: a\x1b[31m")
        features: [/red] :cat: a\\u001b[31m
    """

    def __init__(self, highlight: bool = False, **how: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=highlight, **how)

    def render_str(self, text: str, **how: Any) -> Text:  # type: ignore[override]
        """Every text passes here, those in tables too."""
        return super().render_str(printable(text), **how)
