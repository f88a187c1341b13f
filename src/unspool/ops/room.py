"""Room for large results on the CPU that is used again, in large pages of memory.

The first touch of memory that a system hands out costs several times as much as filling it, and torch gives large tensors back to the system as
soon as they are gone: an op whose result has 300 MB pays for it at every call. Here what is gone is kept for the next result of that
size, and told to the system as free, so that it takes it back when memory runs short.
"""

from __future__ import annotations

import math
import mmap
import os
import weakref

import torch
from torch import Tensor

#: Bytes from which a result gets such room.
LEAST = 16 * 2**20
_PAGE = 2 * 2**20
#: What makes it possible; other systems than Linux have not all of it.
_NEEDED = ("MADV_HUGEPAGE", "MADV_FREE", "MAP_PRIVATE", "MAP_ANONYMOUS")
_POSSIBLE = all(hasattr(mmap, name) for name in _NEEDED)

#: Room that nobody uses now, the latest last.
_idle: list[mmap.mmap] = []


def empty_like(x: Tensor) -> Tensor:
    """Contiguous memory of the shape of x that nothing is written to yet.

    Example:
        >>> import torch
        >>> empty_like(torch.ones(3, 2)).shape
        torch.Size([3, 2])
    """
    room = _room(x.numel() * x.element_size()) if x.device.type == "cpu" else None
    if room is None:
        return torch.empty_like(x, memory_format=torch.contiguous_format)
    lent = memoryview(room)
    weakref.finalize(
        lent, _take_back, room
    ).atexit = False  # torch keeps what it was lent as long as the tensor's memory
    return torch.frombuffer(lent, dtype=x.dtype, count=math.prod(x.shape)).view(x.shape)


def _room(size: int) -> mmap.mmap | None:
    """Memory in large pages, used before if there is such; nothing where there is little to gain or the system has none."""
    if size < LEAST or not _POSSIBLE:
        return None
    size = -(-size // _PAGE) * _PAGE
    for place in reversed(range(len(_idle))):
        if len(_idle[place]) == size:
            return _idle.pop(place)
    try:
        room = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        room.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a kernel without large pages, or no memory: torch says so
        return None
    return room


def _take_back(room: mmap.mmap) -> None:
    """Keep room for later, and let go of the oldest beyond a quarter of the memory."""
    room.madvise(mmap.MADV_FREE)
    _idle.append(room)
    while sum(map(len, _idle)) > _most():
        del _idle[0]


def _most() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
