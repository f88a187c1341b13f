"""What a summand of an objective is: the contracts that shipped and user-defined terms fulfil."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.graph import Graph
from unspool.notebook import mathml
from unspool.objective import channel
from unspool.objective.belongings import coefficients_of
from unspool.objective.channel import Map
from unspool.objective.coefficient import INITIAL, Coefficient, Leaf, Values, as_coefficient
from unspool.objective.kind import Kind, kind_of

if TYPE_CHECKING:
    from unspool.objective.objective import Objective


@dataclass(frozen=True, eq=False)
class Given:
    """What a term is evaluated with: the input X, the graph, and the values of all coefficients at one layer.

    ``given[coefficient]`` is the coefficient's value, in the dtype and on the device of X.
    """

    x: Tensor
    graph: Graph
    # Trap: an object as default (INITIAL) could not be traced by torch.compile on torch 2.11; None stands for it.
    values: Values | None = None
    step: Map | None = None

    def __getitem__(self, coefficient: Coefficient | float) -> Map:
        value = as_coefficient(coefficient).evaluate(INITIAL if self.values is None else self.values)
        return value.to(self.x) if isinstance(value, Tensor) else value


@dataclass(frozen=True, eq=False)
class Stencil:
    r"""A gradient that is linear in H, L H and X: :math:`\nabla = H P + L H\,Q + X R`, with maps P, Q, R on channels: ``h``, ``lh``, ``x``.

    With L = I − A this is the form H ← H P' + A H Q' + X R' that every gradient step on it takes. Higher powers may follow:
    ``more_h`` are the maps of L² H, L³ H, ..., ``more_x`` those of L X, L² X, ...
    """

    h: Map = 0.0
    lh: Map = 0.0
    x: Map = 0.0
    more_h: tuple[Map, ...] = ()
    more_x: tuple[Map, ...] = ()

    def __add__(self, other: Stencil) -> Stencil:
        return Stencil(
            channel.add(self.h, other.h), channel.add(self.lh, other.lh), channel.add(self.x, other.x),
            _added(self.more_h, other.more_h), _added(self.more_x, other.more_x),
        )  # fmt: skip

    @property
    def of_h(self) -> tuple[Map, ...]:
        """The maps of H, L H, L² H, ..."""
        return (self.h, self.lh, *self.more_h)

    @property
    def of_x(self) -> tuple[Map, ...]:
        """The maps of X, L X, ..."""
        return (self.x, *self.more_x)

    @property
    def maps(self) -> tuple[Map, ...]:
        """All of them."""
        return (*self.of_h, *self.of_x)

    @property
    def plain(self) -> bool:
        """Whether there are no powers beyond H, L H and X."""
        return not self.more_h and not self.more_x

    @property
    def homogeneous(self) -> Stencil:
        """The part in H: the Hessian."""
        return Stencil(self.h, self.lh, more_h=self.more_h)

    def at_frequency(self, frequency: float) -> Map:
        """P + λ Q + ...: the curvature of the objective for signals of graph frequency λ."""
        return _at(self.of_h, frequency)

    def input_at_frequency(self, frequency: float) -> Map:
        """What multiplies X at graph frequency λ."""
        return _at(self.of_x, frequency)


class Term(ABC):
    """One summand of an objective, usually a frozen dataclass with a ``weight``.

    Subclass exactly one of :class:`SmoothTerm`, :class:`StencilTerm`, :class:`ProximableTerm` and :class:`CompositeTerm`, which decides its
    :class:`~unspool.objective.Kind`, and let :func:`unspool.testing.check_term` tell you whether it keeps the laws.
    """

    #: Whether the term mentions X; an objective of which no term does has the minimiser 0.
    uses_input: bool = True

    @abstractmethod
    def value(self, h: Tensor, given: Given) -> Tensor:
        """The term's value, summed over nodes and channels: shape (...) for h of shape (..., nodes, features)."""

    def is_convex(self, given: Given) -> bool:
        """Whether the term is convex at these values: by default, whether its weight is not negative."""
        weight = getattr(self, "weight", None)
        return weight is None or bool((given.x.new_zeros(()) + given[weight] >= 0).all())

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """Every coefficient that it keeps, in fields, lists, dicts or parts of its own."""
        return coefficients_of(self)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The learnable leaves it mentions, each once."""
        return tuple(dict.fromkeys(leaf for c in self.coefficients for leaf in c.leaves))

    @property
    def name(self) -> str:
        """The class name, used in messages."""
        return type(self).__name__

    def formula(self) -> str:
        """How the term is printed."""
        return f"{self.name}(H)"

    def _repr_html_(self) -> str:
        return mathml(self.formula())

    def scaled(self, factor: Any) -> Term:
        """The term times a number or coefficient."""
        if not is_dataclass(self) or not hasattr(self, "weight"):
            raise TypeError(
                f"{self.name} has no weight to scale; give it a dataclass field 'weight' or override scaled()"
            )
        return replace(self, weight=as_coefficient(factor) * self.weight)  # type: ignore[attr-defined, type-var]

    def __add__(self, other: Any) -> Objective:
        from unspool.objective.objective import Objective

        return Objective((self,)) + other

    def __mul__(self, factor: Any) -> Term:
        return self.scaled(factor)

    __rmul__ = __mul__

    def __str__(self) -> str:
        return self.formula()


class SmoothTerm(Term):
    """A term with a Lipschitz gradient."""

    kind: ClassVar[Any] = Kind.SMOOTH
    #: Whether the gradient is linear in (H, X); exact solvers and linear theory need it.
    affine_gradient: bool = False

    @abstractmethod
    def gradient(self, h: Tensor, given: Given) -> Tensor:
        """The gradient in H, of the shape of h."""

    @abstractmethod
    def lipschitz(self, given: Given) -> Map:
        """A Lipschitz constant of the gradient."""

    def diagonal(self, h: Tensor, given: Given) -> Map:
        """The diagonal of the Hessian at h (or of a quadratic that lies above the term), of shape (nodes, 1) or (nodes, features).

        :class:`~unspool.algorithm.Jacobi` divides by it. The Lipschitz constant, where nothing better is known.
        """
        return self.lipschitz(given)


class StencilTerm(SmoothTerm):
    """A quadratic term that states its stencil; gradient and Lipschitz constant follow from it."""

    affine_gradient = True

    @abstractmethod
    def stencil(self, given: Given) -> Stencil:
        """The maps P, Q, R of the gradient H P + L H Q + X R."""

    def gradient(self, h: Tensor, given: Given) -> Tensor:
        """H P + L H Q + X R."""
        return stencil_gradient(self.stencil(given), h, given)

    def lipschitz(self, given: Given) -> Map:
        """The largest curvature over the graph's possible frequencies."""
        return stencil_lipschitz(self.stencil(given), given.graph)

    def diagonal(self, h: Tensor, given: Given) -> Map:
        """That of P + L Q for numbers and diagonals; the Lipschitz constant for matrices and higher powers."""
        stencil = self.stencil(given)
        if not stencil.plain or max(channel.rank(stencil.h), channel.rank(stencil.lh)) == 2:
            return self.lipschitz(given)
        return stencil.h if channel.is_zero(stencil.lh) else stencil.h + given.graph.laplacian_diagonal * stencil.lh


