"""Laws of terms."""

from __future__ import annotations

import torch
from torch import Tensor

from unspool.graph import Graph
from unspool.objective import Given, ProximableTerm, QuadraticTerm, SmoothTerm, Term
from unspool.objective.term import checked_kind, stencil_gradient
from unspool.refusal import Refusal
from unspool.testing.laws import LawBroken, random_signal, relative, require, small_graph


def check_term(term: Term, features: int = 3, graph: Graph | None = None, seed: int = 0) -> None:
    """Check that a term keeps its laws, at random points in float64.

    * kind: it is exactly one kind of term, smooth or proximable.
    * value: one number per leading dimension; a scaled term scales its value.
    * smooth: the gradient is autograd's; its Lipschitz constant holds; a quadratic term's gradient is affine, and
      its stencil reproduces it.
    * proximable: the proximal operator beats random competitors, is firmly non-expansive, and has finite gradients,
      at kinks too.

    Args:
        term: the term, shipped or one's own.
        features: width of the signals it is tried on (that of its metric, if it has one).
        graph: the graph it is tried on; a small weighted one by default.
        seed: of the random points.

    Raises:
        LawBroken: with the law and the size of the violation.

    Example:
        >>> import unspool as us
        >>> us.testing.check_term(us.Fidelity(0.3, metric=us.Symmetric(3)))
        >>> us.testing.check_term(us.RowSparseFidelity(0.4))
    """
    graph = small_graph() if graph is None else graph
    generator = torch.Generator().manual_seed(seed)
    x, h = random_signal(graph, features, generator), random_signal(graph, features, generator)
    given = Given(x, graph, step=0.5)
    _check_kind(term)
    _check_value(term, h, given)
    if isinstance(term, SmoothTerm):
        _check_gradient(term, h, given)
        _check_lipschitz(term, given, generator)
    if isinstance(term, ProximableTerm):
        for step in (0.1, 1.0, 3.0):
            _check_prox(term, 2 * h, step, given, generator)
        _check_kinks(term, given)


def _check_kind(term: Term) -> None:
    try:
        checked_kind(term)
    except Refusal as refusal:
        raise LawBroken(str(refusal)) from None


def _check_value(term: Term, h: Tensor, given: Given) -> None:
    require(len(term.formula()) > 0, f"{term.name} prints as nothing")
    single = term.value(h, given)
    require(
        single.shape == (),
        f"{term.name}.value has shape {tuple(single.shape)} for one signal: expected a single number",
    )
    stacked = term.value(torch.stack([h, h]), given)
    require(
        stacked.shape == (2,),
        f"{term.name}.value has shape {tuple(stacked.shape)} for two stacked signals: expected (2,)",
    )
    try:
        doubled = term.scaled(2.0).value(h, given)
    except (Refusal, TypeError):
        return
    if torch.isfinite(single):
        require(
            abs(float(doubled - 2 * single)) <= 1e-9 * (1 + abs(float(single))),
            f"2 · {term.name} is not twice its value",
        )


def _check_gradient(term: SmoothTerm, h: Tensor, given: Given) -> None:
    leaf = h.clone().requires_grad_()
    (expected,) = torch.autograd.grad(term.value(leaf, given), leaf)
    gap = relative(term.gradient(h, given), expected)
    require(gap < 1e-8, f"{term.name}.gradient differs from autograd of its value by {gap:.1e}")
    if term.quadratic:
        zero = torch.zeros_like(h)
        affine = term.gradient(h + given.x, given) + term.gradient(zero, given)
        gap = relative(affine, term.gradient(h, given) + term.gradient(given.x, given))
        require(gap < 1e-8, f"{term.name} calls itself quadratic, but its gradient is not affine (off by {gap:.1e})")
    if isinstance(term, QuadraticTerm):
        gap = relative(stencil_gradient(term.stencil(given), h, given), term.gradient(h, given))
        require(gap < 1e-8, f"{term.name}.stencil does not reproduce its gradient (off by {gap:.1e})")


def _check_lipschitz(term: SmoothTerm, given: Given, generator: torch.Generator) -> None:
    constant = float(term.lipschitz(given))
    for scale in (0.01, 1.0, 10.0):
        a = random_signal(given.graph, given.x.shape[-1], generator)
        b = a + scale * random_signal(given.graph, given.x.shape[-1], generator)
        growth = float((term.gradient(a, given) - term.gradient(b, given)).norm() / (a - b).norm())
        require(
            growth <= constant * (1 + 1e-9) + 1e-12,
            f"{term.name}.lipschitz says {constant:.4g}, but its gradient grew by {growth:.4g}",
        )


def _check_prox(term: ProximableTerm, v: Tensor, step: float, given: Given, generator: torch.Generator) -> None:
    # A term that stands for φ/η reads its weight off the step it is used with.
    given = Given(given.x, given.graph, given.values, step)
    best = term.prox(v, step, given)
    cost = _cost(term, best, v, step, given)
    require(cost < float("inf"), f"{term.name}.prox returns a point where the term is infinite")
    for scale in (1e-4, 1e-2, 0.3, 3.0):
        for _ in range(8):
            other = best + scale * random_signal(given.graph, v.shape[-1], generator)
            # Small moves leave the domain of a constraint, so competitors are also pulled half-way back.
            for rival in (other, term.prox(other, step, given)):
                gain = cost - _cost(term, rival, v, step, given)
                require(
                    gain <= 1e-9 * (1 + abs(cost)),
                    f"{term.name}.prox is not the minimiser: a competitor is better by {gain:.1e}",
                )
    u = v + random_signal(given.graph, v.shape[-1], generator)
    move = term.prox(u, step, given) - best
    excess = float((move * move).sum() - (move * (u - v)).sum())
    require(excess <= 1e-9, f"{term.name}.prox is not firmly non-expansive (by {excess:.1e})")


def _cost(term: ProximableTerm, y: Tensor, v: Tensor, step: float, given: Given) -> float:
    return float(term.value(y, given)) + float((y - v).square().sum()) / (2 * step)


def _check_kinks(term: ProximableTerm, given: Given) -> None:
    for name, point in (("zero", torch.zeros_like(given.x)), ("the input", given.x.clone())):
        leaf = point.requires_grad_()
        (slope,) = torch.autograd.grad(term.prox(leaf, 0.5, given).sum(), leaf)
        require(bool(torch.isfinite(slope).all()), f"{term.name}.prox has a gradient that is not finite at {name}")
