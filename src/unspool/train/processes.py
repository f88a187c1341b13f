"""Processes that train side by side: how they start, hear an interrupt, and end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import parent_process
from typing import Any

from unspool.train.interrupt import note_for_good


def start(crew: Sequence[Any]) -> None:
    """Start processes deaf to Ctrl-C, which a terminal sends to all: whoever started them decides what it means.

    Each of them calls :func:`begin` when it is ready; an interrupt reaches them by :func:`pass_on`.
    """
    ours = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ours else None
    try:
        for member in crew:
            member.start()
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


def begin() -> None:
    """In a process that was started: note being told to end from now on, and end at once when the parent is gone."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    note_for_good()


def pass_on(crew: Sequence[Any]) -> None:
    """Tell processes to end: one that has begun keeps what it has, one that has not has nothing to lose."""
    for member in crew:
        if member.pid is not None and member.is_alive():
            with suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGTERM)


def wait_for(crew: Sequence[Any], seconds: float | None = None) -> None:
    """Wait until processes have ended; those that take longer than so many seconds are killed."""
    for member in crew:
        member.join(seconds)
        if member.is_alive():
            member.kill()
            member.join()


def _leave_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
