"""GNN-LF, GNN-HF, GRAFF, uniform hops, SIGN: their layers are gradient steps, against their authors' formulas in dense matrices; and when
hops may come before the encoder."""

from __future__ import annotations

import torch
from torch import Tensor

from unspool.algorithm import GradientDescent
from unspool.graph import path
from unspool.models import GNNHF, GNNLF, GRAFF, SIGN, GraphFirstGPRGNN, GraphFirstUGDGNN, StableGNN
from unspool.models.stablegnn import share
from unspool.objective import Fidelity, FilteredFidelity, Smoothness, as_objective
from unspool.theory.certificate import Claim, Evidence, Verdict
from unspool.theory.setting import Random, eye, gap, gradient, graph, model, normal, number, steps, whole
from unspool.unrolling import unroll


def low_layer(a: Tensor, h: Tensor, x: Tensor, mu: float, alpha: float, eta: float) -> Tensor:
    """H − 2η[(μI + (1−μ)A)(H − X) + (1/α − 1)LH]."""
    return h - 2 * eta * ((mu * eye(a) + (1 - mu) * a) @ (h - x) + (1 / alpha - 1) * (h - a @ h))


def high_layer(a: Tensor, h: Tensor, x: Tensor, beta: float, alpha: float, eta: float) -> Tensor:
    """H − 2η[(I + βL)(H − X) + (1/α − 1)LH]."""
    laplacian = eye(a) - a
    return h - 2 * eta * ((eye(a) + beta * laplacian) @ (h - x) + (1 / alpha - 1) * laplacian @ h)


def _low(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 1, 4), whole(random, 1, 8)
    x, mu, alpha = normal(random, g.nodes, f), number(random, 0.5, 1.0), number(random, 0.05, 0.9)
    made, a = model(random, GNNLF, f, f, mu=mu, teleport=alpha, depth=depth), g.to_dense()
    eta = 1 / (2 * (mu + 1 / alpha - 1))
    error = gap(made.propagation(x, g), steps(lambda h: low_layer(a, h, x, mu, alpha, eta), x, depth))
    h = normal(random, g.nodes, f)
    slope = gradient(lambda t: made.objective.value(t, x, g), h)
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
    error = gap(made.propagation(x, g), steps(lambda h: high_layer(a, h, x, beta, alpha, eta), x, depth))
    h = normal(random, g.nodes, f)
    slope = gradient(lambda t: made.objective.value(t, x, g), h)
    return Evidence(max(error, gap(h - eta * slope, high_layer(a, h, x, beta, alpha, eta))))


def high_minimiser(a: Tensor, x: Tensor, beta: float, alpha: float) -> Tensor:
    """α[αI + (αβ + 1 − α)L]⁻¹(I + βL)X."""
    laplacian = eye(a) - a
    return alpha * torch.linalg.solve(alpha * eye(a) + (alpha * beta + 1 - alpha) * laplacian, x + beta * laplacian @ x)


def _high_minimiser(random: Random) -> Evidence:
    g, f = graph(random), whole(random, 1, 4)
    x, beta, alpha = normal(random, g.nodes, f), number(random, 0.1, 3.0), number(random, 0.1, 0.9)
    made = model(random, GNNHF, f, f, beta=beta, teleport=alpha)
    h = high_minimiser(g.to_dense(), x, beta, alpha)
    slope = gradient(lambda t: made.objective.value(t, x, g), h)
    frequencies, modes = torch.linalg.eigh(eye(g.to_dense()) - g.to_dense())
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
    layers = steps(lambda t: t - tau * (t @ omega - a @ t @ w - x @ source), x, depth)
    slope = gradient(lambda t: graff_energy(a, t, x, omega, w, source), h)
    problem = net.problem(x, g, 1)
    (moved,) = net.algorithm.update((h,), problem)
    error = max(gap(net(x, g), layers), gap(moved, h - tau * slope))
    free = normal(random, f, f)
    step = h - tau * (h @ omega - a @ h @ free - x @ source)
    slope = gradient(lambda t: graff_energy(a, t, x, omega, free, source), h)
    return Evidence(
        error, gap(step, h - tau * slope), "W is symmetric", "a W that is not: the energy sees its symmetric part alone"
    )


def hop_mean(a: Tensor, x: Tensor, depth: int) -> Tensor:
    """(X + A X + ... + Aᴷ X) / (K + 1), GRAND's propagation."""
    total = power = x
    for _ in range(depth):
        power = a @ power
        total = total + power
    return total / (depth + 1)


def _uniform(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 1, 4), whole(random, 1, 9)
    x, h, k = normal(random, g.nodes, f), normal(random, g.nodes, f), whole(random, 1, depth)
    made = model(random, StableGNN, f, f, hidden=f, depth=depth)
    with torch.no_grad():  # αₖ with all digits of float64
        made.propagation.coefficients["α"].copy_(
            torch.tensor([share(j) for j in range(1, depth + 1)], dtype=torch.float64)
        )
    error = gap(made.propagation(x, g), hop_mean(g.to_dense(), x, depth))
    problem = Fidelity(1 / (k + 1)) + Smoothness(1 - 1 / (k + 1))
    (moved,) = made.propagation.algorithm.update((h,), made.propagation.problem(x, g, k))
    return Evidence(max(error, gap(moved, h - 0.5 * gradient(lambda t: problem.value(t, x, g), h))))


