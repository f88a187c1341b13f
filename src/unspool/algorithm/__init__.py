"""How objectives are minimised: one file per update rule."""

from unspool.algorithm.accelerated import Accelerated
from unspool.algorithm.admm import ADMM
from unspool.algorithm.algorithm import Algorithm, InverseLipschitz, Problem, State, SteppedAlgorithm, times
from unspool.algorithm.anderson import Anderson
from unspool.algorithm.block_coordinate import BlockCoordinate
from unspool.algorithm.chebyshev import Chebyshev
from unspool.algorithm.conjugate_gradient import ConjugateGradient
from unspool.algorithm.exact import Exact, minimise
from unspool.algorithm.gradient import GradientDescent
from unspool.algorithm.jacobi import Jacobi
from unspool.algorithm.mirror import MirrorDescent
from unspool.algorithm.newton import Newton
from unspool.algorithm.primal_dual import PrimalDual
from unspool.algorithm.proximal import ProximalGradient
from unspool.algorithm.reweighted import Reweighted

__all__ = [
    "ADMM",
    "Accelerated",
    "Algorithm",
    "Anderson",
    "BlockCoordinate",
    "Chebyshev",
    "ConjugateGradient",
    "Exact",
    "GradientDescent",
    "InverseLipschitz",
    "Jacobi",
    "MirrorDescent",
    "Newton",
    "PrimalDual",
    "Problem",
    "ProximalGradient",
    "Reweighted",
    "State",
    "SteppedAlgorithm",
    "minimise",
    "times",
]
