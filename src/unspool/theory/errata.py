"""The errata that concern the unrolled layers themselves (docs/errata.md); those about named models come with the models."""

from __future__ import annotations

import torch
from torch import Tensor

from unspool.algorithm import GradientDescent, Problem
from unspool.algorithm.exact import check_strictly_convex
from unspool.errors import IncompatibleError
from unspool.graph import frequencies_and_modes, path
from unspool.objective import EdgeSmoothness, Fidelity, Fixed, Given, Objective, Ridge, Smoothness
from unspool.theory.certificate import Claim, Evidence, Verdict
from unspool.theory.setting import Random, gap, graph, normal, number, symmetric, whole
from unspool.unrolling import unroll


def _recursion(alphas: list[float], a: Tensor, x: Tensor) -> Tensor:
    h = x
    for alpha in alphas:
        h = (1 - alpha) * a @ h + alpha * x
    return h


def _expansion(alphas: list[float], a: Tensor, x: Tensor, printed: bool) -> Tensor:
    """Σ over hops of A^(K−j) α⁽ʲ⁾ Π(1 − α): as printed it pairs A^(K−i) with α⁽ᴷ⁻ⁱ⁾ and needs an α⁽⁰⁾ (taken as 0)."""
    depth = len(alphas)
    of = [0.0, *alphas]

    def rest(first: int) -> float:
        return float(torch.tensor([1 - v for v in alphas[first - 1 :]], dtype=torch.float64).prod())

    total = rest(1) * torch.linalg.matrix_power(a, depth) @ x
    for i in range(1, depth + 1):
        if printed:
            total = total + of[depth - i] * rest(depth - i + 1) * torch.linalg.matrix_power(a, depth - i) @ x
        else:
            total = total + of[i] * rest(i + 1) * torch.linalg.matrix_power(a, depth - i) @ x
    return total


def _erratum_1(random: Random) -> Evidence:
    g = graph(random)
    x, a = normal(random, g.nodes, 2), g.to_dense()
    alphas = [number(random, 0.1, 0.9) for _ in range(whole(random, 3, 6))]
    exact = _recursion(alphas, a, x)
    right, wrong = (gap(_expansion(alphas, a, x, printed), exact) for printed in (False, True))
    return Evidence(
        right,
        wrong,
        "hop K − j is paired with α⁽ʲ⁾",
        "as printed, hop K − i with α⁽ᴷ⁻ⁱ⁾ and an α⁽⁰⁾ that does not exist",
    )


def _erratum_2_sum(random: Random) -> Evidence:
    g, features, depth = graph(random), whole(random, 2, 4), whole(random, 1, 8)
    t_alpha, t_beta = Fixed(normal(random, features, features)), Fixed(normal(random, features, features))
    alpha, beta, eta = (number(random, -1.0, 1.0) for _ in range(3))
    net = unroll(
        Fidelity(alpha, metric=t_alpha) + Smoothness(beta, metric=t_beta), GradientDescent(step=abs(eta) + 0.01), depth
    )
    hops = net.hops(g)
    size = max(1.0, float(hops.abs().sum()))
    free = torch.softmax(normal(random, depth + 1), 0) * 2  # a GPRGNN with Σγ = 2
    error = gap(hops.sum(0), torch.eye(features, dtype=torch.float64)) / size
    return Evidence(
        error,
        abs(float(free.sum()) - 1),
        "their coefficients sum to I",
        "free γ with Σγ = 2: signals of frequency zero are doubled",
    )


def _erratum_4(random: Random) -> Evidence:
    features = whole(random, 3, 6)
    w = normal(random, features, features)
    # Any real matrix is a product of two symmetric ones: W = (V D Vᵀ)(V⁻ᵀ V⁻¹) with W = V D V⁻¹.
    value, vector = torch.linalg.eig(w)
    inverse = torch.linalg.inv(vector)
    left, right = (vector * value @ vector.T).real, (inverse.T @ inverse).real
    size = max(1.0, float(left.norm() * right.norm()))  # the factors may be ill-conditioned
    error = max(gap(left @ right, w) / size, gap(left, left.T), gap(right, right.T))
    g = graph(random)
    x = normal(random, g.nodes, features)
    h = x
    for t in (left, right):
        h = unroll(_sgc((t + t.T) / 2), GradientDescent(step=0.5), 1)(h, g)
    a = g.to_dense()
    error = max(error, gap(h, a @ a @ x @ w) / size)
    return Evidence(error, gap(w, (w + w.T) / 2), "K ≥ 2 layers (SGC)", "one layer: its T is the symmetric part of W")


