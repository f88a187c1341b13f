"""Errata in what the paper prints about named models: step sizes, conventions, and sentences its own tables contradict."""

from __future__ import annotations

import torch
from torch import Tensor

from unspool.algorithm import ProximalGradient
from unspool.objective import Fidelity, Fixed, NonNegative, Ridge, RowSparseFidelity, Smoothness
from unspool.theory.certificate import Claim, Evidence, Verdict
from unspool.theory.setting import Random, gap, graph, normal, number, symmetric, whole
from unspool.unroll import unroll

#: Table 2 of the paper, mean accuracies: Cora, CiteSeer, PubMed, CS, Physics, Photo, ArXiv.
TABLE_2: dict[str, tuple[float, ...]] = {
    "GCN": (83.24, 71.41, 79.10, 91.76, 93.71, 90.37, 69.93),
    "SGC": (81.49, 71.50, 78.77, 91.93, 93.67, 89.16, 65.35),
    "APPNP": (82.88, 71.53, 79.10, 91.95, 93.76, 90.42, 69.84),
    "JKNet": (80.98, 68.46, 76.35, 90.98, 93.25, 87.55, 70.40),
    "GCNII": (84.07, 72.32, 79.56, 91.03, 93.79, 80.01, 70.73),
    "DAGNN": (83.97, 71.56, 79.11, 91.96, 93.81, 90.42, 70.67),
    "GPRGNN": (83.76, 71.64, 79.14, 92.03, 93.75, 91.63, 70.82),
    "UGDGNN": (84.15, 71.68, 79.22, 92.18, 94.14, 90.49, 70.91),
}


def _airgnn_step(random: Random) -> Evidence:
    g, f, gamma = graph(random), whole(random, 1, 4), number(random, 0.3, 0.7)
    x, a = normal(random, g.nodes, f), g.to_dense()
    offset = a @ x - x
    model = torch.relu(1 - (1 - gamma) / (2 * gamma * offset.norm(dim=1, keepdim=True))) * offset + x

    def layer(step: float) -> Tensor:
        return unroll(Smoothness(gamma) + RowSparseFidelity(1 - gamma), ProximalGradient(step=step), 1)(x, g)

    # The proof opens with α = γβ/(1−γ) and η = 1/(2(1−α)), and then uses another η.
    first = gamma / (1 - gamma) * gamma
    other = 1 / (2 * abs(1 - first)) if abs(1 - first) > 1e-3 else 1.0
    return Evidence(
        gap(layer(1 / (2 * gamma)), model), gap(layer(other), model), "η = 1/(2β)", "η = 1/(2(1−α)), also in the proof"
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


CLAIMS = (
    Claim("Erratum 5", "the proof of AirGNN's proposition reproduces the model", Verdict.HOLDS_WHEN, _airgnn_step),
    Claim("Erratum 6", "the ridge of GCNII's proposition gives its layer", Verdict.HOLDS_WHEN, _gcnii_ridge),
    Claim("Erratum 9", '"GPRGNN consistently outperforms APPNP"', Verdict.FAILS, _gpr_beats_appnp),
    Claim("Erratum 9", '"fixed filters are inferior to learnt ones"', Verdict.FAILS, _fixed_are_inferior),
)  # fmt: skip
