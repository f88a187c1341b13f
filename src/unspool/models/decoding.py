"""From the encoder's output to predictions, in the order that costs least: fewer channels travel, and fewer nodes are decoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from unspool.graph import Graph, check_input
from unspool.nn import Bias, Dropout, Linear
from unspool.ops import Basis, Operator, kernels, propagate
from unspool.ops.kernels import WIDEST
from unspool.ops.per_hop import gather
from unspool.ops.some_rows import propagate_rows
from unspool.ops.stacked_product import stacked_product
from unspool.unrolling import HopNetwork, Input, Polynomial, Unrolled

#: Parts of a decoder that see one node at a time.
_ROW_BY_ROW = (Linear, Bias, Dropout, nn.Identity, nn.ReLU)


def decoded(
    propagation: Any, p_pos: nn.Module, z: Tensor, graph: Graph, rows: Tensor | None = None, seen: Mapping[str, Any] | None = None
) -> Tensor:  # fmt: skip
    """``p_pos(propagation(z, graph))``, or some rows of it.

    A decoder that is linear as it is (its dropout idle) commutes with a polynomial of the graph: where that polynomial has matrices
    and the decoder fewer outputs, they are multiplied first, Σ Aᵏ Z (cₖ W). So it is on a GPU; on the CPU results keep their bits.

    Args:
        propagation: the propagation of a model.
        p_pos: its decoder.
        z: the encoder's output.
        graph: the graph.
        rows: the nodes that are wanted, each once.
        seen: what else the propagation is given.
    """
    if rows is None and not kernels.fused(z):
        return p_pos(propagation(z, graph, **(seen or {})))
    parts = _parts(p_pos)
    head = None if parts is None else _linear(parts)
    narrow = head is not None and head.weight.shape[1] < z.shape[-1] and kernels.fused(z, head.weight)
    form = _polynomial(propagation, z, graph) if narrow or rows is not None else None
    if form is not None and head is not None and narrow:
        output = _narrow(*form, z, head.weight)
        output = output if head.bias is None else output + head.bias
        return output if rows is None else output.index_select(-2, rows)
    if rows is None or parts is None:
        output = p_pos(propagation(z, graph, **(seen or {})))
        return output if rows is None else output.index_select(-2, rows)
    if form is not None and form[2] is Basis.POWERS:
        h = propagate_rows(form[0], z, form[1], rows)
    else:
        h = propagation(z, graph, **(seen or {})).index_select(-2, rows)
    for part in parts:
        h = part.at_rows(h, rows) if isinstance(part, Dropout) else part(h)
    return h


def _narrow(operator: Operator, hops: Tensor, basis: Basis, z: Tensor, weight: Tensor) -> Tensor:
    """Σ pₖ(A) Z (cₖ W), all Z (cₖ W) in one product where they fit side by side."""
    # As products with one matrix for each trial: those keep the bits of a trial beside any number of others.
    hops = stacked_product(hops.flatten(0, 1), weight).unflatten(0, hops.shape[:2])
    if hops.shape[0] * hops.shape[2] > WIDEST:
        return propagate(operator, z, hops, basis)
    pages = stacked_product(z, hops.transpose(0, 1).flatten(1)).unflatten(-1, (hops.shape[0], hops.shape[2]))
    return gather(operator, pages.unbind(-2), basis)


def _polynomial(propagation: Any, z: Tensor, graph: Graph) -> tuple[Operator, Tensor, Basis] | None:
    """The polynomial with matrices that a propagation is, if nobody looks at it."""
    if z.ndim != 2 or not isinstance(propagation, nn.Module) or _watched(propagation):
        return None
    if type(propagation) is HopNetwork:
        found = graph.operator, propagation.coefficients, Basis.POWERS
    elif (
        type(propagation) is Unrolled
        and isinstance(propagation.adjoint, Polynomial)
        and isinstance(propagation.start, Input)
    ):
        if not any(leaf.matrix for leaf in propagation.leaves) or graph.smoother is None:
            return None
        found = graph.require_laplacian(), propagation.hops(graph, z), propagation.adjoint.basis or Basis.POWERS
    else:
        return None
    if found[1].ndim != 3:
        return None
    check_input(z, graph)
    return found


def _parts(p_pos: nn.Module) -> list[nn.Module] | None:
    """A decoder as parts that see one node at a time, if it is made of such ones and nobody looks at them."""
    flat = list(p_pos) if type(p_pos) is nn.Sequential else [p_pos]
    plain = all(type(part) in _ROW_BY_ROW and not _watched(part) for part in flat)
    return flat if plain and not _watched(p_pos) else None


def _linear(parts: list[nn.Module]) -> Linear | None:
    """The one layer that is left of a decoder when its dropout is idle."""
    left = [part for part in parts if not (isinstance(part, nn.Identity) or (isinstance(part, Dropout) and part.idle))]
    return left[0] if len(left) == 1 and isinstance(left[0], Linear) else None


def _watched(module: nn.Module) -> bool:
    """Whether somebody's hooks expect the module to be called."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)  # pyright: ignore[reportPrivateUsage]
    return any(hooks)
