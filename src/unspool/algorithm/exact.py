"""The exact minimiser: conjugate gradients for quadratic objectives, accelerated steps to a tolerance for the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.algorithm.algorithm import Algorithm, Problem, State, check_fit
from unspool.graph import Graph, check_input
from unspool.objective import (
    INITIAL,
    Given,
    Kind,
    Objective,
    Term,
    Values,
    as_objective,
    require_symmetric,
)
from unspool.objective.channel import Map, rank
from unspool.ops.solve import default_tolerance
from unspool.refusal import Refusal


@dataclass(frozen=True)
class Exact(Algorithm):
    r"""Jump to the minimiser in one step.

    For quadratic objectives by sparse conjugate gradients, never a dense inverse; on α‖H−X‖² + (1−α)‖BH‖² this is
    PPNP, :math:`\alpha (I - (1-\alpha) A)^{-1} X`. Other convex objectives are minimised by accelerated proximal
    gradient with restarts until the same tolerance.

    Args:
        tolerance: relative size of the remaining gradient.
        limit: most iterations before giving up.

    Example:
        >>> import torch, unspool as us
        >>> net = us.unroll(us.Fidelity(0.1) + us.Smoothness(0.9), us.Exact())
        >>> graph = us.graph.ring(5)
        >>> ppnp = 0.1 * torch.linalg.inv(torch.eye(5) - 0.9 * graph.to_dense())
        >>> torch.allclose(net(torch.eye(5), graph), ppnp, atol=1e-5)
        True
    """

    handles = (Kind.SMOOTH, Kind.PROXIMABLE)
    tolerance: float | None = None
    limit: int = 10_000

    def __post_init__(self) -> None:
        if self.tolerance is not None and not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance={self.tolerance}: expected a number between 0 and 1")

    def check(self, objective: Objective) -> None:
        """A minimiser must exist and depend on X."""
        check_minimiser(objective)

    def advance(self, state: State, problem: Problem) -> State:
        """The minimiser, warm-started at the current iterate."""
        (h,) = state
        return (solve(problem, h, self.tolerance, self.limit),)


def minimise(
    objective: Objective | Term, x: Tensor, graph: Graph, values: Values = INITIAL, tolerance: float | None = None
) -> Tensor:
    """The minimiser of an objective, without gradients.

    Example:
        >>> import torch, unspool as us
        >>> x = torch.tensor([[1.0], [0.0], [1.0], [0.0]])
        >>> us.minimise(us.Fidelity(0.5) + us.Smoothness(0.5), x, us.graph.ring(4)).flatten().numpy().round(3)
        array([0.714, 0.286, 0.714, 0.286], dtype=float32)
    """
    objective = as_objective(objective)
    check_input(x, graph)
    check_fit(Exact(tolerance), objective)
    with torch.no_grad():
        return solve(Problem(objective, Given(x, graph, values)), x, tolerance, 10_000)


def check_minimiser(objective: Objective) -> None:
    """Refuse objectives that have no minimiser worth computing, or none that the solvers find, judged by their form alone."""
    for term, kind in zip(objective.terms, objective.kinds, strict=True):
        if kind not in Exact.handles:
            raise Refusal(
                f"the exact minimiser is found for smooth and proximable terms, but {term.name} is {kind.name}; unroll steps"
            )
    for term in objective.smooth_terms:
        require_symmetric(term)
    if not any(term.uses_input for term in objective.terms):
        raise Refusal(
            f"no term of {objective} mentions X: where it is strictly convex its minimiser is 0 whatever the input, and "
            "where a metric has an eigenvalue above 1 it is unbounded below; add a Fidelity term or unroll steps"
        )


@torch.no_grad()
def check_strictly_convex(problem: Problem) -> float:
    """A lower bound on the curvature of the quadratic terms on this graph; refuse what is not (strictly) convex."""
    objective, given = problem.objective, problem.given
    rest = [term for term in objective.terms if not getattr(term, "quadratic", False)]
    for term in rest:
        if not term.is_convex(given):
            raise Refusal(
                f"{term.formula()} is not convex at these values, so {objective} may have no minimiser; {_mend(term, given)}"
            )
    if len(rest) == len(objective.terms):
        return 0.0
    low, high = objective.smallest_curvature(given)
    if high < -1e-7:
        what = "unbounded below" if objective.quadratic else "not convex"
        raise Refusal(
            f"{objective} is {what} on this graph: the curvature of its quadratic terms falls to {high:.3g} in one direction; "
            "give Fidelity more weight, or keep weights and metrics non-negative"
        )
    if low <= 0 and objective.quadratic:
        unique = "so its minimiser is not unique; give Fidelity a positive weight or add a small Ridge"
        if high <= 0:
            raise Refusal(f"{objective} is not strictly convex on this graph (smallest curvature {high:.3g}), {unique}")
        raise Refusal(
            f"{objective} could not be shown to be strictly convex on this graph: its smallest curvature is at most {high:.3g}; "
            "add a small Ridge"
        )
    return max(low, 0.0)


def _mend(term: Term, given: Given) -> str:
    """The way out for a term that is not convex: its weight if that is negative, another term if not."""
    weight = getattr(term, "weight", None)
    value = None if weight is None else torch.as_tensor(given[weight])
    if value is None or bool((value >= 0).all()):
        return "use a convex term, or unroll steps with adjoint=Stored()"
    return f"its weight is {float(value.min()):.4g}: keep it non-negative".replace("-", "−", 1)


def solve(problem: Problem, start: Tensor, tolerance: float | None, limit: int) -> Tensor:
    """The minimiser of a problem from a starting point."""
    if tolerance is None:
        tolerance = default_tolerance(start.dtype)
    low = check_strictly_convex(problem)
    if not problem.objective.quadratic:
        return _accelerate(problem, start, low, tolerance, limit)
    right = -problem.gradient(torch.zeros_like(start))
    return conjugate_gradients(hessian(problem, start), right, start, tolerance, limit, separable(problem))


def hessian(problem: Problem, like: Tensor) -> Callable[[Tensor], Tensor]:
    """The Hessian of a quadratic problem as a function.

    Evaluated with X = 0, where the gradient is linear by itself: subtracting a large constant would cost all digits of small
    vectors (the gradients of a mean loss, say).
    """
    given = problem.given
    still = Problem(
        problem.objective, Given(torch.zeros_like(like), given.graph, given.values, given.step), problem.layer
    )
    constant = still.gradient(torch.zeros_like(like))
    return lambda u: still.gradient(u) - constant


def solver_step(problem: Problem) -> Map:
    """1/L, or the network's own step where a term stands for φ/η and is another term at any other step."""
    own = problem.given.step
    if own is not None and any(getattr(t, "per_step", False) for t in problem.objective.terms):
        return own
    return 1 / problem.lipschitz()


