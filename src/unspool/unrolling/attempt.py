"""Whether a network can be lowered, found by trying."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.algorithm import Algorithm, Problem
from unspool.algorithm.algorithm import shipped
from unspool.errors import IncompatibleError
from unspool.graph import Graph, path
from unspool.objective import INITIAL, Computed, Given, Objective, StencilTerm, Values
from unspool.objective.coefficient import Leaf
from unspool.ops.polynomial import Basis, propagate
from unspool.unrolling.lower import CannotLower, HopPolynomial, LinearProblem, lower
from unspool.unrolling.start import From, Start, Zero

#: Sizes of the signals on which a user's rule is tried: bounds that ordinary numbers never meet shall be met here.
_SCALES = (1.0, 1e-6, 1e6, 1e12)


@dataclass(frozen=True)
class Attempt:
    """What came of it: the basis that keeps the digits, or why there is none."""

    basis: Basis = Basis.POWERS
    refusal: IncompatibleError | None = None

    @property
    def reason(self) -> str | None:
        """Why the network cannot be lowered, with the way out; None where it can."""
        return None if self.refusal is None else str(self.refusal)

    @property
    def cause(self) -> str | None:
        """The same without the way out."""
        return getattr(self.refusal, "cause", self.reason)


def try_lowering(
    algorithm: Algorithm, objective: Objective, depth: int, values: Callable[[int], Values], start: Start
) -> Attempt:
    """Lower a network on a small graph, all of its steps, and compare with the steps themselves.

    One step is enough for the rules of this package. Any other may do something else in a later layer, or look at what
    kind of iterate it was given, so it is run through, on polynomials and on numbers, and believed only if both agree.

    Args:
        algorithm: the rule.
        objective: what it minimises.
        depth: how many steps there are.
        values: the raw parameters of layer 1 ... depth.
        start: where it begins.
    """
    if (cause := _plain_cause(algorithm, objective)) is not None:
        return Attempt(refusal=CannotLower(cause))
    try:
        if shipped(algorithm):
            _lowered(algorithm, objective, 1, values, start, Basis.POWERS)
            return Attempt(Basis.CHEBYSHEV if powers_may_cancel(algorithm, objective, values) else Basis.POWERS)
        with torch.random.fork_rng(devices=[]):  # whatever it draws, the user's numbers come out as if it had not been
            return _tried(algorithm, objective, depth, values, start)
    except IncompatibleError as refusal:
        return Attempt(refusal=refusal)
    except Exception as problem:  # whatever a user's rule runs into on polynomials
        said = f"{type(problem).__name__}: {problem}".splitlines()[0][:200]
        cause = f"{algorithm.name}.update does more than add, scale and ask for gradients ({said})"
        return Attempt(refusal=CannotLower(cause))


def _plain_cause(algorithm: Algorithm, objective: Objective) -> str | None:
    """Why a network is not linear, where that can be told without trying."""
    for term in objective.terms:
        if not isinstance(term, StencilTerm):
            what = "states no stencil" if getattr(term, "affine_gradient", False) else "is not quadratic"
            return f"{term.name} {what}"
    for leaf in dict.fromkeys((*objective.leaves, *algorithm.leaves)):
        if isinstance(leaf, Computed):
            return f"{leaf} is computed from X"
    return f"{algorithm.name} draws random numbers" if algorithm.random else None


def first_values(leaves: tuple[Leaf, ...], depth: int) -> Callable[[int], Values]:
    """The raw parameters of each layer before training."""
    raw = {leaf: leaf.start_layers(depth) for leaf in leaves}
    return lambda k: {leaf: r[k - 1] if leaf.per_layer else r for leaf, r in raw.items()}


def powers_may_cancel(algorithm: Algorithm, objective: Objective, values: Callable[[int], Values]) -> bool:
    """Whether power coefficients can grow and cancel: with more than one iterate in the state, learnt step sizes, or powers of L.

    Steps that are each unstable and stable together are what momentum methods are made of, and what training finds. And 1 − η(1 − a)ᵖ
    has coefficients of both signs from p = 2 on.
    """
    if algorithm.leaves:
        return True
    graph, (x, _) = _small(), _signals(objective, algorithm)
    if objective.stencil(Given(x, graph, values(1))).more_h:
        return True
    first = LinearProblem(objective, Given(x, graph, values(1)), 1, None, Basis.POWERS)
    return sum(isinstance(part, HopPolynomial) for part in algorithm.init(HopPolynomial({}, Basis.POWERS), first)) > 1


def _tried(
    algorithm: Algorithm, objective: Objective, depth: int, values: Callable[[int], Values], start: Start
) -> Attempt:
    basis = Basis.CHEBYSHEV if powers_may_cancel(algorithm, objective, values) else Basis.POWERS
    parts = _lowered(algorithm, objective, depth, values, start, basis)
    if basis is Basis.POWERS and any(float(hops.abs().sum(0).max()) > 100 for hops in parts.values()):
        basis = Basis.CHEBYSHEV  # steps that are unstable each, and perhaps stable together
        parts = _lowered(algorithm, objective, depth, values, start, basis)
    for scale in _SCALES:
        gap = _gap(algorithm, objective, depth, values, start, basis, parts, scale)
        if not gap < 1e-6:  # also where numbers have run out of range
            cause = (
                f"{algorithm.name}.update takes other steps on numbers than on polynomials (they differ by {gap:.1e})"
            )
            return Attempt(refusal=CannotLower(cause))
    return Attempt(basis)


def _gap(
    algorithm: Algorithm, objective: Objective, depth: int, values: Callable[[int], Values], start: Start,
    basis: Basis, parts: dict[str, Tensor], scale: float,
) -> float:  # fmt: skip
    """How far the lowered network is from its steps, on random signals of some size."""
    graph, (x, other) = _small(), _signals(objective, algorithm) * scale
    begin = torch.zeros_like(x) if isinstance(start, Zero) else other if isinstance(start, From) else x
    state = algorithm.init(begin.clone(), Problem(objective, Given(x, graph, values(1))))
    size = float(torch.linalg.vector_norm(x))
    for k in range(1, depth + 1):
        state = algorithm.update(state, Problem(objective, Given(x, graph, values(k)), k))
        size = max(size, float(torch.linalg.vector_norm(state[0])))
    sources = {"x": x, "start": other}
    short = [propagate(graph.require_laplacian(), sources[s], hops, basis) for s, hops in parts.items()]
    return float(torch.linalg.vector_norm(sum(short, torch.zeros_like(x)) - state[0])) / size


def _lowered(
    algorithm: Algorithm,
    objective: Objective,
    depth: int,
    values: Callable[[int], Values],
    start: Start,
    basis: Basis,
) -> dict[str, Tensor]:
    graph, (x, _) = _small(), _signals(objective, algorithm)
    problems = [LinearProblem(objective, Given(x, graph, values(k)), k, None, basis) for k in range(1, depth + 1)]
    return lower(algorithm, problems, start).parts


@functools.cache
def _small() -> Graph:
    """Five nodes with five different frequencies."""
    with torch.device("cpu"), torch.inference_mode(False):  # what is remembered must be of use later, too
        return path(5).to(torch.float64)


def _signals(objective: Objective, algorithm: Algorithm) -> Tensor:
    """Two random signals, as wide as the metrics are."""
    found = [c.evaluate(INITIAL) for t in objective.terms for c in t.coefficients]
    found += [leaf.evaluate(INITIAL) for leaf in algorithm.leaves]
    width = max((v.shape[-1] for v in found if isinstance(v, Tensor) and v.ndim), default=2)
    generator = torch.Generator("cpu").manual_seed(0)
    return torch.randn(2, 5, width, dtype=torch.float64, generator=generator, device="cpu")
