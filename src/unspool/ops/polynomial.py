r"""The one primitive: a polynomial of the graph applied to a signal.

Every linear network of this package reaches the graph through :func:`propagate`. Its derivatives never leave the
family {series, sweep, moments}:

* series(c) X = Σ pₖ(A) X cₖ has the gradient sweep(G, X, c) = (Σ pₖ(Aᵀ) G cₖᵀ, ⟨X, pₖ(Aᵀ) G⟩);
* sweep and its second half, the moments, are linear in each argument, and their gradients are again series and
  moments of A and Aᵀ,

so derivatives of any order cost as many sparse products as the degree and keep nothing but their inputs.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from unspool.ops import recurrence
from unspool.ops.autograd import known_signature
from unspool.ops.blocks import fold_signal, unfold_signal
from unspool.ops.operator import Csr, HasOperator, Operator
from unspool.ops.spmm import check_signal, refuse_stacked_graph
from unspool.ops.spread_operator import SpreadOperator, spread_series


class Basis(Enum):
    """Which polynomials multiply the hop coefficients.

    ``POWERS`` is what the paper writes, Σ cₖ Aᵏ. ``CHEBYSHEV`` is Σ cₖ Tₖ(A): the same functions with coefficients that
    stay small at any depth, which momentum methods need (their power coefficients grow like (1 + √2)ᴷ and cancel).
    """

    POWERS = "powers"
    CHEBYSHEV = "chebyshev"


# -- raw ops: tensors only, trials folded into blocks ---------------------------------------------------------------

# Trap: torch.library.custom_op imports torch._dynamo at its first call (seconds); ops that eager mode uses are defined
# through Library instead.


_LIBRARY = torch.library.Library("unspool", "FRAGMENT")
_LIBRARY.define(
    "series_raw(Tensor crow, Tensor col, Tensor val, Tensor hubs, Tensor x, Tensor hops, bool chebyshev) -> Tensor"
)
_LIBRARY.define(
    "sweep_raw(Tensor crow, Tensor col, Tensor val, Tensor hubs, Tensor g, Tensor x, Tensor hops, bool chebyshev, bool want_dx)"
    " -> (Tensor, Tensor)"
)


@torch.library.impl(_LIBRARY, "series_raw", "CompositeExplicitAutograd")
def _series_now(
    crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, x: Tensor, hops: Tensor, chebyshev: bool
) -> Tensor:
    return recurrence.series(Csr(crow, col, val, hubs), x, hops, chebyshev)


@torch.library.impl(_LIBRARY, "sweep_raw", "CompositeExplicitAutograd")
def _sweep_now(
    crow: Tensor,
    col: Tensor,
    val: Tensor,
    hubs: Tensor,
    g: Tensor,
    x: Tensor,
    hops: Tensor,
    chebyshev: bool,
    want_dx: bool,
) -> tuple[Tensor, Tensor]:
    return recurrence.sweep(Csr(crow, col, val, hubs), g, x, hops, chebyshev, want_dx)


_series: Any = torch.ops.unspool.series_raw.default
_sweep: Any = torch.ops.unspool.sweep_raw.default


def _like_series(x: Tensor, hops: Tensor) -> Tensor:
    return x.new_empty(x.shape[0], x.shape[1], hops.shape[3] if hops.ndim == 4 else x.shape[2])


def _series_fake(
    crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, x: Tensor, hops: Tensor, chebyshev: bool
) -> Tensor:
    return _like_series(x, hops)


def _sweep_fake(
    crow: Tensor,
    col: Tensor,
    val: Tensor,
    hubs: Tensor,
    g: Tensor,
    x: Tensor,
    hops: Tensor,
    chebyshev: bool,
    want_dx: bool,
) -> tuple[Tensor, Tensor]:
    dx = g.new_empty(x.shape) if want_dx else g.new_empty(0)
    return dx, hops.new_empty(hops.shape)


def _series_trials(op: Any, graph_args: int) -> Any:
    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
        refuse_stacked_graph(in_dims[:graph_args])
        graph, (x, hops, chebyshev) = args[:graph_args], args[graph_args:]
        x = fold_signal(x, in_dims[graph_args], info.batch_size)
        hops = fold_signal(hops, in_dims[graph_args + 1], info.batch_size)
        return unfold_signal(op(*graph, x, hops, chebyshev), info.batch_size), 1

    return rule


def _sweep_trials(op: Any, graph_args: int) -> Any:
    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        refuse_stacked_graph(in_dims[:graph_args])
        places = range(graph_args, graph_args + 3)
        g, x, hops = (fold_signal(args[i], in_dims[i], info.batch_size) for i in places)
        found = op(*args[:graph_args], g, x, hops, *args[graph_args + 3 :])
        if isinstance(found, Tensor):
            return unfold_signal(found, info.batch_size), 1
        dx, dhops = found
        if dx.ndim == 1:  # nobody wanted it
            return (dx, unfold_signal(dhops, info.batch_size)), (None, 1)
        return (unfold_signal(dx, info.batch_size), unfold_signal(dhops, info.batch_size)), (1, 1)

    return rule


torch.library.register_fake("unspool::series_raw", _series_fake)
torch.library.register_fake("unspool::sweep_raw", _sweep_fake)
torch.library.register_vmap("unspool::series_raw", _series_trials(_series, 4))
torch.library.register_vmap("unspool::sweep_raw", _sweep_trials(_sweep, 4))


# -- eager mode: functions closed under differentiation -------------------------------------------------------------

# Trap: a backward that calls the raw op passes gradgradcheck and breaks under nested torch.func.grad;
# every backward below calls one of these three classes. No jvp is defined, so forward mode raises instead of lying.
# Trap: generate_vmap_rule takes a millisecond per call (it maps forward, setup and backward one by one, through trees of
# arguments); a rule that folds trials into blocks and calls the class again takes a tenth, and nothing in the backward pass.


def _flip(hops: Tensor) -> Tensor:
    return hops.transpose(-1, -2) if hops.ndim == 4 else hops


@known_signature
class _Series(torch.autograd.Function):
    """Σ pₖ(A) X cₖ."""

    @staticmethod
    def forward(
        crow: Tensor,
        col: Tensor,
        val: Tensor,
        hubs: Tensor,
        crow_t: Tensor,
        col_t: Tensor,
        val_t: Tensor,
        hubs_t: Tensor,
        x: Tensor,
        hops: Tensor,
        chebyshev: bool,
    ) -> Any:
        return _series(crow, col, val, hubs, x, hops, chebyshev)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:10])
        ctx.chebyshev = inputs[10]

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return _series_trials(_Series.apply, 8)(info, in_dims, *args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,) = grads
        *graph, x, hops = ctx.saved_tensors
        a, b = graph[:4], graph[4:]
        dx = dhops = None
        if ctx.needs_input_grad[8] and ctx.needs_input_grad[9]:
            dx, dhops = _Sweep.apply(*a, *b, g, x, hops, ctx.chebyshev)
        elif ctx.needs_input_grad[8]:
            dx = _Series.apply(*b, *a, g, _flip(hops), ctx.chebyshev)
        elif ctx.needs_input_grad[9]:
            dhops = _Moments.apply(*a, *b, g, x, hops, ctx.chebyshev)
        return (None,) * 8 + (dx, dhops, None)


@known_signature
class _Sweep(torch.autograd.Function):
    """(Σ pₖ(Aᵀ) G cₖᵀ, ⟨X, pₖ(Aᵀ) G⟩), linear in each of G, X and c."""

    @staticmethod
    def forward(
        crow: Tensor,
        col: Tensor,
        val: Tensor,
        hubs: Tensor,
        crow_t: Tensor,
        col_t: Tensor,
        val_t: Tensor,
        hubs_t: Tensor,
        g: Tensor,
        x: Tensor,
        hops: Tensor,
        chebyshev: bool,
    ) -> Any:
        return _sweep(crow_t, col_t, val_t, hubs_t, g, x, hops, chebyshev, True)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:11])
        ctx.chebyshev = inputs[11]

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return _sweep_trials(_Sweep.apply, 8)(info, in_dims, *args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        v, w = grads  # cotangents of the two outputs
        *graph, g, x, hops = ctx.saved_tensors
        a, b = graph[:4], graph[4:]
        # As the gradient of ⟨v, Σ pₖ(Aᵀ) G cₖᵀ⟩ + Σ ⟨wₖ, ⟨X, pₖ(Aᵀ) G⟩⟩.
        dg = _Series.apply(*a, *b, v, hops, ctx.chebyshev) + _Series.apply(*a, *b, x, w, ctx.chebyshev)
        dx = _Series.apply(*b, *a, g, _flip(w), ctx.chebyshev)
        dhops = _Moments.apply(*a, *b, g, v, hops, ctx.chebyshev)
        return (None,) * 8 + (dg, dx, dhops, None)


@known_signature
class _Moments(torch.autograd.Function):
    """⟨X, pₖ(Aᵀ) G⟩ alone; the coefficients only lend their shape."""

    @staticmethod
    def forward(
        crow: Tensor,
        col: Tensor,
        val: Tensor,
        hubs: Tensor,
        crow_t: Tensor,
        col_t: Tensor,
        val_t: Tensor,
        hubs_t: Tensor,
        g: Tensor,
        x: Tensor,
        hops: Tensor,
        chebyshev: bool,
    ) -> Any:
        return _sweep(crow_t, col_t, val_t, hubs_t, g, x, hops, chebyshev, False)[1]

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:10])
        ctx.chebyshev = inputs[11]

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return _sweep_trials(_Moments.apply, 8)(info, in_dims, *args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (w,) = grads
        *graph, g, x = ctx.saved_tensors
        a, b = graph[:4], graph[4:]
        dg = _Series.apply(*a, *b, x, w, ctx.chebyshev)
        dx = _Series.apply(*b, *a, g, _flip(w), ctx.chebyshev)
        return (None,) * 8 + (dg, dx, None, None)


# -- under torch.compile: an op with registered autograd ------------------------------------------------------------


@torch.library.custom_op("unspool::propagate", mutates_args=())
def _compiled(
    crow: Tensor,
    col: Tensor,
    val: Tensor,
    hubs: Tensor,
    crow_t: Tensor,
    col_t: Tensor,
    val_t: Tensor,
    hubs_t: Tensor,
    x: Tensor,
    hops: Tensor,
    chebyshev: bool,
) -> Tensor:
    return recurrence.series(Csr(crow, col, val, hubs), x, hops, chebyshev).contiguous()  # as its shape-only twin says


@_compiled.register_fake
def _(
    crow: Tensor,
    col: Tensor,
    val: Tensor,
    hubs: Tensor,
    crow_t: Tensor,
    col_t: Tensor,
    val_t: Tensor,
    hubs_t: Tensor,
    x: Tensor,
    hops: Tensor,
    chebyshev: bool,
) -> Tensor:
    return _like_series(x, hops)


def _compiled_backward(ctx: Any, g: Tensor) -> Any:
    *graph, x, hops = ctx.saved_tensors
    dx, dhops = _sweep(*graph[4:], g, x, hops, ctx.chebyshev, True)
    return (None,) * 8 + (dx, dhops, None)


_compiled.register_autograd(_compiled_backward, setup_context=_Series.setup_context)
torch.library.register_vmap("unspool::propagate", _series_trials(_compiled, 8))


def propagate(graph: HasOperator, x: Tensor, hops: Tensor, basis: Any = Basis.POWERS) -> Tensor:
    r"""Apply a polynomial of the graph to a signal: :math:`\sum_k A^k X c_k`.

    Forward by Horner's rule, backward in one sweep :math:`U_0 = G,\; U_k = A^\top U_{k-1}` with
    :math:`\partial X = \sum_k U_k c_k^\top` and :math:`\partial c_k = \langle X, U_k\rangle`: as many sparse products as
    ordinary backpropagation, and memory that does not grow with the number of hops.

    Args:
        graph: a ``Graph`` (or any square :class:`~unspool.ops.operator.Operator`).
        x: signals of shape (..., nodes, features).
        hops: the coefficients c₀ ... c_K: shape (hops,) for numbers, (hops, features) for one number per channel,
            (hops, features, out) for matrices.
        basis: powers of A, or Chebyshev polynomials of A.

    Returns:
        A tensor of shape (..., nodes, features), or (..., nodes, out) with matrices.

    Example:
        >>> import torch, unspool as us
        >>> ring = us.graph.ring(4)
        >>> x = torch.tensor([[9.0], [0.0], [0.0], [0.0]])
        >>> propagate(ring, x, torch.tensor([0.5, 0.5])).flatten()
        tensor([6.0000, 1.5000, 0.0000, 1.5000])
    """
    operator = graph.operator
    if not isinstance(basis, Basis):
        raise TypeError(f"basis={basis!r}: expected Basis.POWERS or Basis.CHEBYSHEV")
    check_signal(operator, x)
    _check_hops(operator, x, hops)
    if isinstance(operator, SpreadOperator):
        return spread_series(operator, x, hops, basis is Basis.CHEBYSHEV)
    wide = x.movedim(-2, 0) if x.ndim > 2 else x
    count = math.prod(wide.shape[1:-1])
    blocks = wide.reshape(wide.shape[0], count, wide.shape[-1])
    coefficients = hops[:, None].expand(-1, count, *hops.shape[1:])
    if torch.compiler.is_compiling():
        # Trap: autograd.Function under compile(vmap) silently loses its backward.
        result = _compiled(*operator.forward, *operator.transpose, blocks, coefficients, basis is Basis.CHEBYSHEV)
    else:
        result = _Series.apply(*operator.forward, *operator.transpose, blocks, coefficients, basis is Basis.CHEBYSHEV)
    result = result.reshape(wide.shape[0], *wide.shape[1:-1], result.shape[-1])
    return result.movedim(0, -2) if x.ndim > 2 else result


def _check_hops(operator: Operator, x: Tensor, hops: Tensor) -> None:
    if operator.shape[0] != operator.shape[1]:
        raise ValueError(f"propagate needs a square operator, this one has shape {operator.shape}")
    if x.ndim < 2:
        raise ValueError("x has shape (nodes,): propagate needs (..., nodes, features); use x[:, None]")
    if hops.ndim not in (1, 2, 3) or hops.shape[0] == 0:
        raise ValueError(
            f"hops has shape {tuple(hops.shape)}: expected (hops,), (hops, features) or (hops, features, out), with at least one hop"
        )
    if hops.ndim > 1 and hops.shape[1] != x.shape[-1]:
        raise ValueError(
            f"hops has shape {tuple(hops.shape)}, but x has {x.shape[-1]} features: its second dimension must match"
        )
    if not hops.is_floating_point():
        raise TypeError("hops must be floating-point")
