"""Packs beside each other on a GPU: each has a stream of its own, and waits for nobody but itself."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import torch


@contextlib.contextmanager
def own_stream(stream: Any, device: torch.device) -> Generator[None]:
    """Send work to a stream, after what was sent before; nothing that is sent later waits for it. Without a stream nothing changes.

    Example:
        >>> with own_stream(None, torch.device("cpu")):
        ...     pass
    """
    if stream is None:
        yield
        return
    # Trap: letting the current stream wait in turn would put the packs one behind the other again.
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        yield


def check_ahead(epochs: int, most: int) -> int:
    """The number of epochs, if their numbers can be kept on the device.

    Example:
        >>> check_ahead(25, 64)
        25
    """
    if not 1 <= epochs <= most:
        raise ValueError(f"{epochs} epochs ahead: a pack keeps the numbers of 1 to {most}")
    return epochs
