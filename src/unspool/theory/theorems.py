"""The denoising problem and the two unrolling theorems."""

from __future__ import annotations

import torch
from torch import Tensor

from unspool.algorithm import Exact, GradientDescent, ProximalGradient
from unspool.graph import Graph, Normalisation, path
from unspool.objective import (
    Activation,
    Box,
    Fidelity,
    Learnable,
    NonNegative,
    Objective,
    ProximableTerm,
    Relaxed,
    RowSparse,
    RowSparseFidelity,
    Smoothness,
    Sparse,
    Symmetric,
)
from unspool.ops.activation import ELU, LeakyReLU, Tanh, not_a_prox
from unspool.theory.activations import POTENTIALS, advantage
from unspool.theory.certificate import Claim, Evidence, Verdict
from unspool.theory.setting import Random, gap, graph, normal, number, symmetric, whole
from unspool.unrolling import Implicit, Stored, Unrolled, unroll


def _incidence(random: Random) -> Evidence:
    g = graph(random)
    b, eye = g.incidence().to_dense(), torch.eye(g.nodes, dtype=torch.float64)
    error = gap(b.T @ b, eye - g.to_dense())
    # Without normalisation B of the same edges gives D − A, not I − A.
    plain = path(g.nodes, normalise=Normalisation.NONE, loops=0).to(torch.float64)
    b = plain.incidence().to_dense()
    return Evidence(
        error,
        gap(b.T @ b, eye - plain.to_dense()),
        "A is symmetrically normalised, with self-loops",
        "path, not normalised",
    )


def _objective(
    random: Random, features: int, metric: type[Symmetric] | type[Relaxed], *extra: ProximableTerm
) -> Objective:
    """Problem (2) with one parameter of each kind per layer, drawn at random by the caller."""

    def start() -> Tensor:
        return symmetric(random, features) if metric is Symmetric else normal(random, features, features)

    t_alpha = metric(features, initial=start(), per_layer=True, name="Tα")
    t_beta = metric(features, initial=start(), per_layer=True, name="Tβ")
    alpha = Learnable(number(random), per_layer=True, name="α")
    beta = Learnable(number(random), per_layer=True, name="β")
    total = Fidelity(alpha, metric=t_alpha) + Smoothness(beta, metric=t_beta)
    for term in extra:
        total = total + term
    return total


def _randomised(net: Unrolled, random: Random) -> Unrolled:
    """Different parameters in every layer."""
    net = net.double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.3 * normal(random, *parameter.shape))
    return net


def _autograd(net: Unrolled, h: Tensor, x: Tensor, g: Graph, layer: int) -> Tensor:
    """The gradient of layer k's smooth value at h, by automatic differentiation alone."""
    smooth = Objective(net.objective.smooth_terms)
    leaf = h.detach().clone().requires_grad_()
    return torch.autograd.grad(smooth.value(leaf, x, g, net.values(layer)), leaf)[0]


def _gradient(random: Random) -> Evidence:
    g, features = graph(random), whole(random, 2, 5)
    x, h = normal(random, g.nodes, features), normal(random, g.nodes, features)
    found = []
    for metric in (Symmetric, Relaxed):
        objective = _objective(random, features, metric)
        leaf = h.clone().requires_grad_()
        (expected,) = torch.autograd.grad(objective.value(leaf, x, g), leaf)
        found.append(gap(objective.gradient(h, x, g), expected))
    return Evidence(found[0], found[1], "T is symmetric", "a free matrix T: the norm sees only (T + Tᵀ)/2")


def _theorem_2(random: Random) -> Evidence:
    g, features, depth = graph(random), whole(random, 2, 5), whole(random, 2, 6)
    x = normal(random, g.nodes, features)
    errors = []
    for metric in (Symmetric, Relaxed):
        step = Learnable(number(random, 0.1, 0.5), within=(0.01, 1), per_layer=True, name="η")
        net = _randomised(unroll(_objective(random, features, metric), GradientDescent(step=step), depth), random)
        worst, h = 0.0, x
        for k in range(1, depth + 1):
            problem = net.problem(x, g, k)
            eta = net.algorithm.step_size(problem)
            (moved,) = net.algorithm.update((h,), problem)
            worst = max(worst, gap(moved, h - eta * _autograd(net, h, x, g, k)), gap(moved, _layer_5(net, h, x, g, k)))
            h = moved.detach()
        worst = max(worst, gap(net(x, g), h))
        errors.append(float(worst))
    return Evidence(
        errors[0], errors[1], "every T is symmetric", "free weight matrices: a relaxation of the gradient step"
    )


