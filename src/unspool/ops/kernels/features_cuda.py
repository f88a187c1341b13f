"""The first layer of many trials on an NVIDIA GPU: sparse features times a weight matrix per trial.

One program takes 32 rows of X and one trial. It reads each needed row of the trial's weights once and adds it to two sums: with
dropout for the training step, without for the evaluation of the step before. Masks are words of 32 flags that are hashed anew in
each direction; the backward pass ends in Adam, so the gradient of the weights never reaches memory.

Trap: Triton compiles a kernel anew for each kind of whole number (1, multiples of 16, others), which takes seconds. Counts are not
specialised on. Strides and places are: they are multiples of 16, and loads of four numbers at once need to know that.
"""

from __future__ import annotations

import triton
import triton.language as tl

from unspool.ops.kernels.noise_cuda import _mix


@triton.jit
def in_64(count, like):
    """A loop counter as a 64-bit number; Triton's interpreter counts in plain ones, which know no ``to``."""
    return like.to(tl.int64) * 0 + count


@triton.jit
def site_word(key, count):
    """The hash state of one call of a dropout site."""
    return _mix((key.to(tl.uint32) + 0x9E3779B9) ^ count.to(tl.uint32))


@triton.jit
def survives(row, col, word, threshold):
    """Whether the elements (row, col) of a signal survive; row and col broadcast."""
    bits = _mix(_mix(_mix(row.to(tl.uint32)) ^ word) + (col >> 1).to(tl.uint32) * 0x9E3779B9)
    half = ((bits >> ((col & 1) * 16).to(tl.uint32)) & 0xFFFF).to(tl.int32)
    half = tl.where(half >= 32768, half - 65536, half)
    return half >= threshold


@triton.jit(do_not_specialize=["steps"])
def masks(
    row_mix, column_mix, shift, key, epoch, threshold, bits, steps, CALLS: tl.constexpr, SITE: tl.constexpr,
    WORDS: tl.constexpr,
):  # fmt: skip
    """One flag per stored entry and trial, 32 to a word."""
    trial = tl.program_id(1)
    word = tl.program_id(0) * WORDS + tl.arange(0, WORDS)
    lane = tl.arange(0, 32)
    entry = word[:, None] * 32 + lane[None, :]
    there = (word < steps)[:, None]
    state = site_word(tl.load(key + trial), tl.load(epoch + trial) * CALLS + SITE)
    hashed = tl.load(row_mix + entry, mask=there, other=0).to(tl.uint32)
    column = tl.load(column_mix + entry, mask=there, other=0).to(tl.uint32)
    mixed = _mix(_mix(hashed ^ state) + column)
    half = ((mixed >> tl.load(shift + entry, mask=there, other=0).to(tl.uint32)) & 0xFFFF).to(tl.int32)
    half = tl.where(half >= 32768, half - 65536, half)
    kept = (half >= tl.load(threshold + trial)).to(tl.int32)
    flags = tl.sum(kept << lane[None, :], axis=1)
    tl.store(bits + trial.to(tl.int64) * steps + word, flags, mask=word < steps)


