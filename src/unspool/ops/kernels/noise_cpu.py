"""Counter-based dropout on the CPU: the hash runs over pieces that stay in the cache, into buffers that are reused."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

FIRST, SECOND = 0x7FEB352D, 0x846CA68B - (1 << 32)
GOLDEN = 0x9E3779B9 - (1 << 32)
_PIECE = 1 << 18  # elements


@functools.cache
def _word(value: int) -> Tensor:
    # Trap: an operation with a Python number makes a tensor of it each time, which takes as long as the operation.
    return torch.tensor(value, dtype=torch.int32)


def mix_(bits: Tensor, spare: Tensor) -> Tensor:
    """Scramble int32 bits in place; ``spare`` has the same shape."""
    # Trap: >> on int32 keeps the sign; the masks make it a logical shift.
    for shift, mask, factor in ((16, 0xFFFF, FIRST), (15, 0x1FFFF, SECOND)):
        torch.bitwise_right_shift(bits, _word(shift), out=spare)
        bits.bitwise_xor_(spare.bitwise_and_(_word(mask))).mul_(_word(factor))
    torch.bitwise_right_shift(bits, _word(16), out=spare)
    return bits.bitwise_xor_(spare.bitwise_and_(_word(0xFFFF)))


#: Integers as wide as each float, for masks that are applied bit by bit (ten times faster than masked_fill_).
_AS_WIDE = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.bfloat16: torch.int16,
    torch.float16: torch.int16,
}


def _keep_(out: Tensor, bits: Tensor, threshold: int, mask: Tensor) -> None:
    """Zero the elements of ``out`` whose hash is below the threshold, NaN included."""
    torch.ge(bits, torch.tensor(threshold, dtype=bits.dtype), out=mask)  # 1 or 0, hence after neg_ all bits or none
    out.view(mask.dtype).bitwise_and_(mask.neg_())


def mix_int(bits: int) -> int:
    """The same scramble on one Python integer, as a signed 32-bit number."""
    bits &= 0xFFFFFFFF
    for shift, factor in ((16, FIRST), (15, SECOND)):
        bits = ((bits ^ (bits >> shift)) * factor) & 0xFFFFFFFF
    bits ^= bits >> 16
    return bits - ((bits >> 31) << 32)


def advanced(key: Tensor, count: Tensor) -> int:
    """The key of call number ``count``."""
    return mix_int((int(key) + GOLDEN) ^ int(count))


def limits(rate: Tensor) -> tuple[int, float]:
    """The smallest 16-bit hash that survives, and what survivors are multiplied with."""
    value = float(rate)
    threshold = min(-int(-(value * 2.0**16 - 2.0**15) // 1), 2**15 - 1)
    return threshold, 1 / (1 - value) if value < 1 else 0.0


class _Masks:
    """Masks that were drawn on the way forward, until they are asked for on the way back; a bounded number of bytes.

    A mask costs six times as much to draw as to apply. Whoever finds none draws it again and gets the same bits, so nothing
    depends on what is held here.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self.held: dict[tuple[int, int, int, int], Tensor] = {}

    def keep(self, name: tuple[int, int, int, int], mask: Tensor) -> None:
        """Hold a mask, and let the oldest go that no longer fit."""
        size = mask.numel() * mask.element_size()
        if size > self.limit or name in self.held:
            return
        self.held[name] = mask
        self.size += size
        while self.size > self.limit:
            self.take(next(iter(self.held)))

    def take(self, name: tuple[int, int, int, int]) -> Tensor | None:
        """A mask that is held, for the last time."""
        mask = self.held.pop(name, None)
        if mask is not None:
            self.size -= mask.numel() * mask.element_size()
        return mask


_masks = _Masks(32 * 2**20)


