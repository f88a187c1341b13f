"""Fixed propagations whose numbers are tensors, so that trials with different ones share a stack."""

from __future__ import annotations

import copy

from torch import Tensor, nn

from unspool.graph import Graph, check_input
from unspool.models import Model
from unspool.objective import Fidelity, FilteredFidelity, Ridge, Smoothness
from unspool.ops import Basis, propagate
from unspool.unrolling import Input, Polynomial, Unrolled


class FixedHops(nn.Module):
    """Σₖ pₖ(S) X cₖ with coefficients that are not learnt, kept in a buffer.

    Example:
        >>> import torch, unspool as us
        >>> hops = torch.tensor([0.1, 0.9])
        >>> FixedHops(hops, us.Basis.POWERS)(torch.ones(3, 1), us.graph.ring(3)).flatten()
        tensor([1., 1., 1.])
    """

    hops: Tensor

    def __init__(self, hops: Tensor, basis: Basis) -> None:
        super().__init__()
        self.register_buffer("hops", hops.detach().clone())
        self.basis = basis

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """The sum."""
        check_input(x, graph)
        return propagate(graph.require_laplacian(), x, self.hops, self.basis)


def with_fixed_hops(model: nn.Module, graph: Graph) -> nn.Module:
    """The same model with its fixed linear propagation as hop coefficients; any other model as it is.

    The teleport of an APPNP is a number in its objective, but all that its layers do is a sum over hops, and the coefficients
    of that sum can lie in a tensor. The model that was given keeps its own propagation; the weights are shared.

    Example:
        >>> import torch, unspool as us
        >>> x, graph = torch.eye(5), us.graph.ring(5)
        >>> appnp = us.models.APPNP(5, 3, teleport=0.3).eval()
        >>> torch.equal(with_fixed_hops(appnp, graph)(x, graph), appnp(x, graph))
        True
    """
    net = getattr(model, "propagation", None)
    if not (isinstance(model, Model) and isinstance(net, Unrolled) and isinstance(net.adjoint, Polynomial)):
        return model
    plain = all(type(term) in (Fidelity, FilteredFidelity, Smoothness, Ridge) for term in net.objective.terms)
    if net.leaves or not plain or not isinstance(net.start, Input) or (like := _any_parameter(model)) is None:
        return model
    hops = net.hops(graph.with_general_laplacian(), like.detach().new_empty(0).to(graph.device))
    if hops.shape[0] == 1:
        return model
    made = copy.copy(model)
    # Trap: a shallow copy of a module shares its dictionary of parts.
    made.__dict__["_modules"] = dict(model.__dict__["_modules"])
    made.propagation = FixedHops(hops, Basis.POWERS if net.adjoint.basis is None else net.adjoint.basis)
    return made.train(model.training)


def _any_parameter(model: nn.Module) -> Tensor | None:
    return next(model.parameters(), None)
