"""Loops that end at a minimiser, each with a report of how it went."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.algorithm.algorithm import Problem, shipped
from unspool.algorithm.convexity import Secants, refuse_bent, refuse_rough, refuse_wavy, rests_on_claims
from unspool.algorithm.mixing import Mixing
from unspool.algorithm.optimality import hessian, separable, solver_step
from unspool.algorithm.root import Linear
from unspool.errors import IncompatibleError
from unspool.objective import KLFidelity
from unspool.ops.conjugate import conjugate_gradients
from unspool.ops.convergence import SolveReport, SolveReports, hand_in, listening
from unspool.ops.solve import default_tolerance

#: A gradient of which more than this share is left is none.
_HOPELESS = 0.1
#: What rounding makes of a gradient step, in multiples of the machine's precision.
_ROUNDING = 10.0


@dataclass(frozen=True, eq=False)
class Effort:
    """How near and how long a solver tries, and who hears of it.

    Attributes:
        tolerance: relative size of what may be left.
        limit: most iterations.
        asked: whether the tolerance was asked for, or is the default.
        listener: who collected reports when the effort was made.
    """

    tolerance: float
    limit: int
    asked: bool
    listener: SolveReports | None

    @staticmethod
    def of(tolerance: float | None, limit: int, dtype: torch.dtype) -> Effort:
        """The effort for a dtype."""
        goal = default_tolerance(dtype) if tolerance is None else tolerance
        return Effort(goal, limit, tolerance is not None, listening())

    def hand_in(self, report: SolveReport, dtype: torch.dtype) -> None:
        """Tell whoever listens, or warn."""
        hand_in(report, self.asked, dtype, self.listener)


@dataclass(frozen=True, eq=False)
class Solution:
    """A minimiser, and how it was found.

    Attributes:
        h: the minimiser, up to the report's residual.
        report: iterations, residual and whether the tolerance was met.
    """

    h: Tensor
    report: SolveReport


def solve_quadratic(problem: Problem, start: Tensor, effort: Effort) -> Solution:
    """The minimiser of a quadratic problem by conjugate gradients."""
    right = -problem.gradient(torch.zeros_like(start))
    found = solve_linear(hessian(problem, start), right, start, effort, separable(problem))
    refuse_bent(problem, found.h, found.report.residual * float(torch.linalg.vector_norm(right)))
    return found


def solve_linear(apply: Linear, right: Tensor, start: Tensor | None, effort: Effort, per_channel: bool) -> Solution:
    """The solution of apply(H) = right by conjugate gradients, or a refusal where there is none or it takes too long."""
    look = 4 if right.is_cuda else 1
    found = conjugate_gradients(apply, right, start, effort.tolerance, effort.limit, per_channel, look)
    if found.bent:
        raise IncompatibleError(
            "conjugate gradients met a direction of negative curvature: the objective is not convex at these values"
        )
    assert found.report is not None
    if found.exhausted and not found.report.converged:
        raise IncompatibleError(
            f"conjugate gradients did not reach a relative residual of {effort.tolerance:g} in {found.report.iterations} iterations "
            f"(it is {found.report.residual:.0e}); allow a larger limit or tolerance, or give Fidelity more weight"
        )
    return Solution(found.h, found.report)


def solve_fixed_point(apply: Linear, v: Tensor, effort: Effort, problem: Problem) -> Solution:
    """(I − P)⁻¹ v = v + P v + P² v + ..., where apply is I − P and P a contraction; the sums are combined by Anderson's method."""
    size = float(torch.linalg.vector_norm(v))
    rounding = _ROUNDING * torch.finfo(v.dtype).eps
    w, mixing, k, best, combined = v, Mixing(), 0, float("inf"), False
    found, rest, grown, fallback = v, size, size, v
    while k <= effort.limit:
        left = v - apply(w)
        rest = float(torch.linalg.vector_norm(left))
        if combined and not rest <= best:  # no better than before: a plain sum stands in its place
            w, mixing, combined, k = fallback, Mixing(), False, k + 1
            continue
        found, best, grown = w, rest, float(torch.linalg.vector_norm(w))
        if rest <= effort.tolerance * size or rest <= rounding * grown or not math.isfinite(rest):
            break
        fallback = w + left
        w, k = mixing.ahead(w, fallback), k + 1
        combined = mixing.used
    share, attainable = (best / size, rounding * grown / size) if size > 0 else (0.0, 0.0)
    report = SolveReport("Neumann series", min(k, effort.limit), share, effort.tolerance, attainable, k > effort.limit)
    if not share <= max(_HOPELESS, attainable):
        raise IncompatibleError(
            f"the implicit gradient of {problem.objective} was not found in {effort.limit} iterations ({report}); allow a larger limit "
            "or tolerance"
        )
    return Solution(found, report)


