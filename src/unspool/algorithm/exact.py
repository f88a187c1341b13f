"""The exact minimiser: conjugate gradients for quadratic objectives, accelerated steps to a tolerance for the others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unspool.algorithm.algorithm import Algorithm, Problem, State, check_fit, shipped
from unspool.algorithm.convexity import flat_at
from unspool.algorithm.fixed_point import fixed_point, solve_by
from unspool.algorithm.krylov import stands_in
from unspool.algorithm.optimality import (
    Dependences,
    ProximalFixedPoint,
    Stationary,
    check_differentiable,
    check_reached,
    separable,
    solver_step,
)
from unspool.algorithm.primal_dual import PrimalDual
from unspool.algorithm.root import Equation, attach
from unspool.algorithm.solvers import Effort, Solution, accelerate, solve_fixed_point, solve_linear, solve_quadratic
from unspool.errors import IncompatibleError
from unspool.graph import Graph, check_input, check_output
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
from unspool.objective.coefficient import Leaf
from unspool.objective.composite import check_operator_at
from unspool.objective.computed import values_at
from unspool.objective.width import check_width
from unspool.ops.convergence import SolveReport
from unspool.ops.transforming import transforming


@dataclass(frozen=True)
class Exact(Algorithm):
    r"""Jump to the minimiser in one step.

    For quadratic objectives by sparse conjugate gradients, never a dense inverse; on α‖H−X‖² + (1−α)‖BH‖² this is
    PPNP, :math:`\alpha (I - (1-\alpha) A)^{-1} X`. Other convex objectives are minimised by accelerated proximal
    gradient with restarts until the same tolerance, and those with composite terms by splitting
    (one sparse factorisation), or by primal-dual steps where the graph is large or an operator has no sparse matrix.

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

    handles = (Kind.SMOOTH, Kind.PROXIMABLE, Kind.COMPOSITE)
    tolerance: float | None = None
    limit: int = 10_000

    def __post_init__(self) -> None:
        if self.tolerance is not None and not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance={self.tolerance}: expected a number between 0 and 1")

    def check(self, objective: Objective) -> None:
        """A minimiser must exist and depend on X."""
        check_minimiser(objective)

    def update(self, state: State, problem: Problem) -> State:
        """The minimiser, warm-started at the current iterate."""
        (h,) = state
        return (minimiser(problem, h, self.tolerance, self.limit, self.name),)


def minimise(
    objective: Objective | Term,
    x: Tensor,
    graph: Graph,
    values: Values = INITIAL,
    tolerance: float | None = None,
    limit: int = 10_000,
) -> Tensor:
    """The minimiser of an objective, without gradients.

    How the solve went is told to :func:`~unspool.ops.convergence.solve_reports`, and warned about if the tolerance was missed.

    Example:
        >>> import torch, unspool as us
        >>> x = torch.tensor([[1.0], [0.0], [1.0], [0.0]])
        >>> us.minimise(us.Fidelity(0.5) + us.Smoothness(0.5), x, us.graph.ring(4)).flatten().numpy().round(3)
        array([0.714, 0.286, 0.714, 0.286], dtype=float32)
    """
    return find_minimiser(objective, x, graph, values, tolerance, limit).h


@torch.no_grad()
def find_minimiser(
    objective: Objective | Term,
    x: Tensor,
    graph: Graph,
    values: Values = INITIAL,
    tolerance: float | None = None,
    limit: int = 10_000,
) -> Solution:
    """The minimiser of an objective together with the report of its solve.

    Example:
        >>> import torch, unspool as us
        >>> found = find_minimiser(us.Fidelity(0.5) + us.Smoothness(0.5), torch.eye(4), us.graph.ring(4))
        >>> found.report.converged
        True
    """
    objective = as_objective(objective)
    check_input(x, graph)
    check_fit(Exact(tolerance, limit), objective)
    if values is INITIAL:
        check_tied(objective.leaves, "Exact reaches one minimiser", "tie it, or give values=net.values(layer)")
    effort = Effort.of(tolerance, limit, x.dtype)
    values = values_at(objective.leaves, x, graph, values)
    check_width(objective, x, values)
    found = solve(Problem(objective, Given(x, graph, values)), x, effort)
    check_output(found.h, None)
    effort.hand_in(found.report, x.dtype)
    return found