def drop(x: Tensor, rate: Tensor, key: Tensor, count: Tensor) -> Tensor:
    """Zero elements of x, shape (blocks, rows, columns), by the rate and key of their block."""
    if x.dtype != torch.float32 or x.shape[1] * x.shape[2] > _PIECE or x.device.type != "cpu":
        return _drop_in_pieces(x, rate, key, count)
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    for b in range(x.shape[0]):
        threshold, scale = limits(rate[b])
        now = advanced(key[b], count[b])
        name = (now, threshold, x.shape[1], x.shape[2])
        mask = _masks.take(name)
        if mask is None:
            mask = _mask(x.shape[1], x.shape[2], now, threshold)
            _masks.keep(name, mask)
        torch.mul(x[b], scale, out=out[b])
        out[b].view(torch.int32).bitwise_and_(mask)
    return out


def _mask(rows: int, cols: int, key: int, threshold: int) -> Tensor:
    """All bits of the elements that survive, none of the others."""
    column = torch.arange((cols + 1) // 2, dtype=torch.int32) * GOLDEN
    bits = row_hash(rows, key, column.device)[:, None] + column
    mix_(bits, torch.empty_like(bits))
    mask = torch.empty(rows, cols, dtype=torch.int32)
    torch.ge(bits.view(torch.int16)[:, :cols], torch.tensor(threshold, dtype=torch.int16), out=mask)
    return mask.neg_()


def _drop_in_pieces(x: Tensor, rate: Tensor, key: Tensor, count: Tensor) -> Tensor:
    """The same for any dtype and any size, in pieces that stay in the cache."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows, cols = x.shape[1:]
    words = (cols + 1) // 2  # each hash decides two neighbours
    step = max(_PIECE // max(cols, 1), 1)
    column = torch.arange(words, dtype=torch.int32, device=x.device) * GOLDEN
    bits = torch.empty(min(step, rows), words, dtype=torch.int32, device=x.device)
    spare = torch.empty_like(bits)
    mask = torch.empty(bits.shape[0], cols, dtype=_AS_WIDE[x.dtype], device=x.device)
    for b in range(x.shape[0]):
        threshold, scale = limits(rate[b])
        row = row_hash(rows, advanced(key[b], count[b]), x.device)
        for first in range(0, rows, step):
            last = min(first + step, rows)
            piece, room = bits[: last - first], spare[: last - first]
            torch.add(row[first:last, None], column, out=piece)
            mix_(piece, room)
            part = out[b, first:last]
            torch.mul(x[b, first:last], scale, out=part)
            _keep_(part, piece.view(torch.int16)[:, :cols], threshold, mask[: last - first])
    return out


def drop_entries(row: Tensor, col: Tensor, val: Tensor, rate: Tensor, key: Tensor, count: Tensor) -> Tensor:
    """The entries ``val`` of a sparse matrix after dropout, one row per block."""
    out = torch.empty(rate.shape[0], val.shape[0], dtype=val.dtype, device=val.device)
    spare = torch.empty_like(col)
    mask = torch.empty(val.shape, dtype=_AS_WIDE[val.dtype], device=val.device)
    column, shift = (col >> 1) * GOLDEN, (1 - (col & 1)) << 4
    rows = int(row.max()) + 1 if row.numel() else 0
    for b in range(rate.shape[0]):
        threshold, scale = limits(rate[b])
        bits = row_hash(rows, advanced(key[b], count[b]), val.device).index_select(0, row).add_(column)
        mix_(bits, spare)
        bits.bitwise_left_shift_(shift).bitwise_right_shift_(
            _word(16)
        )  # the half that is this element's, with its sign
        torch.mul(val, scale, out=out[b])
        _keep_(out[b], bits, threshold, mask)
    return out


def row_hash(rows: int, key: int, device: torch.device) -> Tensor:
    """One well-mixed word per row."""
    # Trap: hashing row ^ key only once gives keys that differ in low bits the same rows in another order.
    bits = torch.arange(rows, dtype=torch.int32, device=device)
    spare = torch.empty_like(bits)
    return mix_(mix_(bits, spare).bitwise_xor_(key), spare)
