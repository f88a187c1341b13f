"""Fits: errors fall with the degree, and the filter as a function is the filter as an operator."""

import math

import pytest
import torch

import unspool as us
from unspool.spectral import PolynomialBasis, band_pass, comb, condition, evaluate, fit_filter, high_pass, low_pass

SMOOTH = [low_pass(0.5), high_pass(1.2), band_pass(0.6, 1.4), comb(3), low_pass(1.0, width=0.2)]
IDEAL = [low_pass(0.5, width=0), high_pass(1.2, width=0), band_pass(0.6, 1.4, width=0)]
WHERE = torch.linspace(0, 2, 101, dtype=torch.float64)


@pytest.mark.parametrize("target", SMOOTH, ids=str)
def test_errors_fall_fast_for_smooth_targets(target):
    fits = [fit_filter(target, degree) for degree in (4, 10, 20, 40, 50)]
    errors = [max(f.max_error, 1e-13) for f in fits]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-5
    assert all(f.rms_error <= f.max_error for f in fits)


@pytest.mark.parametrize("target", IDEAL, ids=str)
def test_ideal_targets_converge_in_the_mean_only(target):
    fits = [fit_filter(target, degree) for degree in (5, 15, 50)]
    errors = [f.rms_error for f in fits]
    assert errors == sorted(errors, reverse=True)
    assert fits[-1].max_error > 0.3  # at the jump no continuous function is near


@pytest.mark.parametrize("degree", [0, 1, 5, 50])
def test_polynomials_are_found_again(degree):
    c = torch.randn(degree + 1, dtype=torch.float64)
    fit = fit_filter(lambda f: evaluate(c, PolynomialBasis.CHEBYSHEV, f), degree)
    assert fit.max_error < 1e-12
    assert torch.allclose(fit.response(WHERE), evaluate(c, PolynomialBasis.CHEBYSHEV, WHERE), atol=1e-12)


def test_sgc_and_appnp_are_fitted_in_powers():
    fit = fit_filter(lambda f: (1 - f) ** 6, 6)
    assert fit.basis is us.Basis.POWERS
    assert torch.allclose(fit.hops, torch.eye(7, dtype=torch.float64)[6], atol=1e-12)
    assert "well conditioned" in str(fit)


def test_the_basis_is_chosen_by_condition():
    low, high = fit_filter(low_pass(1.0, width=0.3), 3), fit_filter(low_pass(0.5), 50)
    assert low.basis is us.Basis.POWERS
    assert high.basis is us.Basis.CHEBYSHEV
    assert "would cancel" in high.reason
    for fit in (low, high):
        assert condition(fit.hops, fit.basis) < 100


@pytest.mark.parametrize("degree", [3, 50])
def test_as_a_function_and_as_an_operator(degree, graph, x):
    fit = fit_filter(band_pass(0.5, 1.0), degree)
    assert torch.allclose(fit.response.apply(x, graph), fit.apply(x, graph), atol=1e-11)
    assert fit.apply(x.float(), graph.to(torch.float32)).dtype == torch.float32


def test_maps_on_channels_are_fitted_too(graph, x):
    fit = fit_filter(lambda f: torch.stack([torch.exp(-f), f, torch.cos(f)], dim=1), 20)
    assert fit.hops.shape == (21, 3)
    assert fit.max_error < 1e-12
    assert fit.apply(x, graph).shape == x.shape
    matrices = fit_filter(lambda f: torch.exp(-f)[:, None, None] * torch.ones(3, 2, dtype=torch.float64), 20)
    assert matrices.hops.shape == (21, 3, 2)
    assert matrices.apply(x, graph).shape == (12, 2)


def test_a_graph_draws_the_fit_to_its_own_frequencies():
    graph = us.graph.sensor(600)[0]  # frequencies up to 1.2 only, most of them near 1
    target = low_pass(0.5, width=0.05)
    plain, near = fit_filter(target, 8), fit_filter(target, 8, graph)
    frequency = us.graph.frequencies(graph)
    error = [float((f.response(frequency) - target(frequency)).square().mean().sqrt()) for f in (plain, near)]
    assert error[1] < 0.9 * error[0]
    assert near.graph_error == pytest.approx(error[1], rel=0.2)
    assert plain.graph_error is None
    assert near.response(WHERE).abs().max() < 10  # tame where the graph has no frequencies
    assert "over the graph's frequencies" in str(near)


def test_unnormalised_graphs_are_weighted_by_relative_frequency():
    graph = us.graph.grid(12, 12, normalise=us.Normalisation.NONE).to(torch.float64)
    fit = fit_filter(low_pass(0.4), 12, graph)
    frequency, modes = us.graph.frequencies_and_modes(graph)
    x = torch.randn(144, 2, dtype=torch.float64)
    expected = modes @ (fit.response(frequency / graph.scale)[:, None] * (modes.T @ x))
    assert torch.allclose(fit.apply(x, graph), expected, atol=1e-10)


def test_targets_are_what_they_say():
    f = torch.tensor([0.0, 0.2, 0.9, 1.1, 1.9], dtype=torch.float64)
    assert low_pass(1.0, width=0)(f).tolist() == [1, 1, 1, 0, 0]
    assert high_pass(1.0, width=0)(f).tolist() == [0, 0, 0, 1, 1]
    assert band_pass(0.1, 1.0, width=0)(f).tolist() == [0, 1, 1, 0, 0]
    assert torch.allclose(low_pass(0.7)(f) + high_pass(0.7)(f), torch.ones(5, dtype=torch.float64))
    where = torch.linspace(0, 2, 2001, dtype=torch.float64)
    for teeth in (1, 2, 5):
        value = comb(teeth)(where)
        peaks = (value[1:-1] > value[:-2]) & (value[1:-1] > value[2:])
        assert int(peaks.sum()) == teeth
        assert math.isclose(float(value.max()), 1, abs_tol=1e-9)
    assert repr(band_pass(0.5, 1)) == "band_pass(0.5, 1)"
    assert repr(low_pass(0.5, width=0)) == "low_pass(0.5, width=0)"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: low_pass(2.5), "not a graph frequency"),
        (lambda: high_pass(1.0, width=-1), "width=-1"),
        (lambda: band_pass(1.0, 0.5), "below the second"),
        (lambda: comb(0), "at least 1"),
        (lambda: fit_filter(low_pass(1.0), -1), "degree=-1"),
        (lambda: fit_filter(lambda f: f[:3], 4), "one response for each"),
        (lambda: fit_filter(lambda f: 1 / (f - f), 4), "not finite"),
    ],
)
def test_bad_requests_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
