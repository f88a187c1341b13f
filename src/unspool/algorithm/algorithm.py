"""What an algorithm is: one update rule on a problem, with no loop and no parameters of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unspool.algorithm.fused import FusedStep
from unspool.errors import IncompatibleError, InputError
from unspool.objective import Coefficient, Fixed, Given, Kind, Objective, Term, channel, check_proximable, kind_of
from unspool.objective.belongings import coefficients_of
from unspool.objective.channel import Map
from unspool.objective.coefficient import Leaf, as_coefficient

#: The state of an algorithm: a tuple whose first entry is the current iterate H.
State = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Problem:
    """An objective at one layer, with its input, graph and coefficient values filled in: all an algorithm sees.

    The iterates handed to :meth:`gradient` are tensors when a network runs, and polynomials of the graph when it is
    lowered; an update rule that only adds, scales and asks for gradients works on both.

    Attributes:
        objective: what is minimised.
        given: input, graph, values.
        layer: 1 for the first step.
        fused: the gradient step in lowest terms, where the network knows it.
    """

    objective: Objective
    given: Given
    layer: int = 1
    fused: FusedStep | None = None

    def gradient(self, h: Any) -> Any:
        """The gradient of the smooth terms at h."""
        return self.objective.gradient_at(h, self.given)

    def descend(self, h: Any, step: Map) -> Any:
        """h − step · ∇f(h); in lowest terms where the network knows its step beforehand (plain and proximal gradient)."""
        if self.fused is not None and isinstance(h, Tensor) and self.given.graph.scale == 1.0:
            return self.fused(h, self.given)
        return h - times(self.gradient(h), step)

    @property
    def composite_terms(self) -> tuple[Any, ...]:
        """The terms g(K H) of the objective, each with its ``operator`` K."""
        return self.objective.composite_terms

    def prox(self, v: Any, step: Map) -> Any:
        """The proximal operator of step times the other terms; v itself where there are none."""
        return self.objective.prox_at(v, step, self.given)

    def value(self, h: Tensor) -> Tensor:
        """The objective at h."""
        return self.objective.value_at(h, self.given)

    def lipschitz(self) -> Map:
        """A Lipschitz constant of the gradient; one for each signal, (..., 1, 1), where a stack has weights of its own."""
        return self.objective.lipschitz(self.given)

    def steepest(self) -> float:
        """The largest of them."""
        return float(torch.as_tensor(self.lipschitz()).detach().amax())

    def diagonal(self, h: Tensor) -> Map:
        """The diagonal of the smooth terms' Hessian at h, of shape (nodes, 1) or (nodes, features), or a number that bounds it."""
        return self.objective.diagonal_at(h, self.given)

    def hessian_times(self, h: Tensor, v: Tensor) -> Tensor:
        """The Hessian of the smooth terms at h, times v; differentiable like everything else."""
        return self.objective.hessian_times(h, v, self.given)

    def curvature(self) -> tuple[Map, Map]:
        """Bounds (μ, L) on the eigenvalues of the Hessian of a quadratic objective."""
        return self.objective.curvature(self.given)

    def __getitem__(self, coefficient: Coefficient | float) -> Map:
        return self.given[coefficient]


@dataclass(frozen=True)
class InverseLipschitz:
    """The step size factor / L, from the objective's own Lipschitz constant at each layer.

    Example:
        >>> import unspool as us
        >>> us.GradientDescent(step=us.InverseLipschitz()).step
        InverseLipschitz(factor=1.0)
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.factor < 2:
            raise ValueError(f"a step of {self.factor:g}/L does not converge: the factor must lie in (0, 2)")


Step = Coefficient | InverseLipschitz


def as_step(value: Any) -> Step:
    """Numbers become fixed step sizes; coefficients and rules stay what they are."""
    return value if isinstance(value, InverseLipschitz) else as_coefficient(value)


class Algorithm(ABC):
    """One update rule. Subclass it with an ``update``; :func:`unspool.testing.check_algorithm` checks the laws.

    Write ``update`` with ``+``, ``-``, ``*`` and the methods of :class:`Problem` only, and linear problems are lowered to
    a single polynomial of the graph without a further line. A field ``step`` is the step size η.

    A rule that asks for proximal operators says so beside its ``update``: ``handles = (Kind.SMOOTH, Kind.PROXIMABLE)``.
    Without that line it is given smooth terms only.
    """

    #: The kinds of terms that ``update`` takes into account; an ``update`` written anew without it handles smooth ones.
    handles: ClassVar[Any] = (Kind.SMOOTH,)
    #: Whether the state holds dual variables besides iterates, so that the minimiser alone is not a fixed point.
    keeps_duals: ClassVar[bool] = False
    #: Whether ``update`` draws random numbers: such a rule is never lowered, and its laws hold seed by seed or on average.
    random: ClassVar[bool] = False

    def check(self, objective: Objective) -> None:  # noqa: B027 - most rules have nothing to add to check_fit
        """Refuse an objective that the rule does not fit for reasons of its own, naming the term."""

    def init(self, h: Any, problem: Problem) -> State:
        """The state before the first step, with the iterate first.

        Args:
            h: where the iterates start.
            problem: the first layer's, for rules that keep more than iterates: dual variables have the shape of what an
                operator makes of h.
        """
        return (h,)

    @abstractmethod
    def update(self, state: State, problem: Problem) -> State:
        """The state after one step."""

    def step_size(self, problem: Problem) -> Map:
        """The size η of the step on this problem, from the field ``step``."""
        rule = as_step(getattr(self, "step", InverseLipschitz()))
        if not isinstance(rule, InverseLipschitz):
            return problem[rule]
        lipschitz = problem.lipschitz()
        if channel.is_zero(lipschitz):
            raise IncompatibleError(
                f"the smooth part of {problem.objective} is flat, so the step 1/L is not defined; give {self.name} a step="
            )
        if isinstance(lipschitz, float) and lipschitz == float("inf"):  # a tensor may belong to a stack
            raise IncompatibleError(
                f"the gradient of {problem.objective} has no Lipschitz constant, so the step 1/L is not defined; give {self.name} a step="
            )
        return rule.factor / lipschitz

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The learnable coefficients that it keeps, each once."""
        return tuple(dict.fromkeys(leaf for c in coefficients_of(self) for leaf in c.leaves))

    @property
    def name(self) -> str:
        """The class name, used in messages."""
        return type(self).__name__


