"""A dual step of a penalty on differences across edges, and what it pulls nodes with: one pass over the edges in each direction.

Written in torch's own operations it is six passes over a number for every edge and channel, most of them into memory that is asked for
anew. Here a piece of the edges stays in the cache (on a GPU, in registers) from the differences to the cut, and the way back makes them
again from what autograd keeps anyway.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import torch
from torch import Tensor

from unspool.ops import kernels, pull
from unspool.ops.autograd import known_signature
from unspool.ops.blocks import fold_shared, fold_signal, unfold_signal
from unspool.ops.operator import Csr, Operator
from unspool.ops.pull import How, Number, as_like
from unspool.ops.recurrence import product
from unspool.ops.spmm import refuse_stacked_graph, spmm

#: Channels up to which a row fits into one tile of a kernel.
_WIDEST = 1024


class Cut(IntEnum):
    """What is cut to the radius: the length of every row, or every entry."""

    ROWS = 0
    ENTRIES = 1


def formula(
    incidence: Operator, z: Tensor, ahead: Tensor, size: Number, radius: Number, cut: Cut
) -> tuple[Tensor, Tensor]:
    """What :func:`dual_step` computes, in operations of their own."""
    moved = z + size * spmm(incidence, ahead)
    if cut is Cut.ROWS:
        moved = pull.pull(How.BALL, moved, radius)
    else:
        moved = torch.clamp(moved, -as_like(radius, z), as_like(radius, z))
    return moved, spmm(incidence.T, moved)


def _of_blocks(
    incidence: Operator, z: Tensor, ahead: Tensor, size: Tensor, radius: Tensor, cut: Cut
) -> tuple[Tensor, Tensor]:
    """The formula for signals (rows, blocks, channels) and numbers (groups of blocks,)."""
    step, far = (each_block(n, z.shape[1]) for n in (size, radius))
    moved = z + step * spmm(incidence, ahead.flatten(1)).view(z.shape)
    moved = pull.formula(How.BALL, moved, far) if cut is Cut.ROWS else torch.clamp(moved, -far, far)
    return moved, spmm(incidence.T, moved.flatten(1)).view(ahead.shape)


def each_block(number: Tensor, blocks: int) -> Tensor:
    """Numbers of groups of blocks as a column of numbers of blocks."""
    return number[:, None].expand(-1, blocks // number.shape[0]).reshape(-1, 1)


def _kernels(z: Tensor) -> Any:
    if z.device.type == "cpu" and not kernels.fused(z):
        from unspool.ops.kernels import dual_cpu

        return dual_cpu
    from unspool.ops.kernels import dual_cuda

    return dual_cuda


def _product(csr: Csr, z: Tensor, like: Tensor) -> Tensor:
    if not kernels.fused(z):
        return product(csr, z.flatten(1), torch.empty_like(like).flatten(1)).view(like.shape)
    from unspool.ops.kernels import cuda

    out = torch.empty_like(like)
    # Trap: the bits of a plain step depend on the width, and so on how many trials there are.
    cuda.blend(csr, z.flatten(1), out.view(out.shape[0], -1), None, None, None, None, 1)
    return out


def _dot(a: Tensor, b: Tensor, groups: int) -> Tensor:
    if not kernels.fused(a, b):
        return kernels.cpu.dot(a, b, groups)
    from unspool.ops.kernels import tiles_cuda

    return tiles_cuda.dot(a, b, groups)


@known_signature
class _DualStep(torch.autograd.Function):
    @staticmethod
    def forward(
        crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, crow_t: Tensor, col_t: Tensor, val_t: Tensor, hubs_t: Tensor,
        z: Tensor, ahead: Tensor, size: Tensor, radius: Tensor, cut: Cut,
    ) -> Any:  # fmt: skip
        z, ahead = z.contiguous(), ahead.contiguous()
        moved = _kernels(z).step(Csr(crow, col, val, hubs), z, ahead, size, radius, int(cut))
        return moved, _product(Csr(crow_t, col_t, val_t, hubs_t), moved, ahead)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.set_materialize_grads(
            False
        )  # the last dual variable has no gradient, and its zeros would be as large as itself
        ctx.save_for_backward(*inputs[:12])
        ctx.cut = inputs[12]

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        refuse_stacked_graph(in_dims[:8])
        trials = info.batch_size
        signals = (fold_signal(args[i], in_dims[i], trials) for i in (8, 9))
        numbers = (fold_shared(args[i], in_dims[i], trials) for i in (10, 11))
        found = _DualStep.apply(*args[:8], *signals, *numbers, args[12])
        return tuple(unfold_signal(one, trials) for one in found), (1, 1)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        along, down = grads
        if along is None and down is None:
            return (None,) * 13
        *graph, z, ahead, size, radius = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants to differentiate further
            shape = (z.shape[0], ahead.shape[0])
            incidence, cut = Operator(Csr(*graph[:4]), Csr(*graph[4:]), shape), ctx.cut
            given = (
                torch.zeros_like(z) if along is None else along,
                torch.zeros_like(ahead) if down is None else down,
            )
            back = torch.func.vjp(lambda z, h, s, r: _of_blocks(incidence, z, h, s, r, cut), z, ahead, size, radius)[1](
                given
            )
        else:
            wants = ctx.needs_input_grad[10]
            back = _DualStepBack.apply(*graph, along, down, z, ahead, size, radius, ctx.cut, wants)
        return (None,) * 8 + (*back, None)


@known_signature
class _DualStepBack(torch.autograd.Function):
    """The gradients alone; whoever differentiates further never comes here."""

    @staticmethod
    def forward(
        crow: Tensor, col: Tensor, val: Tensor, hubs: Tensor, crow_t: Tensor, col_t: Tensor, val_t: Tensor, hubs_t: Tensor,
        along: Tensor | None, down: Tensor | None, z: Tensor, ahead: Tensor, size: Tensor, radius: Tensor, cut: Cut,
        wants_slope: bool,
    ) -> Any:  # fmt: skip
        z, ahead = z.contiguous(), ahead.contiguous()
        along, down = (None if g is None else g.contiguous() for g in (along, down))
        csr = Csr(crow, col, val, hubs)
        back, lean = _kernels(z).step_backward(csr, along, down, z, ahead, size, radius, int(cut))
        pulled = _product(Csr(crow_t, col_t, val_t, hubs_t), back, ahead)
        groups = size.shape[0]
        # The gradient of σ is ⟨B H, G⟩ = ⟨H, Bᵀ G⟩, a sum over nodes.
        slope = _dot(ahead, pulled, groups) if wants_slope else torch.zeros_like(size)
        return back, pulled.mul_(each_block(size, z.shape[1])), slope, lean.view(radius.shape[0], -1).sum(1)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        refuse_stacked_graph(in_dims[:8])
        trials = info.batch_size
        signals = (None if args[i] is None else fold_signal(args[i], in_dims[i], trials) for i in range(8, 12))
        # Trap: what trials share has a gradient for each of them all the same, which vmap's caller adds up.
        numbers = (
            fold_shared(args[i][None].expand(trials, -1), 0, trials)
            if in_dims[i] is None
            else fold_shared(args[i], in_dims[i], trials)
            for i in (12, 13)
        )
        back, pulled, slope, lean = _DualStepBack.apply(*args[:8], *signals, *numbers, *args[14:])
        own = (slope.view(trials, -1), lean.view(trials, -1))
        return (unfold_signal(back, trials), unfold_signal(pulled, trials), *own), (1, 1, 0, 0)


def dual_step(
    incidence: Operator, z: Tensor, ahead: Tensor, size: Number, radius: Number, cut: Cut = Cut.ROWS
) -> tuple[Tensor, Tensor]:
    r"""Move dual variables of edges along the differences of a signal, and cut them: :math:`Z \leftarrow \Pi_\rho(Z + \sigma B H)`.

    Args:
        incidence: B, with two entries in every row.
        z: dual variables of shape (..., edges, channels).
        ahead: the signal H, of shape (..., nodes, channels).
        size: σ, a number.
        radius: ρ, a number of at least 0.
        cut: whether rows are cut to the length ρ, or entries to ±ρ.

    Returns:
        The new Z, and :math:`B^\top Z`.

    Example:
        >>> import torch, unspool as us
        >>> path = us.graph.path(3, normalise=us.Normalisation.NONE, loops=False)
        >>> z, pulled = dual_step(path.incidence(), torch.zeros(2, 1), torch.tensor([[0.0], [0.1], [5.0]]), 1.0, 0.5)
        >>> z.flatten().numpy().round(2), pulled.flatten().numpy().round(2)
        (array([-0.1, -0.5], dtype=float32), array([-0.1, -0.4,  0.5], dtype=float32))
    """
    numbers = (size, radius)
    plain = all(not isinstance(n, Tensor) or n.ndim == 0 for n in numbers) and z.shape[:-2] == ahead.shape[:-2]
    if not (plain and _taken(incidence, z, ahead)):
        return formula(incidence, z, ahead, size, radius, cut)
    wide = [x.movedim(-2, 0) for x in (z, ahead)]
    blocks = [x.reshape(x.shape[0], -1, x.shape[-1]) for x in wide]
    own = [as_like(n, z).reshape(1) for n in numbers]
    found = _DualStep.apply(*incidence.forward, *incidence.transpose, *blocks, *own, cut)
    moved, pulled = (one.view(like.shape).movedim(0, -2) for one, like in zip(found, wide, strict=True))
    return moved, pulled


def _taken(incidence: Operator, z: Tensor, ahead: Tensor) -> bool:
    """Whether shapes and kinds are those of the op."""
    signals = (z, ahead, incidence.forward.val)
    whole = z.ndim >= 2 and z.numel() > 0 and z.shape[-2:] == (incidence.shape[0], ahead.shape[-1])
    return whole and z.shape[-1] <= _WIDEST and kernels.one_pass(*signals)
