"""Which functions are K layers of eq. (5): errata 2, 4 and 15, and a theorem that the paper does not have."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from unspool.algorithm import GradientDescent
from unspool.errors import IncompatibleError
from unspool.graph import Graph
from unspool.models import UGDGNN
from unspool.objective import Fidelity, Smoothness
from unspool.ops import propagate
from unspool.spectral import PolynomialBasis, convert
from unspool.theory.certificate import Claim, Evidence, Verdict
from unspool.theory.setting import Random, gap, graph, model, normal, number, whole
from unspool.unrolling import ReadBack, read_back_hops, unroll

#: Sums to one, and no two layers with η = 1/2 and β = 1 − α have it.
BEYOND_THE_PRINTED = (1.0, 1.0, -1.0)
#: η, α, β of a layer that is convex and stable, with L = 2(α + 2β) = 3, and has a negative hop coefficient three layers on.
CONVEX = (0.66, 0.5, 0.5)


def replay(found: ReadBack, x: Tensor, g: Graph) -> Tensor:
    """Eq. (5) layer by layer with dense matrices and η = 1/2, then S."""
    a, h, one = g.to_dense(), x, torch.eye(x.shape[1], dtype=x.dtype)
    for layer in found.layers:
        t_alpha, t_beta = (torch.as_tensor(t, dtype=x.dtype) * one if torch.as_tensor(t).ndim < 2 else torch.as_tensor(t) for t in (layer.fidelity, layer.smoothness))  # fmt: skip
        h = h @ (one - t_alpha - t_beta) + a @ h @ t_beta + x @ t_alpha
    factor = torch.as_tensor(found.factor, dtype=x.dtype)
    return h @ factor if factor.ndim == 2 else h * factor


def _filter(random: Random, degree: int) -> Tensor:
    """Random signed hop coefficients that sum to one."""
    while True:
        c = normal(random, degree + 1)
        if abs(float(c.sum())) > 1e-2 * float(c.abs().sum()):
            return c / c.sum()


def _theorem(random: Random) -> Evidence:
    g, depth = graph(random), whole(random, 1, 12)
    x, a = normal(random, g.nodes, 2), g.to_dense()
    # There: whatever the numbers are, K layers are a polynomial of degree K that is 1 at a = 1.
    h, c = x, [1.0]
    for _ in range(depth):
        eta, alpha, beta = number(random, 0.01, 1), number(random, -1, 1), number(random, -1, 1)
        p, q, r = 1 - 2 * eta * (alpha + beta), 2 * eta * beta, 2 * eta * alpha
        h = p * h + q * a @ h + r * x  # eq. (5)
        c = [p * here + q * before for here, before in zip([*c, 0.0], [0.0, *c], strict=True)]
        c[0] += r
    hops = torch.tensor(c, dtype=torch.float64)
    size = float(hops.abs().sum())
    error = max(abs(float(hops.sum()) - 1) / size, gap(h, propagate(g, x, hops)) / size)
    # Back: every such polynomial is what some K layers do.
    wanted = _filter(random, depth)
    found = read_back_hops(wanted)
    error = max(error, gap(replay(found, x, g), propagate(g, x, wanted)), abs(len(found.layers) - depth))
    # γ = (1, 1, −1), by α = (0, 1) and β = (1, −1) under η = 1/2.
    h = x
    for alpha, beta in ((0.0, 1.0), (1.0, -1.0)):
        h = (1 - alpha - beta) * h + beta * a @ h + alpha * x
    return Evidence(max(error, gap(h, x + a @ x - a @ a @ x)))


def _matrices(random: Random) -> Evidence:
    g, features, depth = graph(random), whole(random, 2, 4), whole(random, 2, 6)
    x, hops = normal(random, g.nodes, features), normal(random, depth + 1, features, features)
    unit = hops @ torch.linalg.inv(hops.sum(0))
    error = gap(replay(read_back_hops(unit), x, g), propagate(g, x, unit))
    return Evidence(
        error,
        1.0 if _best_quotient(random) < 1e-9 else 0.0,
        "every successive quotient is invertible at some point",
        "G = diag(1, 1 + a + a²): whatever the first layer, the quotient is singular at every point",
    )


def one_and_square(a: float) -> Tensor:
    """diag(1, 1 + a + a²)."""
    return torch.diag(torch.tensor([1.0, 1 + a + a * a], dtype=torch.float64))


def _best_quotient(random: Random) -> float:
    """The largest ratio of singular values, over many points, of what a division at many a₀ leaves."""
    best = 0.0
    for first in (number(random, -2, 2) for _ in range(5)):
        q = one_and_square(first)
        for a in (number(random, -3, 3) for _ in range(5)):
            values = torch.linalg.svdvals((one_and_square(a) - q) @ torch.linalg.inv(q) / (a - first))
            best = max(best, float(values[-1] / values[0]))
    return best


def _factor(random: Random) -> Evidence:
    g, features, depth = graph(random), whole(random, 2, 4), whole(random, 2, 6)
    x = normal(random, g.nodes, features)
    error = 0.0
    for shape in ((depth + 1,), (depth + 1, features), (depth + 1, features, features)):
        hops = normal(random, *shape)
        error = max(error, gap(replay(read_back_hops(hops), x, g), propagate(g, x, hops)))
    high = torch.tensor([1.0, -1.0], dtype=torch.float64)
    try:
        replay(read_back_hops(high), x, g)
        outside = 0.0
    except IncompatibleError:
        outside = gap(propagate(g, x, high), float(high.sum()) * x)  # S = 0, and p_pos = 0 leaves nothing
    return Evidence(error, outside, "the sum S is invertible", "γ = (1, −1), a pure high-pass: S = 0")


def _printed_form(random: Random) -> Evidence:
    """η = 1/2 and β = 1 − α have a₀ = 0 at every division: γ₀ = α⁽ᴷ⁾, and so on inwards."""
    g = graph(random)
    x, a = normal(random, g.nodes, 2), g.to_dense()
    first, second, third = BEYOND_THE_PRINTED
    outer = first
    inner = second / (1 - outer) if outer != 1 else number(random, -5, 5)  # cut off by α = 1: whatever it is
    h = (1 - inner) * a @ x + inner * x
    h = (1 - outer) * a @ h + outer * x
    return Evidence(
        gap=gap(h, first * x + second * a @ x + third * a @ a @ x),
        example="γ = (1, 1, −1) forces α⁽²⁾ = 1, which cuts off the layer before",
    )


def _negative(random: Random) -> Evidence:
    # As printed: α in [0, 1] gives γ ≥ 0, and a negative γ needs an α outside.
    depth = whole(random, 2, 8)
    layers = [number(random) for _ in range(depth)]
    gamma = [1.0]
    for alpha in layers:
        gamma = [alpha, *((1 - alpha) * v for v in gamma)]
    error = max(0.0, -min(gamma))
    # With the same weights at another step the sign is free.
    eta, alpha, beta = CONVEX
    within = alpha >= 0 and beta >= 0 and eta <= 2 / (2 * (alpha + 2 * beta))
    hops = unroll(Fidelity(alpha) + Smoothness(beta), GradientDescent(step=eta), 3).hops(graph(random))
    return Evidence(
        error,
        max(0.0, -float(hops.min())) if within and read_back_hops(hops).convex else 0.0,
        "η = 1/2 and β = 1 − α",
        "α = β = 0.5 and η = 0.66, convex and stable: γ = (0.484, 0.360, −0.131, 0.287)",
    )


def _symmetric_twins(random: Random) -> Evidence:
    """UGDGNN on two channels with free matrices, and five layers with symmetric metrics that are the same network."""
    g, twins = graph(random), 0.0
    x = normal(random, g.nodes, 2)
    for _ in range(4):
        made = model(random, UGDGNN, 2, 2, depth=5)
        hops = made.propagation.hops().detach()
        try:
            found = made.propagation.read_back(symmetric=True)
        except IncompatibleError:
            continue  # not all have twins that the search finds
        symmetric = max(layer.asymmetry for layer in found.layers) == 0
        if symmetric and gap(replay(found, x, g), made.propagation(x, g)) < 1e-9:
            twins = max(twins, gap(hops, hops.mT))
    return Evidence(gap=twins, example="a UGDGNN of free matrices on two channels, and its five symmetric layers")


def _every_filter(random: Random) -> Evidence:
    g, depth = graph(random), whole(random, 1, 8)
    x, theta = normal(random, g.nodes, 2), normal(random, depth + 1)
    errors, without = list[float](), 0.0
    for at_zero in (1.0, number(random, 0.5, 3.0)):  # h(λ = 0) = θ₀
        theta[0] = at_zero
        hops = convert(theta, PolynomialBasis.LAPLACIAN, PolynomialBasis.HOPS)
        found = read_back_hops(hops)
        laplacian = torch.eye(g.nodes, dtype=torch.float64) - g.to_dense()
        exact = sum(t * torch.linalg.matrix_power(laplacian, k) for k, t in enumerate(theta.tolist())) @ x  # type: ignore[operator]
        size = max(1.0, float(hops.abs().sum()))
        errors.append(gap(replay(found, x, g), exact) / size)
        errors.append(abs(float(found.factor) - at_zero) / size)  # one number goes into p_pos
        without = gap(replay(replace(found, factor=1.0), x, g), exact)
    return Evidence(
        max(errors),
        without,
        "h(λ = 0) = 1 (any other h with h(0) ≠ 0: one number, h(0), into p_pos)",
        "θ₀ ≠ 1: every unrolled GD network leaves signals of frequency zero alone",
    )


CLAIMS = (
    Claim("Erratum 2, theorem", "K layers of eq. (5) with numbers are exactly the polynomials of degree K that are 1 at frequency zero", Verdict.HOLDS, _theorem, erratum=2),
    Claim("Erratum 2, theorem", "the same for matrices", Verdict.HOLDS_WHEN, _matrices, erratum=2),
    Claim("Erratum 2", "a network of free hop coefficients is an unrolled one followed by p_pos = S", Verdict.HOLDS_WHEN, _factor, erratum=2),
    Claim("Propositions 5 and 6; erratum 2", "with η = 1/2 and β = 1 − α, as printed, Σγ = 1 is enough", Verdict.FAILS, _printed_form, erratum=2),
    Claim("Erratum 2", "a negative γ means a negative weight", Verdict.HOLDS_WHEN, _negative, erratum=2),
    Claim("Erratum 4", "free weight matrices leave no objective", Verdict.FAILS, _symmetric_twins, erratum=4),
    Claim("Theorem 12; erratum 15", "unrolled GD networks express every polynomial filter", Verdict.HOLDS_WHEN, _every_filter, erratum=15),
)  # fmt: skip
