"""Hops with shares of two signals, for the laws of ops, in the interpreter and on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ops.gated_cases import directed
from ops.op_laws import seeded
from unspool.ops.hop_blend import hop_blend


def whole(h: Tensor, x: Tensor, keep: Tensor, hop: Tensor, give: Tensor) -> Tensor:
    return hop_blend(directed(h), h, x, keep, hop, give)


def fixed(h: Tensor, x: Tensor) -> Tensor:
    return hop_blend(directed(h), h, x, 0.3, 0.9, 1.0)


def teleport(h: Tensor, x: Tensor, give: Tensor) -> Tensor:
    return hop_blend(directed(h), h, x, hop=1 - give.detach(), give=give)


def hop_alone(h: Tensor) -> Tensor:
    return hop_blend(directed(h), h)


def lazy(h: Tensor, keep: Tensor) -> Tensor:
    return hop_blend(directed(h), h, keep=keep)


def cases() -> Iterator[tuple[str, Callable[..., Tensor], list[Tensor], bool]]:
    """Name, op, inputs of one trial, and whether second derivatives are looked at."""
    numbers = [torch.tensor(n, dtype=torch.float64) for n in (0.3, 0.8, -0.4)]
    h, x = seeded(6, 3), seeded(6, 3, seed=1)
    yield "all learnt", whole, [h, x, *numbers], True
    yield "all fixed", fixed, [h, x], True
    yield "teleport", teleport, [h, x, numbers[0]], False
    yield "lazy", lazy, [seeded(6, 16), numbers[0]], False
    yield "hop alone", hop_alone, [seeded(6, 7)], True
