"""The objective: a sum of terms that knows what it is, and not how it is minimised."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.graph import Graph
from unspool.notebook import mathml, paragraphs
from unspool.objective import channel
from unspool.objective.channel import Map
from unspool.objective.coefficient import INITIAL, Coefficient, Leaf, Values, as_coefficient
from unspool.objective.composite import check_operator_of
from unspool.objective.computed import values_at
from unspool.objective.kind import Kind
from unspool.objective.proximable import check_room
from unspool.objective.term import (
    Given,
    ProximableTerm,
    SmoothTerm,
    Stencil,
    StencilTerm,
    Term,
    checked_kind,
    stencil_gradient,
    stencil_lipschitz,
)
from unspool.objective.width import check_width
from unspool.ops.transforming import transforming


@dataclass(frozen=True, eq=False, repr=False)
class Objective:
    r"""A graph signal denoising problem :math:`\min_H \sum_t \text{term}_t(H)`, eq. (2) of the paper.

    Made by adding terms; prints as maths; answers what it is. Every term is exactly one kind, smooth, proximable or composite, which is
    decided here, so that none can be dropped or counted twice later.

    Attributes:
        terms: the summands.
        note: printed behind the formula, where it needs a word.
        kinds: the kind of each term, in order.
        smooth_terms: those that enter through their gradient.
        proximable_terms: those that enter through their proximal operator.
        composite_terms: those that are a proximable function of a linear operator of H.

    Example:
        >>> import torch, unspool as us
        >>> alpha = us.Learnable(0.1, per_layer=True, within=(0, 1), name="α")
        >>> objective = us.Fidelity(alpha) + us.Smoothness(1 - alpha)
        >>> print(objective)
        αₖ ‖H − X‖²  +  (1 − αₖ) ‖B H‖²
        >>> objective.quadratic, objective.smooth
        (True, True)
        >>> graph = us.graph.ring(4)
        >>> x = torch.tensor([[1.0], [0.0], [1.0], [0.0]])
        >>> objective.convex(graph)
        True
        >>> round(float(objective.value(x, x, graph)), 4)
        1.2
    """

    terms: tuple[Term, ...]
    note: str = ""
    kinds: tuple[Kind, ...] = field(init=False)
    smooth_terms: tuple[SmoothTerm, ...] = field(init=False)
    proximable_terms: tuple[ProximableTerm, ...] = field(init=False)
    composite_terms: tuple[Any, ...] = field(init=False)

    def __init_subclass__(cls) -> None:
        raise TypeError(
            f"{cls.__name__} inherits from Objective, which is a plain sum and would lose what it adds; subclass Term instead"
        )

    def __post_init__(self) -> None:
        terms = tuple(self.terms)
        if not terms:
            raise IncompatibleError("an objective needs at least one term, such as Fidelity(0.1)")
        kinds = tuple(checked_kind(term) for term in terms)
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "smooth_terms", self.of_kind(Kind.SMOOTH))
        object.__setattr__(self, "proximable_terms", self.of_kind(Kind.PROXIMABLE))
        object.__setattr__(self, "composite_terms", self.of_kind(Kind.COMPOSITE))
        for term in self.composite_terms:
            check_operator_of(term)
        check_room(self.proximable_terms)

    # -- structure -------------------------------------------------------------------------------------------------

    def of_kind(self, kind: Kind) -> tuple[Any, ...]:
        """The terms of one kind, in order."""
        return tuple(term for term, own in zip(self.terms, self.kinds, strict=True) if own == kind)

    @property
    def quadratic(self) -> bool:
        """Whether every term is quadratic."""
        return self.smooth and all(getattr(term, "affine_gradient", False) for term in self.smooth_terms)

    @property
    def smooth(self) -> bool:
        """Whether every term has a gradient."""
        return len(self.smooth_terms) == len(self.terms)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """All learnable coefficients, each once."""
        return tuple(dict.fromkeys(leaf for t in self.terms for leaf in t.leaves))

    @property
    def per_layer(self) -> bool:
        """Whether any coefficient differs from layer to layer."""
        return any(leaf.per_layer for leaf in self.leaves)

    def convex(self, graph: Graph, values: Values = INITIAL) -> bool:
        """Whether the objective is convex on this graph, at the given (or starting) values.

        Quadratic terms are judged together, on this graph; the others each alone, by what they say of themselves, so that
        False can also mean "not shown" for an objective whose terms make up for each other.
        """
        given = Given(self._probe(graph, values), graph, values)
        rest = [t for t in self.terms if not getattr(t, "affine_gradient", False)]
        if not all(t.is_convex(given) for t in rest):
            return False
        return len(rest) == len(self.terms) or self.smallest_curvature(given)[0] >= -1e-9

    def _probe(self, graph: Graph, values: Values) -> Tensor:
        """A signal to look at terms with: as wide as weights of entries are, where there are some."""
        held = [c.evaluate(values) for term in self.smooth_terms for c in term.coefficients]
        widths = [c.shape[-1] for c in held if isinstance(c, Tensor) and c.ndim == 2]
        return torch.zeros(graph.nodes, max(widths, default=1), dtype=graph.dtype, device=graph.device)

    # -- at a point ------------------------------------------------------------------------------------------------

    def value(self, h: Tensor, x: Tensor, graph: Graph, values: Values = INITIAL, step: Map | None = None) -> Tensor:
        """The objective at H, at the given (or starting) values of its coefficients."""
        return self.value_at(h, Given(x, graph, self._values(x, graph, values), step))

    def gradient(self, h: Tensor, x: Tensor, graph: Graph, values: Values = INITIAL) -> Tensor:
        """The gradient of the smooth part at H."""
        return self.gradient_at(h, Given(x, graph, self._values(x, graph, values)))

    def _values(self, x: Tensor, graph: Graph, values: Values) -> Values:
        """Values without a network; refused where they begin differently in every layer."""
        rules = [leaf for leaf in self.leaves if type(leaf).start_layers is not Leaf.start_layers]
        if rules and values is INITIAL:
            raise IncompatibleError(
                f"the coefficient {rules[0]} differs from layer to layer, and with it the objective; give values=net.values(layer)"
            )
        values = values_at(self.leaves, x, graph, values)
        check_width(self, x, values)
        return values

    def value_at(self, h: Tensor, given: Given) -> Tensor:
        """The sum of all terms' values."""
        total = self.terms[0].value(h, given)
        for term in self.terms[1:]:
            total = total + term.value(h, given)
        return total

    def gradient_at(self, h: Tensor, given: Given) -> Tensor:
        """The sum of the smooth terms' gradients, quadratic ones through one shared stencil."""
        total = stencil_gradient(self.stencil(given), h, given)
        for term in self.smooth_terms:
            if not isinstance(term, StencilTerm):
                total = total + term.gradient(h, given)
        return total

    def stencil(self, given: Given) -> Stencil:
        """The joint stencil of all quadratic terms."""
        total = Stencil()
        for term in self.terms:
            if isinstance(term, StencilTerm):
                total = total + term.stencil(given)
        return total

    def lipschitz(self, given: Given) -> Map:
        """A Lipschitz constant of the smooth part's gradient."""
        total = stencil_lipschitz(self.stencil(given), given.graph)
        for term in self.smooth_terms:
            if not isinstance(term, StencilTerm):
                total = total + term.lipschitz(given)
        return total

    def curvature(self, given: Given, exact: bool = False) -> tuple[Map, Map]:
        """Smallest and largest eigenvalue of the quadratic terms' Hessian (bounds on them, where there are powers of L).

        Over all frequencies a graph can have, [0, 2·scale], or with ``exact`` up to this graph's largest.
        """
        top = given.graph.largest_frequency if exact else 2.0 * given.graph.scale
        return channel.eigenvalue_bounds(self.stencil(given).of_h, top)

    def smallest_curvature(self, given: Given) -> tuple[float, float]:
        """Bounds on the smallest eigenvalue of all quadratic terms' Hessian, on this graph and without a stencil too.

        Example:
            >>> import torch, unspool as us
            >>> graph, x = us.graph.path(3), torch.zeros(3, 1)
            >>> objective = us.Fidelity(0.5) + us.EdgeSmoothness(torch.tensor([1.0, -0.1]))  # convex as a sum
            >>> low, high = objective.smallest_curvature(us.Given(x, graph))
            >>> 0.8 < low <= high < 1.0
            True
        """
        from unspool.objective.curvature import smallest_curvature

        return smallest_curvature(self, given)

    def diagonal_at(self, h: Tensor, given: Given) -> Map:
        """The sum of the smooth terms' diagonals: that of the Hessian at h, or of a quadratic above it."""
        total: Map = 0.0
        for term in self.smooth_terms:
            total = total + term.diagonal(h, given)
        return total

    def hessian_times(self, h: Tensor, v: Tensor, given: Given) -> Tensor:
        """The Hessian of the smooth terms at h, times v: by stencils where there are some, by autograd for the other terms.

        Example:
            >>> import torch, unspool as us
            >>> x, graph = torch.eye(3), us.graph.ring(3)
            >>> (us.Fidelity(0.5) + us.Ridge(1.0)).hessian_times(x, x, us.Given(x, graph)).diagonal()
            tensor([3., 3., 3.])
        """
        total = stencil_gradient(self.stencil(given).homogeneous, v, given)
        others = [term for term in self.smooth_terms if not isinstance(term, StencilTerm)]
        for term in others:
            total = total + _hessian_times(term, h, v, given)
        return total

    def prox_at(self, v: Tensor, step: Map, given: Given) -> Tensor:
        """The proximal operator of the terms that are not smooth."""
        for term in _in_order(self.proximable_terms):
            v = term.prox(v, step, given)
        return v

    # -- arithmetic and printing -------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Objective:
        if isinstance(other, Objective):
            return Objective(self.terms + other.terms)
        if isinstance(other, Term):
            return Objective((*self.terms, other))
        raise TypeError(f"cannot add {other!r} to an objective: it is not a term")

    def __mul__(self, factor: Any) -> Objective:
        return Objective(tuple(t.scaled(factor) for t in self.terms))

    __rmul__ = __mul__

    @property
    def formula(self) -> str:
        """The sum alone, in Unicode, without the note."""
        return "  +  ".join(t.formula() for t in self.terms).replace("  +  −", "  −  ")

    def html(self) -> str:
        """The formula as MathML, and the note below it, for a notebook."""
        return mathml(self.formula) + paragraphs([self.note] if self.note else [])

    _repr_html_ = html

    def __str__(self) -> str:
        return f"{self.formula}   ({self.note})" if self.note else self.formula

    def __repr__(self) -> str:
        return f"Objective({self})"


