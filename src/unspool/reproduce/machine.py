"""What the results were made with: hardware, versions, date, and seconds, trials and commands of each experiment."""

from __future__ import annotations

import os
import platform
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import torch

from unspool.files import one_at_a_time
from unspool.parallel import cores
from unspool.report.hardware import processor_name
from unspool.reproduce.results import read_machine, write_machine

if TYPE_CHECKING:
    from unspool.reproduce.runner import ExperimentRunner


def machine_facts(device: str | None = None) -> dict[str, Any]:
    """Hardware and versions; no names of machines.

    Example:
        >>> sorted(machine_facts("cpu"))
        ['cores', 'date', 'hardware', 'memory_gb', 'python', 'torch', 'unspool']
    """
    from unspool import __version__

    gpu = torch.cuda.is_available() and (device is None or torch.device(device).type == "cuda")
    return {
        "hardware": torch.cuda.get_device_name() if gpu else processor_name(),
        "cores": cores(),
        "memory_gb": _memory(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "unspool": __version__,
        "date": datetime.now(UTC).date().isoformat(),
    }


class Timer:
    """Adds the time of a run to ``machine.json`` when it ends, however it ends.

    Runs that trained nothing count nothing. Runs that overlap, in several processes, count their common time once: ``seconds`` is
    what a clock on the wall would show.
    """

    def __init__(self, runner: ExperimentRunner, experiment: str) -> None:
        self.runner, self.experiment, self.began, self.before = runner, experiment, time.time(), runner.trained

    def __enter__(self) -> Timer:
        return self

    def __exit__(self, *problem: object) -> None:
        with one_at_a_time(self.runner.workspace.results):
            self._note()

    def _note(self) -> None:
        runner, workspace = self.runner, self.runner.workspace
        trained = runner.trained - self.before
        held = read_machine(workspace.results)
        if not (trained or held or runner.missing):
            return  # nothing to tell
        runs: dict[str, Any] = held.get("experiments", {})
        machines: list[dict[str, Any]] = held.get("machines", [])
        if trained:
            here = machine_facts(workspace.device)
            machines = [*(one for one in machines if one.get("hardware") != here["hardware"]), here]
            old = runs.get(self.experiment, {"trials": 0, "spans": [], "hardware": [], "commands": []})
            spans = join_spans([*old["spans"], [round(self.began, 1), round(time.time(), 1)]])
            runs[self.experiment] = {
                "trials": old["trials"] + trained,
                "seconds": round(sum(end - begin for begin, end in spans), 1),
                "spans": spans,
                # Runs into one folder may come from several machines.
                "hardware": _with(old["hardware"], here["hardware"]),
                "commands": _with(old["commands"], workspace.command),
            }
        absent = {name: why for name, why in held.get("not_run", {}).items() if name not in runner.found}
        facts = {"machines": machines, "experiments": runs, "not_run": {**absent, **runner.missing}}
        write_machine(workspace.results, facts)


def join_spans(spans: list[list[float]]) -> list[list[float]]:
    """Spans of time with those that overlap made one.

    Example:
        >>> join_spans([[0.0, 5.0], [8.0, 9.0], [3.0, 6.0]])
        [[0.0, 6.0], [8.0, 9.0]]
    """
    made: list[list[float]] = []
    for begin, end in sorted(spans):
        if made and begin <= made[-1][1]:
            made[-1][1] = max(made[-1][1], end)
        else:
            made.append([begin, end])
    return made


def _with(old: list[str], new: str) -> list[str]:
    return list(dict.fromkeys([*old, new] if new else old))


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (AttributeError, ValueError, OSError):
        return None
