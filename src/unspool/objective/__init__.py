"""What is minimised: coefficients, metrics, terms, and their sum."""

from unspool.objective.coefficient import INITIAL, Coefficient, Fixed, Leaf, Learnable, Values
from unspool.objective.kind import Kind, kind_of
from unspool.objective.metric import Diagonal, LowRank, Relaxed, Symmetric
from unspool.objective.objective import Objective, as_objective, check_proximable
from unspool.objective.proximable import Activation, Box, NonNegative, RowSparse, RowSparseFidelity, Sparse
from unspool.objective.quadratic import EdgeSmoothness, Fidelity, Ridge, Smoothness, require_symmetric
from unspool.objective.schedule import Schedule
from unspool.objective.term import Given, ProximableTerm, SmoothTerm, Stencil, StencilTerm, Term

__all__ = [
    "INITIAL",
    "Activation",
    "Box",
    "Coefficient",
    "Diagonal",
    "EdgeSmoothness",
    "Fidelity",
    "Fixed",
    "Given",
    "Kind",
    "Leaf",
    "Learnable",
    "LowRank",
    "NonNegative",
    "Objective",
    "ProximableTerm",
    "Relaxed",
    "Ridge",
    "RowSparse",
    "RowSparseFidelity",
    "Schedule",
    "SmoothTerm",
    "Smoothness",
    "Sparse",
    "Stencil",
    "StencilTerm",
    "Symmetric",
    "Term",
    "Values",
    "as_objective",
    "check_proximable",
    "kind_of",
    "require_symmetric",
]