@triton.jit
def sums(
    start, length, index, value, bits, steps, weight, part, trial, features, WIDTH: tl.constexpr, TILE: tl.constexpr,
    DROPS: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """Σ value · weight[index] for the 32 rows of a slice: over the entries that survive, and over all."""
    lane = tl.arange(0, 32)
    col = tl.arange(0, TILE)
    first = tl.load(start + part)
    steps_here = tl.load(length + part)
    base = weight + trial.to(tl.int64) * features * WIDTH
    some = tl.zeros([32, TILE], dtype=weight.dtype.element_ty)
    everything = tl.zeros([32, TILE], dtype=weight.dtype.element_ty)
    for j in tl.range(0, steps_here, loop_unroll_factor=UNROLL):
        entry = (first + j) * 32 + lane
        source = tl.load(index + entry)
        factor = tl.load(value + entry)
        row = tl.load(base + source[:, None] * WIDTH + col[None, :], mask=(col < WIDTH)[None, :], other=0.0)
        everything += factor[:, None] * row
        if DROPS:
            word = tl.load(bits + trial.to(tl.int64) * steps + first + j)
            kept = ((word >> lane) & 1) != 0
            some += tl.where(kept, factor, 0.0)[:, None] * row
    return some, everything


@triton.jit(do_not_specialize=["steps", "features", "trials"])
def first_plain(
    rows, start, length, index, value, bits, steps, weight, features, scale, out, trials,
    WIDTH: tl.constexpr, TILE: tl.constexpr, OUT: tl.constexpr, NETS: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """X W as it is, for training and evaluation: out has shape (nodes, trials, nets, OUT)."""
    part, trial = tl.program_id(0), tl.program_id(1)
    some, everything = sums(
        start, length, index, value, bits, steps, weight, part, trial, features, WIDTH, TILE, NETS == 2, UNROLL
    )
    node = tl.load(rows + part * 32 + tl.arange(0, 32))
    col = tl.arange(0, TILE)
    place = (node.to(tl.int64)[:, None] * trials + trial) * (NETS * OUT) + col[None, :]
    there = (node >= 0)[:, None] & (col < OUT)[None, :]
    if NETS == 2:
        tl.store(out + place, some * tl.load(scale + trial), mask=there)
        tl.store(out + place + OUT, everything, mask=there)
    else:
        tl.store(out + place, everything, mask=there)


@triton.jit
def hidden_to_channels(
    some, everything, node, trial, trials, nodes, small, size, at_w2, at_b2, key2, epoch, threshold2, scale2, key3,
    threshold3, scale3, coefficients, hidden, z, series, classes, hops, depth,
    WIDTH: tl.constexpr, TILE: tl.constexpr, CHANNELS: tl.constexpr, WIDE: tl.constexpr, CALLS2: tl.constexpr, SITE2: tl.constexpr,
    HAS_B2: tl.constexpr, SERIES: tl.constexpr, EACH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """From pre-activations of 32 rows to class channels: ReLU, dropout, second layer, dropout, and z cₖ for all hops k."""
    col, channel = tl.arange(0, TILE), tl.arange(0, WIDE)
    there = node >= 0
    word = site_word(tl.load(key2 + trial), tl.load(epoch + trial) * CALLS2 + SITE2)
    kept = survives(node[:, None], col[None, :], word, tl.load(threshold2 + trial))
    h = tl.where(kept, tl.maximum(some, 0.0) * tl.load(scale2 + trial), 0.0)
    place = trial.to(tl.int64) * nodes * WIDTH + node[:, None] * WIDTH + col[None, :]
    tl.store(hidden + place, h, mask=there[:, None] & (col < WIDTH)[None, :])
    own = small + trial.to(tl.int64) * size
    inside = (col < WIDTH)[:, None] & (channel < classes)[None, :]
    w2 = tl.load(own + at_w2 + col[:, None] * classes + channel[None, :], mask=inside, other=0.0)
    learnt = tl.dot(h, w2, input_precision=PRECISION)
    seen = tl.dot(tl.maximum(everything, 0.0), w2, input_precision=PRECISION)
    if HAS_B2:
        b2 = tl.load(own + at_b2 + channel, mask=channel < classes, other=0.0)
        learnt += b2[None, :]
        seen += b2[None, :]
    if not EACH:
        word = site_word(tl.load(key3 + trial), tl.load(epoch + trial))
        kept = survives(node[:, None], channel[None, :], word, tl.load(threshold3 + trial))
        learnt = tl.where(kept, learnt * tl.load(scale3 + trial), 0.0)
    place = (node.to(tl.int64)[:, None] * trials + trial) * (2 * CHANNELS) + channel[None, :]
    mask = there[:, None] & (channel < CHANNELS)[None, :]
    tl.store(z + place, learnt, mask=mask)
    tl.store(z + place + CHANNELS, seen, mask=mask)
    if EACH:
        _series_each(
            learnt, seen, node, trial, trials, nodes, key3, epoch, threshold3, scale3, coefficients, series, hops, depth,
            CHANNELS, WIDE, PRECISION,
        )  # fmt: skip
    elif SERIES:
        _series(learnt, seen, node, trial, trials, nodes, coefficients, series, hops, CHANNELS, WIDE, PRECISION)


@triton.jit
def _series(
    learnt, seen, node, trial, trials, nodes, coefficients, series, hops,
    CHANNELS: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """z cₖ for all k, 64 columns at a time; series has shape (hops, nodes, trials, 2, channels)."""
    channel = tl.arange(0, WIDE)
    count = hops * CHANNELS
    own = coefficients + trial.to(tl.int64) * count * CHANNELS
    for begin in range(0, count, 64):
        column = begin + tl.arange(0, 64)
        hop, out = column // CHANNELS, column % CHANNELS
        inside = (channel < CHANNELS)[:, None] & (column < count)[None, :]
        c = tl.load(
            own + hop[None, :] * CHANNELS * CHANNELS + channel[:, None] * CHANNELS + out[None, :],
            mask=inside,
            other=0.0,
        )
        place = (hop.to(tl.int64)[None, :] * nodes + node[:, None]) * trials + trial
        place = place * (2 * CHANNELS) + out[None, :]
        mask = (node >= 0)[:, None] & (column < count)[None, :]
        tl.store(series + place, tl.dot(learnt, c, input_precision=PRECISION), mask=mask)
        tl.store(series + place + CHANNELS, tl.dot(seen, c, input_precision=PRECISION), mask=mask)


@triton.jit
def first_call(epoch, depth, trial):
    """The number of hop 0's call in this epoch, at a dropout site that is called once for every hop the trial has."""
    return tl.load(epoch + trial) * (tl.load(depth + trial) + 1)


@triton.jit
def _series_each(
    learnt, seen, node, trial, trials, nodes, key, epoch, threshold, scale, coefficients, series, hops, depth,
    CHANNELS: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The same with a mask of its own on z for every hop in training, hop by hop."""
    channel = tl.arange(0, WIDE)
    inside = (channel < CHANNELS)[:, None] & (channel < CHANNELS)[None, :]
    mask = (node >= 0)[:, None] & (channel < CHANNELS)[None, :]
    own, first, limit = tl.load(key + trial), first_call(epoch, depth, trial), tl.load(threshold + trial)
    scaled = learnt * tl.load(scale + trial)
    for k in range(hops):
        kept = survives(node[:, None], channel[None, :], site_word(own, first + k), limit)
        at = trial.to(tl.int64) * hops + k
        c = tl.load(
            coefficients + (at * CHANNELS + channel[:, None]) * CHANNELS + channel[None, :], mask=inside, other=0.0
        )
        place = ((in_64(k, trial) * nodes + node[:, None]) * trials + trial) * (2 * CHANNELS) + channel[None, :]
        masked = tl.where(kept, scaled, 0.0)
        tl.store(series + place, tl.dot(masked, c, input_precision=PRECISION), mask=mask)
        tl.store(series + place + CHANNELS, tl.dot(seen, c, input_precision=PRECISION), mask=mask)


@triton.jit(do_not_specialize=["steps", "features", "nodes", "trials", "classes", "hops"])
def first_perceptron(
    rows, start, length, index, value, bits, steps, weight, features, scale, nodes, trials, small, size, at_b1, at_w2, at_b2,
    key2, epoch, threshold2, scale2, key3, threshold3, scale3, coefficients, hidden, z, series, classes, hops, depth,
    WIDTH: tl.constexpr, TILE: tl.constexpr, CHANNELS: tl.constexpr, WIDE: tl.constexpr, CALLS2: tl.constexpr, SITE2: tl.constexpr,
    HAS_B1: tl.constexpr, HAS_B2: tl.constexpr, SERIES: tl.constexpr, EACH: tl.constexpr, PRECISION: tl.constexpr,
    UNROLL: tl.constexpr,
):  # fmt: skip
    """A perceptron with one hidden layer on sparse features, for training and evaluation at once."""
    part, trial = tl.program_id(0), tl.program_id(1)
    some, everything = sums(
        start, length, index, value, bits, steps, weight, part, trial, features, WIDTH, TILE, True, UNROLL
    )
    some *= tl.load(scale + trial)
    if HAS_B1:
        col = tl.arange(0, TILE)
        b1 = tl.load(small + trial.to(tl.int64) * size + at_b1 + col, mask=col < WIDTH, other=0.0)
        some += b1[None, :]
        everything += b1[None, :]
    node = tl.load(rows + part * 32 + tl.arange(0, 32))
    hidden_to_channels(
        some, everything, node, trial, trials, nodes, small, size, at_w2, at_b2, key2, epoch, threshold2, scale2, key3,
        threshold3, scale3, coefficients, hidden, z, series, classes, hops, depth,
        WIDTH, TILE, CHANNELS, WIDE, CALLS2, SITE2, HAS_B2, SERIES, EACH, PRECISION,
    )  # fmt: skip


@triton.jit(do_not_specialize=["nodes", "trials", "classes", "hops"])
def middle(
    signal, nodes, trials, small, size, at_b1, at_w2, at_b2, key2, epoch, threshold2, scale2, key3, threshold3, scale3,
    coefficients, hidden, z, series, classes, hops, depth,
    WIDTH: tl.constexpr, TILE: tl.constexpr, CHANNELS: tl.constexpr, WIDE: tl.constexpr, CALLS2: tl.constexpr, SITE2: tl.constexpr,
    HAS_B1: tl.constexpr, HAS_B2: tl.constexpr, SERIES: tl.constexpr, EACH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The rest of the perceptron where something stood between its two layers; signal has shape (nodes, trials, 2, WIDTH)."""
    trial = tl.program_id(1)
    node = tl.program_id(0) * 32 + tl.arange(0, 32)
    node = tl.where(node < nodes, node, -1)
    col = tl.arange(0, TILE)
    place = (node.to(tl.int64)[:, None] * trials + trial) * (2 * WIDTH) + col[None, :]
    there = (node >= 0)[:, None] & (col < WIDTH)[None, :]
    some = tl.load(signal + place, mask=there, other=0.0)
    everything = tl.load(signal + place + WIDTH, mask=there, other=0.0)
    if HAS_B1:
        b1 = tl.load(small + trial.to(tl.int64) * size + at_b1 + col, mask=col < WIDTH, other=0.0)
        some += b1[None, :]
        everything += b1[None, :]
    hidden_to_channels(
        some, everything, node, trial, trials, nodes, small, size, at_w2, at_b2, key2, epoch, threshold2, scale2, key3,
        threshold3, scale3, coefficients, hidden, z, series, classes, hops, depth,
        WIDTH, TILE, CHANNELS, WIDE, CALLS2, SITE2, HAS_B2, SERIES, EACH, PRECISION,
    )  # fmt: skip


@triton.jit
def adam_step(w, m, v, grad, step_size, root, BETA1: tl.constexpr, BETA2: tl.constexpr, EPS: tl.constexpr):
    """The fused Adam of torch: gives the new weight, mean and square."""
    # Trap: 1 − β₂ in single precision is off by 5e-5; as constants they are computed in double.
    m = m + (grad - m) * (1 - BETA1)
    v = BETA2 * v + (1 - BETA2) * grad * grad
    w = w - step_size * m / (tl.sqrt(v) * root + EPS)
    return w, m, v


@triton.jit
def _learn(
    weight,
    mean,
    square,
    place,
    there,
    total,
    trial,
    step_size,
    root,
    decay,
    BETA1: tl.constexpr,
    BETA2: tl.constexpr,
    EPS: tl.constexpr,
):
    """One step of Adam on some rows of the first layer's weights."""
    w = tl.load(weight + place, mask=there, other=0.0)
    m = tl.load(mean + place, mask=there, other=0.0)
    v = tl.load(square + place, mask=there, other=0.0)
    grad = total + tl.load(decay + trial) * w
    w, m, v = adam_step(w, m, v, grad, tl.load(step_size + trial), tl.load(root + trial), BETA1, BETA2, EPS)
    tl.store(weight + place, w, mask=there)
    tl.store(mean + place, m, mask=there)
    tl.store(square + place, v, mask=there)


@triton.jit(do_not_specialize=["steps", "features", "pieces"])
def first_backward(
    rows, start, length, index, value, bits, steps, scale, signal, row_stride, trial_stride, weight, mean, square, features,
    step_size, root, decay, partial, pieces,
    WIDTH: tl.constexpr, TILE: tl.constexpr, DROPS: tl.constexpr, UNROLL: tl.constexpr, BETA1: tl.constexpr, BETA2: tl.constexpr,
    EPS: tl.constexpr,
):  # fmt: skip
    """Xᵀ G over the entries that survived, and Adam's step with it, for 32 features of one trial; pieces of long rows wait."""
    part, trial = tl.program_id(0), tl.program_id(1)
    lane, col = tl.arange(0, 32), tl.arange(0, TILE)
    first = tl.load(start + part)
    steps_here = tl.load(length + part)
    own = signal + trial.to(tl.int64) * trial_stride
    inside = (col < WIDTH)[None, :]
    total = tl.zeros([32, TILE], dtype=weight.dtype.element_ty)
    for j in tl.range(0, steps_here, loop_unroll_factor=UNROLL):
        entry = (first + j) * 32 + lane
        source = tl.load(index + entry)
        factor = tl.load(value + entry)
        kept = factor != 0
        if DROPS:
            word = tl.load(bits + trial.to(tl.int64) * steps + first + j)
            kept = kept & (((word >> lane) & 1) != 0)
        row = tl.load(
            own + source.to(tl.int64)[:, None] * row_stride + col[None, :], mask=kept[:, None] & inside, other=0.0
        )
        total += factor[:, None] * row
    if DROPS:
        total *= tl.load(scale + trial)
    feature = tl.load(rows + part * 32 + lane)
    place = (trial.to(tl.int64) * pieces - 2 - feature)[:, None] * WIDTH + col[None, :]
    tl.store(partial + place, total, mask=(feature <= -2)[:, None] & inside)
    place = trial.to(tl.int64) * features * WIDTH + feature.to(tl.int64)[:, None] * WIDTH + col[None, :]
    there = (feature >= 0)[:, None] & inside
    _learn(weight, mean, square, place, there, total, trial, step_size, root, decay, BETA1, BETA2, EPS)


@triton.jit(do_not_specialize=["count", "pieces", "features"])
def first_combine(
    long, long_start, long_count, count, partial, pieces, weight, mean, square, features, step_size, root, decay,
    WIDTH: tl.constexpr, TILE: tl.constexpr, BETA1: tl.constexpr, BETA2: tl.constexpr, EPS: tl.constexpr,
):  # fmt: skip
    """Add the pieces of 32 long rows in order, and take Adam's step with them."""
    trial = tl.program_id(1)
    at, col = tl.program_id(0) * 32 + tl.arange(0, 32), tl.arange(0, TILE)
    inside = (col < WIDTH)[None, :]
    many = tl.load(long_count + at, mask=at < count, other=0)
    begin = tl.load(long_start + at, mask=at < count, other=0)
    total = tl.zeros([32, TILE], dtype=weight.dtype.element_ty)
    for j in range(tl.max(many, axis=0)):
        place = (trial.to(tl.int64) * pieces + begin + j)[:, None] * WIDTH + col[None, :]
        total += tl.load(partial + place, mask=(j < many)[:, None] & inside, other=0.0)
    feature = tl.load(long + at, mask=at < count, other=0)
    place = trial.to(tl.int64) * features * WIDTH + feature.to(tl.int64)[:, None] * WIDTH + col[None, :]
    there = (at < count)[:, None] & inside
    _learn(weight, mean, square, place, there, total, trial, step_size, root, decay, BETA1, BETA2, EPS)
