"""Table 1, row by row: each model's propagation is the unrolled algorithm on its stated objective, and under which condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.algorithm import GradientDescent, ProximalGradient
from unspool.errors import IncompatibleError
from unspool.graph import Graph
from unspool.models import APPNP, GCN, GCNII, GPRGNN, PPNP, SGC, UGDGNN, AirGNN, IdentityMapping, JKNet, Layers, Side
from unspool.objective import Fidelity, Fixed, NonNegative, Objective, Ridge, RowSparseFidelity, Smoothness
from unspool.ops import propagate
from unspool.theory.certificate import Claim, Evidence, Verdict
from unspool.theory.setting import Random, gap, graph, model, normal, number, symmetric, whole
from unspool.unrolling import Unrolled, read_back_hops, unroll
from unspool.unrolling.division import divide, tails


def _descends(net: Unrolled, h: Tensor, x: Tensor, g: Graph, layer: int) -> float:
    """How far layer k is from prox(h − η ∇), with the gradient taken from the objective's value by autograd alone."""
    problem = net.problem(x, g, layer)
    smooth = Objective(net.objective.smooth_terms)
    leaf = h.detach().clone().requires_grad_()
    (slope,) = torch.autograd.grad(smooth.value(leaf, x, g, net.values(layer)), leaf)
    eta = net.algorithm.step_size(problem)
    (moved,) = net.algorithm.update((h,), problem)
    return gap(moved, problem.prox((h - eta * slope).detach(), eta))


def _worst_step(net: Unrolled, x: Tensor, g: Graph) -> float:
    """The worst layer of a network, along its own iterates."""
    h, worst = x, 0.0
    for k in range(1, net.depth + 1):
        worst = max(worst, _descends(net, h, x, g, k))
        (h,) = net.algorithm.update((h,), net.problem(x, g, k))
        h = h.detach()
    return worst


def _power(a: Tensor, k: int) -> Tensor:
    return torch.linalg.matrix_power(a, k)


def _sgc(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 2, 4), whole(random, 2, 5)
    x, a = normal(random, g.nodes, f), g.to_dense()
    metrics = [symmetric(random, f) for _ in range(depth)]
    h, product, worst = x, torch.eye(f, dtype=torch.float64), 0.0
    for t in metrics:
        metric = Fixed(t, "T")
        net = unroll(Smoothness(1.0, metric=metric) + Ridge(1.0, metric=1 - metric), GradientDescent(step=0.5), 1)
        worst = max(worst, _worst_step(net, h, g))
        h, product = net(h, g), product @ t
    error = max(worst, gap(h, _power(a, depth) @ x @ product))
    free = Fixed(normal(random, f, f), "W")
    single = unroll(Smoothness(1.0, metric=free) + Ridge(1.0, metric=1 - free), GradientDescent(step=0.5), 1)
    return Evidence(
        error,
        _worst_step(single, x, g),
        "W is a product of K symmetric T, as every square W is for K ≥ 2",
        "K = 1 and a W that is not symmetric",
    )


def _sgc_second(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 2, 5), whole(random, 1, 6)
    x = normal(random, g.nodes, f)
    before = model(random, SGC, f, 3, depth=depth)
    after = model(random, SGC, f, 3, depth=depth, weights=Side.POS)
    with torch.no_grad():
        after.p_pos.weight.copy_(before.p_pre.weight)
        after.p_pos.bias.copy_(before.p_pos.bias)
    exact = _power(g.to_dense(), depth) @ x @ before.p_pre.weight + before.p_pos.bias
    steps = unroll(Smoothness(1.0), GradientDescent(step=0.5), depth)
    error = max(gap(before(x, g), exact), gap(after(x, g), exact), gap(before.propagation(x, g), steps(x, g)))
    return Evidence(max(error, _worst_step(steps, x, g)))


