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
from typing import Any

from unspool import algorithm, graph, objective, ops
from unspool.algorithm import (
    Accelerated,
    Algorithm,
    Chebyshev,
    Exact,
    GradientDescent,
    InverseLipschitz,
    Problem,
    ProximalGradient,
    minimise,
)
from unspool.errors import IncompatibleError
from unspool.graph import Graph, Normalisation
from unspool.objective import (
    Activation,
    Box,
    Coefficient,
    Diagonal,
    EdgeSmoothness,
    Fidelity,
    Fixed,
    Given,
    Kind,
    Learnable,
    LowRank,
    NonNegative,
    Objective,
    ProximableTerm,
    Relaxed,
    Ridge,
    RowSparse,
    RowSparseFidelity,
    Schedule,
    Smoothness,
    SmoothTerm,
    Sparse,
    Stencil,
    StencilTerm,
    Symmetric,
    Term,
)
from unspool.ops.convergence import ConvergenceWarning, SolveReport, solve_reports
from unspool.ops.polynomial import Basis, propagate
from unspool.unrolling import (
    Checkpointed,
    From,
    HopNetwork,
    Implicit,
    Input,
    Polynomial,
    ReadBack,
    Stored,
    Trace,
    Unrolled,
    Zero,
    read_back_hops,
    unroll,
)

__version__ = "0.1.0"

#: Rooms that few programs enter: loaded when first named.
_LATER = (
    "datasets",
    "denoise",
    "estimator",
    "explain",
    "models",
    "nn",
    "report",
    "reproduce",
    "spectral",
    "study",
    "testing",
    "theory",
    "train",
)
#: Single things that live in such rooms.
_WHERE = {
    "load": ("models.folder", "load_trained"),
    "NodeClassifier": ("estimator", "NodeClassifier"),
    "NodeRegressor": ("estimator", "NodeRegressor"),
    "GraphDenoiser": ("estimator", "GraphDenoiser"),
    "NodeSplit": ("estimator", "NodeSplit"),
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return importlib.import_module(f"unspool.{name}")
    if name in _WHERE:
        room, thing = _WHERE[name]
        return getattr(importlib.import_module(f"unspool.{room}"), thing)
    raise AttributeError(f"module 'unspool' has no attribute {name!r}")


__all__ = [
    "Accelerated",
    "Activation",
    "Algorithm",
    "Basis",
    "Box",
    "Chebyshev",
    "Checkpointed",
    "Coefficient",
    "ConvergenceWarning",
    "Diagonal",
    "EdgeSmoothness",
    "Exact",
    "Fidelity",
    "Fixed",
    "From",
    "Given",
    "GradientDescent",
    "Graph",
    "HopNetwork",
    "Implicit",
    "IncompatibleError",
    "Input",
    "InverseLipschitz",
    "Kind",
    "Learnable",
    "LowRank",
    "NonNegative",
    "Normalisation",
    "Objective",
    "Polynomial",
    "Problem",
    "ProximableTerm",
    "ProximalGradient",
    "ReadBack",
    "Relaxed",
    "Ridge",
    "RowSparse",
    "RowSparseFidelity",
    "Schedule",
    "SmoothTerm",
    "Smoothness",
    "SolveReport",
    "Sparse",
    "Stencil",
    "StencilTerm",
    "Stored",
    "Symmetric",
    "Term",
    "Trace",
    "Unrolled",
    "Zero",
    "algorithm",
    "graph",
    "minimise",
    "objective",
    "ops",
    "propagate",
    "read_back_hops",
    "solve_reports",
    "unroll",
]  # fmt: skip