@dataclass(frozen=True, eq=False)
class SteppedAlgorithm(Algorithm):
    """An algorithm with a step size η: a number, a coefficient, or a multiple of 1/L (the default)."""

    step: Any = InverseLipschitz()

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", as_step(self.step))
        if isinstance(self.step, Coefficient) and not self.step.number:
            raise TypeError(f"step={self.step}: a step size is a single number; put matrices into the metric of a term")
        if isinstance(self.step, Fixed) and float(self.step.value) <= 0:
            raise ValueError(f"step={self.step}: a step size must be positive")


def times(h: Any, factor: Map) -> Any:
    """h · factor, for tensors and hop polynomials alike.

    Plain ``h * factor`` does the same, but torch.compile cannot trace a polynomial times a tensor; networks of rules that
    use this function compile whole.
    """
    return h * factor if isinstance(h, Tensor) else h.mapped(factor)


def shipped(part: Any) -> bool:
    """Whether a rule (with the one inside it) or a term is of this package, whose ways are known, and not somebody's own."""
    inner = getattr(part, "inner", None)
    known = type(part).__module__.startswith("unspool.")
    return known and (not isinstance(inner, Algorithm) or shipped(inner))


def initial_state(algorithm: Algorithm, start: Tensor, problem: Problem) -> State:
    """The state before the first step. A rule of one's own begins with a copy, which it may change in place."""
    return algorithm.init(start if shipped(algorithm) else start.clone(), problem)


def handled_kinds(algorithm: Algorithm) -> tuple[Kind, ...]:
    """The kinds of terms that a rule takes into account: those it states beside its ``update`` or below.

    What a parent states holds for the parent's ``update``. A subclass that writes its own may have left something out.
    """
    for cls in type(algorithm).__mro__:
        if "handles" in vars(cls):
            stated = algorithm.handles
            kinds = (stated,) if isinstance(stated, Kind) else stated
            if not isinstance(kinds, tuple | list | set | frozenset) or not all(isinstance(k, Kind) for k in kinds):
                raise TypeError(f"{algorithm.name}.handles is {stated!r}: expected kinds, such as (Kind.SMOOTH,)")
            return tuple(kinds)
        if "update" in vars(cls):
            break
    return (Kind.SMOOTH,)


def check_fit(algorithm: Algorithm, objective: Objective) -> None:
    """Refuse an objective that an algorithm cannot minimise, naming the term. Nothing runs before this has passed."""
    algorithm.check(objective)
    kinds = handled_kinds(algorithm)
    for term, kind in zip(objective.terms, objective.kinds, strict=True):
        if kind not in kinds:
            raise IncompatibleError(_not_handled(algorithm, kinds, term, kind))
    check_proximable(objective)


def _not_handled(algorithm: Algorithm, kinds: tuple[Kind, ...], term: Term, kind: Kind) -> str:
    if kind == Kind.COMPOSITE:
        return (
            f"{algorithm.name} does not handle {term.formula()}, a penalty behind a linear operator; use PrimalDual()"
        )
    if kind != Kind.PROXIMABLE:
        known = " and ".join(k.name for k in kinds)
        return (
            f"{algorithm.name} handles {known} terms, but {term.name} is {kind.name}; use an algorithm that handles it"
        )
    way = "use ProximalGradient()"
    if not shipped(algorithm):
        way += (
            f", or state handles = (us.Kind.SMOOTH, us.Kind.PROXIMABLE) if {algorithm.name}.update calls problem.prox"
        )
    return f"{algorithm.name} needs a gradient, but {term.name} has none; {way}"


def require_count(name: str, value: Any) -> None:
    """Refuse what is not a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(name, value, "a whole number of at least 1")


def require_tensor(h: Any) -> None:
    """Refuse polynomials in the place of iterates, for rules whose steps depend on what the iterates are."""
    if not isinstance(h, Tensor):
        raise TypeError("its steps depend on what its iterates are")


def require_quadratic(algorithm: Algorithm, objective: Objective) -> None:
    """Refuse terms that are not quadratic."""
    for term in objective.terms:
        if not getattr(term, "affine_gradient", False):
            way = "PrimalDual() or ADMM()" if kind_of(term) == Kind.COMPOSITE else "ProximalGradient() or Accelerated()"
            raise IncompatibleError(
                f"{algorithm.name} needs a quadratic objective, but {term.name} is not quadratic; use {way}"
            )
