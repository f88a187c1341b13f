"""Erratum 14: what the regulariser r(H) of SGC and GCN does against over-smoothing (nothing), and what ReLU does."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unspool.algorithm import GradientDescent, ProximalGradient
from unspool.graph import Graph, frequencies_and_modes
from unspool.objective import Fixed, NonNegative, Objective, Ridge, Smoothness
from unspool.theory.certificate import Claim, Evidence, Verdict
from unspool.theory.setting import Random, graph, normal, number, symmetric, whole
from unspool.unrolling import unroll


def problem(t: Tensor) -> Objective:
    """‖BH‖²_T + ‖H‖²_(I−T): the row of SGC in Table 1, and that of GCN but for the indicator."""
    metric = Fixed(t, "T")
    return Smoothness(1.0, metric=metric) + Ridge(1.0, metric=1 - metric)


def layer(h: Tensor, t: Tensor, g: Graph, relu: bool) -> Tensor:
    """One (proximal) gradient step of size 1/2."""
    if relu:
        return unroll(problem(t) + NonNegative(), ProximalGradient(step=0.5), 1)(h, g)
    return unroll(problem(t), GradientDescent(step=0.5), 1)(h, g)


def off(h: Tensor, u: Tensor) -> float:
    """How much of H lies off the leading eigenvector u, as a length."""
    return float((h - u @ (u.T @ h)).norm())


def share(h: Tensor, u: Tensor) -> float:
    """The same as a share of H, from 0 (all nodes say the same, up to their degree) to 1."""
    return off(h, u) / float(h.norm())


def _second(g: Graph) -> tuple[Tensor, float]:
    """The leading eigenvector, and the size of the next largest eigenvalue of A."""
    frequencies, modes = frequencies_and_modes(g)
    return modes[:, :1].abs(), float((1 - frequencies[1:]).abs().max())  # of one sign, as the graph is connected


def _shrinks(random: Random) -> Evidence:
    """off(ReLU(A H T)) ≤ off(A H T) ≤ |a₂| ‖T‖ off(H): u has no negative entry, so cutting at zero brings H no further from it."""
    g, features = graph(random), whole(random, 2, 4)
    u, second = _second(g)
    excess = 0.0
    for relu in (False, True):
        h = normal(random, g.nodes, features)
        for _ in range(8):
            t = symmetric(random, features)
            bound = second * float(torch.linalg.matrix_norm(t, ord=2)) * off(h, u)
            after = layer(h, t, g, relu)
            excess = max(excess, (off(after, u) - bound) / float(h.norm()))
            size = float(after.norm())  # ReLU may leave nothing
            h = after / size if size > 0 else normal(random, g.nodes, features)
    return Evidence(max(0.0, excess))


def _collapses(random: Random) -> Evidence:
    """A^K X ∏T with random symmetric T: the share that is left after as many layers as T = I takes to lose 99 % of it."""
    g, features = graph(random), whole(random, 2, 4)
    u, second = _second(g)
    h = x = normal(random, g.nodes, features)
    for _ in range(math.ceil(math.log(0.01) / math.log(second))):
        h = layer(h, symmetric(random, features), g, relu=False)
        h = h / h.norm()
    left = share(h, u) / share(x, u)
    return Evidence(
        gap=max(0.0, 1 - 2 * left),
        example="random symmetric T and no ReLU: AᴷX∏T loses more than half of what lies off the leading eigenvector",
    )


def _only_relu(random: Random) -> Evidence:
    """With T = I the share falls at every layer; ReLU may raise it, where it cuts off what all nodes agree on."""
    g = graph(random)
    u, _ = _second(g)
    eye = torch.eye(2, dtype=torch.float64)
    h, rise = normal(random, g.nodes, 2), 0.0
    for _ in range(10):
        after = layer(h, eye, g, relu=False)
        rise, h = max(rise, share(after, u) - share(h, u)), after
    apart = normal(random, g.nodes, 1)
    h = torch.cat([-number(random, 5, 20) * u, apart - u @ (u.T @ apart)], dim=1)
    return Evidence(
        max(0.0, rise),
        max(0.0, share(layer(h, eye, g, relu=True), u) - share(h, u)),
        "no ReLU follows",
        "a channel below zero that all nodes agree on, and one on which they differ",
    )


CLAIMS = (
    Claim("Erratum 14", "each layer of SGC or GCN shrinks what lies off the leading eigenvector by |a₂|‖T‖ or more, ReLU or not", Verdict.HOLDS, _shrinks, erratum=14),
    Claim("Erratum 14", '"owing to r(H)" the layers of GCN do not merely smooth: with the same r and no ReLU', Verdict.FAILS, _collapses, erratum=14),
    Claim("Erratum 14", "the share of H off the leading eigenvector falls at every layer (T = I)", Verdict.HOLDS_WHEN, _only_relu, erratum=14),
)  # fmt: skip
