"""Adam for a stack of trials on an NVIDIA GPU: one pass over a parameter, its gradient and its moments."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit(do_not_specialize=["size"])
def _step(
    weight, mean, square, grad, steps, rates, decays, size, LOG1: tl.constexpr, LOG2: tl.constexpr, BETA1: tl.constexpr,
    BETA2: tl.constexpr, EPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    trial = tl.program_id(1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = at < size
    place = trial.to(tl.int64) * size + at
    # Corrections in double precision, from the number of the step.
    step = tl.load(steps + trial).to(tl.float64)
    move = (tl.load(rates + trial) / (1.0 - tl.exp(step * LOG1))).to(tl.float32)
    root = (1.0 / tl.sqrt(1.0 - tl.exp(step * LOG2))).to(tl.float32)
    w = tl.load(weight + place, mask=there, other=0.0)
    g = tl.load(grad + place, mask=there, other=0.0) + tl.load(decays + trial).to(tl.float32) * w
    m = tl.load(mean + place, mask=there, other=0.0)
    v = tl.load(square + place, mask=there, other=0.0)
    # Trap: 1 − β₂ in single precision is off by 5e-5; as constants they are computed in double.
    m = m + (g - m) * (1 - BETA1)
    v = BETA2 * v + (1 - BETA2) * g * g
    tl.store(weight + place, w - move * m / (tl.sqrt(v) * root + EPS), mask=there)
    tl.store(mean + place, m, mask=there)
    tl.store(square + place, v, mask=there)


def step(
    weight: Tensor, mean: Tensor, square: Tensor, grad: Tensor, steps: Tensor, rates: Tensor, decays: Tensor,
    betas: tuple[float, float], eps: float,
) -> None:  # fmt: skip
    """Move a parameter of shape (trials, ...) in place; all tensors are contiguous, and ``steps`` counts this step already."""
    trials = weight.shape[0]
    size = weight.numel() // max(trials, 1)
    if size == 0:
        return
    block = min(max(triton.next_power_of_2(size), 32), 1024)
    with torch.cuda.device(weight.device):
        _step[(triton.cdiv(size, block), trials)](
            weight, mean, square, grad, steps, rates, decays, size, LOG1=math.log(betas[0]), LOG2=math.log(betas[1]),
            BETA1=betas[0], BETA2=betas[1], EPS=eps, BLOCK=block,
        )  # fmt: skip
