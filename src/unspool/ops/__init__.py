"""Tensor functions: the sparse product, the polynomial primitive, proximal operators, activations, dropout.

The names that most packages need stand here; the rest is in the modules, one for each function.
"""

from unspool.ops.convergence import ConvergenceWarning, SolveReport, SolveReports, solve_reports
from unspool.ops.features import SparseFeatures, features_of
from unspool.ops.lanczos import Lanczos
from unspool.ops.operator import Operator
from unspool.ops.polynomial import Basis, propagate

__all__ = [
    "Basis",
    "ConvergenceWarning",
    "Lanczos",
    "Operator",
    "SolveReport",
    "SolveReports",
    "SparseFeatures",
    "features_of",
    "propagate",
    "solve_reports",
]
