"""Streams of a GPU that belong to one owner while it lives: torch has 32 of them, and hands them out in turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch

#: The streams of everybody who lives, by their places in memory.
_TAKEN: WeakKeyDictionary[Any, set[int]] = WeakKeyDictionary()


def stream_for(owner: Any, device: torch.device, draw: Callable[[torch.device], Any] | None = None) -> Any:
    """A stream that nobody else has while its owner lives; None where all are taken, and where there are none.

    Trap: the 33rd stream that torch makes is the first one. Torch keeps the workspace of cuBLAS by stream, and an epoch that was captured
    knows it by its place in memory. In torch 2.13 a CUDA graph that is deleted frees the workspace of its stream
    (https://github.com/pytorch/pytorch/issues/193402): another one of that stream goes on in memory that others have by then, or nobody,
    which ends the process, and all others that share the GPU by MPS.

    Args:
        owner: who has the stream; whatever it has captured must live no longer.
        device: a GPU, or one without streams.
        draw: makes a stream; that of torch when omitted.

    Example:
        >>> class Two:
        ...     turn = 0
        ...     def __call__(self, device):
        ...         self.turn += 1
        ...         return type("Stream", (), {"cuda_stream": self.turn % 2})
        >>> class Owner:
        ...     pass
        >>> draw, first, second, third = Two(), Owner(), Owner(), Owner()
        >>> [stream_for(one, torch.device("cuda"), draw).cuda_stream for one in (first, second)]
        [1, 0]
        >>> stream_for(third, torch.device("cuda"), draw) is None
        True
        >>> del first
        >>> stream_for(third, torch.device("cuda"), draw).cuda_stream
        1
    """
    if device.type != "cuda":
        return None
    make = torch.cuda.Stream if draw is None else draw
    taken, seen = set[int]().union(*_TAKEN.values()), set[int]()
    while (place := (stream := make(device)).cuda_stream) not in seen:
        if place not in taken:
            _TAKEN.setdefault(owner, set()).add(place)
            return stream
        seen.add(place)
    return None
