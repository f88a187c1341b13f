"""What a graph makes when it is first asked for and then keeps; also while torch.compile traces the asker."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import torch

from unspool.graph.normalise import operator_of
from unspool.ops import Operator

if TYPE_CHECKING:
    from unspool.graph.graph import Graph

# Trap: how many entries there are is no number while tracing, so things are made at that moment, beside the trace.


@contextlib.contextmanager
def real_tensors() -> Generator[None]:
    """What is remembered must be of use everywhere: in training, and when it was first asked for inside a trace of shapes alone."""
    from torch.utils._python_dispatch import _disable_current_modes  # pyright: ignore[reportPrivateUsage]

    with torch.inference_mode(False), _disable_current_modes():
        yield


def is_real(graph: Graph) -> bool:
    """Whether there are numbers behind a graph, and not names of them as in a trace."""
    return type(graph.adjacency.forward.crow) is torch.Tensor


def made_operator(graph: Graph) -> Operator:
    """A of a graph that has none yet; refused where only shapes are known, as for ``graph @ x`` in compiled code."""
    if not is_real(graph):
        raise RuntimeError(
            "the entries of a large graph are made when they are first asked for, and that is inside of torch.compile here; "
            "ask for graph.operator once before"
        )
    with real_tensors():
        return operator_of(graph.adjacency, graph.degree, graph.normalisation, graph.dtype)


def kept_operator(graph: Graph) -> Operator:
    """A, made of the weights and degrees."""
    if torch.compiler.is_compiling():
        from torch._dynamo.comptime import comptime

        comptime(_make_operator)
    return graph._operator  # pyright: ignore[reportPrivateUsage]


def kept_smoother(graph: Graph) -> Operator:
    """S of a graph that is not normalised."""
    if torch.compiler.is_compiling():
        from torch._dynamo.comptime import comptime

        comptime(_make_smoother)
    return graph._smoother  # pyright: ignore[reportPrivateUsage]


def kept_incidence(graph: Graph) -> Operator:
    """The incidence matrix B."""
    if torch.compiler.is_compiling():
        from torch._dynamo.comptime import comptime

        comptime(_make_incidence)
    return graph._incidence  # pyright: ignore[reportPrivateUsage]


def kept_squared_incidence(graph: Graph) -> Operator:
    """B with squared entries."""
    if torch.compiler.is_compiling():
        from torch._dynamo.comptime import comptime

        comptime(_make_incidence)
    return graph._squared_incidence  # pyright: ignore[reportPrivateUsage]


def _traced(context: Any) -> Graph:
    return context.get_local("graph")._i_will_not_complain_if_bc_breaks_VariableTracker().value


def _make_operator(context: Any) -> None:
    _traced(context).operator  # noqa: B018 - asked for so that it is kept


def _make_smoother(context: Any) -> None:
    _traced(context).smoother  # noqa: B018


def _make_incidence(context: Any) -> None:
    _traced(context).incidence()
    _traced(context).squared_incidence  # noqa: B018
