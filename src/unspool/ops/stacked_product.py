"""Products of signals with small matrices, one matrix for each trial, with what follows them: ReLU and dropout."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unspool.ops import kernels
from unspool.ops.autograd import known_signature
from unspool.ops.blocks import fold_own, fold_shared, fold_signal, unfold_signal
from unspool.ops.dropout import Mask, check_rate, dropout
from unspool.ops.kernels import WIDEST


def stacked_product(x: Tensor, weight: Tensor, relu: bool = False, drop: Mask | None = None) -> Tensor:
    """``dropout(relu(x @ weight))``; under ``vmap`` on a GPU one kernel for all trials, and one on the way back.

    The sums over nodes on the way back are taken in the same order for any number of trials.

    Args:
        x: signals of shape (nodes, in).
        weight: a matrix of shape (in, out).
        relu: whether the result ends in a ReLU.
        drop: dropout of the result.

    Example:
        >>> import torch
        >>> x, weight = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.0], [0.0, -1.0]])
        >>> stacked_product(x, weight, relu=True)
        tensor([[1., 0.]])
    """
    _check(x, weight)
    alone = drop is not None and not relu  # what survived cannot be told from the result without a ReLU
    if not (kernels.fused(x, weight) and max(weight.shape) <= WIDEST) or torch.is_autocast_enabled(x.device.type):
        product = ended(x @ weight, relu)
        return product if drop is None else dropout(product, *drop)
    parts = () if drop is None or alone else drop_parts(drop)
    product = _Product.apply(x.unsqueeze(1), weight[None], relu, *(p[None] for p in parts)).squeeze(1)
    return dropout(product, *drop) if drop is not None and alone else product


def ended(h: Tensor, relu: bool) -> Tensor:
    """ReLU, where it is asked for."""
    return torch.relu(h) if relu else h


def drop_parts(drop: Mask) -> tuple[Tensor, Tensor, Tensor]:
    """Rate, key and count as tensors in the dtypes of the kernels."""
    rate = check_rate(drop.rate, drop.key)
    return rate, drop.key, torch.as_tensor(drop.call, dtype=torch.int64, device=drop.key.device)


def formula(x: Tensor, weight: Tensor, relu: bool, *drop: Tensor) -> Tensor:
    """What the kernels compute, for signals (nodes, blocks, in) and matrices (groups, in, out) that blocks share in order."""
    own = weight.repeat_interleave(x.shape[1] // weight.shape[0], 0)
    h = ended(torch.einsum("nbi,bij->nbj", x, own), relu)
    if not drop:
        return h
    return torch.func.vmap(dropout, in_dims=(1, 0, 0, 0), out_dims=1)(h, *drop)


def _check(x: Tensor, weight: Tensor) -> None:
    if x.ndim != 2 or weight.ndim != 2 or x.shape[1] != weight.shape[0]:
        raise ValueError(
            f"x has shape {tuple(x.shape)} and the matrix {tuple(weight.shape)}: expected (nodes, in) and (in, out)"
        )


@known_signature
class _Product(torch.autograd.Function):
    """D(ReLU(x T)) for every block."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, relu: bool, *drop: Tensor) -> Any:
        from unspool.ops.kernels import product_cuda

        x, weight = x.contiguous(), weight.contiguous()
        return product_cuda.product(x, weight, relu, contiguous(drop) if drop else None)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, weight, relu, *drop = inputs
        ctx.save_for_backward(x, weight, output, *drop)
        ctx.relu = relu

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        x, weight, relu, *drop = args
        signal = fold_signal(x, in_dims[0], info.batch_size)
        own = (fold_own(part, dim, info.batch_size) for part, dim in zip(drop, in_dims[3:], strict=True))
        out = _Product.apply(signal, fold_shared(weight, in_dims[1], info.batch_size), relu, *own)
        return unfold_signal(out, info.batch_size), 1

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, weight, out, *drop = ctx.saved_tensors
        if torch.is_grad_enabled():
            dx, dweight = torch.func.vjp(lambda x, w: formula(x, w, ctx.relu, *drop), x, weight)[1](grads[0])
        else:
            dx, dweight = _Gradients.apply(grads[0], x, out, weight, ctx.relu, *drop[:1])
        return (dx, dweight, None, *(None for _ in drop))


@known_signature
class _Gradients(torch.autograd.Function):
    """Both gradients of the product; called where nobody asks for further ones."""

    @staticmethod
    def forward(grad: Tensor, x: Tensor, out: Tensor, weight: Tensor, relu: bool, *rate: Tensor) -> Any:
        from unspool.ops.kernels import product_cuda

        grad, x, weight, out, *rates = contiguous((grad, x, weight, out, *rate))
        return product_cuda.gradients(grad, x, weight, out, relu, rates[0] if rates else None)[:2]

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        *signals, weight, relu = args[:5]
        many = [fold_signal(t, dim, info.batch_size) for t, dim in zip(signals, in_dims, strict=False)]
        own = [
            fold_own(t, dim, info.batch_size)
            for t, dim in zip((weight, *args[5:]), (in_dims[3], *in_dims[5:]), strict=True)
        ]
        dx, dweight = _Gradients.apply(*many, own[0], relu, *own[1:])
        return (unfold_signal(dx, info.batch_size), dweight.unflatten(0, (info.batch_size, -1))), (1, 0)


def contiguous(parts: Any) -> Any:
    """The tensors as kernels read them."""
    return tuple(part.contiguous() for part in parts)
