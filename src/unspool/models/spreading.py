"""Which networks run on a graph that is spread over processes: those that see other nodes through products with A alone."""

from __future__ import annotations

from torch import nn

from unspool.algorithm import Accelerated, Chebyshev, GradientDescent, MirrorDescent, ProximalGradient
from unspool.models.convolutions import Convolutions
from unspool.models.dagnn import GatedHops
from unspool.models.jknet import _Jumping  # pyright: ignore[reportPrivateUsage]
from unspool.models.mlp import MLP, Still
from unspool.models.model import Model
from unspool.models.ugdgnn import MixedHops
from unspool.nn import Bias, Dropout, Linear, Perceptron
from unspool.nn.flatten import Densify
from unspool.objective import (
    Activation,
    Box,
    Fidelity,
    FilteredFidelity,
    HigherSmoothness,
    KLFidelity,
    NonNegative,
    Ridge,
    RowSparse,
    RowSparseFidelity,
    Simplex,
    Smoothness,
    Source,
    Sparse,
)
from unspool.unrolling import Checkpointed, HopNetwork, Polynomial, Stored, Unrolled

#: Modules that look at one node at a time, or at others through A.
_MODULES = {
    Bias, Convolutions, Densify, Dropout, GatedHops, HopNetwork, Linear, MixedHops, Perceptron, Still, Unrolled, _Jumping,
    nn.ELU, nn.GELU, nn.Identity, nn.LayerNorm, nn.LeakyReLU, nn.Linear, nn.ModuleDict, nn.ModuleList, nn.ParameterDict, nn.ParameterList,
    nn.PReLU, nn.ReLU, nn.Sequential, nn.Sigmoid, nn.SiLU, nn.Softplus, nn.Tanh,
}  # fmt: skip
_TERMS = {
    Activation, Box, Fidelity, FilteredFidelity, HigherSmoothness, KLFidelity, NonNegative, Ridge, RowSparse, RowSparseFidelity, Simplex,
    Smoothness, Source, Sparse,
}  # fmt: skip
_ALGORITHMS = {Accelerated, Chebyshev, GradientDescent, MirrorDescent, ProximalGradient}


def why_not_spread(model: nn.Module) -> str | None:
    """Why a network cannot run on a graph that is spread; None where it can.

    A process sees its own nodes, and others through A. A part that may look at all nodes or at edges themselves would compute something else
    there. A module of one's own that does neither says so by the attribute ``node_by_node = True``, for itself and all in it.

    Example:
        >>> import unspool as us
        >>> why_not_spread(us.models.UGDGNN(5, 3)) is None
        True
        >>> print(why_not_spread(us.models.PPNP(5, 3)))
        PPNP cannot run on a graph that is spread: Implicit stops by a measure of all nodes; take a model that takes K steps, such as APPNP
    """
    if getattr(model, "node_by_node", False):
        return None
    name = f"{type(model).__name__} cannot run on a graph that is spread"
    if isinstance(model, Model) and type(model).forward is not Model.forward and type(model) is not MLP:
        return f"{name}: its forward is its own, and may look at all nodes; write build alone, or set node_by_node = True where it does not"
    if not isinstance(model, Model) and type(model) not in _MODULES:
        return f"{name}: it may look at all nodes; set node_by_node = True in its class where it sees others through the graph alone"
    todo = list(model.children()) if isinstance(model, Model) else [model]
    while todo:
        part = todo.pop(0)
        if getattr(part, "node_by_node", False):
            continue
        if (why := _why_not(part)) is not None:
            return f"{name}: {why}"
        todo += part.children()
    return None


def _why_not(part: nn.Module) -> str | None:
    if isinstance(part, nn.modules.batchnorm._BatchNorm):  # pyright: ignore[reportPrivateUsage]
        return "batch normalisation looks at all nodes; build it without (batch_norm=False)"
    if type(part) not in _MODULES:
        return f"{type(part).__name__} may look at all nodes or at edges; set node_by_node = True in its class where it does not"
    return _why_not_unrolled(part) if isinstance(part, Unrolled) else None


def _why_not_unrolled(part: Unrolled) -> str | None:
    if not isinstance(part.adjoint, Polynomial | Stored | Checkpointed):
        return f"{type(part.adjoint).__name__} stops by a measure of all nodes; take a model that takes K steps, such as APPNP"
    foreign = [term for term in part.objective.terms if type(term) not in _TERMS]
    if foreign:
        return f"{type(foreign[0]).__name__} looks at edges, or may look at all nodes; take a model without it, such as APPNP"
    if type(part.algorithm) not in _ALGORITHMS:
        return f"{type(part.algorithm).__name__} may look at all nodes; take GradientDescent or ProximalGradient"
    return "its coefficients are computed from all nodes" if len(part.computed) else None
