"""Numbers that are typed: finite, and in a range."""

from __future__ import annotations

import math
from typing import Any

import click


class Finite(click.FloatRange):
    """A number in a range; ``nan`` and ``inf`` are not, though Python reads them as numbers.

    Example:
        >>> Finite(0).convert("2.5", None, None)
        2.5
        >>> Finite(0).convert("nan", None, None)
        Traceback (most recent call last):
            ...
        click.exceptions.BadParameter: nan is not a finite number.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """From text, or one sentence."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return found
