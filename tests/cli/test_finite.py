"""Numbers that are typed are read as those in files: ASCII digits, no underscores."""

import click
import pytest

from unspool.cli import main
from unspool.cli.source import Source
from unspool.cli.study.space import Typed, space_of
from unspool.cli.wish import Wish, prepare


def numbers(command, path=()):
    """All options of all commands that take a number."""
    if isinstance(command, click.Group):
        return [found for name, one in command.commands.items() for found in numbers(one, (*path, name))]
    kinds = (click.types.IntParamType, click.types.FloatParamType)
    return [(" ".join((*path, p.opts[0])), p) for p in command.params if isinstance(p.type, kinds)]


OPTIONS = dict(numbers(main.cli))


def test_there_are_options_with_numbers():
    assert {"train --epochs", "train --rate", "train --first-seed", "study run --seeds", "denoise --weight"} <= set(
        OPTIONS
    )


@pytest.mark.parametrize("text", ["1_0", "٣", "３", "0.0_5", "٠.٥"])
@pytest.mark.parametrize("name", OPTIONS)
def test_odd_numbers_are_refused(name, text):
    with pytest.raises(click.BadParameter):
        OPTIONS[name].type.convert(text, None, None)


@pytest.mark.parametrize("name", OPTIONS)
def test_plain_numbers_are_read(name):
    kind = OPTIONS[name].type
    whole = isinstance(kind, click.types.IntParamType)
    text = "21" if whole else "0.5"
    assert kind.convert(text, None, None) == (21 if whole else 0.5)


@pytest.mark.parametrize("text", ["depth=1_0", "depth=٣", "dropout=0.0_5"])
def test_settings_are_refused_alike(text):
    with pytest.raises(ValueError, match="expected a number"):
        prepare(Wish("GCN", settings=(text,)), Source())
    with pytest.raises(ValueError, match=r"expected (whole )?numbers"):
        space_of(Typed(("GCN",), settings=(text,)))