def separable(problem: Problem) -> bool:
    """Whether the Hessian leaves every channel alone, so that channels converge each at its own pace."""
    stencil = problem.objective.stencil(problem.given)
    return max(rank(stencil.own), rank(stencil.laplacian)) < 2


def conjugate_gradients(
    apply: Callable[[Tensor], Tensor], right: Tensor, start: Tensor, tolerance: float, limit: int, per_channel: bool
) -> Tensor:
    """Solve apply(H) = right for a symmetric positive definite operator, one recurrence per channel or per signal.

    The residual is measured in the norm, relative to ``right``; failing to reach the tolerance raises, except when rounding
    is what stands in the way.
    """
    dims = (-2,) if per_channel else (-2, -1)
    total = lambda a, b: (a * b).sum(dims, keepdim=True)  # noqa: E731
    h = start
    residual = right - apply(h)
    direction = residual
    squared = total(residual, residual)
    goal = tolerance**2 * total(right, right).clamp_min(torch.finfo(right.dtype).tiny)
    best, stalled = float("inf"), 0
    for _ in range(limit):
        if bool((squared <= goal).all()):
            return h
        image = apply(direction)
        bend = total(direction, image)
        if bool((bend < 0).any()) and bool((bend.abs() > 1e-6 * total(direction, direction)).any()):
            raise Refusal(
                "conjugate gradients met a direction of negative curvature: the objective is not convex at these values"
            )
        live = squared > goal
        size = torch.where(live, squared / torch.where(live, bend, torch.ones_like(bend)), torch.zeros_like(bend))
        h = h + size * direction
        residual = residual - size * image
        fresh = total(residual, residual)
        direction = (
            residual
            + torch.where(live, fresh / torch.where(live, squared, torch.ones_like(squared)), torch.zeros_like(bend))
            * direction
        )
        squared = fresh
        worst = float((squared / goal).max())
        stalled = stalled + 1 if worst > 0.99 * best else 0
        best = min(best, worst)
        if stalled > 50 and best < 1e6:
            return h  # rounding: the residual no longer falls
    raise Refusal(
        f"conjugate gradients did not reach a relative residual of {tolerance:g} in {limit} iterations; raise limit or tolerance, or give Fidelity more weight"
    )


def _accelerate(problem: Problem, start: Tensor, low: float, tolerance: float, limit: int) -> Tensor:
    """Accelerated proximal gradient with restarts whenever the momentum points uphill."""
    step = solver_step(problem)
    h = before = problem.prox(start, step)
    t, best, stalled = 1.0, float("inf"), 0
    # ‖proximal gradient‖ / μ bounds the distance to the minimiser; flat problems are held to a small multiple of L.
    bend = max(low, 1e-3 / float(step))
    for _ in range(limit):
        ahead = (1 + (1 + 4 * t * t) ** 0.5) / 2
        y = h + (h - before) * ((t - 1) / ahead)
        new = problem.prox(y - problem.gradient(y) * step, step)
        change = float(torch.linalg.vector_norm(new - y)) / float(step)
        uphill = float(((y - new) * (new - h)).sum()) > 0
        t = 1.0 if uphill else ahead
        before, h = h, new
        if change <= tolerance * bend * (float(torch.linalg.vector_norm(h)) + 1e-30):
            return h
        stalled = stalled + 1 if change > 0.99 * best else 0
        best = min(best, change)
        if stalled > 500:
            return h  # rounding: nothing falls any more
    raise Refusal(f"the minimiser of {problem.objective} was not reached in {limit} steps; raise the tolerance")
