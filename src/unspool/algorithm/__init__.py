"""How objectives are minimised: one file per update rule."""

from unspool.algorithm.accelerated import Accelerated
from unspool.algorithm.algorithm import Algorithm, InverseLipschitz, Problem, State, SteppedAlgorithm, times
from unspool.algorithm.chebyshev import Chebyshev
from unspool.algorithm.exact import Exact, minimise
from unspool.algorithm.gradient import GradientDescent
from unspool.algorithm.jacobi import Jacobi
from unspool.algorithm.primal_dual import PrimalDual
from unspool.algorithm.proximal import ProximalGradient

__all__ = [
    "Accelerated",
    "Algorithm",
    "Chebyshev",
    "Exact",
    "GradientDescent",
    "InverseLipschitz",
    "Jacobi",
    "PrimalDual",
    "Problem",
    "ProximalGradient",
    "State",
    "SteppedAlgorithm",
    "minimise",
    "times",
]
