"""Rows of many trials that are pulled back to where they began, on an NVIDIA GPU: the proximal steps of AirGNN.

A row is the class channels of one node in one trial; rows lie one after the other, trials of a node side by side.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows", "trials"])
def pull(y, z, radius, inside, rows, trials, CHANNELS: tl.constexpr, ROWS: tl.constexpr):
    """y ← z + max(0, 1 − ρ / ‖y − z‖) (y − z) in training and evaluation; y − z of the former is kept."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    there = (row < rows)[:, None]
    channel = tl.arange(0, CHANNELS)[None, :]
    rho = tl.load(radius + row % trials, mask=row < rows, other=0.0)
    for net in tl.static_range(2):
        place = (row * 2 + net)[:, None] * CHANNELS + channel
        centre = tl.load(z + place, mask=there, other=0.0)
        offset = tl.load(y + place, mask=there, other=0.0) - centre
        if net == 0:
            tl.store(inside + row[:, None] * CHANNELS + channel, offset, mask=there)
        squared = tl.sum(offset * offset, axis=1)
        outside = squared > rho * rho
        factor = tl.where(outside, 1.0 - rho / tl.sqrt(tl.where(outside, squared, 1.0)), 0.0)
        tl.store(y + place, centre + factor[:, None] * offset, mask=there)


@triton.jit(do_not_specialize=["rows", "trials"])
def pull_backward(
    grad, inside, radius, moved, total, rows, trials, CHANNELS: tl.constexpr, ROWS: tl.constexpr, FIRST: tl.constexpr
):
    """The gradient of y − z, from that of the pulled rows; the rest of it goes to z, and is added up over the layers."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    there = (row < rows)[:, None]
    place = row[:, None] * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    rho = tl.load(radius + row % trials, mask=row < rows, other=0.0)
    offset = tl.load(inside + place, mask=there, other=0.0)
    g = tl.load(grad + place, mask=there, other=0.0)
    squared = tl.sum(offset * offset, axis=1)
    outside = squared > rho * rho
    length = tl.sqrt(tl.where(outside, squared, 1.0))
    lean = rho / (length * length * length) * tl.sum(offset * g, axis=1)
    back = tl.where(outside[:, None], (1.0 - rho / length)[:, None] * g + lean[:, None] * offset, 0.0)
    tl.store(moved + place, back, mask=there)
    rest = g - back
    if not FIRST:
        rest += tl.load(total + place, mask=there, other=0.0)
    tl.store(total + place, rest, mask=there)
