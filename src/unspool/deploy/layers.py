"""Encoders and decoders as plain layers: a matrix, a vector, and whether negative numbers become zero."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import nn

from unspool.errors import IncompatibleError
from unspool.nn import Bias, Dropout, Linear, Perceptron
from unspool.nn.flatten import Densify

Array = np.ndarray[Any, Any]
#: What is left for networks that NumPy alone does not do.
OTHER_WAY = "a program of torch takes it (export_torch, --format torch)"


@dataclass(frozen=True, eq=False)
class Layer:
    """H ← H W + b, then its positive part where ``positive``; None where there is no W or no b."""

    weight: Array | None = None
    bias: Array | None = None
    positive: bool = False


def layers_of(module: nn.Module, owner: str) -> list[Layer]:
    """A module in evaluation mode as plain layers, or one sentence about the part that is not one.

    Args:
        module: an encoder or a decoder.
        owner: the model that it belongs to, for the sentence.

    Example:
        >>> import torch
        >>> [layer.positive for layer in layers_of(Perceptron([5, 16, 3], dropout=0.5), "MLP")]
        [True, False]
        >>> layers_of(torch.nn.Tanh(), "Calm")
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: Calm cannot be written with NumPy alone: it has a Tanh, and linear layers with ReLU are ...
    """
    if isinstance(module, Perceptron):
        return _perceptron(module, owner)
    if isinstance(module, nn.Sequential):
        return [layer for part in module for layer in layers_of(part, owner)]
    kind, held = type(module), vars(module).get("_parameters", {})
    if kind in (nn.Identity, nn.Dropout, Dropout, Densify):
        return []
    if kind in (Linear, Bias, nn.ReLU):
        return [Layer(_numbers(held.get("weight")), _numbers(held.get("bias")), positive=kind is nn.ReLU)]
    if kind is nn.Linear:
        return [Layer(_numbers(held["weight"].T), _numbers(held["bias"]))]
    raise IncompatibleError(
        f"{owner} cannot be written with NumPy alone: it has a {kind.__name__}, and linear layers with ReLU are all that is known; "
        f"{OTHER_WAY}"
    )


def _perceptron(module: Perceptron, owner: str) -> list[Layer]:
    if module.residual and len(module.layers) > 1:
        raise IncompatibleError(
            f"{owner} cannot be written with NumPy alone: its layers add their input to what they give, and plain layers are all that is known; "
            f"{OTHER_WAY}"
        )
    found: list[Layer] = []
    last = len(module.layers) - 1
    for i, layer in enumerate(module.layers):
        (made,) = layers_of(layer, "Perceptron")
        if module.norms is not None and i < last:
            made = _normed(made, module.norms[i])
        found.append(replace(made, positive=i < last or not module.open_end))
    return found


def _normed(layer: Layer, norm: Any) -> Layer:
    """A batch normalisation in evaluation mode is one more linear map, and goes into the layer before it."""
    assert layer.weight is not None
    mean, spread = (value.detach().cpu().double().numpy() for value in (norm.running_mean, norm.running_var))
    scale = _numbers(norm.weight) / np.sqrt(spread + norm.eps)
    bias = 0.0 if layer.bias is None else layer.bias
    return Layer(layer.weight * scale, (bias - mean) * scale + _numbers(norm.bias))


def _numbers(tensor: Any) -> Any:
    return None if tensor is None else tensor.detach().cpu().double().numpy()
