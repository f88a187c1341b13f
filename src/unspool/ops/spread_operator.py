"""Sparse matrices whose products several processes compute together, each with some rows of the signals."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from unspool.errors import IncompatibleError
from unspool.ops.operator import Csr, Operator
from unspool.ops.ranks import Ranks


class SpreadOperator(Operator):
    """A square sparse matrix M of which this process sees some rows; signals are these rows, too.

    Products, polynomials, and all hops of a signal are computed by all processes at once. Whoever asks for the entries is refused, so that
    nothing is computed from a part as if it were the whole. Derivatives are first ones; those of coefficients that all processes share are parts,
    whose sum over the processes is the derivative.

    Args:
        ranks: the processes.
        rows: how many rows each of them has.
        dtype, device: of the entries.
    """

    def __init__(self, ranks: Ranks, rows: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
        own = rows[ranks.rank]
        vars(self).update(ranks=ranks, owned=rows, kind=dtype, place=device, shape=(own, own))

    ranks: Ranks
    owned: tuple[int, ...]
    kind: torch.dtype
    place: torch.device

    @property
    def forward(self) -> Csr:  # type: ignore[override]
        """Refused."""
        self._refuse()

    @property
    def transpose(self) -> Csr:  # type: ignore[override]
        """Refused."""
        self._refuse()

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the entries."""
        return self.kind

    @property
    def device(self) -> torch.device:
        """Where signals live."""
        return self.place

    def expected_rows(self) -> str:
        """What a signal that does not fit is told."""
        return (
            f"this process has {self.shape[0]} of the graph's {sum(self.owned)} nodes: expected (..., own nodes, features), which graph.take(x) "
            "cuts out"
        )

    def _refuse(self) -> NoReturn:
        raise IncompatibleError(
            "this looks at the entries of A, which different processes hold where a graph is spread; compute it on the graph before it is spread"
        )

    # -- what different cuts do in different ways, on signals of shape (own rows, columns) --------------------------------

    @abstractmethod
    def product(self, x: Tensor, turned: bool) -> Tensor:
        """M X, or Mᵀ X."""

    @abstractmethod
    def series(self, x: Tensor, hops: Tensor, chebyshev: bool, turned: bool) -> tuple[Tensor, Tensor]:
        """Σₖ pₖ(M) X cₖ for numbers and diagonals, and what :meth:`sweep` wants to see of X."""

    @abstractmethod
    def sweep(self, g: Tensor, seen: Tensor, hops: Tensor, chebyshev: bool, want_dx: bool) -> tuple[Tensor, Tensor]:
        """Both gradients of :meth:`series`."""

    @abstractmethod
    def walk(self, x: Tensor, depth: int, chebyshev: bool, turned: bool) -> Tensor:
        """pₖ(M) X for all k, shape (own rows, hops, columns)."""

    @abstractmethod
    def gather(self, pages: Tensor, chebyshev: bool, turned: bool) -> Tensor:
        """Σₖ pₖ(M) Yₖ for such pages."""


def spread_product(operator: SpreadOperator, x: Tensor) -> Tensor:
    """M X for signals of shape (rows, columns)."""
    _check(x)
    return _Product.apply(operator, x, False)  # type: ignore[no-any-return]


def spread_series(operator: SpreadOperator, x: Tensor, hops: Tensor, chebyshev: bool) -> Tensor:
    """Σₖ pₖ(M) X cₖ; matrices are laid on X at home, and the hops bring their products in."""
    _check(x)
    if x.ndim != 2:
        raise IncompatibleError(
            "on a spread graph a polynomial takes one signal (own nodes, features); take one at a time"
        )
    if hops.ndim < 3:
        return _Series.apply(operator, x, hops, chebyshev)  # type: ignore[no-any-return]
    return spread_gather(operator, torch.einsum("ni,kio->nko", x, hops.to(x.dtype)), chebyshev)


def spread_powers(operator: SpreadOperator, x: Tensor, depth: int) -> Tensor:
    """X, M X, ..., of shape (hops, rows, columns)."""
    _check(x)
    return _Walk.apply(operator, x, depth, False, False).movedim(1, 0)  # type: ignore[union-attr]


def spread_gather(operator: SpreadOperator, pages: Tensor, chebyshev: bool) -> Tensor:
    """Σₖ pₖ(M) Yₖ for pages of shape (rows, hops, columns)."""
    _check(pages)
    return _Gather.apply(operator, pages, chebyshev, False)  # type: ignore[no-any-return]


def _check(x: Tensor) -> None:
    if x.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"signals on a spread graph are float32 or float64, not {str(x.dtype).removeprefix('torch.')}")
    if torch.compiler.is_compiling():
        raise IncompatibleError("a spread graph cannot be looked into by torch.compile; run the network as it is")


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, operator: SpreadOperator, x: Tensor, turned: bool) -> Any:
        ctx.operator, ctx.turned = operator, turned
        return operator.product(x, turned)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, _Product.apply(ctx.operator, grads[0], not ctx.turned), None


class _Series(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, operator: SpreadOperator, x: Tensor, hops: Tensor, chebyshev: bool) -> Any:
        out, seen = operator.series(x, hops, chebyshev, False)
        ctx.operator, ctx.chebyshev = operator, chebyshev
        ctx.save_for_backward(seen, hops)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        seen, hops = ctx.saved_tensors
        want_dx, want_dhops = ctx.needs_input_grad[1:3]
        if not want_dhops:  # as one process does, bit for bit
            return None, ctx.operator.series(grads[0], hops, ctx.chebyshev, True)[0], None, None
        dx, dhops = ctx.operator.sweep(grads[0], seen, hops, ctx.chebyshev, want_dx)
        return None, dx if want_dx else None, dhops, None


class _Walk(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, operator: SpreadOperator, x: Tensor, depth: int, chebyshev: bool, turned: bool) -> Any:
        ctx.how = operator, chebyshev, turned
        return operator.walk(x, depth, chebyshev, turned)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        operator, chebyshev, turned = ctx.how
        return None, _Gather.apply(operator, grads[0], chebyshev, not turned), None, None, None


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, operator: SpreadOperator, pages: Tensor, chebyshev: bool, turned: bool) -> Any:
        ctx.how = operator, pages.shape[1] - 1, chebyshev, turned
        return operator.gather(pages, chebyshev, turned)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        operator, depth, chebyshev, turned = ctx.how
        return None, _Walk.apply(operator, grads[0], depth, chebyshev, not turned), None, None
