"""Bounded influence: the certificates hold, the bound is one, and each certificate can fail."""

import pytest
import torch

import unspool as us
from unspool.theory import CLAIMS, Verdict, robustness


@pytest.mark.parametrize("claim", robustness.CLAIMS, ids=lambda claim: claim.name)
def test_the_claims_are_certified_and_registered(claim):
    assert claim in CLAIMS
    assert claim.certify(seed=3, trials=2).as_stated


@pytest.mark.parametrize("claim", robustness.CLAIMS[:2], ids=lambda claim: claim.name)
def test_with_squares_in_the_place_of_lengths_the_certificates_fail(claim, monkeypatch):
    monkeypatch.setattr(robustness, "row_problem", lambda beta: us.Fidelity(1.0) + us.Smoothness(beta))
    assert claim.certify(trials=1).verdict is Verdict.FAILS


def test_the_certificate_of_squares_fails_for_another_problem_and_for_a_row_that_does_not_grow(monkeypatch):
    monkeypatch.setattr(robustness, "square_problem", lambda beta: us.Fidelity(2.0) + us.Smoothness(beta))
    assert robustness.CLAIMS[2].certify(trials=1).verdict is Verdict.FAILS  # H is not its minimiser
    monkeypatch.undo()
    whole = robustness.grown
    monkeypatch.setattr(robustness, "grown", lambda x, node, length: whole(x, node, min(length, 50.0)))
    assert robustness.CLAIMS[2].certify(trials=1).verdict is Verdict.FAILS


def test_the_minimiser_satisfies_its_optimality_condition():
    """At the minimiser 2βLH = −G: unit vectors where h ≠ x, at most unit length where h = x."""
    graph = us.graph.grid(4, 4).to(torch.float64)
    x = torch.randn(16, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for length in (10.0, 1e6):
        seen = robustness.grown(x, 5, length)
        h = robustness.row_minimiser(graph, seen, 0.7)
        force, off = -1.4 * (h - graph @ h), h - seen
        far = off.norm(dim=1) > 1e-6
        assert far[5]
        assert torch.allclose(force[far], torch.nn.functional.normalize(off[far], dim=1), atol=1e-6)
        assert (force.norm(dim=1) <= 1 + 1e-6).all()
        assert float(h.norm()) <= robustness.bound(graph, x, 5, 0.7)


def test_a_node_that_outweighs_the_others_is_followed():
    x = torch.ones(6, 2, dtype=torch.float64)
    assert robustness.bound(robustness.heavy(6), x, 0, 1.0) == float("inf")
    near, far = (
        robustness.row_minimiser(robustness.heavy(6), robustness.grown(x, 0, length), 1.0) for length in (100.0, 1000.0)
    )
    assert float(far.norm()) > 5 * float(near.norm())