def _layer_5(net: Unrolled, h: Tensor, x: Tensor, g: Graph, layer: int) -> Tensor:
    """Eq. (5), letter by letter, with dense matrices."""
    values, a = net.values(layer), g.to_dense()
    by_name = {leaf.name: leaf.evaluate(values) for leaf in net.leaves}
    eta, alpha, beta, ta, tb = (torch.as_tensor(by_name[n]) for n in ("η", "α", "β", "Tα", "Tβ"))
    eye = torch.eye(h.shape[1], dtype=h.dtype)
    own = h @ (eye - 2 * eta * alpha * ta - 2 * eta * beta * tb)
    return own + 2 * eta * beta * a @ h @ tb + 2 * eta * alpha * x @ ta


def _theorem_7(random: Random) -> Evidence:
    g, features, depth = graph(random), whole(random, 2, 5), whole(random, 2, 4)
    x = normal(random, g.nodes, features)
    extras: list[ProximableTerm] = [
        NonNegative(), Box(-0.5, 0.8), Sparse(0.3), RowSparse(0.3), RowSparseFidelity(0.4),
        Activation(LeakyReLU(0.2)), Activation(ELU(0.8)), Activation(Tanh(), weight=1.3),
    ]  # fmt: skip
    worst = 0.0
    for extra in extras:
        step = Learnable(number(random, 0.1, 0.4), within=(0.01, 1), per_layer=True, name="η")
        net = unroll(_objective(random, features, Symmetric, extra), ProximalGradient(step=step), depth)
        net = _randomised(net, random)
        h = x
        for k in range(1, depth + 1):
            problem = net.problem(x, g, k)
            eta = torch.as_tensor(net.algorithm.step_size(problem)).detach()
            (moved,) = net.algorithm.update((h,), problem)
            v = (h - eta * _autograd(net, h, x, g, k)).detach()
            worst = max(worst, gap(moved, extra.prox(v, eta, problem.given)))
            worst = max(worst, -_competitors(extra, moved.detach(), v, float(eta), random, problem.given))
            h = moved.detach()
    return Evidence(float(worst))


def _competitors(term: ProximableTerm, best: Tensor, v: Tensor, step: float, random: Random, given: object) -> float:
    """The smallest advantage of ``best`` over random competitors on term(y) + ‖y − v‖²/2η; negative if one is better."""

    def cost(y: Tensor) -> float:
        return float((term.value(y, given) + (y - v).square().sum() / (2 * step)).detach())  # type: ignore[arg-type]

    base, least = cost(best), float("inf")
    for scale in (1e-3, 1e-1, 1.0):
        for _ in range(4):
            rival = best + scale * normal(random, *best.shape)
            least = min(least, cost(rival) - base, cost(term.prox(rival, step, given).detach()) - base)  # type: ignore[arg-type]
    return least


def _activations(random: Random) -> Evidence:
    v = 3 * normal(random, 400)
    return Evidence(max(0.0, -min(advantage(p, v, random) for p in POTENTIALS)))


def _no_activations(random: Random) -> Evidence:
    excess = 0.0
    for module in (torch.nn.GELU(), torch.nn.SiLU(), torch.nn.SELU(), torch.nn.ELU(1.5)):
        if not_a_prox(module) is None:
            return Evidence(gap=0.0)
        v = torch.linspace(-5, 5, 2001, dtype=torch.float64)
        slope = module(v).diff() / v.diff()
        excess = max(excess, float((slope - 1).max()), float((-slope).max()))
    return Evidence(gap=excess, example="GELU and SiLU fall; SELU and ELU with a > 1 rise faster than the identity")


def _closed_form(random: Random) -> Evidence:
    g, features = graph(random), whole(random, 1, 4)
    x, alpha, beta = normal(random, g.nodes, features), number(random, 0.1, 1.0), number(random, 0.1, 2.0)
    laplacian = g.laplacian().to_dense()
    exact = torch.linalg.solve(alpha * torch.eye(g.nodes, dtype=torch.float64) + beta * laplacian, alpha * x)
    return Evidence(gap(unroll(Fidelity(alpha) + Smoothness(beta), Exact(tolerance=1e-13))(x, g), exact))


