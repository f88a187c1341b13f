"""The steps of a fast pack on an NVIDIA GPU: each function launches one kernel over all trials."""

from __future__ import annotations

import math
from typing import Any

import triton
from torch import Tensor

from unspool.ops.kernels import cuda as sparse
from unspool.ops.kernels import packed_channels as channels
from unspool.ops.kernels import packed_features as first
from unspool.study.fast.blueprint import Middle, Mixer
from unspool.study.fast.state import PIECES, State

#: Products of small matrices: three passes of the matrix units, as exact as single precision.
PRECISION = "tf32x3"
_ADAM = {"BETA1": 0.9, "BETA2": 0.999, "EPS": 1e-8}


def _tile(width: int) -> int:
    return max(triton.next_power_of_2(width), 16)


def hash_masks(s: State, back: bool) -> None:
    """Which entries of X survive, for every trial."""
    site = s.plan.sites[0]
    assert site is not None
    x, bits = (s.shared.by_feature, s.bits_back) if back else (s.shared.by_node, s.bits)
    words = 16
    if x.steps:
        first.masks[(triton.cdiv(x.steps, words), s.slots)](
            x.row_mix, x.column_mix, x.shift, s.key[0], s.epoch, s.threshold[0], bits, x.steps,
            CALLS=site.calls, SITE=site.place, WORDS=words,
        )  # fmt: skip


def first_plain(s: State, out: Tensor) -> None:
    """X W for all trials, in both modes if there are two."""
    x, nets = s.shared.by_node, s.nets
    wide = s.channels if s.plan.middle is Middle.LINEAR else s.width
    first.first_plain[(x.start.numel(), s.slots)](
        x.rows, x.start, x.length, x.index, x.value, s.bits, x.steps, s.weight, s.features, s.scale[0], out, s.slots,
        WIDTH=s.width, TILE=_tile(wide), OUT=wide, NETS=nets,
    )  # fmt: skip


def _ending(s: State) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What both forms of the perceptron's second half take."""
    hidden = s.plan.sites[1]
    assert hidden is not None
    at, series = s.layout, s.plan.middle is Middle.SERIES
    arguments = (
        s.small, at.size, at.at("b1"), at.at("w2"), at.at("b2"), s.key[1], s.epoch, s.threshold[1], s.scale[1], s.key[2], s.threshold[2],
        s.scale[2], s.coefficients, s.hidden, s.z, s.pages, s.classes, s.hops,
    )  # fmt: skip
    flags = {
        "WIDTH": s.width, "TILE": _tile(s.width), "CHANNELS": s.channels, "WIDE": 16, "CALLS2": hidden.calls, "SITE2": hidden.place,
        "HAS_B1": at.has("b1"), "HAS_B2": at.has("b2"), "SERIES": series, "PRECISION": PRECISION,
    }  # fmt: skip
    return arguments, flags


def first_perceptron(s: State) -> None:
    """The perceptron of all trials, with z cₖ for the hops of a series."""
    x, (arguments, flags) = s.shared.by_node, _ending(s)
    first.first_perceptron[(x.start.numel(), s.slots)](
        x.rows, x.start, x.length, x.index, x.value, s.bits, x.steps, s.weight, s.features, s.scale[0], s.nodes, s.slots,
        *arguments, **flags,
    )  # fmt: skip


def middle(s: State, signal: Tensor) -> None:
    """The second half of the perceptron on a signal that came from a hop."""
    arguments, flags = _ending(s)
    first.middle[(triton.cdiv(s.nodes, 32), s.slots)](signal, s.nodes, s.slots, *arguments, **flags)


def hop(csr: Any, y: Tensor, out: Tensor, base: Tensor | None = None) -> None:
    """out = A y + base, all trials side by side."""
    rows = y.shape[0]
    sparse.step(csr, y.view(rows, -1), out.view(rows, -1), 1.0, None if base is None else base.view(rows, -1), None, None)


def gates(s: State, out: Tensor) -> None:
    """DAGNN's weighted sum of hops."""
    channels.gates[(triton.cdiv(s.nodes, 64), s.slots)](
        s.pages, s.small, s.layout.size, s.layout.at("gate"), out, s.nodes, s.slots, s.plan.depth, s.classes + 1,
        CHANNELS=s.channels, NODES=64,
    )  # fmt: skip


def gates_backward(s: State) -> None:
    """The gradients of all hops and of the gate."""
    channels.gates_backward[(s.slots,)](
        s.pages, s.grad, s.small, s.layout.size, s.layout.at("gate"), s.partial[PIECES], s.which, s.train, s.train.shape[1], s.sweep,
        s.nodes, s.slots, s.plan.depth, s.classes + 1, CHANNELS=s.channels, NODES=64,
    )  # fmt: skip


