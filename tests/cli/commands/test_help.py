"""The options: every command teaches, and none loads more than click until it works."""

import subprocess
import sys

import click
import pytest

from cli.people import ask
from unspool.cli.main import cli


def commands(command=cli, path=()):
    """All commands with the words that lead to them."""
    if isinstance(command, click.Group):
        return [found for name, one in command.commands.items() for found in commands(one, (*path, name))]
    return [(path, command)]


COMMANDS = dict(commands())


@pytest.mark.parametrize("path", [*COMMANDS, (), ("study",)], ids=" ".join)
def test_help_teaches(path):
    text = ask(*path, "--help")
    if path in COMMANDS:
        assert "Example" in text
        assert f"unspool {' '.join(path)}" in text.partition("Example")[2]
    for option in COMMANDS[path].params if path in COMMANDS else ():
        if isinstance(option, click.Option):
            assert option.help or "--format" in option.opts, f"{' '.join(path)} {option.opts[0]} says nothing"


def test_help_loads_nothing_heavy():
    """People type --help more often than anything else."""
    asked = "; ".join(f"cli({[*path, '--help']}, standalone_mode=False)" for path in COMMANDS)
    code = f"from unspool.cli.main import cli; {asked}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("Usage:") == len(COMMANDS)
    assert not {"torch", "numpy", "scipy", "matplotlib", "sklearn"} & set(done.stdout.split())
