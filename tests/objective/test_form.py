"""Coefficients in lowest terms: what cancels on paper cancels, and the value is that of the expression."""

import random

import pytest
import torch

import unspool as us
from unspool.objective import Given
from unspool.objective.form import Form, NotPolynomial, form_of

X = torch.zeros(4, 3, dtype=torch.float64)
GRAPH = us.graph.ring(4).to(torch.float64)


def number(name="α"):
    return us.Learnable(0.3, name=name)


def matrix(value):
    """As a (3, 3) tensor: numbers are multiples of the identity, vectors diagonals."""
    value = torch.as_tensor(value, dtype=torch.float64)
    return value if value.ndim == 2 else torch.eye(3, dtype=torch.float64) * value


def at(form, values):
    return matrix(form.at(Given(X, GRAPH, values)))


def random_values(leaves, generator):
    return {leaf: torch.randn(leaf.start().shape, dtype=torch.float64, generator=generator) + 1.5 for leaf in leaves}


def random_expression(pick, numbers, metrics, deep):
    """A random sum, difference, product or quotient that stays a sum of monomials."""
    if deep == 0:
        return pick.choice([*numbers, us.Fixed(pick.choice([0.5, 1.0, -2.0])), *metrics])
    left = random_expression(pick, numbers, metrics, deep - 1)
    operation = pick.choice("+-*/")
    if operation in "+-":
        right = random_expression(pick, numbers, metrics, deep - 1)
        return left + right if operation == "+" else left - right
    right = random_expression(pick, numbers, [], 0)
    if operation == "/":
        return left / right
    return right * left


@pytest.mark.parametrize("seed", range(40))
def test_the_form_has_the_value_of_the_expression(seed):
    pick, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    numbers, metrics = [number("a"), number("b")], [us.Relaxed(3, name="W"), us.Symmetric(3, name="T"), us.Diagonal(3)]
    expression = random_expression(pick, numbers, metrics, 3)
    values = random_values([*numbers, *metrics], generator)
    expected = matrix(Given(X, GRAPH, values)[expression])
    assert torch.allclose(at(form_of(expression), values), expected, rtol=1e-12, atol=1e-12)


def test_what_cancels_on_paper_cancels():
    a, w = number(), us.Relaxed(3, name="W")
    assert (form_of(1 - a) + form_of(a) - 1.0).zero
    assert (1.0 - (form_of(w) + form_of(1 - w))).zero
    assert (form_of(a * w) - form_of(a) * form_of(w)).zero
    assert (form_of(w / a) * form_of(a) - form_of(w)).zero
    assert (form_of(0.1 * w) + form_of(0.9 * w) - form_of(w)).zero  # rounding is not what is left
    assert (form_of((1 - a) * (1 - a)) - (1.0 - form_of(2 * a) + form_of(a * a))).zero
    assert not (form_of(w) - form_of(us.Relaxed(3, name="W"))).zero  # another parameter of the same name


def test_the_order_of_factors_does_not_matter():
    a, b = number("a"), number("b")
    assert (form_of(a * b) - form_of(b * a)).zero
    assert (form_of(a / b * b) - form_of(a)).zero


def test_small_coefficients_stay():
    a = number()
    assert not (form_of(a) * 1e-9 + 1.0 - 1.0).zero
    assert not (form_of(us.Fixed(1e-12)) + 1.0 - 1.0).zero


def test_zero():
    assert Form({}).zero
    assert (form_of(us.Fixed(0.0))).zero
    assert (form_of(number()) * 0.0).zero
    assert float(Form({}).at(Given(X, GRAPH))) == 0


def test_multiples():
    w, a = us.Relaxed(3, name="W"), number()
    t = form_of(0.5 * w + 0.5)
    assert (t * 0.2).multiple_of(t * 0.8) == pytest.approx(0.25)
    assert (-t).multiple_of(t) == -1
    assert t.multiple_of(t + 1.0) is None
    assert t.multiple_of(form_of(w)) is None
    assert t.multiple_of(t * form_of(a)) is None
    assert Form({}).multiple_of(t) is None


@pytest.mark.parametrize(
    "expression",
    [
        lambda w, a: w * us.Relaxed(3, name="V"),
        lambda w, a: w * w,
        lambda w, a: w / (1 - a),
        lambda w, a: 1 / (a + a * a),
    ],
)
def test_what_is_no_sum_of_monomials_says_so(expression):
    with pytest.raises(NotPolynomial):
        form_of(expression(us.Relaxed(3, name="W"), number()))


def test_division_by_zero_is_not_hidden():
    with pytest.raises(NotPolynomial):
        form_of(us.Fixed(1.0)) / form_of(us.Fixed(0.0))


def test_networks_built_alike_multiply_in_the_same_order():
    orders = set()
    kept = []  # addresses of what is kept are not used again
    for _ in range(20):
        a, b, w = number("a"), number("b"), us.Relaxed(3, name="W")
        kept += [a, [object() for _ in range(len(kept))], b, w]
        ((powers, _),) = form_of(b * (a * w)).parts
        orders.add(tuple(coefficient.name for coefficient, _ in powers))
    assert len(orders) == 1