def check_tied(leaves: tuple[Leaf, ...], what: str, way: str) -> None:
    """Refuse coefficients that differ from layer to layer."""
    for leaf in leaves:
        if leaf.per_layer:
            raise IncompatibleError(f"{what}, but the coefficient {leaf} differs from layer to layer; {way}")


def check_minimiser(objective: Objective) -> None:
    """Refuse objectives that have no minimiser worth computing, or none that the solvers find, judged by their form alone."""
    for term, kind in zip(objective.terms, objective.kinds, strict=True):
        if kind not in Exact.handles:
            raise IncompatibleError(
                f"the exact minimiser is found for smooth, proximable and composite terms, but {term.name} is {kind.name}; unroll steps"
            )
    for term in objective.smooth_terms:
        require_symmetric(term)
    if not any(term.uses_input for term in objective.terms):
        raise IncompatibleError(
            f"no term of {objective} mentions X: where it is strictly convex its minimiser is 0 whatever the input, and "
            "where a metric has an eigenvalue above 1 it is unbounded below; add a Fidelity term or unroll steps"
        )


@torch.no_grad()
def check_strictly_convex(problem: Problem) -> float:
    """A lower bound on the curvature of the quadratic terms on this graph; refuse what is not (strictly) convex."""
    objective, given = problem.objective, problem.given
    if stands_in(objective, given):
        raise IncompatibleError(
            "the exact minimiser is found by conjugate gradients, which need an undirected graph; build it without directed=True, or unroll steps"
        )
    rest = [term for term in objective.terms if not getattr(term, "affine_gradient", False)]
    for term in rest:
        if not term.is_convex(given):
            raise IncompatibleError(
                f"{term.formula()} is not convex at these values, so {objective} may have no minimiser; {_mend(term, given)}"
            )
    if len(rest) == len(objective.terms):
        return 0.0
    low, high = objective.smallest_curvature(given)
    if high < -1e-7:
        what = "unbounded below" if objective.quadratic else "not convex"
        raise IncompatibleError(
            f"{objective} is {what} on this graph: the curvature of its quadratic terms falls to {high:.3g} in one direction; "
            "give Fidelity more weight, or keep weights and metrics non-negative"
        )
    if low <= 0 and objective.quadratic:
        unique = "so its minimiser is not unique; give Fidelity a positive weight or add a small Ridge"
        if high <= 0:
            raise IncompatibleError(
                f"{objective} is not strictly convex on this graph (smallest curvature {high:.3g}), {unique}"
            )
        raise IncompatibleError(
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


def solve(problem: Problem, start: Tensor, effort: Effort) -> Solution:
    """The minimiser of a problem from a starting point, and how it was found; whoever asks hands the report in."""
    # Trap: a network's step in lowest terms has the network's step size, and solvers take their own.
    problem = replace(problem, fused=None)
    if start.numel() == 0:
        return Solution(start, SolveReport("nothing to solve", 0, 0.0, effort.tolerance, 0.0))
    low = check_strictly_convex(problem)
    if problem.composite_terms or not problem.objective.smooth_terms:
        _look_at_operators(problem, start)
        from unspool.algorithm.splitting import solve_split  # loads SciPy, which nobody else needs

        found = solve_split(problem, start, effort)
        return solve_by(_primal_dual(problem, start), problem, start, effort) if found is None else found[0]
    if problem.objective.quadratic:
        return solve_quadratic(problem, start, effort)
    return accelerate(problem, start, low, effort)


def minimiser(problem: Problem, start: Tensor, tolerance: float | None, limit: int, who: str) -> Tensor:
    """The minimiser as a differentiable function of the input and the coefficients, to any order.

    Args:
        problem: what is minimised.
        start: where the solver starts; the result does not depend on it.
        tolerance, limit: of all solves, on the way forward and back.
        who: in whose name something is refused.
    """
    _refuse_transforms(who)
    if start.numel() == 0:
        return start
    problem = replace(problem, fused=None)
    on, effort = Dependences(problem), Effort.of(tolerance, limit, start.dtype)
    if problem.composite_terms:
        with torch.no_grad():
            check_strictly_convex(on.detached())
            _look_at_operators(on.detached(), start.detach())
        if torch.is_grad_enabled() and on.tensors:
            check_differentiable(on.detached(), start.detach())
        return fixed_point(_primal_dual(problem, start.detach()), problem, start, effort)
    with torch.no_grad():
        plain = on.detached()
        found = solve(plain, start.detach(), effort)
        effort.hand_in(found.report, start.dtype)
    if not torch.is_grad_enabled() or not _asks_for_gradients(problem):
        return found.h
    check_differentiable(plain, found.h)

    def told(found: Solution) -> Tensor:
        effort.hand_in(found.report, start.dtype)
        return found.h

    if problem.objective.smooth:
        check_bent(plain, found.h, who)
        alone = problem.objective.quadratic and separable(plain)
        equation: Equation = Stationary(on, lambda apply, v: told(solve_linear(apply, v, None, effort, alone)))
        check_reached(equation, on, found.h)
        return attach(equation, found.h, on.tensors)
    if check_strictly_convex(plain) <= 0:
        raise IncompatibleError(_flat(problem, who))
    own = problem.given.step is not None and any(getattr(t, "per_step", False) for t in problem.objective.terms)
    step = None if own else solver_step(plain)
    equation = ProximalFixedPoint(on, lambda apply, v: told(solve_fixed_point(apply, v, effort, problem)), step)
    check_reached(equation, on, found.h)
    return attach(equation, found.h, on.tensors)


def _primal_dual(problem: Problem, start: Tensor) -> PrimalDual:
    """Primal-dual steps of 1/L; where nothing is smooth any step does, and one of the size of the signal is soon there."""
    if problem.objective.smooth_terms:
        return PrimalDual()
    size = float(start.square().mean().sqrt())
    return PrimalDual(step=size if size > 0 else 1.0)


def _look_at_operators(problem: Problem, start: Tensor) -> None:
    """The operators of terms that are not of this package say of themselves what their adjoint and norm are."""
    for term in problem.composite_terms:
        if not shipped(term):
            check_operator_at(term, start, problem.given)


def check_bent(problem: Problem, h: Tensor, who: str) -> None:
    """Refuse a minimiser around which a smooth objective is flat: it does not follow the coefficients smoothly."""
    if problem.objective.quadratic or check_strictly_convex(problem) > 0:
        return
    if flat_at(problem, h):
        raise IncompatibleError(_flat(problem, who))


def _flat(problem: Problem, who: str) -> str:
    way = "unroll steps of another algorithm" if who == "Exact" else "use adjoint=Stored()"
    return (
        f"{who} needs a strictly convex smooth part to be differentiated, and that of {problem.objective} is flat "
        f"somewhere; add a small Ridge or {way}"
    )


def _asks_for_gradients(problem: Problem) -> bool:
    """Whether anything asks for gradients, tensors included that the equations do not know and will refuse."""
    if Dependences(problem).tensors:
        return True
    with torch.enable_grad():
        step = solver_step(problem)
        return problem.prox(problem.gradient(problem.given.x), step).requires_grad


def _refuse_transforms(who: str) -> None:
    if not torch.compiler.is_compiling() and transforming():
        raise IncompatibleError(
            f"{who} with learnt coefficients, matrices or terms that are not quadratic does not go under vmap and other "
            "torch.func transforms; use torch.autograd.grad, or unroll steps"
        )