def side_by_side(a: Tensor, x: Tensor, weights: list[Tensor]) -> Tensor:
    """[X W₀, A X W₁, ..., Aᴷ X W_K]."""
    return torch.cat([torch.linalg.matrix_power(a, k) @ x @ w for k, w in enumerate(weights)], 1)


def _sign(random: Random) -> Evidence:
    g, f, width, depth = graph(random), whole(random, 1, 4), whole(random, 1, 3), whole(random, 1, 5)
    x, made = normal(random, g.nodes, f), model(random, SIGN, f, f, hidden=width, depth=depth)
    w = made.p_pre.weight.detach()
    error = gap(made.propagation(x @ w, g), side_by_side(g.to_dense(), x, list(w.split(width, dim=1))))
    h, k = normal(random, g.nodes, (depth + 1) * width), whole(random, 1, depth)
    further = (torch.arange(depth + 1) >= k).repeat_interleave(width).to(h.dtype)
    slope = gradient(lambda t: as_objective(Smoothness(1.0)).value(t * further, h, g), h)
    (moved,) = made.propagation.algorithm.update((h,), made.propagation.problem(x @ w, g, k))
    return Evidence(max(error, gap(moved, h - 0.5 * slope)))


def filtered(a: Tensor, x: Tensor, hops: Tensor) -> Tensor:
    """Σ γₖ Aᵏ X."""
    total = torch.zeros_like(x)
    for c in hops.flip(0):
        total = a @ total + c * x
    return total


def _graph_first(random: Random) -> Evidence:
    g, f, width, depth = graph(random), whole(random, 2, 5), whole(random, 2, 5), whole(random, 1, 5)
    x, made, a = (
        normal(random, g.nodes, f),
        model(random, GraphFirstGPRGNN, f, f, hidden=width, depth=depth),
        g.to_dense(),
    )
    w, hops = made.p_pre.weight.detach(), normal(random, depth + 1)
    with torch.no_grad():
        made.propagation.coefficients.copy_(hops)
    after = filtered(a, x, hops) @ w
    bent = gap(filtered(a, torch.relu(x @ w), hops), torch.relu(after))
    return Evidence(
        gap(made(x, g), made.p_pos(after)), bent, "the encoder is a matrix", "an encoder with a ReLU, as in GPRGNN"
    )


def _graph_first_matrices(random: Random) -> Evidence:
    g, f, width, depth = graph(random), whole(random, 2, 5), whole(random, 2, 5), whole(random, 1, 5)
    x, made = normal(random, g.nodes, f), model(random, GraphFirstUGDGNN, f, f, hidden=width, depth=depth)
    hops, w = normal(random, depth + 1), made.p_pre.weight.detach()
    with torch.no_grad():
        made.propagation.gamma.copy_(hops)
        made.propagation.zeta.fill_(1.0)  # and ξ = 1 − ζ
    return Evidence(gap(made(x, g), made.p_pos(filtered(g.to_dense(), x, hops) @ w)))


CLAIMS: tuple[Claim, ...] = (
    Claim("GNN-LF", "its layers are gradient steps on ⟨H−X, (μI+(1−μ)A)(H−X)⟩ + (1/α−1)‖BH‖²", Verdict.HOLDS, _low, model="GNNLF"),
    Claim("GNN-LF, convexity", "its fidelity is convex", Verdict.HOLDS_WHEN, _low_convex),
    Claim("GNN-HF", "its layers are gradient steps on ⟨H−X, (I+βL)(H−X)⟩ + (1/α−1)‖BH‖²", Verdict.HOLDS, _high, model="GNNHF"),
    Claim("GNN-HF, minimiser", "they reach α[αI+(αβ+1−α)L]⁻¹(I+βL)X, which keeps αβ/(αβ+1−α) of every frequency or more", Verdict.HOLDS, _high_minimiser),
    Claim("GRAFF", "its layers are gradient steps on its energy, ½‖H‖²_(Ω−W) + ½‖BH‖²_W − ⟨H, XW̃⟩", Verdict.HOLDS_WHEN, _graff, model="GRAFF"),
    Claim("SIGN", "[XW₀, AXW₁, ..., AᴷXW_K] is K gradient steps of size 1/2 on ‖BH‖²_Tₖ, Tₖ the projection on the channels of hops k to K", Verdict.HOLDS, _sign, model="SIGN"),
    Claim("Graph first", "the hops of the features, then the encoder, are the encoder and then its hops", Verdict.HOLDS_WHEN, _graph_first, model="GraphFirstGPRGNN"),
    Claim("Graph first, UGDGNN", "with ζ = 1 and ξ = 0 its hops are those of GraphFirstGPRGNN", Verdict.HOLDS, _graph_first_matrices, model="GraphFirstUGDGNN"),
    Claim("GRAND, uniform hops", "the mean of all hops is K gradient steps of size 1/2 on αₖ‖H−X‖² + (1−αₖ)‖BH‖² with αₖ = 1/(k+1)", Verdict.HOLDS, _uniform, model="StableGNN"),
)  # fmt: skip
