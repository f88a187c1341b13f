"""Processes that train side by side: how they start, hear an interrupt, and end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import parent_process
from typing import Any


def start(crew: Sequence[Any]) -> None:
    """Start processes deaf to Ctrl-C: until they can handle one, it would end in a traceback of their own.

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
    """In a process that was started: hear interrupts from now on, and end when the one who started it is gone."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pass_on(crew: Sequence[Any]) -> None:
    """Those who did not get the interrupt from the terminal get it now; a second one does no harm."""
    for member in crew:
        if member.pid is not None and member.is_alive():
            with suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGINT)


def _leave_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
