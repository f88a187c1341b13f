"""The layers of a network that was unrolled: what the rule does in one step, found by running it on polynomials.

As in lowering (:mod:`unspool.unrolling.lower`) ``update`` itself is asked, on an iterate H of its own beside X. What comes back, H P + S H Q +
X R, is the layer. So a rule of one's own is read for what it does, not for what it inherits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from unspool.algorithm import Algorithm, Problem
from unspool.errors import IncompatibleError
from unspool.objective import StencilTerm, channel
from unspool.objective.channel import Map
from unspool.ops.polynomial import Basis
from unspool.unrolling.lower import HopPolynomial, LinearProblem
from unspool.unrolling.read_back import Layer, ReadBack, read_layer


@dataclass(frozen=True, eq=False)
class OneStep(LinearProblem):
    """A problem that notes where the rule asks for the proximal operator."""

    asked: list[HopPolynomial] = field(default_factory=lambda: [])

    def prox(self, v: HopPolynomial, step: Map) -> HopPolynomial:
        """An iterate to be recognised again: anything done to it afterwards makes another."""
        if not self.objective.proximable_terms:
            return v
        self.asked.append(HopPolynomial(v.parts, v.basis))
        return self.asked[-1]


def read_back_layers(algorithm: Algorithm, problems: list[Problem]) -> ReadBack:
    """Read the layers of a network that was unrolled from an objective."""
    for term in problems[0].objective.smooth_terms:
        if not isinstance(term, StencilTerm):
            raise IncompatibleError(
                f"{term.name} is not a quadratic of the graph's Laplacian, so its part of a layer cannot be read back"
            )
    first = problems[0]
    one = LinearProblem(first.objective, first.given, 1, None, Basis.POWERS).one()
    fresh = HopPolynomial({"start": one}, Basis.POWERS)
    state: tuple[Any, ...] = ()
    layers, names = list[Layer](), ""
    for problem in problems:
        linear = OneStep(problem.objective, problem.given, problem.layer, None, Basis.POWERS)
        state = _advanced(algorithm, fresh, state, linear)
        if linear.asked:
            if state[0] is not linear.asked[-1] or len(linear.asked) > 1:
                raise IncompatibleError(
                    f"{algorithm.name} does more than one proximal step in a layer, so its layers cannot be read back as proximal gradient steps"
                )
            names = ", ".join(t.name for t in problem.objective.proximable_terms)
        layers.append(_layer(algorithm, state[0], linear))
    return ReadBack(tuple(layers), note=f"each step is followed by the proximal operator of {names}" if names else "")


def _advanced(algorithm: Algorithm, fresh: HopPolynomial, state: tuple[Any, ...], problem: OneStep) -> tuple[Any, ...]:
    """One step from an iterate of its own, with whatever else the rule remembers."""
    try:
        before = (fresh, *state[1:]) if state else algorithm.init(fresh, problem)
        for kept in (before, after := algorithm.update(before, problem)):
            _check_single(algorithm, kept, problem)
        return after
    except IncompatibleError:
        raise
    except Exception as failure:  # a rule of a user's own may fail in any way on what is not a tensor
        raise IncompatibleError(
            f"{algorithm.name}.update does more than add, scale and ask for gradients ({failure}), so its layers cannot be read back"
        ) from failure


def _check_single(algorithm: Algorithm, state: tuple[Any, ...], problem: OneStep) -> None:
    """Refuse rules that remember iterates besides the current one: their layers are not steps on it alone."""
    kept = sum(isinstance(part, HopPolynomial) for part in state)
    if kept > 1:
        raise IncompatibleError(
            f"{algorithm.name} keeps {kept} iterates, and its layers mix them, so no single step can be read back{_whole(problem)}"
        )


def _whole(problem: Problem) -> str:
    """The way out for linear networks."""
    if problem.objective.proximable_terms:
        return ""
    return "; read_back_hops(net.hops(graph), basis=net.adjoint.basis) reads the whole network as gradient layers"


def _layer(algorithm: Algorithm, h: Any, problem: OneStep) -> Layer:
    """H P + S H Q + X R, with L = scale · (I − S), as H − (H (a + ridge) + L H b − X a)."""
    if not isinstance(h, HopPolynomial):
        raise IncompatibleError(
            f"{algorithm.name}.update answers a polynomial with {type(h).__name__}, so its layers cannot be read back"
        )
    own, given = _maps(h, "start"), _maps(h, "x")
    if len(own) > 2 or len(given) > 1:
        raise IncompatibleError(
            f"one step of {algorithm.name} reaches further than a gradient step does (H over {len(own) - 1} hops, X over "
            f"{len(given) - 1}), so its layers cannot be read back{_whole(problem)}"
        )
    p, q, a = own[0], own[1] if len(own) > 1 else 0.0, given[0]
    scale = problem.given.graph.scale
    rest = channel.add(1.0, channel.negative(channel.add(channel.add(p, q), a)))
    size = 1.0 + sum(float(channel.spectral_norm(t)) for t in (p, q, a))
    ridge = 0.0 if float(channel.spectral_norm(rest)) <= 1e-14 * size else rest
    return read_layer(a, channel.compose(1 / scale, q), ridge, scale)


def _maps(h: HopPolynomial, source: str) -> list[Map]:
    """The coefficients of one source, without zeros at the end; at least one."""
    hops = h.parts.get(source)
    if hops is None:
        return [0.0]
    last = max((k for k in range(hops.shape[0]) if bool((hops[k] != 0).any())), default=0)
    return [float(t) if t.ndim == 0 else t for t in hops[: last + 1]]
