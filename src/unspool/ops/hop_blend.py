"""One hop with shares of where it started and of the input: one sparse step over all trials."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unspool.ops import kernels
from unspool.ops.autograd import known_signature
from unspool.ops.blocks import fold_shared, fold_signal, unfold_signal
from unspool.ops.operator import Csr, HasOperator
from unspool.ops.pull import as_like
from unspool.ops.spmm import check_signal, refuse_stacked_graph, spmm
from unspool.ops.spread_operator import SpreadOperator

Number = float | Tensor

#: Channels up to which a row fits into one tile of a kernel.
_WIDEST = 1024


@known_signature
class _HopBlend(torch.autograd.Function):
    """hop · A h + keep · h + give · x for signals (nodes, blocks, channels), and numbers of (groups of blocks,), or none."""

    @staticmethod
    def forward(
        crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, crow_t: Tensor, col_t: Tensor, val_t: Tensor, hubs_t: Tensor,
        h: Tensor, x: Tensor | None, keep: Tensor | None, hop: Tensor | None, give: Tensor | None,
    ) -> Any:  # fmt: skip
        h, x = h.contiguous(), None if x is None else x.contiguous()
        keep, hop, give = (None if n is None else n.contiguous() for n in (keep, hop, give))
        groups = max((n.shape[0] for n in (keep, hop, give) if n is not None), default=1)
        out = torch.empty_like(h)
        flat = None if x is None else x.flatten(1)
        each = h.shape[1] // groups * h.shape[2]
        _kernels(h).blend(
            Csr(crow, col, val, hubs), h.flatten(1), out.view(h.shape[0], -1), hop, keep, give, flat, each
        )
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        h, x, keep, hop, give = inputs[8:]
        # Signals are kept for the gradients of numbers alone.
        kept = h if ctx.needs_input_grad[10] or ctx.needs_input_grad[11] else None
        ctx.save_for_backward(*inputs[:8], kept, x if ctx.needs_input_grad[12] else None, keep, hop, give)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        refuse_stacked_graph(in_dims[:8])
        trials = info.batch_size
        h = fold_signal(args[8], in_dims[8], trials)
        x = None if args[9] is None else fold_signal(args[9], in_dims[9], trials)
        own = [None if n is None else fold_shared(n, d, trials) for n, d in zip(args[10:], in_dims[10:], strict=True)]
        groups = max((n.shape[0] for n in own if n is not None), default=1)
        own = [None if n is None else n.expand(groups) for n in own]
        return unfold_signal(_HopBlend.apply(*args[:8], h, x, *own), trials), 1

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        *graph, h, x, keep, hop, give = ctx.saved_tensors
        back = (*graph[4:], *graph[:4])
        wants_h, wants_x, wants_keep, wants_hop, wants_give = ctx.needs_input_grad[8:]
        dh = dx = dkeep = dhop = dgive = None
        if wants_hop and hop is not None:  # ⟨G, A h⟩ is ⟨Aᵀ G, h⟩, which the gradient of h is made of
            moved = _HopBlend.apply(*back, grad, None, None, None, None)
            dhop = _Dot.apply(moved, h, hop.shape[0])
            dh = _times(hop, moved) if keep is None else _times(hop, moved) + _times(keep, grad)
        elif wants_h:
            dh = _HopBlend.apply(*back, grad, None, keep, hop, None)
        if wants_x and give is not None:
            dx = _times(give, grad)
        if wants_keep and keep is not None:
            dkeep = _Dot.apply(grad, h, keep.shape[0])
        if wants_give and give is not None:
            dgive = _Dot.apply(grad, x, give.shape[0])
        return (None,) * 8 + (dh, dx, dkeep, dhop, dgive)


@known_signature
class _Dot(torch.autograd.Function):
    """Σ a b over nodes and channels, for each group of blocks."""

    @staticmethod
    def forward(a: Tensor, b: Tensor, groups: int) -> Any:
        if not kernels.fused(a, b):
            return kernels.cpu.dot(a, b, groups)
        from unspool.ops.kernels import tiles_cuda

        return tiles_cuda.dot(a, b, groups)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        trials = info.batch_size
        a, b = (fold_signal(args[i], in_dims[i], trials) for i in range(2))
        return _Dot.apply(a, b, trials * args[2]).view(trials, args[2]), 0

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        a, b = ctx.saved_tensors
        return _times(grads[0], b), _times(grads[0], a), None


def _times(number: Tensor, signal: Tensor) -> Tensor:
    """A signal times the numbers of its groups of blocks."""
    share = signal.shape[1] // number.shape[0]
    return signal * number[:, None].expand(-1, share).reshape(-1, 1)


def _kernels(h: Tensor) -> Any:
    """The blend for the device of a signal."""
    if not kernels.fused(h):
        return kernels.cpu
    from unspool.ops.kernels import cuda

    return cuda


def _none(number: Number) -> bool:
    return not isinstance(number, Tensor) and number == 0


def hop_blend(
    graph: HasOperator, h: Tensor, x: Tensor | None = None, keep: Number = 0.0, hop: Number = 1.0, give: Number = 0.0
) -> Tensor:
    r"""A hop, a share of where it started and a share of the input: ``hop * (A @ h) + keep * h + give * x``.

    This is one sparse step over all trials, in one buffer. A plain 0 is not computed with, nor is what it multiplies read.

    Args:
        graph: a ``Graph`` or an :class:`~unspool.ops.operator.Operator`, square.
        h: signals of shape (..., nodes, channels).
        x: of the same shape; nothing where ``give`` is 0.
        keep, hop, give: numbers, or scalar tensors, which may be learnt.

    Example:
        >>> import torch, unspool as us
        >>> h = torch.tensor([[9.0], [0.0], [0.0], [0.0]])
        >>> hop_blend(us.graph.ring(4), h, torch.ones(4, 1), keep=1.0, hop=0.5, give=2.0).flatten()
        tensor([12.5000,  3.5000,  2.0000,  3.5000])
    """
    operator = graph.operator
    numbers = (keep, hop, give)
    plain = h.ndim >= 2 and 0 < h.shape[-1] <= _WIDEST and h.numel() > 0 and operator.shape[0] == operator.shape[1]
    plain = plain and (_none(give) or (x is not None and x.shape == h.shape))
    plain = plain and all(not isinstance(n, Tensor) or n.ndim == 0 for n in numbers)
    plain = plain and not isinstance(operator, SpreadOperator)
    if not (plain and kernels.one_pass(h, *(() if x is None else (x,)), operator.forward.val)):
        return _formula(graph, h, x, keep, hop, give)
    check_signal(operator, h)
    wide = h.movedim(-2, 0)
    signals = [
        None if s is None else s.movedim(-2, 0).reshape(wide.shape[0], -1, wide.shape[-1])
        for s in (h, None if _none(give) else x)
    ]
    own_keep, own_give = (None if _none(n) else as_like(n, h).reshape(1) for n in (keep, give))
    own_hop = None if not isinstance(hop, Tensor) and hop == 1 else as_like(hop, h).reshape(1)
    out = _HopBlend.apply(*operator.forward, *operator.transpose, *signals, own_keep, own_hop, own_give)
    return out.view(wide.shape).movedim(0, -2)


def _formula(graph: HasOperator, h: Tensor, x: Tensor | None, keep: Number, hop: Number, give: Number) -> Tensor:
    total = spmm(graph, h)
    if isinstance(hop, Tensor) or hop != 1:
        total = total * hop
    if not _none(keep):
        total = h * keep + total
    if _none(give):
        return total
    assert x is not None
    return total + x * give if isinstance(give, Tensor) else torch.add(total, x, alpha=give)
