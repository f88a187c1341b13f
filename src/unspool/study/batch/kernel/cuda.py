"""The steps of a fast batch on an NVIDIA GPU: each function launches one kernel over all trials."""

from __future__ import annotations

import math
from typing import Any

import triton
from torch import Tensor

from unspool.ops.kernels import channels_cuda as channels
from unspool.ops.kernels import cuda as sparse
from unspool.ops.kernels import each_hop_cuda as apart
from unspool.ops.kernels import features_cuda as first
from unspool.ops.kernels import rows_cuda as pulled
from unspool.ops.kernels import wide_cuda as wide
from unspool.study.batch.kernel.blueprints import Middle, Mixer
from unspool.study.batch.kernel.state import PIECES, State

#: Products of small matrices: three passes of the matrix units, as exact as single precision.
PRECISION = "tf32x3"
#: Entries in flight and warps of the long kernels, measured on an H200.
TUNED: dict[str, dict[str, int]] = {
    "first": {"UNROLL": 4, "num_warps": 2},
    "first_backward": {"UNROLL": 2, "num_warps": 4},
    "channels_backward": {"ROWS": 32, "num_warps": 2},
    "series_backward": {"ROWS": 32, "num_warps": 4},
}
_ADAM = {"BETA1": 0.9, "BETA2": 0.999, "EPS": 1e-8}


def _tile(width: int) -> int:
    return max(triton.next_power_of_2(width), 16)


def _each(s: State, rows: int) -> int:
    """Nodes of a piece: whole tiles."""
    return triton.cdiv(triton.cdiv(s.nodes, PIECES), rows) * rows


def hash_masks(s: State, back: bool) -> None:
    """Which entries of X survive, for every trial."""
    site = s.config.sites[0]
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
    across = s.channels if s.config.middle is Middle.LINEAR else s.width
    first.first_plain[(x.start.numel(), s.slots)](
        x.rows, x.start, x.length, x.index, x.value, s.bits, x.steps, s.weight, s.features, s.scale[0], out, s.slots,
        WIDTH=s.width, TILE=_tile(across), OUT=across, NETS=nets, **TUNED["first"],
    )  # fmt: skip


def _ending(s: State) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What both forms of the perceptron's second half take."""
    hidden = s.config.sites[1]
    assert hidden is not None
    at, series = s.layout, s.config.middle is Middle.SERIES
    arguments = (
        s.small, at.size, at.at("b1"), at.at("w2"), at.at("b2"), s.key[1], s.epoch, s.threshold[1], s.scale[1], s.key[2], s.threshold[2],
        s.scale[2], s.coefficients, s.hidden, s.z, s.pages, s.classes, s.hops, s.depth,
    )  # fmt: skip
    flags = {
        "WIDTH": s.width, "TILE": _tile(s.width), "CHANNELS": s.channels, "WIDE": 16, "CALLS2": hidden.calls, "SITE2": hidden.place,
        "HAS_B1": at.has("b1"), "HAS_B2": at.has("b2"), "SERIES": series, "EACH": s.config.each_hop,
        "PRECISION": PRECISION,
    }  # fmt: skip
    return arguments, flags


def first_perceptron(s: State) -> None:
    """The perceptron of all trials, with z cₖ for the hops of a series."""
    x, (arguments, flags) = s.shared.by_node, _ending(s)
    first.first_perceptron[(x.start.numel(), s.slots)](
        x.rows, x.start, x.length, x.index, x.value, s.bits, x.steps, s.weight, s.features, s.scale[0], s.nodes, s.slots,
        *arguments, **flags, **TUNED["first"],
    )  # fmt: skip


def middle(s: State, signal: Tensor) -> None:
    """The second half of the perceptron on a signal that came from a hop."""
    arguments, flags = _ending(s)
    first.middle[(triton.cdiv(s.nodes, 32), s.slots)](signal, s.nodes, s.slots, *arguments, **flags)


def hop(
    csr: Any, y: Tensor, out: Tensor, base: Tensor | None = None, scale: float = 1.0, lagged: Tensor | None = None
) -> None:
    """out = scale A y + base − lagged, all trials side by side."""
    rows = y.shape[0]
    flat, late = (None if one is None else one.view(rows, -1) for one in (base, lagged))
    # Trap: without a fixed number the order of sums, and so the last bits of a trial, depend on how many trials there are.
    sparse.step(csr, y.view(rows, -1), out.view(rows, -1), scale, flat, None, late, neighbours=2)


