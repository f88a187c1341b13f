"""The point at which a rule stays: found by iterating it, accelerated, and differentiated through the equation state = update(state)."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from unspool.algorithm.algorithm import Algorithm, Problem, State, initial_state
from unspool.algorithm.anderson import Anderson
from unspool.algorithm.conjugate_gradient import ConjugateGradient
from unspool.algorithm.mixing import MEMORY, Mixing
from unspool.algorithm.newton import Newton
from unspool.algorithm.optimality import Dependences, Solver
from unspool.algorithm.root import Equation, Linear, attach, pulled_back, pushed_forward
from unspool.algorithm.solvers import Effort, Solution, solve_fixed_point
from unspool.errors import IncompatibleError
from unspool.objective.coefficient import Leaf
from unspool.ops.convergence import SolveReport

#: Over so many moves the rate of convergence is measured.
_WINDOW = 20
#: A state that moves by more than this share of itself is no fixed point in any sense.
_HOPELESS = 0.1
#: A point is left where so many plain updates make a nudge of this relative size so many times larger, and it stays so.
_WATCHED, _NUDGE, _GROWN = 10, 1e-3, 2.0
#: A nudge that has grown may still come back (rules with dual variables swing before they settle): so many updates are waited for.
_PATIENCE = 1000
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
        """A Neumann series, accelerated."""
        return self.solver(apply, v)


@torch.no_grad()
def iterate(
    rule: Algorithm, problem: Problem, start: Tensor, effort: Effort, memory: int = MEMORY
) -> tuple[State, SolveReport]:
    """Update until the state stays where it is, as far as the measured rate of convergence can tell.

    Updates T are combined with the last few by Anderson's method, over the whole state, dual variables included. A combination
    after which T leaves more than before is taken back: a plain update stands in its place, and the memory begins anew, so that
    no rule which comes to rest by itself is led astray.

    The residual is the distance that is left, relative to the state: a move times ρ/(1 − ρ), with ρ the rate at which moves shrink; of
    a stack of signals, that of the worst.
    A point that plain updates lead away from is refused, though it be a fixed point.

    Args:
        rule: T.
        problem: as numbers.
        start: the first iterate.
        effort: how near, and how many updates.
        memory: how many changes are remembered; 0 for plain updates.
    """
    like = initial_state(rule, start, problem)
    _check_repeatable(rule, like)
    at, mixing = _flat(like), Mixing(memory)
    moves: deque[float] = deque(maxlen=_WINDOW)
    tiny = torch.finfo(start.dtype).eps
    before, fallback, combined = float("inf"), at, False
    left, count = float("inf"), 0
    while left > effort.tolerance and count < effort.limit:
        plain, count = _flat(rule.update(_unflat(at, like), problem)), count + 1
        rest = float(torch.linalg.vector_norm(plain - at))
        if combined and not rest <= before:
            at, combined, mixing = fallback, False, Mixing(memory)
            continue
        if not math.isfinite(rest):
            break
        ahead = mixing.ahead(at, plain)
        sizes = _lengths(plain, like) + 1e-30
        moves.append(max(float((_lengths(move, like) / sizes).max()) for move in (ahead - at, plain - at)))
        before, fallback, combined = rest, plain, mixing.used
        at = ahead
        if moves[-1] <= tiny:  # nothing but rounding moves any more
            left = moves[-1]
            break
        left = _left(moves)
    report = SolveReport(
        f"steps of {rule.name}", count, left, effort.tolerance, _ROUNDING * tiny, left > effort.tolerance
    )
    if not left <= _HOPELESS:
        raise IncompatibleError(
            f"{rule.name} did not come to rest on {problem.objective} ({report}); allow a larger tolerance or limit, give "
            "Fidelity more weight, or take smaller steps"
        )
    if _flees(rule, problem, at, like):
        raise IncompatibleError(
            f"{rule.name} did not come to rest on {problem.objective}: its steps lead away from the point where they would stay; "
            "give Fidelity more weight, or take smaller steps"
        )
    return _unflat(at, like), report


def _flees(rule: Algorithm, problem: Problem, at: Tensor, like: State) -> bool:
    """Whether plain updates lead away from a point: combined ones also find those that repel."""
    noise = torch.cos(torch.arange(1, at.numel() + 1, dtype=torch.float64)).to(at)
    near = at * (1 + _NUDGE * noise)  # of the same signs: some rules have a domain
    begun = float(torch.linalg.vector_norm(near - at))
    # Dual variables need not be unique and may come to rest elsewhere; then H alone comes back, up to rounding.
    size, rounding = like[0].numel(), _ROUNDING * torch.finfo(at.dtype).eps * float(torch.linalg.vector_norm(at))
    own = float(torch.linalg.vector_norm((near - at)[:size]))
    for count in range(_PATIENCE):
        near = _flat(rule.update(_unflat(near, like), problem))
        apart = float(torch.linalg.vector_norm(near - at))
        if not math.isfinite(apart):
            return True
        left = float(torch.linalg.vector_norm((near - at)[:size]))
        if count >= _WATCHED - 1 and (apart <= _GROWN * begun or left <= _GROWN * own + rounding):
            return False
    return begun > 0


def fixed_point(rule: Algorithm, problem: Problem, start: Tensor, effort: Effort) -> Tensor:
    """The fixed point of a rule as a differentiable function of the input and all coefficients, to any order."""
    if isinstance(rule, Anderson):
        return fixed_point(
            rule.inner, problem, start, effort
        )  # accelerated anyway, and its fixed points are those of its inner rule
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


def _left(moves: deque[float]) -> float:
    """What is left after moves that shrink at a steady rate; infinite as long as they do not."""
    if len(moves) < _WINDOW:
        return float("inf")
    half = _WINDOW // 2
    early, late = max(list(moves)[:half]), max(list(moves)[half:])
    rate = (late / early) ** (1 / half)
    return late * rate / (1 - rate) if rate < 1 else float("inf")


def _check_repeatable(rule: Algorithm, state: State) -> None:
    if not all(isinstance(part, Tensor) for part in state):
        raise IncompatibleError(
            f"the steps of {rule.name} depend on those before, so it has no fixed point to look for; use a rule whose steps are "
            "all alike, such as GradientDescent, ProximalGradient or PrimalDual, or adjoint=Implicit()"
        )
    inner: Any = rule
    while isinstance(inner, Algorithm):
        # Their lengths are ratios of residuals, 0/0 at the minimiser: first derivatives lose digits there, second ones all.
        if isinstance(inner, ConjugateGradient | Newton):
            raise IncompatibleError(
                f"the steps of {inner.name} have no derivative where they come to rest; use adjoint=Implicit(), which differentiates the "
                "minimiser, or a rule such as GradientDescent, Jacobi or PrimalDual"
            )
        inner = getattr(inner, "inner", None)


def _lengths(flat: Tensor, like: State) -> Tensor:
    """The length of a state; of a stack, that of every signal's."""
    parts, stack = _unflat(flat, like), like[0].shape[:-2]
    if not stack or any(part.shape[:-2] != stack for part in parts):
        return torch.linalg.vector_norm(flat).double()
    return torch.stack([torch.linalg.vector_norm(part, dim=(-2, -1)).double() for part in parts]).square().sum(0).sqrt()


def _flat(state: Any) -> Tensor:
    return torch.cat([part.reshape(-1) for part in state])


def _unflat(flat: Tensor, like: State) -> State:
    parts = flat.split([part.numel() for part in like])
    return tuple(part.view(one.shape) for part, one in zip(parts, like, strict=True))