def as_objective(value: Any) -> Objective:
    """A single term is an objective of one term."""
    if isinstance(value, Term):
        return Objective((value,))
    if not isinstance(value, Objective):
        raise TypeError(f"{value!r} is not an objective: add terms such as Fidelity(0.1) + Smoothness(0.9)")
    return value


def check_proximable(objective: Objective) -> None:
    """Refuse sums of proximable terms whose joint proximal operator is not the one after the other, and weights that start below 0."""
    _in_order(objective.proximable_terms)
    for term in (*objective.proximable_terms, *objective.composite_terms):
        if type(term).is_convex is Term.is_convex and (lowest := _lowest_weight(term)) < 0:
            raise IncompatibleError(
                f"{term.formula()} is not convex at these values, so it has no proximal operator; its weight is −{-lowest:.4g}: keep it non-negative"
            )


def _lowest_weight(term: Term) -> float:
    """The smallest number in the weight that a term starts with."""
    weight = getattr(term, "weight", None)
    if not isinstance(weight, Coefficient | float | int):
        return 0.0
    value = as_coefficient(weight).evaluate(INITIAL)
    return float(value.detach().min()) if isinstance(value, Tensor) else float(value)


def _in_order(terms: tuple[ProximableTerm, ...]) -> tuple[ProximableTerm, ...]:
    """Order in which proximal operators compose: one term, then projections onto intervals."""
    intervals = tuple(t for t in terms if t.interval)
    others = tuple(t for t in terms if not t.interval)
    if len(others) > 1:
        raise IncompatibleError(
            f"the proximal operator of {others[0].name} + {others[1].name} is not known; keep one of them"
        )
    if others and intervals and not others[0].separable:
        raise IncompatibleError(
            f"the proximal operator of {others[0].name} + {intervals[0].name} is not known, because {others[0].name} couples entries; keep one"
        )
    return others + intervals  # in one dimension, prox of f + interval is the projection after prox of f


def _hessian_times(term: SmoothTerm, h: Tensor, v: Tensor, given: Given) -> Tensor:
    if getattr(term, "affine_gradient", False):
        return term.gradient(v, given) - term.gradient(torch.zeros_like(v), given)
    # The pull-back of the gradient: the Hessian is its own transpose.
    if torch.compiler.is_compiling() or transforming():
        return torch.func.vjp(lambda at: term.gradient(at, given), h)[1](v)[0]
    # Trap: torch.func does not go with the hooks of checkpoints, and torch.autograd.grad not with torch.func.
    values = {} if given.values is None else given.values
    told = (h, v, given.x, *(values[leaf] for leaf in term.leaves if leaf in values))
    # Where nothing asks for gradients, the point that is differentiated at must not.
    again = torch.is_grad_enabled() and any(t.requires_grad for t in told)
    with torch.enable_grad():
        at = h.view_as(h) if h.requires_grad else h.detach().requires_grad_()
        slope = term.gradient(at, given)
        if not slope.requires_grad:
            return torch.zeros_like(v)
        return torch.autograd.grad(slope, at, v, create_graph=again, allow_unused=True, materialize_grads=True)[0]
