"""A polynomial of the graph with matrices, at some nodes only: what training looks at."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unspool.ops import kernels
from unspool.ops.autograd import known_signature
from unspool.ops.blocks import fold_own, fold_signal, unfold_signal
from unspool.ops.kernels import WIDEST
from unspool.ops.operator import Csr, HasOperator, Operator
from unspool.ops.polynomial import propagate
from unspool.ops.spmm import check_signal, refuse_stacked_graph
from unspool.ops.spread_operator import SpreadOperator
from unspool.ops.stacked_product import contiguous


def propagate_rows(graph: HasOperator, x: Tensor, hops: Tensor, rows: Tensor) -> Tensor:
    r"""Some rows of :func:`~unspool.ops.polynomial.propagate`: :math:`\bigl(\sum_k A^k X c_k\bigr)` at the nodes ``rows``.

    The matrices meet :math:`P_k = (A^k X)` at these nodes and nowhere else: forward, and on the way back, where
    :math:`\partial c_k = P_k^\top G` and :math:`\partial X` is Horner's rule with :math:`G c_k^\top` put at these nodes.

    Args:
        graph: a ``Graph`` (or any square :class:`~unspool.ops.operator.Operator`).
        x: signals of shape (nodes, in).
        hops: matrices of shape (hops, in, out), for powers of A.
        rows: numbers of nodes, each once.

    Example:
        >>> import torch, unspool as us
        >>> x = torch.tensor([[9.0], [0.0], [0.0], [0.0]])
        >>> propagate_rows(us.graph.ring(4), x, torch.tensor([[[0.5]], [[0.5]]]), torch.tensor([3, 0])).flatten()
        tensor([1.5000, 6.0000])
    """
    operator = graph.operator
    check_signal(operator, x)
    fits = (
        not isinstance(operator, SpreadOperator)
        and kernels.fused(x, hops, operator.forward.val)
        and hops.ndim == 3
        and x.ndim == 2
    )
    if not fits or max(hops.shape[1:]) > WIDEST or torch.is_autocast_enabled(x.device.type):
        return propagate(graph, x, hops).index_select(-2, rows)
    return _Rows.apply(*operator.forward, *operator.transpose, x.unsqueeze(1), hops[None], rows[None])[0].squeeze(1)


def formula(operator: Operator, x: Tensor, hops: Tensor, rows: Tensor) -> Tensor:
    """The same for signals (nodes, blocks, in), matrices (blocks, hops, in, out) and nodes (blocks, rows); (rows, blocks, out)."""
    one = torch.func.vmap(lambda x, hops, rows: propagate(operator, x, hops).index_select(0, rows), (1, 0, 0), 1)
    return one(x, hops, rows)


@known_signature
class _Rows(torch.autograd.Function):
    """The rows, and those of all hops, which the way back needs."""

    @staticmethod
    def forward(
        crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, crow_t: Tensor, col_t: Tensor, val_t: Tensor, hubs_t: Tensor, x: Tensor,
        hops: Tensor, rows: Tensor,
    ) -> Any:  # fmt: skip
        from unspool.ops.kernels import some_rows_cuda

        signal = x.contiguous()
        where = rows.T[:, :, None].expand(-1, -1, x.shape[2])
        hopped = x.new_empty(hops.shape[1], *where.shape)
        for k in range(hops.shape[1]):
            signal = signal if k == 0 else _hop(Csr(crow, col, val, hubs), signal)
            torch.gather(signal, 0, where, out=hopped[k])
        return some_rows_cuda.mapped(hopped, hops.transpose(0, 1).contiguous()), hopped

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs, output[1])
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        refuse_stacked_graph(in_dims[:8])
        trials = info.batch_size
        hops, rows = (fold_own(t, d, trials) for t, d in zip(args[9:], in_dims[9:], strict=True))
        out, hopped = _Rows.apply(*args[:8], fold_signal(args[8], in_dims[8], trials), hops, rows)
        apart = hopped.unflatten(2, (trials, -1))
        return (unfold_signal(out, trials), apart), (1, 2)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        *graph, x, hops, rows, hopped = ctx.saved_tensors
        if grads[0] is None:
            return (None,) * 11
        if torch.is_grad_enabled():
            operator = Operator(Csr(*graph[:4]), Csr(*graph[4:]), (x.shape[0], x.shape[0]))
            dx, dhops = torch.func.vjp(lambda x, c: formula(operator, x, c, rows), x, hops)[1](grads[0])
        else:
            dx, dhops = _Gradients.apply(*graph[4:], grads[0], hopped.permute(1, 2, 0, 3), hops, rows, x.shape[0])
        return (*(None for _ in graph), dx, dhops, None)


@known_signature
class _Gradients(torch.autograd.Function):
    """Both gradients, from rows of all hops (rows, blocks, hops, in); called where nobody asks for further ones."""

    @staticmethod
    def forward(
        crow_t: Tensor, col_t: Tensor, val_t: Tensor, hubs_t: Tensor, grad: Tensor, hopped: Tensor, hops: Tensor, rows: Tensor, nodes: int
    ) -> Any:  # fmt: skip
        from unspool.ops.kernels import some_rows_cuda

        grad, hopped, matrices = contiguous((grad, hopped.permute(2, 0, 1, 3), hops.transpose(0, 1)))
        back, dmatrices = some_rows_cuda.back(grad, hopped, matrices)
        where = rows.T[:, :, None].expand(-1, -1, hopped.shape[3])
        signal = hopped.new_zeros(nodes, *hopped.shape[2:])
        for k in reversed(range(hops.shape[1])):
            signal.scatter_add_(0, where, back[k])  # nodes are there once, so that nothing is added in any order
            signal = signal if k == 0 else _hop(Csr(crow_t, col_t, val_t, hubs_t), signal)
        return signal, dmatrices.transpose(0, 1)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        refuse_stacked_graph(in_dims[:4])
        trials, graph, nodes = info.batch_size, args[:4], args[8]
        grad, hopped = (fold_signal(t, d, trials) for t, d in zip(args[4:6], in_dims[4:6], strict=True))
        hops, rows = (fold_own(t, d, trials) for t, d in zip(args[6:8], in_dims[6:8], strict=True))
        dx, dhops = _Gradients.apply(*graph, grad, hopped, hops, rows, nodes)
        return (unfold_signal(dx, trials), dhops.unflatten(0, (trials, -1))), (1, 0)


def _hop(csr: Csr, x: Tensor) -> Tensor:
    """A x for all blocks; the order of each sum is the same at any width."""
    from unspool.ops.kernels import cuda

    out = torch.empty_like(x)
    cuda.step(csr, x.view(x.shape[0], -1), out.view(x.shape[0], -1), 1.0, None, None, None, neighbours=2)
    return out
