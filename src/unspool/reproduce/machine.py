"""What the results were made with: hardware, versions, date, and seconds, trials and commands of each experiment."""

from __future__ import annotations

import os
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from unspool.files import one_at_a_time
from unspool.reproduce.results import read_machine, write_machine


def facts(device: str | None = None) -> dict[str, Any]:
    """Hardware and versions; no names of machines.

    Example:
        >>> sorted(facts("cpu"))
        ['cores', 'date', 'hardware', 'memory_gb', 'python', 'torch', 'unspool']
    """
    from unspool import __version__

    gpu = torch.cuda.is_available() and (device is None or torch.device(device).type == "cuda")
    return {
        "hardware": torch.cuda.get_device_name() if gpu else _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
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

    def __init__(self, bench: Any, experiment: str) -> None:
        self.bench, self.experiment, self.began, self.before = bench, experiment, time.time(), bench.trained

    def __enter__(self) -> Timer:
        return self

    def __exit__(self, *problem: object) -> None:
        with one_at_a_time(self.bench.place.results):
            self._note()

    def _note(self) -> None:
        bench, place = self.bench, self.bench.place
        held, here = read_machine(place.results), facts(place.device)
        if bench.trained == self.before and not held and not bench.missing:
            return  # nothing to tell
        known: dict[str, Any] = held.get("experiments", {})
        trained = bench.trained - self.before
        old = known.get(self.experiment, {"trials": 0, "spans": [], "hardware": [], "commands": []})
        if trained:
            # Older files have no spans: what they had goes to the beginning of time.
            before = old["spans"] if "spans" in old else [[0.0, old["seconds"]]]
            spans = joined([*before, [round(self.began, 1), round(time.time(), 1)]])
            known[self.experiment] = {
                "trials": old["trials"] + trained,
                "seconds": round(sum(end - begin for begin, end in spans), 1),
                "spans": spans,
                # Runs into one folder may come from several machines.
                "hardware": _with(old["hardware"], here["hardware"]),
                "commands": _with(old["commands"], place.command),
            }
        absent = {name: why for name, why in held.get("not_run", {}).items() if name not in bench.found}
        machines = _machines(held)
        if trained:
            machines = [*(one for one in machines if one.get("hardware") != here["hardware"]), here]
        told = {"machines": machines, "experiments": known, "not_run": {**absent, **bench.missing}}
        write_machine(place.results, told)


def _machines(held: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that a file names; older files name one, among everything else."""
    if "machines" in held or "hardware" not in held:
        return list(held.get("machines", []))
    return [{name: value for name, value in held.items() if name not in ("experiments", "not_run")}]


def joined(spans: list[list[float]]) -> list[list[float]]:
    """Spans of time with those that overlap made one.

    Example:
        >>> joined([[0.0, 5.0], [8.0, 9.0], [3.0, 6.0]])
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


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor()
        return name if name else platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (AttributeError, ValueError, OSError):
        return None