def losses(s: State, y: Tensor) -> None:
    """Training loss with its gradient, and the numbers of the evaluation."""
    channels.losses[(s.slots,)](
        y, s.grad, s.which, s.train, s.train.shape[1], s.valid, s.valid.shape[1], s.test, s.test.shape[1], s.shared.labels, s.small,
        s.layout.size, s.layout.at("last"), s.partial[PIECES], s.now, s.ring, s.turn, s.slots, s.classes,
        CHANNELS=s.channels, NETS=s.nets, BIAS=s.layout.has("last"), NODES=64,
    )  # fmt: skip


def channels_backward(s: State, dz: Tensor) -> None:
    """From the class channels back to the hidden layer, with the gradients of everything between."""
    at, series = s.layout, s.plan.middle is Middle.SERIES
    wide = s.plan.middle is Middle.CONVOLUTION
    rows = 32
    each = triton.cdiv(triton.cdiv(s.nodes, PIECES), rows) * rows
    row_stride, trial_stride = (s.slots * s.width, s.width) if wide else (s.width, s.nodes * s.width)
    channels.channels_backward[(PIECES, s.slots)](
        s.sweep, dz, s.z, s.hidden, s.grad_hidden, s.coefficients, s.small, s.partial, s.partial_coefficients, at.size, at.at("b1"),
        at.at("w2"), at.at("b2"), s.key[2], s.epoch, s.threshold[2], s.scale[2], s.scale[1], s.nodes, s.slots, s.classes, s.hops, each,
        row_stride, trial_stride,
        WIDTH=s.width, TILE=_tile(s.width), CHANNELS=s.channels, WIDE=16, COLUMNS=_tile(s.hops * s.channels), HAS_B1=at.has("b1"),
        HAS_B2=at.has("b2"), SERIES=series, ROWS=rows, PRECISION=PRECISION,
    )  # fmt: skip


def first_backward(s: State, signal: Tensor, row_stride: int, trial_stride: int) -> None:
    """The gradient of the first layer's weights, and Adam's step on them."""
    x = s.shared.by_feature
    first.first_backward[(x.start.numel(), s.slots)](
        x.rows, x.start, x.length, x.index, x.value, s.bits_back, x.steps, s.scale[0], signal, row_stride, trial_stride, s.weight,
        s.mean, s.square, s.features, s.step_size, s.root, s.decay,
        WIDTH=s.width, TILE=_tile(s.width) if s.width > 8 else 8, DROPS=s.nets == 2, **_ADAM,
    )  # fmt: skip


def small_adam(s: State) -> None:
    """Adam on all other parameters."""
    block = 256
    channels.small_adam[(triton.cdiv(s.layout.size, block), s.slots)](
        s.small, s.small_mean, s.small_square, s.partial, PIECES + 1, s.partial.stride(0), s.group, s.small_decay, s.small_decay.shape[1],
        s.step_size, s.root, s.layout.size, BLOCK=block, **_ADAM,
    )  # fmt: skip


def mixture(s: State) -> None:
    """Hop coefficients from the learnt parameters."""
    at = s.layout
    channels.mixture[(s.hops, s.slots)](
        s.small, at.size, at.at("gamma"), at.at("zeta"), at.at("weight"), s.coefficients, s.hops, s.depth, s.classes,
        CHANNELS=s.channels, MATRIX=s.plan.mixer is Mixer.MATRICES,
    )  # fmt: skip


def mixture_backward(s: State) -> None:
    """Gradients of the learnt parameters from those of the coefficients."""
    at = s.layout
    channels.mixture_backward[(s.hops, s.slots)](
        s.partial_coefficients, PIECES, s.small, at.size, at.at("gamma"), at.at("zeta"), at.at("weight"), s.partial[PIECES], s.hops,
        s.depth, s.slots, s.classes, CHANNELS=s.channels, MATRIX=s.plan.mixer is Mixer.MATRICES,
    )  # fmt: skip


def begin_step(s: State) -> None:
    """Record the training loss and prepare Adam's corrections."""
    block = 128
    channels.begin_step[(triton.cdiv(s.slots, block),)](
        s.epoch, s.rate, s.step_size, s.root, s.now, s.ring, s.turn, s.slots, BLOCK=block, LOG1=math.log(0.9), LOG2=math.log(0.999),
    )  # fmt: skip


