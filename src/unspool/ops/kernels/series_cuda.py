"""Polynomials of the graph on narrow signals of many trials, on an NVIDIA GPU: all hops between two passes over the channels.

X cₖ for all k is one kernel, the hops are Horner's rule or Clenshaw's; the way back keeps Uₖ = pₖ(Mᵀ) G of all k and meets X and the
coefficients once. Up to five channels are multiplied number by number, in tiles whose columns are channels of many trials; wider
ones go through the matrix units, trial by trial, and are padded to a multiple of four where that adds little.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor

from unspool.ops.kernels import cuda as sparse
from unspool.ops.kernels.tiles_cuda import TF32X3, add_pieces, each_of, pieces_of
from unspool.ops.operator import Csr

#: The sparse step that adds up in one order whatever the width, so that a trial has the same bits alone and among others.
step = functools.partial(sparse.step, neighbours=2)
#: The most channels that a signal here has.
WIDEST = 16
#: Measured on an H200, µs a trial of UGDGNN on Cora: four warps 11.5, two 10.8, two and chunks of 32 columns 10.45.
TILES = {"ROWS": 32, "num_warps": 2}
#: Columns of pages that are multiplied at a time.
CHUNK = {"CHUNK": 32}
#: The most channels that are multiplied number by number, and the tile in which they are.
FEW = 5
FLAT = {"ROWS": 4, "COLUMNS": 128, "num_warps": 2}


@triton.jit
def _flat_tile(nodes, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The nodes and columns of a program, which of them there are, and what stands in for the others: reading the last again needs no mask."""
    across = tl.cdiv(width, COLUMNS)
    column = (tl.program_id(0) % across) * COLUMNS + tl.arange(0, COLUMNS)
    node = (tl.program_id(0) // across) * ROWS + tl.arange(0, ROWS)
    inside = (node < nodes)[:, None] & (column < width)[None, :]
    return inside, tl.minimum(node, nodes - 1).to(tl.int64), tl.minimum(column, width - 1)


@triton.jit(do_not_specialize=["nodes", "blocks", "hops"])
def _flat_pages(
    x, coefficients, pages, nodes, blocks, hops, IN: tl.constexpr, OUT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """X cₖ for all k on few channels: columns are the outputs of one block after another, as they lie in memory."""
    width = blocks * OUT
    inside, node, column = _flat_tile(nodes, width, ROWS, COLUMNS)
    block, out = column // OUT, column % OUT
    source = (node[:, None] * blocks + block[None, :]) * IN
    signal = ()
    for i in tl.static_range(IN):
        signal += (tl.load(x + source + i),)
    for k in range(0, hops):
        own = ((block * 0 + k).to(tl.int64) * blocks + block) * (IN * OUT) + out
        total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
        for i in tl.static_range(IN):
            total += signal[i] * tl.load(coefficients + own + i * OUT)[None, :]
        target = ((node * 0 + k) * nodes + node) * width
        tl.store(pages + target[:, None] + column[None, :], total, mask=inside)


@triton.jit(do_not_specialize=["nodes", "blocks", "hops"])
def _flat_gradient(
    sweep, coefficients, out, nodes, blocks, hops, IN: tl.constexpr, OUT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """dX = Σ Uₖ cₖᵀ on few channels."""
    width = blocks * IN
    inside, node, column = _flat_tile(nodes, width, ROWS, COLUMNS)
    block, channel = column // IN, column % IN
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    for k in range(0, hops):
        source = (((node * 0 + k) * nodes + node)[:, None] * blocks + block[None, :]) * OUT
        own = (((block * 0 + k).to(tl.int64) * blocks + block) * IN + channel) * OUT
        for o in tl.static_range(OUT):
            total += tl.load(sweep + source + o) * tl.load(coefficients + own + o)[None, :]
    tl.store(out + node[:, None] * width + column[None, :], total, mask=inside)


@triton.jit(do_not_specialize=["nodes", "blocks", "hops"])
def _pages(
    x, coefficients, pages, nodes, blocks, hops, IN: tl.constexpr, OUT: tl.constexpr, PAD: tl.constexpr, WIDE: tl.constexpr,
    PRECISION: tl.constexpr, ROWS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """X cₖ for all k, CHUNK columns at a time; pages have shape (hops, nodes, blocks, PAD)."""
    block = tl.program_id(0) % blocks  # neighbours write into the same lines of memory
    node, channel = (tl.program_id(0) // blocks) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDE)
    there = (node < nodes)[:, None]
    place = (node.to(tl.int64)[:, None] * blocks + block) * IN + channel[None, :]
    signal = tl.load(x + place, mask=there & (channel < IN)[None, :], other=0.0)
    for begin in range(0, hops * PAD, CHUNK):
        column = begin + tl.arange(0, CHUNK)
        hop, out = column // PAD, column % PAD
        own = (hop.to(tl.int64) * blocks + block) * (IN * OUT) + out
        inside = (channel < IN)[:, None] & ((hop < hops) & (out < OUT))[None, :]
        c = tl.load(coefficients + own[None, :] + channel[:, None] * OUT, mask=inside, other=0.0)
        target = ((hop.to(tl.int64)[None, :] * nodes + node[:, None]) * blocks + block) * PAD + out[None, :]
        tl.store(pages + target, tl.dot(signal, c, input_precision=PRECISION), mask=there & (hop < hops)[None, :])


@triton.jit(do_not_specialize=["nodes", "blocks", "hops"])
def _gradient(
    sweep, coefficients, out, nodes, blocks, hops, IN: tl.constexpr, OUT: tl.constexpr, PAD: tl.constexpr, WIDE: tl.constexpr,
    PRECISION: tl.constexpr, ROWS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """dX = Σ Uₖ cₖᵀ."""
    block = tl.program_id(0) % blocks  # neighbours write into the same lines of memory
    node, channel = (tl.program_id(0) // blocks) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDE)
    there = (node < nodes)[:, None]
    total = tl.zeros([ROWS, WIDE], dtype=tl.float32)
    for begin in range(0, hops * PAD, CHUNK):
        column = begin + tl.arange(0, CHUNK)
        hop, inner = column // PAD, column % PAD
        place = ((hop.to(tl.int64)[None, :] * nodes + node[:, None]) * blocks + block) * PAD + inner[None, :]
        u = tl.load(sweep + place, mask=there & (hop < hops)[None, :], other=0.0)
        own = (hop.to(tl.int64) * blocks + block) * (IN * OUT) + inner
        inside = (channel < IN)[None, :] & ((hop < hops) & (inner < OUT))[:, None]
        c = tl.load(coefficients + own[:, None] + channel[None, :] * OUT, mask=inside, other=0.0)
        total += tl.dot(u, c, input_precision=PRECISION)
    place = (node.to(tl.int64)[:, None] * blocks + block) * IN + channel[None, :]
    tl.store(out + place, total, mask=there & (channel < IN)[None, :])


@triton.jit(do_not_specialize=["nodes", "blocks", "hops", "each"])
def _moments(
    sweep, x, partial, nodes, blocks, hops, each, IN: tl.constexpr, OUT: tl.constexpr, PAD: tl.constexpr, WIDE: tl.constexpr,
    PRECISION: tl.constexpr, ROWS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """⟨X, Uₖ⟩ for CHUNK columns (k, channel) of one block, over a stretch of nodes; partial has shape (pieces, blocks, hops, in, out)."""
    block, piece = tl.program_id(0) % blocks, tl.program_id(0) // blocks
    column, channel = tl.program_id(1) * CHUNK + tl.arange(0, CHUNK), tl.arange(0, WIDE)
    hop, inner = column // PAD, column % PAD
    back = tl.zeros([CHUNK, WIDE], dtype=tl.float32)
    for begin in range(piece * each, tl.minimum((piece + 1) * each, nodes), ROWS):
        node = begin + tl.arange(0, ROWS)
        there = (node < nodes) & (node < (piece + 1) * each)
        place = ((hop.to(tl.int64)[:, None] * nodes + node[None, :]) * blocks + block) * PAD + inner[:, None]
        u = tl.load(sweep + place, mask=there[None, :] & (hop < hops)[:, None], other=0.0)
        place = (node.to(tl.int64)[:, None] * blocks + block) * IN + channel[None, :]
        signal = tl.load(x + place, mask=there[:, None] & (channel < IN)[None, :], other=0.0)
        back += tl.dot(u, signal, input_precision=PRECISION)
    at = (piece.to(tl.int64) * blocks + block) * hops
    at = ((at + hop[:, None]) * IN + channel[None, :]) * OUT + inner[:, None]
    tl.store(partial + at, back, mask=((hop < hops) & (inner < OUT))[:, None] & (channel < IN)[None, :])


@triton.jit(do_not_specialize=["nodes", "blocks", "hops", "each"])
def _numbers(
    sweep, x, coefficients, out, partial, nodes, blocks, hops, each, IN: tl.constexpr, PAD: tl.constexpr, HOPS: tl.constexpr,
    WANTS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The same for one number for each hop: dX = Σ cₖ Uₖ and ⟨X, Uₖ⟩ over a stretch of nodes."""
    block, piece = tl.program_id(0), tl.program_id(1)
    channel, all_hops = tl.arange(0, PAD), tl.arange(0, HOPS)
    found = tl.zeros([HOPS], dtype=tl.float32)
    for begin in range(piece * each, tl.minimum((piece + 1) * each, nodes), ROWS):
        node = begin + tl.arange(0, ROWS)
        inside = ((node < nodes) & (node < (piece + 1) * each))[:, None] & (channel < IN)[None, :]
        row = node.to(tl.int64)[:, None] * blocks + block
        signal = tl.load(x + row * IN + channel[None, :], mask=inside, other=0.0)
        total = tl.zeros([ROWS, PAD], dtype=tl.float32)
        for k in range(0, hops):
            page = (row * 0 + k) * nodes * blocks
            u = tl.load(sweep + (page + row) * IN + channel[None, :], mask=inside, other=0.0)
            if WANTS:
                total += u * tl.load(coefficients + k * blocks + block)
            found += tl.where(all_hops == k, tl.sum(tl.sum(u * signal, axis=1), axis=0), 0.0)
        if WANTS:
            tl.store(out + row * IN + channel[None, :], total, mask=inside)
    at = (piece.to(tl.int64) * blocks + block) * hops + all_hops
    tl.store(partial + at, found, mask=all_hops < hops)


def suits(x: Tensor, hops: Tensor) -> bool:
    """Whether a signal and its coefficients go this way: narrow, with a number or a matrix for each hop."""
    if hops.ndim == 2:
        return x.shape[2] <= WIDEST
    return hops.ndim == 4 and max(hops.shape[2:]) <= WIDEST


def padded(inner: int, outer: int) -> int:
    """Channels of a page: as they are where they are few, else a multiple of four that adds at most a third.

    Example:
        >>> padded(3, 3), padded(7, 7), padded(5, 5), padded(15, 15)
        (3, 8, 5, 16)
    """
    pad = -(-outer // 4) * 4
    return outer if inner <= FEW or 3 * pad > 4 * outer else pad


def _flat(nodes: int, width: int) -> tuple[int]:
    return (triton.cdiv(nodes, FLAT["ROWS"]) * triton.cdiv(width, FLAT["COLUMNS"]),)


def series(csr: Csr, x: Tensor, hops: Tensor, chebyshev: bool) -> Tensor:
    """Σₖ pₖ(M) X cₖ for X (nodes, blocks, in) and matrices (hops, blocks, in, out)."""
    nodes, blocks, inner = x.shape
    count, _, _, outer = hops.shape
    pad = padded(inner, outer)
    pages = x.new_empty(count, nodes, blocks, pad)
    if pages.numel() == 0 or inner == 0:
        return x.new_zeros(nodes, blocks, outer)
    with torch.cuda.device(x.device):
        if inner <= FEW:
            _flat_pages[_flat(nodes, blocks * outer)](
                x.contiguous(), hops, pages, nodes, blocks, count, IN=inner, OUT=outer, **FLAT
            )
        else:
            _pages[(triton.cdiv(nodes, TILES["ROWS"]) * blocks,)](
                x.contiguous(), hops, pages, nodes, blocks, count, IN=inner, OUT=outer, PAD=pad, WIDE=WIDEST, PRECISION=TF32X3, **TILES, **CHUNK
            )  # fmt: skip
    y, lagged = pages[-1], None
    for k in reversed(range(count - 1)):
        # Into the page itself: a row reads its own entries of it before it is written.
        out = pages[k] if k else torch.empty_like(pages[0])
        late = None if lagged is None else lagged.view(nodes, -1)
        scale = 2.0 if chebyshev and k > 0 else 1.0
        step(csr, y.view(nodes, -1), out.view(nodes, -1), scale, pages[k].view(nodes, -1), None, late)
        y, lagged = out, y if chebyshev else None
    return y[..., :outer]


def sweep(csr_t: Csr, g: Tensor, x: Tensor, hops: Tensor, chebyshev: bool, want_dx: bool) -> tuple[Tensor, Tensor]:
    """Both gradients of :func:`series`, for numbers (hops, blocks) or matrices (hops, blocks, in, out)."""
    nodes, blocks, inner = x.shape
    count, x = hops.shape[0], x.contiguous()
    numbers = hops.ndim == 2
    outer = g.shape[2]
    pad = outer if numbers else padded(outer, outer)
    walked = x.new_empty(count, nodes, blocks, pad)
    dx = torch.empty_like(x) if want_dx else x.new_empty(0)
    if walked.numel() == 0 or x.numel() == 0:
        return dx, torch.zeros_like(hops)
    if pad != outer:
        walked[0, ..., outer:].zero_()
    walked[0, ..., :outer].copy_(g)
    for k in range(1, count):
        late = walked[k - 2].view(nodes, -1) if chebyshev and k > 1 else None
        scale = 2.0 if chebyshev and k > 1 else 1.0
        step(csr_t, walked[k - 1].view(nodes, -1), walked[k].view(nodes, -1), scale, None, None, late)
    pieces = pieces_of(nodes)
    each = each_of(nodes, TILES["ROWS"])
    with torch.cuda.device(x.device):
        if numbers:
            partial = x.new_empty(pieces, blocks, count)
            _numbers[(blocks, pieces)](
                walked, x, hops, dx, partial, nodes, blocks, count, each, IN=inner, PAD=triton.next_power_of_2(inner),
                HOPS=triton.next_power_of_2(count), WANTS=want_dx, **TILES,
            )  # fmt: skip
            return dx, add_pieces(partial, blocks).T.contiguous()
        shape = {"IN": inner, "OUT": outer, "PAD": pad, "WIDE": WIDEST, "PRECISION": TF32X3, **TILES, **CHUNK}
        partial = x.new_empty(pieces, blocks, count * inner * outer)
        _moments[(pieces * blocks, triton.cdiv(count * pad, CHUNK["CHUNK"]))](
            walked, x, partial, nodes, blocks, count, each, **shape
        )
        if want_dx and outer <= FEW:
            _flat_gradient[_flat(nodes, blocks * inner)](
                walked, hops, dx, nodes, blocks, count, IN=inner, OUT=outer, **FLAT
            )
        elif want_dx:
            _gradient[(triton.cdiv(nodes, TILES["ROWS"]) * blocks,)](walked, hops, dx, nodes, blocks, count, **shape)
    return dx, add_pieces(partial, blocks).view(blocks, count, inner, outer).transpose(0, 1).contiguous()
