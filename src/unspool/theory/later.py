r"""Models of later papers and their problems: each layer is a step of an algorithm, and under which condition.

The layers stand here as their authors' formulas in dense matrices. Gradients come from the objectives' values by autograd alone, so that a
wrong value, a wrong gradient and a wrong layer are all found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from unspool.algorithm import GradientDescent, Jacobi, PrimalDual
from unspool.graph import Graph, Normalisation, edge_list, path
from unspool.models import GNNHF, GNNLF, GRAFF, PGNN, TWIRLS, ElasticGNN, FairGNN, SignedGNN
from unspool.models import correct_and_smooth as correct
from unspool.models import label_propagation as propagate_labels
from unspool.models.fairgnn import difference
from unspool.models.fairgnn import slope as fair_slope
from unspool.models.twirls import Robust
from unspool.objective import (
    Capped,
    EdgePenalty,
    EdgeSmoothness,
    EdgeSparse,
    Fidelity,
    FilteredFidelity,
    Given,
    Log,
    NodeFidelity,
    Objective,
    Power,
    Smoothness,
)
from unspool.objective.edge_penalty import Penalty
from unspool.theory.certificate import Claim, Evidence, Verdict
from unspool.theory.setting import Random, gap, graph, model, normal, number, whole
from unspool.unrolling import unroll


def _eye(a: Tensor) -> Tensor:
    return torch.eye(a.shape[0], dtype=a.dtype)


def _steps(layer: Callable[[Tensor], Tensor], h: Tensor, depth: int) -> Tensor:
    for _ in range(depth):
        h = layer(h)
    return h


def _slope(value: Callable[[Tensor], Tensor], h: Tensor) -> Tensor:
    """The gradient of a function at h, by autograd."""
    leaf = h.detach().clone().requires_grad_()
    (found,) = torch.autograd.grad(value(leaf), leaf)
    return found


def _bare(g: Graph) -> Graph:
    """The same edges, not normalised and without loops."""
    index = edge_list(g)
    return Graph.from_edges(index, nodes=g.nodes, normalise=Normalisation.NONE, loops=0, directed=False).to(g.dtype)


# -- ElasticGNN --------------------------------------------------------------------------------------------------------


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


# -- robust edges ------------------------------------------------------------------------------------------------------


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
    error = gap(made.propagation(x, g), _steps(lambda h: p_layer(b, h, x, p, mu, 0.05), x, depth))
    return Evidence(max(error, _jacobi_error(made.objective, x, normal(random, g.nodes, f), g)))


def _jacobi_error(objective: Objective, x: Tensor, h: Tensor, g: Graph) -> float:
    """How far a Jacobi step is from H − ∇f/D, with ∇f from the value and D from the quadratic that touches it."""
    problem = unroll(objective, Jacobi(), 1).problem(x, g, 1)
    (moved,) = Jacobi().update((h,), problem)
    slope = _slope(lambda t: objective.value(t, x, g), h)
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
        error = max(error, gap(made.propagation(x, g), _steps(layer, x, depth)))
    return Evidence(error)


def _twirls_steps(a: Tensor, x: Tensor, weight: float, share: float, rho: Penalty) -> Callable[[Tensor], Tensor]:
    return lambda h: twirls_layer(a, h, x, weight, share, rho)


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
    touch = gap(_slope(lambda t: term.value(t, given), h), _slope(quadratic, h))
    return max(0.0, *rises) + touch


def _descent(random: Random) -> Evidence:
    g, f = graph(random), whole(random, 1, 4)
    x, weight, scale = normal(random, g.nodes, f), number(random, 0.5, 5.0), number(random, 0.1, 2.0)
    rises = dict.fromkeys((1.0, 2.5), 0.0)
    for rho in (Log(scale), Capped(scale), Power(1.0, scale)):
        objective = Fidelity(1.0) + EdgePenalty(rho, weight)
        for share in rises:
            trace = unroll(objective, Jacobi(step=share), 12).trace(x, g)
            steps = zip(trace.before, trace.after, strict=True)
            rises[share] = max(rises[share], *((after - before) / abs(before) for before, after in steps))
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


# -- LF, HF, GRAFF -----------------------------------------------------------------------------------------------------


def low_layer(a: Tensor, h: Tensor, x: Tensor, mu: float, alpha: float, eta: float) -> Tensor:
    """H − 2η[(μI + (1−μ)A)(H − X) + (1/α − 1)LH]."""
    return h - 2 * eta * ((mu * _eye(a) + (1 - mu) * a) @ (h - x) + (1 / alpha - 1) * (h - a @ h))


def high_layer(a: Tensor, h: Tensor, x: Tensor, beta: float, alpha: float, eta: float) -> Tensor:
    """H − 2η[(I + βL)(H − X) + (1/α − 1)LH]."""
    laplacian = _eye(a) - a
    return h - 2 * eta * ((_eye(a) + beta * laplacian) @ (h - x) + (1 / alpha - 1) * laplacian @ h)


def _low(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 1, 4), whole(random, 1, 8)
    x, mu, alpha = normal(random, g.nodes, f), number(random, 0.5, 1.0), number(random, 0.05, 0.9)
    made, a = model(random, GNNLF, f, f, mu=mu, teleport=alpha, depth=depth), g.to_dense()
    eta = 1 / (2 * (mu + 1 / alpha - 1))
    error = gap(made.propagation(x, g), _steps(lambda h: low_layer(a, h, x, mu, alpha, eta), x, depth))
    h = normal(random, g.nodes, f)
    slope = _slope(lambda t: made.objective.value(t, x, g), h)
    return Evidence(max(error, gap(h - eta * slope, low_layer(a, h, x, mu, alpha, eta))))


def _low_convex(random: Random) -> Evidence:
    chain = path(whole(random, 3, 9), loops=False).to(torch.float64)  # A has the eigenvalue −1
    x = normal(random, chain.nodes, 1)

    def lowest(mu: float) -> float:
        term = FilteredFidelity(1.0, filter=(1.0, mu - 1))
        hessian = torch.autograd.functional.hessian(
            lambda t: (term + Fidelity(0.0)).value(t, x, chain), torch.zeros_like(x)
        )
        return float(torch.linalg.eigvalsh(hessian.reshape(chain.nodes, chain.nodes))[0])

    return Evidence(
        max(0.0, -min(lowest(mu) for mu in (0.5, number(random, 0.5, 1.0)))),
        max(0.0, -lowest(number(random, 0.0, 0.4))),
        "μ ≥ 1/2",
        "μ < 1/2 on a path, whose A has the eigenvalue −1",
    )


def _high(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 1, 4), whole(random, 1, 8)
    x, beta, alpha = normal(random, g.nodes, f), number(random, 0.0, 3.0), number(random, 0.05, 0.9)
    made, a = model(random, GNNHF, f, f, beta=beta, teleport=alpha, depth=depth), g.to_dense()
    eta = 1 / (2 * (beta + 1 / alpha))
    error = gap(made.propagation(x, g), _steps(lambda h: high_layer(a, h, x, beta, alpha, eta), x, depth))
    h = normal(random, g.nodes, f)
    slope = _slope(lambda t: made.objective.value(t, x, g), h)
    return Evidence(max(error, gap(h - eta * slope, high_layer(a, h, x, beta, alpha, eta))))


def high_minimiser(a: Tensor, x: Tensor, beta: float, alpha: float) -> Tensor:
    """α[αI + (αβ + 1 − α)L]⁻¹(I + βL)X."""
    laplacian = _eye(a) - a
    return alpha * torch.linalg.solve(
        alpha * _eye(a) + (alpha * beta + 1 - alpha) * laplacian, x + beta * laplacian @ x
    )


def _high_minimiser(random: Random) -> Evidence:
    g, f = graph(random), whole(random, 1, 4)
    x, beta, alpha = normal(random, g.nodes, f), number(random, 0.1, 3.0), number(random, 0.1, 0.9)
    made = model(random, GNNHF, f, f, beta=beta, teleport=alpha)
    h = high_minimiser(g.to_dense(), x, beta, alpha)
    slope = _slope(lambda t: made.objective.value(t, x, g), h)
    frequencies, modes = torch.linalg.eigh(_eye(g.to_dense()) - g.to_dense())
    shares = (modes.T @ high_minimiser(g.to_dense(), modes, beta, alpha)).diagonal()
    least = alpha * beta / (alpha * beta + 1 - alpha)
    kept = max(0.0, float((least - shares[frequencies > -1e-9]).max()))
    deep = unroll(made.objective, GradientDescent(step=0.5 / (beta + 1 / alpha)), 600)(x, g)
    return Evidence(max(float(slope.norm()) / float(x.norm()), kept, gap(deep, h)))


def graff_energy(a: Tensor, h: Tensor, x: Tensor, omega: Tensor, w: Tensor, source: Tensor) -> Tensor:
    """½ Σ⟨hᵢ, Ωhᵢ⟩ − ½ Σ aᵢⱼ⟨hᵢ, Whⱼ⟩ − Σ⟨hᵢ, W̃xᵢ⟩."""
    return 0.5 * ((h @ omega) * h).sum() - 0.5 * ((a @ h @ w) * h).sum() - ((x @ source) * h).sum()


def _graff(random: Random) -> Evidence:
    g, f, depth, tau = graph(random), whole(random, 2, 4), whole(random, 1, 5), number(random, 0.1, 1.0)
    made, a = model(random, GRAFF, f, f, hidden=f, depth=depth, step=tau), g.to_dense()
    x, h = normal(random, g.nodes, f), normal(random, g.nodes, f)
    net = made.propagation
    raw = net.values(1)
    omega, w, source = (
        leaf.value_of(raw[leaf]).detach() for leaf in sorted(raw, key=lambda leaf: "ΩWW̃".index(str(leaf)))
    )
    omega, source = omega.diag(), source.diag()
    layers = _steps(lambda t: t - tau * (t @ omega - a @ t @ w - x @ source), x, depth)
    slope = _slope(lambda t: graff_energy(a, t, x, omega, w, source), h)
    problem = net.problem(x, g, 1)
    (moved,) = net.algorithm.update((h,), problem)
    error = max(gap(net(x, g), layers), gap(moved, h - tau * slope))
    free = normal(random, f, f)
    step = h - tau * (h @ omega - a @ h @ free - x @ source)
    slope = _slope(lambda t: graff_energy(a, t, x, omega, free, source), h)
    return Evidence(
        error, gap(step, h - tau * slope), "W is symmetric", "a W that is not: the energy sees its symmetric part alone"
    )


# -- signs, groups, labels ---------------------------------------------------------------------------------------------


def _signed(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 2, 4), whole(random, 1, 4)
    alpha, eta = number(random, 0.1, 1.0), number(random, 0.05, 0.4)
    made = model(random, SignedGNN, f, f, hidden=f, alpha=alpha, step=eta, depth=depth)
    x, b = normal(random, g.nodes, f), g.incidence().to_dense()
    score = made.propagation.computed["w"]
    w = score(x, g).detach()
    i, j = edge_list(g)
    swapped = score(x.flip(0), _flipped(g)).detach()  # the ends of every edge in the other order
    table = torch.zeros(g.nodes, g.nodes, dtype=x.dtype)
    k, m = edge_list(_flipped(g))
    table[g.nodes - 1 - m, g.nodes - 1 - k] = swapped
    layers = _steps(lambda h: h - 2 * eta * (b.T @ (w[:, None] * (b @ h)) + alpha * (h - x)), x, depth)
    error = max(gap(made.propagation(x, g), layers), gap(table[i, j], w), float(w.abs().max()) - 1)
    return Evidence(error)


def _flipped(g: Graph) -> Graph:
    """The nodes in the opposite order, so that each edge names its ends the other way round."""
    dense = g.to_dense().flip(0).flip(1)
    return Graph.from_dense(dense, directed=False, loops=0).to(g.dtype)


def _fair(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 2, 4), whole(random, 1, 5)
    l1, l2 = number(random, 0.1, 2.0), number(random, 0.0, 2.0)
    made, a = model(random, FairGNN, f, f, lambda1=l1, lambda2=l2, depth=depth), g.to_dense()
    x, first = normal(random, g.nodes, f), torch.arange(g.nodes) % 3 == 0
    delta = first.double() / first.sum() - (~first).double() / (~first).sum()
    gamma = 1 / (1 + l2)

    def pull(h: Tensor, u: Tensor) -> Tensor:
        return _slope(lambda t: (u * (delta @ torch.softmax(t, 1))).sum(), h)

    h, u = x, torch.zeros(f, dtype=x.dtype)
    for _ in range(depth):
        y = gamma * x + (1 - gamma) * a @ h
        u = (u + delta @ torch.softmax(y - gamma * pull(h, u), 1) / (2 * gamma)).clamp(-l1, l1)
        h = y - gamma * pull(h, u)
    marked = torch.cat([x, first.double()[:, None]], 1)
    closed = fair_slope(h, difference(first[:, None], x.dtype), u)
    return Evidence(max(gap(made.propagation(marked, g), h), gap(closed, pull(h, u))))


def _labels(random: Random) -> Evidence:
    g, classes = graph(random), 3
    known, nodes, y, s = _known(random, g, classes)
    z, a = normal(random, g.nodes, classes), g.to_dense()
    mu, alpha, beta = number(random, 0.5, 3.0), number(random, 0.1, 1.0), number(random, 0.2, 2.0)
    system = mu * s.flatten().diag() + alpha * _eye(a) + beta * (_eye(a) - a)
    dense = torch.linalg.solve(system, mu * s * y + alpha * z)
    how: dict[str, Any] = {"weight": mu, "prior_weight": alpha, "smoothness": beta, "prior": z}
    found = propagate_labels(known, nodes, classes, g, **how)
    eta = 1 / (2 * (mu + alpha + 2 * beta))
    steps = _steps(lambda h: h - 2 * eta * (mu * s * (h - y) + alpha * (h - z) + beta * (h - a @ h)), z, 5)
    return Evidence(max(gap(found, dense), gap(propagate_labels(known, nodes, classes, g, depth=5, **how), steps)))


def _known(random: Random, g: Graph, classes: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    known = torch.randint(0, classes, (g.nodes,), generator=random)
    nodes = torch.randperm(g.nodes, generator=random)[: max(2, g.nodes // 3)]
    y = torch.nn.functional.one_hot(known, classes).double()
    s = torch.zeros(g.nodes, 1, dtype=torch.float64)
    s[nodes] = 1
    return known, nodes, y, s


def _harmonic(random: Random) -> Evidence:
    g, f = graph(random), whole(random, 1, 3)
    x, seen = normal(random, g.nodes, f), torch.rand(g.nodes, generator=random) < 0.4
    seen[0] = True
    laplacian = _eye(g.to_dense()) - g.to_dense()
    free = ~seen
    harmonic = x.clone()
    if bool(free.any()):
        harmonic[free] = torch.linalg.solve(laplacian[free][:, free], -laplacian[free][:, seen] @ x[seen])

    def filled(weight: float) -> Tensor:
        objective = NodeFidelity(seen, weight) + Smoothness(1.0)
        zero = torch.zeros(g.nodes, 1, dtype=x.dtype)
        columns = [objective.gradient(e, zero, g).flatten() for e in _eye(laplacian)[:, :, None]]
        return torch.linalg.solve(torch.stack(columns, 1), -objective.gradient(torch.zeros_like(x), x, g))

    return Evidence(gap(filled(1e12), harmonic), gap(filled(1.0), harmonic), "α → ∞", "α = 1")


def _correct(random: Random) -> Evidence:
    g, classes = graph(random), 3
    known, nodes, y, s = _known(random, g, classes)
    z, laplacian = torch.softmax(normal(random, g.nodes, classes), 1), _eye(g.to_dense()) - g.to_dense()
    spread, smooth, scale = number(random, 0.5, 5.0), number(random, 0.5, 5.0), number(random, 0.5, 1.5)
    errors = torch.linalg.solve(_eye(laplacian) + spread * laplacian, s * (y - z))
    mended = s * y + (1 - s) * (z + scale * errors)
    final = torch.linalg.solve(_eye(laplacian) + smooth * laplacian, mended)
    slopes = [
        _slope(lambda t, x=start, beta=weight: (Fidelity(1.0) + Smoothness(beta)).value(t, x, g), end)
        for start, end, weight in ((s * (y - z), errors, spread), (mended, final, smooth))
    ]
    found = correct(z, known, nodes, g, correction=spread, scale=scale, smoothness=smooth)
    return Evidence(max(gap(found, final), *(float(slope.norm()) for slope in slopes)))


def _signed_problem(random: Random) -> Evidence:
    g, f = graph(random), whole(random, 1, 3)
    x, b = normal(random, g.nodes, f), g.incidence().to_dense()
    w = torch.tanh(normal(random, b.shape[0]))
    lowest = float(torch.linalg.eigvalsh(b.T @ (w[:, None] * b))[0])

    def restless(alpha: float, depth: int) -> float:
        objective = Fidelity(alpha) + EdgeSmoothness(w)
        h = unroll(objective, GradientDescent(step=1 / (2 * (alpha + 2))), depth)(x, g)
        return float((b.T @ (w[:, None] * (b @ h)) + alpha * (h - x)).norm()) / float(x.norm())

    return Evidence(
        restless(-lowest + 0.2, 1500),
        restless(max(-lowest - 0.05, 0.0), 400),
        "α > −λ_min(Bᵀ diag(w) B)",
        "a smaller α: steps grow without end",
    )


CLAIMS: tuple[Claim, ...] = (
    Claim("ElasticGNN", "its layers are PD3O steps without a proximal term (PAPC) on ½‖H−X‖² + (λ₂/2)‖BH‖² + λ₁‖BH‖₂,₁", Verdict.HOLDS, _elastic, model="ElasticGNN"),
    Claim("ElasticGNN, steps", "its layers reach the minimiser: stationary H, and Z where λ₁‖BH‖₂,₁ is attained", Verdict.HOLDS_WHEN, _elastic_limit),
    Claim("ElasticGNN, Condat–Vũ", "its steps satisfy 1/γ − β‖B‖² ≥ L/2", Verdict.FAILS, _elastic_condat),
    Claim("p-Laplacian", "its layers are Jacobi steps on Σ‖(BH)ₑ‖ᵖ + μ‖H−X‖²", Verdict.HOLDS, _p_laplacian, model="PGNN"),
    Claim("TWIRLS", "its layers on an unnormalised A are Jacobi steps of size a on ‖H−X‖² + λΣρ(‖(BH)ₑ‖²)", Verdict.HOLDS, _twirls, model="TWIRLS"),
    Claim("TWIRLS, majoriser", "the quadratic with Γ = ρ′ lies above the penalty and touches it at H", Verdict.HOLDS_WHEN, _majoriser),
    Claim("TWIRLS, descent", "no layer raises the objective", Verdict.HOLDS_WHEN, _descent),
    Claim("TWIRLS, influence", "the force of an edge stays bounded however far its ends lie apart", Verdict.HOLDS_WHEN, _redescends),
    Claim("GNN-LF", "its layers are gradient steps on ⟨H−X, (μI+(1−μ)A)(H−X)⟩ + (1/α−1)‖BH‖²", Verdict.HOLDS, _low, model="GNNLF"),
    Claim("GNN-LF, convexity", "its fidelity is convex", Verdict.HOLDS_WHEN, _low_convex),
    Claim("GNN-HF", "its layers are gradient steps on ⟨H−X, (I+βL)(H−X)⟩ + (1/α−1)‖BH‖²", Verdict.HOLDS, _high, model="GNNHF"),
    Claim("GNN-HF, minimiser", "they reach α[αI+(αβ+1−α)L]⁻¹(I+βL)X, which keeps αβ/(αβ+1−α) of every frequency or more", Verdict.HOLDS, _high_minimiser),
    Claim("GRAFF", "its layers are gradient steps on its energy, ½‖H‖²_(Ω−W) + ½‖BH‖²_W − ⟨H, XW̃⟩", Verdict.HOLDS_WHEN, _graff, model="GRAFF"),
    Claim("SignedGNN", "its layers are H − 2ηBᵀdiag(w)BH − 2ηα(H−X), with w in (−1, 1) that does not know which end of an edge is first", Verdict.HOLDS, _signed, model="SignedGNN"),
    Claim("SignedGNN, minimiser", "the steps come to rest at the minimiser of α‖H−X‖² + Σ wₑ‖(BH)ₑ‖²", Verdict.HOLDS_WHEN, _signed_problem),
    Claim("FairGNN", "its layers are primal-dual steps with the gradient of ⟨u, Δ softmax(H)⟩ at each H", Verdict.HOLDS, _fair, model="FairGNN"),
    Claim("Label propagation", "minimiser and steps of μ‖S(H−Y)‖² + α‖H−Z‖² + β‖BH‖²", Verdict.HOLDS, _labels),
    Claim("Missing entries", "nodes without a value get the harmonic one, and the others keep theirs", Verdict.HOLDS_WHEN, _harmonic),
    Claim("Correct and smooth", "two minimisers, of the errors and of the corrected scores", Verdict.HOLDS, _correct),
)  # fmt: skip
