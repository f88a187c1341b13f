"""The sparse step on the CPU: torch's compressed-row product (MKL where torch has it), into buffers we own."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator

import torch
from torch import Tensor

from unspool.ops.operator import Csr, row_of_entry

#: How many entries a product takes at once where row starts are wider than columns.
MOST = 2**31 - 1


@functools.cache
def _hear_the_beta_warning_once() -> None:
    # torch announces its CSR layout as beta, once per process; our users did not ask for that layout.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1))


def step(
    csr: Csr, y: Tensor, out: Tensor, scale: float, base: Tensor | None, weight: Tensor | None, lagged: Tensor | None
) -> None:
    """Compute ``out = scale * M y + weight * base - lagged``; ``out`` may be the memory of base, never of lagged or y."""
    _add_base(out, base, weight, lagged)
    nothing = base is None and lagged is None
    if csr.val.numel() == 0 or y.shape[1] == 0:
        if nothing:
            out.zero_()
        return
    if y.device.type != "cpu":  # MPS and others have no CSR product
        _gather(csr, y, out.zero_() if nothing else out, scale)
        return
    _hear_the_beta_warning_once()
    if nothing and csr.crow.dtype != csr.col.dtype:
        out.zero_()  # for rows between the pieces
        nothing = False
    for first, last, part in _pieces(csr):
        size = (last - first, y.shape[0])
        matrix = torch.sparse_csr_tensor(part.crow, part.col, part.val, size, check_invariants=False)
        out[first:last].addmm_(matrix, y, beta=0.0 if nothing else 1.0, alpha=scale)


def blend(
    csr: Csr,
    y: Tensor,
    out: Tensor,
    hop: Tensor | None,
    keep: Tensor | None,
    give: Tensor | None,
    x: Tensor | None,
    each: int,
) -> None:
    """Compute ``out = hop * M y + keep * y + give * x`` in one buffer, with a number for ``each`` columns, or one for all."""
    terms = [(n, s) for n, s in ((keep, y), (give, x)) if n is not None and s is not None]
    if hop is not None and hop.numel() > 1:  # columns of a product have no numbers of their own
        step(csr, y, out, 1.0, None, None, None)
        out.mul_(hop.repeat_interleave(each))
    elif not terms:
        step(csr, y, out, 1.0 if hop is None else float(hop), None, None, None)
    else:
        number, signal = terms.pop()
        torch.mul(signal, number.repeat_interleave(each) if number.numel() > 1 else number, out=out)
        while terms:
            _add(out, *terms.pop(), each)
        step(csr, y, out, 1.0 if hop is None else float(hop), out, None, None)
        return
    for number, signal in terms:
        _add(out, number, signal, each)


def _add(out: Tensor, number: Tensor, signal: Tensor, each: int) -> None:
    if number.numel() > 1:
        out.addcmul_(signal, number.repeat_interleave(each))
    else:
        out.add_(signal, alpha=float(number))


def dot(a: Tensor, b: Tensor, groups: int) -> Tensor:
    """Σ a b over the nodes and channels of each group of blocks."""
    return torch.linalg.vecdot(a, b).sum(0).view(groups, -1).sum(1)


def _pieces(csr: Csr) -> Iterator[tuple[int, int, Csr]]:
    """Rows of a matrix with more entries than its columns' type counts, in pieces that have no more; else all at once."""
    rows = csr.crow.numel() - 1
    if csr.crow.dtype == csr.col.dtype:
        yield 0, rows, csr
        return
    first = 0
    while first < rows:
        start = int(csr.crow[first])
        last = int(torch.searchsorted(csr.crow, start + MOST, right=True)) - 1
        last = min(max(last, first + 1), rows)
        stop = int(csr.crow[last])
        if stop > start:
            crow = (csr.crow[first : last + 1] - start).to(csr.col.dtype)
            yield first, last, Csr(crow, csr.col[start:stop], csr.val[start:stop], csr.hubs)
        first = last


def _add_base(out: Tensor, base: Tensor | None, weight: Tensor | None, lagged: Tensor | None) -> None:
    """Write ``weight * base - lagged`` into ``out``, where base may already lie."""
    if base is not None and weight is not None:
        torch.mul(base, weight, out=out)
    elif base is not None and base.data_ptr() != out.data_ptr():
        out.copy_(base)
    if lagged is not None and base is not None:
        out.sub_(lagged)
    elif lagged is not None:
        torch.neg(lagged, out=out)


def _gather(csr: Csr, y: Tensor, out: Tensor, scale: float) -> None:
    out.index_add_(0, row_of_entry(csr.crow), csr.val[:, None] * y[csr.col.long()], alpha=scale)
