"""The two loops behind every linear network, on real tensors and two or three reused buffers.

Both walk the powers of a square sparse matrix M in one of two bases,

* powers: p₀ = 1, pₖ₊₁ = M pₖ,
* Chebyshev: p₀ = 1, p₁ = M, pₖ₊₁ = 2 M pₖ − pₖ₋₁, stable to any degree when the spectrum lies in [-1, 1].

Signals have shape (nodes, blocks, features): a block is one trial, and all blocks share each sparse product. Hop
coefficients have shape (hops, blocks) for numbers, (hops, blocks, features) for diagonals, or (hops, blocks, in, out)
for matrices.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unspool.ops.kernels import step_for
from unspool.ops.operator import Csr


def product(csr: Csr, x: Tensor) -> Tensor:
    """One sparse product M x for x of shape (columns of M, anything)."""
    work = _widen(x).contiguous()
    out = work.new_empty(csr.crow.numel() - 1, work.shape[1])
    step_for(work)(csr, work, out, 1.0, None, None, None)
    return out.to(x.dtype)


def series(csr: Csr, x: Tensor, hops: Tensor, chebyshev: bool) -> Tensor:
    """Σₖ pₖ(M) X cₖ by Horner's rule (powers) or Clenshaw's (Chebyshev): as many products as the degree."""
    given, x = x.dtype, _widen(x).contiguous()
    step = step_for(x)
    weights = _column_weights(hops, x)
    y, lagged, spare = _weigh(x, hops[-1]), None, None
    for k in reversed(range(hops.shape[0] - 1)):
        out = torch.empty_like(y) if spare is None else spare
        base = x if weights is not None else _weigh(x, hops[k], out=out)
        weight = None if weights is None else weights[k]
        scale = 2.0 if chebyshev and k > 0 else 1.0
        step(csr, _flat(y), _flat(out), scale, _flat(base), weight, None if lagged is None else _flat(lagged))
        y, lagged, spare = (out, y, lagged) if chebyshev else (out, None, y)
    return y.to(given)


def sweep(csr_t: Csr, g: Tensor, x: Tensor, hops: Tensor, chebyshev: bool, want_dx: bool) -> tuple[Tensor, Tensor]:
    """The gradients of :func:`series` in one walk U₀ = G, Uₖ = pₖ(Mᵀ) G: dX = Σ Uₖ cₖᵀ and dcₖ = ⟨X, Uₖ⟩.

    Nothing is stored on the way, because ⟨pₖ(M) X, G⟩ = ⟨X, pₖ(Mᵀ) G⟩. With ``want_dx`` false the first is empty.
    """
    given, start, x = g.dtype, _widen(g).contiguous(), _widen(x).contiguous()
    step = step_for(x)
    weights = _column_weights(hops, x)
    dhops = torch.empty(hops.shape, dtype=torch.promote_types(hops.dtype, x.dtype), device=x.device)
    dx = torch.zeros_like(x) if want_dx else x.new_empty(0)
    u, lagged, spare = start, None, None
    for k in range(hops.shape[0]):
        if k > 0:
            out = torch.empty_like(u) if spare is None or spare is start else spare  # start may be the caller's
            scale = 2.0 if chebyshev and k > 1 else 1.0
            step(csr_t, _flat(u), _flat(out), scale, None, None, None if lagged is None else _flat(lagged))
            u, lagged, spare = (out, u, lagged) if chebyshev else (out, None, u)
        _contract(x, u, dhops[k])
        if want_dx:
            _add_weighed(dx, u, hops[k], None if weights is None else weights[k])
    return dx.to(given), dhops.to(hops.dtype)


def _widen(x: Tensor) -> Tensor:
    # Half precision on the CPU has no sparse product: compute in float32, return what was given.
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) and not x.is_cuda else x


def _flat(x: Tensor) -> Tensor:
    return x.view(x.shape[0], -1)


def _column_weights(hops: Tensor, x: Tensor) -> Tensor | None:
    """Numbers and diagonals as one weight per column, (hops, blocks · features); None for matrices."""
    if hops.ndim == 4:
        return None
    columns = hops if hops.ndim == 3 else hops[:, :, None]
    return columns.expand(-1, -1, x.shape[2]).reshape(hops.shape[0], -1).contiguous()


def _weigh(x: Tensor, c: Tensor, out: Tensor | None = None) -> Tensor:
    """X c for one hop, contiguous."""
    if c.ndim == 1:
        return (x * c[:, None]).to(x.dtype)
    if c.ndim == 2:
        return (x * c).to(x.dtype)
    c = c.to(x.dtype)
    if x.shape[1] == 1:
        flat = None if out is None else out.view(x.shape[0], -1)
        return torch.mm(x[:, 0], c[0], out=flat).view(x.shape[0], 1, -1)
    result = torch.bmm(x.transpose(0, 1), c).transpose(0, 1)
    return result.contiguous() if out is None else out.copy_(result)


def _add_weighed(total: Tensor, u: Tensor, c: Tensor, weight: Tensor | None) -> None:
    """total += u cᵀ."""
    if weight is not None:
        _flat(total).addcmul_(_flat(u), weight.to(u.dtype))
    elif u.shape[1] == 1:
        _flat(total).addmm_(u[:, 0], c[0].to(u.dtype).T)
    else:
        total += torch.bmm(u.transpose(0, 1), c.to(u.dtype).transpose(1, 2)).transpose(0, 1)


def _contract(x: Tensor, u: Tensor, out: Tensor) -> None:
    """⟨X, U⟩ in the shape of one hop coefficient, accumulated in at least float32."""
    if out.ndim == 1 and x.shape[1] == 1 and x.dtype == out.dtype and x.numel() < 2**31:
        out[0] = torch.dot(x.view(-1), u.view(-1))  # six times faster than multiplying and adding up
    elif out.ndim == 1:
        out.copy_((x * u).sum((0, 2), dtype=out.dtype))
    elif out.ndim == 2:
        out.copy_((x * u).sum(0, dtype=out.dtype))
    elif x.shape[1] == 1:
        out.copy_((x[:, 0].T @ u[:, 0])[None])
    else:
        out.copy_(torch.bmm(x.permute(1, 2, 0), u.transpose(0, 1)))
