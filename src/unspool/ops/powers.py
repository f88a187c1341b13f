"""A signal and all that it becomes hop by hop, as one tensor."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from unspool.ops.autograd import known_signature
from unspool.ops.kernels import step_for
from unspool.ops.operator import Csr, HasOperator
from unspool.ops.spmm import check_signal, refuse_stacked_graph, spmm
from unspool.ops.spread_operator import SpreadOperator, spread_powers

# Pages have shape (pages, nodes, blocks, channels): trials lie side by side, as everywhere. The two functions are each other's
# gradient, so derivatives of any order cost as many sparse products as there are hops.


def fold_pages(x: Tensor, dim: int | None, trials: int) -> Tensor:
    """Pages with trials in dimension ``dim`` as (pages, nodes, trials · blocks, channels); repeated where it has none.

    Example:
        >>> fold_pages(torch.ones(3, 4, 5, 2, 7), 0, 3).shape
        torch.Size([4, 5, 6, 7])
    """
    wide = x[:, :, None].expand(-1, -1, trials, -1, -1) if dim is None else x.movedim(dim, 2)
    return wide.flatten(2, 3)


def unfold_pages(x: Tensor, trials: int) -> Tensor:
    """The way back: trials in dimension 2.

    Example:
        >>> unfold_pages(torch.ones(4, 5, 6, 7), 3).shape
        torch.Size([4, 5, 3, 2, 7])
    """
    return x.unflatten(2, (trials, x.shape[2] // max(trials, 1)))


def _step(csr: Csr, y: Tensor, out: Tensor, base: Tensor | None) -> None:
    """out = M y + base; on a GPU in an order that does not depend on how many trials there are."""
    flat, room, under = y.flatten(1), out.view(out.shape[0], -1), None if base is None else base.flatten(1)
    if y.is_cuda:
        from unspool.ops.kernels import cuda

        cuda.step(csr, flat, room, 1.0, under, None, None, neighbours=2)
    else:
        step_for(y)(csr, flat, room, 1.0, under, None, None)


# Raw ops rather than functions, so that whoever watches torch's operations (deploy.few_nodes counts hops) sees them.
_LIBRARY = torch.library.Library("unspool", "FRAGMENT")
_LIBRARY.define("powers_raw(Tensor crow, Tensor col, Tensor val, Tensor hubs, Tensor x, int depth) -> Tensor")
_LIBRARY.define("gather_raw(Tensor crow, Tensor col, Tensor val, Tensor hubs, Tensor pages) -> Tensor")


@torch.library.impl(_LIBRARY, "powers_raw", "CompositeExplicitAutograd")
def _powers_now(crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, x: Tensor, depth: int) -> Tensor:
    pages = x.new_empty(depth + 1, *x.shape)
    pages[0].copy_(x)
    for k in range(depth):
        _step(Csr(crow, col, val, hubs), pages[k], pages[k + 1], None)
    return pages


@torch.library.impl(_LIBRARY, "gather_raw", "CompositeExplicitAutograd")
def _gather_now(crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, pages: Tensor) -> Tensor:
    pages = pages.contiguous()
    total, spare = pages[-1].clone() if pages.shape[0] == 1 else pages[-1], None
    for k in reversed(range(pages.shape[0] - 1)):
        out = torch.empty_like(total) if spare is None else spare
        _step(Csr(crow, col, val, hubs), total, out, pages[k])
        total, spare = out, None if k == pages.shape[0] - 2 else total
    return total


_powers: Any = torch.ops.unspool.powers_raw.default
_gather: Any = torch.ops.unspool.gather_raw.default
torch.library.register_fake(
    "unspool::powers_raw", lambda crow, col, val, hubs, x, depth: x.new_empty(depth + 1, *x.shape)
)
torch.library.register_fake("unspool::gather_raw", lambda crow, col, val, hubs, pages: pages.new_empty(pages.shape[1:]))


@known_signature
class _Powers(torch.autograd.Function):
    """Aᵏ X for all k."""

    @staticmethod
    def forward(
        crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, crow_t: Tensor, col_t: Tensor, val_t: Tensor, hubs_t: Tensor,
        x: Tensor, depth: int,
    ) -> Any:  # fmt: skip
        return _powers(crow, col, val, hubs, x, depth)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:8])

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        refuse_stacked_graph(in_dims[:8])
        *graph, x, depth = args
        x = x.movedim(in_dims[8], 1).flatten(1, 2)
        return unfold_pages(_Powers.apply(*graph, x, depth), info.batch_size), 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors
        return (None,) * 8 + (_Gather.apply(*saved[4:], *saved[:4], grads[0]), None)


@known_signature
class _Gather(torch.autograd.Function):
    """Σ Aᵏ Yₖ, by Horner's rule."""

    @staticmethod
    def forward(
        crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, crow_t: Tensor, col_t: Tensor, val_t: Tensor, hubs_t: Tensor,
        pages: Tensor,
    ) -> Any:  # fmt: skip
        return _gather(crow, col, val, hubs, pages)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:8])
        ctx.depth = inputs[8].shape[0] - 1

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        refuse_stacked_graph(in_dims[:8])
        pages = fold_pages(args[8], in_dims[8], info.batch_size)
        total = _Gather.apply(*args[:8], pages)
        return total.unflatten(1, (info.batch_size, -1)), 1

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors
        return (None,) * 8 + (_Powers.apply(*saved[4:], *saved[:4], grads[0], ctx.depth),)


def powers(graph: HasOperator, x: Tensor, depth: int) -> Tensor:
    r"""All of :math:`X, AX, \ldots, A^K X`, as one tensor.

    As many sparse products as hops in each direction: the gradient is gathered by Horner's rule. Nothing is kept for it.

    Args:
        graph: a ``Graph`` (or any square :class:`~unspool.ops.operator.Operator`).
        x: signals of shape (..., nodes, channels).
        depth: K.

    Returns:
        A tensor of shape (K + 1, ..., nodes, channels).

    Example:
        >>> import torch, unspool as us
        >>> powers(us.graph.ring(4), torch.tensor([[9.0], [0.0], [0.0], [0.0]]), 2)[..., 0]
        tensor([[9., 0., 0., 0.],
                [3., 3., 0., 3.],
                [3., 2., 2., 2.]])
    """
    operator = graph.operator
    check_signal(operator, x)
    if isinstance(operator, SpreadOperator) and x.ndim == 2:
        return spread_powers(operator, x, depth)
    half = x.dtype in (torch.bfloat16, torch.float16) and not x.is_cuda
    if torch.compiler.is_compiling() or half or x.ndim < 2 or isinstance(operator, SpreadOperator):
        pages = [x]
        for _ in range(depth):
            pages.append(spmm(operator, pages[-1]))
        return torch.stack(pages)
    wide = x.movedim(-2, 0)
    blocks = wide.reshape(wide.shape[0], math.prod(wide.shape[1:-1]), wide.shape[-1])
    pages = _Powers.apply(*operator.forward, *operator.transpose, blocks, depth)
    return pages.view(depth + 1, *wide.shape).movedim(1, -2)
