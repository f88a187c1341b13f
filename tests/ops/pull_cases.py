"""Pulls for the laws of ops, in the interpreter and on a GPU: odd numbers of channels, one node, several stretches of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from ops.op_laws import seeded
from unspool.ops import prox

SHAPES = [(5, 3), (1, 7), (70, 1), (3, 40)]


def shrink(h: Tensor, centre: Tensor, radius: Any = 0.5) -> Tensor:
    return prox.row_shrink(h, radius, centre)


def cases() -> Iterator[tuple[str, Callable[..., Tensor], list[Tensor], bool]]:
    """Name, op, inputs of one trial, and whether second derivatives are looked at (they are long)."""
    radius = torch.tensor(0.8, dtype=torch.float64)
    for shape in SHAPES:
        h, centre = seeded(*shape), seeded(*shape, seed=9)
        yield f"shrink {shape} to a centre", shrink, [h, centre, radius], shape == SHAPES[0]
    h, centre = seeded(5, 3), seeded(5, 3, seed=9)
    yield "shrink by a number", shrink, [h, centre], False
    yield "shrink", prox.row_shrink, [h, radius], False
    yield "ball", prox.ball, [h, radius], False
    yield "soft", prox.soft_threshold, [h, radius], False
