"""What the processes that ``torchrun`` started side by side say: one of them speaks for all, and all end together."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

#: What torchrun tells the processes that it starts.
TOLD = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
#: Seconds that a process waits for others, which may be at work, before it speaks or ends by itself.
PATIENCE = 3
#: The store, once this process has joined: process 0 may hold it for all, so it lives as long as the process.
_store: list[Any] = []
_SPOKEN, _WRONG, _HEARD = "spoken", "wrong", "heard"


def in_company() -> bool:
    """Whether this process was started with others."""
    return all(part in os.environ for part in TOLD) and os.environ["WORLD_SIZE"] != "1"


def joined(patience: timedelta) -> Any:
    """The store through which the processes find each other; ``patience`` is how long any of them may be waited for."""
    from torch import distributed

    if not _store:
        _store.append(next(iter(distributed.rendezvous("env://", timeout=patience)))[0])  # pyright: ignore[reportPrivateImportUsage]
    return _store[0]


def said_once(line: str, *, lost: bool) -> str | None:
    """The line in which a process ends as others of its company do; None where another one says it, or has a better reason.

    Process 0 speaks where it can. Where all that it knows is that another one ended (``lost``), it says why that one did.

    Args:
        line: what this process would say by itself.
        lost: whether it only ends because another one did.
    """
    if not in_company():
        return line
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with suppress(ValueError):  # which it is outside the main thread
        signal.signal(
            signal.SIGTERM, signal.SIG_IGN
        )  # torchrun tells the others to end, and they are about to, with their own code
    try:
        store = joined(timedelta(seconds=PATIENCE))
        return _agreed(store, rank, size, line, lost)
    except (RuntimeError, OSError):  # of the store: whoever holds it is gone
        return line


def _agreed(store: Any, rank: int, size: int, line: str, lost: bool) -> str | None:
    """What this process says, once the others have been heard or waited for."""
    store.set(f"{_WRONG} {rank}", "" if lost else line)
    _wait(store, [_SPOKEN] if rank else [f"{_WRONG} {other}" for other in range(size)])
    found = None
    if store.compare_set(_SPOKEN, "", str(rank)).decode() == str(rank):
        reason = _reason(store, size) if lost else None
        found = line if reason is None else reason
    if rank:
        store.set(f"{_HEARD} {rank}", "")
    else:  # it may hold the store, so it ends last
        _wait(store, [f"{_HEARD} {other}" for other in range(1, size) if store.check([f"{_WRONG} {other}"])])
    return found


def _wait(store: Any, keys: list[str]) -> None:
    """Until all these are said, or for as long as the patience lasts."""
    until = time.monotonic() + PATIENCE
    while not store.check(keys) and time.monotonic() < until:  # store.wait would print warnings of its own
        time.sleep(0.02)


def _reason(store: Any, size: int) -> str | None:
    """What the first process says that knows why all end."""
    for rank in range(size):
        key = f"{_WRONG} {rank}"
        if store.check([key]) and (line := store.get(key).decode()):
            return f"process {rank}: {line}"
    return None
