import numpy as np
import pytest
import torch

import unspool as us
from unspool.objective.coefficient import INITIAL


def at_start(coefficient):
    return coefficient.evaluate(INITIAL)


@pytest.mark.parametrize("within", [None, (0, 1), (-2, 5), (0, None), (None, 3)])
def test_a_range_gives_back_its_start(within):
    assert float(at_start(us.Learnable(0.3, within=within))) == pytest.approx(0.3, abs=1e-12)


@pytest.mark.parametrize("within", [(0, 1), (-2, 5), (0, None), (None, 3)])
def test_a_range_is_never_left(within):
    leaf = us.Learnable(0.3, within=within)
    values = leaf.value_of(torch.linspace(-30, 30, 101, dtype=torch.float64))
    low, high = within
    assert low is None or bool((values >= low).all())
    assert high is None or bool((values <= high).all())
    assert bool((values.diff() >= 0).all()) or bool((values.diff() <= 0).all())


def test_arithmetic_keeps_the_sharing():
    alpha = us.Learnable(0.2, within=(0, 1), name="α")
    expression = (1 - alpha) * 2 + alpha / 4 - (-alpha)
    assert expression.leaves == (alpha,)
    assert float(at_start(expression)) == pytest.approx(2 * 0.8 + 0.05 + 0.2)
    net = us.unroll(us.Fidelity(alpha) + us.Smoothness(1 - alpha), us.GradientDescent(step=0.5), depth=3)
    assert len(list(net.parameters())) == 1


def test_numbers_are_multiples_of_the_identity():
    w = us.Relaxed(3, initial=torch.arange(9.0).view(3, 3), name="W")
    eye, matrix = torch.eye(3, dtype=torch.float64), torch.arange(9.0, dtype=torch.float64).view(3, 3)
    assert torch.allclose(at_start(1 - w), eye - matrix)
    assert torch.allclose(at_start(0.3 * w + 0.7), 0.3 * matrix + 0.7 * eye)
    assert torch.allclose(at_start(w * w), matrix @ matrix)
    assert torch.allclose(
        at_start(w * us.Diagonal(3, initial=torch.tensor([1.0, 2.0, 3.0]))), matrix * torch.tensor([1.0, 2.0, 3.0])
    )
    diagonal = us.Diagonal(3, initial=torch.tensor([1.0, 2.0, 3.0]))
    assert torch.allclose(
        at_start(diagonal * w), torch.diag(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)) @ matrix
    )
    assert torch.allclose(
        at_start(diagonal + w), torch.diag(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)) + matrix
    )


def test_symmetric_is_a_true_parametrisation():
    initial = torch.tensor([[2.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 3.0]])
    for psd in (False, True):
        metric = us.Symmetric(3, psd=psd, initial=initial)
        assert metric.start().shape == (6,)
        assert torch.allclose(at_start(metric), initial.double())
        value = metric.value_of(torch.randn(6, dtype=torch.float64))
        assert torch.equal(value, value.T)
        if psd:
            assert float(torch.linalg.eigvalsh(value)[0]) >= -1e-12


def test_low_rank_is_positive_and_thin():
    metric = us.LowRank(5, rank=2)
    value = metric.value_of(torch.randn(5, 2, dtype=torch.float64))
    assert torch.linalg.matrix_rank(value) == 2
    assert float(torch.linalg.eigvalsh(value)[0]) >= -1e-12