class ProximableTerm(Term):
    """A term with a proximal operator that can be computed."""

    kind: ClassVar[Any] = Kind.PROXIMABLE
    #: Acts on every entry alone, so that a projection onto an interval may follow it.
    separable: bool = False
    #: Is itself the indicator of an interval, entry by entry.
    interval: bool = False

    @abstractmethod
    def prox(self, v: Tensor, step: Map, given: Given) -> Tensor:
        """argmin_y term(y) + ‖y − v‖² / (2 step)."""


def checked_kind(term: Any) -> Kind:
    """The kind of a term that is to stand in an objective; refuse what would be dropped there or counted twice."""
    if not isinstance(term, Term):
        raise TypeError(f"{term!r} is not a term: add terms such as Fidelity(0.1) + Smoothness(0.9)")
    if isinstance(term, StencilTerm) and type(term).gradient is not StencilTerm.gradient:
        raise IncompatibleError(
            f"{term.name} writes a gradient in addition to its stencil, which no network would ask for; write stencil alone, or "
            "inherit from SmoothTerm"
        )
    return kind_of(term)


def stencil_gradient(stencil: Stencil, h: Tensor, given: Given) -> Tensor:
    """H P + L H Q + X R, skipping what is identically zero."""
    total = channel.apply(h, stencil.h)
    return _powers(_powers(total, h, stencil.of_h[1:], given.graph), given.x, stencil.of_x, given.graph, first=0)


def _powers(total: Tensor, signal: Tensor, maps: tuple[Map, ...], graph: Graph, first: int = 1) -> Tensor:
    """total + Σ Lᵖ signal Mₚ, with p from ``first`` on."""
    for p, t in enumerate(channel.trimmed(maps), start=first):
        signal = graph.laplacian_times(signal) if p else signal
        if not channel.is_zero(t):
            total = total + channel.apply(signal, t)
    return total


def stencil_lipschitz(stencil: Stencil, graph: Graph) -> Map:
    """max over λ in [0, 2·scale] of ‖P + λ Q + ...‖: at the ends without higher powers, a close bound with them."""
    return channel.largest_norm(stencil.of_h, 2.0 * graph.scale)


def _at(maps: tuple[Map, ...], frequency: float) -> Map:
    total: Map = maps[0]
    for power, t in enumerate(maps[1:], start=1):
        total = channel.add(total, channel.compose(frequency**power, t))
    return total


def _added(a: tuple[Map, ...], b: tuple[Map, ...]) -> tuple[Map, ...]:
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    return tuple(channel.add(t, shorter[i]) if i < len(shorter) else t for i, t in enumerate(longer))
