"""Signals weighed by a gate per node and added up: one kernel over all trials on a GPU, torch's operations elsewhere."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unspool.ops import kernels
from unspool.ops.autograd import known_signature
from unspool.ops.blocks import fold_shared, fold_signal, unfold_signal
from unspool.ops.powers import fold_pages, unfold_pages

#: Channels up to which a row fits into one tile of a kernel.
_WIDEST = 1024


def _formula(pages: Tensor, gate: Tensor, shift: Tensor) -> Tensor:
    return (torch.sigmoid(pages @ gate[:, None] + shift) * pages).sum(0)


def _of_blocks(pages: Tensor, gate: Tensor, shift: Tensor) -> Tensor:
    """The formula for signals (pages, nodes, blocks, channels), gates (groups of blocks, channels) and shifts (groups,)."""
    share = pages.shape[2] // gate.shape[0]
    s = gate[:, None].expand(-1, share, -1).flatten(0, 1)
    t = shift[:, None].expand(-1, share).flatten()
    return (torch.sigmoid((pages * s).sum(-1) + t)[..., None] * pages).sum(0)


@known_signature
class _GatedSum(torch.autograd.Function):
    @staticmethod
    def forward(pages: Tensor, gate: Tensor, shift: Tensor) -> Any:
        from unspool.ops.kernels import gates_cuda

        return gates_cuda.gated_sum(pages, gate, shift)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        trials = info.batch_size
        pages = fold_pages(args[0], in_dims[0], trials)
        gate, shift = _together(args[1], args[2], in_dims[1], in_dims[2], trials)
        return unfold_signal(_GatedSum.apply(pages, gate, shift), trials), 1

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        pages, gate, shift = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants to differentiate further
            return torch.func.vjp(_of_blocks, pages, gate, shift)[1](grad)
        wanted = ctx.needs_input_grad
        wants_gate = wanted[1] or wanted[2]
        back, back_s, back_t = _GatedSumBack.apply(grad, pages, gate, shift, wanted[0], wants_gate)
        return back if wanted[0] else None, back_s if wants_gate else None, back_t if wants_gate else None


@known_signature
class _GatedSumBack(torch.autograd.Function):
    """The gradients alone; whoever differentiates further never comes here."""

    @staticmethod
    def forward(grad: Tensor, pages: Tensor, gate: Tensor, shift: Tensor, wants_pages: bool, wants_gate: bool) -> Any:
        from unspool.ops.kernels import gates_cuda

        return gates_cuda.gated_sum_backward(grad, pages, gate, shift, wants_pages, wants_gate)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        trials, (wants_pages, wants_gate) = info.batch_size, args[4:]
        grad, pages = fold_signal(args[0], in_dims[0], trials), fold_pages(args[1], in_dims[1], trials)
        # Trap: each trial has a gradient of its own even for what all share.
        own = [
            (v[None].expand(trials, *v.shape), 0) if d is None else (v, d)
            for v, d in zip(args[2:4], in_dims[2:4], strict=True)
        ]
        gate, shift = (fold_shared(value, dim, trials) for value, dim in own)
        back, back_s, back_t = _GatedSumBack.apply(grad, pages, gate, shift, wants_pages, wants_gate)
        found = unfold_pages(back, trials) if wants_pages else back
        if wants_gate:
            back_s, back_t = back_s.unflatten(0, (trials, -1)), back_t.unflatten(0, (trials, -1))
        return (found, back_s, back_t), (2 if wants_pages else None, *(0 if wants_gate else None,) * 2)


def _together(
    gate: Tensor, shift: Tensor, gate_dim: int | None, shift_dim: int | None, trials: int
) -> tuple[Tensor, Tensor]:
    """Gates and shifts for the same groups of blocks."""
    gate, shift = fold_shared(gate, gate_dim, trials), fold_shared(shift, shift_dim, trials)
    if gate.shape[0] != shift.shape[0]:  # one of them is the same for all
        groups = max(gate.shape[0], shift.shape[0])
        gate, shift = gate.expand(groups, -1), shift.expand(groups)
    return gate, shift


def gated_sum(pages: Tensor, gate: Tensor, shift: Tensor) -> Tensor:
    r"""Add signals up, each node weighed by how its row looks: :math:`\sum_k \sigma(Y_k s + t) \odot Y_k`.

    Args:
        pages: the signals Yₖ, of shape (K + 1, ..., nodes, channels).
        gate: s, of shape (channels,).
        shift: t, of shape (1,).

    Returns:
        A tensor of shape (..., nodes, channels).

    Example:
        >>> import torch
        >>> pages = torch.tensor([[[1.0, 0.0]], [[0.0, 4.0]]])
        >>> gated_sum(pages, torch.zeros(2), torch.zeros(1))
        tensor([[0.5000, 2.0000]])
    """
    plain = pages.ndim >= 3 and 0 < pages.shape[-1] <= _WIDEST and pages.numel() > 0
    if not (plain and kernels.fused(pages, gate, shift)):
        return _formula(pages, gate, shift)
    wide = pages.movedim(-2, 1)
    blocks = wide.reshape(*wide.shape[:2], -1, wide.shape[-1])
    return _GatedSum.apply(blocks, gate[None], shift).view(wide.shape[1:]).movedim(0, -2)