def _erratum_7(random: Random) -> Evidence:
    g = path(3).to(torch.float64)
    x = torch.zeros(3, 1, dtype=torch.float64)
    given = Given(x, g)
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)
    term, plain = EdgeSmoothness(signs), Smoothness(1.0)
    leaf = normal(random, 3, 1).requires_grad_()
    (slope,) = torch.autograd.grad(term.value(leaf, given), leaf)
    error = gap(term.gradient(leaf.detach(), given), slope)
    ratios = []
    for _ in range(2):
        h = normal(random, 3, 1)
        ratios.append(float(term.value(h, given) / plain.value(h, given)))
    # With one channel T is a single number t, and t‖BH‖² has the same ratio to ‖BH‖² everywhere.
    return Evidence(
        error,
        abs(ratios[0] - ratios[1]),
        "the metric stands on the edge side, Σ wₑ‖(BH)ₑ‖²",
        "T acts on channels: no t gives edge weights (1, −1)",
    )


def _sgc_limits(random: Random) -> tuple[list[Tensor], list[Tensor]]:
    """The limits of two random starts, and uuᵀ times the starts."""
    g = graph(random)
    u = frequencies_and_modes(g)[1][:, :1]
    starts = [normal(random, g.nodes, 2) for _ in range(2)]
    net = unroll(Smoothness(1.0), GradientDescent(step=0.5), 2000)
    return [net(start, g) for start in starts], [u @ u.T @ start for start in starts]


def _erratum_8_limit(random: Random) -> Evidence:
    limits, expected = _sgc_limits(random)
    return Evidence(max(gap(a, b) for a, b in zip(limits, expected, strict=True)))


def _erratum_8_starts(random: Random) -> Evidence:
    limits, _ = _sgc_limits(random)
    return Evidence(gap=gap(limits[0], limits[1]), example="two random starts")


def _erratum_8_minimiser(random: Random) -> Evidence:
    g, features = graph(random), 3
    t = symmetric(random, features)
    t = 0.9 * t / float(torch.linalg.matrix_norm(t, ord=2))
    convex = _sgc(t)
    start = normal(random, g.nodes, features)
    error = float(unroll(convex, GradientDescent(step=0.5), 2000)(start, g).norm())
    large = torch.diag(torch.tensor([1.5, 0.2, 0.3], dtype=torch.float64))
    try:
        check_strictly_convex(Problem(_sgc(large), Given(start, g)))
        unbounded = 0.0
    except IncompatibleError:
        # Along the leading mode the objective falls without end.
        _, modes = frequencies_and_modes(g)
        direction = modes[:, :1] * torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
        unbounded = -float(_sgc(large).value(1e3 * direction, start, g))
    return Evidence(
        error,
        unbounded,
        "the eigenvalues of T stay below 1 in size (the minimiser is then 0)",
        "T with the eigenvalue 1.5: unbounded below",
    )


def _sgc(t: Tensor) -> Objective:
    metric = Fixed(t, "T")
    return Smoothness(1.0, metric=metric) + Ridge(1.0, metric=1 - metric)


def _lemma_powers(random: Random) -> Evidence:
    """A stable step on a strictly convex problem has |P| + |Q| ≤ 1 in H ← P H + Q A H + R X, a momentum step has not."""
    alpha = number(random, 0.05, 1.0)
    beta = number(random, -0.49 * alpha, 2.0)
    largest = 2 * max(alpha, alpha + 2 * beta)
    eta = number(random, 0.01, 1.99) / largest
    p, q = 1 - 2 * eta * (alpha + beta), 2 * eta * beta
    momentum = 0.8
    size = abs((1 + momentum) * p) + abs((1 + momentum) * q) + abs(momentum * p) + abs(momentum * q)
    return Evidence(
        max(0.0, abs(p) + abs(q) - 1),
        max(0.0, size - 1),
        "the method has no momentum",
        "heavy momentum: powers of A grow and cancel",
    )


CLAIMS = (
    Claim("Erratum 1", "the expansions of GPRGNN and JKNet in the appendix", Verdict.HOLDS_WHEN, _erratum_1, erratum=1),
    Claim(
        "Erratum 2",
        "GPRGNN, JKNet and UGDGNN are unrolled GD networks (which keep signals of frequency zero)",
        Verdict.HOLDS_WHEN,
        _erratum_2_sum,
        erratum=2,
    ),
    Claim("Erratum 4", "a free W is a product of symmetric T's", Verdict.HOLDS_WHEN, _erratum_4, erratum=4),
    Claim("Erratum 7", "T_β weighs edges, as the sentence after (2) says", Verdict.HOLDS_WHEN, _erratum_7, erratum=7),
    Claim("Erratum 8", "different H⁽⁰⁾ lead to the same limit of SGC", Verdict.FAILS, _erratum_8_starts, erratum=8),
    Claim(
        "Erratum 8",
        "the limit of SGC is uuᵀH⁽⁰⁾, u the leading eigenvector",
        Verdict.HOLDS,
        _erratum_8_limit,
        erratum=8,
    ),
    Claim("Erratum 8", "the problem behind SGC has a minimiser", Verdict.HOLDS_WHEN, _erratum_8_minimiser, erratum=8),
    Claim("Lemma of ours", "hop coefficients of stable gradient descent never grow", Verdict.HOLDS_WHEN, _lemma_powers),
)
