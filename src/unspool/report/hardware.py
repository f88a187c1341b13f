"""The machine in plain values, for cards and reports."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import torch


def machine(device: str | None = None) -> dict[str, Any]:
    """This machine in plain values, for the card of a job: processor, cores, torch's threads, device.

    Example:
        >>> sorted(machine("cpu"))
        ['cores', 'device', 'processor', 'threads']
    """
    threads = torch.get_num_threads()
    found = {"processor": processor_name(), "cores": os.cpu_count(), "threads": threads, "device": device}
    return {name: value for name, value in found.items() if value}


def processor_name() -> str:
    """The processor by name where Linux tells it, else by kind.

    Example:
        >>> len(processor_name()) > 0
        True
    """
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    kinds = [*names, platform.processor(), platform.machine()]
    return next((name for name in kinds if name), "unknown")
