"""Penalties of edges in later models: ElasticGNN, p-Laplacian networks and TWIRLS, against their authors' formulas in dense matrices.

Gradients come from the objectives' values by autograd alone, so that a wrong value, a wrong gradient and a wrong layer are all found.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from unspool.algorithm import Jacobi, PrimalDual
from unspool.graph import Graph, Normalisation, edge_list
from unspool.models import PGNN, TWIRLS, ElasticGNN, Robust, TrustGNN
from unspool.objective import (
    Capped,
    EdgePenalty,
    EdgeSparse,
    Fidelity,
    Given,
    Log,
    Objective,
    Penalty,
    Power,
    Smoothness,
)
from unspool.theory.certificate import Claim, Evidence, Verdict
from unspool.theory.setting import Random, eye, gap, gradient, graph, model, normal, number, steps, whole
from unspool.unrolling import unroll


def _bare(g: Graph) -> Graph:
    """The same edges, not normalised and without loops."""
    index = edge_list(g)
    return Graph.from_edges(index, nodes=g.nodes, normalise=Normalisation.NONE, loops=0, directed=False).to(g.dtype)


def elastic(a: Tensor, b: Tensor, x: Tensor, l1: float, l2: float, depth: int, rows: bool) -> Tensor:
    """K layers of ElasticGNN as its authors write them: Y, H̄, Z, H."""
    gamma = 1 / (1 + l2)
    beta, h, z = 1 / (2 * gamma), x, torch.zeros(b.shape[0], x.shape[1], dtype=x.dtype)
    for _ in range(depth):
        y = gamma * x + (1 - gamma) * a @ h
        z = z + beta * b @ (y - gamma * b.T @ z)
        length = z.norm(dim=1, keepdim=True) if rows else z.abs()
        z = z * (l1 / length.clamp_min(1e-300)).clamp(max=1)
        h = y - gamma * b.T @ z
    return h


def _elastic(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 1, 4), whole(random, 2, 8)
    x, l1, l2, rows = (
        normal(random, g.nodes, f),
        number(random, 0.1, 1.0),
        number(random, 0.0, 2.0),
        number(random) < 0.5,
    )
    made = model(random, ElasticGNN, f, f, lambda1=l1, lambda2=l2, depth=depth, rows=rows)
    plain = elastic(g.to_dense(), g.incidence().to_dense(), x, l1, l2, depth, rows)
    return Evidence(gap(made.propagation(x, g), plain))


def _elastic_limit(random: Random) -> Evidence:
    g, f = graph(random), 2
    x, l1, l2 = normal(random, g.nodes, f), number(random, 0.1, 0.4), number(random, 0.2, 1.0)
    objective = Fidelity(0.5) + Smoothness(l2 / 2) + EdgeSparse(l1)

    def apart(step: float, depth: int) -> float:
        state = _primal_dual(objective, step, depth, x, g)
        h, z = state[0], state[-1]
        b = g.incidence().to_dense()
        d, smooth = b @ h, h - x + l2 * (h - g @ h)
        force = gap(b.T @ z, -smooth)  # H is stationary ...
        # ... and Z is where ⟨Z, BH⟩ = λ₁‖BH‖₂,₁ is attained, inside the ball.
        aligned = float((l1 * d.norm(dim=1) - (z * d).sum(1)).abs().max()) + max(0.0, float(z.norm(dim=1).max()) - l1)
        return force + aligned

    limit = 2 / (1 + l2 * g.largest_frequency)
    return Evidence(
        apart(1 / (1 + l2), 2500),
        min(apart(1.3 * limit, 60), 1e300),
        "η < 2/L, of which γ = 1/(1 + λ₂) is a case, and β = 1/(2γ)",
        "η = 2.6/L",
    )


def _primal_dual(objective: Objective, step: float, depth: int, x: Tensor, g: Graph) -> tuple[Tensor, ...]:
    rule = PrimalDual(step=step)
    problem = unroll(objective, rule, 1).problem(x, g, 1)
    state = rule.init(x, problem)
    for _ in range(depth):
        state = rule.update(state, problem)
    return state


def condat_vu(gamma: float, beta: float, norm: float, lipschitz: float) -> float:
    """How far steps are from the condition of Condat and Vũ, 1/τ − σ‖K‖² ≥ L/2; not above zero where it holds.

    Example:
        >>> condat_vu(0.1, 0.1, 2.0, 1.0) <= 0, condat_vu(0.5, 1.0, 2.0, 1.0) > 0
        (True, True)
    """
    return lipschitz / 2 - (1 / gamma - beta * norm)


def _elastic_condat(random: Random) -> Evidence:
    l2 = number(random, 0.1, 3.0)
    gamma = 1 / (1 + l2)
    excess = condat_vu(gamma, 1 / (2 * gamma), 2.0, 1 + 2 * l2)
    return Evidence(gap=max(0.0, excess), example="1/γ − β‖B‖² is 0, and L/2 is not, though the steps converge")


def p_layer(b: Tensor, h: Tensor, x: Tensor, p: float, mu: float, smoothing: float) -> Tensor:
    """One layer of the p-Laplacian network: hᵢ ← αᵢ Σⱼ Mᵢⱼ hⱼ/√(dᵢdⱼ) + (2μ/p) αᵢ xᵢ."""
    m = ((b @ h).square().sum(1) + smoothing**2) ** ((p - 2) / 2)
    form = b.T @ (m[:, None] * b)
    own = form.diagonal()[:, None]
    alpha = 1 / (own + 2 * mu / p)
    return alpha * (own * h - form @ h) + 2 * mu / p * alpha * x


def _p_laplacian(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 1, 4), whole(random, 1, 5)
    x, p, mu = normal(random, g.nodes, f), number(random, 1.0, 2.5), number(random, 0.2, 2.0)
    made = model(random, PGNN, f, f, p=p, mu=mu, smoothing=0.05, depth=depth)
    b = g.incidence().to_dense()
    error = gap(made.propagation(x, g), steps(lambda h: p_layer(b, h, x, p, mu, 0.05), x, depth))
    return Evidence(max(error, _jacobi_error(made.objective, x, normal(random, g.nodes, f), g)))


def _jacobi_error(objective: Objective, x: Tensor, h: Tensor, g: Graph) -> float:
    """How far a Jacobi step is from H − ∇f/D, with ∇f from the value and D from the quadratic that touches it."""
    problem = unroll(objective, Jacobi(), 1).problem(x, g, 1)
    (moved,) = Jacobi().update((h,), problem)
    slope = gradient(lambda t: objective.value(t, x, g), h)
    return gap(moved, h - slope / problem.diagonal(h))


def twirls_layer(a: Tensor, h: Tensor, x: Tensor, weight: float, share: float, rho: Penalty) -> Tensor:
    """One layer of TWIRLS on an unnormalised A: H ← (1−a)H + a(λD_Γ + I)⁻¹(λ(Γ∘A)H + X)."""
    squares = (h[:, None] - h[None]).square().sum(-1)
    weighted = rho.slope(a * squares) * a  # (BH)ₑ carries √w
    return (1 - share) * h + share * (weight * weighted @ h + x) / (weight * weighted.sum(1, keepdim=True) + 1)


def _twirls(random: Random) -> Evidence:
    g, f, depth = _bare(graph(random)), whole(random, 1, 4), whole(random, 1, 5)
    x, weight, share, scale = (
        normal(random, g.nodes, f),
        number(random, 0.3, 2.0),
        number(random, 0.3, 1.0),
        number(random, 0.3, 3.0),
    )
    error = 0.0
    for kind, rho in ((Robust.LOG, Log(scale)), (Robust.CAPPED, Capped(scale)), (Robust.NORM, Power(1.0, scale))):
        made = model(random, TWIRLS, f, f, smoothness=weight, penalty=kind, threshold=scale, step=share, depth=depth)
        layer = _twirls_steps(g.to_dense(), x, weight, share, rho)
        error = max(error, gap(made.propagation(x, g), steps(layer, x, depth)))
    return Evidence(error)


def _twirls_steps(a: Tensor, x: Tensor, weight: float, share: float, rho: Penalty) -> Callable[[Tensor], Tensor]:
    return lambda h: twirls_layer(a, h, x, weight, share, rho)


def trust(features: Tensor, scale: float) -> Tensor:
    """max(0, 1 − ‖x̂ᵢ − x̂ⱼ‖²/τ) for all pairs of rows, at length one."""
    unit = features / features.norm(dim=1, keepdim=True)
    return (1 - (unit[:, None] - unit).square().sum(-1) / scale).clamp_min(0)


def _trust(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 1, 4), whole(random, 1, 5)
    x, weight = normal(random, g.nodes, f), number(random, 0.3, 3.0)
    features = (normal(random, g.nodes, 6) > 0.5).double()  # words: many pairs share none
    features[torch.arange(g.nodes), torch.arange(g.nodes) % 6] = 1.0
    made = model(random, TrustGNN, 6, f, smoothness=weight, threshold=2.0, depth=depth).propagation
    b, (i, j) = g.incidence().to_dense(), edge_list(g)
    w = trust(features, 2.0)[i, j]
    matrix = eye(g.to_dense()) + weight * b.T @ (w[:, None] * b)
    layers = steps(lambda h: h - (matrix @ h - x) / matrix.diagonal()[:, None], x, depth)
    deep = unroll(made.objective, Jacobi(), 400)(x, g, features=features)
    shared = (features[i] * features[j]).sum(1) > 0
    return Evidence(
        max(
            gap(made(x, g, features=features), layers),
            gap(deep, torch.linalg.solve(matrix, x)),
            float(w[~shared].max()) if bool((~shared).any()) else 0.0,
        )
    )


def _majoriser(random: Random) -> Evidence:
    g, f = graph(random), whole(random, 1, 4)
    h = normal(random, g.nodes, f)
    others = [h + size * normal(random, g.nodes, f) for size in (0.01, 0.3, 3.0, 30.0)]
    scale = number(random, 0.3, 3.0)
    concave = (Log(scale), Capped(scale), Power(1.0, scale), Power(1.7, scale))
    return Evidence(
        max(_above(rho, h, others, g) for rho in concave),
        _above(Power(3.0), h, others, g),
        "ρ is concave in the squared length",
        "‖·‖³, which lies above its tangent",
    )


def _above(rho: Penalty, h: Tensor, others: list[Tensor], g: Graph) -> float:
    """How far a penalty rises above the quadratic that touches it at h, or differs from it in value or slope there."""
    term, given = EdgePenalty(rho), Given(h, g)
    weights, b = term.edge_weights(h, given), g.incidence().to_dense()

    def quadratic(t: Tensor) -> Tensor:
        return term.value(h, given).detach() + (weights * ((b @ t).square().sum(1) - (b @ h).square().sum(1))).sum()

    rises = [float(term.value(t, given) - quadratic(t)) / max(1.0, float(quadratic(t))) for t in others]
    touch = gap(gradient(lambda t: term.value(t, given), h), gradient(quadratic, h))
    return max(0.0, *rises) + touch


def _descent(random: Random) -> Evidence:
    g, f = graph(random), whole(random, 1, 4)
    x, weight, scale = normal(random, g.nodes, f), number(random, 0.5, 5.0), number(random, 0.1, 2.0)
    rises = dict.fromkeys((1.0, 2.5), 0.0)
    for rho in (Log(scale), Capped(scale), Power(1.0, scale)):
        objective = Fidelity(1.0) + EdgePenalty(rho, weight)
        for share in rises:
            trace = unroll(objective, Jacobi(step=share), 12).trace(x, g)
            pairs = zip(trace.before, trace.after, strict=True)
            rises[share] = max(rises[share], *((after - before) / abs(before) for before, after in pairs))
    return Evidence(max(0.0, rises[1.0]), rises[2.5], "a ≤ 1", "a = 2.5")


def force(rho: Penalty, distance: float) -> float:
    """How strongly an edge pulls on its ends when they lie some distance apart: 2 ρ′(d²) d.

    Example:
        >>> [round(force(Log(1.0), d), 3) for d in (0.1, 1.0, 100.0)]
        [0.198, 1.0, 0.02]
    """
    return 2 * distance * float(rho.slope(torch.tensor(distance**2, dtype=torch.float64)))


def _redescends(random: Random) -> Evidence:
    scale = number(random, 0.1, 4.0)
    distances = [10.0**k for k in range(-2, 7)]
    log = [force(Log(scale), d) for d in distances]
    bound = max(0.0, max(log) / math.sqrt(scale) - 1)
    tail = abs(log[-1] * distances[-1] / (2 * scale) - 1)
    cut = max(force(Capped(scale), d) for d in distances if d * d >= scale)
    level = abs(force(Power(1.0, scale), distances[-1]) - 1)
    return Evidence(
        max(bound, tail, cut, level),
        force(Power(2.0), distances[-1]),
        "ρ is log (force at most √τ, falling as 2τ/d), capped (none from √τ on) or the norm (at most 1)",
        "squares: the force grows with the distance",
    )


CLAIMS: tuple[Claim, ...] = (
    Claim("ElasticGNN", "its layers are PD3O steps without a proximal term (PAPC) on ½‖H−X‖² + (λ₂/2)‖BH‖² + λ₁‖BH‖₂,₁", Verdict.HOLDS, _elastic, model="ElasticGNN"),
    Claim("ElasticGNN, steps", "its layers reach the minimiser: stationary H, and Z where λ₁‖BH‖₂,₁ is attained", Verdict.HOLDS_WHEN, _elastic_limit),
    Claim("ElasticGNN, Condat–Vũ", "its steps satisfy 1/γ − β‖B‖² ≥ L/2", Verdict.FAILS, _elastic_condat),
    Claim("p-Laplacian", "its layers are Jacobi steps on Σ‖(BH)ₑ‖ᵖ + μ‖H−X‖²", Verdict.HOLDS, _p_laplacian, model="PGNN"),
    Claim("TWIRLS", "its layers on an unnormalised A are Jacobi steps of size a on ‖H−X‖² + λΣρ(‖(BH)ₑ‖²)", Verdict.HOLDS, _twirls, model="TWIRLS"),
    Claim("TrustGNN", "its layers are Jacobi steps that come to rest at (I + λBᵀWB)⁻¹X, where edges between features that share nothing weigh 0", Verdict.HOLDS, _trust, model="TrustGNN"),
    Claim("TWIRLS, majoriser", "the quadratic with Γ = ρ′ lies above the penalty and touches it at H", Verdict.HOLDS_WHEN, _majoriser),
    Claim("TWIRLS, descent", "no layer raises the objective", Verdict.HOLDS_WHEN, _descent),
    Claim("TWIRLS, influence", "the force of an edge stays bounded however far its ends lie apart", Verdict.HOLDS_WHEN, _redescends),
)  # fmt: skip
