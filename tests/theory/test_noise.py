"""T_α as the inverse covariance of the noise: the certificates, and that they can fail."""

import pytest
import torch

from unspool import theory
from unspool.theory import Verdict, noise, setting


@pytest.mark.parametrize("claim", noise.CLAIMS, ids=lambda c: c.statement)
def test_the_claims_are_registered_and_hold_where_they_say(claim):
    assert claim in theory.CLAIMS
    certificate = claim.certify(seed=7)
    assert certificate.as_stated, str(certificate)
    assert certificate.condition


@pytest.mark.parametrize(
    "wrong", [torch.inverse, lambda s: torch.eye(len(s)).double(), torch.diag], ids=["Σ", "I", "diag"]
)
def test_another_metric_has_a_larger_error_and_the_certificate_fails(wrong, monkeypatch):
    least = noise.CLAIMS[1]
    monkeypatch.setattr(
        noise, "metric_of", lambda s: wrong(s) if wrong is not torch.diag else torch.diag(torch.diag(s))
    )
    assert least.certify(seed=1, trials=1).verdict is Verdict.FAILS


def test_smoothing_whitened_channels_is_not_the_same(monkeypatch):
    kept = noise.Smoothness
    monkeypatch.setattr(noise, "Smoothness", lambda weight, metric: kept(weight))
    assert noise.CLAIMS[0].certify(seed=1, trials=1).verdict is Verdict.FAILS


def test_the_expected_error_is_the_mean_of_draws():
    random = torch.Generator().manual_seed(3)
    g, sigma, alpha = noise._setting(random)
    d = len(sigma)
    rough = g.laplacian().to_dense() + 0.1 * torch.eye(g.nodes, dtype=torch.float64)
    covariance = torch.linalg.inv(rough).contiguous()
    wanted = noise.expected_error(g, alpha, sigma, torch.kron(covariance, torch.eye(d, dtype=torch.float64)), sigma)
    draws = 4000
    shape = (draws, g.nodes, d)
    clean = torch.linalg.cholesky(covariance) @ setting.normal(random, *shape)
    noisy = clean + setting.normal(random, *shape) @ torch.linalg.cholesky(sigma).T
    objective = noise.objective_of(alpha, noise.Covariance.read(sigma, d))
    losses = (noise.minimise(objective, noisy, g) - clean).square().sum((-2, -1))
    assert abs(float(losses.mean()) - wanted) < 4 * float(losses.std()) / draws**0.5
    assert float(losses.std()) / draws**0.5 < 0.02 * wanted