def test_structure_is_known_without_values():
    w, t = us.Relaxed(3), us.Symmetric(3)
    assert (not w.symmetric, t.symmetric, (1 - t).symmetric, (t * t).symmetric, (2 * t).symmetric) == (
        True,
        True,
        True,
        False,
        True,
    )
    assert not us.Learnable(torch.eye(2)).symmetric
    assert us.Fixed(torch.eye(2)).symmetric
    assert not us.Fixed(torch.tensor([[0.0, 1.0], [0.0, 0.0]])).symmetric


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda a: 1 - a, "1 − αₖ"),
        (lambda a: 2 * (1 - a), "2 (1 − αₖ)"),
        (lambda a: a / 4, "αₖ/4"),
        (lambda a: -a, "−αₖ"),
        (lambda a: a + 1, "αₖ + 1"),
        (lambda a: 1 - (a - 2), "1 − (αₖ − 2)"),
        (lambda a: 0.3 * us.Relaxed(2, name="W") + 0.7, "0.3 W + 0.7 I"),
        (lambda a: 1 - us.Relaxed(2, name="W"), "I − W"),
    ],
)
def test_printing(build, text):
    assert str(build(us.Learnable(0.1, per_layer=True, name="α"))) == text


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda: us.Learnable(0.0, within=(0, 1), name="α"),
            "the coefficient α starts at 0, which is not strictly inside",
        ),
        (lambda: us.Learnable(float("nan")), "must be finite"),
        (lambda: us.Fixed(float("inf")), "must be finite"),
        (lambda: us.Fidelity("a lot"), "is not a coefficient"),
        (lambda: us.NodeFidelity([[1.0], [1.0, 2.0]]), "a list is not a coefficient unless it holds numbers"),
        (
            lambda: us.EdgeSmoothness(torch.tensor([1.0, float("nan")])),
            "a coefficient is nan: coefficients must be finite",
        ),
        (lambda: us.Symmetric(2, initial=torch.tensor([[1.0, 2.0], [0.0, 1.0]])), "not symmetric; use Relaxed"),
        (lambda: us.Symmetric(2, psd=True, initial=-torch.eye(2)), "must start positive definite"),
        (lambda: us.Symmetric(2, initial=torch.eye(3)), r"expected \(2, 2\)"),
        (lambda: us.LowRank(3, rank=5), "expected 1 to 3"),
        (lambda: us.Diagonal(3, initial=torch.ones(2)), r"expected \(3,\)"),
        (lambda: us.Fidelity(us.Relaxed(2)), "as metric="),
        (lambda: 1 / us.Relaxed(2), "cannot divide by the matrix"),
        (lambda: us.Relaxed(0), "at least one"),
    ],
)
def test_bad_coefficients_are_named(build, words):
    with pytest.raises((ValueError, TypeError), match=words):
        build()


def test_numbers_diagonals_and_matrices_are_told_apart():
    number, diagonal, matrix = us.Learnable(0.3), us.Diagonal(3), us.Symmetric(3)
    assert [c.number for c in (number, 1 - number, us.Fixed(torch.ones(2)), diagonal, matrix, number * matrix)] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert not (diagonal * matrix).symmetric
    assert (number * matrix).symmetric
    assert (diagonal * diagonal).symmetric
    for build in (
        lambda: us.Fidelity(torch.ones(3)),
        lambda: us.Sparse(torch.ones(3)),
        lambda: us.GradientDescent(step=matrix),
        lambda: us.GradientDescent(step=diagonal),
    ):
        with pytest.raises(TypeError, match="single number"):
            build()


def test_arrays_lists_and_masks_are_coefficients():
    """What NumPy and Python hold means the same as the tensor, in the dtype of the signal."""
    x, graph = torch.tensor([[1.0], [9.0], [3.0]]), us.graph.path(3)
    seen = torch.tensor([1.0, 0.0, 1.0])
    wanted = us.minimise(us.NodeFidelity(seen) + us.Smoothness(0.1), x, graph)
    for given in (
        np.array([True, False, True]),
        np.array([1, 0, 1])[::-1],
        [True, False, True],
        (1.0, 0.0, 1.0),
        seen.bool(),
    ):
        found = us.minimise(us.NodeFidelity(given) + us.Smoothness(0.1), x, graph)
        assert found.dtype == torch.float32
        assert torch.equal(found, wanted)
    mine = np.ones(2)
    term = us.EdgeSmoothness(mine)
    mine[:] = 7.0
    assert torch.equal(term.edge_weights(x, us.Given(x, graph)), torch.ones(2))
