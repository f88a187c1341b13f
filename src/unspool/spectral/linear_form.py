"""What kind of network lies before us: a polynomial of the graph, the minimiser of a quadratic, or neither."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unspool.algorithm import Problem
from unspool.algorithm.exact import check_strictly_convex
from unspool.errors import IncompatibleError
from unspool.graph import Graph, ring
from unspool.objective import Given, Stencil, StencilTerm
from unspool.ops import Basis
from unspool.unrolling import FixedPoint, Implicit, Polynomial, Unrolled
from unspool.unrolling.attempt import try_lowering
from unspool.unrolling.lower import LinearProblem, lower


@dataclass(frozen=True, eq=False)
class Hops:
    """Σₖ pₖ(S) X cₖ. ``scale`` is that of the graph the coefficients were read on, None if they fit every symmetric A."""

    coefficients: Tensor
    basis: Basis
    scale: float | None


@dataclass(frozen=True, eq=False)
class Minimiser:
    """H P + L H Q + X R = 0, on graphs of this scale."""

    stencil: Stencil
    scale: float


@dataclass(frozen=True)
class Neither:
    """Not linear, or not known to be; ``reason`` is half a sentence."""

    reason: str


def propagation_of(network: Any) -> Any:
    """The part of a model that moves signals along edges: its ``propagation`` where it has one, else itself.

    Example:
        >>> from types import SimpleNamespace
        >>> propagation_of(SimpleNamespace(propagation="hops")), propagation_of("net")
        ('hops', 'net')
    """
    inner = getattr(network, "propagation", None)
    return network if inner is None else inner


@torch.no_grad()
def width_of(network: Any) -> int:
    """How many channels the propagation works on: what a model's encoder puts out; 1 for a bare network.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> width_of(SimpleNamespace(propagation=None, p_pre=torch.nn.Linear(5, 3), in_features=5)), width_of("net")
        (3, 1)
    """
    encoder = getattr(network, "p_pre", None)
    if not isinstance(encoder, nn.Module):
        return 1
    like = next((p for p in encoder.parameters() if p.is_floating_point()), torch.empty(0))
    with evaluating(encoder):
        return int(encoder(torch.zeros(1, network.in_features, dtype=like.dtype, device=like.device)).shape[-1])


def graph_for(network: Any, graph: Graph) -> Graph:
    """The graph as the network sees it: a model takes I − A for L on every graph, unless it looks at B."""
    if not isinstance(graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"graph is {type(graph).__name__}, not a Graph; make one with Graph.from_edges(edge_index, nodes=...)"
        )
    as_it_is = propagation_of(network) is network or getattr(network, "keeps_laplacian", False)
    return graph if as_it_is else graph.with_general_laplacian()


@contextmanager
def evaluating(network: Any) -> Generator[None]:
    """Put a module into evaluation mode for a while, so that dropout does not count as its response."""
    training = [m for m in network.modules() if m.training] if isinstance(network, nn.Module) else []
    try:
        for module in training:
            module.training = False
        yield
    finally:
        for module in training:
            module.training = True


@torch.no_grad()
def read(network: Any, graph: Graph | None = None) -> Hops | Minimiser | Neither:
    """Look at a network (or the propagation of a model) and say what it is, in float64 on the CPU."""
    name, network = type(network).__name__, propagation_of(network)
    if isinstance(network, Unrolled):
        return _read_unrolled(network, graph)
    found = getattr(network, "hops", None)
    if found is None:
        return Neither(f"{name} is not a polynomial of the graph")
    hops = found() if callable(found) else found
    if not isinstance(hops, Tensor):
        raise TypeError(f"{type(network).__name__}.hops gave {type(hops).__name__}, not a tensor")
    basis = getattr(network, "basis", Basis.POWERS)
    if not isinstance(basis, Basis):
        raise TypeError(f"{type(network).__name__}.basis is {basis!r}: expected Basis.POWERS or Basis.CHEBYSHEV")
    return Hops(_checked(hops), basis, getattr(network, "scale", None))


def _read_unrolled(net: Unrolled, graph: Graph | None) -> Hops | Minimiser | Neither:
    where = (ring(3) if graph is None else graph).to("cpu").to(torch.float64)
    if isinstance(net.adjoint, Polynomial):
        return Hops(_checked(net.hops(where)), net.adjoint.basis or Basis.POWERS, where.scale)
    if isinstance(net.adjoint, Implicit):
        return _read_minimiser(net, where)
    if isinstance(net.adjoint, FixedPoint):
        return Neither("the network goes to the point where its rule stays, which is measured and not read")
    like = where.degree.to(torch.float64)
    tried = try_lowering(net.algorithm, net.objective, net.depth, net.values, net.start)
    if tried.cause is not None:
        return Neither(tried.cause)
    if net.between is not None:
        return Neither("a module stands between the layers")
    # Linear, but run step by step at its owner's wish: lowered here only to be read.
    problems = [
        LinearProblem(net.objective, Given(like, where, net.values(k)), k, None, tried.basis)
        for k in range(1, net.depth + 1)
    ]
    parts = lower(net.algorithm, problems, net.start).parts
    if "start" in parts:
        raise IncompatibleError(
            "this network starts at a tensor of its own, so two polynomials describe it and no single response"
        )
    return Hops(_checked(parts["x"]), tried.basis, where.scale)


def _read_minimiser(net: Unrolled, where: Graph) -> Minimiser | Neither:
    for term in net.objective.terms:
        if not isinstance(term, StencilTerm):
            return Neither(f"{term.name} states no stencil")
    x = torch.zeros(where.nodes, 1, dtype=torch.float64)
    problem = Problem(net.objective, Given(x, where, net.values(1)))
    check_strictly_convex(problem)
    return Minimiser(net.objective.stencil(problem.given), where.scale)


def _checked(hops: Tensor) -> Tensor:
    if hops.ndim not in (1, 2, 3) or hops.shape[0] == 0:
        raise ValueError(
            f"hop coefficients have shape {tuple(hops.shape)}: expected (K+1,), (K+1, features) or (K+1, features, out)"
        )
    if not bool(torch.isfinite(hops).all()):
        raise ValueError("hop coefficients are not finite: training has diverged")
    return hops.detach().to("cpu", torch.float64)
