r"""What stands between two linear layers: bias, ReLU and dropout, alone or in front of the second layer.

Written out, :math:`D(\max(X + b, 0))` and :math:`D(\max(X + b, 0))\, W + c`. On a GPU each is one kernel over all trials, forward and
backward, that keeps nothing but X: masks are hashed again, and whether an element was positive can be seen in X.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unspool.ops.autograd import derived, known_signature
from unspool.ops.blocks import fold_own, fold_shared, fold_signal, unfold_signal
from unspool.ops.dropout import Mask, dropout
from unspool.ops.kernels import WIDEST, fused
from unspool.ops.padded_matmul import dense_product


def activate(x: Tensor, bias: Tensor | None = None, relu: bool = False, mask: Mask | None = None) -> Tensor:
    """Bias, ReLU and dropout, each where it is wanted.

    Args:
        x: signals (nodes, channels).
        bias: one number for each channel.
        relu: whether negative numbers become 0.
        mask: which elements are dropped.

    Example:
        >>> import torch
        >>> activate(torch.tensor([[1.0, -2.0]]), torch.tensor([1.0, 1.0]), relu=True)
        tensor([[2., 0.]])
    """
    if x.ndim == 2 and fused(x) and (bias is not None or relu or mask is not None):
        return _Activate.apply(x.unsqueeze(1), _one(bias), *_drop(mask), relu).squeeze(1)
    h = x if bias is None else x + bias
    h = torch.relu(h) if relu else h
    return h if mask is None else dropout(h, *mask)


def activated_product(
    x: Tensor, weight: Tensor, shift: Tensor | None = None, bias: Tensor | None = None, relu: bool = False, mask: Mask | None = None
) -> Tensor:  # fmt: skip
    """A linear layer on what :func:`activate` gives: D(max(X + b, 0)) W + c.

    Args:
        x: signals (nodes, in).
        weight: W, shape (in, out).
        shift: c, one number for each output.
        bias, relu, mask: as in :func:`activate`.

    Example:
        >>> import torch
        >>> activated_product(torch.tensor([[1.0, -2.0]]), torch.ones(2, 1), relu=True)
        tensor([[1.]])
    """
    if x.ndim == 2 and fused(x, weight) and fits(*weight.shape[-2:]):
        return _ActivatedProduct.apply(
            x.unsqueeze(1), _one(bias), *_drop(mask), relu, weight[None], _one(shift)
        ).squeeze(1)
    return dense_product(activate(x, bias, relu, mask), weight, shift)


def fits(inside: int, outside: int) -> bool:
    """Whether a product and its way back fit into the memory of a multiprocessor: 160 kB at the bound, 256 kB at 128 times 128.

    Example:
        >>> fits(64, 128), fits(128, 7), fits(128, 128), fits(256, 7)
        (True, True, False, False)
    """
    return max(inside, outside) <= WIDEST and min(inside, outside) <= WIDEST // 2


def _one(value: Tensor | None) -> Tensor | None:
    return None if value is None else value[None]


def _drop(mask: Mask | None) -> tuple[Tensor | None, ...]:
    return (None, None, None) if mask is None else tuple(part[None] for part in mask)


def _each(x: Tensor, shared: Tensor) -> Tensor:
    """What blocks share, once for each of them."""
    return shared.repeat_interleave(x.shape[1] // shared.shape[0], dim=0)


def _activate_formula(x: Tensor, bias: Tensor | None, rate: Any, key: Any, count: Any, relu: bool) -> Tensor:
    h = x if bias is None else x + _each(x, bias)
    h = torch.relu(h) if relu else h
    if rate is None:
        return h
    each = [dropout(h[:, b], rate[b], key[b], count[b]) for b in range(h.shape[1])]
    return torch.stack(each, dim=1)


def _product_formula(
    x: Tensor, bias: Tensor | None, rate: Any, key: Any, count: Any, relu: bool, weight: Tensor, shift: Tensor | None
) -> Tensor:
    h = _activate_formula(x, bias, rate, key, count, relu)
    product = torch.einsum("nbi,bio->nbo", h, _each(x, weight))
    return product if shift is None else product + _each(x, shift)


def _fold(info: Any, dims: Any, x: Tensor, shared: tuple[Any, ...], drop: tuple[Any, ...], shared_dims: Any) -> Any:
    """Signal, what blocks share, and masks of all trials; the same number of blocks for all."""
    trials = info.batch_size
    views = all(dim is None for dim in shared_dims)
    how = fold_shared if views else fold_own
    folded = tuple(None if v is None else how(v, d, trials) for v, d in zip(shared, shared_dims, strict=True))
    masks = tuple(None if v is None else fold_own(v, d, trials) for v, d in zip(drop, dims[1], strict=True))
    return fold_signal(x, dims[0], trials), folded, masks


@known_signature
class _Activate(torch.autograd.Function):
    """For x (nodes, blocks, channels), a bias (groups, channels) and masks (blocks,)."""

    @staticmethod
    def forward(
        x: Tensor, bias: Tensor | None, rate: Tensor | None, key: Tensor | None, count: Tensor | None, relu: bool
    ) -> Any:
        from unspool.ops.kernels import activated_cuda

        return activated_cuda.activate(x.contiguous(), _flat(bias), _mask(rate, key, count), _groups(x, bias), relu)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.relu = inputs[5]
        ctx.save_for_backward(*inputs[:5])

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        x, bias, rate, key, count, relu = args
        wide, (bias,), drop = _fold(info, (in_dims[0], in_dims[2:5]), x, (bias,), (rate, key, count), (in_dims[1],))
        return unfold_signal(_Activate.apply(wide, bias, *drop, relu), info.batch_size), 1

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, bias, *drop = ctx.saved_tensors
        if torch.is_grad_enabled():
            found = _derived(_activate_formula, (x, bias, *drop, ctx.relu), (0, 1), grads[0])
            return found[0], found[1], None, None, None, None
        from unspool.ops.kernels import activated_cuda

        if not ctx.relu and drop[0] is None:  # a bias alone: its gradient is a sum, and that of x is what came
            return grads[0], activated_cuda.sum_nodes(grads[0].contiguous(), bias.shape[0]), None, None, None, None
        dx, db = activated_cuda.activate_back(
            x.contiguous(), _flat(bias), _mask(*drop), _groups(x, bias), ctx.relu, grads[0].contiguous()
        )
        return dx, db, None, None, None, None


@known_signature
class _ActivatedProduct(torch.autograd.Function):
    """The same in front of matrices (groups, in, out)."""

    @staticmethod
    def forward(
        x: Tensor, bias: Tensor | None, rate: Tensor | None, key: Tensor | None, count: Tensor | None, relu: bool, weight: Tensor,
        shift: Tensor | None,
    ) -> Any:  # fmt: skip
        from unspool.ops.kernels import activated_cuda

        return activated_cuda.product(
            x.contiguous(), _flat(bias), _mask(rate, key, count), relu, weight.contiguous(), _flat(shift)
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.relu = inputs[5]
        ctx.save_for_backward(*inputs[:5], *inputs[6:])

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        x, bias, rate, key, count, relu, weight, shift = args
        wide, (bias, weight, shift), drop = _fold(
            info, (in_dims[0], in_dims[2:5]), x, (bias, weight, shift), (rate, key, count), (in_dims[1], *in_dims[6:])
        )
        return unfold_signal(_ActivatedProduct.apply(wide, bias, *drop, relu, weight, shift), info.batch_size), 1

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, bias, *drop, weight, shift = ctx.saved_tensors
        if torch.is_grad_enabled():
            inputs = (x, bias, *drop, ctx.relu, weight, shift)
            dx, db, dw, dc = _derived(_product_formula, inputs, (0, 1, 6, 7), grads[0])
            return dx, db, None, None, None, None, dw, dc
        from unspool.ops.kernels import activated_cuda

        dx, db, dw, dc = activated_cuda.product_back(
            x.contiguous(),
            _flat(bias),
            _mask(*drop),
            ctx.relu,
            weight.contiguous(),
            _flat(shift),
            grads[0].contiguous(),
        )
        return dx, db, None, None, None, None, dw, dc


def _derived(formula: Any, inputs: tuple[Any, ...], places: tuple[int, ...], grad: Tensor) -> list[Tensor | None]:
    """Differentiable gradients of some inputs of a formula; None where there is no such input."""
    given = [i for i in places if inputs[i] is not None]

    def of_these(*values: Tensor) -> Tensor:
        put = dict(zip(given, values, strict=True))
        return formula(*(put.get(i, value) for i, value in enumerate(inputs)))

    found = dict(zip(given, derived(of_these, tuple(inputs[i] for i in given), grad), strict=True))
    return [found.get(i) for i in places]


def _groups(x: Tensor, shared: Tensor | None) -> int:
    return x.shape[1] if shared is None else shared.shape[0]


def _flat(value: Tensor | None) -> Tensor | None:
    return None if value is None else value.contiguous()


def _mask(rate: Any, key: Any, count: Any) -> tuple[Tensor, Tensor, Tensor] | None:
    return None if rate is None else (rate.contiguous(), key.contiguous(), count.contiguous())
