import pytest
import torch

import unspool as us
from unspool.ops import activation as act

EDGES = 17  # of unspool.testing.small_graph

SMOOTH = [
    us.Fidelity(0.3),
    us.Fidelity(0.3, metric=us.Symmetric(3, initial=torch.tensor([[1.0, 0.2, 0], [0.2, -1, 0], [0, 0, 2.0]]))),
    us.Smoothness(0.7),
    us.Smoothness(-0.4),
    us.Smoothness(0.7, metric=us.LowRank(3, 2)),
    us.Smoothness(us.Learnable(0.2, within=(0, 1)), metric=1 - us.Symmetric(3)),
    us.Ridge(0.2),
    us.Ridge(0.2, metric=us.Diagonal(3, initial=torch.tensor([1.0, 2.0, -1.0]))),
    us.EdgeSmoothness(torch.linspace(-1, 1, EDGES), weight=0.5),
    us.EdgeSmoothness(us.Learnable(torch.linspace(-1, 1, EDGES))),
]
POTENTIALS = [
    act.ReLU(), act.LeakyReLU(0.2), act.ELU(0.7), act.Tanh(), act.Sigmoid(), act.Softsign(), act.Arctan(), act.Softshrink(), act.Hardtanh(),
]  # fmt: skip
PROXIMABLE = [
    us.NonNegative(),
    us.Box(-0.5, 1.0),
    us.Sparse(0.3),
    us.RowSparse(0.4),
    us.RowSparseFidelity(0.4),
    *(us.Activation(p) for p in POTENTIALS),
    *(us.Activation(p, weight=1.3) for p in POTENTIALS),
]


@pytest.mark.parametrize("term", SMOOTH + PROXIMABLE, ids=str)
def test_laws(term):
    us.testing.check_term(term)


@pytest.mark.parametrize("term", [us.Fidelity(0.3), us.Smoothness(0.7), us.Ridge(0.5)])
def test_laws_hold_without_normalisation(term):
    graph = us.graph.grid(3, 4, normalise=us.Normalisation.NONE).to(torch.float64)
    us.testing.check_term(term, graph=graph)


def test_smoothness_is_the_norm_of_differences(graph, x):
    b = graph.incidence().to_dense()
    t = torch.tensor([[1.0, 0.3, 0.0], [0.3, 2.0, 0.0], [0.0, 0.0, 0.5]], dtype=torch.float64)
    expected = 0.7 * torch.trace(b @ x @ t @ (b @ x).T)
    assert torch.allclose(us.Smoothness(0.7, metric=t).value(x, us.Given(x, graph)), expected)


def test_edge_smoothness_with_ones_is_smoothness(graph, x):
    given = us.Given(torch.zeros_like(x), graph)
    edges = us.EdgeSmoothness(torch.ones(EDGES), weight=0.3)
    assert torch.allclose(edges.value(x, given), us.Smoothness(0.3).value(x, given))
    assert torch.allclose(edges.gradient(x, given), us.Smoothness(0.3).gradient(x, given))


def test_edge_weights_can_be_learnt(graph, x):
    edges = us.Learnable(torch.ones(EDGES), name="w")
    net = us.unroll(
        us.Fidelity(0.5) + us.EdgeSmoothness(edges, weight=0.5), us.GradientDescent(step=0.3), depth=3
    ).double()
    assert isinstance(net.adjoint, us.Stored)
    torch.autograd.gradcheck(
        lambda w: torch.func.functional_call(net, {"coefficients.w": w}, (x, graph)),
        (net.coefficients["w"].detach().requires_grad_(),),
    )


@pytest.mark.parametrize(
    "term", [us.Fidelity(0.3, metric=us.Relaxed(3, initial=torch.tensor([[1.0, 2, 0], [0, 1, 0], [0, 0, 1]])))]
)
def test_a_free_matrix_breaks_the_gradient_law(term):
    with pytest.raises(us.testing.LawBroken, match="gradient differs from autograd"):
        us.testing.check_term(term)


class Wrong(us.SmoothTerm):
    """A term with a gradient that is off by a factor."""

    def value(self, h, given):
        return h.square().sum((-2, -1))

    def gradient(self, h, given):
        return h

    def lipschitz(self, given):
        return 2.0


class WrongProx(us.Sparse):
    def prox(self, v, step, given):
        return super().prox(v, step / 2, given)


class TightLipschitz(us.Fidelity):
    def lipschitz(self, given):
        return 0.1


class NotAffine(Wrong):
    affine_gradient = True

    def value(self, h, given):
        return torch.log(torch.cosh(h)).sum((-2, -1))

    def gradient(self, h, given):
        return torch.tanh(h)


@pytest.mark.parametrize(
    ("term", "words"),
    [
        (Wrong(), "gradient differs from autograd"),
        (WrongProx(0.5), "prox is not the minimiser"),
        (TightLipschitz(1.0), "lipschitz says 0.1"),
        (NotAffine(), "is not affine"),
    ],
)
def test_the_laws_catch_wrong_terms(term, words):
    with pytest.raises(us.testing.LawBroken, match=words):
        us.testing.check_term(term)


def test_an_activation_is_exact_at_any_step(graph, x):
    for potential in POTENTIALS:
        term = us.Activation(potential)
        for step in (0.1, 0.5, 2.0):
            assert torch.equal(term.prox(x, step, us.Given(x, graph)), potential.activation(x))
        weighted = us.Activation(potential, weight=1 / 0.4)
        assert torch.allclose(weighted.prox(x, 0.4, us.Given(x, graph)), potential.activation(x), atol=1e-9)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: us.Activation(torch.nn.GELU()), "GELU is not a proximity operator"),
        (lambda: us.Activation(torch.nn.ELU(2.0)), "ELU with a = 2 is not a proximity operator"),
        (lambda: us.Activation("relu"), "is not a potential"),
        (lambda: us.Box(1.0, 0.0), "is empty"),
        (lambda: us.Sparse(us.Relaxed(2)), "must be a single number"),
        (lambda: 2 * us.Activation(act.Tanh()), "cannot be scaled"),
        (
            lambda: us.Activation(act.Tanh()).value(torch.zeros(3, 1), us.Given(torch.zeros(3, 1), us.graph.ring(3))),
            "pass step=η",
        ),
        (
            lambda: us.EdgeSmoothness(torch.ones(5)).value(
                torch.zeros(3, 1), us.Given(torch.zeros(3, 1), us.graph.ring(3))
            ),
            "the graph has 3 edges",
        ),
    ],
)
def test_bad_terms_are_named(build, words):
    with pytest.raises((ValueError, TypeError), match=words):
        build()
