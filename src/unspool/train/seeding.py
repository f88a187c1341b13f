"""A seed for everything that is drawn in a block, whatever other threads do."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

import torch

#: Torch has one generator for all threads of a process, so one thread at a time may have it. Reentrant: a run may build models.
_ONE = threading.RLock()


@contextmanager
def seeded(seed: int | None, device: torch.device | str = "cpu") -> Generator[None]:
    """Let torch draw under a seed, and leave its generators as they were found.

    Weights are drawn when a model is built; modules and losses may draw in every epoch. Threads wait for one another here: to
    train side by side, use processes (``unspool train --jobs``).

    Args:
        seed: of torch's generators; None leaves it to the block to set them.
        device: where training draws.

    Example:
        >>> with seeded(3):
        ...     a = torch.rand(2)
        >>> with seeded(3):
        ...     b = torch.rand(2)
        >>> torch.equal(a, b)
        True
    """
    where = torch.device(device)
    with _ONE, torch.random.fork_rng(devices=[where] if where.type == "cuda" else []):
        if seed is not None:
            torch.manual_seed(seed)
        yield
