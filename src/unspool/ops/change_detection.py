"""Whether tensors still hold what they held when something was made from them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def copies(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """What the tensors hold now, in memory of its own."""
    return tuple(tensor.detach().clone() for tensor in tensors)


def unchanged(tensors: Sequence[Tensor], kept: Sequence[Tensor]) -> bool:
    """Whether the tensors hold what was kept.

    Trap: version counters do not tell. They miss changes through ``.data`` and through a NumPy array that shares the memory.

    Example:
        >>> import numpy, torch
        >>> array = numpy.arange(3)
        >>> tensors = (torch.from_numpy(array),)
        >>> kept = copies(tensors)
        >>> array[0] = 7
        >>> unchanged(tensors, kept)
        False
    """
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        return (
            True  # no number can be looked at while a CUDA graph is captured, which replays on the same memory anyway
        )
    return all(
        now.dtype == then.dtype and now.device == then.device and torch.equal(now, then)
        for now, then in zip(tensors, kept, strict=True)
    )
