"""Room for large results on the CPU that is used again, in large pages of memory.

The first touch of memory that a system hands out costs several times as much as filling it, and torch gives large tensors back to the system as
soon as they are gone: an op whose result has 300 MB pays for it at every call. Here what is gone is kept for the next result of that
size, and told to the system as free, so that it takes it back when memory runs short.
"""

from __future__ import annotations

import contextlib
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

#: Room that nobody uses now, by size, the latest last.
# Trap: room comes back whenever a tensor goes, in any thread and amid any line here, so lists change by single calls alone.
_idle: dict[int, list[mmap.mmap]] = {}


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
    with contextlib.suppress(KeyError, IndexError):
        return _idle[size].pop()
    try:
        room = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        room.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a kernel without large pages, or no memory: torch says so
        return None
    return room


def _take_back(room: mmap.mmap) -> None:
    """Keep room for later, and let go of some beyond a quarter of the memory, of the size that was first asked for."""
    room.madvise(mmap.MADV_FREE)
    _idle.setdefault(len(room), []).append(room)
    over = sum(size * len(many) for size, many in list(_idle.items())) - _most()
    for size, many in list(_idle.items()):
        while over > 0 and many:
            with contextlib.suppress(IndexError):
                many.pop(0)
            over -= size


def _most() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