def _ppnp(random: Random) -> Evidence:
    g, f, share = graph(random), whole(random, 1, 4), number(random, 0.05, 0.95)
    x = normal(random, g.nodes, f)
    made = model(random, PPNP, f, f, teleport=share, tolerance=1e-13)
    h = made.propagation(x, g)
    exact = share * torch.linalg.solve(torch.eye(g.nodes, dtype=torch.float64) - (1 - share) * g.to_dense(), x)
    slope = made.objective.gradient(h, x, g)
    return Evidence(max(gap(h, exact), float(slope.norm()) / float(x.norm())))


def _appnp(random: Random) -> Evidence:
    g, f, depth, share = graph(random), whole(random, 1, 4), whole(random, 1, 8), number(random, 0.0, 1.0)
    x, a = normal(random, g.nodes, f), g.to_dense()
    made = model(random, APPNP, f, f, depth=depth, teleport=share)
    h = x
    for _ in range(depth):
        h = (1 - share) * a @ h + share * x
    return Evidence(max(gap(made.propagation(x, g), h), _worst_step(made.propagation, x, g)))


def _limit(random: Random) -> Evidence:
    g, f, share = graph(random), 2, number(random, 0.1, 0.5)
    x = normal(random, g.nodes, f)
    exact = model(random, PPNP, f, f, teleport=share, tolerance=1e-13).propagation(x, g)
    deep, shallow = (model(random, APPNP, f, f, teleport=share, depth=k).propagation(x, g) for k in (400, 3))
    return Evidence(gap(deep, exact), gap(shallow, exact), "depth → ∞", "three layers")


def _replay(layers: Sequence[tuple[Tensor, Tensor]], x: Tensor, g: Graph) -> tuple[Tensor, float]:
    """Run metrics (αTα, βTβ) one by one as gradient steps of size 1/2; also return how far each is from its gradient step."""
    h, worst = x, 0.0
    for t_alpha, t_beta in layers:
        a, b = Fixed(t_alpha, "Tα"), Fixed(t_beta, "Tβ")
        net = unroll(Fidelity(1.0, metric=a) + Smoothness(1.0, metric=b), GradientDescent(step=0.5), 1)
        problem = net.problem(x, g, 1)
        (moved,) = net.algorithm.update((h,), problem)
        if a.symmetric and b.symmetric:
            worst = max(worst, _descends(net, h, x, g, 1))
        h = moved
    return h, worst