def pull(s: State, layer: int, y: Tensor) -> None:
    """Rows towards those of the perceptron, in place; what they were away by is kept for the way back."""
    rows = s.nodes * s.slots
    pulled.pull[(triton.cdiv(rows, 128),)](
        y, s.z, s.radius, s.inside[layer], rows, s.slots, CHANNELS=s.channels, ROWS=128
    )


def pull_backward(s: State, layer: int, grad: Tensor) -> None:
    """The gradient before the pull, and what goes to the perceptron past it."""
    rows = s.nodes * s.slots
    pulled.pull_backward[(triton.cdiv(rows, 128),)](
        grad, s.inside[layer], s.radius, s.moved, s.total, rows, s.slots,
        CHANNELS=s.channels, ROWS=128, FIRST=layer + 1 == s.config.depth,
    )  # fmt: skip


def gates(s: State, out: Tensor) -> None:
    """DAGNN's weighted sum of hops."""
    channels.gates[(triton.cdiv(s.nodes, 64), s.slots)](
        s.pages, s.small, s.layout.size, s.layout.at("gate"), s.layout.at("gate_bias"), out, s.nodes, s.slots, s.config.depth, s.classes,
        CHANNELS=s.channels, NODES=64,
    )  # fmt: skip


def gates_backward(s: State) -> None:
    """The gradients of all hops and of the gate."""
    channels.gates_backward[(s.slots,)](
        s.pages, s.grad, s.small, s.layout.size, s.layout.at("gate"), s.layout.at("gate_bias"), s.partial[PIECES], s.which, s.train, s.train.shape[1], s.sweep,
        s.nodes, s.slots, s.config.depth, s.classes, CHANNELS=s.channels, NODES=64,
    )  # fmt: skip


def losses(s: State, learnt: Tensor, seen: Tensor) -> None:
    """Training loss with its gradient, and the numbers of the evaluation."""
    channels.losses[(s.slots,)](
        learnt, seen, learnt.stride(1), s.grad, s.which, s.train, s.train.shape[1], s.valid, s.valid.shape[1], s.test, s.test.shape[1], s.shared.labels, s.small,
        s.layout.size, s.layout.at("last"), s.partial[PIECES], s.now, s.ring, s.turn, s.slots, s.classes,
        CHANNELS=s.channels, BIAS=s.layout.has("last"), NODES=64,
    )  # fmt: skip


def channels_backward(s: State, dz: Tensor) -> None:
    """From the class channels back to the hidden layer, with the gradients of everything between."""
    at, series = s.layout, s.config.middle is Middle.SERIES
    side_by_side = s.config.middle is Middle.CONVOLUTION
    rows, warps = TUNED["channels_backward"]["ROWS"], TUNED["channels_backward"]["num_warps"]
    each = _each(s, rows)
    shape = {"CHANNELS": s.channels, "WIDE": 16, "ROWS": rows, "PRECISION": PRECISION, "num_warps": warps}
    row_stride, trial_stride = (s.slots * s.width, s.width) if side_by_side else (s.width, s.nodes * s.width)
    channels.channels_backward[(PIECES, s.slots)](
        s.sweep, dz, s.hidden, s.grad_hidden, s.coefficients, s.small, s.partial, at.size, at.at("b1"), at.at("w2"), at.at("b2"),
        s.key[2], s.epoch, s.threshold[2], s.scale[2], s.scale[1], s.nodes, s.slots, s.classes, s.hops, each, row_stride, trial_stride, s.depth,
        WIDTH=s.width, TILE=_tile(s.width), HAS_B1=at.has("b1"), HAS_B2=at.has("b2"), SERIES=series,
        EACH=s.config.each_hop, **shape,
    )  # fmt: skip
    if series and s.config.mixer is not Mixer.FIXED:
        shape.update(TUNED["series_backward"])
        each = _each(s, shape["ROWS"])
        if s.config.each_hop:
            apart.each_backward[(s.hops, PIECES, s.slots)](
                s.sweep, s.z, s.key[2], s.epoch, s.threshold[2], s.scale[2], s.depth, s.partial_coefficients, s.nodes, s.slots, s.hops,
                each, **shape,
            )  # fmt: skip
            return
        channels.series_backward[(triton.cdiv(s.hops * s.channels, 64), PIECES, s.slots)](
            s.sweep, s.z, s.partial_coefficients, s.nodes, s.slots, s.hops, each, **shape
        )


