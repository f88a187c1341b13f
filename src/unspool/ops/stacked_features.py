"""Sparse features times weights of many trials, each under its own mask, as one kernel."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Generator
from contextvars import ContextVar
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from unspool.ops.autograd import derived, known_signature
from unspool.ops.blocks import fold_own, fold_shared, unfold_signal
from unspool.ops.dropout import Mask
from unspool.ops.features import DroppedFeatures, SparseFeatures
from unspool.ops.kernels import WIDEST
from unspool.ops.sliced import slices_of
from unspool.ops.spmm import spmm


class Riding:
    """Products without masks that a training pass makes along the way, for the evaluation of the same weights.

    Reading the weights is most of the work of the first layer, and a kernel that has read them adds them up twice for little more.
    """

    def __init__(self) -> None:
        self.collecting = False
        self._made: dict[tuple[int, int], tuple[SparseFeatures, Tensor, Tensor]] = {}

    def keep(self, x: SparseFeatures, weight: Tensor, product: Tensor) -> None:
        """Remember X W; the weights must not change as long as this object is used."""
        self._made[id(x), weight.data_ptr()] = (x, weight, product)

    def find(self, x: SparseFeatures, weight: Tensor) -> Tensor | None:
        """X W, if it was made."""
        found = self._made.get((id(x), weight.data_ptr()))
        return None if found is None or found[1].shape != weight.shape else found[2]


class Form(Enum):
    """How features that are shared by many trials are multiplied: entry by entry, or tile by tile in the matrix units."""

    SPARSE = "sparse"
    DENSE = "dense"


#: From which share of entries on tiles are faster. Measured on an H200 with 64 channels, forward and backward, a trial: entries cost 43 µs a
#: million, tiles 3.0 µs a million elements (3.7 in two pieces), so they meet near 8 per cent.
DENSE_FROM = 0.08
#: The most elements that are written out, in four bytes each.
LARGEST = 2**30
_DENSE: weakref.WeakKeyDictionary[SparseFeatures, tuple[Any, Tensor]] = weakref.WeakKeyDictionary()


def form_of(x: SparseFeatures) -> Form:
    """How these features are multiplied on a GPU; a property of the features alone, so that a trial has the same numbers everywhere.

    Example:
        >>> form_of(SparseFeatures.from_tensor(torch.eye(100))), form_of(SparseFeatures.from_tensor(torch.ones(4, 4)))
        (<Form.SPARSE: 'sparse'>, <Form.DENSE: 'dense'>)
    """
    size = x.shape[0] * x.shape[1]
    return Form.DENSE if size <= LARGEST and x.values.numel() >= DENSE_FROM * size else Form.SPARSE


def by_tiles(x: SparseFeatures, width: int) -> bool:
    """Whether features meet weights of so many columns in the matrix units: a tile of wider ones does not fit into them.

    Example:
        >>> x = SparseFeatures.from_tensor(torch.ones(4, 4))
        >>> by_tiles(x, 64), by_tiles(x, 256)
        (True, False)
    """
    return width <= WIDEST and form_of(x) is Form.DENSE


def _tiles(x: SparseFeatures) -> tuple[Any, Tensor]:
    """The features as the matrix units take them, and as they are, prepared once."""
    known = _DENSE.get(x)
    if known is None:
        from unspool.ops.kernels.dense_features_cuda import DenseFeatures

        dense = x.to_dense()
        known = _DENSE[x] = (DenseFeatures.of(dense), dense)
    return known


def _dense_forward(
    x: SparseFeatures, weight: Tensor, mask: tuple[Tensor, Tensor, Tensor], plain: bool
) -> tuple[Tensor, Tensor | None]:
    from unspool.ops.kernels import dense_features_cuda as dense

    groups, _, width = weight.shape
    blocks, (tiles, _) = mask[0].shape[0], _tiles(x)
    shared = weight.repeat_interleave(blocks // groups, dim=0) if blocks > groups else weight
    some = weight.new_empty(x.shape[0], blocks, width)
    everything = torch.empty_like(some) if plain else None
    with torch.cuda.device(weight.device):
        dense.forward(
            tiles, dense.halves(tiles, shared), _hashed(mask), some, everything, together=False, packed=PACKED
        )
    views = blocks // groups
    return some, everything if everything is None or views == 1 else everything[:, ::views].contiguous()


def _dense_backward(x: SparseFeatures, grad: Tensor, groups: int, mask: tuple[Tensor, Tensor, Tensor] | None) -> Tensor:
    from unspool.ops.kernels import dense_features_cuda as dense

    tiles, whole = _tiles(x)
    if mask is None:
        return torch.mm(whole.T, grad.flatten(1)).unflatten(1, (groups, -1)).transpose(0, 1).contiguous()
    out = grad.new_empty(grad.shape[1], x.shape[1], grad.shape[2])
    with torch.cuda.device(grad.device):
        dense.backward(tiles, grad, _hashed(mask), out, together=False, packed=PACKED)
    return out if grad.shape[1] == groups else out.unflatten(0, (groups, -1)).sum(1)


#: Whether masks are laid on two halves at once, with instructions of the GPU that Triton's interpreter does not know.
PACKED = True


def _hashed(mask: tuple[Tensor, Tensor, Tensor]) -> Any:
    from unspool.ops.kernels.dense_features_cuda import Drop

    share = mask[0].double()
    threshold = (share * 2.0**16 - 2.0**15).ceil().clamp_max(2**15 - 1).int()
    scale = torch.where(share < 1, 1 / (1 - share), 0.0).float()
    return Drop(mask[1], mask[2], threshold, scale)


_RIDING: ContextVar[Riding | None] = ContextVar("riding", default=None)


@contextlib.contextmanager
def riding(found: Riding, collecting: bool) -> Generator[None]:
    """Keep what a training pass makes along the way (``collecting``), or use it.

    Example:
        >>> with riding(Riding(), collecting=True):
        ...     pass
    """
    found.collecting = collecting
    token = _RIDING.set(found)
    try:
        yield
    finally:
        _RIDING.reset(token)


def stacked_feature_product(x: SparseFeatures, weight: Tensor, mask: Mask | None) -> Tensor:
    """X̃ W on a GPU; under ``vmap`` for all trials at once, and for several masks of the same weights."""
    drop = (None, None, None) if mask is None else tuple(part[None] for part in mask)
    return _FeatureProduct.apply(x, weight[None], *drop).squeeze(1)


def _formula(
    x: SparseFeatures, weight: Tensor, rate: Tensor | None, key: Tensor | None, count: Tensor | None
) -> Tensor:
    """The same, block by block, in parts that have derivatives of any order."""
    if rate is None or key is None or count is None:
        return torch.stack([spmm(x.operator, w) for w in weight], dim=1)
    views = rate.shape[0] // weight.shape[0]
    each = [
        spmm(DroppedFeatures(x, Mask(rate[b], key[b], count[b])).operator, weight[b // views])
        for b in range(rate.shape[0])
    ]
    return torch.stack(each, dim=1)


@known_signature
class _FeatureProduct(torch.autograd.Function):
    """X̃ W for weights (groups, features, width) and masks of (blocks,), or none; the result has shape (nodes, blocks, width)."""

    @staticmethod
    def forward(
        x: SparseFeatures, weight: Tensor, rate: Tensor | None, key: Tensor | None, count: Tensor | None
    ) -> Any:
        from unspool.ops.kernels import first_layer_cuda

        ride, weight = _RIDING.get(), weight.contiguous()
        if rate is None or key is None or count is None:
            found = None if ride is None or ride.collecting else ride.find(x, weight)
            if found is not None:
                return found
            if by_tiles(x, weight.shape[2]):
                return torch.mm(_tiles(x)[1], weight.transpose(0, 1).flatten(1)).unflatten(1, (weight.shape[0], -1))
            return first_layer_cuda.forward(slices_of(x)[0], weight, None, True)[1]
        wanted = ride is not None and ride.collecting
        if by_tiles(x, weight.shape[2]):
            some, plain = _dense_forward(x, weight, _mask(rate, key, count), wanted)
        else:
            some, plain = first_layer_cuda.forward(slices_of(x)[0], weight, _mask(rate, key, count), wanted)
        if ride is not None and plain is not None:
            ride.keep(x, weight, plain)
        return some

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.x, ctx.drops = inputs[0], inputs[2] is not None
        ctx.save_for_backward(inputs[1], *(inputs[2:] if ctx.drops else ()))

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        x, weight, *drop = args
        trials, dims = info.batch_size, in_dims[2:]
        drops = drop[0] is not None and any(d is not None for d in dims)
        shared = drops and in_dims[1] is None
        weight = fold_shared(weight, in_dims[1], trials) if shared else fold_own(weight, in_dims[1], trials)
        folded = tuple(None if v is None else fold_own(v, d, trials) for v, d in zip(drop, dims, strict=True))
        return unfold_signal(_FeatureProduct.apply(x, weight, *folded), trials), 1

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        weight, *drop = ctx.saved_tensors
        drop = drop or [None, None, None]
        if torch.is_grad_enabled():
            (dw,) = derived(lambda w: _formula(ctx.x, w, *drop), (weight,), grads[0])
            return None, dw, None, None, None
        from unspool.ops.kernels import first_layer_cuda

        mask, grad = _mask(*drop) if ctx.drops else None, grads[0].contiguous()
        if by_tiles(ctx.x, weight.shape[2]):
            dw = _dense_backward(ctx.x, grad, weight.shape[0], mask)
        else:
            dw = first_layer_cuda.backward(slices_of(ctx.x)[1], grad, weight.shape[0], mask)
        return None, dw, None, None, None


def _mask(rate: Any, key: Any, count: Any) -> tuple[Tensor, Tensor, Tensor]:
    return rate.contiguous(), key.contiguous(), count.contiguous()
