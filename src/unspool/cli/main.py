"""The commands, each with a help text that teaches and an example."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path

import click

import unspool
from unspool.cli.finite import Finite, Whole
from unspool.cli.jobs import datasets_, denoise, explain, models_, predict, train_
from unspool.cli.report import report_
from unspool.cli.reproduce import reproduce
from unspool.cli.sentence import sentence
from unspool.cli.study import study
from unspool.cli.terminal import echo
from unspool.errors import IncompatibleError
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


@cli.command()
@click.option("--nodes", default=600, show_default=True, type=Whole(20, 20_000), help="Sensors on the graph.")
@click.option("--depth", default=10, show_default=True, type=Whole(1, 200), help="Layers of the unrolled network.")
@click.option(
    "--noise", default=0.6, show_default=True, type=Finite(0.0, 10.0), help="Standard deviation of the noise."
)
@click.option(
    "--alpha",
    default=0.15,
    show_default=True,
    type=Finite(0.0, 1.0, min_open=True, max_open=True),
    help="Weight of the fidelity term.",
)
@click.option("--seed", default=0, show_default=True, type=Whole(0, 2**32 - 1), help="Of sensors and noise.")
@click.option(
    "--out",
    default="out/demo.png",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the picture goes.",
)
def demo(nodes: int, depth: int, noise: float, alpha: float, seed: int, out: Path) -> None:
    """Denoise a signal on a sensor network, layer by layer.

    Unrolls gradient descent on α‖H−X‖² + (1−α)‖BH‖², prints objective and error after each layer beside the exact solution,
    trains the same network with its own α in every layer, and draws what happened.

    Example: unspool demo --depth 20 --noise 1.0
    """
    from unspool.cli.demo import run

    run(nodes, depth, noise, alpha, seed, out)


@cli.command()
@click.option(
    "--seed", default=0, show_default=True, type=Whole(0, 2**32 - 1), help="Of the random graphs, sizes and parameters."
)
@click.option("--trials", default=3, show_default=True, type=Whole(1, 1000), help="Random settings per claim.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of a table.")
def verify(seed: int, trials: int, as_json: bool) -> None:
    """Put the paper's statements to the test, in float64 at random sizes and parameters.

    Every claim ends as "holds", "holds when ..." or as a counter-example. Exit status 1 means that one did not end as
    documented.

    Example: unspool verify --trials 10 --seed 7
    """
    from unspool.theory import Certificate
    from unspool.theory import verify as certify

    def line(certificate: Certificate) -> None:
        record = asdict(certificate) | {"verdict": certificate.verdict.value, "expected": certificate.expected.value}
        echo(json.dumps(record, ensure_ascii=False))

    if as_json:
        found = certify(seed, trials, watch=line)
    else:
        from unspool.cli.verify import show

        found = show(seed, trials)
    if not all(c.as_stated for c in found):
        sys.exit(1)


@cli.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option(
    "--edges",
    type=click.Path(path_type=Path),
    help="The graph: text with two columns of node ids and perhaps a weight, or .npz with edge_index.",
)
@click.option(
    "--out",
    default="out/spectrum.png",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the picture goes (.png, .svg or .pdf).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def spectrum(checkpoint: Path, edges: Path | None, out: Path, as_json: bool) -> None:
    """Show what a trained model does to each graph frequency.

    Prints the problem that the model solves, its frequency response and its hop coefficients, and draws them. With
    --edges the picture shows the graph's own frequencies and where the energy of white noise goes; models that are not
    linear are measured on that graph. Edges are taken to run both ways.

    Example: unspool spectrum out/train/seed0 --edges edges.csv --out out/spectrum.png
    """
    from unspool.cli.spectrum import run

    run(checkpoint, edges, out, as_json)


for command in (train_, predict, explain, denoise, models_, datasets_, study, report_, reproduce):
    cli.add_command(command)


def _end_gently() -> None:
    """Whoever is told to end (``timeout``, a cluster that wants its node back) ends as after Ctrl-C: what has ended is kept."""
    ours = threading.current_thread() is threading.main_thread()
    if ours and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # Trap: raising SIGINT instead would do nothing where a script started us with &, which makes us ignore it.
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def main() -> None:
    """Run the command line; a refusal is one sentence, not a traceback."""
    _end_gently()
    for stream in (sys.stdout, sys.stderr):  # a pipe that knows no Greek gets escapes, not a traceback
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        # Trap: without standalone mode click gives the code of an Exit back instead of raising it.
        code = cli(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Abort:
        echo("interrupted", err=True)
        sys.exit(130)
    except click.ClickException as problem:
        said = io.StringIO()
        problem.show(said)
        echo(said.getvalue().rstrip("\n"), err=True)
        sys.exit(problem.exit_code)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except (IncompatibleError, ValueError, TypeError, OSError, ImportError, MemoryError, RuntimeError) as problem:
        line = sentence(problem)
        if line is None or os.environ.get("UNSPOOL_TRACEBACK"):
            raise
        echo(f"unspool: {line}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