def first_backward(s: State, signal: Tensor, row_stride: int, trial_stride: int) -> None:
    """The gradient of the first layer's weights, and Adam's step on them."""
    x = s.shared.by_feature
    learn = (s.weight, s.mean, s.square, s.features, s.step_size, s.root, s.decay)
    flags = {"WIDTH": s.width, "TILE": _tile(s.width) if s.width > 8 else 8, **_ADAM}
    pieces = s.pieces.shape[1]
    first.first_backward[(x.start.numel(), s.slots)](
        x.rows, x.start, x.length, x.index, x.value, s.bits_back, x.steps, s.scale[0], signal, row_stride, trial_stride, *learn, s.pieces,
        pieces, DROPS=s.nets == 2, **flags, **TUNED["first_backward"],
    )  # fmt: skip
    count = x.long.numel()
    if count:
        first.first_combine[(triton.cdiv(count, 32), s.slots)](
            x.long, x.long_start, x.long_count, count, s.pieces, pieces, *learn, **flags
        )


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
        CHANNELS=s.channels, MATRIX=s.config.mixer is Mixer.MATRICES,
    )  # fmt: skip


def mixture_backward(s: State) -> None:
    """Gradients of the learnt parameters from those of the coefficients."""
    at = s.layout
    channels.mixture_backward[(s.hops, s.slots)](
        s.partial_coefficients, PIECES, s.small, at.size, at.at("gamma"), at.at("zeta"), at.at("weight"), s.partial[PIECES], s.hops,
        s.depth, s.slots, s.classes, CHANNELS=s.channels, MATRIX=s.config.mixer is Mixer.MATRICES,
    )  # fmt: skip


def begin_step(s: State) -> None:
    """Record the training loss and prepare Adam's corrections."""
    block = 128
    channels.begin_step[(triton.cdiv(s.slots, block),)](
        s.epoch, s.rate, s.step_size, s.root, s.now, s.ring, s.turn, s.slots, BLOCK=block, LOG1=math.log(0.9), LOG2=math.log(0.999),
    )  # fmt: skip


# -- hidden channels: JKNet and GCNII ----------------------------------------------------------------------------------


def first_hidden(s: State) -> None:
    """ReLU(X W + b), and what the hops begin with."""
    x, at, jumps = s.shared.by_node, s.layout, s.config.middle is Middle.JUMPS
    site = s.config.sites[1]
    assert site is not None
    wide.first_hidden[(x.start.numel(), s.slots)](
        x.rows, x.start, x.length, x.index, x.value, s.bits, x.steps, s.weight, s.features, s.scale[0], s.nodes, s.slots, s.small, at.size,
        at.at("b1"), s.key[1], s.epoch, s.threshold[1], s.scale[1], s.matrices, s.begin, s.signals[0], s.pages, s.hops,
        WIDTH=s.width, CHANNELS=s.channels, CALLS=site.calls, SERIES=jumps, PRECISION=PRECISION, **TUNED["first"],
    )  # fmt: skip


def jump_matrices(s: State) -> None:
    """The matrices of all hops, times the head."""
    at = s.layout
    wide.jump_matrices[(s.hops, s.slots)](
        s.small, at.size, at.at("hops"), at.at("head"), s.matrices, s.hops, s.depth, s.classes,
        WIDTH=s.width, CHANNELS=s.channels, PRECISION=PRECISION,
    )  # fmt: skip


def jump_out(s: State, y: Tensor) -> None:
    """Outputs of the training nodes."""
    at, count = s.layout, s.train.shape[1]
    wide.jump_out[(triton.cdiv(count, 32), s.slots)](
        s.signals, s.small, at.size, at.at("hops"), at.at("head"), s.which, s.train, count, s.key[2], s.epoch, s.threshold[2], s.scale[2],
        s.kept, y, s.nodes, s.slots, s.depth, s.classes, WIDTH=s.width, CHANNELS=s.channels, PRECISION=PRECISION,
    )  # fmt: skip


