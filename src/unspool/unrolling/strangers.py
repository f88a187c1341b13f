"""What trains without being owned, where no attribute shows it: tensors behind closures, globals and bound methods."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unspool.algorithm import Algorithm, Problem
from unspool.algorithm.algorithm import initial_state, shipped
from unspool.errors import IncompatibleError
from unspool.objective import CompositeTerm, ProximableTerm, SmoothTerm, StencilTerm, Term
from unspool.objective.belongings import depends_on_strangers
from unspool.objective.composite import check_operator_at
from unspool.ops.transforming import transforming


def somebodys_own(algorithm: Algorithm, terms: tuple[Term, ...]) -> bool:
    """Whether any part of a network was written outside of this package."""
    return not shipped(algorithm) or any(not _known(term) for term in terms)


def can_look() -> bool:
    """Whether dependence can be seen now: with gradients, outside of torch.compile and of torch.func transforms."""
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return False
    return not transforming()


def check_strangers(algorithm: Algorithm, problem: Problem, start: Tensor) -> None:
    """Refuse a term or an algorithm that depends on tensors which ask for gradients and are not its coefficients.

    Args:
        algorithm: the update rule.
        problem: the first layer's, as numbers: nothing that the network owns asks for gradients.
        start: where the rule starts, as numbers.
    """
    with torch.random.fork_rng(devices=[]):  # a rule that draws numbers draws the same ones afterwards
        for term in problem.objective.terms:
            if not _known(term):
                _refuse_if(depends_on_strangers(lambda term=term: _parts(term, problem, start)), term.name)
                if isinstance(term, CompositeTerm):
                    check_operator_at(term, start, problem.given)
        if not shipped(algorithm):
            _refuse_if(
                depends_on_strangers(lambda: algorithm.update(initial_state(algorithm, start, problem), problem)),
                algorithm.name,
            )


def _refuse_if(strange: bool, name: str) -> None:
    if strange:
        raise IncompatibleError(
            f"{name} depends on a tensor that requires gradients and is not one of its coefficients, so it would train without "
            "being a parameter of the network; make it a Learnable coefficient, or detach it"
        )


def _known(term: Term) -> bool:
    return shipped(term) and shipped(getattr(term, "potential", term))


def _parts(term: Term, problem: Problem, h: Tensor) -> list[Any]:
    if isinstance(term, StencilTerm):
        return list(term.stencil(problem.given).maps)
    if isinstance(term, SmoothTerm):
        return [term.gradient(h, problem.given), term.lipschitz(problem.given)]
    if isinstance(term, CompositeTerm):
        return [term.dual_prox(term.operator(h, problem.given.graph), 1.0, problem.given)]
    return [term.prox(h, 1.0, problem.given)] if isinstance(term, ProximableTerm) else []
