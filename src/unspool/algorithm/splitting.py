"""Minimisers of quadratic problems with penalties g(K H), by splitting: one sparse factorisation serves hundreds of steps.

With Z = K H as a variable of its own, the steps are those of the alternating direction method of multipliers (ADMM; Boyd and
others, 2011), over-relaxed, and with a penalty ρ that is balanced a few times on the way. The quadratic step solves
(Q + ρ KᵀK) H = right. First-order steps need the condition number of K instead, which for B L is in the ten thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
import torch
from torch import Tensor

from unspool.algorithm.algorithm import Problem
from unspool.algorithm.solvers import Effort, Solution
from unspool.errors import IncompatibleError
from unspool.graph import Graph
from unspool.objective import Incidence, LaplacianPower, LinearOperator, NodeFidelity, StencilTerm, Term, channel
from unspool.ops.convergence import SolveReport

Array = np.ndarray[Any, Any]

#: Graphs of more nodes, or more entries in KᵀK, are not factorised.
_NODES, _ENTRIES = 20_000, 4_000_000
#: Over-relaxation.
_RELAX = 1.7
#: What is left of so many roundings of H cannot become less: of constant signals, nothing else is left.
_ROUNDINGS = 50 * float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Split:
    """Where a solve ended, for the next one to start from: K H as a variable, its multipliers and ρ, both relative to Q."""

    z: Array
    multiplier: Array
    rho: float


@dataclass(frozen=True, eq=False)
class _Parts:
    """A problem as matrices: Q for each kind of column, K of all penalties stacked, and their proximal operators."""

    quadratic: list[Any]
    kind_of_column: Array
    k: Any
    rows: list[int]
    proxes: list[Callable[[Tensor, float], Tensor]]
    right: Array

    def prox(self, z: Array, step: float) -> Array:
        parts = np.split(z, np.cumsum(self.rows)[:-1])
        pairs = zip(parts, self.proxes, strict=True)
        return np.concatenate([prox(torch.from_numpy(part), step).numpy() for part, prox in pairs])

    def times(self, h: Array) -> Array:
        """Q H."""
        return np.stack([self.quadratic[k] @ c for k, c in zip(self.kind_of_column, h.T, strict=True)], axis=1)

    def unit(self, h: Array) -> float:
        """The mean diagonal of Q; where nothing is quadratic, forces are of the size of weights, and copies of that of H."""
        size = float(np.sqrt(np.mean(np.square(h))))
        return float(self.quadratic[0].diagonal().mean()) if self.bent else 1 / max(size, 1e-30)

    @property
    def bent(self) -> bool:
        """Whether there is a quadratic term."""
        return float(self.quadratic[0].diagonal().mean()) > 0

    def balance(self) -> float:
        """One over the mean diagonal of KᵀK."""
        return 1 / max(float((self.k.T @ self.k).diagonal().mean()), 1e-30)

    def factorised(self, rho: float) -> Callable[[Array], Array]:
        """The map from a right-hand side to the H with (Q + ρ KᵀK) H = right."""
        square = rho * (self.k.T @ self.k)
        made = [_factor(q + square) for q in self.quadratic]
        if len(made) == 1:
            return made[0]

        def solve(right: Array) -> Array:
            h = np.empty_like(right)
            for kind, one in enumerate(made):
                h[:, self.kind_of_column == kind] = one(right[:, self.kind_of_column == kind])
            return h

        return solve


def solve_split(
    problem: Problem, start: Tensor, effort: Effort, warm: Split | None = None
) -> tuple[Solution, Split] | None:
    """The minimiser of quadratic terms plus proximable and composite ones, in float64; None for problems of another form or size.

    Without any but quadratic terms, one factorisation is the whole solve.

    Args:
        problem: what is minimised.
        start: where the steps start.
        effort: how near and how long.
        warm: where the solve of a similar problem ended.

    Example:
        >>> import torch, unspool as us
        >>> from unspool.algorithm import Problem
        >>> x, graph = torch.eye(6), us.graph.ring(6)
        >>> objective = us.Fidelity(0.5) + us.EdgeSparse(0.1)
        >>> found, _ = solve_split(Problem(objective, us.Given(x, graph)), x, Effort.of(1e-8, 1000, x.dtype))
        >>> torch.allclose(found.h, us.minimise(objective, x, graph), atol=1e-5)
        True
    """
    parts = _parts(problem, start)
    if parts is None:
        return None
    if not parts.proxes:
        h = parts.factorised(0.0)(parts.right)
        left = np.linalg.norm(parts.right - parts.times(h)) / max(float(np.linalg.norm(parts.right)), 1e-30)
        report = SolveReport("sparse factorisation", 1, float(left), effort.tolerance, float(left))
        return Solution(torch.from_numpy(h).to(start), report), Split(h[:0], h[:0], 1.0)
    h = start.detach().cpu().double().numpy()
    z = parts.k @ h if warm is None else warm.z
    unit = parts.unit(h)
    rho = unit * (parts.balance() if warm is None else warm.rho)
    u = np.zeros_like(z) if warm is None else warm.multiplier * (unit / rho)
    # Where K H or the multipliers vanish, what is left is measured against a share of what they started from.
    noise = _ROUNDINGS * float(np.linalg.norm(h)) / effort.tolerance
    stretch = 1 / np.sqrt(parts.balance())
    size = 1e-30 + 1e-3 * float(np.linalg.norm(parts.k @ h)) + noise * stretch
    level = np.broadcast_to(h.mean(0), h.shape)
    force = (
        1e-30 + 1e-3 * float(np.linalg.norm(parts.right - parts.times(level))) + noise * (unit + rho / parts.balance())
    )
    solve, look, left, k = parts.factorised(rho), 10, np.inf, 0
    while left > effort.tolerance and k < effort.limit:
        h, k = solve(parts.right + rho * (parts.k.T @ (z - u))), k + 1
        image = parts.k @ h
        mixed = _RELAX * image + (1 - _RELAX) * z
        new = parts.prox(mixed + u, 1 / rho)
        u = u + mixed - new
        apart = np.linalg.norm(image - new) / max(np.linalg.norm(image), np.linalg.norm(new), size)
        # Where nothing is quadratic, the multipliers balance each other, and Kᵀu vanishes.
        pull = np.linalg.norm(parts.k.T @ u) if parts.bent else stretch * np.linalg.norm(u)
        moved = rho * np.linalg.norm(parts.k.T @ (new - z)) / max(rho * pull, force)
        z, left = new, float(max(apart, moved))
        if k == look and left > effort.tolerance:
            look *= 2
            factor = float(np.clip(np.sqrt(max(apart, 1e-30) / max(moved, 1e-30)), 0.1, 10))
            if not 0.6 < factor < 1.7:
                rho, u = rho * factor, u / factor
                solve = parts.factorised(rho)
    attainable = 1e3 * float(np.finfo(float).eps)
    report = SolveReport("splitting", k, left, effort.tolerance, attainable, left > effort.tolerance)
    return Solution(_allowed(problem, torch.from_numpy(h).to(start)), report), Split(z, (rho / unit) * u, rho / unit)


def _allowed(problem: Problem, h: Tensor) -> Tensor:
    """H, or the nearest point that keeps the constraints, which H itself keeps to the tolerance only."""
    broken = not bool(torch.isfinite(problem.value(h)).all())
    return problem.prox(h, float(torch.finfo(h.dtype).tiny)) if broken else h


def _parts(problem: Problem, start: Tensor) -> _Parts | None:
    given, objective = problem.given, problem.objective
    if start.ndim != 2 or given.graph.nodes > _NODES or not given.graph.undirected:
        return None
    graph = given.graph.to(device="cpu", dtype=torch.float64)
    exact = replace(given, x=given.x.detach().cpu().double(), graph=graph)
    if any(getattr(term, "per_step", False) for term in objective.terms):
        return None
    images = [_image(term.operator, graph) for term in objective.composite_terms]
    images += [scipy.sparse.eye_array(graph.nodes, format="csr") for _ in objective.proximable_terms]
    quadratic = _quadratic(objective.smooth_terms, exact, start.shape[-1])
    if quadratic is None or any(image is None for image in images):
        return None
    k: Any = scipy.sparse.vstack([scipy.sparse.csr_array((0, graph.nodes)), *images], format="csr")
    if (k.T @ k).nnz > _ENTRIES:
        return None
    proxes = [lambda z, s, t=term: t.outer_prox(z, s, exact) for term in objective.composite_terms]
    proxes += [lambda z, s, t=term: t.prox(z, s, exact) for term in objective.proximable_terms]
    right = -Problem(objective, exact).gradient(torch.zeros(start.shape, dtype=torch.float64)).numpy()
    return _Parts(*quadratic, k, [image.shape[0] for image in images], proxes, right)


def _image(operator: LinearOperator, graph: Graph) -> Any:
    """K as a sparse matrix, for the operators that have a sparse one."""
    if type(operator) is Incidence:
        return graph.incidence().to_scipy() @ _power(graph, operator.power)
    return _power(graph, operator.power) if type(operator) is LaplacianPower else None


def _power(graph: Graph, power: int) -> Any:
    made: Any = scipy.sparse.eye_array(graph.nodes, format="csr")
    for _ in range(power):
        made = made @ graph.laplacian().to_scipy()
    return made


def _quadratic(terms: tuple[Term, ...], given: Any, channels: int) -> tuple[list[Any], Array] | None:
    """Q of every kind of column, and the kind of each; None where a term is no polynomial of L and no weights of entries."""
    total: Any = scipy.sparse.csr_array((given.graph.nodes, given.graph.nodes))
    weights = np.zeros((given.graph.nodes, channels))
    for term in terms:
        if isinstance(term, NodeFidelity):
            weights = weights + 2 * term.entry_weights(given).double().numpy()
        elif isinstance(term, StencilTerm) and all(channel.rank(m) == 0 for m in term.stencil(given).of_h):
            for power, c in enumerate(term.stencil(given).of_h):
                total = total + float(c) * _power(given.graph, power)
        else:
            return None
    kinds, kind_of_column = np.unique(weights, axis=1, return_inverse=True)
    return [total + scipy.sparse.diags_array(column) for column in kinds.T], kind_of_column.reshape(-1)


def _factor(matrix: Any) -> Callable[[Array], Array]:
    options = {"SymmetricMode": True}
    try:
        made = scipy.sparse.linalg.splu(matrix.tocsc(), "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except RuntimeError:  # exactly singular
        raise IncompatibleError(
            "there is a direction in which no term holds the signal, so the minimiser is not unique; give every component of the graph a "
            "fidelity, or add a small Ridge"
        ) from None
    return made.solve


__all__ = ["Split", "solve_split"]
