"""Signs, groups and labels: learnt signed edges, fair message passing, label propagation, missing values, correct and smooth."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unspool.algorithm import GradientDescent
from unspool.graph import Graph, edge_list
from unspool.models import FairGNN, SignedGNN
from unspool.models import correct_and_smooth as correct
from unspool.models import label_propagation as propagate_labels
from unspool.models.fairgnn import difference
from unspool.models.fairgnn import slope as fair_slope
from unspool.objective import EdgeSmoothness, Fidelity, NodeFidelity, Smoothness
from unspool.theory.certificate import Claim, Evidence, Verdict
from unspool.theory.setting import Random, eye, gap, gradient, graph, model, normal, number, steps, whole
from unspool.unrolling import unroll


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
    layers = steps(lambda h: h - 2 * eta * (b.T @ (w[:, None] * (b @ h)) + alpha * (h - x)), x, depth)
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
        return gradient(lambda t: (u * (delta @ torch.softmax(t, 1))).sum(), h)

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
    system = mu * s.flatten().diag() + alpha * eye(a) + beta * (eye(a) - a)
    dense = torch.linalg.solve(system, mu * s * y + alpha * z)
    how: dict[str, Any] = {"weight": mu, "prior_weight": alpha, "smoothness": beta, "prior": z}
    found = propagate_labels(known, nodes, classes, g, **how)
    eta = 1 / (2 * (mu + alpha + 2 * beta))
    moved = steps(lambda h: h - 2 * eta * (mu * s * (h - y) + alpha * (h - z) + beta * (h - a @ h)), z, 5)
    return Evidence(max(gap(found, dense), gap(propagate_labels(known, nodes, classes, g, depth=5, **how), moved)))


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
    laplacian = eye(g.to_dense()) - g.to_dense()
    free = ~seen
    harmonic = x.clone()
    if bool(free.any()):
        harmonic[free] = torch.linalg.solve(laplacian[free][:, free], -laplacian[free][:, seen] @ x[seen])

    def filled(weight: float) -> Tensor:
        objective = NodeFidelity(seen, weight) + Smoothness(1.0)
        zero = torch.zeros(g.nodes, 1, dtype=x.dtype)
        columns = [objective.gradient(e, zero, g).flatten() for e in eye(laplacian)[:, :, None]]
        return torch.linalg.solve(torch.stack(columns, 1), -objective.gradient(torch.zeros_like(x), x, g))

    return Evidence(gap(filled(1e12), harmonic), gap(filled(1.0), harmonic), "α → ∞", "α = 1")


def _correct(random: Random) -> Evidence:
    g, classes = graph(random), 3
    known, nodes, y, s = _known(random, g, classes)
    z, laplacian = torch.softmax(normal(random, g.nodes, classes), 1), eye(g.to_dense()) - g.to_dense()
    spread, smooth, scale = number(random, 0.5, 5.0), number(random, 0.5, 5.0), number(random, 0.5, 1.5)
    errors = torch.linalg.solve(eye(laplacian) + spread * laplacian, s * (y - z))
    mended = s * y + (1 - s) * (z + scale * errors)
    final = torch.linalg.solve(eye(laplacian) + smooth * laplacian, mended)
    slopes = [
        gradient(lambda t, x=start, beta=weight: (Fidelity(1.0) + Smoothness(beta)).value(t, x, g), end)
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
    Claim("SignedGNN", "its layers are H − 2ηBᵀdiag(w)BH − 2ηα(H−X), with w in (−1, 1) that does not know which end of an edge is first", Verdict.HOLDS, _signed, model="SignedGNN"),
    Claim("SignedGNN, minimiser", "the steps come to rest at the minimiser of α‖H−X‖² + Σ wₑ‖(BH)ₑ‖²", Verdict.HOLDS_WHEN, _signed_problem),
    Claim("FairGNN", "its layers are primal-dual steps with the gradient of ⟨u, Δ softmax(H)⟩ at each H", Verdict.HOLDS, _fair, model="FairGNN"),
    Claim("Label propagation", "minimiser and steps of μ‖S(H−Y)‖² + α‖H−Z‖² + β‖BH‖²", Verdict.HOLDS, _labels),
    Claim("Missing entries", "nodes without a value get the harmonic one, and the others keep theirs", Verdict.HOLDS_WHEN, _harmonic),
    Claim("Correct and smooth", "two minimisers, of the errors and of the corrected scores", Verdict.HOLDS, _correct),
)  # fmt: skip
