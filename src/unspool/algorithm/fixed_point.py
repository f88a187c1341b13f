"""The point at which a rule stays: found by iterating it, and differentiated through the equation state = update(state)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from unspool.algorithm.algorithm import Algorithm, Problem, State, initial_state
from unspool.algorithm.optimality import Dependences, Solver
from unspool.algorithm.root import Equation, Linear, attach, pulled_back, pushed_forward
from unspool.algorithm.solvers import Effort, Solution, solve_fixed_point
from unspool.errors import IncompatibleError
from unspool.objective.coefficient import Leaf
from unspool.ops.convergence import SolveReport

#: Over so many steps the rate of convergence is measured.
_WINDOW = 20
#: Residuals of so many roundings count as reached.
_ROUNDING = 100.0


@dataclass(frozen=True, eq=False)
class RuleDependences(Dependences):
    """What the fixed point of a rule depends on: the problem, and the rule's own coefficients."""

    rule: Algorithm = field(kw_only=True)

    @property
    def _leaves(self) -> tuple[Leaf, ...]:
        if self.problem.given.values is None:
            return ()
        return tuple(dict.fromkeys((*self.problem.objective.leaves, *self.rule.leaves)))


@dataclass(frozen=True, eq=False)
class RuleFixedPoint(Equation):
    """S = T(S, θ), with T one update of a rule and S its whole state as one vector."""

    on: RuleDependences
    like: State
    solver: Solver

    def residual(self, h: Tensor, theta: tuple[Tensor, ...]) -> Tensor:
        """S − T(S)."""
        return h - _flat(self.on.rule.update(_unflat(h, self.like), self.on.filled(theta)))

    def jacobian(self, h: Tensor, theta: tuple[Tensor, ...], transposed: bool) -> Linear:
        """I − ∂T, which is not symmetric."""
        return (pulled_back if transposed else pushed_forward)(lambda at: self.residual(at, theta), h)

    def solve(self, apply: Linear, v: Tensor) -> Tensor:
        """A Neumann series."""
        return self.solver(apply, v)


@torch.no_grad()
def iterate(rule: Algorithm, problem: Problem, start: Tensor, effort: Effort) -> tuple[State, SolveReport]:
    """Update until the state stays where it is, as far as the measured rate of convergence can tell.

    The residual is the distance that is left, relative to the state: a step times ρ/(1 − ρ), with ρ the rate at which steps
    shrink.
    """
    state = initial_state(rule, start, problem)
    _check_tensors(rule, state)
    steps: deque[float] = deque(maxlen=_WINDOW)
    tiny = torch.finfo(start.dtype).eps
    left, count = float("inf"), 0
    while left > effort.tolerance and count < effort.limit:
        new, count = rule.update(state, problem), count + 1
        size = float(torch.linalg.vector_norm(_flat(new)))
        steps.append(float(torch.linalg.vector_norm(_flat(new) - _flat(state))) / (size + 1e-30))
        state = new
        if steps[-1] <= tiny:  # nothing but rounding moves any more
            left = steps[-1]
            break
        if len(steps) == _WINDOW:
            rate = (steps[-1] / steps[0]) ** (1 / (_WINDOW - 1))
            left = steps[-1] * rate / (1 - rate) if rate < 1 else float("inf")
    report = SolveReport(f"steps of {rule.name}", count, left, effort.tolerance, _ROUNDING * tiny)
    if not report.converged:
        raise IncompatibleError(
            f"{rule.name} did not come to rest on {problem.objective} ({report}); allow a larger tolerance or limit, or give "
            "Fidelity more weight"
        )
    return state, report


def fixed_point(rule: Algorithm, problem: Problem, start: Tensor, effort: Effort) -> Tensor:
    """The fixed point of a rule as a differentiable function of the input and all coefficients, to any order."""
    on = RuleDependences(problem, rule=rule)
    state, report = iterate(rule, on.detached(), start.detach(), effort)
    effort.hand_in(report, start.dtype)
    if not torch.is_grad_enabled() or not on.tensors:
        return state[0]

    def solved(apply: Linear, v: Tensor) -> Tensor:
        found = solve_fixed_point(apply, v, effort, problem)
        effort.hand_in(found.report, start.dtype)
        return found.h

    equation = RuleFixedPoint(on, state, solved)
    return _unflat(attach(equation, _flat(state), on.tensors), state)[0]


def solve_by(rule: Algorithm, problem: Problem, start: Tensor, effort: Effort) -> Solution:
    """The minimiser as the fixed point of a rule, as numbers."""
    state, report = iterate(rule, problem, start, effort)
    return Solution(state[0], report)


def _check_tensors(rule: Algorithm, state: State) -> None:
    if not all(isinstance(part, Tensor) for part in state):
        raise IncompatibleError(
            f"{rule.name} keeps more than tensors in its state, so it has no fixed point to look for; use a rule whose steps are "
            "all alike, such as GradientDescent, ProximalGradient or PrimalDual"
        )


def _flat(state: Any) -> Tensor:
    return torch.cat([part.reshape(-1) for part in state])


def _unflat(flat: Tensor, like: State) -> State:
    parts = flat.split([part.numel() for part in like])
    return tuple(part.view(one.shape) for part, one in zip(parts, like, strict=True))
