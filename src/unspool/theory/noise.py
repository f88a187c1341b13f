r"""T_α as *the inverse covariance matrix of the noise*, the one use that the paper names for it (after eq. (2)).

Let X = X₀ + N with independent rows nᵢ ~ (0, Σ). The problem with T_α = σ²Σ⁻¹ is that of whitened channels coloured again
afterwards. If the signal is as smooth in every channel, X₀ ~ (0, (bL)⁺ ⊗ I), its minimiser at (1 − α)/α = σ²b is the best linear
estimate of X₀, so no other metric and no other weight has a smaller expected error. Both are computed here without a draw: the
minimiser is linear in X, H = K X, and

.. math:: \mathbb E\lVert H - X_0\rVert^2 = \operatorname{tr}\,(K - I) P (K - I)^\top + \operatorname{tr} K (I \otimes \Sigma) K^\top .

Where the signal is rough exactly where the noise is strong, P ∝ L⁺ ⊗ Σ, all channels have the same ratio of signal to noise, and the
plain metric is the better one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unspool.algorithm import minimise
from unspool.denoise import Covariance, denoise
from unspool.denoise.solve import objective_of
from unspool.graph import Graph
from unspool.objective import Fidelity, Smoothness
from unspool.theory.certificate import Claim, Evidence, Verdict
from unspool.theory.setting import Random, gap, graph, normal, number, whole

#: Weights of the rivals, and how much smaller than theirs the error must be.
RIVALS = 12
LEAST = 1e-4


def _whitened(random: Random) -> Evidence:
    g, sigma, alpha = _setting(random)
    x = normal(random, g.nodes, len(sigma))
    found = denoise(x, g, alpha, noise_covariance=sigma).signal
    root = torch.linalg.cholesky(sigma / sigma.diagonal().mean())
    white = torch.linalg.solve_triangular(root, x.T, upper=False).T
    plain = Fidelity(alpha) + Smoothness(1 - alpha, metric=root.T @ root)
    error = gap(minimise(plain, white, g, tolerance=1e-13) @ root.T, found)
    careless = denoise(white, g, alpha).signal @ root.T
    return Evidence(
        error,
        gap(careless, found),
        "smoothness keeps the signal's own units",
        "smoothness of whitened channels: then both metrics are Σ⁻¹, and cancel",
    )


def _least_error(random: Random) -> Evidence:
    g, sigma, alpha = _setting(random)
    rough = (1 - alpha) / (alpha * float(sigma.diagonal().mean()))
    signal = torch.linalg.pinv(g.laplacian().to_dense() * rough, hermitian=True, rtol=1e-10)
    smooth, coloured = (torch.kron(signal, c) for c in (torch.eye(len(sigma), dtype=sigma.dtype), sigma))
    even = torch.full((len(sigma),), float(sigma.diagonal().mean()), dtype=sigma.dtype)
    weights = [alpha, *(number(random, 0.02, 0.98) for _ in range(RIVALS))]
    rivals = [(w, even) for w in weights] + [(w, metric_of(sigma)) for w in weights[1:]]
    rivals += [(alpha, sigma.inverse()), (alpha, _covariance(random, len(sigma)))]
    here = expected_error(g, alpha, metric_of(sigma), smooth, sigma)
    others = [expected_error(g, w, other, smooth, sigma) for w, other in rivals]
    # No rival may come close but the same metric at nearly the same weight.
    excess = max([0.0, *(here / other - 1 for other in others)])
    plain = min(others[: len(weights)])
    without = expected_error(g, alpha, metric_of(sigma), coloured, sigma)
    with_plain = min(expected_error(g, w, even, coloured, sigma) for w in weights)
    return Evidence(
        max(excess, 0.0 if here < (1 - LEAST) * plain else 1.0),
        max(0.0, without / with_plain - 1),
        "the signal is as smooth in every channel",
        "a signal that is rough where the noise is strong: the plain metric has the smaller error",
    )


def metric_of(sigma: Tensor) -> Tensor:
    """The covariance whose inverse is the metric."""
    return sigma


def expected_error(g: Graph, weight: float, believed: Tensor, signal: Tensor, sigma: Tensor) -> float:
    """E‖H − X₀‖² of the minimiser that believes in one covariance, where the noise has another."""
    n, d = g.nodes, len(sigma)
    every = torch.eye(n * d, dtype=torch.float64).view(n * d, n, d)
    objective = objective_of(weight, Covariance.read(believed, d))
    smoother = minimise(objective, every, g, tolerance=1e-12).reshape(n * d, n * d).T
    off = smoother - torch.eye(n * d, dtype=torch.float64)
    spread = torch.kron(torch.eye(n, dtype=torch.float64), sigma)
    return float(torch.trace(off @ signal @ off.T) + torch.trace(smoother @ spread @ smoother.T))


def _covariance(random: Random, channels: int) -> Tensor:
    a = normal(random, channels, channels)
    return a @ a.T + 0.05 * torch.eye(channels, dtype=torch.float64)


def _setting(random: Random) -> tuple[Graph, Tensor, float]:
    return graph(random), _covariance(random, whole(random, 2, 3)), number(random, 0.1, 0.6)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "After (2), T_α",
        "the inverse noise covariance as T_α is whitening, denoising, colouring",
        Verdict.HOLDS_WHEN,
        _whitened,
    ),
    Claim(
        "After (2), T_α",
        "the inverse noise covariance as T_α has the least expected error",
        Verdict.HOLDS_WHEN,
        _least_error,
    ),
)
