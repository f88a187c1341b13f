"""Cutting wide signals so that what a walk over the hops touches stays in the cache.

A sparse product gathers rows at random, which is much faster from the cache than from memory. All hops of a piece of columns run before
the next piece starts.
"""

from __future__ import annotations

import functools
from pathlib import Path

from torch import Tensor


@functools.cache
def cache_bytes() -> int:
    """The size of the last-level cache, or a cautious guess."""
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text().strip()
        return int(text.rstrip("KM")) * (2**20 if text.endswith("M") else 2**10)
    except (OSError, ValueError):
        return 16 * 2**20


def cache_pieces(x: Tensor, columns: int, whole_blocks: bool = False, block: int = 1) -> list[slice]:
    """Cut ``columns`` into pieces whose three buffers fit into half the cache; one piece where that does not help."""
    per_column = 3 * x.shape[0] * x.element_size()
    # Rows of a piece fill whole cache lines: narrower ones are slower than no pieces when a neighbour fills the cache.
    line = 64 // x.element_size()
    width = max(cache_bytes() // 2 // max(per_column, 1) // line, 1) * line
    if x.device.type != "cpu" or columns <= width or line * per_column > 2 * cache_bytes():
        return [slice(0, columns)]
    if whole_blocks:
        width = max(width // block, 1) * block
    return [slice(i, min(i + width, columns)) for i in range(0, columns, width)]


def blocks(piece: slice, block: int) -> slice:
    """The blocks that a piece of whole blocks is made of."""
    return slice(piece.start // block, piece.stop // block)


def cut_signal(g: Tensor, piece: slice) -> Tensor:
    """The columns of a signal that belong to a piece."""
    if g.shape[1] == 1:
        return g[:, :, piece].contiguous()
    return g[:, blocks(piece, g.shape[2])].contiguous()


def cut(x: Tensor, hops: Tensor, piece: slice) -> tuple[Tensor, Tensor]:
    """What a piece of output columns needs of X and of the coefficients."""
    if hops.ndim == 3:
        return x[:, :, piece].contiguous(), hops[:, :, piece].contiguous()
    if x.shape[1] == 1:
        return x.contiguous(), hops[..., piece].contiguous()
    some = blocks(piece, hops.shape[3])
    return x[:, some].contiguous(), hops[:, some]


def cut_hop(hop: Tensor, piece: slice) -> Tensor:
    """The part of one hop's gradient that belongs to a piece."""
    if hop.ndim == 2 or hop.shape[0] == 1:
        return hop[..., piece]
    return hop[blocks(piece, hop.shape[2])]
