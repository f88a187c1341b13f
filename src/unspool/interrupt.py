"""Ctrl-C, or being told to end, between two epochs instead of inside one."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

#: What may ask to stop: Ctrl-C; and being told to end, where a program has it raise like Ctrl-C, as our commands do.
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Interrupt:
    """Whether someone has asked to stop."""

    asked: bool = False


#: The one interrupt of a process that notes it from its beginning to its end.
_for_good: list[Interrupt] = []


def note_for_good(signals: Sequence[signal.Signals] = (signal.SIGTERM,)) -> None:
    """From now on being told to end (by these signals) is noted and never raises: for processes that someone else ends if they take too long.

    A cluster tells all processes of a job, and so does the process that started this one; two must not do more than one.
    """
    found = Interrupt()
    _for_good[:] = [found]
    for number in signals:
        signal.signal(number, lambda number, frame: setattr(found, "asked", True))


@contextlib.contextmanager
def deferred_interrupt() -> Generator[Interrupt]:
    """Note the first Ctrl-C instead of raising it; the second raises as ever.

    The same for SIGTERM where it raises ``KeyboardInterrupt``, too. Only the main thread can listen to signals; elsewhere,
    and where another handler than Python's own is set, nothing changes.

    Example:
        >>> with deferred_interrupt() as interrupt:
        ...     for epoch in range(1000):
        ...         if interrupt.asked:
        ...             break
        >>> epoch
        999
    """
    if _for_good:
        yield _for_good[0]
        return
    found = Interrupt()

    def note(number: int, frame: Any) -> None:
        if found.asked:
            raise KeyboardInterrupt
        found.asked = True

    ours = threading.current_thread() is threading.main_thread()
    heard = [number for number in SIGNALS if ours and signal.getsignal(number) is signal.default_int_handler]
    for number in heard:
        signal.signal(number, note)
    try:
        yield found
    finally:
        for number in heard:
            signal.signal(number, signal.default_int_handler)