def _bilevel(random: Random) -> Evidence:
    g, features = graph(random), 2
    x, target = normal(random, g.nodes, features), normal(random, g.nodes, features)
    metric = Symmetric(features, psd=True, initial=torch.eye(features) + 0.1 * torch.ones(features, features), name="T")
    alpha = Learnable(number(random, 0.3, 0.9), within=(0, 1), name="α")
    objective = Fidelity(alpha, metric=metric) + Smoothness(1 - alpha)

    def gradients(adjoint: Stored | Implicit, depth: int) -> list[Tensor]:
        net = unroll(objective, GradientDescent(), depth, adjoint=adjoint).double()
        loss = (net(x, g) - target).square().sum()
        return [*torch.autograd.grad(loss, list(net.parameters()))]

    exact = gradients(Implicit(tolerance=1e-13), 1)
    deep, shallow = gradients(Stored(), 400), gradients(Stored(), 3)
    error = max(gap(a, b) for a, b in zip(deep, exact, strict=True))
    early = max(gap(a, b) for a, b in zip(shallow, exact, strict=True))
    return Evidence(
        error,
        early,
        "depth → ∞, coefficients are tied, the objective is strictly convex and the step stable",
        "three layers",
    )


def _converges(random: Random) -> Evidence:
    """Each step brings H⁽ᵏ⁾ nearer to the minimiser by the factor max |1 − η · curvature|, and a proximal step no less."""
    g, alpha, beta = graph(random), number(random, 0.2, 1.0), number(random, 0.1, 1.0)
    x = normal(random, g.nodes, 2)
    frequencies = torch.linalg.eigvalsh(torch.eye(g.nodes, dtype=torch.float64) - g.to_dense())
    curvature = 2 * (alpha + beta * frequencies)
    smooth = Fidelity(alpha) + Smoothness(beta)
    exact = alpha * torch.linalg.solve(
        alpha * torch.eye(g.nodes, dtype=torch.float64) + beta * g.laplacian().to_dense(), x
    )
    step = number(random, 0.2, 0.95) * 2 / float(curvature.max())
    rate = float((1 - step * curvature).abs().max())
    worst = 0.0
    for objective in (smooth, smooth + NonNegative()):
        steps = unroll(objective, ProximalGradient(step=step), 1)
        h = before = x
        for k in range(1, 40):
            before, h, last = h, steps.algorithm.update((h,), steps.problem(x, g, 1))[0], before
            if k > 1:
                worst = max(worst, float((h - before).norm()) - rate * float((before - last).norm()))
            if objective is smooth:
                worst = max(worst, float((h - exact).norm()) - rate**k * float((x - exact).norm()))
    far = unroll(smooth, GradientDescent(step=1.2 * 2 / float(curvature.max())), 200)(x, g)
    return Evidence(
        max(0.0, worst) / float(x.norm()),
        min(gap(far, exact), 1e6),
        "coefficients are tied, the objective is strictly convex and η < 2/L",
        "η = 1.2 · 2/L",
    )


CLAIMS = (
    Claim("Section 2", "BᵀB = I − A", Verdict.HOLDS_WHEN, _incidence),
    Claim(
        "Problem (1)", "the vanilla problem has the closed-form minimiser α(αI + βL)⁻¹X", Verdict.HOLDS, _closed_form
    ),
    Claim("Eq. (4)", "∇L = 2α(H − X)Tα + 2βBᵀBHTβ", Verdict.HOLDS_WHEN, _gradient),
    Claim(
        "Theorem 2, eq. (5)",
        "each layer of the unrolled GD network is a gradient step of (2)",
        Verdict.HOLDS_WHEN,
        _theorem_2,
    ),
    Claim(
        "Theorem 7, eq. (9)",
        "each layer of the unrolled ProxGD network is a proximal gradient step of (2)",
        Verdict.HOLDS,
        _theorem_7,
    ),
    Claim(
        "Section 3.2", "ReLU, leaky ReLU, ELU, tanh, sigmoid, ... are proximity operators", Verdict.HOLDS, _activations
    ),
    Claim(
        "Section 3.2",
        '"every standard activation" is one: GELU, SiLU, SELU, ELU (a > 1)',
        Verdict.FAILS,
        _no_activations,
    ),
    Claim("Section 3", "the iterates H⁽ᵏ⁾ converge to the minimiser", Verdict.HOLDS_WHEN, _converges),
    Claim("Problem (3)", "training the unrolled network follows the bilevel gradient", Verdict.HOLDS_WHEN, _bilevel),
)
