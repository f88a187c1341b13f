"""The whole command: what it loads, how it teaches, and how it ends when something is wrong."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import unspool
from cli.people import ask
from unspool.cli.main import cli


def run(*arguments, **how):
    return subprocess.run(
        [sys.executable, "-m", "unspool.cli.main", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **how,
    )


def commands(command=cli, path=()):
    """All commands with the words that lead to them."""
    if isinstance(command, click.Group):
        return [found for name, one in command.commands.items() for found in commands(one, (*path, name))]
    return [(path, command)]


COMMANDS = dict(commands())


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("demo", "--nodes", "30", "--out", tmp_path / "file" / "demo.png")
    assert done.returncode == 2
    assert done.stderr.startswith("unspool: cannot write into")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "--depth", "0"],
        ["demo", "--alpha", "1.0"],
        ["verify", "--trials", "0"],
        ["unroll"],
        ["train", "--set", "depth=3"],  # options of before
        ["train", "--rate", "0.1"],
        ["train", "--select", "accuracy"],
        ["train", "--adjoint", "implicit"],
        ["study", "again", "study.db", "1"],
    ],
)
def test_bad_options_are_one_clear_message(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert "Error" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("path", [*COMMANDS, (), ("study",)], ids=" ".join)
def test_help_teaches(path):
    text = ask(*path, "--help")
    if path in COMMANDS:
        assert "Example" in text
        assert f"unspool {' '.join(path)}" in text.partition("Example")[2]
    for option in COMMANDS[path].params if path in COMMANDS else ():
        if isinstance(option, click.Option):
            assert option.help or "--format" in option.opts, f"{' '.join(path)} {option.opts[0]} says nothing"


def test_the_version():
    assert unspool.__version__ in CliRunner().invoke(cli, ["--version"]).output


def test_help_needs_neither_torch_nor_time():
    """People type --help more often than anything else."""
    code = "import sys; from unspool.cli.main import cli; cli(['train', '--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "scipy", "matplotlib", "sklearn"} & set(done.stdout.split())
