"""The law that training rests on: autograd sees everything that a gradient or a proximal operator depends on."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.objective import INITIAL, CompositeTerm, Given, Learnable, ProximableTerm, SmoothTerm, Term
from unspool.testing.laws import LawBroken, require

#: Finite differences are taken so far apart, as a share of what they are taken in.
_APART = 1e-5
#: A kink between the two ends of a difference explains one point out of all, but not this many.
_POINTS = 2


def check_derivatives(
    term: Term, given: Given, points: Iterable[tuple[float, Tensor]], generator: torch.Generator
) -> None:
    """Compare autograd with finite differences in H, in X, in the step and in every coefficient, at all points."""
    points = list(points)
    for one in (term, *_with_learnt_weight(term)):
        missed: dict[str, int] = {}
        for size, h in points:
            for name, seen, wanted in _slopes(one, h, size, given, generator):
                missed[name] = missed.get(name, 0) + 1
                require(
                    missed[name] < _POINTS,
                    f"autograd does not see how {one.name}.{_method(one)} depends on {name}: near |h| = {size:g} it changes by "
                    f"{wanted:.3g} and autograd says {seen:.3g} (a detach, a no_grad, a float() or a grad without "
                    "create_graph=True inside), so training would go wrong; write it with torch operations",
                )


def _with_learnt_weight(term: Term) -> list[Term]:
    """The same term under a learnt factor: what works with a fixed weight has to work with a learnt one."""
    try:
        return [term.scaled(Learnable(1.0, name="a learnt weight"))]
    except (IncompatibleError, TypeError):
        return []  # constraints, and terms that stand for φ/η


def _method(term: Term) -> str:
    if isinstance(term, CompositeTerm):
        return "dual_prox"
    return "gradient" if isinstance(term, SmoothTerm) else "prox"


def _image(term: Term, given: Given, at: list[Tensor]) -> Tensor:
    h, x, step, *raw = at
    values = dict(zip(term.leaves, raw, strict=True))
    here = Given(x, given.graph, values, step)
    # float() of a tensor that requires gradients warns; here it is found by what it does.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(term, SmoothTerm):
            return term.gradient(h, here)
        if isinstance(term, CompositeTerm):
            return term.dual_prox(term.operator(h, given.graph), step, here)
        assert isinstance(term, ProximableTerm)
        return term.prox(h, step, here)


def _slopes(
    term: Term, h: Tensor, size: float, given: Given, generator: torch.Generator
) -> list[tuple[str, float, float]]:
    """What autograd misses at a point: the name of the variable, autograd's slope along a direction, the true one."""
    start = INITIAL if given.values is None else given.values
    raw = [(start[leaf] if leaf in start else leaf.start()).detach().to(h) for leaf in term.leaves]
    names = ["H", "X", "the step", *(str(leaf) for leaf in term.leaves)]
    at = [h, given.x, torch.tensor(0.5).to(h), *raw]
    with torch.no_grad():
        image = _image(term, given, at).detach()
    weight = torch.randn(image.shape, dtype=h.dtype, generator=generator)
    found = _by_autograd(term, given, at, weight)
    missed: list[tuple[str, float, float]] = []
    for i, (name, seen) in enumerate(zip(names, found, strict=True)):
        along = torch.randn(at[i].shape, dtype=h.dtype, generator=generator)
        apart = _APART * (size if i == 0 else 1.0)
        with torch.no_grad():
            ends = [_image(term, given, [*at[:i], at[i] + s * along, *at[i + 1 :]]).detach() for s in (apart, -apart)]
        wanted = float(((ends[0] - ends[1]) * weight).sum()) / (2 * apart)
        slope = float((seen * along).sum())
        noise = 1e-13 * float(torch.linalg.vector_norm(image)) * float(torch.linalg.vector_norm(weight)) / apart
        if not abs(slope - wanted) <= 1e-3 * (abs(slope) + abs(wanted)) + noise + 1e-9:
            missed.append((name, slope, wanted))
    return missed


def _by_autograd(term: Term, given: Given, at: list[Tensor], weight: Tensor) -> list[Tensor]:
    with torch.enable_grad():
        leaves = [t.clone().requires_grad_() for t in at]
        try:
            image = _image(term, given, leaves)
            if not image.requires_grad:
                return [torch.zeros_like(t) for t in at]
            return list(torch.autograd.grad((image * weight).sum(), leaves, allow_unused=True, materialize_grads=True))
        except RuntimeError as error:
            raise LawBroken(
                f"autograd cannot go through {term.name}.{_method(term)} ({str(error).splitlines()[0]}); "
                "write it with torch operations that change nothing in place"
            ) from None
