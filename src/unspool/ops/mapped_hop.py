"""One layer of a network with matrices on channels: a hop with a share of the input, then a matrix, ReLU and dropout."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unspool.ops import kernels
from unspool.ops.autograd import known_signature
from unspool.ops.blocks import fold_own, fold_shared, fold_signal, unfold_signal
from unspool.ops.dropout import Mask
from unspool.ops.hop_blend import Number, hop_blend
from unspool.ops.kernels import WIDEST
from unspool.ops.operator import Csr, HasOperator, Operator
from unspool.ops.spmm import refuse_stacked_graph, spmm
from unspool.ops.spread_operator import SpreadOperator
from unspool.ops.stacked_product import contiguous, drop_parts, stacked_product
from unspool.ops.stacked_product import formula as product_formula

#: Tensors of an operator: both matrices.
_GRAPH = 8


def mapped_hop(
    graph: HasOperator, h: Tensor, base: Tensor, weight: Tensor, hop: Number, give: Number, relu: bool = False,
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
    operator = graph.operator
    learnt = any(isinstance(n, Tensor) and n.requires_grad for n in (hop, give))
    nothing = not isinstance(give, Tensor) and give == 0
    if learnt or nothing or not fits(operator, h, base, weight) or (drop is not None and not relu):
        return stacked_product(hop_blend(operator, h, base, hop=hop, give=give), weight, relu, drop), base
    own = (n.to(h).reshape(1) if isinstance(n, Tensor) else float(n) for n in (hop, give))
    parts = () if drop is None else tuple(part[None] for part in drop_parts(drop))
    graphs = (*operator.forward, *operator.transpose)
    found = _MappedHop.apply(*graphs, h[:, None], base[:, None], weight[None], *own, relu, *parts)
    return found[0].squeeze(1), found[1].squeeze(1)


def fits(operator: Operator, h: Tensor, base: Tensor, weight: Tensor) -> bool:
    """Whether such a layer runs as kernels over all trials."""
    plain = h.ndim == 2 and h.shape == base.shape and weight.ndim == 2 and operator.shape[0] == operator.shape[1]
    return (
        plain
        and not isinstance(operator, SpreadOperator)
        and kernels.fused(h, base, weight, operator.forward.val)
        and max(weight.shape) <= WIDEST
        and not torch.is_autocast_enabled(h.device.type)
    )


def formula(
    operator: Operator, h: Tensor, base: Tensor, weight: Tensor, hop: Number, give: Number, relu: bool, *drop: Tensor
) -> Tensor:
    """What the kernels compute, for signals (nodes, blocks, in), matrices (groups, in, out) and numbers, or tensors (blocks,)."""
    hop, give = (n[:, None] if isinstance(n, Tensor) else n for n in (hop, give))
    moved = spmm(operator, h.reshape(h.shape[0], -1)).view(h.shape)
    return product_formula(hop * moved + give * base, weight, relu, *drop)


@known_signature
class _MappedHop(torch.autograd.Function):
    """The layer, its base, and Y = hop A h + give base, which the way back needs."""

    @staticmethod
    def forward(
        crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, crow_t: Tensor, col_t: Tensor, val_t: Tensor, hubs_t: Tensor,
        h: Tensor, base: Tensor, weight: Tensor, hop: Number, give: Number, relu: bool, *drop: Tensor,
    ) -> Any:  # fmt: skip
        from unspool.ops.kernels import cuda, product_cuda

        h, base, weight = contiguous((h, base, weight))
        y = torch.empty_like(base)
        cuda.blend(
            Csr(crow, col, val, hubs), h.flatten(1), y.flatten(1), _ready(hop), None, _ready(give), base.flatten(1), h.shape[2]
        )  # fmt: skip
        out = product_cuda.product(y, weight, relu, contiguous(drop) if drop else None)
        return out, base.view_as(base), y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, hop, give, relu = inputs[: _GRAPH + 6]
        ctx.plain = tuple(None if isinstance(n, Tensor) else n for n in (hop, give))
        held = (n if isinstance(n, Tensor) else None for n in (hop, give))
        ctx.save_for_backward(*tensors, *held, *inputs[_GRAPH + 6 :], output[0], output[2])
        ctx.relu = relu
        ctx.mark_non_differentiable(output[2])
        ctx.set_materialize_grads(False)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        refuse_stacked_graph(in_dims[:_GRAPH])
        graph, (h, base, weight, hop, give, relu, *drop) = args[:_GRAPH], args[_GRAPH:]
        dims, trials = in_dims[_GRAPH:], info.batch_size
        signals = (fold_signal(h, dims[0], trials), fold_signal(base, dims[1], trials))
        numbers = (_fold_number(hop, dims[3], trials), _fold_number(give, dims[4], trials))
        masks = (fold_own(part, dim, trials) for part, dim in zip(drop, dims[6:], strict=True))
        found = _MappedHop.apply(*graph, *signals, fold_shared(weight, dims[2], trials), *numbers, relu, *masks)
        return tuple(unfold_signal(part, trials) for part in found), (1, 1, 1)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        *graph, h, base, weight, hop, give = ctx.saved_tensors[: _GRAPH + 5]
        *drop, out, y = ctx.saved_tensors[_GRAPH + 5 :]
        hop, give = (plain if held is None else held for plain, held in zip(ctx.plain, (hop, give), strict=True))
        grad, passed, _ = grads
        none, numbers = (None,) * _GRAPH, (None,) * (3 + len(drop))
        if grad is None:
            return (*none, None, passed, None, *numbers)
        if torch.is_grad_enabled():
            operator = Operator(Csr(*graph[:4]), Csr(*graph[4:]), (h.shape[0], h.shape[0]))
            layer = lambda h, base, weight: formula(operator, h, base, weight, hop, give, ctx.relu, *drop)  # noqa: E731
            dh, dbase, dweight = torch.func.vjp(layer, h, base, weight)[1](grad)
            dbase = dbase if passed is None else dbase + passed
        else:
            dh, dbase, dweight = _Gradients.apply(
                *graph[4:], grad, passed, y, out, weight, hop, give, ctx.relu, *drop[:1]
            )
        return (*none, dh, dbase, dweight, *numbers)


@known_signature
class _Gradients(torch.autograd.Function):
    """The gradients of h, base and matrices; called where nobody asks for further ones."""

    @staticmethod
    def forward(
        crow_t: Tensor, col_t: Tensor, val_t: Tensor, hubs_t: Tensor, grad: Tensor, passed: Tensor | None, y: Tensor, out: Tensor,
        weight: Tensor, hop: Number, give: Number, relu: bool, *rate: Tensor,
    ) -> Any:  # fmt: skip
        from unspool.ops.kernels import cuda, product_cuda

        base = product_cuda.Base(_ready(give), None if passed is None else passed.contiguous())
        grad, y, weight, out, *rates = contiguous((grad, y, weight, out, *rate))
        dy, dweight, dbase = product_cuda.gradients(grad, y, weight, out, relu, rates[0] if rates else None, base)
        dh, back = torch.empty_like(dy), Csr(crow_t, col_t, val_t, hubs_t)
        cuda.blend(back, dy.flatten(1), dh.flatten(1), _ready(hop), None, None, None, dy.shape[2])
        return dh, dbase, dweight

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        refuse_stacked_graph(in_dims[:4])
        trials, (weight, hop, give, relu, *rate) = info.batch_size, args[8:]
        signals = (
            None if t is None else fold_signal(t, d, trials) for t, d in zip(args[4:8], in_dims[4:8], strict=True)
        )
        numbers = (_fold_number(hop, in_dims[9], trials), _fold_number(give, in_dims[10], trials))
        rates = (fold_own(part, dim, trials) for part, dim in zip(rate, in_dims[12:], strict=True))
        own = fold_own(weight, in_dims[8], trials)
        dh, dbase, dweight = _Gradients.apply(*args[:4], *signals, own, *numbers, relu, *rates)
        split = (unfold_signal(dh, trials), unfold_signal(dbase, trials), dweight.unflatten(0, (trials, -1)))
        return split, (1, 1, 0)


def _ready(number: Number) -> Number:
    """A number as kernels read it."""
    return number.contiguous() if isinstance(number, Tensor) else number


def _fold_number(number: Number, dim: int | None, trials: int) -> Number:
    return fold_own(number, dim, trials) if isinstance(number, Tensor) else number
