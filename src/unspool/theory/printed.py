"""Errata in what the paper prints about named models: step sizes, conventions, and sentences its own tables contradict."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from unspool import datasets
from unspool.algorithm import ProximalGradient
from unspool.datasets.statistics import PRINTED
from unspool.objective import Fidelity, Fixed, NonNegative, Ridge, RowSparseFidelity, Smoothness
from unspool.theory.certificate import Claim, Evidence, Verdict
from unspool.theory.printed_tables import ACCURACY
from unspool.theory.setting import Random, gap, graph, normal, number, symmetric, whole
from unspool.unrolling import unroll

#: Table 2 of the paper, mean accuracies: Cora, CiteSeer, PubMed, CS, Physics, Photo, ArXiv.
TABLE_2 = {model: tuple(mean for mean, _ in row) for model, row in ACCURACY.items()}
#: The width of hidden layers, "uniformly as 64 for all models and on all datasets".
HIDDEN = 64


def _airgnn_step(random: Random) -> Evidence:
    # For γ above 0.618, where γ² = 1 − γ, the first step size of the proof is negative: not a step at all.
    g, f, gamma = graph(random), whole(random, 1, 4), number(random, 0.3, 0.6)
    x, a = normal(random, g.nodes, f), g.to_dense()
    offset = a @ x - x
    model = torch.relu(1 - (1 - gamma) / (2 * gamma * offset.norm(dim=1, keepdim=True))) * offset + x

    def layer(step: float) -> Tensor:
        return unroll(Smoothness(gamma) + RowSparseFidelity(1 - gamma), ProximalGradient(step=step), 1)(x, g)

    # The proof opens with α = γβ/(1−γ) and η = 1/(2(1−α)), and then uses another η.
    first = gamma / (1 - gamma) * gamma
    return Evidence(
        gap(layer(1 / (2 * gamma)), model),
        gap(layer(1 / (2 * (1 - first))), model),
        "η = 1/(2β)",
        "η = 1/(2(1−α)), also in the proof",
    )


def _gcnii_ridge(random: Random) -> Evidence:
    g, f, beta = graph(random), whole(random, 2, 4), number(random, 0.3, 0.9)
    x, h, t = normal(random, g.nodes, f), normal(random, g.nodes, f), symmetric(random, f)
    metric, a = Fixed(t, "T"), g.to_dense()
    model = torch.relu((beta * a @ h + (1 - beta) * x) @ t)

    def layer(weight: float) -> Tensor:
        smooth = Fidelity(1 - beta, metric=metric) + Smoothness(beta, metric=metric) + Ridge(weight, metric=1 - metric)
        net = unroll(smooth + NonNegative(), ProximalGradient(step=0.5), 1, start=h)
        return net(x, g)

    return Evidence(
        gap(layer(1.0), model),
        gap(layer(beta), model),
        "r(H) = ‖H‖²_(I−T) carries no β (unlike SGC's and GCN's)",
        "r(H) = β‖H‖²_(I−T)",
    )


def _gpr_beats_appnp(random: Random) -> Evidence:
    below = [a - b for a, b in zip(TABLE_2["APPNP"], TABLE_2["GPRGNN"], strict=True)]
    return Evidence(gap=max(below), example="Physics in Table 2: GPRGNN 93.75, APPNP 93.76")


def _fixed_are_inferior(random: Random) -> Evidence:
    columns = zip(*(TABLE_2[m] for m in ("GCN", "SGC", "APPNP")), strict=True)
    worse = sum(jk < min(fixed) for jk, fixed in zip(TABLE_2["JKNet"], columns, strict=True))
    return Evidence(
        gap=float(worse), example=f"JKNet in Table 2 is below all three fixed filters in {worse} of 7 columns"
    )


def _edges_of_citeseer(random: Random) -> Evidence:
    found = datasets.load("citeseer").statistics().edges
    return Evidence(
        gap=float(abs(found - 4732)), example=f"CiteSeer, counted: {found} distinct undirected edges, printed 4732"
    )


def _equal_width(random: Random) -> Evidence:
    """Proposition 8 needs one width throughout; the GCN of Table 2 goes from the features over 64 channels to the classes."""
    g, f, depth = graph(random), whole(random, 2, 4), whole(random, 2, 4)
    x = normal(random, g.nodes, f)
    weights = [normal(random, f, f).abs() for _ in range(depth)]  # so that ReLU leaves something
    made = h = x
    for w in weights:
        made = torch.relu(g.to_dense() @ made @ w)
        t = Fixed(w, "W")
        h = unroll(Smoothness(1.0, metric=t) + Ridge(1.0, metric=1 - t) + NonNegative(), ProximalGradient(step=0.5), 1)(
            h, g
        )
    changes = 0
    for (_, _, features, classes), _ in PRINTED.values():
        widths = (features, HIDDEN, classes)
        changes += sum(a != b for a, b in pairwise(widths))
    return Evidence(
        gap(h, made),
        float(changes),
        "all widths are equal and H⁽⁰⁾ = X",
        f"Table 2: {changes} of the {2 * len(PRINTED)} layers of its GCNs change the width",
    )


CLAIMS = (
    Claim("Erratum 5", "the proof of AirGNN's proposition reproduces the model", Verdict.HOLDS_WHEN, _airgnn_step, erratum=5),
    Claim("Erratum 6", "the ridge of GCNII's proposition gives its layer", Verdict.HOLDS_WHEN, _gcnii_ridge, erratum=6),
    Claim("Erratum 9", '"GPRGNN consistently outperforms APPNP"', Verdict.FAILS, _gpr_beats_appnp, erratum=9),
    Claim("Erratum 12", "Table 3 counts the edges of CiteSeer", Verdict.FAILS, _edges_of_citeseer, erratum=12),
    Claim("Erratum 16", '"exact equivalence" of GCN with proximal steps from H⁽⁰⁾ = X', Verdict.HOLDS_WHEN, _equal_width, erratum=16),
    Claim("Erratum 9", '"fixed filters are inferior to learnt ones"', Verdict.FAILS, _fixed_are_inferior, erratum=9),
)  # fmt: skip
