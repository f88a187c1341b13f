"""The sparse product as a differentiable, stackable function."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from unspool.ops import recurrence
from unspool.ops.autograd import known_signature
from unspool.ops.operator import Csr, HasOperator, Operator
from unspool.ops.spread_operator import SpreadOperator, spread_product

# Three layers, each for a reason found by experiment (docs/architecture.md, "The primitive"):
#   1. a raw op that knows only tensors, with a rule that folds trials into columns;
#   2. in eager mode an autograd.Function whose backward calls *itself*, so that any order of derivative is right;
#   3. under torch.compile an op with registered autograd, because compile(vmap(Function)) drops custom backwards.


# Trap: torch.library.custom_op imports torch._dynamo at its first call (seconds); the raw op is defined through Library.
_LIBRARY = torch.library.Library("unspool", "FRAGMENT")
_LIBRARY.define("spmm_raw(Tensor crow, Tensor col, Tensor val, Tensor hubs, Tensor x) -> Tensor")


@torch.library.impl(_LIBRARY, "spmm_raw", "CompositeExplicitAutograd")
def _raw_now(crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, x: Tensor) -> Tensor:
    return recurrence.product(Csr(crow, col, val, hubs), x)


_raw: Any = torch.ops.unspool.spmm_raw.default


def _raw_fake(crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, x: Tensor) -> Tensor:
    return x.new_empty(crow.shape[0] - 1, x.shape[1])


def _fold(op: Any) -> Any:
    """The rule that puts trials side by side in the columns of one product."""

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Tensor) -> tuple[Tensor, int]:
        *matrices, x = args
        refuse_stacked_graph(tuple(dim for i, dim in enumerate(in_dims[:-1]) if i not in (2, 6)))
        if any(dim is not None for dim in in_dims[:-1]):
            return _one_by_one(op, info.batch_size, in_dims, args), 0
        wide = x.movedim(in_dims[-1], 1)  # type: ignore[arg-type]
        result = op(*matrices, wide.reshape(wide.shape[0], info.batch_size * wide.shape[2]))
        return result.view(result.shape[0], info.batch_size, wide.shape[2]), 1

    return rule


def _one_by_one(op: Any, trials: int, in_dims: tuple[int | None, ...], args: tuple[Tensor, ...]) -> Tensor:
    """Trials whose matrices differ in their entries (dropout on sparse features) share no product."""
    if op is _compiled:
        each = [
            op(*(a if dim is None else a.select(dim, t) for a, dim in zip(args, in_dims, strict=True)))
            for t in range(trials)
        ]
        return torch.stack(each)
    spread = list(args)
    for i in {2, 6, len(args) - 1} & set(range(len(args))):  # values, those of the transpose, x
        dim = in_dims[i]
        spread[i] = args[i].expand(trials, *args[i].shape) if dim is None else args[i].movedim(dim, 0)
    return _each(*spread) if op is _raw else _Products.apply(*spread)


def _each(crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, x: Tensor) -> Tensor:
    """Products of matrices with values (trials, entries) and signals (trials, rows, columns)."""
    if x.is_cuda:
        from unspool.ops.kernels import cuda

        return cuda.product_each(crow, col, val, x)
    out = x.new_empty(x.shape[0], crow.shape[0] - 1, x.shape[2])
    for t in range(x.shape[0]):
        recurrence.product(Csr(crow, col, val[t], hubs), x[t], out[t])
    return out


def refuse_stacked_graph(in_dims: tuple[int | None, ...]) -> None:
    """Trials share one graph: say so when ``vmap`` is asked to stack graphs."""
    if any(dim is not None for dim in in_dims):
        raise ValueError("vmap over graphs is not supported: all trials share one graph; stack x or the coefficients")


torch.library.register_fake("unspool::spmm_raw", _raw_fake)
torch.library.register_vmap("unspool::spmm_raw", _fold(_raw))


@known_signature
class _Product(torch.autograd.Function):
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
    ) -> Any:
        return _raw(crow, col, val, hubs, x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:8])

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return _fold(_Product.apply)(info, in_dims, *args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors  # Trap: reading it twice breaks under activation checkpointing
        a, b = saved[:4], saved[4:]
        return (None,) * 8 + (_Product.apply(*b, *a, grads[0]),)


@known_signature
class _Products(torch.autograd.Function):
    """Products of matrices that differ in their entries: values of shape (trials, entries), x of (trials, rows, columns)."""

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
    ) -> Any:
        return _each(crow, col, val, hubs, x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:8])

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        refuse_stacked_graph(tuple(dim for i, dim in enumerate(in_dims[:8]) if i not in (2, 6)))
        merged, trials = list(args), info.batch_size
        for i in (2, 6, 8):
            dim = in_dims[i]
            wide = args[i].expand(trials, *args[i].shape) if dim is None else args[i].movedim(dim, 0)
            merged[i] = wide.flatten(0, 1)
        return _Products.apply(*merged).unflatten(0, (trials, -1)), 0

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors
        a, b = saved[:4], saved[4:]
        return (None,) * 8 + (_Products.apply(*b, *a, grads[0]),)


@torch.library.custom_op("unspool::spmm", mutates_args=())
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
) -> Tensor:
    return recurrence.product(Csr(crow, col, val, hubs), x)


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
) -> Tensor:
    return x.new_empty(crow.shape[0] - 1, x.shape[1])


def _compiled_backward(ctx: Any, grad: Tensor) -> Any:
    saved = ctx.saved_tensors
    a, b = saved[:4], saved[4:]
    return (None,) * 8 + (_compiled(*b, *a, grad),)


_compiled.register_autograd(_compiled_backward, setup_context=_Product.setup_context)
torch.library.register_vmap("unspool::spmm", _fold(_compiled))


def spmm(graph: HasOperator, x: Tensor) -> Tensor:
    r"""Multiply a sparse matrix with a signal: :math:`A X`.

    Differentiable in ``x`` to any order, with trials in leading dimensions or under :func:`torch.func.vmap` folded into
    the columns of one wide product. No gradient flows to the entries of A.

    Args:
        graph: a ``Graph`` or an :class:`Operator`.
        x: signals of shape (nodes,), (nodes, features) or (..., nodes, features).

    Returns:
        A tensor of the same shape as ``x`` (rows of A in place of nodes).

    Example:
        >>> import torch, unspool as us
        >>> ring = us.graph.ring(4)
        >>> spmm(ring, torch.tensor([3.0, 0.0, 0.0, 0.0]))
        tensor([1., 1., 0., 1.])
    """
    operator = graph.operator
    check_signal(operator, x)
    if x.ndim == 1:
        return _multiply(operator, x[:, None])[:, 0]
    if x.ndim == 2:
        return _multiply(operator, x)
    wide = x.movedim(-2, 0)
    result = _multiply(operator, wide.reshape(wide.shape[0], math.prod(wide.shape[1:])))
    return result.view(operator.shape[0], *wide.shape[1:]).movedim(0, -2)


def _multiply(operator: Operator, x: Tensor) -> Tensor:
    if isinstance(operator, SpreadOperator):
        return spread_product(operator, x)
    if torch.compiler.is_compiling():
        return _compiled(*operator.forward, *operator.transpose, x)
    return _Product.apply(*operator.forward, *operator.transpose, x)


def check_signal(operator: Operator, x: Tensor) -> None:
    """Raise one clear sentence when ``x`` cannot live on this graph."""
    if not x.is_floating_point():
        raise TypeError(f"x holds {_short(x.dtype)}: signals are floating-point; call x.float()")
    nodes = x.shape[0] if x.ndim == 1 else x.shape[-2] if x.ndim else 0
    if nodes != operator.shape[1]:
        raise ValueError(f"x has shape {tuple(x.shape)}, but {operator.expected_rows()}")
    if x.device != operator.device:
        raise ValueError(f"x is on {x.device}, the graph on {operator.device}: call graph.to({str(x.device)!r})")
    half = x.dtype in (torch.bfloat16, torch.float16) and operator.dtype == torch.float32
    if x.dtype != operator.dtype and not half:
        raise TypeError(
            f"x is {_short(x.dtype)}, the graph {_short(operator.dtype)}: call graph.to(torch.{_short(x.dtype)}) or x.to(torch.{_short(operator.dtype)})"
        )


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
