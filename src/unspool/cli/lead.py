"""The search for the lead, its final evaluations and its table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from unspool.cli.study.open_study import console_for
from unspool.device import check_device
from unspool.errors import InputError
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.lead.finals import read
from unspool.reproduce.lead.run import PARTS, LeadRun
from unspool.reproduce.lead.table import lines


def run(
    datasets: Sequence[str],
    parts: Sequence[str],
    entries: Sequence[str],
    *,
    out: Path,
    commit: str | None,
    device: str | None,
    root: Path | None,
) -> None:
    """Run what was asked for, then print the table of all final evaluations."""
    how = read_experiment("lead")
    for argument, given, known in (
        ("datasets", datasets, how["datasets"]), ("parts", parts, PARTS), ("entries", entries, how["entries"]),
    ):  # fmt: skip
        wrong = next((one for one in given if one not in known), None)
        if wrong is not None:
            raise InputError(argument, wrong, f"one of {', '.join(known)}")
    if device is not None:
        check_device(device)
    console = console_for()
    job = LeadRun(out, root, device, commit, say=lambda text: console.print(text, highlight=False))
    try:
        job.run(datasets, parts or PARTS, entries)
    except KeyboardInterrupt:
        console.print("interrupted: what has ended is kept; run the same command again to continue")
        raise click.exceptions.Exit(130) from None
    for line in lines(read(job.finals)):
        console.print(line, highlight=False, soft_wrap=True)
