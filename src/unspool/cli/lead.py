"""The search for the lead, its final evaluations and its table on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import click

from unspool.cli.study.open_study import console_for
from unspool.device import check_device
from unspool.errors import InputError
from unspool.reproduce.lead.finals import read
from unspool.reproduce.lead.plan import Plan
from unspool.reproduce.lead.run import PARTS, LeadRun
from unspool.reproduce.lead.table import lines

#: The part that runs nothing.
TABLE = "table"


def run(
    datasets: Sequence[str],
    parts: Sequence[str],
    entries: Sequence[str],
    *,
    space: str,
    sizes: Mapping[str, int | None],
    job: LeadRun,
) -> None:
    """Run what was asked for, then print the table of all final evaluations."""
    plan = Plan.read(space, **sizes)
    for argument, given, known in (
        ("datasets", datasets, plan.datasets), ("parts", parts, (*PARTS, TABLE)), ("entries", entries, plan.entries),
    ):  # fmt: skip
        wrong = next((one for one in given if one not in known), None)
        if wrong is not None:
            raise InputError(argument, wrong, f"one of {', '.join(known)}")
    if job.device is not None:
        check_device(job.device)
    console = console_for()
    job = replace(job, plan=plan, say=lambda text: console.print(text, highlight=False, soft_wrap=True))
    try:
        job.run(datasets, [one for one in parts or PARTS if one != TABLE], entries)
    except KeyboardInterrupt:
        console.print("interrupted: what has ended is kept; run the same command again to continue")
        raise click.exceptions.Exit(130) from None
    for line in lines(read(job.finals), plan):
        console.print(line, highlight=False, soft_wrap=True)
