"""What kernels that lay masks share: the hash of an element, the threshold and the scale of a rate."""

from __future__ import annotations

import triton
import triton.language as tl

from unspool.ops.kernels.noise_cuda import _mix


@triton.jit
def in_64(count, like):
    """A loop counter as a 64-bit number; Triton's interpreter counts in plain ones, which know no ``to``."""
    return like.to(tl.int64) * 0 + count


@triton.jit
def site_word(key, count):
    """The hash state of one call of a dropout site."""
    return _mix((key.to(tl.uint32) + 0x9E3779B9) ^ count.to(tl.uint32))


@triton.jit
def rate_limits(rate):
    """What a hash must reach to survive, and the factor of survivors."""
    share = rate.to(tl.float64)
    threshold = tl.minimum(tl.ceil(share * 65536.0 - 32768.0), 32767.0).to(tl.int32)
    scale = tl.where(share < 1, 1 / (1 - share), 0.0)
    return threshold, scale.to(tl.float32)


@triton.jit
def drops(rate, key, count, block, DROPS: tl.constexpr):
    """The hash state of a block's mask, what survives, and the factor of survivors; computed once, since it takes double precision."""
    word, threshold, scale = tl.full([], 0, tl.uint32), tl.full([], 0, tl.int32), tl.full([], 1.0, tl.float32)
    if DROPS:
        threshold, scale = rate_limits(tl.load(rate + block))
        word = site_word(tl.load(key + block), tl.load(count + block))
    return word, threshold, scale


@triton.jit
def hash_bits(mixed):
    """The hash of two neighbouring columns, as a whole number with a sign."""
    return _mix(mixed).to(tl.int32, bitcast=True)


@triton.jit
def pair_flags(bits, limit):
    """Whether the even and the odd column of each pair survive; ``limit`` is the threshold times 2¹⁶."""
    return (bits << 16) >= limit, bits >= limit


@triton.jit
def survive_in_row(row, first, word, threshold, ROWS: tl.constexpr, TILE: tl.constexpr):
    """Whether the elements of TILE columns from an even one on survive, for some rows: one hash for two neighbours."""
    pair = (first + 2 * tl.arange(0, TILE // 2)) >> 1
    mixed = _mix(_mix(row.to(tl.uint32)) ^ word)[:, None] + pair.to(tl.uint32)[None, :] * 0x9E3779B9
    even, odd = pair_flags(hash_bits(mixed), threshold * 65536)
    return tl.interleave(even, odd)
