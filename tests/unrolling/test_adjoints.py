import pytest
import torch

import unspool as us

pytestmark = pytest.mark.long


def gradients(net, x, graph):
    weight = torch.cos(torch.arange(x.numel(), dtype=x.dtype)).view(x.shape)
    leaf = x.clone().requires_grad_()
    return torch.autograd.grad((net(leaf, graph) * weight).sum(), [leaf, *net.parameters()])


def tied(extra=None):
    alpha = us.Learnable(0.4, within=(0, 1), name="α")
    metric = us.Symmetric(
        3, psd=True, initial=torch.tensor([[1.0, 0.2, 0.0], [0.2, 0.7, 0.1], [0.0, 0.1, 1.3]]), name="T"
    )
    objective = us.Fidelity(alpha, metric=metric) + us.Smoothness(1 - alpha)
    return objective if extra is None else objective + extra


@pytest.mark.parametrize(
    "extra",
    [None, us.NonNegative(), us.Sparse(us.Learnable(0.1, within=(0, None), name="ρ")), us.RowSparseFidelity(0.2)],
    ids=str,
)
def test_unrolled_gradients_approach_the_implicit_one(extra, graph, x):
    algorithm = us.GradientDescent() if extra is None else us.ProximalGradient()
    exact = gradients(us.unroll(tied(extra), algorithm, 1, adjoint=us.Implicit(tolerance=1e-12)).double(), x, graph)
    gaps = []
    for depth in (2, 8, 32, 300):
        found = gradients(us.unroll(tied(extra), algorithm, depth, adjoint=us.Stored()).double(), x, graph)
        gaps.append(max(float((a - b).norm() / b.norm()) for a, b in zip(found, exact, strict=True)))
    assert gaps[3] < gaps[1] < gaps[0]
    assert gaps[3] < 1e-8


def test_implicit_gradient_is_the_derivative_of_the_minimiser(graph, x):
    net = us.unroll(tied(), us.Exact(tolerance=1e-13)).double()
    raw = [p.detach().clone().requires_grad_() for p in net.parameters()]
    names = [n for n, _ in net.named_parameters()]

    def solution(x, *parameters):
        return torch.func.functional_call(net, dict(zip(names, parameters, strict=True)), (x, graph))

    assert torch.autograd.gradcheck(solution, (x.clone().requires_grad_(), *raw), eps=1e-5, atol=1e-6)


def test_implicit_with_edge_weights(graph, x):
    edges = us.Learnable(torch.linspace(0.1, 1.0, 17), name="w")
    objective = us.Fidelity(0.5) + us.EdgeSmoothness(edges, weight=0.5)
    exact = gradients(us.unroll(objective, us.Exact(tolerance=1e-13)).double(), x, graph)
    deep = gradients(us.unroll(objective, us.GradientDescent(), 300).double(), x, graph)
    assert all(torch.allclose(a, b, atol=1e-8) for a, b in zip(exact, deep, strict=True))


def test_no_gradient_no_work(graph, x):
    net = us.unroll(tied(), us.Exact()).double()
    with torch.no_grad():
        assert not net(x, graph).requires_grad
    plain = us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7), us.Exact())
    assert not plain(x, graph).requires_grad


@pytest.mark.parametrize(
    ("objective", "algorithm", "words"),
    [
        (
            us.Fidelity(us.Learnable(0.3, per_layer=True, name="α")) + us.Smoothness(0.7),
            us.GradientDescent(),
            "the coefficient αₖ differs from layer to layer",
        ),
        (
            us.Fidelity(0.3),
            us.GradientDescent(step=us.Learnable(0.1, per_layer=True, name="η")),
            "the coefficient ηₖ differs",
        ),
        (us.Smoothness(1.0) + us.Ridge(0.5), us.GradientDescent(), "no term of .* mentions X"),
        (us.Fidelity(0.3, metric=us.Relaxed(3, name="W")), us.GradientDescent(), "Fidelity has the metric W"),
    ],
)
def test_implicit_refuses_by_name(objective, algorithm, words):
    with pytest.raises(us.IncompatibleError, match=words):
        us.unroll(objective, algorithm, 3, adjoint=us.Implicit())


def test_implicit_refuses_what_has_no_minimiser(graph, x):
    with pytest.raises(us.IncompatibleError, match="unbounded below"):
        us.unroll(us.Fidelity(0.3) + us.Smoothness(-0.9), us.GradientDescent(), 3, adjoint=us.Implicit())(x, graph)
    rough = us.Smoothness(us.Learnable(0.6, name="β")) + us.RowSparseFidelity(0.4)
    with pytest.raises(us.IncompatibleError, match="flat somewhere"):
        us.unroll(rough, us.ProximalGradient(), 3, adjoint=us.Implicit()).double()(x, graph)


def test_conjugate_gradients_give_up_in_words(graph, x):
    with pytest.raises(us.IncompatibleError, match="did not reach a relative residual"):
        us.unroll(us.Fidelity(0.001) + us.Smoothness(0.999), us.Exact(tolerance=1e-12, limit=2))(x, graph)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("weight", [1e-30, 1e-9, 1.0, 1e9])
def test_weights_of_any_size_have_the_same_minimiser(dtype, weight):
    graph, x = us.graph.ring(5).to(dtype), torch.ones(5, 1, dtype=dtype)
    h = us.unroll(us.Fidelity(weight) + us.Smoothness(weight), us.Exact())(x, graph)
    assert torch.allclose(h.float(), torch.ones(5, 1), atol=1e-2)


def test_a_minimiser_that_no_number_can_hold_is_named():
    graph, x = us.graph.ring(5), torch.full((5, 1), 3e38)
    with pytest.raises(ValueError, match="float32 cannot hold it"):
        us.minimise(us.Fidelity(1.0) + us.EdgeSmoothness(torch.ones(5)), x, graph)


@pytest.mark.parametrize("activation", [torch.nn.ELU(), torch.nn.Tanh(), torch.nn.LeakyReLU(0.3)], ids=str)
def test_activations_with_a_weight_of_their_own_go_with_checkpoints(activation, graph, x):
    weight = us.Learnable(0.8, within=(0, None), name="w")
    objective = us.Fidelity(us.Learnable(0.5, name="a")) + us.Activation(activation, weight=weight)
    found = []
    for adjoint in (us.Stored(), us.Checkpointed(2)):
        net = us.unroll(objective, us.ProximalGradient(step=0.4), 4, adjoint=adjoint).double()
        found.append(gradients(net, x, graph))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)
