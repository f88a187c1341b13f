"""Class channels of many trials on an NVIDIA GPU: the loss, the way back to the hidden layer, and Adam for the small parameters.

Sums over nodes are taken in pieces whose partial sums are added later in a fixed order, so results are bitwise repeatable and do
not depend on how many trials there are.
"""

from __future__ import annotations

import triton
import triton.language as tl

from unspool.ops.kernels.each_hop_cuda import each_gradient
from unspool.ops.kernels.features_cuda import adam_step, in_64, site_word, survives


@triton.jit
def _logits(y, stride, node, there, trial, trials, bias, classes, CHANNELS: tl.constexpr, BIAS: tl.constexpr):
    """Outputs of some nodes, −inf beyond the last class."""
    channel = tl.arange(0, CHANNELS)
    place = ((node.to(tl.int64) * trials + trial) * stride)[:, None] + channel[None, :]
    out = tl.load(y + place, mask=there[:, None] & (channel < classes)[None, :], other=0.0)
    if BIAS:
        out += tl.load(bias + channel, mask=channel < classes, other=0.0)[None, :]
    return tl.where((channel < classes)[None, :], out, -float("inf"))


@triton.jit
def _surprise(logits, label, there, CHANNELS: tl.constexpr):
    """Cross-entropy of each node, and its softmax."""
    top = tl.max(logits, axis=1)
    powers = tl.exp(logits - top[:, None])
    total = tl.sum(powers, axis=1)
    hit = tl.arange(0, CHANNELS)[None, :] == label[:, None]
    own = tl.sum(tl.where(hit, logits, 0.0), axis=1)
    return tl.where(there, tl.log(total) + top - own, 0.0), powers / total[:, None], hit


@triton.jit
def _look(
    y, stride, ids, count, labels, trial, trials, bias, classes, CHANNELS: tl.constexpr, BIAS: tl.constexpr, NODES: tl.constexpr
):  # fmt: skip
    """Sum of the losses and number of hits over a set of nodes."""
    loss = tl.zeros([NODES], dtype=tl.float32)
    hits = tl.zeros([NODES], dtype=tl.float32)
    for begin in range(0, count, NODES):
        place = begin + tl.arange(0, NODES)
        there = place < count
        node = tl.load(ids + place, mask=there, other=0)
        label = tl.load(labels + node, mask=there, other=0)
        logits = _logits(y, stride, node, there, trial, trials, bias, classes, CHANNELS, BIAS)
        each, _, _ = _surprise(logits, label, there, CHANNELS)
        loss += each
        best = tl.argmax(logits, axis=1, tie_break_left=True)
        # Trap: where an output is NaN no comparison holds, and the first class is not a prediction.
        hits += tl.where(there & (best == label) & (each < float("inf")), 1.0, 0.0)
    return tl.sum(loss, axis=0), tl.sum(hits, axis=0)


@triton.jit(do_not_specialize=["train_count", "valid_count", "test_count", "trials", "classes"])
def losses(
    learnt, seen, stride, grad, which, train, train_count, valid, valid_count, test, test_count, labels, small, size, at_bias, partial, now, ring, turn,
    trials, classes,
    CHANNELS: tl.constexpr, BIAS: tl.constexpr, NODES: tl.constexpr,
):  # fmt: skip
    """Training loss and its gradient at the training nodes; validation loss, validation and test accuracy. One trial a program."""
    trial = tl.program_id(0)
    split = tl.load(which + trial)
    bias = small + trial.to(tl.int64) * size + at_bias
    channel = tl.arange(0, CHANNELS)
    loss = tl.zeros([NODES], dtype=tl.float32)
    lean = tl.zeros([CHANNELS], dtype=tl.float32)
    for begin in range(0, train_count, NODES):
        place = begin + tl.arange(0, NODES)
        there = place < train_count
        node = tl.load(train + split * train_count + place, mask=there, other=0)
        label = tl.load(labels + node, mask=there, other=0)
        logits = _logits(learnt, stride, node, there, trial, trials, bias, classes, CHANNELS, BIAS)
        each, share, hit = _surprise(logits, label, there, CHANNELS)
        loss += each
        back = (share - tl.where(hit, 1.0, 0.0)) / train_count
        target = (node.to(tl.int64) * trials + trial)[:, None] * CHANNELS + channel[None, :]
        tl.store(grad + target, back, mask=there[:, None])
        lean += tl.sum(tl.where(there[:, None], back, 0.0), axis=0)
    if BIAS:
        tl.store(partial + trial.to(tl.int64) * size + at_bias + channel, lean, mask=channel < classes)
    tl.store(now + trial, tl.sum(loss, axis=0) / train_count)
    row = ring + (tl.load(turn).to(tl.int64) * trials + trial) * 4
    total, hits = _look(
        seen,
        stride,
        valid + split * valid_count,
        valid_count,
        labels,
        trial,
        trials,
        bias,
        classes,
        CHANNELS,
        BIAS,
        NODES,
    )
    tl.store(row + 1, total / valid_count)
    tl.store(row + 2, hits / valid_count)
    total, hits = _look(
        seen, stride, test + split * test_count, test_count, labels, trial, trials, bias, classes, CHANNELS, BIAS, NODES
    )
    tl.store(row + 3, tl.where(test_count > 0, hits / test_count, float("nan")))