def jump_back(s: State) -> None:
    """Gradients of head and matrices, and of all hops at the training nodes."""
    at, count = s.layout, s.train.shape[1]
    wide.jump_back[(s.hops, s.slots)](
        s.signals, s.grad, s.small, at.size, at.at("hops"), at.at("head"), s.partial[PIECES], s.which, s.train, count, s.key[2], s.epoch,
        s.threshold[2], s.scale[2], s.kept, s.back_rows, s.nodes, s.slots, s.hops, s.depth, s.classes,
        WIDTH=s.width, CHANNELS=s.channels, PRECISION=PRECISION,
    )  # fmt: skip


def add_rows(s: State, y: Tensor, rows: Tensor) -> None:
    """Add the rows of all trials to a signal at their training nodes."""
    count = s.train.shape[1]
    wide.add_rows[(triton.cdiv(count, 32), s.slots)](y, rows, s.which, s.train, count, s.slots, WIDTH=s.width)


def hidden_backward(s: State, signal: Tensor) -> None:
    """Back through dropout and ReLU of the first layer, in place."""
    deep = s.config.middle is Middle.DEEP
    wide.hidden_backward[(PIECES, s.slots)](
        signal, s.total, s.begin, s.signals[0], s.scale[1], s.partial, s.layout.size, s.layout.at("b1"), s.nodes, s.slots, _each(s, 32),
        s.width * (2 if deep else 1), WIDTH=s.width, BOTH=deep, ROWS=32,
    )  # fmt: skip


def _after(s: State, layer: int) -> tuple[int, int, int]:
    """Which dropout follows a layer: its site, the calls of that site, and which of them."""
    between = s.config.sites[1]
    assert between is not None
    return (2, 1, 0) if layer + 1 == s.config.depth else (1, between.calls, layer + 1)


def layer_forward(s: State, layer: int, moved: Tensor) -> None:
    """One layer of GCNII after its hop."""
    site, calls, place = _after(s, layer)
    wide.layer_forward[(triton.cdiv(s.nodes, 64), s.slots)](
        moved, s.begin, s.small, s.layout.size, s.layout.at("hops"), layer, s.config.depth, s.leans, s.teleport, s.key[site], s.epoch,
        s.threshold[site], s.scale[site], calls, place, s.inside[layer], s.signals[layer + 1], s.nodes, s.slots,
        WIDTH=s.width, PRECISION=PRECISION,
    )  # fmt: skip


def layer_backward(s: State, layer: int, grad: Tensor, moved: Tensor) -> None:
    """Back through one layer of GCNII, to before its hop."""
    wide.layer_backward[(PIECES, s.slots)](
        grad, s.signals[layer + 1], s.inside[layer], s.small, s.layout.size, s.layout.at("hops"), layer, s.config.depth, s.leans, s.teleport,
        s.scale[_after(s, layer)[0]], s.partial, moved, s.total, s.nodes, s.slots, _each(s, 32),
        WIDTH=s.width, ROWS=32, FIRST=layer + 1 == s.config.depth, PRECISION=PRECISION,
    )  # fmt: skip


def head_forward(s: State, y: Tensor) -> None:
    """The last layer."""
    wide.head_forward[(triton.cdiv(s.nodes, 64), s.slots)](
        s.signals[s.config.depth], s.small, s.layout.size, s.layout.at("head"), y, s.nodes, s.slots, s.classes,
        WIDTH=s.width, CHANNELS=s.channels, PRECISION=PRECISION,
    )  # fmt: skip


def head_backward(s: State, back: Tensor) -> None:
    """Gradients of the last layer and of its input."""
    wide.head_backward[(s.slots,)](
        s.grad, s.signals[s.config.depth], s.small, s.layout.size, s.layout.at("head"), s.partial[PIECES], s.which, s.train,
        s.train.shape[1], back, s.slots, s.classes, WIDTH=s.width, CHANNELS=s.channels, PRECISION=PRECISION,
    )  # fmt: skip
