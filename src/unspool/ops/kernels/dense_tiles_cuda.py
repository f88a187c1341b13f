"""The kernels of :mod:`dense_features_cuda`: tiles of X, masked where they lie, times the weights or the gradients of one trial or two.

Trap: Triton compiles what stands after a return that was chosen at compile time as well, so every other way is an ``else``.
"""

# ruff: noqa: RET505

from __future__ import annotations

import triton
import triton.language as tl

from unspool.ops.kernels.masks_cuda import hash_bits, pair_flags, site_word
from unspool.ops.kernels.noise_cuda import _mix


@triton.jit
def _power(top):
    """The power of two that brings ``top`` to between 2¹⁴ and 2¹⁵, and its inverse."""
    exponent = (top.to(tl.int32, bitcast=True) >> 23) & 255
    shift = tl.minimum(141 - exponent, 126)
    return ((shift + 127) << 23).to(tl.float32, bitcast=True), ((127 - shift) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _halves(x):
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def _rows(weight, column, row, features, H: tl.constexpr, TILE: tl.constexpr, COLUMNS: tl.constexpr):
    """Some rows of a trial's weights, times the numbers of the columns of X that they meet."""
    col = tl.arange(0, TILE)
    w = tl.load(
        weight + row[:, None] * H + col[None, :], mask=(row < features)[:, None] & (col < H)[None, :], other=0.0
    )
    if COLUMNS:
        w *= tl.load(column + row, mask=row < features, other=0.0)[:, None]
    return w


@triton.jit
def split_weights(
    weight, column, out, inverse, features, columns,
    H: tl.constexpr, TILE: tl.constexpr, ROWS: tl.constexpr, SPLIT: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The weights of one trial as halves: shape (trials, 2 halves, columns, TILE)."""
    trial = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, TILE)
    own = weight + trial * features * H
    most = tl.zeros([ROWS, TILE], dtype=tl.float32)
    for begin in range(0, features, ROWS):
        most = tl.maximum(most, tl.abs(_rows(own, column, begin + tl.arange(0, ROWS), features, H, TILE, COLUMNS)))
    power, back = _power(tl.max(tl.max(most, axis=1), axis=0))
    if not SPLIT:
        power, back = power * 0 + 1, back * 0 + 1
    tl.store(inverse + trial, back)
    size = columns * TILE
    out += trial * size * (2 if SPLIT else 1)
    for begin in range(0, columns, ROWS):
        row = begin + tl.arange(0, ROWS)
        w = _rows(own, column, row, features, H, TILE, COLUMNS) * power
        place = row[:, None] * TILE + col[None, :]
        if SPLIT:
            high, low = _halves(w)
            tl.store(out + place, high)
            tl.store(out + size + place, low)
        else:
            tl.store(out + place, w)


@triton.jit
def _kept_row(high, low, bits, limit, PIECES: tl.constexpr, PACKED: tl.constexpr):
    """A tile (rows, columns) with what does not survive set to zero; ``bits`` has one number per pair of columns."""
    if PACKED:
        # Two halves lie in one register, and one hash decides both: a mask of 32 bits does for the pair.
        # Trap: this holds where neighbouring columns are neighbours in a thread, as they are in tiles loaded along rows.
        twice, most = tl.interleave(bits, bits), tl.zeros_like(tl.interleave(bits, bits)) + limit
        return tl.inline_asm_elementwise(
            """{ .reg .pred p, q; .reg .b32 t, e, o;
            shl.b32 t, $4, 16; setp.ge.s32 p, t, $6; setp.ge.s32 q, $4, $6;
            selp.b32 e, 0x0000FFFF, 0, p; selp.b32 o, 0xFFFF0000, 0, q; or.b32 e, e, o;
            and.b32 $0, $2, e; and.b32 $1, $3, e; }""",
            "=&r,=&r,r,r,r,r,r,r",
            [high, low, twice, most],
            dtype=(tl.float16, tl.float16),
            is_pure=True,
            pack=2,
        )
    else:
        even, odd = pair_flags(bits, limit)
        keep = tl.interleave(even, odd)
        return tl.where(keep, high, 0.0), tl.where(keep, low, 0.0)


@triton.jit
def _kept_columns(even, odd, even_low, odd_low, bits, limit, PACKED: tl.constexpr):
    """The same for tiles of even and of odd features, with one number per pair of features and node."""
    if PACKED:
        return tl.inline_asm_elementwise(
            """{ .reg .pred p, q; .reg .b32 s, t, e, o;
            shl.b32 s, $8, 16; setp.ge.s32 p, s, $10; shl.b32 t, $9, 16; setp.ge.s32 q, t, $10;
            selp.b32 e, 0x0000FFFF, 0, p; selp.b32 t, 0xFFFF0000, 0, q; or.b32 e, e, t;
            setp.ge.s32 p, $8, $10; setp.ge.s32 q, $9, $10;
            selp.b32 o, 0x0000FFFF, 0, p; selp.b32 t, 0xFFFF0000, 0, q; or.b32 o, o, t;
            and.b32 $0, $4, e; and.b32 $1, $5, o; and.b32 $2, $6, e; and.b32 $3, $7, o; }""",
            "=&r,=&r,=&r,=&r,r,r,r,r,r,r,r,r",
            [even, odd, even_low, odd_low, bits, tl.zeros_like(bits) + limit],
            dtype=(tl.float16, tl.float16, tl.float16, tl.float16),
            is_pure=True,
            pack=2,
        )
    else:
        keep_even, keep_odd = pair_flags(bits, limit)
        return _where(keep_even, keep_odd, even, odd, even_low, odd_low)


@triton.jit
def _where(keep_even, keep_odd, even, odd, even_low, odd_low):
    even, odd = tl.where(keep_even, even, 0.0), tl.where(keep_odd, odd, 0.0)
    return even, odd, tl.where(keep_even, even_low, 0.0), tl.where(keep_odd, odd_low, 0.0)


@triton.jit
def _times(high, low, w_high, w_low, small, large, PIECES: tl.constexpr, APART: tl.constexpr):
    """Add a product of pieces to ``large``: in the units with the small parts apart in ``small``, or outside of them."""
    if PIECES == 0:
        return small, large + tl.dot(high, w_high, input_precision="tf32x3")
    elif APART:
        if PIECES == 2:
            small = tl.dot(low, w_high, small)
        return tl.dot(high, w_low, small), tl.dot(high, w_high, large)
    else:
        part = tl.zeros_like(large)
        if PIECES == 2:
            part = tl.dot(low, w_high, part)
        part = tl.dot(high, w_low, part)
        return small, large + tl.dot(high, w_high, part)


@triton.jit
def _one_trial(
    high, low, weight, begin, columns, row_mix, limit, words, some_small, some, every_small, everything,
    TILE: tl.constexpr, PAIRS: tl.constexpr, PIECES: tl.constexpr, PLAIN: tl.constexpr, WORDS: tl.constexpr, APART: tl.constexpr,
    PACKED: tl.constexpr,
):  # fmt: skip
    """One tile of X times one trial's weights: with the mask, and without."""
    pair = begin + tl.arange(0, PAIRS)
    place = (2 * begin + tl.arange(0, 2 * PAIRS))[:, None] * TILE + tl.arange(0, TILE)[None, :]
    w_high = tl.load(weight + place)
    w_low = w_high
    if PIECES > 0:
        w_low = tl.load(weight + columns * TILE + place)
    bits = hash_bits(row_mix[:, None] + (pair.to(tl.uint32) * 0x9E3779B9)[None, :])
    if WORDS:
        even, odd = pair_flags(bits, limit)
        shape: tl.constexpr = [high.shape[0], PAIRS // 32, 32]
        at, lane = words + tl.arange(0, PAIRS // 32)[None, :], tl.arange(0, 32)[None, None, :]
        tl.store(at, tl.sum(tl.reshape(even.to(tl.int32), shape) << lane, axis=2))
        tl.store(at + columns // 64, tl.sum(tl.reshape(odd.to(tl.int32), shape) << lane, axis=2))
    kept, kept_low = _kept_row(high, low, bits, limit, PIECES, PACKED)
    some_small, some = _times(kept, kept_low, w_high, w_low, some_small, some, PIECES, APART)
    if PLAIN:
        every_small, everything = _times(high, low, w_high, w_low, every_small, everything, PIECES, APART)
    return some_small, some, every_small, everything


@triton.jit
def _first(begin, trial, trials, key, count, threshold, node):
    """Which trial this is, its hash of each row and its limit; programs beyond the last trial do the last one's work again."""
    own = tl.minimum(begin + trial, trials - 1)
    word = site_word(tl.load(key + own), tl.load(count + own))
    return own.to(tl.int64), _mix(_mix(node.to(tl.uint32)) ^ word), tl.load(threshold + own) * 65536


@triton.jit
def _whole(large, small, APART: tl.constexpr):
    return large + small if APART else large


@triton.jit(do_not_specialize=["nodes", "trials"])
def products(
    x, row_scale, x_inverse, weight, inverse, key, count, threshold, scale, masked, plain, node_stride, trial_stride, words,
    nodes, rows, columns, trials,
    H: tl.constexpr, TILE: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr, PIECES: tl.constexpr, SCALED: tl.constexpr,
    PLAIN: tl.constexpr, WORDS: tl.constexpr, APART: tl.constexpr, TWO: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """drop(X) W and X W for a tile of rows and one trial, or two."""
    first = tl.program_id(0) * (2 if TWO else 1)
    node = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, TILE)
    halves: tl.constexpr = 1 if PIECES == 0 else 2
    t0, mix0, limit0 = _first(first, 0, trials, key, count, threshold, node)
    t1, mix1, limit1 = _first(first, 1, trials, key, count, threshold, node)
    w0, w1 = weight + t0 * (halves * columns * TILE), weight + t1 * (halves * columns * TILE)
    row = node.to(tl.int64)[:, None]
    own = x + row * columns
    size = rows.to(tl.int64)
    flags0, flags1 = words + (row + t0 * size) * (columns // 32), words + (row + t1 * size) * (columns // 32)
    none = tl.zeros([ROWS, TILE], dtype=tl.float32)
    some0, every0, some1, every1 = none, none, none, none
    s0, e0, s1, e1 = none, none, none, none
    for begin in range(0, columns // 2, PAIRS):
        at = own + (2 * begin + tl.arange(0, 2 * PAIRS))[None, :]
        high = tl.load(at)
        low = high
        if PIECES == 2:
            low = tl.load(at + size * columns)
        s0, some0, e0, every0 = _one_trial(
            high, low, w0, begin, columns, mix0, limit0, flags0 + begin // 32, s0, some0, e0, every0,
            TILE, PAIRS, PIECES, PLAIN, WORDS, APART, PACKED,
        )  # fmt: skip
        if TWO:
            s1, some1, e1, every1 = _one_trial(
                high, low, w1, begin, columns, mix1, limit1, flags1 + begin // 32, s1, some1, e1, every1,
                TILE, PAIRS, PIECES, PLAIN, WORDS, APART, PACKED,
            )  # fmt: skip
    there = (node < nodes)[:, None] & (col < H)[None, :]
    factor = tl.zeros([ROWS], dtype=tl.float32) + x_inverse
    if SCALED:
        factor = tl.load(row_scale + node, mask=node < nodes, other=0.0)
    place = node.to(tl.int64)[:, None] * node_stride + t0 * trial_stride + col[None, :]
    back = (factor * tl.load(inverse + t0))[:, None]
    tl.store(masked + place, _whole(some0, s0, APART) * back * tl.load(scale + t0), mask=there)
    if PLAIN:
        tl.store(plain + place, _whole(every0, e0, APART) * back, mask=there)
    if TWO:
        there &= first + 1 < trials
        place = node.to(tl.int64)[:, None] * node_stride + t1 * trial_stride + col[None, :]
        back = (factor * tl.load(inverse + t1))[:, None]
        tl.store(masked + place, _whole(some1, s1, APART) * back * tl.load(scale + t1), mask=there)
        if PLAIN:
            tl.store(plain + place, _whole(every1, e1, APART) * back, mask=there)


@triton.jit
def _unpack(words, M: tl.constexpr, K: tl.constexpr):
    """A flag per pair and node from words of 32 pairs."""
    flags = (words[:, None, :] >> tl.arange(0, 32)[None, :, None]) & 1
    return tl.reshape(flags, [M, K]) != 0


@triton.jit
def _gradient(
    even, odd, even_low, odd_low, signal, node, nodes, row_scale, pair, pairs, mixed, limit, words, at_even, at_odd,
    H: tl.constexpr, TILE: tl.constexpr, PIECES: tl.constexpr, SCALED: tl.constexpr, WORDS: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """Add what a tile of nodes gives to the gradients of some even and some odd features; the scale is the tile's own."""
    col = tl.arange(0, TILE)
    there = node < nodes
    grad = tl.load(signal + col[None, :], mask=there[:, None] & (col < H)[None, :], other=0.0)
    if SCALED:
        grad *= tl.load(row_scale + node, mask=there, other=0.0)[:, None]
    if WORDS:
        count: tl.constexpr = even.shape[0] // 32
        at = words + node[None, :] * (pairs // 16) + (tl.min(pair, axis=0) // 32 + tl.arange(0, count))[:, None]
        keep_even = _unpack(tl.load(at), even.shape[0], even.shape[1])
        keep_odd = _unpack(tl.load(at + pairs // 32), even.shape[0], even.shape[1])
        even, odd, even_low, odd_low = _where(keep_even, keep_odd, even, odd, even_low, odd_low)
    else:
        bits = hash_bits((pair.to(tl.uint32) * 0x9E3779B9)[:, None] + mixed[None, :])
        even, odd, even_low, odd_low = _kept_columns(even, odd, even_low, odd_low, bits, limit, PACKED)
    if PIECES == 0:
        at_even += tl.dot(even, grad, input_precision="tf32x3")
        return at_even, at_odd + tl.dot(odd, grad, input_precision="tf32x3")
    else:
        power, back = _power(tl.max(tl.max(tl.abs(grad), axis=1), axis=0))
        high, low = _halves(grad * power)
        none = tl.zeros_like(at_even)
        _, part = _times(even, even_low, high, low, none, none, PIECES, False)
        at_even += part * back
        _, part = _times(odd, odd_low, high, low, none, none, PIECES, False)
        return at_even, at_odd + part * back


@triton.jit
def _put_gradient(out, total, column, feature, features, col, H: tl.constexpr, COLUMNS: tl.constexpr, there):
    mask = (feature < features)[:, None] & (col < H)[None, :] & there
    if COLUMNS:
        total *= tl.load(column + feature, mask=feature < features, other=0.0)[:, None]
    tl.store(out + feature[:, None] * H + col[None, :], total, mask=mask)


@triton.jit(do_not_specialize=["nodes", "trials", "features", "blocks"])
def gradients(
    x, row_scale, column, x_inverse, signal, node_stride, trial_stride, key, count, threshold, scale, words, partial,
    nodes, rows, pairs, features, trials, blocks,
    H: tl.constexpr, TILE: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr, PIECES: tl.constexpr, SCALED: tl.constexpr,
    COLUMNS: tl.constexpr, WORDS: tl.constexpr, TWO: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """drop(X)ᵀ G over a piece of the nodes, for a tile of features and one trial, or two; partial: (pieces, trials, features, H)."""
    pair = tl.program_id(0) * PAIRS + tl.arange(0, PAIRS)
    first = tl.program_id(1) * (2 if TWO else 1)
    piece = tl.program_id(2)
    col = tl.arange(0, TILE)
    own = x + pair.to(tl.int64)[:, None] * rows
    plane = rows.to(tl.int64) * pairs
    zero = piece * 0
    t0, _, limit0 = _first(first, 0, trials, key, count, threshold, zero)
    t1, _, limit1 = _first(first, 1, trials, key, count, threshold, zero)
    word0 = site_word(tl.load(key + t0), tl.load(count + t0))
    word1 = site_word(tl.load(key + t1), tl.load(count + t1))
    even0 = tl.zeros([PAIRS, TILE], dtype=tl.float32)
    odd0, even1, odd1 = even0, even0, even0
    # The last piece may be shorter, and beyond the last tile of nodes there is no X to read.
    for block in range(piece * blocks, tl.minimum(piece * blocks + blocks, tl.cdiv(nodes, ROWS))):
        node = block * ROWS + tl.arange(0, ROWS)
        even, odd = tl.load(own + node[None, :]), tl.load(own + plane + node[None, :])
        even_low, odd_low = even, odd
        if PIECES == 2:
            even_low, odd_low = tl.load(own + 2 * plane + node[None, :]), tl.load(own + 3 * plane + node[None, :])
        at = signal + node.to(tl.int64)[:, None] * node_stride
        row_mix = _mix(node.to(tl.uint32))
        even0, odd0 = _gradient(
            even, odd, even_low, odd_low, at + t0 * trial_stride, node, nodes, row_scale, pair, pairs, _mix(row_mix ^ word0), limit0,
            words + t0 * rows * (pairs // 16), even0, odd0, H, TILE, PIECES, SCALED, WORDS, PACKED,
        )  # fmt: skip
        if TWO:
            even1, odd1 = _gradient(
                even, odd, even_low, odd_low, at + t1 * trial_stride, node, nodes, row_scale, pair, pairs, _mix(row_mix ^ word1), limit1,
                words + t1 * rows * (pairs // 16), even1, odd1, H, TILE, PIECES, SCALED, WORDS, PACKED,
            )  # fmt: skip
    back = x_inverse * tl.load(scale + t0)
    out = partial + (piece * trials.to(tl.int64) + t0) * features * H
    there = first < trials
    _put_gradient(out, even0 * back, column, 2 * pair, features, col, H, COLUMNS, there)
    _put_gradient(out, odd0 * back, column, 2 * pair + 1, features, col, H, COLUMNS, there)
    if TWO:
        back = x_inverse * tl.load(scale + t1)
        out = partial + (piece * trials.to(tl.int64) + t1) * features * H
        there = first + 1 < trials
        _put_gradient(out, even1 * back, column, 2 * pair, features, col, H, COLUMNS, there)
        _put_gradient(out, odd1 * back, column, 2 * pair + 1, features, col, H, COLUMNS, there)


@triton.jit(do_not_specialize=["size", "pieces"])
def add_pieces(partial, out, size, pieces, BLOCK: tl.constexpr):
    """The pieces of a gradient, added in their order."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for piece in range(pieces):
        total += tl.load(partial + place + piece * size.to(tl.int64), mask=place < size, other=0.0)
    tl.store(out + place, total, mask=place < size)
