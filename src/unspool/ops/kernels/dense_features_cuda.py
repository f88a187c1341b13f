"""The first layer of many trials on an NVIDIA GPU where features are dense enough for the matrix units.

X is shared by all trials and W is not; dropout gives every trial a mask of its own on X. A program takes a tile of X and one trial, or
two that share the tile, hashes the mask where it lies and multiplies: with the mask for the training step, without for evaluation.

Numbers are as exact as single precision though the units take half precision: x = high + low, two halves of 11 bits and a sign each, and
x w = low w_high + high w_low + high w_high; what is left out is 2⁻²⁴ of the product. Powers of two bring the largest number near 2¹⁵, so
that small ones keep their bits: X is scaled once, each trial's W once a step, a gradient tile by tile. A bag of words is a number per row times
small whole numbers, tf-idf features are a number per row and one per column times such; they are one half, and low falls away.

One hash decides two neighbouring columns and is computed once: on the way back even columns lie before odd ones for its sake.

Trap: matrix units cut sums off instead of rounding them. Over thousands of nodes this pulls a sum towards zero, so each tile's sum
is added outside of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton
from torch import Tensor
from torch.nn.functional import pad

from unspool.ops.kernels import dense_tiles_cuda as tiles

#: Rows and pairs of columns are filled up to multiples of these, so that no load of X needs a mask.
NODES, PAIRS = 256, 128


@dataclass(frozen=True, eq=False)
class DenseFeatures:
    """X as the matrix units take it, for both directions.

    Attributes:
        by_node: shape (pieces, nodes, columns), filled up with zeros.
        by_feature: shape (pieces, 2, columns / 2, nodes), the even columns first.
        scale: the number of each row that stands outside the product, or nothing.
        column: the number of each column that goes into the weights, or nothing.
        inverse: the factor that undoes the power of two in the pieces.
        shape: of X.
    """

    by_node: Tensor
    by_feature: Tensor
    scale: Tensor | None
    column: Tensor | None
    inverse: float
    shape: tuple[int, int]

    @property
    def pieces(self) -> int:
        """Halves per number: 1 or 2; 0 where X is in single precision."""
        return 0 if self.by_node.dtype == torch.float32 else self.by_node.shape[0]

    @staticmethod
    def of(x: Tensor, split: bool = True) -> DenseFeatures:
        """Prepare X once; ``split=False`` keeps single precision, for products in three passes of tf32."""
        pieces, scale, column, inverse = _pieces(x) if split else (x[None], None, None, 1.0)
        nodes, features = x.shape
        rows, columns = -nodes % NODES, -features % (2 * PAIRS)
        by_node = pad(pieces, (0, columns, 0, rows)).contiguous()
        by_feature = by_node.unflatten(2, (-1, 2)).permute(0, 3, 2, 1).contiguous()
        return DenseFeatures(by_node, by_feature, scale, column, inverse, (nodes, features))


def _pieces(x: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None, float]:
    """Halves that add up to X times a power of two, in one piece if X, or X without a number per row and column, allows."""
    rows = x.abs().amax(1, keepdim=True)
    rows = torch.where(rows > 0, rows, torch.ones_like(rows))
    exponent = min(15 - int(torch.frexp(rows.max()).exponent), 126)
    high = (x * 2.0**exponent).half()
    if torch.equal(high.float(), x * 2.0**exponent):
        return high[None], None, None, 2.0**-exponent
    whole = (x / rows).half()
    if torch.equal(whole.float() * rows, x):
        return whole[None], rows[:, 0].contiguous(), None, 1.0
    factors = _factors(x)
    if factors is not None:
        return factors[0][None], factors[1], factors[2], 1.0
    return torch.stack([high, (x * 2.0**exponent - high.float()).half()]), None, None, 2.0**-exponent


def _factors(x: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
    """Whole numbers, a number per row and one per column, whose product is X to 2⁻²¹: tf-idf features are counts times these.

    Found by rounding in turns, on some of the rows first; taken only if every element agrees.
    """
    if not bool((x >= 0).all()) or not bool((x > 0).any()):
        return None
    some = x[:: max(x.shape[0] // 2500, 1)]
    there, log = x > 0, torch.where(x > 0, x, 1.0).double().log()
    few, short = some > 0, torch.where(some > 0, some, 1.0).double().log()
    column = (some.shape[0] / few.sum(0).clamp_min(1).double()).log().clamp_min(1e-9).log()
    row = _least(short - column, few)
    for _ in range(8):
        rest = torch.where(few, short - (short - row - column).exp().round().clamp_min(1).log(), torch.nan)
        column = (rest - row).nanmedian(0).values.nan_to_num(0.0)
        row = (rest - column).nanmedian(1, keepdim=True).values.nan_to_num(0.0)
    row = _least(log - column, there)
    for least in range(2, 17):  # the least count of a row need not be 1
        ratio = (log - row - column).exp()
        wrong = (there & ((ratio - ratio.round()).abs() > 2.0**-21 * ratio)).any(1, keepdim=True)
        if not bool(wrong.any()):
            break
        row = torch.where(wrong, _least(log - column, there) - math.log(least), row)
    row_scale, column_scale = row.exp().float(), column.exp().float()
    counts = torch.where(there, (log - row - column).exp().round(), 0.0)
    found = counts * row_scale.double() * column_scale.double()
    if counts.max() > 2048 or bool(((found - x).abs() > 2.0**-21 * x).any()):
        return None
    return counts.half(), row_scale[:, 0].contiguous(), column_scale.contiguous()


def _least(log: Tensor, there: Tensor) -> Tensor:
    """The least number of each row, taken to stand for a count of 1; 0 in empty rows."""
    least = torch.where(there, log, torch.inf).amin(1, keepdim=True)
    return torch.where(least.isfinite(), least, 0.0)


@dataclass(frozen=True, eq=False)
class Drop:
    """What decides the masks on X, one number per trial.

    Attributes:
        key, count: of the hash, whole numbers of 32 bits, as in :func:`unspool.ops.dropout.keep_mask`.
        threshold: the 16-bit number from which on an element survives, int32; -32768 keeps all.
        scale: what survivors are multiplied by, float32.
    """

    key: Tensor
    count: Tensor
    threshold: Tensor
    scale: Tensor


#: Shapes of the tiles, measured on an H200 for 100 trials of 64 channels on features of PubMed's and Photo's shapes.
FORWARD: dict[str, int] = {"ROWS": 64, "PAIRS": 32, "num_warps": 4, "num_stages": 2}
BACKWARD: dict[str, int] = {"ROWS": 32, "PAIRS": 64, "num_warps": 4, "num_stages": 3, "maxnreg": 168}
#: Nodes of a piece of the gradient, at least: a number of pieces that depends on the data set alone.
PIECE = 4096


def _tile(width: int) -> int:
    return max(triton.next_power_of_2(width), 16)


def halves(x: DenseFeatures, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The weights (trials, features, H) of this step as :func:`forward` takes them, and what undoes their scale."""
    trials, features, width = weight.shape
    split, columns = x.pieces > 0, x.by_node.shape[2]
    shape, kind = (trials, 2 if split else 1, columns, _tile(width)), torch.float16 if split else torch.float32
    out, inverse = weight.new_empty(shape, dtype=kind), weight.new_empty(trials)
    tiles.split_weights[(trials,)](
        weight, x.column, out, inverse, features, columns, H=width, TILE=_tile(width), ROWS=64, SPLIT=split,
        COLUMNS=x.column is not None,
    )  # fmt: skip
    return out, inverse


