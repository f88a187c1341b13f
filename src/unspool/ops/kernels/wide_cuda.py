"""Hidden channels of many trials on an NVIDIA GPU: the layers of JKNet and GCNII.

Signals have shape (nodes, trials, ..., WIDTH); WIDTH is a power of two of at least 16.
"""

from __future__ import annotations

import triton
import triton.language as tl

from unspool.ops.kernels.features_cuda import in_64, site_word, sums, survives


@triton.jit
def _drop(h, node, col, key, threshold, scale, count, trial):
    """Dropout of some rows of one trial."""
    word = site_word(tl.load(key + trial), count)
    kept = survives(node[:, None], col[None, :], word, tl.load(threshold + trial))
    return tl.where(kept, h * tl.load(scale + trial), 0.0)


@triton.jit(do_not_specialize=["steps", "features", "nodes", "trials", "hops"])
def first_hidden(
    rows, start, length, index, value, bits, steps, weight, features, scale, nodes, trials, small, size, at_b1, key, epoch, threshold,
    scale2, matrices, begin, out, series, hops,
    WIDTH: tl.constexpr, CHANNELS: tl.constexpr, CALLS: tl.constexpr, SERIES: tl.constexpr, PRECISION: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """ReLU(X W + b) for training and evaluation, and what the hops begin with.

    SERIES (JKNet): the training signal after dropout goes to ``out`` (nodes, trials, WIDTH); the evaluation signal times the
    matrix of every hop to ``series`` (hops, nodes, trials, CHANNELS). Otherwise (GCNII): both signals go to ``begin``, and with
    dropout for training to ``out``, both of shape (nodes, trials, 2, WIDTH).
    """
    part, trial = tl.program_id(0), tl.program_id(1)
    some, everything = sums(
        start, length, index, value, bits, steps, weight, part, trial, features, WIDTH, WIDTH, True, UNROLL
    )
    col = tl.arange(0, WIDTH)
    b1 = tl.load(small + trial.to(tl.int64) * size + at_b1 + col)
    learnt = tl.maximum(some * tl.load(scale + trial) + b1[None, :], 0.0)
    seen = tl.maximum(everything + b1[None, :], 0.0)
    node = tl.load(rows + part * 32 + tl.arange(0, 32))
    there = (node >= 0)[:, None]
    dropped = _drop(learnt, node, col, key, threshold, scale2, tl.load(epoch + trial) * CALLS, trial)
    row = node.to(tl.int64)[:, None] * trials + trial
    if SERIES:
        tl.store(out + row * WIDTH + col[None, :], dropped, mask=there)
        count = hops * CHANNELS
        for at in range(0, count, 64):
            column = at + tl.arange(0, 64)
            hop, inner = column // CHANNELS, column % CHANNELS
            inside = (column < count)[None, :]
            place = ((trial.to(tl.int64) * hops + hop[None, :]) * WIDTH + col[:, None]) * CHANNELS + inner[None, :]
            m = tl.load(matrices + place, mask=inside, other=0.0)
            target = ((hop.to(tl.int64)[None, :] * nodes + node[:, None]) * trials + trial) * CHANNELS + inner[None, :]
            tl.store(series + target, tl.dot(seen, m, input_precision=PRECISION), mask=there & inside)
    else:
        tl.store(begin + row * 2 * WIDTH + col[None, :], learnt, mask=there)
        tl.store(begin + (row * 2 + 1) * WIDTH + col[None, :], seen, mask=there)
        tl.store(out + row * 2 * WIDTH + col[None, :], dropped, mask=there)
        tl.store(out + (row * 2 + 1) * WIDTH + col[None, :], seen, mask=there)


@triton.jit(do_not_specialize=["hops", "classes"])
def jump_matrices(
    small,
    size,
    at_hops,
    at_head,
    matrices,
    hops,
    depth,
    classes,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Wₖ V for every hop: in evaluation the head commutes with the hops, so that few channels travel."""
    hop, trial = tl.program_id(0), tl.program_id(1)
    i, j, c = tl.arange(0, WIDTH)[:, None], tl.arange(0, WIDTH)[None, :], tl.arange(0, 16)[None, :]
    own = small + trial.to(tl.int64) * size
    w = tl.load(own + at_hops + (hop * WIDTH + i) * WIDTH + j)
    v = tl.load(own + at_head + i * classes + c, mask=c < classes, other=0.0)
    m = tl.where(hop <= tl.load(depth + trial), tl.dot(w, v, input_precision=PRECISION), 0.0)
    tl.store(matrices + ((trial.to(tl.int64) * hops + hop) * WIDTH + i) * CHANNELS + c, m, mask=c < CHANNELS)


@triton.jit(do_not_specialize=["count", "nodes", "trials", "classes"])
def jump_out(
    signals, small, size, at_hops, at_head, which, train, count, key, epoch, threshold, scale, kept, y, nodes, trials, depth, classes,
    WIDTH: tl.constexpr, CHANNELS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Outputs of 32 training nodes: Σ (Aᵏ X) Wₖ, dropout, head. The hidden rows are kept for the way back."""
    trial = tl.program_id(1)
    at = tl.program_id(0) * 32 + tl.arange(0, 32)
    there = at < count
    node = tl.load(train + tl.load(which + trial) * count + at, mask=there, other=0)
    i, col, c = tl.arange(0, WIDTH), tl.arange(0, WIDTH), tl.arange(0, 16)
    own = small + trial.to(tl.int64) * size
    total = tl.zeros([32, WIDTH], dtype=tl.float32)
    row = node.to(tl.int64)[:, None] * trials + trial
    for k in range(tl.load(depth + trial) + 1):
        page = in_64(k, trial) * nodes * trials
        h = tl.load(signals + (page + row) * WIDTH + col[None, :], mask=there[:, None], other=0.0)
        w = tl.load(own + at_hops + (k * WIDTH + i[:, None]) * WIDTH + col[None, :])
        total += tl.dot(h, w, input_precision=PRECISION)
    total = _drop(total, node, col, key, threshold, scale, tl.load(epoch + trial), trial)
    tl.store(kept + (trial.to(tl.int64) * count + at[:, None]) * WIDTH + col[None, :], total, mask=there[:, None])
    v = tl.load(own + at_head + i[:, None] * classes + c[None, :], mask=(c < classes)[None, :], other=0.0)
    out = tl.dot(total, v, input_precision=PRECISION)
    tl.store(y + row * CHANNELS + c[None, :], out, mask=there[:, None] & (c < CHANNELS)[None, :])


@triton.jit(do_not_specialize=["count", "nodes", "trials", "hops", "classes"])
def jump_back(
    signals, grad, small, size, at_hops, at_head, partial, which, train, count, key, epoch, threshold, scale, kept, back, nodes, trials,
    hops, depth, classes, WIDTH: tl.constexpr, CHANNELS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """For one hop of one trial: the gradient of Wₖ, and that of Aᵏ X at the training nodes; for hop 0, of the head too."""
    hop, trial = tl.program_id(0), tl.program_id(1)
    i, col, c = tl.arange(0, WIDTH), tl.arange(0, WIDTH), tl.arange(0, 16)
    own, mine = small + trial.to(tl.int64) * size, partial + trial.to(tl.int64) * size
    w = tl.load(own + at_hops + (hop * WIDTH + i[:, None]) * WIDTH + col[None, :])
    v = tl.load(
        own + at_head + i[None, :] * classes + c[:, None], mask=(c < classes)[:, None], other=0.0
    )  # (class, hidden)
    used = hop <= tl.load(depth + trial)
    back_w = tl.zeros([WIDTH, WIDTH], dtype=tl.float32)
    back_v = tl.zeros([WIDTH, 16], dtype=tl.float32)
    split = tl.load(which + trial)
    page = hop.to(tl.int64) * nodes * trials
    for begin in range(0, count, 32):
        at = begin + tl.arange(0, 32)
        there = at < count
        node = tl.load(train + split * count + at, mask=there, other=0)
        row = node.to(tl.int64)[:, None] * trials + trial
        g = tl.load(grad + row * CHANNELS + c[None, :], mask=there[:, None] & (c < CHANNELS)[None, :], other=0.0)
        dh = _drop(
            tl.dot(g, v, input_precision=PRECISION), node, col, key, threshold, scale, tl.load(epoch + trial), trial
        )
        dh = tl.where(there[:, None], dh, 0.0)
        h = tl.load(signals + (page + row) * WIDTH + col[None, :], mask=there[:, None], other=0.0)
        back_w += tl.dot(tl.trans(h), dh, input_precision=PRECISION)
        target = ((hop.to(tl.int64) * trials + trial) * count + at[:, None]) * WIDTH + col[None, :]
        dx = tl.where(used, tl.dot(dh, tl.trans(w), input_precision=PRECISION), 0.0)
        tl.store(back + target, dx, mask=there[:, None])
        if hop == 0:
            place = (trial.to(tl.int64) * count + at[:, None]) * WIDTH + col[None, :]
            held = tl.load(kept + place, mask=there[:, None], other=0.0)
            back_v += tl.dot(tl.trans(held), g, input_precision=PRECISION)
    back_w = tl.where(used, back_w, 0.0)
    tl.store(mine + at_hops + (hop * WIDTH + i[:, None]) * WIDTH + col[None, :], back_w)
    if hop == 0:
        tl.store(mine + at_head + i[:, None] * classes + c[None, :], back_v, mask=(c < classes)[None, :])


@triton.jit(do_not_specialize=["count", "trials"])
def add_rows(y, rows, which, train, count, trials, WIDTH: tl.constexpr):
    """Add some rows of each trial to a signal, at its training nodes."""
    trial = tl.program_id(1)
    at = tl.program_id(0) * 32 + tl.arange(0, 32)
    there = (at < count)[:, None]
    node = tl.load(train + tl.load(which + trial) * count + at, mask=at < count, other=0)
    col = tl.arange(0, WIDTH)[None, :]
    place = (node.to(tl.int64)[:, None] * trials + trial) * WIDTH + col
    more = tl.load(rows + (trial.to(tl.int64) * count + at[:, None]) * WIDTH + col, mask=there, other=0.0)
    tl.store(y + place, tl.load(y + place, mask=there, other=0.0) + more, mask=there)


@triton.jit(do_not_specialize=["nodes", "trials", "rows_each"])
def hidden_backward(
    signal, also, hidden, dropped, scale, partial, size, at_b1, nodes, trials, rows_each, stride,
    WIDTH: tl.constexpr, BOTH: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Back through dropout and ReLU of the first layer, in place, and the gradient of its bias.

    ``dropped`` is the signal after dropout, ``stride`` the distance of its rows. BOTH (GCNII): ``also`` is a gradient that
    came past the dropout, and ``hidden`` the signal before it.
    """
    piece, trial = tl.program_id(0), tl.program_id(1)
    col = tl.arange(0, WIDTH)[None, :]
    lean = tl.zeros([WIDTH], dtype=tl.float32)
    factor = tl.load(scale + trial)
    for begin in range(piece * rows_each, tl.minimum((piece + 1) * rows_each, nodes), ROWS):
        node = begin + tl.arange(0, ROWS)
        there = ((node < nodes) & (node < (piece + 1) * rows_each))[:, None]
        row = node.to(tl.int64)[:, None] * trials + trial
        g = tl.load(signal + row * WIDTH + col, mask=there, other=0.0)
        g = tl.where(tl.load(dropped + row * stride + col, mask=there, other=0.0) > 0, g * factor, 0.0)
        if BOTH:
            g += tl.load(also + row * WIDTH + col, mask=there, other=0.0)
            g = tl.where(tl.load(hidden + row * stride + col, mask=there, other=0.0) > 0, g, 0.0)
        tl.store(signal + row * WIDTH + col, g, mask=there)
        lean += tl.sum(g, axis=0)
    tl.store(partial + (piece.to(tl.int64) * trials + trial) * size + at_b1 + tl.arange(0, WIDTH), lean)


@triton.jit
def _mapping(own, at_hops, layer, lean, WIDTH: tl.constexpr):
    """θ W + (1 − θ) I of one layer."""
    i, j = tl.arange(0, WIDTH)[:, None], tl.arange(0, WIDTH)[None, :]
    w = tl.load(own + at_hops + (layer * WIDTH + i) * WIDTH + j)
    return lean * w + tl.where(i == j, 1 - lean, 0.0)


@triton.jit(do_not_specialize=["layer", "layers", "calls", "place", "nodes", "trials"])
def layer_forward(
    moved, begin, small, size, at_hops, layer, layers, leans, teleport, key, epoch, threshold, scale, calls, place, inside, out, nodes, trials,
    WIDTH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One layer of GCNII on 64 nodes of one trial, after the hop: ReLU(((1 − a) A Q + a X)(θ W + (1 − θ) I)), then dropout."""
    trial = tl.program_id(1)
    node = tl.program_id(0) * 64 + tl.arange(0, 64)
    there = (node < nodes)[:, None]
    col = tl.arange(0, WIDTH)
    own = small + trial.to(tl.int64) * size
    m = _mapping(own, at_hops, layer, tl.load(leans + trial * layers + layer), WIDTH)
    a = tl.load(teleport + trial)
    row = node.to(tl.int64)[:, None] * trials + trial
    for net in tl.static_range(2):
        at = (row * 2 + net) * WIDTH + col[None, :]
        p = (1 - a) * tl.load(moved + at, mask=there, other=0.0) + a * tl.load(begin + at, mask=there, other=0.0)
        h = tl.maximum(tl.dot(p, m, input_precision=PRECISION), 0.0)
        if net == 0:
            tl.store(inside + row * WIDTH + col[None, :], p, mask=there)
            h = _drop(h, node, col, key, threshold, scale, tl.load(epoch + trial) * calls + place, trial)
        tl.store(out + at, h, mask=there)


@triton.jit(do_not_specialize=["layer", "layers", "nodes", "trials", "rows_each"])
def layer_backward(
    grad, out, inside, small, size, at_hops, layer, layers, leans, teleport, scale, partial, moved, total, nodes, trials, rows_each,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, FIRST: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Back through one layer for a stretch of nodes of one trial: dropout, ReLU, the matrix.

    ``grad`` is the gradient of the dropped output; (1 − a) dP goes to ``moved`` (a hop follows), a dP is added to ``total``.
    """
    piece, trial = tl.program_id(0), tl.program_id(1)
    i, col = tl.arange(0, WIDTH)[:, None], tl.arange(0, WIDTH)
    own = small + trial.to(tl.int64) * size
    lean = tl.load(leans + trial * layers + layer)
    m = _mapping(own, at_hops, layer, lean, WIDTH)
    a, factor = tl.load(teleport + trial), tl.load(scale + trial)
    back = tl.zeros([WIDTH, WIDTH], dtype=tl.float32)
    for begin in range(piece * rows_each, tl.minimum((piece + 1) * rows_each, nodes), ROWS):
        node = begin + tl.arange(0, ROWS)
        there = ((node < nodes) & (node < (piece + 1) * rows_each))[:, None]
        row = node.to(tl.int64)[:, None] * trials + trial
        place = row * WIDTH + col[None, :]
        h = tl.load(out + row * 2 * WIDTH + col[None, :], mask=there, other=0.0)
        g = tl.where(h > 0, tl.load(grad + place, mask=there, other=0.0) * factor, 0.0)
        p = tl.load(inside + place, mask=there, other=0.0)
        back += tl.dot(tl.trans(p), g, input_precision=PRECISION)
        dp = tl.dot(g, tl.trans(m), input_precision=PRECISION)
        tl.store(moved + place, (1 - a) * dp, mask=there)
        if FIRST:
            tl.store(total + place, a * dp, mask=there)
        else:
            tl.store(total + place, tl.load(total + place, mask=there, other=0.0) + a * dp, mask=there)
    mine = partial + (piece.to(tl.int64) * trials + trial) * size
    tl.store(mine + at_hops + (layer * WIDTH + i) * WIDTH + col[None, :], lean * back)


@triton.jit(do_not_specialize=["nodes", "trials", "classes"])
def head_forward(
    signal,
    small,
    size,
    at_head,
    y,
    nodes,
    trials,
    classes,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The last linear layer on 64 nodes of one trial, for training and evaluation."""
    trial = tl.program_id(1)
    node = tl.program_id(0) * 64 + tl.arange(0, 64)
    there = (node < nodes)[:, None]
    i, c = tl.arange(0, WIDTH), tl.arange(0, 16)
    v = tl.load(
        small + trial.to(tl.int64) * size + at_head + i[:, None] * classes + c[None, :],
        mask=(c < classes)[None, :],
        other=0.0,
    )
    row = node.to(tl.int64)[:, None] * trials + trial
    for net in tl.static_range(2):
        h = tl.load(signal + (row * 2 + net) * WIDTH + i[None, :], mask=there, other=0.0)
        out = tl.dot(h, v, input_precision=PRECISION)
        tl.store(y + (row * 2 + net) * CHANNELS + c[None, :], out, mask=there & (c < CHANNELS)[None, :])


@triton.jit(do_not_specialize=["count", "trials", "classes"])
def head_backward(
    grad, signal, small, size, at_head, partial, which, train, count, back, trials, classes,
    WIDTH: tl.constexpr, CHANNELS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Gradients of the head, and of its input at the training nodes. One trial a program."""
    trial = tl.program_id(0)
    i, c = tl.arange(0, WIDTH), tl.arange(0, 16)
    own, mine = small + trial.to(tl.int64) * size, partial + trial.to(tl.int64) * size
    v = tl.load(own + at_head + i[None, :] * classes + c[:, None], mask=(c < classes)[:, None], other=0.0)
    split = tl.load(which + trial)
    back_v = tl.zeros([WIDTH, 16], dtype=tl.float32)
    for begin in range(0, count, 32):
        at = begin + tl.arange(0, 32)
        there = (at < count)[:, None]
        node = tl.load(train + split * count + at, mask=at < count, other=0)
        row = node.to(tl.int64)[:, None] * trials + trial
        g = tl.load(grad + row * CHANNELS + c[None, :], mask=there & (c < CHANNELS)[None, :], other=0.0)
        h = tl.load(signal + row * 2 * WIDTH + i[None, :], mask=there, other=0.0)
        back_v += tl.dot(tl.trans(h), g, input_precision=PRECISION)
        tl.store(back + row * WIDTH + i[None, :], tl.dot(g, v, input_precision=PRECISION), mask=there)
    tl.store(mine + at_head + i[:, None] * classes + c[None, :], back_v, mask=(c < classes)[None, :])