def _printed_layers(hops: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The layers of Propositions 5 and 6, Tβ = I − Tα, of coefficients over their sum S: each division is at a₀ = 0."""
    c = hops.numpy()
    unit = c @ np.linalg.inv(c.sum(axis=0)) if c.ndim == 3 else c / c.sum(axis=0)
    found = divide(tails(unit), np.array([0.0]))
    assert found is not None  # partial sums of random coefficients are not the whole sum
    _, hop = (torch.from_numpy(part) for part in found)
    one = torch.eye(hop.shape[1], dtype=hop.dtype) if hop.ndim == 3 else torch.ones((), dtype=hop.dtype)
    return [(one - t, t) for t in hop]


def _read_layers(hops: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Any layers of eq. (5), of coefficients over their sum."""
    layers = read_back_hops(hops).layers
    return [(torch.as_tensor(layer.fidelity), torch.as_tensor(layer.smoothness)) for layer in layers]


def _unit_sum(hops: Tensor) -> Tensor:
    """The same coefficients with the last one changed so that they sum to I."""
    one = torch.eye(hops.shape[1], dtype=hops.dtype) if hops.ndim == 3 else torch.ones((), dtype=hops.dtype)
    return torch.cat([hops[:-1], (one - hops[:-1].sum(0))[None]])


def _hop_model(made: Any, x: Tensor, g: Graph, why: str) -> Evidence:
    """A model with free hop coefficients: equal to gradient layers when they sum to I, and not otherwise."""
    free = made.propagation.hops().detach().clone()
    with torch.no_grad():
        made.propagation.coefficients.copy_(_unit_sum(free))
    h, worst = _replay(_printed_layers(made.propagation.hops().detach()), x, g)
    error = max(gap(h, made.propagation(x, g)), worst)
    without, _ = _replay(_printed_layers(free), x, g)
    return Evidence(
        error, gap(without, propagate(g, x, free)), why, "free coefficients, before their sum is factored into p_pos"
    )


def _jknet(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 2, 4), whole(random, 2, 5)
    made = model(random, JKNet, f, f, hidden=f, depth=depth)
    return _hop_model(
        made,
        normal(random, g.nodes, f),
        g,
        "ΣW = I and no partial sum is singular to it (T symmetric: a gradient step; else relaxed)",
    )


def _gprgnn(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 1, 4), whole(random, 2, 8)
    made = model(random, GPRGNN, f, f, depth=depth)
    return _hop_model(
        made, normal(random, g.nodes, f), g, "Σγ = 1 and no partial sum is 1 (Σγ = 1 alone with any β and η: erratum 2)"
    )


def _gcn(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 2, 4), whole(random, 2, 5)
    x, a = normal(random, g.nodes, f), g.to_dense()
    made = model(random, GCN, f, f, hidden=f, depth=depth, bias=False)
    steps = made.propagation.as_unrolled()
    start = made.p_pre(x)
    h = x
    for w in [made.p_pre.layers[0].weight, *made.propagation.weights][:-1]:
        h = torch.relu(a @ h @ w)
    exact = a @ h @ made.propagation.weights[-1]
    error = max(gap(made(x, g), exact), gap(steps(start, g), h))
    for w in steps.coefficients["W"]:
        t = Fixed(((w + w.T) / 2).detach(), "T")
        one = unroll(
            Smoothness(1.0, metric=t) + Ridge(1.0, metric=1 - t) + NonNegative(), ProximalGradient(step=0.5), 1
        )
        error = max(error, _worst_step(one, x, g))
    try:
        model(random, GCN, f, f, hidden=f + 1, depth=3, bias=True).propagation.as_unrolled()
        relaxed = 0.0
    except IncompatibleError:
        free = Fixed(normal(random, f, f), "W")
        net = unroll(Smoothness(1.0, metric=free) + Ridge(1.0, metric=1 - free), GradientDescent(step=0.5), 1)
        relaxed = _worst_step(net, x, g)
    return Evidence(error, relaxed, "W is square (and symmetric, for a true gradient step), without bias", "a free W")


def _gcnii(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 2, 4), whole(random, 2, 5)
    x, a = normal(random, g.nodes, f), g.to_dense()
    share, xi = number(random, 0.05, 0.6), number(random, 0.1, 0.9)
    made = model(
        random, GCNII, f, f, hidden=f, depth=depth, teleport=share, identity=IdentityMapping.CONSTANT, strength=xi
    )
    net, eye = made.propagation, torch.eye(f, dtype=torch.float64)
    free = _worst_step(net, x, g)
    with torch.no_grad():
        net.coefficients["W"].add_(net.coefficients["W"].mT.clone()).mul_(0.5)
    h = x
    for w in net.coefficients["W"]:
        h = torch.relu(((1 - share) * a @ h + share * x) @ (xi * w + (1 - xi) * eye))
    return Evidence(
        max(gap(net(x, g), h), _worst_step(net, x, g)), free, "every W is symmetric", "a free W: a relaxation"
    )


def _airgnn(random: Random) -> Evidence:
    g, f, depth, share = graph(random), whole(random, 1, 4), whole(random, 1, 6), number(random, 0.1, 0.8)
    x, a, beta = normal(random, g.nodes, f), g.to_dense(), 1 - share
    made = model(random, AirGNN, f, f, depth=depth, residual=share)
    h = x
    for _ in range(depth):
        offset = a @ h - x
        h = torch.relu(1 - (1 - beta) / (2 * beta * offset.norm(dim=1, keepdim=True))) * offset + x
    steps = unroll(Smoothness(beta) + RowSparseFidelity(1 - beta), ProximalGradient(step=1 / (2 * beta)), depth)
    error = max(gap(made.propagation(x, g), h), gap(steps(x, g), h), _worst_step(steps, x, g))
    leaf = torch.ones(
        g.nodes, f, dtype=torch.float64, requires_grad=True
    )  # where neighbours agree, gradients stay finite
    (slope,) = torch.autograd.grad(made.propagation(leaf, g).sum(), leaf)
    return Evidence(error if bool(torch.isfinite(slope).all()) else float("nan"))


def _ugdgnn(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 2, 4), whole(random, 2, 4)
    x = normal(random, g.nodes, f)
    general = model(random, UGDGNN, f, f, hidden=f, depth=depth, layers=Layers.GENERAL)
    reduced = UGDGNN.from_model(general)
    size = max(1.0, float(reduced.propagation.hops().detach().abs().sum()))  # type: ignore[union-attr]
    error = gap(reduced.propagation(x, g), general.propagation(x, g)) / size
    made = model(random, UGDGNN, f, f, hidden=f, depth=depth)
    hops = made.propagation.hops().detach()
    h, worst = _replay(_read_layers(_unit_sum(hops)), x, g)
    error = max(error, worst, gap(h, propagate(g, x, _unit_sum(hops))))
    without, _ = _replay(_read_layers(hops), x, g)
    return Evidence(
        error,
        gap(without, made.propagation(x, g)),
        "Σγₖ(ζₖI + ξₖWₖ) = I and every successive quotient is invertible at some point",
        "free coefficients, before their sum is factored into p_pos",
    )


CLAIMS = (
    Claim("Proposition 3, SGC", "AᴷXW is K gradient steps on ‖BH‖²_T + ‖H‖²_(I−T)", Verdict.HOLDS_WHEN, _sgc, model="SGC"),
    Claim("Proposition 3, SGC", "second reading: T = I, r = 0, W in p_pre or p_pos", Verdict.HOLDS, _sgc_second, model="SGC"),
    Claim("Proposition 4, PPNP", "γ(I − (1−γ)A)⁻¹X minimises γ‖H−X‖² + (1−γ)‖BH‖²", Verdict.HOLDS, _ppnp, model="PPNP"),
    Claim("Proposition 4, APPNP", "its K layers are K gradient steps on the same problem", Verdict.HOLDS, _appnp, model="APPNP"),
    Claim("Proposition 4", "APPNP reaches PPNP", Verdict.HOLDS_WHEN, _limit),
    Claim("Proposition 5, JKNet", "ΣAᵏXW⁽ᵏ⁾ is K gradient steps on ‖H−X‖²_T + ‖BH‖²_(I−T)", Verdict.HOLDS_WHEN, _jknet, model="JKNet"),
    Claim("Proposition 6, GPRGNN", "ΣγₖAᵏX is K gradient steps on α‖H−X‖² + (1−α)‖BH‖²", Verdict.HOLDS_WHEN, _gprgnn, model="GPRGNN"),
    Claim("Proposition 8, GCN", "its layers are proximal steps on ‖BH‖²_W + ‖H‖²_(I−W), H ≥ 0", Verdict.HOLDS_WHEN, _gcn, model="GCN"),
    Claim("Proposition 9, GCNII", "its layers are proximal steps on its row of Table 1", Verdict.HOLDS_WHEN, _gcnii, model="GCNII"),
    Claim("Proposition 10, AirGNN", "its layers are proximal steps on β‖BH‖² + (1−β)‖H−X‖₂,₁", Verdict.HOLDS, _airgnn, model="AirGNN"),
    Claim("Proposition 11, UGDGNN", "K layers of eq. (5) are Σγₖ AᵏX(ζₖI + ξₖWₖ), and back", Verdict.HOLDS_WHEN, _ugdgnn, model="UGDGNN"),
)  # fmt: skip
