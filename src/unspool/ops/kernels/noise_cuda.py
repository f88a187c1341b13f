"""Counter-based dropout on an NVIDIA GPU: one pass, the mask computed where it is used."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _mix(bits):
    bits = bits.to(tl.uint32)
    bits = (bits ^ (bits >> 16)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15)) * 0x846CA68B
    return bits ^ (bits >> 16)


@triton.jit
def _keeps(row, col, rate, key, count, block):
    """Whether an element survives, and the factor of survivors."""
    state = tl.load(key + block).to(tl.uint32)
    word = tl.load(count + block).to(tl.uint32)
    mixed = _mix((state + 0x9E3779B9) ^ word)
    bits = _mix(_mix(_mix(row.to(tl.uint32)) ^ mixed) + (col >> 1).to(tl.uint32) * 0x9E3779B9)
    half = ((bits >> ((col & 1) * 16).to(tl.uint32)) & 0xFFFF).to(tl.int32)
    half = tl.where(half >= 32768, half - 65536, half)
    share = tl.load(rate + block).to(tl.float64)
    threshold = tl.minimum(tl.ceil(share * 65536.0 - 32768.0), 32767.0).to(tl.int32)
    kept = half >= threshold
    scale = tl.where(share < 1, 1 / (1 - share), 0.0)
    return kept, scale


@triton.jit
def _drop(x, out, rate, key, count, size, cols, stride, BLOCK: tl.constexpr):
    block = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = place < size
    kept, scale = _keeps(place // cols, place % cols, rate, key, count, block)
    value = tl.load(x + block * stride + place, mask=mask, other=0.0)
    moved = (value * scale.to(value.dtype)).to(value.dtype)
    tl.store(out + block * size + place, tl.where(kept, moved, tl.zeros_like(moved)), mask=mask)


@triton.jit
def _drop_entries(row, col, val, out, rate, key, count, size, BLOCK: tl.constexpr):
    block = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = place < size
    r = tl.load(row + place, mask=mask, other=0)
    c = tl.load(col + place, mask=mask, other=0)
    kept, scale = _keeps(r, c, rate, key, count, block)
    value = tl.load(val + place, mask=mask, other=0.0)
    moved = (value * scale.to(value.dtype)).to(value.dtype)
    tl.store(out + block * size + place, tl.where(kept, moved, tl.zeros_like(moved)), mask=mask)


def drop(x: Tensor, rate: Tensor, key: Tensor, count: Tensor) -> Tensor:
    """Zero elements of x, shape (blocks, rows, columns), by the rate and key of their block."""
    blocks, rows, cols = x.shape
    size = rows * cols
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    if not x[0].is_contiguous():
        x = x.contiguous()
    with torch.cuda.device(x.device):
        grid = (triton.cdiv(size, 1024), blocks)
        _drop[grid](
            x, out, rate.contiguous(), key.contiguous(), count.contiguous(), size, cols, x.stride(0), BLOCK=1024
        )
    return out


def drop_entries(row: Tensor, col: Tensor, val: Tensor, rate: Tensor, key: Tensor, count: Tensor) -> Tensor:
    """The entries ``val`` of a sparse matrix after dropout, one row per block."""
    size, blocks = val.shape[0], rate.shape[0]
    out = torch.empty(blocks, size, dtype=val.dtype, device=val.device)
    if out.numel() == 0:
        return out
    with torch.cuda.device(val.device):
        grid = (triton.cdiv(size, 1024), blocks)
        _drop_entries[grid](
            row, col, val, out, rate.contiguous(), key.contiguous(), count.contiguous(), size, BLOCK=1024
        )
    return out
