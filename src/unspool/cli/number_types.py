"""Numbers that are typed: read as those in files, finite, and in a range."""

from __future__ import annotations

import math
from typing import Any

import click

from unspool.text import plain_number


def _check_plain(
    kind: click.ParamType[Any], value: Any, param: click.Parameter | None, ctx: click.Context | None
) -> None:
    if isinstance(value, str):
        try:
            plain_number(value)
        except ValueError:
            kind.fail(f"{value!r} is not a valid {kind.name}; write it in the digits 0 to 9.", param, ctx)


class Whole(click.IntRange):
    """A whole number in a range.

    Example:
        >>> Whole(1).convert("10", None, None)
        10
        >>> Whole(1).convert("1_0", None, None)
        Traceback (most recent call last):
            ...
        click.exceptions.BadParameter: '1_0' is not a valid integer range; write it in the digits 0 to 9.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """From text, or one sentence."""
        _check_plain(self, value, param, ctx)
        return super().convert(value, param, ctx)


class Real(click.types.FloatParamType):
    """A number whose range is checked elsewhere."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """From text, or one sentence."""
        _check_plain(self, value, param, ctx)
        return super().convert(value, param, ctx)


class Between(click.FloatRange):
    """A number in a range; ``nan`` is refused elsewhere."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """From text, or one sentence."""
        _check_plain(self, value, param, ctx)
        return super().convert(value, param, ctx)


class Finite(Between):
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
