"""unspool: write down a graph signal denoising problem; get the graph neural network that solves it.

>>> import torch, unspool as us
>>> graph = us.graph.ring(6)
>>> objective = us.Fidelity(0.2) + us.Smoothness(0.8)
>>> print(objective)
0.2 ‖H − X‖²  +  0.8 ‖B H‖²
>>> net = us.unroll(objective, us.GradientDescent(step=0.5), depth=10)
>>> net(torch.eye(6), graph).shape
torch.Size([6, 6])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers and editors see; at run time a name is imported when it is first used
    from unspool import algorithm as algorithm
    from unspool import datasets as datasets
    from unspool import denoise as denoise
    from unspool import deploy as deploy
    from unspool import estimator as estimator
    from unspool import evaluate as evaluate
    from unspool import explain as explain
    from unspool import explore as explore
    from unspool import graph as graph
    from unspool import hops as hops
    from unspool import links as links
    from unspool import models as models
    from unspool import nn as nn
    from unspool import objective as objective
    from unspool import ops as ops
    from unspool import report as report
    from unspool import reproduce as reproduce
    from unspool import settings as settings
    from unspool import spectral as spectral
    from unspool import study as study
    from unspool import testing as testing
    from unspool import theory as theory
    from unspool import train as train
    from unspool import unrolling as unrolling
    from unspool.algorithm import ADMM as ADMM
    from unspool.algorithm import Accelerated as Accelerated
    from unspool.algorithm import Algorithm as Algorithm
    from unspool.algorithm import Anderson as Anderson
    from unspool.algorithm import BlockCoordinate as BlockCoordinate
    from unspool.algorithm import Chebyshev as Chebyshev
    from unspool.algorithm import ConjugateGradient as ConjugateGradient
    from unspool.algorithm import Exact as Exact
    from unspool.algorithm import GradientDescent as GradientDescent
    from unspool.algorithm import InverseLipschitz as InverseLipschitz
    from unspool.algorithm import Jacobi as Jacobi
    from unspool.algorithm import MirrorDescent as MirrorDescent
    from unspool.algorithm import Newton as Newton
    from unspool.algorithm import PrimalDual as PrimalDual
    from unspool.algorithm import Problem as Problem
    from unspool.algorithm import ProximalGradient as ProximalGradient
    from unspool.algorithm import Reweighted as Reweighted
    from unspool.algorithm import minimise as minimise
    from unspool.errors import IncompatibleError as IncompatibleError
    from unspool.errors import InputError as InputError
    from unspool.estimator import GraphDenoiser as GraphDenoiser
    from unspool.estimator import LinkPredictor as LinkPredictor
    from unspool.estimator import NodeClassifier as NodeClassifier
    from unspool.estimator import NodeRegressor as NodeRegressor
    from unspool.estimator import NodeSplit as NodeSplit
    from unspool.graph import Graph as Graph
    from unspool.graph import Normalisation as Normalisation
    from unspool.models import load_pretrained as load
    from unspool.models import save_pretrained as save
    from unspool.objective import Activation as Activation
    from unspool.objective import Box as Box
    from unspool.objective import Capped as Capped
    from unspool.objective import Coefficient as Coefficient
    from unspool.objective import CompositeTerm as CompositeTerm
    from unspool.objective import Computed as Computed
    from unspool.objective import Diagonal as Diagonal
    from unspool.objective import EdgePenalty as EdgePenalty
    from unspool.objective import EdgeSmoothness as EdgeSmoothness
    from unspool.objective import EdgeSparse as EdgeSparse
    from unspool.objective import FeatureComputed as FeatureComputed
    from unspool.objective import Fidelity as Fidelity
    from unspool.objective import FilteredFidelity as FilteredFidelity
    from unspool.objective import Fixed as Fixed
    from unspool.objective import Given as Given
    from unspool.objective import GroupDifference as GroupDifference
    from unspool.objective import GroupGap as GroupGap
    from unspool.objective import HigherSmoothness as HigherSmoothness
    from unspool.objective import Incidence as Incidence
    from unspool.objective import Kind as Kind
    from unspool.objective import KLFidelity as KLFidelity
    from unspool.objective import LaplacianPower as LaplacianPower
    from unspool.objective import LaplacianSparse as LaplacianSparse
    from unspool.objective import Learnable as Learnable
    from unspool.objective import LearntEdges as LearntEdges
    from unspool.objective import LinearOperator as LinearOperator
    from unspool.objective import Log as Log
    from unspool.objective import LowRank as LowRank
    from unspool.objective import NodeFidelity as NodeFidelity
    from unspool.objective import NonNegative as NonNegative
    from unspool.objective import Objective as Objective
    from unspool.objective import Penalty as Penalty
    from unspool.objective import Power as Power
    from unspool.objective import ProximableTerm as ProximableTerm
    from unspool.objective import Relaxed as Relaxed
    from unspool.objective import Ridge as Ridge
    from unspool.objective import RowSparse as RowSparse
    from unspool.objective import RowSparseFidelity as RowSparseFidelity
    from unspool.objective import Schedule as Schedule
    from unspool.objective import Simplex as Simplex
    from unspool.objective import Smoothness as Smoothness
    from unspool.objective import SmoothTerm as SmoothTerm
    from unspool.objective import Source as Source
    from unspool.objective import Sparse as Sparse
    from unspool.objective import Spread as Spread
    from unspool.objective import Stencil as Stencil
    from unspool.objective import StencilTerm as StencilTerm
    from unspool.objective import Symmetric as Symmetric
    from unspool.objective import Term as Term
    from unspool.ops.convergence import ConvergenceWarning as ConvergenceWarning
    from unspool.ops.convergence import SolveReport as SolveReport
    from unspool.ops.convergence import solve_reports as solve_reports
    from unspool.ops.polynomial import Basis as Basis
    from unspool.ops.polynomial import propagate as propagate
    from unspool.settings import setting as setting
    from unspool.unrolling import Checkpointed as Checkpointed
    from unspool.unrolling import FixedPoint as FixedPoint
    from unspool.unrolling import From as From
    from unspool.unrolling import HopNetwork as HopNetwork
    from unspool.unrolling import Implicit as Implicit
    from unspool.unrolling import Input as Input
    from unspool.unrolling import Polynomial as Polynomial
    from unspool.unrolling import ReadBack as ReadBack
    from unspool.unrolling import Stored as Stored
    from unspool.unrolling import Trace as Trace
    from unspool.unrolling import Unrolled as Unrolled
    from unspool.unrolling import Zero as Zero
    from unspool.unrolling import read_back_hops as read_back_hops
    from unspool.unrolling import unroll as unroll

__version__ = "0.2.0"

#: Where names come from; packages come from themselves. ``import unspool`` alone loads nothing, so the command line answers at once.
_FROM = {
    "": (
        "algorithm", "datasets", "denoise", "deploy", "estimator", "evaluate", "explain", "explore", "graph", "hops", "links", "models", "nn", "objective", "ops", "report", "reproduce",
        "settings", "spectral", "study", "testing", "theory", "train", "unrolling",
    ),
    "algorithm": (
        "ADMM", "Anderson", "BlockCoordinate", "ConjugateGradient", "MirrorDescent", "Newton", "Reweighted", "Jacobi", "PrimalDual", "Accelerated", "Algorithm", "Chebyshev", "Exact", "GradientDescent", "InverseLipschitz", "Problem", "ProximalGradient", "minimise",
    ),
    "errors": ("IncompatibleError", "InputError"),
    "estimator": ("GraphDenoiser", "LinkPredictor", "NodeClassifier", "NodeRegressor", "NodeSplit"),
    "graph": ("Graph", "Normalisation"),
    "models": ("load", "save"),
    "objective": (
        "KLFidelity", "LaplacianSparse", "LearntEdges", "Simplex", "Computed", "FeatureComputed", "Source", "Spread", "NodeFidelity", "HigherSmoothness", "FilteredFidelity", "Power", "Penalty", "Log", "EdgePenalty", "Capped", "LinearOperator", "LaplacianPower", "Incidence", "GroupDifference", "GroupGap", "EdgeSparse", "CompositeTerm", "Activation", "Box", "Coefficient", "Diagonal", "EdgeSmoothness", "Fidelity", "Fixed", "Given", "Kind", "Learnable", "LowRank", "NonNegative",
        "Objective", "ProximableTerm", "Relaxed", "Ridge", "RowSparse", "RowSparseFidelity", "Schedule", "SmoothTerm", "Smoothness", "Sparse",
        "Stencil", "StencilTerm", "Symmetric", "Term",
    ),
    "ops.convergence": ("ConvergenceWarning", "SolveReport", "solve_reports"),
    "ops.polynomial": ("Basis", "propagate"),
    "settings": ("setting",),
    "unrolling": (
        "Checkpointed", "FixedPoint", "From", "HopNetwork", "Implicit", "Input", "Polynomial", "ReadBack", "Stored", "Trace", "Unrolled", "Zero",
        "read_back_hops", "unroll",
    ),
}  # fmt: skip
_WHERE = {name: package for package, names in _FROM.items() for name in names}
#: Names that are others at home.
_AT_HOME = {"load": "load_pretrained", "save": "save_pretrained"}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'unspool' has no attribute {name!r}")
    package = _WHERE[name]
    if not package:
        return importlib.import_module(f"unspool.{name}")
    found = getattr(importlib.import_module(f"unspool.{package}"), _AT_HOME.get(name, name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_WHERE, "__version__"})


__all__ = [  # pyright: ignore[reportUnsupportedDunderAll] - all of them come through __getattr__
    "ADMM",
    "Accelerated",
    "Activation",
    "Algorithm",
    "Anderson",
    "Basis",
    "BlockCoordinate",
    "Box",
    "Capped",
    "Chebyshev",
    "Checkpointed",
    "Coefficient",
    "CompositeTerm",
    "Computed",
    "ConjugateGradient",
    "ConvergenceWarning",
    "Diagonal",
    "EdgePenalty",
    "EdgeSmoothness",
    "EdgeSparse",
    "Exact",
    "FeatureComputed",
    "Fidelity",
    "FilteredFidelity",
    "Fixed",
    "FixedPoint",
    "From",
    "Given",
    "GradientDescent",
    "Graph",
    "GraphDenoiser",
    "GroupDifference",
    "GroupGap",
    "HigherSmoothness",
    "HopNetwork",
    "Implicit",
    "Incidence",
    "IncompatibleError",
    "Input",
    "InputError",
    "InverseLipschitz",
    "Jacobi",
    "KLFidelity",
    "Kind",
    "LaplacianPower",
    "LaplacianSparse",
    "Learnable",
    "LearntEdges",
    "LinearOperator",
    "LinkPredictor",
    "Log",
    "LowRank",
    "MirrorDescent",
    "Newton",
    "NodeClassifier",
    "NodeFidelity",
    "NodeRegressor",
    "NodeSplit",
    "NonNegative",
    "Normalisation",
    "Objective",
    "Penalty",
    "Polynomial",
    "Power",
    "PrimalDual",
    "Problem",
    "ProximableTerm",
    "ProximalGradient",
    "ReadBack",
    "Relaxed",
    "Reweighted",
    "Ridge",
    "RowSparse",
    "RowSparseFidelity",
    "Schedule",
    "Simplex",
    "SmoothTerm",
    "Smoothness",
    "SolveReport",
    "Source",
    "Sparse",
    "Spread",
    "Stencil",
    "StencilTerm",
    "Stored",
    "Symmetric",
    "Term",
    "Trace",
    "Unrolled",
    "Zero",
    "algorithm",
    "datasets",
    "denoise",
    "deploy",
    "estimator",
    "evaluate",
    "explain",
    "explore",
    "graph",
    "hops",
    "links",
    "load",
    "minimise",
    "models",
    "nn",
    "objective",
    "ops",
    "propagate",
    "read_back_hops",
    "report",
    "reproduce",
    "save",
    "setting",
    "settings",
    "solve_reports",
    "spectral",
    "study",
    "testing",
    "theory",
    "train",
    "unroll",
    "unrolling",
]  # fmt: skip
