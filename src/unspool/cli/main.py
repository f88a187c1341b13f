"""The command ``unspool``: its subcommands, and what a person is told when something is wrong."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import traceback

import click

import unspool
from unspool.cli.commands.data import data
from unspool.cli.commands.datasets import datasets
from unspool.cli.commands.demo import demo
from unspool.cli.commands.denoise import denoise
from unspool.cli.commands.explain import explain
from unspool.cli.commands.explore import explore
from unspool.cli.commands.export import export
from unspool.cli.commands.graph import graph
from unspool.cli.commands.hops import hops
from unspool.cli.commands.models import models
from unspool.cli.commands.predict import predict
from unspool.cli.commands.report import report
from unspool.cli.commands.reproduce import reproduce
from unspool.cli.commands.spectrum import spectrum
from unspool.cli.commands.study import study
from unspool.cli.commands.train import train
from unspool.cli.commands.verify import verify
from unspool.cli.company import said_once
from unspool.cli.errors import sentence
from unspool.cli.terminal import echo
from unspool.errors import RankLost
from unspool.files import utf8


class _Commands(click.Group):
    """All commands; what is typed is text."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse bytes that are not text before any work: cards, reports and tables could not name such a file."""
        for word in args:
            if utf8(word) != word:
                raise ValueError(f"{word}: the name is not UTF-8; rename the file")
        return super().parse_args(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(unspool.__version__, prog_name="unspool")
def cli() -> None:
    """Write down a graph signal denoising problem; get the graph neural network that solves it."""


for command in (
    train,
    predict,
    export,
    explain,
    spectrum,
    denoise,
    study,
    models,
    data,
    datasets,
    graph,
    hops,
    demo,
    explore,
    verify,
    reproduce,
    report,
):
    cli.add_command(command)


def _end_gently() -> None:
    """Whoever is told to end (``timeout``, a cluster that wants its node back) ends as after Ctrl-C: what has ended is kept."""
    ours = threading.current_thread() is threading.main_thread()
    if ours and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # Trap: raising SIGINT instead would do nothing where a script started us with &, which makes us ignore it.
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def _say(who: str, line: str, lost: bool = False) -> None:
    """Tell a person, once: of processes that work together one speaks."""
    found = said_once(line, lost=lost)
    if found is not None:
        echo(f"{who}{found}", err=True)


def main() -> None:
    """Run the command line; what is wrong is said in one sentence, not with a traceback."""
    _end_gently()
    for stream in (sys.stdout, sys.stderr):  # a pipe that knows no Greek gets escapes, not a traceback
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        # Trap: without standalone mode click gives the code of an Exit back instead of raising it.
        code = cli(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Abort as ended:
        if isinstance(ended.__cause__, EOFError):  # Trap: click takes a file that ends too early for Ctrl-D
            raise ended.__cause__ from None
        echo("interrupted", err=True)
        sys.exit(130)
    except click.ClickException as problem:
        said = io.StringIO()
        problem.show(said)
        _say("", said.getvalue().rstrip("\n"))
        sys.exit(problem.exit_code)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except (Exception, SystemExit) as problem:  # a model or data of the user's may end the program, too
        line = sentence(problem)
        if line is None or (os.environ.get("UNSPOOL_TRACEBACK") and isinstance(problem, Exception)):
            raise
        if os.environ.get("UNSPOOL_TRACEBACK"):
            traceback.print_exception(problem)  # Python shows none of a SystemExit
        _say("unspool: ", line, lost=isinstance(problem, RankLost))
        sys.exit(2)


if __name__ == "__main__":
    main()
