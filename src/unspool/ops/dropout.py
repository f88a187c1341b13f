"""Dropout whose masks are computed, not drawn: the same key gives the same mask, alone or among a thousand trials.

Each element's fate is a hash of its place and a key made of (seed, epoch, place). Nothing is stored for the backward
pass but the key, and CPU, GPU and stacked trials agree bit for bit.
"""

from __future__ import annotations

import torch
from torch import Tensor

# A well-mixing 32-bit finaliser (the constants are those of "lowbias32", found by C. Wellons' hash prospector, 2018).
_FIRST, _SECOND = 0x7FEB352D, 0x846CA68B - (1 << 32)
_GOLDEN = 0x9E3779B9 - (1 << 32)


def mix(bits: Tensor) -> Tensor:
    """Scramble int32 bits, one to one.

    Example:
        >>> import torch
        >>> mix(torch.tensor([0, 1, 2], dtype=torch.int32)).unique().numel()
        3
    """
    # Trap: >> on int32 keeps the sign; the masks make it a logical shift.
    bits = (bits ^ ((bits >> 16) & 0xFFFF)) * _FIRST
    bits = (bits ^ ((bits >> 15) & 0x1FFFF)) * _SECOND
    return bits ^ ((bits >> 16) & 0xFFFF)


def key(
    seed: int | Tensor, epoch: int | Tensor, place: int | Tensor, device: torch.device | str | None = None
) -> Tensor:
    """One int32 key out of (seed, epoch, place); tensors of trial seeds give tensors of keys.

    Example:
        >>> int(key(0, 1, 2)) == int(key(0, 1, 2)), int(key(0, 1, 2)) == int(key(0, 2, 1))
        (True, False)
    """
    state = _word(0, device)
    for part in (seed, epoch, place):
        word = _word(part, device)
        state = mix((state + _GOLDEN) ^ word)
    return state


def keep_mask(shape: torch.Size | tuple[int, ...], rate: float | Tensor, key: Tensor) -> Tensor:
    """Which elements survive: True with probability 1 − rate, decided by row, column and key alone."""
    rows, cols = int(torch.Size(shape[:-1]).numel()), shape[-1]
    row = torch.arange(rows, dtype=torch.int32, device=key.device)
    col = torch.arange(cols, dtype=torch.int32, device=key.device) * _GOLDEN
    # Trap: hashing row ^ key gives keys that differ in low bits the same rows in another order.
    bits = mix(mix(mix(row) ^ key)[:, None] + col).view(shape)
    threshold = torch.as_tensor(rate, dtype=torch.float64, device=key.device) * 2.0**32 - 2.0**31
    return bits.to(torch.float64) >= threshold


def dropout(x: Tensor, rate: float | Tensor, key: Tensor) -> Tensor:
    """Zero each element with probability ``rate`` and scale the rest by 1 / (1 − rate).

    Args:
        x: any tensor with at least one dimension.
        rate: a number in [0, 1), or a scalar tensor (one per trial under ``vmap``).
        key: from :func:`key`.

    Example:
        >>> import torch
        >>> x = torch.ones(1000, 10)
        >>> a, b = dropout(x, 0.5, key(0, 1, 2)), dropout(x, 0.5, key(0, 1, 2))
        >>> torch.equal(a, b), round(float(a.mean()), 1)
        (True, 1.0)
    """
    if not isinstance(rate, Tensor) and not 0 <= rate < 1:
        raise ValueError(f"dropout rate {rate}: expected a number in [0, 1)")
    kept = 1 - torch.as_tensor(rate, dtype=x.dtype, device=x.device)
    scale = 1 / kept.clamp_min(torch.finfo(x.dtype).eps)  # a tensor rate of 1 drops everything, gradients included
    return torch.where(keep_mask(x.shape, rate, key), x * scale, torch.zeros_like(x))


def _word(part: int | Tensor, device: torch.device | str | None) -> Tensor:
    wide = torch.as_tensor(part, dtype=torch.int64, device=device)
    low = wide & 0xFFFFFFFF
    return (low - ((low >> 31) << 32)).to(torch.int32)
