"""Fixed propagations whose numbers are tensors, so that trials with different ones share a stack."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn

from unspool.graph import Graph, Normalisation, check_input
from unspool.models import Model
from unspool.objective import Fidelity, FilteredFidelity, Fixed, Ridge, Smoothness
from unspool.ops import Basis, propagate
from unspool.ops.kernels import KERNEL_DEVICES
from unspool.ops.solve import default_tolerance
from unspool.unrolling import Implicit, Input, Polynomial, Unrolled

#: Signals of all terms are kept; conjugate gradients, which keep none, take over where there would be more.
MOST_TERMS = 256


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
    if not (isinstance(model, Model) and isinstance(net, Unrolled)):
        return model
    if isinstance(net.adjoint, Implicit) and graph.device.type in KERNEL_DEVICES:
        hops = minimiser_hops(net, graph, next(model.parameters(), None))
        return model if hops is None else _with(model, FixedHops(hops, Basis.CHEBYSHEV))
    if not isinstance(net.adjoint, Polynomial):
        return model
    plain = all(type(term) in (Fidelity, FilteredFidelity, Smoothness, Ridge) for term in net.objective.terms)
    if net.leaves or not plain or not isinstance(net.start, Input) or (like := _any_parameter(model)) is None:
        return model
    hops = net.hops(graph.with_general_laplacian(), like.detach().new_empty(0).to(graph.device))
    if hops.shape[0] == 1:
        return model
    return _with(model, FixedHops(hops, Basis.POWERS if net.adjoint.basis is None else net.adjoint.basis))


def _with(model: Model, propagation: nn.Module) -> nn.Module:
    made = copy.copy(model)
    # Trap: a shallow copy of a module shares its dictionary of parts.
    made.__dict__["_modules"] = dict(model.__dict__["_modules"])
    made.propagation = propagation
    return made.train(model.training)


def _any_parameter(model: nn.Module) -> Tensor | None:
    return next(model.parameters(), None)


def minimiser_hops(net: Unrolled, graph: Graph, like: Tensor | None) -> Tensor | None:
    """The exact minimiser of γ‖H − X‖² + β‖BH‖² as a Chebyshev series; None for other problems, and where it would be too long.

    As many hops as conjugate gradients take, without their sums over nodes and without a look at any number on the way, so that
    an epoch can be captured and trials do not feel each other.

    Example:
        >>> import torch, unspool as us
        >>> model, ring = us.models.PPNP(5, 3, teleport=0.5), us.graph.ring(8)
        >>> x = torch.randn(8, 2)
        >>> hops = minimiser_hops(model.propagation, ring, next(model.parameters()))
        >>> torch.allclose(us.ops.propagate(ring, x, hops, Basis.CHEBYSHEV), model.propagation(x, ring), atol=1e-6)
        True
    """
    terms = net.objective.terms
    kinds = {type(term) for term in terms}
    if like is None or net.leaves or len(terms) != 2 or kinds != {Fidelity, Smoothness} or net.between is not None:
        return None
    weights = {type(term): term.weight for term in terms}  # type: ignore[attr-defined]
    plain = all(type(w) is Fixed and w.number for w in weights.values()) and all(
        type(term.metric) is Fixed and term.metric.number and float(term.metric.value) == 1.0  # type: ignore[attr-defined]
        for term in terms
    )
    # The frequencies of other graphs may lie where Chebyshev polynomials are not bounded; those are told what is wrong.
    if not plain or not (graph.undirected and graph.normalisation is Normalisation.SYMMETRIC):
        return None
    own, smooth = float(weights[Fidelity].value), float(weights[Smoothness].value)
    exact, adjoint = torch.finfo(like.dtype).eps, net.adjoint
    assert isinstance(adjoint, Implicit)
    # A solution that is asked for in less than full precision is another one.
    loose = adjoint.tolerance is not None and adjoint.tolerance > default_tolerance(like.dtype)
    if loose or own <= 0 or smooth < 0 or last_term(own / (own + smooth), exact) > MOST_TERMS:
        return None
    return minimiser_terms(own / (own + smooth), exact).to(like)


def minimiser_terms(teleport: float, exact: float) -> Tensor:
    r"""Chebyshev coefficients of the minimiser :math:`\gamma / (1 - (1-\gamma) a)`, as many as leave out less than ``exact``.

    They fall like :math:`r^k` with :math:`r = (1 - \sqrt{1-q^2}) / q`, q = 1 − γ: as fast as conjugate gradients converge. The count
    is a multiple of eight, so that similar trials share a stack.

    Example:
        >>> terms = minimiser_terms(0.1, 1e-7)
        >>> len(terms) - 1, round(float(terms.sum()), 6)  # at a = 1 every polynomial is 1, and so is the minimiser
        (40, 1.0)
    """
    ratio, first = _falling(teleport)
    terms = first * ratio ** torch.arange(last_term(teleport, exact) + 1, dtype=torch.float64)
    terms[0] /= 2
    return terms


def last_term(teleport: float, exact: float) -> int:
    """The number K of the last of these coefficients.

    Example:
        >>> last_term(0.1, 1e-7), last_term(1.0, 1e-7), last_term(1e-4, 1e-7)
        (40, 0, 1192)
    """
    ratio, first = _falling(teleport)
    if ratio == 0:
        return 0
    # What is left out after the term K: first · ratio^(K + 1) / (1 − ratio).
    last = math.log(exact / 2 * (1 - ratio) / first) / math.log(ratio)
    return max(8, 8 * math.ceil(last / 8))


def _falling(teleport: float) -> tuple[float, float]:
    """How fast the coefficients fall, and twice the first of them."""
    root = math.sqrt(teleport * (2 - teleport))  # √(1 − q²) without cancellation
    return (1 - teleport) / (1 + root), 2 * teleport / root