def new_words(x: DenseFeatures, trials: int) -> Tensor:
    """Room for the masks of all trials: a bit per element of X."""
    _, rows, columns = x.by_node.shape
    return torch.empty(trials, rows, 2, columns // 64, dtype=torch.int32, device=x.by_node.device)


def forward(
    x: DenseFeatures, weight: tuple[Tensor, Tensor], drop: Drop, masked: Tensor, plain: Tensor | None = None,
    words: Tensor | None = None, together: bool = True, apart: bool = False, packed: bool = False, **tuned: int,
) -> None:  # fmt: skip
    """drop(X) W into ``masked`` and X W into ``plain``, both (nodes, trials, H) with the same strides.

    Args:
        x: prepared features.
        weight: from :func:`halves`.
        drop: the masks.
        masked, plain: where the products go; neighbouring channels are neighbours in memory.
        words: from :func:`new_words`, to keep the masks for the way back.
        together: two trials share a tile of X.
        apart: sums stay in the matrix units, small products apart from large ones; for X of up to about 1,000 columns.
        packed: masks two halves at once, with instructions of the GPU that Triton's interpreter does not know.
        tuned: other shapes of the tiles.
    """
    nodes, trials, width = masked.shape
    _, rows, columns = x.by_node.shape
    shape = FORWARD | tuned
    grid = (triton.cdiv(trials, 2 if together else 1), triton.cdiv(nodes, shape["ROWS"]))
    tiles.products[grid](
        x.by_node, x.scale, x.inverse, *weight, drop.key, drop.count, drop.threshold, drop.scale, masked,
        masked if plain is None else plain, masked.stride(0), masked.stride(1), drop.key if words is None else words, nodes, rows, columns, trials,
        H=width, TILE=_tile(width), PIECES=x.pieces, SCALED=x.scale is not None, PLAIN=plain is not None,
        WORDS=words is not None, APART=apart, TWO=together, PACKED=packed and x.pieces > 0, **shape,
    )  # fmt: skip


def backward(
    x: DenseFeatures, signal: Tensor, drop: Drop, out: Tensor, words: Tensor | None = None, together: bool = True,
    piece: int = PIECE, packed: bool = False, **tuned: int,
) -> None:  # fmt: skip
    """drop(X)ᵀ G into ``out`` (trials, features, H), for G (nodes, trials, H) with neighbouring channels.

    Args:
        x: prepared features.
        signal: G.
        drop: the masks, as on the way there.
        out: contiguous.
        words: the masks as kept by :func:`forward`; without them they are hashed again.
        together: two trials share a tile of X.
        piece: nodes whose sum is one piece; pieces are added in their order.
        packed: as in :func:`forward`.
        tuned: other shapes of the tiles.
    """
    nodes, trials, width = signal.shape
    _, _, pairs, rows = x.by_feature.shape
    shape = BACKWARD | tuned
    blocks = triton.cdiv(nodes, shape["ROWS"])
    pieces = max(nodes // piece, 1)
    each = triton.cdiv(blocks, pieces)
    pieces = triton.cdiv(blocks, each)
    partial = out if pieces == 1 else out.new_empty(pieces, *out.shape)
    grid = (triton.cdiv(x.shape[1], 2 * shape["PAIRS"]), triton.cdiv(trials, 2 if together else 1), pieces)
    tiles.gradients[grid](
        x.by_feature, x.scale, x.column, x.inverse, signal, signal.stride(0), signal.stride(1), drop.key, drop.count, drop.threshold,
        drop.scale, drop.key if words is None else words, partial, nodes, rows, pairs, x.shape[1], trials, each,
        H=width, TILE=_tile(width), PIECES=x.pieces, SCALED=x.scale is not None, COLUMNS=x.column is not None, WORDS=words is not None, TWO=together,
        PACKED=packed and x.pieces > 0, **shape,
    )  # fmt: skip
    if pieces > 1:
        tiles.add_pieces[(triton.cdiv(out.numel(), 1024),)](partial, out, out.numel(), pieces, BLOCK=1024)
