"""Looking at what a network does to each graph frequency: responses, conversions, fits, energies, pictures."""

from unspool.spectral.basis import PolynomialBasis, chebyshev_nodes, condition, convert, evaluate, polynomials
from unspool.spectral.drawing import plot
from unspool.spectral.energies import BANDS, Energy, Follow, dirichlet, dirichlet_energy, energy
from unspool.spectral.fit import Fit, fit_filter
from unspool.spectral.measuring import MeasuredResponse, measure
from unspool.spectral.responses import MinimiserResponse, PolynomialResponse, Response, response
from unspool.spectral.targets import Target, band_pass, comb, high_pass, low_pass

__all__ = [
    "BANDS",
    "Energy",
    "Fit",
    "Follow",
    "MeasuredResponse",
    "MinimiserResponse",
    "PolynomialBasis",
    "PolynomialResponse",
    "Response",
    "Target",
    "band_pass",
    "chebyshev_nodes",
    "comb",
    "condition",
    "convert",
    "dirichlet",
    "dirichlet_energy",
    "energy",
    "evaluate",
    "fit_filter",
    "high_pass",
    "low_pass",
    "measure",
    "plot",
    "polynomials",
    "response",
]
