"""Laws of terms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.graph import Graph
from unspool.objective import CompositeTerm, Given, ProximableTerm, SmoothTerm, StencilTerm, Term
from unspool.objective.belongings import check_owned
from unspool.objective.computed import values_at
from unspool.objective.term import checked_kind, stencil_gradient
from unspool.testing.composite import check_composite
from unspool.testing.derivatives import check_derivatives
from unspool.testing.laws import LawBroken, random_signal, relative, require, run_on, small_graph

#: How far from 0 and from the input a term is tried.
SIZES = (0.01, 0.1, 1.0, 10.0, 30.0)
#: So many entries of H a Hessian is written out for.
ENTRIES = 64


def check_term(term: Term, features: int = 3, graph: Graph | None = None, seed: int = 0) -> None:
    """Check that a term keeps its laws, at random points in float64, near and far from 0 and from the input.

    * kind: it is exactly one kind of term, smooth, proximable or composite.
    * value: one number per leading dimension; a scaled term scales its value.
    * convex: a term whose ``is_convex`` says so has no chord below its values, and no curvature below zero.
    * derivatives: autograd sees how the gradient or the proximal operator depends on H, X, the step and every coefficient.
    * smooth: the gradient is autograd's, in a stack too; its Lipschitz constant holds; a quadratic term's gradient is
      affine, and its stencil reproduces it.
    * proximable: the proximal operator beats random competitors, is firmly non-expansive, and has finite gradients,
      at kinks too; it acts entry by entry if the term is ``separable``, and is a projection if it is an ``interval``.

    * composite: the operator is linear with a true adjoint and a true bound on its norm; the proximal operator beats random
      competitors and fits its dual.

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
    chosen, graph = graph is not None, small_graph() if graph is None else graph
    generator = torch.Generator().manual_seed(seed)
    x, h = random_signal(graph, features, generator), random_signal(graph, features, generator)
    given = Given(x, graph, values_at(term.leaves, x, graph), step=0.5)
    try:
        checked_kind(term)
        check_owned(term.name, term)
    except (IncompatibleError, TypeError) as refusal:
        raise LawBroken(str(refusal)) from None
    run_on(term.name, lambda: term.value(h, given), graph, chosen)
    _check_value(term, h, given)
    _check_input(term, h, given, generator)
    if term.is_convex(given):
        _check_chords(term, given, generator)
    check_derivatives(term, given, _points(given, generator), generator)
    if isinstance(term, SmoothTerm):
        _check_gradient(term, given, generator)
        _check_curvature(term, given, generator)
    if isinstance(term, CompositeTerm):
        check_composite(term, h, given, generator)
    if isinstance(term, ProximableTerm):
        for step in (0.1, 1.0, 3.0):
            _check_prox(term, 2 * h, step, given, generator)
        _check_kinks(term, given)
        _check_flags(term, given, generator)


def _points(given: Given, generator: torch.Generator) -> Iterator[tuple[float, Tensor]]:
    """Points at all sizes, around 0 and around the input."""
    for size in SIZES:
        for centre in (torch.zeros_like(given.x), given.x):
            yield size, centre + size * random_signal(given.graph, given.x.shape[-1], generator)


def _check_input(term: Term, h: Tensor, given: Given, generator: torch.Generator) -> None:
    other = replace(given, x=random_signal(given.graph, given.x.shape[-1], generator))
    one, two = float(term.value(h, given)), float(term.value(h, other))
    require(
        term.uses_input or one == two, f"{term.name}.uses_input says that it does not mention X, but its value does"
    )


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
    except (IncompatibleError, TypeError):
        return
    if torch.isfinite(single):
        require(
            abs(float(doubled - 2 * single)) <= 1e-9 * (1 + abs(float(single))),
            f"2 · {term.name} is not twice its value",
        )


def _check_chords(term: Term, given: Given, generator: torch.Generator) -> None:
    """f(t a + (1 − t) b) ≤ t f(a) + (1 − t) f(b), also for points that differ in one row or one entry."""
    for size, a in _points(given, generator):
        move = size * random_signal(given.graph, a.shape[-1], generator)
        row, entry = torch.zeros_like(move), torch.zeros_like(move)
        at = int(torch.randint(given.graph.nodes, (), generator=generator))
        row[at], entry[at, 0] = move[at], move[at, 0]
        for b in (a + move, a + row, a + entry):
            ends = (a, b)
            if isinstance(term, ProximableTerm):  # a constraint is finite where its projections lie
                ends = (term.prox(a, 0.5, given), term.prox(b, 0.5, given))
            left, right = (float(term.value(end, given)) for end in ends)
            for t in (0.25, 0.5, 0.75):
                above = t * left + (1 - t) * right
                gap = float(term.value(t * ends[0] + (1 - t) * ends[1], given)) - above
                require(
                    gap <= 1e-9 * (1 + abs(left) + abs(right)),
                    f"{term.name}.is_convex says that it is convex, but its value lies {gap:.2g} above a chord near |h| = {size:g}; "
                    "return False from is_convex where it is not",
                )


