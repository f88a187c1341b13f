"""Every term is exactly one kind, decided when the objective is made; what is no sum of terms is no objective."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

import unspool as us


@dataclass(frozen=True, eq=False)
class Bare(us.Term):
    """Σ log cosh(h), of which nobody knows how to use it."""

    weight: Any = 1.0

    def value(self, h, given):
        return torch.log(torch.cosh(h)).sum((-2, -1)) * given[self.weight]


class PlainBare(us.Term):
    """The same without a dataclass, and with the methods of a smooth term but not its name."""

    def value(self, h, given):
        return h.square().sum((-2, -1))

    def gradient(self, h, given):
        return 2 * h

    def lipschitz(self, given):
        return 2.0


class Both(us.Ridge, us.ProximableTerm):
    """A ridge with a proximal operator besides."""

    def prox(self, v, step, given):
        return v / (1 + 2 * step * given[self.weight])


class BothTheOtherWay(us.Sparse, us.SmoothTerm):
    def gradient(self, h, given):
        return h.sign() * given[self.weight]

    def lipschitz(self, given):
        return 1.0


BAD = [
    (Bare(), "neither smooth nor proximable"),
    (PlainBare(), "neither smooth nor proximable"),
    (Both(0.3), "both smooth and proximable"),
    (BothTheOtherWay(0.3), "both proximable and smooth"),
]
WAYS = {
    "Objective": lambda t: us.Objective((us.Fidelity(1.0), t)),
    "alone": lambda t: us.Objective((t,)),
    "term + term": lambda t: us.Fidelity(1.0) + t,
    "bad + term": lambda t: t + us.Fidelity(1.0),
    "objective + term": lambda t: us.Fidelity(1.0) + us.Smoothness(1.0) + t,
    "replace": lambda t: replace(us.Fidelity(1.0) + us.Smoothness(1.0), terms=(us.Fidelity(1.0), t)),
    "minimise": lambda t: us.minimise(t, torch.ones(3, 1), us.graph.ring(3)),
    "unroll": lambda t: us.unroll(t, us.ProximalGradient(step=0.5), depth=2),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("term", "words"), BAD, ids=lambda v: getattr(v, "name", None))
def test_a_term_of_no_kind_or_of_two_is_refused_when_the_objective_is_made(way, term, words):
    with pytest.raises(us.IncompatibleError, match=rf"{term.name} is {words}") as refusal:
        WAYS[way](term)
    assert "inherit" in str(refusal.value)  # the way out


@pytest.mark.parametrize(("term", "words"), BAD, ids=lambda v: getattr(v, "name", None))
def test_check_term_fails_for_them_too(term, words):
    with pytest.raises(us.testing.LawBroken, match=words):
        us.testing.check_term(term)


@pytest.mark.parametrize(
    ("term", "kind"),
    [
        (us.Fidelity(1.0), us.Kind.SMOOTH),
        (us.EdgeSmoothness(torch.ones(3)), us.Kind.SMOOTH),
        (us.NonNegative(), us.Kind.PROXIMABLE),
        (us.RowSparseFidelity(1.0), us.Kind.PROXIMABLE),
        (us.Activation(torch.nn.ReLU()), us.Kind.PROXIMABLE),
    ],
    ids=str,
)
def test_shipped_terms_are_one_kind(term, kind):
    assert us.objective.kind_of(term) == kind


@dataclass(frozen=True, eq=False)
class Named(us.Fidelity):
    kind: str = "mine"  # a field of that name is the user's own affair


def test_a_field_named_kind_changes_nothing():
    assert us.objective.kind_of(Named(0.5)) == us.Kind.SMOOTH
    assert (Named(0.5) + us.NonNegative()).smooth_terms[0].kind == "mine"


class Claims(us.Term):
    """Says that it is smooth and has no gradient."""

    kind = us.Kind.SMOOTH

    def value(self, h, given):
        return h.sum((-2, -1))


def test_a_claim_without_its_methods_is_refused():
    with pytest.raises(us.IncompatibleError, match=r"Claims .* gradient"):
        us.Objective((Claims(),))


def test_the_kinds_partition_the_terms():
    terms = (us.Fidelity(0.1), us.Sparse(0.1), us.Smoothness(1.0), us.Box(0, 1))
    objective = us.Objective(terms)
    assert objective.smooth_terms == (terms[0], terms[2])
    assert objective.proximable_terms == (terms[1], terms[3])
    assert objective.kinds == (us.Kind.SMOOTH, us.Kind.PROXIMABLE) * 2


class Clipped(us.Fidelity):
    """A gradient of its own beside an inherited stencil: no network would ever ask for it."""

    def gradient(self, h, given):
        return super().gradient(h, given).clamp(-1, 1)


def test_a_gradient_beside_a_stencil_is_refused():
    with pytest.raises(us.IncompatibleError, match=r"Clipped .* stencil .* SmoothTerm"):
        us.Objective((Clipped(0.5),))
    with pytest.raises(us.testing.LawBroken, match="Clipped"):
        us.testing.check_term(Clipped(0.5))


def test_an_objective_is_a_sum_of_terms_and_nothing_else():
    with pytest.raises(us.IncompatibleError, match="at least one term"):
        us.Objective(())
    for wrong in (us.Fidelity, 3.0, "‖H‖²", us.Fidelity(1.0) + us.Smoothness(1.0)):
        with pytest.raises(TypeError, match="is not a term"):
            us.Objective((us.Fidelity(1.0), wrong))
    assert us.Objective([us.Fidelity(1.0), us.Smoothness(1.0)]).quadratic  # any sequence will do
    with pytest.raises(TypeError, match="subclass Term"):
        type("Mine", (us.Objective,), {})


@pytest.mark.parametrize("factor", [-1.0, 0.0])
@pytest.mark.parametrize("term", [us.NonNegative(), us.Box(0, 1)], ids=str)
def test_an_indicator_times_a_factor_that_is_not_positive_is_refused(term, factor):
    assert str(2 * term) == str(term)
    with pytest.raises(us.IncompatibleError, match="positive"):
        factor * term
