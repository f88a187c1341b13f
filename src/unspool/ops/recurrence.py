"""The two loops behind every linear network, on real tensors and two or three reused buffers.

Both walk the powers of a square sparse matrix M in one of two bases,

* powers: p₀ = 1, pₖ₊₁ = M pₖ,
* Chebyshev: p₀ = 1, p₁ = M, pₖ₊₁ = 2 M pₖ − pₖ₋₁, stable to any degree when the spectrum lies in [-1, 1].

Signals have shape (nodes, blocks, features): a block is one trial, and all blocks share each sparse product. Hop
coefficients have shape (hops, blocks) for numbers, (hops, blocks, features) for diagonals, or (hops, blocks, in, out)
for matrices.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from unspool.ops import column_pieces, matrix_hops
from unspool.ops.column_pieces import blocks, cut, cut_hop, cut_signal
from unspool.ops.kernels import HasStep, Step, fused, step_for
from unspool.ops.operator import Csr
from unspool.ops.padded_matmul import round_width

P = ParamSpec("P")
R = TypeVar("R")


def _without_autocast(loop: Callable[P, R]) -> Callable[P, R]:
    """Autocast would change the dtype of a product behind the back of the buffer it is written to."""

    @functools.wraps(loop)
    def run(*args: P.args, **named: P.kwargs) -> R:
        if not (torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")):
            return loop(*args, **named)
        with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            return loop(*args, **named)

    return run


def product(csr: Csr, x: Tensor, out: Tensor | None = None) -> Tensor:
    """One sparse product M x for x of shape (columns of M, anything), into ``out`` where it is given."""
    work = _widen(x).contiguous()
    room = work.new_empty(csr.crow.numel() - 1, work.shape[1]) if out is None or out.dtype != work.dtype else out
    step_for(work)(csr, work, room, 1.0, None, None, None)
    return room.to(x.dtype) if out is None or out is room else out.copy_(room)


@_without_autocast
def series(csr: Csr | HasStep, x: Tensor, hops: Tensor, chebyshev: bool) -> Tensor:
    """Σₖ pₖ(M) X cₖ by Horner's rule (powers) or Clenshaw's (Chebyshev): as many products as the degree."""
    given, x, hops = x.dtype, _widen(x), hops.contiguous()
    narrow = _narrow(x, hops) if isinstance(csr, Csr) else None
    if narrow is not None and hops.ndim == 4:
        return narrow.series(csr, x, hops, chebyshev)
    step: Step = step_for(x, csr) if narrow is None else narrow.step
    if isinstance(csr, Csr) and _side_by_side(x, hops):
        return matrix_hops.series(csr, x, hops, chebyshev, column_pieces.cache_bytes() // 16).to(given)
    if hops.ndim < 4:
        x, hops, shape = _as_columns(x, hops)
    else:
        shape = torch.Size([x.shape[0], x.shape[1], hops.shape[3]])
    matrices = hops.ndim == 4 and shape[1] > 1
    pieces = _pieces(csr, x, shape[1] * shape[2], whole_blocks=matrices, block=shape[2])
    if len(pieces) == 1:
        return _series_piece(csr, x.contiguous(), hops, chebyshev, step).view(shape).to(given)
    out = x.new_empty(shape[0], shape[1] * shape[2])
    for piece in pieces:
        part = _series_piece(csr, *cut(x, hops, piece), chebyshev, step)
        out[:, piece] = _flat(part)
    return out.view(shape).to(given)


def _series_piece(csr: Csr | HasStep, x: Tensor, hops: Tensor, chebyshev: bool, step: Step) -> Tensor:
    diagonal = hops.ndim == 3
    columns = hops.shape[-1]
    hops, room = _rounded(x, hops)
    y, lagged, spare = _weigh(x, hops[-1])[..., :columns].contiguous(), None, None
    for k in reversed(range(hops.shape[0] - 1)):
        out = torch.empty_like(y) if spare is None else spare
        base = x if diagonal else _weigh(x, hops[k], out=out if room is None else room)[..., :columns]
        weight = hops[k].view(-1) if diagonal else None
        scale = 2.0 if chebyshev and k > 0 else 1.0
        step(csr, _flat(y), _flat(out), scale, _flat(base), weight, None if lagged is None else _flat(lagged))
        y, lagged, spare = (out, y, lagged) if chebyshev else (out, None, y)
    return y


@_without_autocast
def sweep(
    csr_t: Csr | HasStep, g: Tensor, x: Tensor, hops: Tensor, chebyshev: bool, want_dx: bool
) -> tuple[Tensor, Tensor]:
    """The gradients of :func:`series` in one walk U₀ = G, Uₖ = pₖ(Mᵀ) G: dX = Σ Uₖ cₖᵀ and dcₖ = ⟨X, Uₖ⟩.

    Nothing is stored on the way, because ⟨pₖ(M) X, G⟩ = ⟨X, pₖ(Mᵀ) G⟩. With ``want_dx`` false the first is empty.
    """
    given, kind, shape = g.dtype, hops.shape, x.shape
    g, x, c = _widen(g), _widen(x), hops.contiguous()
    if isinstance(csr_t, Csr) and (narrow := _narrow(x, c)) is not None:
        return narrow.sweep(csr_t, g, x, c, chebyshev, want_dx)
    if isinstance(csr_t, Csr) and _side_by_side(x, hops):
        dx, dhops = matrix_hops.sweep(csr_t, g, x, c, chebyshev, want_dx, column_pieces.cache_bytes() // 16)
        return dx.to(given), dhops
    wide = torch.promote_types(hops.dtype, x.dtype)
    columns = g.shape[1] * g.shape[2]
    if hops.ndim < 4:
        g, (x, c, _) = g.reshape(g.shape[0], 1, columns), _as_columns(x, c)
    pieces = _pieces(csr_t, g, columns, whole_blocks=c.ndim == 4 and g.shape[1] > 1, block=g.shape[2])
    dx = torch.zeros_like(x, memory_format=torch.contiguous_format) if want_dx else None
    dhops = torch.zeros(c.shape, dtype=wide, device=x.device)
    for piece in pieces:
        _sweep_piece(csr_t, g, x, c, chebyshev, piece, len(pieces) == 1, dx, dhops)
    if hops.ndim == 2:  # one number per block: add up its columns
        dhops = dhops.view(kind[0], kind[1], shape[2]).sum(-1)
    gradient = x.new_empty(0) if dx is None else dx.view(shape)
    return gradient.to(given), dhops.view(kind).to(hops.dtype)


def _sweep_piece(
    csr_t: Csr | HasStep,
    g: Tensor,
    x: Tensor,
    hops: Tensor,
    chebyshev: bool,
    piece: slice,
    only: bool,
    dx: Tensor | None,
    dhops: Tensor,
) -> None:
    """Walk the powers for some columns of G, adding into ``dx`` and writing into ``dhops``."""
    step = step_for(x, csr_t)
    start = g.contiguous() if only else cut_signal(g, piece)
    xp, c = (x.contiguous(), hops) if only else cut(x, hops, piece)
    u, lagged, spare = start, None, None
    part = None if dx is None else (dx if only or dx.shape == xp.shape else torch.zeros_like(xp))
    total, back = part, c
    if part is not None and (wide := _round_back(xp, c)) is not None:
        total, back = xp.new_zeros(xp.shape[0], 1, wide.shape[2]), wide
    for k in range(hops.shape[0]):
        if k > 0:
            out = torch.empty_like(u) if spare is None or spare is start else spare  # start may be the caller's
            scale = 2.0 if chebyshev and k > 1 else 1.0
            step(csr_t, _flat(u), _flat(out), scale, None, None, None if lagged is None else _flat(lagged))
            u, lagged, spare = (out, u, lagged) if chebyshev else (out, None, u)
        _contract(xp, u, cut_hop(dhops[k], piece))
        if total is not None:
            _add_weighed(total, u, back[k])
    if part is not None and total is not None and total is not part:
        part += total[..., : part.shape[2]]
    if dx is not None and part is not dx:
        assert part is not None
        if x.shape[1] == 1:
            dx[:, :, piece] = part
        else:
            dx[:, blocks(piece, g.shape[2])] = part


def _pieces(csr: Csr | HasStep, x: Tensor, columns: int, whole_blocks: bool, block: int) -> list[slice]:
    # Trap: processes that hold different numbers of rows would cut differently, and wait for one another for ever.
    if not isinstance(csr, Csr):
        return [slice(0, columns)]
    return column_pieces.cache_pieces(x, columns, whole_blocks, block)


def _narrow(x: Tensor, hops: Tensor) -> ModuleType | None:
    """The kernels for narrow signals of many trials, where they fit."""
    if not fused(x, hops):
        return None
    from unspool.ops.kernels import series_cuda

    return series_cuda if series_cuda.suits(x, hops) else None


def _side_by_side(x: Tensor, hops: Tensor) -> bool:
    """Whether channels are mixed for all hops at once: matrices on narrow signals whose hops fit into a part of the cache."""
    plain = hops.ndim == 4 and x.device.type == "cpu" and x.dtype == hops.dtype
    return (
        plain
        and min(hops.shape) > 0
        and hops.shape[0] > 2
        and matrix_hops.memory_needed(x, hops) <= column_pieces.cache_bytes() // 16
    )


def _as_columns(x: Tensor, hops: Tensor) -> tuple[Tensor, Tensor, torch.Size]:
    """Numbers and diagonals as one diagonal over all columns of one block."""
    wide = hops[:, :, None].expand(-1, -1, x.shape[2]) if hops.ndim == 2 else hops
    # Trap: reshape of an expanded number stays expanded, and kernels read weights by address.
    columns = x.shape[1] * x.shape[2]
    return x.reshape(x.shape[0], 1, columns), wide.reshape(hops.shape[0], 1, columns).contiguous(), x.shape


def _widen(x: Tensor) -> Tensor:
    # Half precision on the CPU has no sparse product: compute in float32, return what was given.
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) and not x.is_cuda else x


def _flat(x: Tensor) -> Tensor:
    return x.view(x.shape[0], x.shape[1] * x.shape[2])


def _weigh(x: Tensor, c: Tensor, out: Tensor | None = None) -> Tensor:
    """X c for one hop, contiguous; c is a diagonal (blocks, features) or matrices (blocks, in, out)."""
    if c.ndim == 2:
        return (x * c).to(x.dtype)
    c = c.to(x.dtype)
    if x.shape[1] == 1:
        flat = None if out is None else out.view(x.shape[0], -1)
        return torch.mm(x[:, 0], c[0], out=flat).view(x.shape[0], 1, -1)
    result = torch.bmm(x.transpose(0, 1), c).transpose(0, 1)
    return result.contiguous() if out is None else out.copy_(result)


def _rounded(x: Tensor, hops: Tensor) -> tuple[Tensor, Tensor | None]:
    """Matrices with zero columns added where their products come faster so, and room for such a product."""
    if hops.ndim != 4 or x.shape[1] != 1 or (wide := round_width(hops.shape[3], x)) == hops.shape[3]:
        return hops, None
    return functional.pad(hops, (0, wide - hops.shape[3])), x.new_empty(x.shape[0], 1, wide)


def _round_back(x: Tensor, hops: Tensor) -> Tensor | None:
    """The same for products with the transposes: zero rows of the matrices."""
    if hops.ndim != 4 or x.shape[1] != 1 or (wide := round_width(hops.shape[2], x)) == hops.shape[2]:
        return None
    return functional.pad(hops, (0, 0, 0, wide - hops.shape[2]))


def _add_weighed(total: Tensor, u: Tensor, c: Tensor) -> None:
    """total += u cᵀ."""
    if c.ndim == 2:
        total.addcmul_(u, c.to(u.dtype))
    elif u.shape[1] == 1:
        _flat(total).addmm_(u[:, 0], c[0].to(u.dtype).T)
    else:
        total += torch.bmm(u.transpose(0, 1), c.to(u.dtype).transpose(1, 2)).transpose(0, 1)


def _contract(x: Tensor, u: Tensor, out: Tensor) -> None:
    """⟨X, U⟩ in the shape of one hop coefficient, accumulated in at least float32."""
    if out.ndim == 2:
        out.copy_(torch.linalg.vecdot(x, u, dim=0) if x.dtype == out.dtype else (x * u).sum(0, dtype=out.dtype))
    elif x.shape[1] == 1:
        out.copy_((x[:, 0].T @ u[:, 0])[None])
    else:
        out.copy_(torch.bmm(x.permute(1, 2, 0), u.transpose(0, 1)))