def _check_gradient(term: SmoothTerm, given: Given, generator: torch.Generator) -> None:
    points = [point for _, point in _points(given, generator)]
    for h in points:
        leaf = h.clone().requires_grad_()
        value = term.value(leaf, given)
        require(
            value.requires_grad,
            f"autograd cannot see how {term.name}.value depends on H; write it with torch operations",
        )
        (expected,) = torch.autograd.grad(value, leaf)
        gap = relative(term.gradient(h, given), expected)
        require(gap < 1e-8, f"{term.name}.gradient differs from autograd of its value by {gap:.1e}")
    alone = torch.stack([term.gradient(h, given) for h in points])
    gap = relative(term.gradient(torch.stack(points), given), alone)
    require(
        gap < 1e-8, f"{term.name}.gradient of a stack of signals differs from those of the single ones by {gap:.1e}"
    )
    if term.affine_gradient:
        nothing = term.gradient(torch.zeros_like(given.x), given)
        for a, b in zip(alone, points, strict=True):
            gap = relative(term.gradient(b + given.x, given) + nothing, a + term.gradient(given.x, given))
            require(
                gap < 1e-8, f"{term.name} calls itself quadratic, but its gradient is not affine (off by {gap:.1e})"
            )
    if isinstance(term, StencilTerm):
        h = points[-1]
        gap = relative(stencil_gradient(term.stencil(given), h, given), term.gradient(h, given))
        require(gap < 1e-8, f"{term.name}.stencil does not reproduce its gradient (off by {gap:.1e})")


def _bound(term: SmoothTerm, given: Given) -> float:
    """L; infinite for a term that says there is none, as penalties that grow faster than squares do."""
    try:
        return float(term.lipschitz(given))
    except IncompatibleError:
        return float("inf")


def _check_curvature(term: SmoothTerm, given: Given, generator: torch.Generator) -> None:
    """The Hessian at every point, or a block of it: its eigenvalues lie in [−L, L], and in [0, L] for a convex term."""
    bound, convex = _bound(term, given), term.is_convex(given)
    for size, h in _points(given, generator):
        low, high = _curvature(term, h, 1e-4 * max(size, 0.1), given, generator)
        rounding = 1e-6 * (1 + max(abs(low), abs(high)))
        steep = max(abs(low), abs(high))
        require(
            steep <= bound + rounding,
            f"{term.name}.lipschitz says {bound:.4g}, but its gradient grows by {steep:.4g} near |h| = {size:g}",
        )
        require(
            not convex or low >= -rounding,
            f"{term.name}.is_convex says that it is convex, but its curvature falls to {low:.3g} near |h| = {size:g}; "
            "return False from is_convex where it is not",
        )


def _curvature(
    term: SmoothTerm, h: Tensor, step: float, given: Given, generator: torch.Generator
) -> tuple[float, float]:
    """The outer eigenvalues of (a block of) the Hessian at h, by differences of gradients."""
    entries = torch.randperm(h.numel(), generator=generator)[:ENTRIES]
    moves = torch.zeros(len(entries), h.numel(), dtype=h.dtype)
    moves[torch.arange(len(entries)), entries] = step
    moves = moves.view(-1, *h.shape)
    change = (term.gradient(h + moves, given) - term.gradient(h - moves, given)) / (2 * step)
    block = change.detach().flatten(1)[:, entries]
    value = torch.linalg.eigvalsh((block + block.mT) / 2)
    return float(value[0]), float(value[-1])


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
        image = term.prox(leaf, 0.5, given)
        if not image.requires_grad:
            continue  # it depends on nothing, as the law of derivatives has found
        (slope,) = torch.autograd.grad(image.sum(), leaf)
        require(bool(torch.isfinite(slope).all()), f"{term.name}.prox has a gradient that is not finite at {name}")


def _check_flags(term: ProximableTerm, given: Given, generator: torch.Generator) -> None:
    """What a term says of itself decides which terms may stand beside it."""
    for size, v in _points(given, generator):
        at = int(torch.randint(v.numel(), (), generator=generator))
        moved = v.flatten().index_add(0, torch.tensor([at]), torch.tensor([size], dtype=v.dtype)).view(v.shape)
        change = (term.prox(moved, 0.5, given) - term.prox(v, 0.5, given)).flatten()
        change[at] = 0
        spread = float(change.abs().max())
        require(
            not (term.separable or term.interval) or spread <= 1e-9 * (1 + size),
            f"{term.name} says that it acts on every entry alone, but its prox moves others by {spread:.1e}; set separable = False",
        )
        there = term.prox(v, 0.5, given)
        again = relative(term.prox(there, 2.0, given), there)
        require(
            not term.interval or again <= 1e-9,
            f"{term.name} says that it is an interval, but its prox is not a projection (off by {again:.1e}); set interval = False",
        )
