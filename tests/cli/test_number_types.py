"""Numbers that are typed are read as those in files: ASCII digits, no underscores."""

import click
import pytest

from unspool.cli import main
from unspool.cli.commands.options import CONFIG
from unspool.cli.data_options import DataOptions
from unspool.cli.study.space_options import SpaceOptions
from unspool.cli.train_options import TrainOptions
from unspool.errors import InputError
from unspool.train import TrainConfig


def numbers(command, path=()):
    """All options of all commands that take a number."""
    if isinstance(command, click.Group):
        return [found for name, one in command.commands.items() for found in numbers(one, (*path, name))]
    kinds = (click.types.IntParamType, click.types.FloatParamType)
    return [(" ".join((*path, p.opts[0])), p) for p in command.params if isinstance(p.type, kinds)]


OPTIONS = dict(numbers(main.cli))


def test_there_are_options_with_numbers():
    assert {"train --seeds", "train --first-seed", "study run --seeds", "denoise --weight"} <= set(OPTIONS)


@pytest.mark.long
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


@pytest.mark.parametrize(("name", "text"), [("depth", "1_0"), ("depth", "٣"), ("dropout", "0.0_5")])
def test_settings_are_refused_alike(name, text):
    for make in (
        TrainOptions("GCN", settings=(f"{name}={text}",)).trial,
        SpaceOptions(("GCN",), settings=(f"{name}={text}",)).space,
    ):
        with pytest.raises(InputError) as refused:
            make(DataOptions())
        assert (refused.value.argument, refused.value.value, refused.value.owner) == (name, text, "GCN")


@pytest.mark.parametrize("name", ["lr", "epochs", "weight_decay", "patience"])
def test_training_is_refused_alike(name):
    for make in (TrainOptions("GCN", config={name: "1_0"}).trial, SpaceOptions(("GCN",), config={name: "1_0"}).space):
        with pytest.raises(InputError) as refused:
            make(DataOptions())
        assert (refused.value.argument, refused.value.owner) == (name, "TrainConfig")


def test_every_setting_of_training_has_an_option():
    """Options are written by hand, so that --help needs no torch; this holds them to the settings."""
    assert list(CONFIG) == list(TrainConfig.schema)
    for command in (main.cli.commands["train"], main.cli.commands["study"].commands["run"]):
        assert set(CONFIG) <= {p.name for p in command.params}
