"""Sparse features times weights of many trials, each under its own mask, as one kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

from unspool.ops.autograd import derived, known_signature
from unspool.ops.blocks import fold_own, fold_shared, unfold_signal
from unspool.ops.dropout import Mask
from unspool.ops.features import DroppedFeatures, SparseFeatures
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


_RIDING: ContextVar[Riding | None] = ContextVar("riding", default=None)


@contextlib.contextmanager
def riding(found: Riding, collecting: bool) -> Iterator[None]:
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

        by_node, _ = slices_of(x)
        ride, weight = _RIDING.get(), weight.contiguous()
        if rate is None or key is None or count is None:
            found = None if ride is None or ride.collecting else ride.find(x, weight)
            return first_layer_cuda.forward(by_node, weight, None, True)[1] if found is None else found
        wanted = ride is not None and ride.collecting
        some, plain = first_layer_cuda.forward(by_node, weight, _mask(rate, key, count), wanted)
        if ride is not None and plain is not None:
            ride.keep(x, weight, plain)
        return some

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.x, ctx.drops = inputs[0], inputs[2] is not None
        ctx.save_for_backward(inputs[1], *(inputs[2:] if ctx.drops else ()))

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, weight: Tensor, *drop: Tensor | None) -> Any:
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

        _, by_feature = slices_of(ctx.x)
        mask = _mask(*drop) if ctx.drops else None
        dw = first_layer_cuda.backward(by_feature, grads[0].contiguous(), weight.shape[0], mask)
        return None, dw, None, None, None


def _mask(rate: Any, key: Any, count: Any) -> tuple[Tensor, Tensor, Tensor]:
    return rate.contiguous(), key.contiguous(), count.contiguous()
