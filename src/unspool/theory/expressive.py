"""What contains what: UGDGNN in the vertex domain, and all models in the spectral domain (Theorem 12 and the appendix)."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from unspool.graph import Graph
from unspool.models import APPNP, GCN, GCNII, GPRGNN, PPNP, SGC, UGDGNN, IdentityMapping, JKNet
from unspool.ops import propagate
from unspool.spectral import PolynomialBasis, convert, dirichlet_energy, response
from unspool.theory.certificate import Claim, Evidence, Verdict
from unspool.theory.setting import Random, gap, graph, model, normal, number, whole


def _mixed(gamma: Tensor, zeta: Tensor, xi: Tensor, weight: Tensor) -> Tensor:
    """γₖ(ζₖI + ξₖWₖ) for all k."""
    eye = torch.eye(weight.shape[-1], dtype=weight.dtype)
    return gamma[:, None, None] * (zeta[:, None, None] * eye + xi[:, None, None] * weight)


def _sgc_inside(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 2, 4), whole(random, 1, 5)
    x, w = normal(random, g.nodes, f), normal(random, f, f)
    last = torch.zeros(depth + 1, dtype=torch.float64)
    last[-1] = 1
    hops = _mixed(last, 0 * last, torch.ones_like(last), w.expand(depth + 1, f, f))
    error = gap(propagate(g, x, hops), torch.linalg.matrix_power(g.to_dense(), depth) @ x @ w)
    return Evidence(max(error, _same_output(random, g, model(random, SGC, f, 3, depth=depth))))


def _same_output(random: Random, g: Graph, source: SGC | APPNP | JKNet | GPRGNN) -> float:
    x = normal(random, g.nodes, source.in_features)
    return gap(UGDGNN.from_model(source)(x, g), source(x, g))


def _others_inside(random: Random) -> Evidence:
    g, f = graph(random), whole(random, 2, 4)
    share, depth = number(random, 0.05, 0.9), whole(random, 2, 6)
    sources = (
        model(random, APPNP, f, 3, depth=depth, teleport=share),
        model(random, JKNet, f, 3, depth=depth, hidden=5),
        model(random, GPRGNN, f, 3, depth=depth),
    )
    error = max(_same_output(random, g, source) for source in sources)
    x = normal(random, g.nodes, f)
    error = max(error, gap(GPRGNN.from_model(sources[0])(x, g), sources[0](x, g)))
    return Evidence(error)


def _appnp_printed(random: Random) -> Evidence:
    """The list prints γ⁽ᵏ⁾ = α Σ(1−α)ᵏ, a sum, for every k < K."""
    share, depth = number(random, 0.1, 0.5), whole(random, 3, 6)
    k = torch.arange(depth + 1, dtype=torch.float64)
    right = share * (1 - share) ** k
    right[-1] = (1 - share) ** depth
    printed = torch.full_like(right, float(share * ((1 - share) ** k[:-1]).sum()))
    printed[-1] = right[-1]
    g = graph(random)
    x, made = normal(random, g.nodes, 2), model(random, APPNP, 2, 2, depth=depth, teleport=share)
    exact = made.propagation(x, g)
    return Evidence(
        gap(propagate(g, x, right), exact),
        gap(propagate(g, x, printed), exact),
        "γₖ = α(1−α)ᵏ for k < K and (1−α)ᴷ for the last",
        "γₖ = α Σ(1−α)ᵏ for every k, as printed",
    )


def _tied(random: Random) -> Evidence:
    """Every (γ, ζ, ξ, W) has a twin with ξ = 1 − ζ, and one without γ."""
    g, f, depth = graph(random), whole(random, 2, 4), whole(random, 1, 5)
    x = normal(random, g.nodes, f)
    gamma, zeta, xi = (normal(random, depth + 1) for _ in range(3))
    w = normal(random, depth + 1, f, f)
    exact = propagate(g, x, _mixed(gamma, zeta, xi, w))
    one = torch.ones_like(gamma)
    # γ' = 1, ζ' arbitrary below 1, W' = (γ(ζI + ξW) − ζ'I)/(1 − ζ').
    free = 0.9 * torch.rand(depth + 1, generator=random, dtype=torch.float64)
    eye = torch.eye(f, dtype=torch.float64)
    twin = (_mixed(gamma, zeta, xi, w) - free[:, None, None] * eye) / (1 - free)[:, None, None]
    error = gap(propagate(g, x, _mixed(one, free, 1 - free, twin)), exact)
    return Evidence(max(error, gap(propagate(g, x, _mixed(one, gamma * zeta, gamma * xi, w)), exact)))


def _same_class(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 2, 4), whole(random, 1, 5)
    x = normal(random, g.nodes, f)
    jk, ugd = (model(random, kind, f, f, hidden=f, depth=depth) for kind in (JKNet, UGDGNN))
    there = UGDGNN.from_model(jk)
    error = gap(there.propagation(x, g), jk.propagation(x, g))
    with torch.no_grad():
        jk.propagation.coefficients.copy_(ugd.propagation.hops())
    return Evidence(max(error, gap(jk.propagation(x, g), ugd.propagation(x, g))))


def _gcn_is_sgc(random: Random) -> Evidence:
    g, f, depth = graph(random), whole(random, 2, 4), whole(random, 2, 5)
    made = model(random, GCN, f, f, hidden=f, depth=depth, bias=False)
    with torch.no_grad():
        for w in (made.p_pre.layers[0].weight, *made.propagation.weights):
            w.copy_(torch.eye(f))
    positive = normal(random, g.nodes, f).abs()
    power = torch.linalg.matrix_power(g.to_dense(), depth)
    mixed = normal(random, g.nodes, f)
    return Evidence(
        gap(made(positive, g), power @ positive),
        gap(made(mixed, g), power @ mixed),
        "W = I and no intermediate value is negative",
        "a signal of both signs",
    )


def _smoother(random: Random) -> Evidence:
    """Dirichlet energy rises with the teleport probability, whatever the signal."""
    g = graph(random)
    x = normal(random, g.nodes, 2)
    shares = [0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.0]

    def falls(energies: list[float]) -> float:
        return max(0.0, *(a - b for a, b in itertools.pairwise(energies))) / max(energies)

    exact = [
        float(dirichlet_energy(model(random, PPNP, 2, 2, teleport=s, tolerance=1e-13).propagation(x, g), g))
        for s in shares
    ]
    frequencies, modes = torch.linalg.eigh(torch.eye(g.nodes, dtype=torch.float64) - g.to_dense())
    lazy = modes[:, frequencies <= 1]  # signals on which A has no negative eigenvalue
    calm = lazy @ normal(random, lazy.shape[1], 2)
    rough = modes[:, -1:].expand(-1, 2)

    def along(signal: Tensor, depth: int) -> list[float]:
        nets = (model(random, APPNP, 2, 2, teleport=s, depth=depth) for s in [0.0, *shares])
        return [float(dirichlet_energy(net.propagation(signal, g), g)) for net in nets]

    error = max(falls(exact), *(falls(along(calm, k)) for k in (1, 2, 3, 10)))
    return Evidence(
        error,
        falls(along(rough, 1)),
        "PPNP: always; APPNP: A has no negative eigenvalue on the signal",
        "APPNP with K = 1 on the highest frequency",
    )


# -- spectral domain ----------------------------------------------------------------------------------------------------


def _filtered(theta: Tensor, g: Graph, x: Tensor) -> Tensor:
    """Σ θₖ LᵏX, densely."""
    laplacian = torch.eye(g.nodes, dtype=torch.float64) - g.to_dense()
    h, total = x, theta[0] * x
    for value in theta[1:]:
        h = laplacian @ h
        total = total + value * h
    return total


def _theorem_12(random: Random) -> Evidence:
    g, depth = graph(random), whole(random, 1, 8)
    x, theta = normal(random, g.nodes, 2), normal(random, depth + 1)
    gamma = torch.stack(
        [sum(theta[k] * (-1) ** i * math.comb(k, i) for k in range(i, depth + 1)) for i in range(depth + 1)]  # type: ignore[misc]
    )
    made = model(random, UGDGNN, 2, 2, depth=depth)
    with torch.no_grad():
        made.propagation.gamma.copy_(gamma)
        made.propagation.zeta.fill_(1.0)
    exact = _filtered(theta, g, x)
    error = gap(made.propagation(x, g), exact)
    fitted = UGDGNN.from_filter(lambda f: sum(v * f**k for k, v in enumerate(theta.tolist())), depth, 2).double()  # type: ignore[arg-type, return-value]
    with torch.no_grad():
        fitted.propagation.gamma.copy_(fitted.fit.hops)  # type: ignore[union-attr]
    error = max(
        error, gap(fitted(x, g), exact), gap(convert(theta, PolynomialBasis.LAPLACIAN, PolynomialBasis.HOPS), gamma)
    )
    with torch.no_grad():
        made.propagation.gamma[0] = 0.0
    return Evidence(
        error, gap(made.propagation(x, g), exact), "indices start at 0", "i = 1 ... K as printed: hop 0 is lost"
    )


def _same_spectral_power(random: Random) -> Evidence:
    g, depth = graph(random), whole(random, 1, 8)
    x, theta = normal(random, g.nodes, 2), normal(random, depth + 1)
    gamma = convert(theta, PolynomialBasis.LAPLACIAN, PolynomialBasis.HOPS)
    gpr, jk = model(random, GPRGNN, 2, 2, depth=depth), model(random, JKNet, 2, 2, hidden=2, depth=depth)
    with torch.no_grad():
        gpr.propagation.coefficients.copy_(gamma)
        jk.propagation.coefficients.copy_(gamma[:, None, None] * torch.eye(2, dtype=torch.float64))
    exact = _filtered(theta, g, x)
    return Evidence(max(gap(gpr.propagation(x, g), exact), gap(jk.propagation(x, g), exact)))


def _sgc_fixed(random: Random) -> Evidence:
    g, depth = graph(random), whole(random, 1, 10)
    x = normal(random, g.nodes, 2)
    theta = torch.tensor([(-1.0) ** k * math.comb(depth, k) for k in range(depth + 1)], dtype=torch.float64)
    made = model(random, SGC, 2, 2, depth=depth)
    found = convert(response(made.propagation).hops, PolynomialBasis.HOPS, PolynomialBasis.LAPLACIAN)
    return Evidence(max(gap(found, theta), gap(made.propagation(x, g), _filtered(theta, g, x))))


def _appnp_fixed(random: Random) -> Evidence:
    g, depth, share = graph(random), 5, number(random, 0.1, 0.5)
    x = normal(random, g.nodes, 2)

    def coefficient(i: int, whole_sum: bool) -> float:
        total = sum(share * (1 - share) ** k * math.comb(k, i) * (-1) ** i for k in range(i, depth))
        return total + ((1 - share) ** depth * math.comb(depth, i) * (-1) ** i if whole_sum else 0.0)

    right, printed = (
        torch.tensor([coefficient(i, kept) for i in range(depth + 1)], dtype=torch.float64) for kept in (True, False)
    )
    exact = model(random, APPNP, 2, 2, depth=depth, teleport=share).propagation(x, g)
    return Evidence(
        gap(_filtered(right, g, x), exact),
        gap(_filtered(printed, g, x), exact),
        "the term (1−α)ᴷAᴷ is kept",
        "K = 5 without it, as printed",
    )


def _gcnii_reach(random: Random) -> Evidence:
    """H⁽ᵏ⁾ = w⁽ᵏ⁾(A H⁽ᵏ⁻¹⁾ + X): c_K = c_{K−1} whatever w, and every such c without zeros is reached."""
    g, depth = graph(random), whole(random, 2, 6)
    x = normal(random, g.nodes, 2)
    c = 0.3 + torch.rand(depth + 1, generator=random, dtype=torch.float64)
    c[-1] = c[-2]
    weights = [float(c[0]), *(float(c[i] / c[i - 1]) for i in range(1, depth))][::-1]
    made = model(
        random, GCNII, 2, 2, hidden=2, depth=depth, teleport=0.5, identity=IdentityMapping.CONSTANT, strength=1.0
    )
    with torch.no_grad():  # positive coefficients and a positive signal keep every ReLU open
        for matrix, w in zip(made.propagation.coefficients["W"], weights, strict=True):
            matrix.copy_(2 * w * torch.eye(2, dtype=torch.float64))
    positive = x.abs()
    error = gap(made.propagation(positive, g), propagate(g, positive, c))
    wanted = c.clone()
    wanted[-1] = 2 * wanted[-2]
    return Evidence(
        error,
        float((wanted[-1] - wanted[-2]).abs()) / math.sqrt(2),  # the distance of `wanted` from all c with c_K = c_{K−1}
        "the last two hop coefficients are equal and none is zero",
        "c_K = 2 c_(K−1): out of reach",
    )


CLAIMS = (
    Claim("Vertex domain, SGC", "a UGDGNN with γ_K = 1, ζ_K = 0, ξ_K = 1", Verdict.HOLDS, _sgc_inside),
    Claim("Vertex domain", "UGDGNN.from_model of trained APPNP, JKNet and GPRGNN gives equal outputs", Verdict.HOLDS, _others_inside),
    Claim("Vertex domain, APPNP; erratum 3", "its UGDGNN coefficients", Verdict.HOLDS_WHEN, _appnp_printed, erratum=3),
    Claim("Proposition 11, proof", "ξ = 1 − ζ, or merging γ, keeps the expressive power", Verdict.HOLDS, _tied),
    Claim("Erratum 13", "linear-sum JKNet with square W and UGDGNN are the same functions", Verdict.HOLDS, _same_class, erratum=13),
    Claim("Appendix, GCN", "without activations and weights GCN is SGC", Verdict.HOLDS_WHEN, _gcn_is_sgc),
    Claim("Proposition 4; erratum 11", "a smaller teleport probability is smoother", Verdict.HOLDS_WHEN, _smoother, erratum=11),
    Claim("Theorem 12; erratum 10", "UGDGNN expresses every polynomial filter, γ by the binomial formula", Verdict.HOLDS_WHEN, _theorem_12, erratum=10),
    Claim("Appendix", "JKNet and GPRGNN have the same spectral power as UGDGNN", Verdict.HOLDS, _same_spectral_power),
    Claim("Appendix, SGC", "fixed coefficients θₖ = (−1)ᵏ C(K, k)", Verdict.HOLDS, _sgc_fixed),
    Claim("Appendix, APPNP; erratum 3", "fixed coefficients θ", Verdict.HOLDS_WHEN, _appnp_fixed, erratum=3),
    Claim("Appendix, GCNII; erratum 6", "expresses arbitrary non-zero coefficients", Verdict.HOLDS_WHEN, _gcnii_reach, erratum=6),
)  # fmt: skip
