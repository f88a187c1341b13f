"""Ctrl-C between two epochs instead of inside one."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any


@dataclass
class Interrupt:
    """Whether someone has asked to stop."""

    asked: bool = False


@contextlib.contextmanager
def deferred_interrupt() -> Generator[Interrupt]:
    """Note the first Ctrl-C instead of raising it; the second raises as ever.

    Only the main thread can listen to signals; elsewhere, and where another handler than Python's own is set, nothing changes.

    Example:
        >>> with deferred_interrupt() as interrupt:
        ...     for epoch in range(1000):
        ...         if interrupt.asked:
        ...             break
        >>> epoch
        999
    """
    found = Interrupt()

    def note(number: int, frame: Any) -> None:
        if found.asked:
            raise KeyboardInterrupt
        found.asked = True

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield found
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
