"""One layer of a network with matrices on channels: a hop, a share of the input, a matrix, ReLU and dropout, in one pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unspool.ops import kernels
from unspool.ops.autograd import known_signature
from unspool.ops.blocks import fold_own, fold_shared, fold_signal, unfold_signal
from unspool.ops.dropout import Mask
from unspool.ops.operator import Csr, HasOperator, Operator
from unspool.ops.spmm import refuse_stacked_graph, spmm
from unspool.ops.stacked_product import WIDEST, contiguous, drop_parts, stacked_product
from unspool.ops.stacked_product import formula as product_formula

#: A row of more entries would hold up the tile that it stands in.
LONGEST_ROW = 2048
#: Tensors of an operator: both matrices, and their rows by length.
_GRAPH = 10


def mapped_hop(
    graph: HasOperator, h: Tensor, base: Tensor, weight: Tensor, hop: float | Tensor, give: float | Tensor, relu: bool = False,
    drop: Mask | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    r"""``dropout(relu((hop · A h + give · base) @ weight))``, and the base again, for the next layer to take.

    Layers that all look at one base hand it on from one to the next, and its gradient is added up on the way back instead of
    once for each of them.

    Args:
        graph: a ``Graph`` or an :class:`Operator`, square.
        h: signals of shape (nodes, in).
        base: what a share of is added to each hop, of the same shape.
        weight: a matrix of shape (in, out).
        hop, give: numbers, or scalar tensors.
        relu: whether the result ends in a ReLU.
        drop: dropout of the result.

    Example:
        >>> import torch, unspool as us
        >>> h = torch.tensor([[2.0], [0.0], [0.0], [0.0]])
        >>> out, _ = mapped_hop(us.graph.ring(4), h, h, torch.tensor([[3.0]]), 0.5, 0.5)
        >>> out.flatten()
        tensor([4., 1., 0., 1.])
    """
    operator, numbers = graph.operator, (hop, give)
    learnt = any(isinstance(n, Tensor) and n.requires_grad for n in numbers)
    if learnt or not fits(operator, h, base, weight) or (drop is not None and not relu):
        return stacked_product(hop * spmm(operator, h) + give * base, weight, relu, drop), base
    a, b = operator.forward, operator.transpose
    order, order_t = operator.by_length
    own = (_number(n, h) for n in numbers)
    parts = () if drop is None else tuple(part[None] for part in drop_parts(drop))
    found = _MappedHop.apply(
        *a, *b, order, order_t, h[:, None], base[:, None], weight[None], *own, relu, torch.is_grad_enabled(), *parts
    )
    return found[0].squeeze(1), found[1].squeeze(1)


def _number(value: float | Tensor, like: Tensor) -> Tensor:
    """A number as a tensor, made on the device: copying it there would break a CUDA graph."""
    if isinstance(value, Tensor):
        return value.to(like).view(1)
    return torch.full((1,), float(value), dtype=like.dtype, device=like.device)


def fits(operator: Operator, h: Tensor, base: Tensor, weight: Tensor) -> bool:
    """Whether such a layer runs as one kernel."""
    plain = h.ndim == 2 and h.shape == base.shape and weight.ndim == 2 and operator.shape[0] == operator.shape[1]
    return (
        plain
        and kernels.fused(h, base, weight, operator.forward.val)
        and max(weight.shape) <= WIDEST
        and operator.longest_row <= LONGEST_ROW
        and not torch.is_autocast_enabled(h.device.type)
    )


def formula(
    operator: Operator, h: Tensor, base: Tensor, weight: Tensor, hop: Tensor, give: Tensor, relu: bool, *drop: Tensor
) -> Tensor:
    """What the kernels compute, for signals (nodes, blocks, in), matrices (groups, in, out) and numbers (blocks,)."""
    moved = spmm(operator, h.reshape(h.shape[0], -1)).view(h.shape)
    return product_formula(hop[:, None] * moved + give[:, None] * base, weight, relu, *drop)


@known_signature
class _MappedHop(torch.autograd.Function):
    """The layer, its base, and what the way back needs to know of it."""

    @staticmethod
    def forward(
        crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, crow_t: Tensor, col_t: Tensor, val_t: Tensor, hubs_t: Tensor, order: Tensor,
        order_t: Tensor, h: Tensor, base: Tensor, weight: Tensor, hop: Tensor, give: Tensor, relu: bool, keep: bool, *drop: Tensor,
    ) -> Any:  # fmt: skip
        from unspool.ops.kernels import mapped_hop_cuda as cuda

        h, base, weight, hop, give = contiguous((h, base, weight, hop, give))
        thin = contiguous(drop) if drop else None
        out, y = cuda.forward(cuda.Rows(crow, col, val, order), h, base, weight, hop, give, relu, thin, keep)
        return out, base.view_as(base), y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, relu, keep = inputs[: _GRAPH + 7]
        ctx.save_for_backward(*tensors, *inputs[_GRAPH + 7 :], output[0], output[2])
        ctx.relu, ctx.kept = relu, keep
        ctx.mark_non_differentiable(output[2])
        ctx.set_materialize_grads(False)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        refuse_stacked_graph(in_dims[:_GRAPH])
        graph, (h, base, weight, hop, give, relu, keep, *drop) = args[:_GRAPH], args[_GRAPH:]
        dims, trials = in_dims[_GRAPH:], info.batch_size
        signals = (fold_signal(h, dims[0], trials), fold_signal(base, dims[1], trials))
        own = [fold_own(t, d, trials) for t, d in zip((hop, give, *drop), (*dims[3:5], *dims[7:]), strict=True)]
        weight = fold_shared(weight, dims[2], trials)
        out, passed, y = _MappedHop.apply(*graph, *signals, weight, *own[:2], relu, keep, *own[2:])
        kept = (unfold_signal(y, trials), 1) if keep else (y, None)
        return (unfold_signal(out, trials), unfold_signal(passed, trials), kept[0]), (1, 1, kept[1])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        graph, (h, base, weight, hop, give, *drop) = ctx.saved_tensors[:_GRAPH], ctx.saved_tensors[_GRAPH:-2]
        out, y = ctx.saved_tensors[-2:]
        grad, passed, _ = grads
        nothing = (None, None, *(None for _ in drop))
        if grad is None:
            return (*(None for _ in graph), None, passed, None, None, None, *nothing)
        if not ctx.kept or torch.is_grad_enabled() or any(ctx.needs_input_grad[_GRAPH + 3 : _GRAPH + 5]):
            operator = Operator(Csr(*graph[:4]), Csr(*graph[4:8]), (h.shape[0], h.shape[0]))
            pull = torch.func.vjp(
                lambda *a: formula(operator, *a, ctx.relu, *drop), h, base, weight, hop, give
            )[1]  # fmt: skip
            dh, dbase, *rest = pull(grad)
            return (*(None for _ in graph), dh, dbase if passed is None else dbase + passed, *rest, *nothing)
        back = (*graph[4:7], graph[9])
        dh, dbase, dweight = _Gradients.apply(*back, grad, passed, y, out, weight, hop, give, ctx.relu, *drop[:1])
        return (*(None for _ in graph), dh, dbase, dweight, None, None, *nothing)


@known_signature
class _Gradients(torch.autograd.Function):
    """The gradients of h, base and matrices; called where nobody asks for further ones."""

    @staticmethod
    def forward(
        crow_t: Tensor, col_t: Tensor, val_t: Tensor, order_t: Tensor, grad: Tensor, passed: Tensor | None, y: Tensor, out: Tensor,
        weight: Tensor, hop: Tensor, give: Tensor, relu: bool, *rate: Tensor,
    ) -> Any:  # fmt: skip
        from unspool.ops.kernels import mapped_hop_cuda, product_cuda

        before = None if passed is None else passed.contiguous()
        grad, y, weight, out, hop, give, *rates = contiguous((grad, y, weight, out, hop, give, *rate[:1]))
        base = product_cuda.Base(give, before)
        dy, dweight, dbase = product_cuda.gradients(grad, y, weight, out, relu, rates[0] if rates else None, base)
        rows = mapped_hop_cuda.Rows(crow_t, col_t, val_t, order_t)
        return mapped_hop_cuda.moved(rows, dy, hop), dbase, dweight

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        refuse_stacked_graph(in_dims[:4])
        trials, relu = info.batch_size, args[11]
        signals = [
            None if t is None else fold_signal(t, d, trials) for t, d in zip(args[4:8], in_dims[4:8], strict=True)
        ]
        own = (*args[8:11], *args[12:]), (*in_dims[8:11], *in_dims[12:])
        weight, hop, give, *rate = (fold_own(t, d, trials) for t, d in zip(*own, strict=True))
        dh, dbase, dweight = _Gradients.apply(*args[:4], *signals, weight, hop, give, relu, *rate)
        split = (unfold_signal(dh, trials), unfold_signal(dbase, trials), dweight.unflatten(0, (trials, -1)))
        return split, (1, 1, 0)
