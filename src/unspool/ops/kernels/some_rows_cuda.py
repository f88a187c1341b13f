"""The matrices of hops at some rows of each block, on an NVIDIA GPU.

``hopped`` holds the rows of all hops, shape (hops, rows, blocks, in); matrices have shape (hops, groups, in, out), shared by blocks in
a row; results and gradients (rows, blocks, out).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unspool.ops.kernels import product_cuda
from unspool.ops.kernels.masks_cuda import in_64
from unspool.ops.kernels.tiles_cuda import TF32X3

#: Rows of a tile.
ROWS = 32


@triton.jit(do_not_specialize=["hops", "rows", "blocks", "groups"])
def _mapped(
    hopped, matrices, out, hops, rows, blocks, groups,
    INSIDE: tl.constexpr, OUTSIDE: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Σₖ Pₖ cₖ for some rows of one block."""
    block = tl.program_id(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    i, j = tl.arange(0, IN), tl.arange(0, OUT)
    group = block // (blocks // groups)
    total = tl.zeros([ROWS, OUT], dtype=tl.float32)
    here, inside = (row < rows)[:, None] & (i < INSIDE)[None, :], (i < INSIDE)[:, None] & (j < OUTSIDE)[None, :]
    for k in range(hops):
        at = (in_64(k, block) * rows + row[:, None]) * blocks + block
        p = tl.load(hopped + at * INSIDE + i[None, :], mask=here, other=0.0)
        own = (in_64(k, block) * groups + group) * INSIDE
        c = tl.load(matrices + (own + i[:, None]) * OUTSIDE + j[None, :], mask=inside, other=0.0)
        total += tl.dot(p, c, input_precision=PRECISION)
    at = row.to(tl.int64)[:, None] * blocks + block
    tl.store(out + at * OUTSIDE + j[None, :], total, mask=(row < rows)[:, None] & (j < OUTSIDE)[None, :])


@triton.jit(do_not_specialize=["rows", "blocks", "groups"])
def _back(
    grad, hopped, matrices, rows_back, dmatrices, rows, blocks, groups,
    INSIDE: tl.constexpr, OUTSIDE: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One hop of one group: dcₖ = Σ Pₖᵀ G over its blocks, and G cₖᵀ."""
    group, hop = tl.program_id(0), tl.program_id(1)
    i, j = tl.arange(0, IN), tl.arange(0, OUT)
    share = blocks // groups
    place = ((hop.to(tl.int64) * groups + group) * INSIDE + i[:, None]) * OUTSIDE + j[None, :]
    inside = (i < INSIDE)[:, None] & (j < OUTSIDE)[None, :]
    c = tl.trans(tl.load(matrices + place, mask=inside, other=0.0))
    total = tl.zeros([IN, OUT], dtype=tl.float32)
    for block in range(group * share, (group + 1) * share):
        for begin in range(0, rows, ROWS):
            row = begin + tl.arange(0, ROWS)
            here = (row < rows)[:, None] & (i < INSIDE)[None, :]
            at = (row.to(tl.int64)[:, None] * blocks + block) * OUTSIDE + j[None, :]
            g = tl.load(grad + at, mask=(row < rows)[:, None] & (j < OUTSIDE)[None, :], other=0.0)
            at = ((hop.to(tl.int64) * rows + row[:, None]) * blocks + block) * INSIDE + i[None, :]
            p = tl.load(hopped + at, mask=here, other=0.0)
            total += tl.dot(tl.trans(p), g, input_precision=PRECISION)
            tl.store(rows_back + at, tl.dot(g, c, input_precision=PRECISION), mask=here)
    tl.store(dmatrices + place, total, mask=inside)


def mapped(hopped: Tensor, matrices: Tensor) -> Tensor:
    """Σₖ Pₖ cₖ."""
    hops, rows, blocks, inside = hopped.shape
    groups, outside = matrices.shape[1], matrices.shape[3]
    out = hopped.new_empty(rows, blocks, outside)
    if out.numel():
        with torch.cuda.device(hopped.device):
            _mapped[(blocks, triton.cdiv(rows, ROWS))](
                hopped, matrices, out, hops, rows, blocks, groups, **product_cuda.shape(inside, outside), ROWS=ROWS,
                PRECISION=TF32X3,
            )  # fmt: skip
    return out


def back(grad: Tensor, hopped: Tensor, matrices: Tensor) -> tuple[Tensor, Tensor]:
    """(G cₖᵀ, Pₖᵀ G) for all hops."""
    hops, rows, blocks, inside = hopped.shape
    rows_back, dmatrices = torch.empty_like(hopped), torch.empty_like(matrices)
    if hopped.numel() == 0 or grad.numel() == 0:
        return rows_back.zero_(), dmatrices.zero_()
    groups = matrices.shape[1]
    with torch.cuda.device(grad.device):
        _back[(groups, hops)](
            grad, hopped, matrices, rows_back, dmatrices, rows, blocks, groups,
            **product_cuda.shape(inside, matrices.shape[3]), ROWS=ROWS, PRECISION=TF32X3, num_warps=8,
        )  # fmt: skip
    return rows_back, dmatrices
