"""Conversions: the same function in every basis, exact coefficients, refusals where float64 cannot hold them."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

import unspool as us
from unspool import IncompatibleError
from unspool.spectral import PolynomialBasis, chebyshev_nodes, condition, convert, evaluate, polynomials

BASES = list(PolynomialBasis)
WHERE = torch.linspace(0, 2, 41, dtype=torch.float64)
SHAPES = [(), (3,), (2, 4)]


def tame(degree, *shape):
    """Positive coefficients: in their own basis they cannot cancel much."""
    return torch.rand(degree + 1, *shape, dtype=torch.float64) + 0.1


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES, ids=["numbers", "diagonals", "matrices"])
@pytest.mark.parametrize("target", BASES)
@pytest.mark.parametrize("source", BASES)
@pytest.mark.parametrize("degree", [0, 1, 2, 7])
def test_the_function_stays_the_same(degree, source, target, shape):
    c = torch.randn(degree + 1, *shape, dtype=torch.float64)
    found = convert(c, source, target)
    assert found.shape == c.shape
    assert found.dtype == torch.float64
    before, after = evaluate(c, source, WHERE), evaluate(found, target, WHERE)
    assert before.shape == (41, *shape)
    assert torch.allclose(before, after, rtol=0, atol=1e-10 * float(before.abs().max()))
    assert torch.allclose(convert(found, target, source), c, rtol=0, atol=1e-10 * float(c.abs().max()))


def test_gamma_and_theta_by_the_binomial_formula():
    """γᵢ = Σ_{k≥i} θₖ (−1)ⁱ C(k, i), by a double loop in rational numbers."""
    theta = torch.randn(9, dtype=torch.float64)
    gamma = []
    for i in range(9):
        total = Fraction(0)
        for k in range(i, 9):
            total += Fraction(float(theta[k])) * (-1) ** i * math.comb(k, i)
        gamma.append(float(total))
    found = convert(theta, PolynomialBasis.LAPLACIAN, PolynomialBasis.HOPS)
    assert found.tolist() == gamma  # correctly rounded, bit by bit
    assert torch.allclose(convert(found, PolynomialBasis.HOPS, PolynomialBasis.LAPLACIAN), theta, atol=1e-12)


def test_chebyshev_agrees_with_numpy():
    c = torch.randn(8, dtype=torch.float64)
    powers = convert(c, us.Basis.CHEBYSHEV, us.Basis.POWERS)
    assert np.allclose(powers, np.polynomial.chebyshev.cheb2poly(c.numpy()))
    back = convert(powers, us.Basis.POWERS, us.Basis.CHEBYSHEV)
    assert np.allclose(back, np.polynomial.chebyshev.poly2cheb(powers.numpy()))


@pytest.mark.parametrize("degree", [10, 25, 50])
@pytest.mark.parametrize("basis", [PolynomialBasis.HOPS, PolynomialBasis.BERNSTEIN])
def test_round_trips_through_chebyshev_at_high_degree(basis, degree):
    """Positive hops and Bernstein coefficients are perfectly conditioned, and come back from Chebyshev as functions."""
    c = tame(degree)
    assert condition(c, basis) == pytest.approx(1)
    chebyshev = convert(c, basis, PolynomialBasis.CHEBYSHEV)
    assert torch.allclose(evaluate(chebyshev, PolynomialBasis.CHEBYSHEV, WHERE), evaluate(c, basis, WHERE), rtol=1e-12)
    back = convert(chebyshev, PolynomialBasis.CHEBYSHEV, basis)
    # The coefficients of Chebyshev carry rounding, which the way back magnifies; the function does not change.
    assert torch.allclose(evaluate(back, basis, WHERE), evaluate(c, basis, WHERE), rtol=1e-4)


@pytest.mark.parametrize("degree", [20, 50])
def test_smoothing_filters_round_trip_exactly(degree):
    """(1 − λ/2)ᴷ: one Bernstein coefficient, all-positive hops; dyadic numbers up to degree 50, so nothing is rounded."""
    bernstein = torch.zeros(degree + 1, dtype=torch.float64)
    bernstein[0] = 1
    hops = convert(bernstein, PolynomialBasis.BERNSTEIN, PolynomialBasis.HOPS)
    assert hops.tolist() == [math.comb(degree, k) / 2**degree for k in range(degree + 1)]
    assert torch.equal(convert(hops, PolynomialBasis.HOPS, PolynomialBasis.BERNSTEIN), bernstein)
    chebyshev = convert(hops, PolynomialBasis.HOPS, PolynomialBasis.CHEBYSHEV)
    assert torch.allclose(evaluate(chebyshev, PolynomialBasis.CHEBYSHEV, WHERE), (1 - WHERE / 2) ** degree, atol=1e-14)


def test_decaying_chebyshev_series_round_trip_at_degree_50():
    """Coefficients that fall faster than (1 + √2)⁻ᵏ belong to powers as well."""
    c = torch.randn(51, 2, dtype=torch.float64) * 0.35 ** torch.arange(51, dtype=torch.float64)[:, None]
    powers = convert(c, PolynomialBasis.CHEBYSHEV, PolynomialBasis.HOPS)
    assert torch.allclose(convert(powers, PolynomialBasis.HOPS, PolynomialBasis.CHEBYSHEV), c, atol=1e-14)


@pytest.mark.parametrize("target", [b for b in BASES if b is not PolynomialBasis.CHEBYSHEV])
def test_cancelling_targets_are_refused_with_a_way_out(target):
    c = torch.ones(51)
    with pytest.raises(IncompatibleError, match=r"degree 50 cancels: .* use PolynomialBasis.CHEBYSHEV"):
        convert(c, PolynomialBasis.CHEBYSHEV, target)


def test_sgc_in_powers_of_the_laplacian():
    """(1 − λ)ᴷ has θₖ = (−1)ᵏ C(K, k): fine at 10, refused at 50; but whoever brings those floats is taken at their word."""
    for degree in (10, 50):
        hops = torch.eye(degree + 1)[degree]
        theta = torch.tensor([(-1) ** k * math.comb(degree, k) for k in range(degree + 1)], dtype=torch.float64)
        assert torch.equal(convert(theta, PolynomialBasis.LAPLACIAN, PolynomialBasis.HOPS), hops.double())
        if degree == 10:
            assert torch.equal(convert(hops, PolynomialBasis.HOPS, PolynomialBasis.LAPLACIAN), theta)
        else:
            with pytest.raises(IncompatibleError, match="in powers of L"):
                convert(hops, PolynomialBasis.HOPS, PolynomialBasis.LAPLACIAN)


def test_chebyshev_is_never_refused():
    for basis in BASES:
        c = torch.randn(51, dtype=torch.float64)
        found = convert(c, basis, PolynomialBasis.CHEBYSHEV)
        assert condition(found, PolynomialBasis.CHEBYSHEV) <= 2 * 51


def test_condition_bounds_what_rounding_does():
    c = torch.randn(13, dtype=torch.float64) * 2.0 ** torch.arange(13)
    truth = evaluate(c, PolynomialBasis.HOPS, WHERE)
    rounded = evaluate(c.float().double(), PolynomialBasis.HOPS, WHERE)
    error = float((rounded - truth).abs().max() / truth.abs().max())
    assert error <= torch.finfo(torch.float32).eps * condition(c, PolynomialBasis.HOPS)
    assert condition(torch.zeros(4), PolynomialBasis.HOPS) == 1


def test_bernstein_reproduces_its_values_and_sums_to_one():
    values = polynomials(WHERE, 12, PolynomialBasis.BERNSTEIN)
    assert torch.allclose(values.sum(-1), torch.ones(41, dtype=torch.float64))
    # Linear precision: bₖ = 2k/K is the function λ itself.
    line = 2 * torch.arange(13, dtype=torch.float64) / 12
    assert torch.allclose(evaluate(line, PolynomialBasis.BERNSTEIN, WHERE), WHERE, atol=1e-14)


def test_evaluation_at_a_number_and_at_many_shapes():
    c = torch.randn(4, 2, 3, dtype=torch.float64)
    for basis in BASES:
        assert evaluate(c, basis, 0.5).shape == (2, 3)
        assert evaluate(c, basis, torch.rand(2, 5)).shape == (2, 5, 2, 3)
    assert chebyshev_nodes(7).diff().min() > 0


@pytest.mark.parametrize(
    ("coefficients", "message"),
    [
        (torch.zeros(0), "shape"),
        (torch.zeros(2, 2, 2, 2), "shape"),
        ([1.0, float("nan")], "finite"),
        ([1.0, float("inf")], "finite"),
    ],
)
def test_bad_coefficients_are_named(coefficients, message):
    with pytest.raises(ValueError, match=message):
        convert(coefficients, PolynomialBasis.HOPS, PolynomialBasis.LAPLACIAN)


def test_a_basis_is_an_object_not_a_string():
    with pytest.raises(TypeError, match="expected a PolynomialBasis or a Basis"):
        convert([1.0], "powers", PolynomialBasis.HOPS)


def test_coefficients_beyond_float64_are_refused():
    with pytest.raises(IncompatibleError, match="beyond float64"):
        convert([1e308, 1e308, 1e308], PolynomialBasis.LAPLACIAN, PolynomialBasis.HOPS)


def test_trained_coefficients_need_no_detaching():
    net = us.HopNetwork([0.5, 0.5])
    assert not convert(net.hops(), us.Basis.POWERS, PolynomialBasis.LAPLACIAN).requires_grad
