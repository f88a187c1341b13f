"""Cross-entropy and accuracy of many trials, each on nodes of its own, on an NVIDIA GPU.

Outputs have shape (trials, nodes, classes) in any order of memory whose classes lie side by side. A program has a stretch of the nodes of
one trial; stretches are added up in order.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Nodes that one program takes at a time, and the most classes.
NODES, WIDEST = 64, 128


def pieces_of(count: int) -> int:
    """How many programs share the nodes of a trial.

    Example:
        >>> pieces_of(140), pieces_of(1000), pieces_of(100_000)
        (1, 4, 64)
    """
    return min(max(1, -(-count // 256)), 64)


@triton.jit
def _surprise(y, label, node, there, trial, node_stride, trial_stride, classes, CHANNELS: tl.constexpr):
    """Cross-entropy of some nodes, their softmax, where it was right to be, and whether the largest output is there."""
    channel = tl.arange(0, CHANNELS)
    place = node[:, None] * node_stride + trial * trial_stride + channel[None, :]
    logits = tl.load(y + place, mask=there[:, None] & (channel < classes)[None, :], other=0.0)
    logits = tl.where((channel < classes)[None, :], logits, -float("inf"))
    top = tl.max(logits, axis=1)
    powers = tl.exp(logits - top[:, None])
    total = tl.sum(powers, axis=1)
    hit = channel[None, :] == label[:, None]
    own = tl.sum(tl.where(hit, logits, 0.0), axis=1)
    each = tl.where(there, tl.log(total) + top - own, 0.0)
    best = tl.argmax(logits, axis=1, tie_break_left=True)
    # Trap: where an output is NaN no comparison holds, and the first class is not a prediction.
    right = there & (best == label) & (each < float("inf"))
    return each, powers / total[:, None], hit, right


@triton.jit(do_not_specialize=["trials", "count", "each", "node_stride", "trial_stride", "classes"])
def _learn(
    y, ids, labels, grad, partial, trials, count, each, node_stride, trial_stride, classes, CHANNELS: tl.constexpr, NODES: tl.constexpr
):  # fmt: skip
    """Sum of the losses of a stretch, and their gradient, which has shape (nodes, trials, classes)."""
    piece, trial = tl.program_id(0), tl.program_id(1).to(tl.int64)
    channel = tl.arange(0, CHANNELS)
    loss = tl.zeros([NODES], dtype=tl.float32)
    for begin in range(piece * each, tl.minimum((piece + 1) * each, count), NODES):
        at = begin + tl.arange(0, NODES)
        there = (at < count) & (at < (piece + 1) * each)
        node = tl.load(ids + trial * count + at, mask=there, other=0).to(tl.int64)
        label = tl.load(labels + node, mask=there, other=0).to(tl.int32)
        found, share, hit, _ = _surprise(y, label, node, there, trial, node_stride, trial_stride, classes, CHANNELS)
        loss += found
        back = (share - tl.where(hit, 1.0, 0.0)) / count
        target = (node * trials + trial)[:, None] * classes + channel[None, :]
        tl.store(grad + target, back, mask=there[:, None] & (channel < classes)[None, :])
    tl.store(partial + piece * trials + trial, tl.sum(loss, axis=0))


@triton.jit(do_not_specialize=["trials", "count", "each", "node_stride", "trial_stride", "classes"])
def _look(
    y, ids, labels, losses, hits, trials, count, each, node_stride, trial_stride, classes, CHANNELS: tl.constexpr, NODES: tl.constexpr
):  # fmt: skip
    """Sum of the losses of a stretch, and how many are right."""
    piece, trial = tl.program_id(0), tl.program_id(1).to(tl.int64)
    loss = tl.zeros([NODES], dtype=tl.float32)
    right = tl.zeros([NODES], dtype=tl.float32)
    for begin in range(piece * each, tl.minimum((piece + 1) * each, count), NODES):
        at = begin + tl.arange(0, NODES)
        there = (at < count) & (at < (piece + 1) * each)
        node = tl.load(ids + trial * count + at, mask=there, other=0).to(tl.int64)
        label = tl.load(labels + node, mask=there, other=0).to(tl.int32)
        found, _, _, good = _surprise(y, label, node, there, trial, node_stride, trial_stride, classes, CHANNELS)
        loss += found
        right += tl.where(good, 1.0, 0.0)
    tl.store(losses + piece * trials + trial, tl.sum(loss, axis=0))
    tl.store(hits + piece * trials + trial, tl.sum(right, axis=0))


@triton.jit(
    do_not_specialize=[
        "trials",
        "train_pieces",
        "valid_pieces",
        "test_pieces",
        "train_count",
        "valid_count",
        "test_count",
    ]
)
def _note(
    train, valid, valid_hits, test_hits, now, ring, place, trials, train_pieces, valid_pieces, test_pieces, train_count, valid_count,
    test_count, BLOCK: tl.constexpr,
):  # fmt: skip
    """The row of this epoch: the loss before the step, which ``now`` holds, and three numbers after it; then ``now`` is the next."""
    trial = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = trial < trials
    found = tl.zeros([BLOCK], dtype=tl.float64)
    loss = tl.zeros([BLOCK], dtype=tl.float64)
    good = tl.zeros([BLOCK], dtype=tl.float64)
    test = tl.zeros([BLOCK], dtype=tl.float64)
    for piece in range(train_pieces):
        found += tl.load(train + piece * trials + trial, mask=there, other=0.0).to(tl.float64)
    for piece in range(valid_pieces):
        loss += tl.load(valid + piece * trials + trial, mask=there, other=0.0).to(tl.float64)
        good += tl.load(valid_hits + piece * trials + trial, mask=there, other=0.0).to(tl.float64)
    for piece in range(test_pieces):
        test += tl.load(test_hits + piece * trials + trial, mask=there, other=0.0).to(tl.float64)
    before = tl.load(now + trial, mask=there, other=0.0)
    bad = (before - before) != 0  # infinite, or no number
    nothing = float("nan")
    row = ring + (tl.load(place) * trials + trial) * 4
    tl.store(row, tl.where(bad, nothing, before), mask=there)
    tl.store(row + 1, tl.where(bad, nothing, loss / valid_count), mask=there)
    tl.store(row + 2, tl.where(bad, nothing, good / valid_count), mask=there)
    tl.store(row + 3, tl.where(bad | (test_count == 0), nothing, test / test_count), mask=there)
    tl.store(now + trial, found / train_count, mask=there)


def suits(outputs: Tensor) -> bool:
    """Whether outputs of shape (trials, nodes, classes) are what the kernels read."""
    return outputs.shape[2] <= WIDEST


def _strides(y: Tensor) -> tuple[Tensor, int, int]:
    y = y if y.stride(2) == 1 or y.shape[2] == 1 else y.contiguous()
    return y, y.stride(1), y.stride(0)


def _shape(classes: int) -> dict[str, int]:
    return {"CHANNELS": max(triton.next_power_of_2(classes), 2), "NODES": NODES}


def learn(outputs: Tensor, ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of the losses, (pieces, trials), and the gradient of the mean losses, as the outputs are shaped.

    ids: the nodes of each trial, (trials, count); labels: of all nodes.
    """
    trials, nodes, classes = outputs.shape
    count = ids.shape[1]
    y, node_stride, trial_stride = _strides(outputs)
    pieces = pieces_of(count)
    grad = torch.zeros(nodes, trials, classes, device=y.device)
    partial = torch.empty(pieces, trials, device=y.device)
    with torch.cuda.device(y.device):
        _learn[(pieces, trials)](
            y, ids, labels, grad, partial, trials, count, triton.cdiv(count, pieces), node_stride, trial_stride, classes, **_shape(classes)
        )  # fmt: skip
    return partial, grad.transpose(0, 1)


def look(outputs: Tensor, ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of the losses and numbers of right answers, (pieces, trials) each."""
    trials, _, classes = outputs.shape
    count = ids.shape[1]
    y, node_stride, trial_stride = _strides(outputs)
    pieces = pieces_of(count)
    losses, hits = (torch.empty(pieces, trials, device=y.device) for _ in range(2))
    with torch.cuda.device(y.device):
        _look[(pieces, trials)](
            y, ids, labels, losses, hits, trials, count, triton.cdiv(count, pieces), node_stride, trial_stride, classes, **_shape(classes)
        )  # fmt: skip
    return losses, hits


def note(
    train: Tensor, valid: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor], now: Tensor, ring: Tensor, place: Tensor, counts: tuple[int, int, int]
) -> None:  # fmt: skip
    """Write down an epoch in row ``place`` of ``ring``, shape (rows, trials, 4), and remember the loss of the next in ``now``."""
    trials = now.shape[0]
    with torch.cuda.device(now.device):
        _note[(triton.cdiv(trials, 128),)](
            train, *valid, test[1], now, ring, place, trials, train.shape[0], valid[0].shape[0], test[1].shape[0], *counts, BLOCK=128
        )  # fmt: skip