def accelerate(problem: Problem, start: Tensor, low: float, effort: Effort) -> Solution:
    """Accelerated proximal gradient, restarted whenever the momentum points uphill.

    The residual is ‖proximal gradient‖ / (μ ‖H‖). With μ the smallest curvature of the quadratic terms it bounds the relative
    distance to the minimiser; where they are flatter than a thousandth of the Lipschitz constant, that stands for μ. Of a stack
    of signals the worst one counts.
    """
    step = solver_step(problem)
    rate = float(step)
    floor = max(low, 1e-3 / rate)
    rounding = torch.finfo(start.dtype).eps / (rate * floor)
    patience = 500 + 4 * (rate * max(low, 1e-6 / rate)) ** -0.5  # some swings of the momentum
    tiny = 1e-30 + torch.finfo(start.dtype).eps * _lengths(problem.given.x)
    secants = Secants(problem) if rests_on_claims(problem, low) else None
    h = before = problem.prox(start, step)
    t, best, stalled = 1.0, float("inf"), 0

    def left(at: Tensor, moved: Tensor) -> float:
        return float((_lengths(moved - at) / (rate * floor * (_lengths(moved) + tiny))).max())

    residual, k = float("inf"), 0
    while k < effort.limit:
        ahead = (1 + (1 + 4 * t * t) ** 0.5) / 2
        y = h + (h - before) * ((t - 1) / ahead)
        slope = problem.gradient(y)
        new = problem.prox(y - slope * step, step)
        if secants is not None:
            secants.see(y, slope)
        k += 1
        residual = left(y, new)
        uphill = float(((y - new) * (new - h)).sum()) > 0
        t = 1.0 if uphill else ahead
        before, h = h, new
        # A long pause means the end only where rounding is all that is left.
        stalled = stalled + 1 if residual > 0.99 * best else 0
        best = min(best, residual)
        ended = stalled > patience and best <= rounding
        if residual <= effort.tolerance or ended:
            # The step began at the extrapolated point; what counts is what is left at H itself.
            residual = left(h, problem.prox(h - problem.gradient(h) * step, step))
            if residual <= effort.tolerance or ended:
                break
            t, before = 1.0, h
    report = SolveReport("accelerated steps", k, residual, effort.tolerance, rounding)
    if not report.converged and not residual <= rounding:
        _refuse_unfinished(problem, report)
    refuse_rough(problem, h, step)
    if secants is not None:
        refuse_wavy(problem, (start, h), step)
    return Solution(h, report)


def _lengths(h: Tensor) -> Tensor:
    """The length of every signal."""
    return torch.linalg.vector_norm(h, dim=(-2, -1)).double()


def _refuse_unfinished(problem: Problem, report: SolveReport) -> None:
    terms = [t for t in problem.objective.smooth_terms if not getattr(t, "affine_gradient", False)]
    steep = [t.name for t in terms if isinstance(t, KLFidelity)]
    own = [t.name for t in terms if not shipped(t)]
    hint = f", or a larger floor of {' and '.join(steep)}, with which steps grow" if steep else ""
    hint += f", or look whether the Lipschitz constant of {' and '.join(own)} is too small" if own else ""
    raise IncompatibleError(
        f"the minimiser of {problem.objective} was not reached ({report}); allow a larger tolerance or limit{hint}"
    )
