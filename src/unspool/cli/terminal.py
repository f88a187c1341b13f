"""The one way to the terminal: what names and files contain is shown, never carried out."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.text import Text

from unspool.text import printable

__all__ = ["Terminal", "echo", "printable"]


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
