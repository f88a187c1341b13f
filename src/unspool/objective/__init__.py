"""What is minimised: coefficients, metrics, terms, and their sum."""

from unspool.objective.coefficient import INITIAL, Coefficient, Fixed, Leaf, Learnable, Values
from unspool.objective.composite import CompositeTerm, EdgeSparse, GroupGap, LaplacianSparse
from unspool.objective.computed import Computed, FeatureComputed
from unspool.objective.edge_penalty import Capped, EdgePenalty, Log, Penalty, Power
from unspool.objective.filtered import FilteredFidelity, HigherSmoothness
from unspool.objective.formula import leading
from unspool.objective.kind import Kind, kind_of
from unspool.objective.learnt_edges import LearntEdges
from unspool.objective.metric import Diagonal, LowRank, Relaxed, Symmetric
from unspool.objective.node import NodeFidelity, Spread, labels
from unspool.objective.objective import Objective, as_objective, check_proximable
from unspool.objective.operator import GroupDifference, Incidence, LaplacianPower, LinearOperator
from unspool.objective.proximable import Activation, Box, NonNegative, RowSparse, RowSparseFidelity, Sparse
from unspool.objective.quadratic import EdgeSmoothness, Fidelity, Ridge, Smoothness, require_symmetric
from unspool.objective.schedule import Schedule
from unspool.objective.simplex import KLFidelity, Simplex
from unspool.objective.source import Source
from unspool.objective.term import Given, ProximableTerm, SmoothTerm, Stencil, StencilTerm, Term

__all__ = [
    "INITIAL",
    "Activation",
    "Box",
    "Capped",
    "Coefficient",
    "CompositeTerm",
    "Computed",
    "Diagonal",
    "EdgePenalty",
    "EdgeSmoothness",
    "EdgeSparse",
    "FeatureComputed",
    "Fidelity",
    "FilteredFidelity",
    "Fixed",
    "Given",
    "GroupDifference",
    "GroupGap",
    "HigherSmoothness",
    "Incidence",
    "KLFidelity",
    "Kind",
    "LaplacianPower",
    "LaplacianSparse",
    "Leaf",
    "Learnable",
    "LearntEdges",
    "LinearOperator",
    "Log",
    "LowRank",
    "NodeFidelity",
    "NonNegative",
    "Objective",
    "Penalty",
    "Power",
    "ProximableTerm",
    "Relaxed",
    "Ridge",
    "RowSparse",
    "RowSparseFidelity",
    "Schedule",
    "Simplex",
    "SmoothTerm",
    "Smoothness",
    "Source",
    "Sparse",
    "Spread",
    "Stencil",
    "StencilTerm",
    "Symmetric",
    "Term",
    "Values",
    "as_objective",
    "check_proximable",
    "kind_of",
    "labels",
    "leading",
    "require_symmetric",
]
