"""Terms say of themselves that they are convex; where a minimiser rests on that, it is looked at.

A differentiable f is convex exactly if its gradient is monotone, ⟨∇f(a) − ∇f(b), a − b⟩ ≥ 0, and p is the proximal operator of a
convex function only if ⟨p(a) − p(b), a − b⟩ ≥ ‖p(a) − p(b)‖². One pair of points that breaks it proves the contrary. Points
are the iterates, and then directions that Lanczos' method finds at the ends and around them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unspool.algorithm.algorithm import Problem
from unspool.errors import IncompatibleError
from unspool.objective import SmoothTerm, StencilTerm
from unspool.objective.channel import Map

#: Steps of Lanczos' method at each point.
_STEPS = 10
#: A curvature below minus this share of the Lipschitz constant is no rounding.
_SHARE = 1e-3


def claimants(problem: Problem) -> list[SmoothTerm]:
    """The smooth terms whose convexity is their own word."""
    return [t for t in problem.objective.smooth_terms if not getattr(t, "affine_gradient", False)]


def rests_on_claims(problem: Problem, low: float) -> bool:
    """Whether the sum is convex only if its terms speak the truth, and not by the curvature of the quadratic ones alone."""
    terms = claimants(problem)
    return bool(terms) and low < sum(float(t.lipschitz(problem.given)) for t in terms)


class Secants:
    """Watches the gradient of the smooth part along a path."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.last: tuple[Tensor, Tensor] | None = None

    def see(self, at: Tensor, slope: Tensor) -> None:
        """Compare with the point before; refuse where the gradient falls along the way."""
        if self.last is not None:
            _check_pair(self.problem, *self.last, at, slope)
        self.last = (at, slope)


def _check_pair(problem: Problem, a: Tensor, slope_a: Tensor, b: Tensor, slope_b: Tensor) -> None:
    move, change = b - a, slope_b - slope_a
    length = float((move * move).sum())
    bend = float((move * change).sum())
    size = float(torch.linalg.vector_norm(slope_a)) + float(torch.linalg.vector_norm(slope_b))
    noise = 10 * torch.finfo(a.dtype).eps * size * math.sqrt(length)
    if bend < -(_SHARE * problem.steepest() * length + noise):
        _refuse(problem, a, move, bend / length)


def _refuse(problem: Problem, at: Tensor, move: Tensor, bend: float) -> None:
    """Name the term that bends most the wrong way between two points."""
    given, terms = problem.given, claimants(problem)
    falls = [float((move * (t.gradient(at + move, given) - t.gradient(at, given))).sum()) for t in terms]
    culprit = terms[falls.index(min(falls))] if terms else problem.objective.smooth_terms[0]
    raise IncompatibleError(
        f"{culprit.formula()} says that it is convex and is not: along one direction {problem.objective} has the curvature {bend:.2g}, "
        f"so a point where its gradient vanishes need not be the minimiser; let {culprit.name}.is_convex say so, and unroll steps"
    )


@torch.no_grad()
def refuse_wavy(problem: Problem, points: tuple[Tensor, ...], step: Map) -> None:
    """Look for negative curvature of the smooth part at points and around the last of them; refuse where there is any."""
    generator = torch.Generator().manual_seed(0)
    last = points[-1]
    spread = float(last.square().mean().sqrt()) + float(problem.given.x.square().mean().sqrt()) + 1e-12
    around = [last + r * spread * _noise(last, generator) for r in (0.5, 2.0)]
    for point in (*points, *(problem.prox(p, step) for p in around)):
        _probe(problem, point, spread, generator)


def _probe(problem: Problem, at: Tensor, spread: float, generator: torch.Generator) -> None:
    """Look along the direction of lowest curvature at a point."""
    found = _lowest(problem, at, spread, generator)
    if found is None:
        return  # outside of the domain of some term, where nothing can be learnt
    _check_pair(problem, at, problem.gradient(at), at + found[0], problem.gradient(at + found[0]))


@torch.no_grad()
def flat_at(problem: Problem, h: Tensor) -> bool:
    """Whether the smooth part has a direction without curvature at a point, as far as a few steps show."""
    spread = float(h.square().mean().sqrt()) + float(problem.given.x.square().mean().sqrt()) + 1e-12
    found = _lowest(problem, h, spread, torch.Generator().manual_seed(0))
    return found is not None and found[1] <= 1e-6 * problem.steepest()


