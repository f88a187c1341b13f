"""``unspool demo``."""

from __future__ import annotations

from pathlib import Path

import click

from unspool.cli.commands.options import FILE
from unspool.cli.number_types import Finite, Whole


@click.command()
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
@click.option("--seed", default=0, show_default=True, type=Whole(0, 2**32 - 1), help="Seed of sensors and noise.")
@click.option("--out", default="out/demo.png", show_default=True, type=FILE, help="Where the picture goes.")
def demo(nodes: int, depth: int, noise: float, alpha: float, seed: int, out: Path) -> None:
    """Denoise a signal on a sensor network, layer by layer.

    Unrolls gradient descent on α‖H−X‖² + (1−α)‖BH‖², prints objective and error after each layer next to those of the exact solution,
    trains the same network with its own α in every layer, and draws what happened.

    Example: unspool demo --depth 20 --noise 1.0
    """
    from unspool.cli.demo import run

    run(nodes, depth, noise, alpha, seed, out)
