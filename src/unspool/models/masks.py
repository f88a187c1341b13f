"""One mask for all hops, or a fresh one for every hop: dropout between the encoder and the graph."""

from __future__ import annotations

from enum import Enum
from typing import Any

from torch import Tensor

from unspool.graph import Graph
from unspool.nn import Dropout
from unspool.ops import Basis
from unspool.ops.per_hop import gather
from unspool.unrolling import Unrolled


class Masks(Enum):
    """How ``propagation_dropout`` falls on the encoded features Z in training; in evaluation nothing is dropped either way.

    ``ONCE``: one mask D before the hops, Σₖ Aᵏ D(Z) cₖ: what is lost is lost to every hop. ``EACH_HOP``: a fresh mask for each
    hop, Σₖ Aᵏ Dₖ(Z) cₖ: what one hop has lost another still sees, so the network leans on no single hop. Every mask is laid
    on Z itself and never on what was masked before, so both have the output without dropout as their mean.

    Example:
        >>> import torch, unspool as us
        >>> x, graph, seen = torch.eye(5), us.graph.ring(5), []
        >>> for masks in us.models.Masks:
        ...     _ = torch.manual_seed(0)
        ...     model = us.models.UGDGNN(5, 3, depth=4, propagation_dropout=0.5, masks=masks)
        ...     seen.append((model(x, graph), model.eval()(x, graph)))
        ...     print(masks.name, "takes", int(model.p_pre.after.count), "masks a pass")
        ONCE takes 1 masks a pass
        EACH_HOP takes 5 masks a pass
        >>> torch.equal(seen[0][0], seen[1][0]), torch.equal(seen[0][1], seen[1][1])  # in training, in evaluation
        (False, True)
    """

    ONCE = "once"
    EACH_HOP = "each_hop"


def masked_hops(propagation: Any, drop: Dropout, z: Tensor, graph: Graph) -> Tensor:
    """Σₖ pₖ(A) Dₖ(Z) cₖ for a propagation with hop coefficients: call number k of the dropout belongs to hop k.

    The masks are computed again in the backward pass, but Dₖ(Z) is kept for the gradient of cₖ: memory grows with depth.

    Example:
        >>> import torch, unspool as us
        >>> net, drop = us.HopNetwork([0.5, 0.5]), us.nn.Dropout(0.5)
        >>> masked_hops(net, drop, torch.ones(4, 2), us.graph.ring(4)).shape, int(drop.count)
        (torch.Size([4, 2]), 2)
    """
    hops, basis = _hops(propagation, z, graph)
    return gather(graph, [_weighed(drop(z), c) for c in hops.unbind(0)], basis or Basis.POWERS)


def _hops(propagation: Any, z: Tensor, graph: Graph) -> tuple[Tensor, Basis | None]:
    if isinstance(propagation, Unrolled):
        return propagation.hops(graph, z), getattr(propagation.adjoint, "basis", None)
    found: Any = propagation.hops
    hops: Any = found() if callable(found) else found
    return hops, getattr(propagation, "basis", None)


def _weighed(x: Tensor, c: Tensor) -> Tensor:
    """X c for a number, a diagonal or a matrix."""
    return (x @ c.to(x.dtype) if c.ndim == 2 else x * c).to(x.dtype)