def _lowest(problem: Problem, at: Tensor, spread: float, generator: torch.Generator) -> tuple[Tensor, float] | None:
    """A short move of low curvature, and the curvature: Lanczos' method with differences of gradients."""
    size = torch.finfo(at.dtype).eps ** (1 / 3) * spread * math.sqrt(at.numel())
    slope = problem.gradient(at)
    now = _noise(at, generator)
    now = now / torch.linalg.vector_norm(now)
    basis, image = list[Tensor](), list[Tensor]()
    for _ in range(min(_STEPS, at.numel())):
        basis.append(now)
        image.append((problem.gradient(at + size * now) - slope) / size)
        now = image[-1]
        for one in basis * 2:  # twice is enough
            now = now - (one * now).sum() * one
        length = torch.linalg.vector_norm(now)
        if not bool(torch.isfinite(length)):
            return None
        if float(length) <= 1e-6 * float(torch.linalg.vector_norm(image[-1])):
            break
        now = now / length
    small = torch.stack([torch.stack([(a * b).sum() for b in image]) for a in basis]).double().cpu()
    value, vector = torch.linalg.eigh((small + small.mT) / 2)
    lowest = torch.stack(basis).flatten(1).T @ vector[:, 0].to(at)
    return size * lowest.view(at.shape), float(value[0])


@torch.no_grad()
def refuse_rough(problem: Problem, h: Tensor, step: Map) -> None:
    """Refuse a proximal operator that no convex term has, looked at around the minimiser."""
    terms = problem.objective.proximable_terms
    if not terms:
        return
    v = h - problem.gradient(h) * step
    random = _noise(v, torch.Generator().manual_seed(0)) * (float(v.square().mean().sqrt()) + 1e-12)
    # Outwards and inwards: thresholds are crossed there by entries or rows of one mind.
    moves = [r * along for along in (v, v - problem.given.x, random) for r in (-0.5, 0.2, 1.0, 3.0)]
    rounding = 100 * torch.finfo(v.dtype).eps
    for term in terms:
        image = term.prox(v, step, problem.given)
        for move in moves:
            moved = term.prox(v + move, step, problem.given) - image
            excess = float((moved * moved).sum() - (moved * move).sum())
            # Trap: v − x may be nothing but rounding, along which everything moves too far by chance.
            blur = rounding * sum(_length(part) for part in (v, move, image, problem.given.x))
            noise = blur * (_length(move) + 2 * _length(moved) + blur)
            if excess > _SHARE * float((move * move).sum()) + noise:
                raise IncompatibleError(
                    f"{term.formula()} says that it is convex and is not: its proximal operator moves further than a convex one can, "
                    f"so {problem.objective} need not have a single minimiser; let {term.name}.is_convex say so, and unroll steps"
                )


@torch.no_grad()
def refuse_bent(problem: Problem, h: Tensor, left: float) -> None:
    """Refuse a linear solution at which the gradient is not what was left of it: a term is not the quadratic it says it is."""
    given = problem.given
    terms = [t for t in problem.objective.smooth_terms if not isinstance(t, StencilTerm)]
    zero = torch.zeros_like(h)
    for term in terms:
        here, nothing = term.gradient(h, given), term.gradient(zero, given)
        # The same far points that the Hessian was read from.
        far = 1e3 * (1.0 + max(float(c.abs().amax()) for c in (given.x, nothing))) / (1e-30 + float(h.abs().amax()))
        off = here - nothing - (term.gradient(far * h, given) - nothing) / far
        size = sum(float(torch.linalg.vector_norm(part)) for part in (here, nothing))
        if float(torch.linalg.vector_norm(off)) > 10 * left + 1e3 * torch.finfo(h.dtype).eps * size:
            raise IncompatibleError(
                f"{term.formula()} calls itself quadratic, but its gradient is not affine, so the minimiser of {problem.objective} "
                f"is not the solution of a linear system; set {term.name}.affine_gradient = False"
            )


def _length(signal: Tensor) -> float:
    return float(torch.linalg.vector_norm(signal))


def _noise(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(like.shape, dtype=torch.float64, generator=generator).to(like)
