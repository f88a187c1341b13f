"""The kernels of dense features in Triton's interpreter, against float64. Run by test_dense_features.py, one case per name given.

Prints one line per check: its name and the relative error; for masks, and for a trial alone, how many numbers are wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from unspool.ops import dropout

#: nodes, features, H, trials, rates, kind of X.
CASES: dict[str, tuple[int, int, int, int, tuple[float, ...], str]] = {
    "numbers": (200, 131, 64, 3, (0.5, 0.0, 0.8), "numbers"),
    "bag": (70, 70, 32, 2, (0.3, 0.6), "bag"),
    "rows": (130, 33, 16, 3, (0.5, 0.2, 0.9), "rows"),
    "narrow": (5, 3, 20, 1, (0.5,), "numbers"),
    "wide": (40, 257, 128, 2, (0.5, 0.5), "numbers"),
    "counts": (100, 40, 16, 2, (0.5, 0.1), "counts"),
    "tiny": (90, 40, 16, 2, (0.5, 0.1), "tiny"),
}


def features(kind: str, nodes: int, count: int) -> Tensor:
    """Numbers of many sizes, a bag of words, one with normalised rows, or numbers near the end of single precision."""
    words = torch.rand(nodes, count) < 0.3
    if kind == "bag":
        return words.float()
    if kind == "rows":
        return words / words.sum(1, keepdim=True).clamp_min(1)
    if kind == "counts":
        share = torch.linspace(0.1, 0.6, count)  # counts of words over lengths of texts, times how rare a word is
        words = (torch.rand(nodes, count) < share) * torch.randint(1, 5, (nodes, count))
        words[:5] *= 3  # texts in which no word stands once
        rare = torch.log(nodes / (words > 0).sum(0)) * (1 + 0.02 * torch.rand(count))
        return words / words.sum(1, keepdim=True).clamp_min(1) * rare
    x = words * torch.exp(2 * torch.randn(nodes, count))
    return x * 1e-30 if kind == "tiny" else x


def drop_of(rates: tuple[float, ...], trials: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Key, count, threshold and scale of each trial."""
    key = dropout.key(torch.arange(trials) + 3, 1, 2)
    share = torch.tensor(rates, dtype=torch.float64)
    threshold = (share * 2.0**16 - 2.0**15).ceil().clamp_max(2.0**15 - 1).int()
    return key, torch.arange(trials, dtype=torch.int32) + 7, threshold, (1 / (1 - share)).float()


def off(found: Tensor, want: Tensor) -> float:
    """The largest relative error of a trial, trials in the second place."""
    gap, size = (t.double().movedim(1, 0).flatten(1).norm(dim=1) for t in (found - want, want))
    return float((gap / torch.where(size > 0, size, 1.0)).max())  # where nothing survives, nothing is to be found


def flags_of(words: Tensor, nodes: int, count: int) -> Tensor:
    lane = torch.arange(32, dtype=torch.int32, device=words.device)
    bits = (words[:, :nodes, :, :, None] >> lane) & 1
    return bits.flatten(3).transpose(2, 3).flatten(2)[:, :, :count].bool()