@triton.jit(do_not_specialize=["nodes", "trials", "hops", "rows_each"])
def series_backward(
    sweep, z, partial_coefficients, nodes, trials, hops, rows_each,
    CHANNELS: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dcₖ = zᵀ Uₖ for 64 columns (k, channel) of one trial, over a stretch of nodes."""
    piece, trial = tl.program_id(1), tl.program_id(2)
    column, channel = tl.program_id(0) * 64 + tl.arange(0, 64), tl.arange(0, WIDE)
    hop, inner = column // CHANNELS, column % CHANNELS
    inside = column < hops * CHANNELS
    back = tl.zeros([64, WIDE], dtype=tl.float32)
    for begin in range(piece * rows_each, tl.minimum((piece + 1) * rows_each, nodes), ROWS):
        node = begin + tl.arange(0, ROWS)
        there = (node < nodes) & (node < (piece + 1) * rows_each)
        place = ((hop.to(tl.int64)[:, None] * nodes + node[None, :]) * trials + trial) * CHANNELS + inner[:, None]
        u = tl.load(sweep + place, mask=there[None, :] & inside[:, None], other=0.0)
        place = (node.to(tl.int64)[:, None] * trials + trial) * (2 * CHANNELS) + channel[None, :]
        signal = tl.load(z + place, mask=there[:, None] & (channel < CHANNELS)[None, :], other=0.0)
        back += tl.dot(u, signal, input_precision=PRECISION)
    at = (piece.to(tl.int64) * trials + trial) * hops * CHANNELS * CHANNELS
    at = at + hop[:, None] * CHANNELS * CHANNELS + channel[None, :] * CHANNELS + inner[:, None]
    tl.store(partial_coefficients + at, back, mask=inside[:, None] & (channel < CHANNELS)[None, :])


@triton.jit
def _series_gradient(
    sweep, coefficients, node, there, trial, trials, nodes, hops,
    CHANNELS: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dz = Σ Uₖ cₖᵀ for some nodes of one trial."""
    channel = tl.arange(0, WIDE)
    own = coefficients + trial.to(tl.int64) * hops * CHANNELS * CHANNELS
    dz = tl.zeros([ROWS, WIDE], dtype=tl.float32)
    for begin in range(0, hops * CHANNELS, 64):
        column = begin + tl.arange(0, 64)
        hop, inner = column // CHANNELS, column % CHANNELS
        inside = column < hops * CHANNELS
        place = ((hop.to(tl.int64)[None, :] * nodes + node[:, None]) * trials + trial) * CHANNELS + inner[None, :]
        u = tl.load(sweep + place, mask=there[:, None] & inside[None, :], other=0.0)
        place = hop[:, None] * CHANNELS * CHANNELS + channel[None, :] * CHANNELS + inner[:, None]
        c = tl.load(own + place, mask=(channel < CHANNELS)[None, :] & inside[:, None], other=0.0)
        dz += tl.dot(u, c, input_precision=PRECISION)
    return dz


@triton.jit(do_not_specialize=["nodes", "trials", "classes", "hops", "rows_each"])
def channels_backward(
    sweep, series_grad, hidden, grad_hidden, coefficients, small, partial, size, at_b1, at_w2, at_b2,
    key3, epoch, threshold3, scale3, scale2, nodes, trials, classes, hops, rows_each, row_stride, trial_stride, depth,
    WIDTH: tl.constexpr, TILE: tl.constexpr, CHANNELS: tl.constexpr, WIDE: tl.constexpr, HAS_B1: tl.constexpr, HAS_B2: tl.constexpr,
    SERIES: tl.constexpr, EACH: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """From the gradient of z (or the sweep Uₖ that makes it) to that of the hidden layer, for one stretch of nodes and one trial.

    dz = Σ Uₖ cₖᵀ, dW₂ = hᵀ dz, dh = dz W₂ᵀ where h survived and was positive.
    """
    piece, trial = tl.program_id(0), tl.program_id(1)
    col, channel = tl.arange(0, TILE), tl.arange(0, WIDE)
    own = small + trial.to(tl.int64) * size
    w2 = tl.load(
        own + at_w2 + col[None, :] * classes + channel[:, None],
        mask=(col < WIDTH)[None, :] & (channel < classes)[:, None],
        other=0.0,
    )  # (channel, hidden)
    back_w2 = tl.zeros([TILE, WIDE], dtype=tl.float32)
    back_b1 = tl.zeros([TILE], dtype=tl.float32)
    back_b2 = tl.zeros([WIDE], dtype=tl.float32)
    word = site_word(tl.load(key3 + trial), tl.load(epoch + trial))
    threshold = tl.load(threshold3 + trial)
    for begin in range(piece * rows_each, tl.minimum((piece + 1) * rows_each, nodes), ROWS):
        node = begin + tl.arange(0, ROWS)
        there = (node < nodes) & (node < (piece + 1) * rows_each)
        if EACH:
            dz = each_gradient(
                sweep, coefficients, key3, epoch, threshold3, scale3, depth, node, there, trial, trials, nodes, hops,
                CHANNELS, WIDE, ROWS, PRECISION,
            )  # fmt: skip
        elif SERIES:
            dz = _series_gradient(
                sweep, coefficients, node, there, trial, trials, nodes, hops, CHANNELS, WIDE, ROWS, PRECISION
            )
        else:
            place = (node.to(tl.int64)[:, None] * trials + trial) * CHANNELS + channel[None, :]
            dz = tl.load(series_grad + place, mask=there[:, None] & (channel < CHANNELS)[None, :], other=0.0)
        if not EACH:
            kept = survives(node[:, None], channel[None, :], word, threshold)
            dz = tl.where(kept, dz * tl.load(scale3 + trial), 0.0)
        place = trial.to(tl.int64) * nodes * WIDTH + node[:, None] * WIDTH + col[None, :]
        mask = there[:, None] & (col < WIDTH)[None, :]
        h = tl.load(hidden + place, mask=mask, other=0.0)
        back_w2 += tl.dot(tl.trans(h), dz, input_precision=PRECISION)
        dh = tl.dot(dz, w2, input_precision=PRECISION)
        dh = tl.where(h > 0, dh * tl.load(scale2 + trial), 0.0)
        target = node.to(tl.int64)[:, None] * row_stride + trial.to(tl.int64) * trial_stride + col[None, :]
        tl.store(grad_hidden + target, dh, mask=mask)
        back_b1 += tl.sum(dh, axis=0)
        back_b2 += tl.sum(dz, axis=0)
    mine = partial + (piece.to(tl.int64) * trials + trial) * size
    tl.store(
        mine + at_w2 + col[:, None] * classes + channel[None, :],
        back_w2,
        mask=(col < WIDTH)[:, None] & (channel < classes)[None, :],
    )
    if HAS_B1:
        tl.store(mine + at_b1 + col, back_b1, mask=col < WIDTH)
    if HAS_B2:
        tl.store(mine + at_b2 + channel, back_b2, mask=channel < classes)


@triton.jit(do_not_specialize=["pieces", "groups"])
def small_adam(
    weight, mean, square, partial, pieces, stride, group, decay, groups, step_size, root, size,
    BLOCK: tl.constexpr, BETA1: tl.constexpr, BETA2: tl.constexpr, EPS: tl.constexpr,
):  # fmt: skip
    """Adam on the small parameters: adds the partial gradients in order, then takes the step. Shape (trials, size)."""
    trial = tl.program_id(1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = at < size
    place = trial.to(tl.int64) * size + at
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for piece in range(pieces):
        total += tl.load(partial + in_64(piece, trial) * stride + place, mask=there, other=0.0)
    w = tl.load(weight + place, mask=there, other=0.0)
    kind = tl.load(group + at, mask=there, other=0)
    total += tl.load(decay + trial * groups + kind) * w
    m = tl.load(mean + place, mask=there, other=0.0)
    v = tl.load(square + place, mask=there, other=0.0)
    w, m, v = adam_step(w, m, v, total, tl.load(step_size + trial), tl.load(root + trial), BETA1, BETA2, EPS)
    tl.store(weight + place, w, mask=there)
    tl.store(mean + place, m, mask=there)
    tl.store(square + place, v, mask=there)


@triton.jit(do_not_specialize=["nodes", "trials", "depth", "classes"])
def gates(
    hops_done, small, size, at_gate, at_shift, out, nodes, trials, depth, classes,
    CHANNELS: tl.constexpr, NODES: tl.constexpr,
):  # fmt: skip
    """Σₖ σ(Yₖ s + t) Yₖ for some nodes of one trial, training and evaluation; Yₖ has shape (nodes, trials, 2, channels)."""
    trial = tl.program_id(1)
    node = tl.program_id(0) * NODES + tl.arange(0, NODES)
    there = node < nodes
    channel = tl.arange(0, CHANNELS)
    own = small + trial.to(tl.int64) * size
    s = tl.load(own + at_gate + channel, mask=channel < classes, other=0.0)
    t = tl.load(own + at_shift)
    for net in tl.static_range(2):
        total = tl.zeros([NODES, CHANNELS], dtype=tl.float32)
        place = ((node.to(tl.int64) * trials + trial) * 2 + net)[:, None] * CHANNELS + channel[None, :]
        for k in range(depth + 1):
            y = tl.load(
                hops_done + in_64(k, trial) * nodes * trials * 2 * CHANNELS + place, mask=there[:, None], other=0.0
            )
            total += tl.sigmoid(tl.sum(y * s[None, :], axis=1) + t)[:, None] * y
        tl.store(out + place, total, mask=there[:, None])


@triton.jit(do_not_specialize=["train_count", "nodes", "trials", "depth", "classes"])
def gates_backward(
    hops_done, grad, small, size, at_gate, at_shift, partial, which, train, train_count, back, nodes, trials, depth, classes,
    CHANNELS: tl.constexpr, NODES: tl.constexpr,
):  # fmt: skip
    """Gradients of all Yₖ at the training nodes (those of others are zero), and of the gate. One trial a program."""
    trial = tl.program_id(0)
    split = tl.load(which + trial)
    channel = tl.arange(0, CHANNELS)
    own = small + trial.to(tl.int64) * size
    s = tl.load(own + at_gate + channel, mask=channel < classes, other=0.0)
    t = tl.load(own + at_shift)
    back_s = tl.zeros([CHANNELS], dtype=tl.float32)
    back_t = tl.zeros([NODES], dtype=tl.float32)
    for begin in range(0, train_count, NODES):
        at = begin + tl.arange(0, NODES)
        there = at < train_count
        node = tl.load(train + split * train_count + at, mask=there, other=0)
        row = node.to(tl.int64) * trials + trial
        g = tl.load(grad + row[:, None] * CHANNELS + channel[None, :], mask=there[:, None], other=0.0)
        for k in range(depth + 1):
            page = in_64(k, trial) * nodes * trials
            y = tl.load(
                hops_done + (page + row)[:, None] * (2 * CHANNELS) + channel[None, :], mask=there[:, None], other=0.0
            )
            gate = tl.sigmoid(tl.sum(y * s[None, :], axis=1) + t)
            lean = tl.sum(g * y, axis=1) * gate * (1 - gate)
            tl.store(
                back + (page + row)[:, None] * CHANNELS + channel[None, :], gate[:, None] * g + lean[:, None] * s[None, :],
                mask=there[:, None],
            )  # fmt: skip
            back_s += tl.sum(lean[:, None] * y, axis=0)
            back_t += lean
    mine = partial + trial.to(tl.int64) * size
    tl.store(mine + at_gate + channel, back_s, mask=channel < classes)
    tl.store(mine + at_shift, tl.sum(back_t, axis=0))


@triton.jit(do_not_specialize=["hops", "classes"])
def mixture(
    small,
    size,
    at_gamma,
    at_zeta,
    at_weight,
    coefficients,
    hops,
    depth,
    classes,
    CHANNELS: tl.constexpr,
    MATRIX: tl.constexpr,
):
    """cₖ = γₖ (ζₖ I + (1 − ζₖ) Wₖ), or γₖ I; zero beyond the depth of the trial."""
    hop, trial = tl.program_id(0), tl.program_id(1)
    i, j = tl.arange(0, CHANNELS)[:, None], tl.arange(0, CHANNELS)[None, :]
    inside = (i < classes) & (j < classes)
    own = small + trial.to(tl.int64) * size
    c = tl.where((i == j) & inside, 1.0, 0.0)
    if MATRIX:
        zeta = tl.load(own + at_zeta + hop)
        w = tl.load(own + at_weight + (hop * classes + i) * classes + j, mask=inside, other=0.0)
        c = zeta * c + (1 - zeta) * w
    c = tl.where(hop <= tl.load(depth + trial), tl.load(own + at_gamma + hop) * c, 0.0)
    tl.store(coefficients + ((trial.to(tl.int64) * hops + hop) * CHANNELS + i) * CHANNELS + j, c)


@triton.jit(do_not_specialize=["pieces", "hops", "trials", "classes"])
def mixture_backward(
    partial_coefficients, pieces, small, size, at_gamma, at_zeta, at_weight, partial, hops, depth, trials, classes,
    CHANNELS: tl.constexpr, MATRIX: tl.constexpr,
):  # fmt: skip
    """Gradients of γ, ζ and W from those of the coefficients; nothing beyond the depth of the trial."""
    hop, trial = tl.program_id(0), tl.program_id(1)
    i, j = tl.arange(0, CHANNELS)[:, None], tl.arange(0, CHANNELS)[None, :]
    inside = (i < classes) & (j < classes)
    place = ((trial.to(tl.int64) * hops + hop) * CHANNELS + i) * CHANNELS + j
    d = tl.zeros([CHANNELS, CHANNELS], dtype=tl.float32)
    for piece in range(pieces):
        shift = in_64(piece, trial) * trials * hops * CHANNELS * CHANNELS
        d += tl.load(partial_coefficients + shift + place, mask=inside, other=0.0)
    d = tl.where(hop <= tl.load(depth + trial), d, 0.0)
    trace = tl.sum(tl.sum(tl.where(i == j, d, 0.0), axis=1), axis=0)
    own, mine = small + trial.to(tl.int64) * size, partial + trial.to(tl.int64) * size
    if MATRIX:
        gamma, zeta = tl.load(own + at_gamma + hop), tl.load(own + at_zeta + hop)
        at = at_weight + (hop * classes + i) * classes + j
        w = tl.load(own + at, mask=inside, other=0.0)
        along = tl.sum(tl.sum(d * w, axis=1), axis=0)
        tl.store(mine + at_gamma + hop, zeta * trace + (1 - zeta) * along)
        tl.store(mine + at_zeta + hop, gamma * (trace - along))
        tl.store(mine + at, gamma * (1 - zeta) * d, mask=inside)
    else:
        tl.store(mine + at_gamma + hop, trace)


@triton.jit(do_not_specialize=["trials"])
def begin_step(
    epoch, rate, step_size, root, now, ring, turn, trials, BLOCK: tl.constexpr, LOG1: tl.constexpr, LOG2: tl.constexpr
):
    """Write down the training loss, and what Adam needs of the number of this step, in double precision."""
    trial = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = trial < trials
    step = (tl.load(epoch + trial, mask=there, other=0) + 1).to(tl.float64)
    one = 1.0 - tl.exp(step * LOG1)
    two = 1.0 - tl.exp(step * LOG2)
    tl.store(step_size + trial, (tl.load(rate + trial, mask=there, other=0.0) / one).to(tl.float32), mask=there)
    tl.store(root + trial, (1.0 / tl.sqrt(two)).to(tl.float32), mask=there)
    tl.store(
        ring + (tl.load(turn).to(tl.int64) * trials + trial) * 4,
        tl.load(now + trial, mask=there, other=0.0),
        mask=there,
    )
