"""The kernels of dense features in Triton's interpreter, against float64. Run by test_dense_features.py, one case per name given.

Prints one line per check: its name and the relative error, or for masks the number of wrong flags.
"""

from __future__ import annotations

import os
import sys

import torch
from torch import Tensor

from unspool.ops import dropout

#: nodes, features, H, trials, rates, kind of X.
CASES: dict[str, tuple[int, int, int, int, tuple[float, ...], str]] = {
    "numbers": (300, 131, 64, 3, (0.5, 0.0, 0.8), "numbers"),
    "bag": (70, 70, 32, 2, (0.3, 0.6), "bag"),
    "rows": (130, 33, 16, 3, (0.5, 0.2, 0.9), "rows"),
    "narrow": (5, 3, 20, 1, (0.5,), "numbers"),
    "wide": (40, 257, 128, 2, (0.5, 0.5), "numbers"),
    "tiny": (90, 40, 16, 2, (0.5, 0.1), "tiny"),
}


def features(kind: str, nodes: int, count: int) -> Tensor:
    """Numbers of many sizes, a bag of words, one with normalised rows, or numbers near the end of single precision."""
    words = torch.rand(nodes, count) < 0.3
    if kind == "bag":
        return words.float()
    if kind == "rows":
        return words / words.sum(1, keepdim=True).clamp_min(1)
    x = words * torch.exp(2 * torch.randn(nodes, count))
    return x * 1e-30 if kind == "tiny" else x


def drop_of(rates: tuple[float, ...], trials: int):
    from unspool.ops.kernels.dense_features_cuda import Drop

    key = dropout.key(torch.arange(trials) + 3, 1, 2)
    share = torch.tensor(rates, dtype=torch.float64)
    threshold = (share * 2.0**16 - 2.0**15).ceil().clamp_max(2.0**15 - 1).int()
    return Drop(key, torch.arange(trials, dtype=torch.int32) + 7, threshold, (1 / (1 - share)).float())


def off(found: Tensor, want: Tensor) -> float:
    """The largest relative error of a trial, trials in the second place."""
    gap, size = (t.double().movedim(1, 0).flatten(1).norm(dim=1) for t in (found - want, want))
    return float((gap / torch.where(size > 0, size, 1.0)).max())  # where nothing survives, nothing is to be found


def flags_of(words: Tensor, nodes: int, count: int) -> Tensor:
    bits = (words[:, :nodes, :, :, None] >> torch.arange(32, dtype=torch.int32)) & 1
    return bits.flatten(3).transpose(2, 3).flatten(2)[:, :, :count].bool()


def check(name: str) -> None:
    from unspool.ops.kernels import dense_features_cuda as dense

    nodes, count, width, trials, rates, kind = CASES[name]
    torch.manual_seed(len(name))
    x, weight = features(kind, nodes, count), torch.randn(trials, count, width) / count**0.5
    grad = torch.randn(nodes, trials, width) * torch.exp(2 * torch.randn(nodes, 1, 1)) * 1e-6
    drop = drop_of(rates, trials)
    kept = torch.stack(
        [dropout.keep_mask(x.shape, r, drop.key[t], drop.count[t]) for t, r in enumerate(rates)]
    ).double()
    thinned = kept * x.double() * drop.scale.double()[:, None, None]
    for way, split in (("halves", True), ("tf32", False)):
        prepared = dense.DenseFeatures.of(x, split)
        assert nodes < 10 or prepared.pieces == (0 if not split else 1 if kind in ("bag", "rows") else 2)
        for together, apart in ((False, False), (True, True)) if split else ((True, False),):
            words = dense.new_words(prepared, trials)
            masked, plain = torch.full((2, nodes, trials, width), torch.nan)
            small = {"ROWS": 64, "PAIRS": 32}
            pieces = dense.halves(prepared, weight)
            dense.forward(prepared, pieces, drop, masked, plain, words, together, apart, **small)
            label = f"{name} {way} {'two' if together else 'one'}{' apart' if apart else ''}"
            print(label, "masked", off(masked, (thinned @ weight.double()).movedim(1, 0)))
            print(label, "plain", off(plain, (x.double() @ weight.double()).movedim(1, 0)))
            print(label, "flags", int((flags_of(words, nodes, count) != kept.bool()).sum()))
            want = thinned.mT @ grad.double().movedim(1, 0)
            found = [torch.full_like(weight, torch.nan) for _ in range(2)]
            dense.backward(prepared, grad, drop, found[0], words, together, 64, **small)
            dense.backward(prepared, grad, drop, found[1], None, together, 64, **small)
            print(label, "gradient", off(found[0].movedim(0, 1), want.movedim(0, 1)))
            print(label, "same with words", float((found[0] != found[1]).sum()))
            if trials > 1:  # the second trial alone
                one = dense.Drop(*(getattr(drop, f)[1:2].clone() for f in ("key", "count", "threshold", "scale")))
                alone, gradient = torch.empty(nodes, 1, width), torch.empty(1, count, width)
                dense.forward(
                    prepared, dense.halves(prepared, weight[1:2].clone()), one, alone, None, None, together, apart, **small
                )
                dense.backward(prepared, grad[:, 1:2], one, gradient, None, together, 64, **small)
                print(label, "alone", float((alone != masked[:, 1:2]).sum() + (gradient != found[0][1:2]).sum()))


if __name__ == "__main__":
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
    torch.set_num_threads(1)
    for case in sys.argv[1:]:
        check(case)
