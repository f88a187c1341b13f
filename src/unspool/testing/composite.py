"""Laws of linear operators and of the terms behind them."""

from __future__ import annotations

import torch
from torch import Tensor

from unspool.graph import Graph
from unspool.objective import CompositeTerm, Given, LinearOperator
from unspool.testing.laws import random_signal, relative, require, run_on, small_graph


def check_operator(operator: LinearOperator, features: int = 3, graph: Graph | None = None, seed: int = 0) -> None:
    """Check that an operator is linear, that its adjoint is one, and that its norm is bounded as it says.

    Args:
        operator: K, shipped or one's own.
        features: width of the signals it is tried on.
        graph: the graph it is tried on; a small weighted one by default.
        seed: of the random signals.

    Raises:
        LawBroken: with the law and the size of the violation.

    Example:
        >>> import unspool as us
        >>> us.testing.check_operator(us.Incidence(power=1))
    """
    chosen, graph = graph is not None, small_graph() if graph is None else graph
    generator = torch.Generator().manual_seed(seed)
    name = type(operator).__name__
    a, b = (random_signal(graph, features, generator) for _ in range(2))
    image = run_on(name, lambda: operator(a, graph), graph, chosen)
    gap = relative(operator(2 * a - 3 * b, graph), 2 * image - 3 * operator(b, graph))
    require(gap < 1e-9, f"{name} is not linear (off by {gap:.1e})")
    stacked = operator(torch.stack([a, b]), graph)
    gap = relative(stacked[0], image)
    require(gap < 1e-9, f"{name} of a stack of signals differs from those of the single ones by {gap:.1e}")
    z = torch.randn(image.shape, dtype=a.dtype, generator=generator)
    left, right = float((image * z).sum()), float((a * operator.adjoint(z, graph)).sum())
    size = float(torch.linalg.vector_norm(image) * torch.linalg.vector_norm(z))
    require(
        abs(left - right) <= 1e-9 * (1 + size),
        f"{name}.adjoint is not the adjoint: ⟨K H, Z⟩ = {left:.6g}, ⟨H, Kᵀ Z⟩ = {right:.6g}",
    )
    largest = _largest(operator, a, graph)
    bound = float(operator.squared_norm(graph))
    require(
        largest <= bound * (1 + 1e-9) + 1e-12,
        f"{name}.squared_norm says {bound:.6g}, but ‖K H‖² reaches {largest:.6g} ‖H‖², so primal-dual steps may diverge",
    )


def check_composite(term: CompositeTerm, h: Tensor, given: Given, generator: torch.Generator) -> None:
    """The laws of a composite term: its operator's, its value, its proximal operators."""
    check_operator(term.operator, h.shape[-1], given.graph)
    z = term.operator(h, given.graph)
    gap = relative(term.value(h, given), term.outer_value(z, given))
    require(gap < 1e-9, f"{term.name}.value is not outer_value of K H (off by {gap:.1e})")
    for step in (0.1, 1.0, 3.0):
        _check_outer(term, 2 * z, step, given, generator)
        moreau = z - step * term.outer_prox(z / step, 1.0 / step, given)
        gap = relative(term.dual_prox(z, step, given), moreau)
        require(gap < 1e-9, f"{term.name}.dual_prox breaks Moreau's identity with outer_prox by {gap:.1e}")
        moved = term.dual_prox(2 * z + step * term.operator(h, given.graph), step, given)
        whole = torch.cat([moved, term.operator.adjoint(moved, given.graph)], -2)
        gap = relative(torch.cat(term.dual_step(2 * z, step, h, given), -2), whole)
        require(gap < 1e-9, f"{term.name}.dual_step is not its dual_prox behind its operator (off by {gap:.1e})")
    leaf = torch.zeros_like(z).requires_grad_()
    for method in (term.outer_prox, term.dual_prox):
        (slope,) = torch.autograd.grad(method(leaf, 0.5, given).sum(), leaf)
        require(
            bool(torch.isfinite(slope).all()), f"{term.name}.{method.__name__} has a gradient that is not finite at 0"
        )


def _check_outer(term: CompositeTerm, v: Tensor, step: float, given: Given, generator: torch.Generator) -> None:
    def cost(y: Tensor) -> float:
        return float(term.outer_value(y, given)) + float((y - v).square().sum()) / (2 * step)

    best = term.outer_prox(v, step, given)
    for scale in (1e-4, 1e-2, 0.3, 3.0):
        for _ in range(8):
            rival = best + scale * torch.randn(v.shape, dtype=v.dtype, generator=generator)
            gain = cost(best) - cost(rival)
            require(
                gain <= 1e-9 * (1 + abs(cost(best))),
                f"{term.name}.outer_prox is not the minimiser: a competitor is better by {gain:.1e}",
            )


def _largest(operator: LinearOperator, start: Tensor, graph: Graph) -> float:
    """The largest eigenvalue of KᵀK from below, by power iteration."""
    h = start / torch.linalg.vector_norm(start)
    value = 0.0
    for _ in range(200):
        new = operator.adjoint(operator(h, graph), graph)
        value = float(torch.linalg.vector_norm(new))
        if value == 0:
            return 0.0
        h = new / value
    return value
