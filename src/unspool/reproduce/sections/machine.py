"""Time, hardware and exact commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unspool.report import Block, Cell, Code, Notes, Paragraph, Rows, Table, facts, text_columns
from unspool.report.text import plain
from unspool.reproduce.records import Results
from unspool.reproduce.sections.not_run import NotRun

_NAMES = {"memory_gb": "memory (GB)"}


def machine_blocks(results: Results) -> list[Block]:
    """What ``machine.json`` says."""
    known = results.machine
    if not known:
        return [NotRun(["The folder has no machine.json, so nothing is known about the machine."])]
    blocks: list[Block] = []
    runs: Mapping[str, Mapping[str, Any]] = known.get("experiments", {})
    if runs:
        blocks.append(_runs(runs))
        commands = list(dict.fromkeys(str(one) for run in runs.values() for one in run.get("commands", ())))
        blocks += [Paragraph(["Exact commands:"]), Code("\n".join(commands))] if commands else []
    if known.get("not_run"):
        blocks += [Paragraph(["Not run:"]), Notes([str(why) for why in known["not_run"].values()])]
    machines: list[Mapping[str, Any]] = known.get("machines", [])
    for one in machines:
        title = f"Machine and versions: {one['hardware']}" if len(machines) > 1 else "Machine and versions"
        blocks.append(facts(title, [(_NAMES.get(name, str(name)), plain(value)) for name, value in one.items()]))
    return blocks


def _runs(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    rows: Rows = []
    for name, run in runs.items():
        trials, seconds = run.get("trials", 0), run.get("seconds", 0.0)
        per_second = trials / seconds if seconds > 0 else None
        rows.append([str(name), Cell.count(trials), Cell.number(seconds, 1), Cell.number(per_second)])
    columns = [*text_columns("experiment"), "trials", "wall time (s)", "trials per second"]
    return Table("Trials and wall time", columns, rows)
