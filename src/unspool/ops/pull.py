"""Rows and entries pulled in by a radius: one kernel over all trials on a GPU, a composition of torch's operations elsewhere.

The proximal operators of :mod:`unspool.ops.prox` that AirGNN, ElasticGNN and sparse terms take a step with. The formulas below say
what they are; every derivative is one of theirs.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import torch
from torch import Tensor

from unspool.ops import kernels
from unspool.ops.autograd import known_signature
from unspool.ops.blocks import fold_shared, fold_signal, unfold_signal

Number = float | Tensor

#: Channels up to which a row fits into one tile of a kernel.
_WIDEST = 2048


class How(IntEnum):
    """What is pulled: rows towards a centre, rows into a ball, entries towards zero."""

    SHRINK = 0
    BALL = 1
    SOFT = 2


def as_like(value: Number, v: Tensor) -> Tensor:
    """A number as a tensor in the dtype and on the device of v, made there: copying it over would break a CUDA graph."""
    return value.to(v) if isinstance(value, Tensor) else torch.full((), float(value), dtype=v.dtype, device=v.device)


def formula(how: How, h: Tensor, radius: Number, centre: Tensor | None = None) -> Tensor:
    """What :func:`pull` computes, in torch's own operations."""
    if how is How.SOFT:
        return torch.relu(h - radius) - torch.relu(-h - radius)
    offset = h if centre is None else h - centre
    rho = as_like(radius, h)
    # Trap: relu(1 - radius / length) has the right value at the centre but a nan gradient, and so has the norm of a
    # zero row; both are replaced where the row is pulled all the way in.
    squared = (offset * offset).sum(-1, keepdim=True)
    outside = squared > rho * rho
    length = torch.where(outside, squared, torch.ones_like(squared)).sqrt()
    if how is How.BALL:  # written as one factor per row, so that nothing but h is kept for the way back
        return h * torch.where(outside, rho / length, torch.ones_like(length))
    shrunk = torch.where(outside, offset * (1 - rho / length), torch.zeros_like(offset))
    return shrunk if centre is None else centre + shrunk


def _of_blocks(how: How, h: Tensor, radius: Tensor, centre: Tensor | None) -> Tensor:
    """The formula for a signal (nodes, blocks, channels) and radii (groups of blocks,)."""
    each = radius[:, None].expand(-1, h.shape[1] // radius.shape[0]).reshape(-1, 1)
    return formula(how, h, each, centre)


@known_signature
class _Pull(torch.autograd.Function):
    @staticmethod
    def forward(h: Tensor, radius: Tensor, centre: Tensor | None, how: How) -> Any:
        from unspool.ops.kernels import prox_cuda

        return prox_cuda.pull(int(how), h, radius, centre)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:3])
        ctx.how = inputs[3]

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        h, radius, centre, how = args
        trials = info.batch_size
        h, radius = fold_signal(h, in_dims[0], trials), fold_shared(radius, in_dims[1], trials)
        centre = None if centre is None else fold_signal(centre, in_dims[2], trials)
        return unfold_signal(_Pull.apply(h, radius, centre, how), trials), 1

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        h, radius, centre = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants to differentiate further
            inputs = (h, radius) if centre is None else (h, radius, centre)
            back = torch.func.vjp(lambda h, r, c=None: _of_blocks(ctx.how, h, r, c), *inputs)[1](grad)
            return (*back, *(None,) * (4 - len(back)))
        wants = ctx.needs_input_grad[1]
        back, lean, rest = _PullBack.apply(grad, h, radius, centre, ctx.how, wants)
        return back, lean if wants else None, rest, None


@known_signature
class _PullBack(torch.autograd.Function):
    """The gradients alone; whoever differentiates further never comes here."""

    @staticmethod
    def forward(grad: Tensor, h: Tensor, radius: Tensor, centre: Tensor | None, how: How, wants_radius: bool) -> Any:
        from unspool.ops.kernels import prox_cuda

        return prox_cuda.pull_backward(int(how), grad, h, radius, centre, wants_radius)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        trials = info.batch_size
        grad, h = (fold_signal(args[i], in_dims[i], trials) for i in range(2))
        radius, centre = args[2], args[3]
        # Trap: what trials share has a gradient for each of them all the same, which vmap's caller adds up.
        radius = (
            fold_shared(radius[None].expand(trials, -1), 0, trials)
            if in_dims[2] is None
            else fold_shared(radius, in_dims[2], trials)
        )
        centre = None if centre is None else fold_signal(centre, in_dims[3], trials)
        back, lean, rest = _PullBack.apply(grad, h, radius, centre, *args[4:])
        lean_dim = 0 if args[5] else None
        lean = lean.view(trials, -1) if args[5] else lean
        return (
            (unfold_signal(back, trials), lean, None if rest is None else unfold_signal(rest, trials)),
            (1, lean_dim, None if rest is None else 1),
        )


def pull(how: How, h: Tensor, radius: Number, centre: Tensor | None = None) -> Tensor:
    """Pull the rows of h towards the centre (or zero) or into a ball, or its entries towards zero, by a radius.

    Args:
        how: which of the three.
        h: signals of shape (..., nodes, channels).
        radius: a number, or a tensor that broadcasts; one number (for each trial under ``vmap``) takes the kernel.
        centre: of the shape of h, for rows alone.

    Example:
        >>> import torch
        >>> pull(How.SHRINK, torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 1.0)
        tensor([[2.4000, 3.2000],
                [0.0000, 0.0000]])
    """
    given = (h,) if centre is None else (h, centre)
    one = not isinstance(radius, Tensor) or radius.ndim == 0
    plain = h.ndim >= 2 and 0 < h.shape[-1] <= _WIDEST and h.numel() > 0 and (centre is None or centre.shape == h.shape)
    if not (one and plain and kernels.fused(*given)):
        return formula(how, h, radius, centre)
    wide = h.movedim(-2, 0)
    blocks = [x.movedim(-2, 0).reshape(wide.shape[0], -1, wide.shape[-1]) for x in given]
    rho = as_like(radius, h).reshape(1)
    out = _Pull.apply(blocks[0], rho, blocks[1] if len(blocks) > 1 else None, how)
    return out.view(wide.shape).movedim(0, -2)
