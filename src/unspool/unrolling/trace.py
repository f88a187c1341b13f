"""What happens inside a network, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.algorithm import Algorithm, Problem
from unspool.algorithm.algorithm import State, initial_state, shipped
from unspool.algorithm.exact import check_minimiser, solve
from unspool.algorithm.optimality import solver_step
from unspool.algorithm.solvers import Effort, Solution
from unspool.errors import IncompatibleError
from unspool.notebook import paragraphs, table
from unspool.ops.convergence import SolveReport


@dataclass(frozen=True, eq=False)
class Trace:
    """Iterates and numbers along the layers of a network; iterating over it gives H⁽⁰⁾, H⁽¹⁾, ..., H⁽ᴷ⁾.

    Attributes:
        iterates: H⁽⁰⁾ ... H⁽ᴷ⁾.
        before: layer k's objective at H⁽ᵏ⁻¹⁾, for k = 1 ... K.
        after: layer k's objective at H⁽ᵏ⁾. Under tied coefficients ``after[k-1]`` and ``before[k]`` agree.
        gradient: the norm of the gradient at H⁽ᵏ⁾ (of the proximal gradient map where a term is not smooth; nan where one is
            composite, since H alone does not tell it).
        distance: ‖H⁽ᵏ⁾ − H*‖ / ‖H*‖ to layer k's own minimiser; None where there is none.
        minimum: the objective at that minimiser.
        reason: why there is no minimiser, if so.
        report: how the minimiser was found, of the layer where it was found least exactly; distances below its residual say
            nothing.
    """

    iterates: tuple[Tensor, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    gradient: tuple[float, ...]
    distance: tuple[float | None, ...]
    minimum: tuple[float | None, ...]
    reason: str | None
    report: SolveReport | None = None

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.iterates)

    def __len__(self) -> int:
        return len(self.iterates)

    def __str__(self) -> str:
        lines = ["layer   objective before    after      |gradient|   distance to minimiser"]
        rows = zip(self.before, self.after, self.gradient, self.distance, strict=True)
        for k, (before, after, slope, distance) in enumerate(rows, start=1):
            far = "-" if distance is None else f"{distance:.3e}"
            lines.append(f"{k:>5}   {before:>16.6g} {after:>12.6g}   {slope:>10.3e}   {far}")
        return "\n".join([*lines, *self._remarks()])

    def _remarks(self) -> list[str]:
        told = [] if self.reason is None else [f"(no minimiser: {self.reason})"]
        if self.report is not None and not self.report.converged:
            told.append(f"(distances are to what the solver found, {self.report})")
        return told

    def _repr_html_(self) -> str:
        heads = ["layer", "objective before", "after", "norm of the gradient", "distance to the minimiser"]
        numbers = zip(self.before, self.after, self.gradient, self.distance, strict=True)
        rows = [
            [k, f"{before:.6g}", f"{after:.6g}", f"{slope:.3g}", "–" if far is None else f"{far:.3g}"]
            for k, (before, after, slope, far) in enumerate(numbers, start=1)
        ]
        return table(f"{len(rows)} layers", heads, rows) + paragraphs(self._remarks())


def trace(algorithm: Algorithm, problems: list[Problem], start: Tensor) -> Trace:
    """Step through the problems one by one, measuring each."""
    state: State = initial_state(algorithm, start, problems[0])
    iterates, before, after, slopes, distances, minima = [start], [], [], [], [], []
    target: Tensor | None = None
    reason: str | None = None
    report: SolveReport | None = None
    tied = not any(leaf.per_layer for leaf in problems[0].objective.leaves)
    for problem in problems:
        if target is None or not tied:
            found = _minimiser(problem, start)
            if isinstance(found, str):
                target, reason = None, reason or found
            else:
                target = found.h
                report = found.report if report is None or found.report.residual > report.residual else report
        before.append(float(problem.value(state[0]).sum()))
        state = algorithm.update(state, problem)
        h = state[0] if shipped(algorithm) else state[0].clone()  # a rule of one's own may go on writing into it
        iterates.append(h)
        after.append(float(problem.value(h).sum()))
        slopes.append(_slope(problem, h))
        distances.append(None if target is None else _relative(h, target))
        minima.append(None if target is None else float(problem.value(target).sum()))
    return Trace(
        tuple(iterates), tuple(before), tuple(after), tuple(slopes), tuple(distances), tuple(minima), reason, report
    )


def _minimiser(problem: Problem, start: Tensor) -> Solution | str:
    """The minimiser, or why there is none."""
    try:
        check_minimiser(problem.objective)
        return solve(problem, start, Effort.of(None, 20_000, start.dtype))
    except IncompatibleError as refusal:
        return str(refusal)


def _slope(problem: Problem, h: Tensor) -> float:
    if problem.objective.smooth:
        return float(torch.linalg.vector_norm(problem.gradient(h)))
    if problem.composite_terms:
        return float("nan")
    step = solver_step(problem)
    moved = problem.prox(h - problem.gradient(h) * step, step)
    return float(torch.linalg.vector_norm((h - moved) / step))


def _relative(h: Tensor, target: Tensor) -> float:
    size = float(torch.linalg.vector_norm(target))
    return float(torch.linalg.vector_norm(h - target)) / (size if size > 0 else 1.0)
