"""The least time that an epoch of a trial in a stack can take on a GPU: what must move through memory, or be multiplied."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unspool import nn as layers
from unspool.models.convolutions import Convolutions
from unspool.models.dagnn import GatedHops
from unspool.models.mlp import Still
from unspool.ops import Basis, SparseFeatures
from unspool.ops.stacked_features import Form, _tiles, form_of
from unspool.study.batch.stacked_batch import StackedBatch
from unspool.unrolling import Unrolled

#: Bytes of a number.
SINGLE = 4


@dataclass(frozen=True)
class Work:
    """What an epoch of one trial must do.

    Attributes:
        first, hidden, hops, adam: bytes that must move, each input read once and each output written once: for the first layer forward and
            backward, for the layers after it and the loss, for the hops, and for the optimiser.
        operations: multiplications and additions in half precision of the first layer, where its features go through the matrix units.
        form: how features are multiplied.
    """

    first: float
    hidden: float
    hops: float
    adam: float
    operations: float
    form: Form

    @property
    def bytes(self) -> float:
        return self.first + self.hidden + self.hops + self.adam

    def seconds(self, bandwidth: float, rate: float) -> float:
        """The limit, with bytes and operations a second."""
        rest = (self.hidden + self.hops + self.adam) / bandwidth
        return max(self.first / bandwidth, self.operations / rate) + rest


def work_of(batch: StackedBatch) -> Work | None:
    """Counted from the parts of the model; None for a propagation of another kind.

    Training is one pass forward and one backward, evaluation one forward. Where nothing is dropped they share the one forward.
    """
    held = batch._pass
    model: Any = held.skeleton
    nodes, passes = held.task.graph.nodes, 2 if held.awake else 1
    x = held.x
    widths = _encoder(model.p_pre)
    moved = _hops(model.propagation, widths[-1], passes)
    if moved is None:
        return None
    features, width = widths[:2]
    first = 2 * features * width + (passes + 1) * nodes * width + _entries(x) / batch.slots
    pairs = list(itertools.pairwise(widths[1:])) + _products(model)
    hidden = sum(passes * (i + o) + 2 * i + o for i, o in pairs) * nodes
    hidden += (passes + 1) * nodes * int(held.task.target.max() + 1)
    adam = 7 * sum(p.numel() for p in held.learnt.values()) / batch.slots
    form = form_of(x) if isinstance(x, SparseFeatures) else Form.DENSE
    halves = 1 + (
        _tiles(x)[0].pieces if isinstance(x, SparseFeatures) and form is Form.DENSE and x.values.is_cuda else 1
    )
    operations = 2.0 * nodes * features * width * halves * (passes + 1) if form is Form.DENSE else 0.0
    return Work(SINGLE * first, SINGLE * hidden, SINGLE * moved * nodes, SINGLE * adam, operations, form)


def _encoder(first: Any) -> list[int]:
    linear = [first] if isinstance(first, layers.Linear) else list(first.layers)
    return [linear[0].weight.shape[0], *(layer.weight.shape[1] for layer in linear)]


def _entries(x: Tensor | SparseFeatures) -> float:
    """Numbers and columns of the features, read forward and backward, which all trials share."""
    return 4.0 * (x.numel() if isinstance(x, Tensor) else x.values.numel())


def _products(model: Any) -> list[tuple[int, int]]:
    """Widths of the layers after the propagation, and between hops."""
    net, found = model.propagation, list[tuple[int, int]]()
    if isinstance(net, Convolutions):
        found += [tuple(weight.shape) for weight in net.weights]
    return found + [tuple(part.weight.shape) for part in model.p_pos.modules() if isinstance(part, layers.Linear)]


def _hops(net: nn.Module, channels: int, passes: int) -> float | None:
    """Numbers a node that all hops move: each reads a signal and writes one, and reads what is added to it."""
    if isinstance(net, Still):
        return 0.0
    if isinstance(net, Convolutions):
        return 2.0 * (passes + 1) * (channels + sum(weight.shape[1] for weight in net.weights))
    if isinstance(net, GatedHops):
        return (passes + 1) * channels * (2.0 * net.depth + net.depth + 1)  # the gates read all of them again
    hops: Any = getattr(net, "hops", None)
    hops = hops() if callable(hops) and not isinstance(net, Unrolled) else hops
    if isinstance(hops, Tensor):
        depth, added = hops.shape[0] - 1, int(bool(hops[:-1].count_nonzero()))
        added += getattr(net, "basis", None) is Basis.CHEBYSHEV  # and what was there two hops ago
    elif isinstance(net, Unrolled):
        depth, added = net.depth or 0, 1
    else:
        return None
    return (passes + 1) * channels * (2.0 + added) * depth


def copy_bandwidth() -> float:
    """Bytes a second of a large copy, read and written."""
    source = torch.empty(2**30, device="cuda").normal_()
    target = torch.empty_like(source)
    return 2 * source.numel() * SINGLE / _timed(lambda: target.copy_(source))


def matrix_rate() -> float:
    """Operations a second of a large product in half precision."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.float16) for _ in range(2))
    return 2 * 8192**3 / _timed(lambda: torch.mm(a, b))


def _timed(run: Any, times: int = 5) -> float:
    """Seconds a call."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    run()
    begin.record()
    for _ in range(times):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3 / times
