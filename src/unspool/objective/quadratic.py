"""Quadratic terms: fidelity, smoothness, ridge, and smoothness with a signed weight per edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.objective import channel
from unspool.objective.channel import Map, largest_size
from unspool.objective.coefficient import Coefficient, Fixed, Leaf, as_coefficient
from unspool.objective.formula import leading
from unspool.objective.term import Given, SmoothTerm, Stencil, StencilTerm

_ONE = Fixed(1.0)


def squared_norm(inner: str, weight: Coefficient, metric: Coefficient) -> str:
    """How weight · ‖inner‖²_metric is printed."""
    suffix = "" if str(metric) == "1" else f"_({metric})" if metric.factor != str(metric) else f"_{metric}"
    return f"{leading(weight)}‖{inner}‖²{suffix}"


def quadratic_form(m: Tensor, left: Tensor, t: Map) -> Tensor:
    """tr(left T mᵀ), per leading dimension."""
    return (channel.apply(left, t) * m).sum((-2, -1))


@dataclass(frozen=True, eq=False)
class Weighted(StencilTerm):
    """A quadratic term with a weight and a metric."""

    weight: Any = _ONE
    metric: Any = _ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_coefficient(self.weight))
        object.__setattr__(self, "metric", as_coefficient(self.metric))
        if not self.weight.number:
            raise TypeError(f"the weight of {self.name} is not a single number; give a diagonal or matrix as metric=")

    def twice(self, given: Given) -> Map:
        """2 · weight · T."""
        return channel.compose(channel.compose(2.0, given[self.weight]), given[self.metric])

    def is_convex(self, given: Given) -> bool:
        """Whether weight · T is positive semi-definite."""
        smallest, _ = channel.eigenvalue_range(self.twice(given))
        return bool(smallest >= -1e-12)


@dataclass(frozen=True, eq=False)
class Fidelity(Weighted):
    r"""Stay close to the input: :math:`\alpha \lVert H - X\rVert_{T}^2`.

    Args:
        weight: α, a number or coefficient.
        metric: T on channels; the identity when omitted.

    Example:
        >>> import torch, unspool as us
        >>> x, h = torch.zeros(3, 2), torch.ones(3, 2)
        >>> term = us.Fidelity(0.5)
        >>> print(term, "=", float(term.value(h, us.Given(x, us.graph.ring(3)))))
        0.5 ‖H − X‖² = 3.0
    """

    def value(self, h: Tensor, given: Given) -> Tensor:
        """α tr((H−X) T (H−X)ᵀ)."""
        offset = h - given.x
        return quadratic_form(offset, offset, given[self.metric]) * given[self.weight]

    def stencil(self, given: Given) -> Stencil:
        """2α (H − X) T."""
        t = self.twice(given)
        return Stencil(h=t, x=channel.negative(t))

    def formula(self) -> str:
        """α ‖H − X‖²_T."""
        return squared_norm("H − X", self.weight, self.metric)


@dataclass(frozen=True, eq=False)
class Smoothness(Weighted):
    r"""Neighbours agree: :math:`\beta \lVert B H\rVert_{T}^2 = \beta \operatorname{tr}(H^\top L H\,T)`.

    L is I − A under symmetric normalisation and D − A on a graph that is not normalised; directed graphs and
    random-walk normalisation have no such L and are refused.

    Args:
        weight: β, a number or coefficient; negative values ask neighbours to differ.
        metric: T on channels; the identity when omitted.

    Example:
        >>> import torch, unspool as us
        >>> constant = torch.ones(4, 1)
        >>> abs(float(us.Smoothness(1.0).value(constant, us.Given(constant, us.graph.ring(4))))) < 1e-6
        True
    """

    uses_input = False

    def value(self, h: Tensor, given: Given) -> Tensor:
        """β tr(Hᵀ L H T)."""
        return quadratic_form(h, given.graph.laplacian_times(h), given[self.metric]) * given[self.weight]

    def stencil(self, given: Given) -> Stencil:
        """2β L H T."""
        return Stencil(lh=self.twice(given))

    def formula(self) -> str:
        """β ‖B H‖²_T."""
        return squared_norm("B H", self.weight, self.metric)


@dataclass(frozen=True, eq=False)
class Ridge(Weighted):
    r"""Stay small: :math:`\rho \lVert H\rVert_{T}^2`.

    Example:
        >>> import unspool as us
        >>> w = us.Relaxed(8, name="W")
        >>> print(us.Smoothness(1.0, metric=w) + us.Ridge(1.0, metric=1 - w))
        ‖B H‖²_W  +  ‖H‖²_(I − W)
    """

    uses_input = False

    def value(self, h: Tensor, given: Given) -> Tensor:
        """ρ tr(H T Hᵀ)."""
        return quadratic_form(h, h, given[self.metric]) * given[self.weight]

    def stencil(self, given: Given) -> Stencil:
        """2ρ H T."""
        return Stencil(h=self.twice(given))

    def formula(self) -> str:
        """ρ ‖H‖²_T."""
        return squared_norm("H", self.weight, self.metric)


@dataclass(frozen=True, eq=False)
class EdgeSmoothness(SmoothTerm):
    r"""Smoothness with one signed weight per edge: :math:`\beta \sum_e w_e \lVert (BH)_e\rVert^2`.

    A positive weight asks two neighbours to agree, a negative one to differ: the sentence after eq. (2) of the paper,
    which a metric on channels cannot express (docs/errata.md, 7). The weights belong to one graph; their order is that of
    :func:`unspool.graph.edge_list`. They may be learnt; gradients then flow through the stored steps, since no
    polynomial of one fixed matrix describes the network.

    Args:
        edges: a tensor of shape (edges,), or ``Learnable(tensor)``.
        weight: β.

    Example:
        >>> import torch, unspool as us
        >>> signs = torch.tensor([1.0, -1.0])
        >>> print(us.Fidelity(1.0) + us.EdgeSmoothness(signs, weight=0.1))
        ‖H − X‖²  +  0.1 Σₑ wₑ ‖(B H)ₑ‖²
    """

    edges: Any
    weight: Any = _ONE
    affine_gradient = True
    uses_input = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", as_coefficient(self.edges))
        object.__setattr__(self, "weight", as_coefficient(self.weight))
        if not self.weight.number:
            raise TypeError(
                "the weight of EdgeSmoothness is not a single number; weights of edges are its first argument"
            )

    def edge_weights(self, h: Tensor, given: Given) -> Tensor:
        """w, whatever h is; a penalty that forgives has a method of the same name, where it is not."""
        return self._edge_weights(given)

    def _edge_weights(self, given: Given) -> Tensor:
        w = given[self.edges]
        count = given.graph.incidence().shape[0]
        fits = isinstance(w, Tensor) and w.shape in ((count,), (*given.x.shape[:-2], count))
        if not isinstance(w, Tensor) or not fits:
            shape = tuple(w.shape) if isinstance(w, Tensor) else "a number"
            raise ValueError(
                f"EdgeSmoothness has weights of shape {shape}, but the graph has {count} edges: expected ({count},)"
            )
        return w

    def value(self, h: Tensor, given: Given) -> Tensor:
        """β Σ wₑ ‖(BH)ₑ‖²."""
        difference = given.graph.incidence() @ h
        return (difference.square() * self._edge_weights(given)[..., None]).sum((-2, -1)) * given[self.weight]

    def gradient(self, h: Tensor, given: Given) -> Tensor:
        """2β Bᵀ diag(w) B H."""
        b = given.graph.incidence()
        return (b.T @ ((b @ h) * self._edge_weights(given)[..., None])) * (2 * given[self.weight])

    def lipschitz(self, given: Given) -> Map:
        """2 |β| max|w| λmax(L)."""
        return (
            4 * given.graph.scale * channel.spectral_norm(given[self.weight]) * largest_size(self._edge_weights(given))
        )

    def diagonal(self, h: Tensor, given: Given) -> Map:
        """That of 2β Bᵀ diag(w) B; negative weights count by their size, so that every node's step stays one downhill."""
        weights = (self._edge_weights(given) * given[self.weight]).abs()
        return 2 * (given.graph.squared_incidence.T @ weights[..., None])

    def is_convex(self, given: Given) -> bool:
        """Whether all β wₑ are non-negative (sufficient)."""
        return bool((self._edge_weights(given) * given[self.weight] >= 0).all())

    def formula(self) -> str:
        """β Σₑ wₑ ‖(B H)ₑ‖², with the name of the weights where they have one."""
        name = self.edges.name if isinstance(self.edges, Leaf | Fixed) else None
        return f"{leading(self.weight)}Σₑ {'w' if name is None else name}ₑ ‖(B H)ₑ‖²"


def require_symmetric(term: SmoothTerm) -> None:
    """Refuse a quadratic term whose metric is a free matrix, where a true gradient is needed."""
    metric = getattr(term, "metric", None)
    if isinstance(metric, Coefficient) and not metric.symmetric:
        raise IncompatibleError(
            f"{term.name} has the metric {metric}, a matrix that need not be symmetric: its step is not the gradient of any "
            "objective, so there is no minimiser; use Symmetric(features) or unroll steps"
        )


__all__ = ["EdgeSmoothness", "Fidelity", "Ridge", "Smoothness", "require_symmetric"]
