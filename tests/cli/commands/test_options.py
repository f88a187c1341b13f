"""Paths as they are typed: none at all, and a folder where a file belongs, are one sentence."""

import click
import pytest
from click.testing import CliRunner

from unspool.cli.commands.options import FILE, PLACE
from unspool.errors import InputError


@click.command()
@click.option("--data", type=FILE)
@click.option("--out", type=PLACE)
def command(data, out):
    click.echo(f"{data} {out}")


def run(*words):
    return CliRunner().invoke(command, words, catch_exceptions=False)


def test_paths_need_not_be_there_and_a_place_may_be_a_folder(tmp_path):
    assert run("--data", "none.csv", "--out", str(tmp_path)).output == f"none.csv {tmp_path}\n"


@pytest.mark.parametrize("option", ["--data", "--out"])
def test_an_empty_path_is_not_the_current_folder(option):
    with pytest.raises(InputError, match=r"a path, and this one is empty; write \. for the current folder"):
        run(option, "")


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path):
    with pytest.raises(InputError, match="the name of a file, and this is a folder"):
        run("--data", str(tmp_path))