def checks(name: str, device: str, packed: bool) -> Iterator[tuple[str, float]]:
    """The label of each number, and the number."""
    from unspool.ops.kernels import dense_features_cuda as dense

    nodes, count, width, trials, rates, kind = CASES[name]
    torch.manual_seed(len(name))
    x, weight = features(kind, nodes, count).to(device), torch.randn(trials, count, width).to(device) / count**0.5
    grad = (torch.randn(nodes, trials, width) * torch.exp(2 * torch.randn(nodes, 1, 1)) * 1e-6).to(device)
    drop = dense.Drop(*(part.to(device) for part in drop_of(rates, trials)))
    kept = torch.stack(
        [dropout.keep_mask(x.shape, r, drop.key[t], drop.count[t]) for t, r in enumerate(rates)]
    ).double()
    thinned = kept * x.double() * drop.scale.double()[:, None, None]
    want = (
        (thinned @ weight.double()).movedim(1, 0),
        (x.double() @ weight.double()).movedim(1, 0),
        (thinned.mT @ grad.double().movedim(1, 0)).movedim(1, 0),
    )
    shape: dict[str, Any] = {"ROWS": 64, "PAIRS": 32, "num_warps": 4, "packed": packed}
    for split, together, apart in ((True, False, False), (True, True, True), (False, True, False)):
        prepared = dense.DenseFeatures.of(x, split)
        label = f"{name} {prepared.pieces} {together} {apart}"
        words, (masked, plain) = (
            dense.new_words(prepared, trials),
            torch.full((2, *grad.shape), torch.nan, device=device),
        )
        gradient, with_words = torch.full((2, *weight.shape), torch.nan, device=device)
        dense.forward(prepared, dense.halves(prepared, weight), drop, masked, plain, words, together, apart, **shape)
        dense.backward(prepared, grad, drop, gradient, None, together, 64, **shape)
        dense.backward(prepared, grad, drop, with_words, words, together, 64, **shape)
        for what, found, right in zip(
            ("masked", "plain", "gradient"), (masked, plain, gradient.movedim(1, 0)), want, strict=True
        ):
            yield f"{label} {what}", off(found, right)
        yield f"{label} flags", float((flags_of(words, nodes, count) != kept.bool()).sum())
        yield f"{label} words", float((gradient != with_words).sum())
        one = dense.Drop(*(part[-1:].clone() for part in (drop.key, drop.count, drop.threshold, drop.scale)))
        pieces = dense.halves(prepared, weight[-1:].clone())
        own, own_gradient = masked[:, -1:].clone().fill_(torch.nan), weight[-1:].clone()
        dense.forward(prepared, pieces, one, own, None, None, together, apart, **shape)
        dense.backward(prepared, grad[:, -1:], one, own_gradient, None, together, 64, **shape)
        yield f"{label} alone", float((own != masked[:, -1:]).sum() + (own_gradient != gradient[-1:]).sum())


def ends(device: str, packed: bool) -> Iterator[tuple[str, float]]:
    """Pieces of whole tiles that reach beyond the last row: what lies behind X in memory is no number, and nobody may look there."""
    from unspool.ops.kernels import dense_features_cuda as dense

    nodes, count, width = 512, 256, 16
    torch.manual_seed(1)
    x = torch.rand(nodes, count, device=device)
    grad = torch.randn(nodes, 2, width, device=device)
    drop = dense.Drop(*(part.to(device) for part in drop_of((0.5, 0.2), 2)))
    kept = [dropout.keep_mask(x.shape, r, drop.key[t], drop.count[t]) for t, r in enumerate((0.5, 0.2))]
    thinned = torch.stack(kept).double() * x.double() * drop.scale.double()[:, None, None]
    want = thinned.mT @ grad.double().movedim(1, 0)
    for split in (True, False):
        prepared = dense.DenseFeatures.of(x, split)
        room = torch.full(
            (prepared.by_feature.numel() + 4096,), torch.nan, dtype=prepared.by_feature.dtype, device=device
        )
        behind = room[: prepared.by_feature.numel()].view(prepared.by_feature.shape).copy_(prepared.by_feature)
        found = torch.full((2, count, width), torch.nan, device=device)
        # Eight tiles of 64 nodes in three pieces of three.
        shape: dict[str, Any] = {"ROWS": 64, "PAIRS": 32, "num_warps": 4, "packed": packed}
        dense.backward(replace(prepared, by_feature=behind), grad, drop, found, None, True, 170, **shape)
        yield f"ends {prepared.pieces} gradient", off(found.movedim(1, 0), want.movedim(1, 0))


if __name__ == "__main__":
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
    torch.set_num_threads(1)
    for case in sys.argv[1:]:
        for line in ends("cpu", packed=False) if case == "ends" else checks(case, "cpu", packed=False):
            print(*line, flush=True)
