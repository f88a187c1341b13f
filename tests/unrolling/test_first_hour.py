"""What a new user ran into in the first hour, kept from coming back."""

import pytest
import torch
from torch import nn

import unspool as us


def relative(a, b):
    return float(((a - b).norm() / b.norm()).detach())


def test_modes_are_types_not_strings(graph, x):
    for build in (
        lambda: us.Graph.from_edges([[0, 1], [1, 0]], normalise="none"),
        lambda: us.propagate(graph, x, torch.ones(2, dtype=torch.float64), "chebyshev"),
        lambda: us.Polynomial("chebyshev"),
    ):
        with pytest.raises(TypeError, match="expected"):
            build()


def test_learnt_steps_keep_their_digits_at_depth(graph, x):
    """Steps at Chebyshev roots: each unstable, together the best there is."""
    depth = 24
    step = us.Learnable(1.0, per_layer=True, within=(0, None), name="η")
    nets = [
        us.unroll(us.Fidelity(0.02) + us.Smoothness(0.98), us.GradientDescent(step=step), depth, adjoint=a)
        for a in (None, us.Stored(), us.Polynomial(us.Basis.POWERS))
    ]
    low, high = 0.04, 3.96
    k = torch.arange(depth, dtype=torch.float64)
    steps = 1 / ((high + low) / 2 + (high - low) / 2 * torch.cos(torch.pi * (2 * k + 1) / (2 * depth)))
    steps = torch.stack([steps[: depth // 2], steps.flip(0)[: depth // 2]], 1).flatten()  # large and small in turns
    for net in nets:
        with torch.no_grad():
            net.coefficients["η"].copy_(steps + torch.log(-torch.expm1(-steps)))
    small = x.float(), graph.to(torch.float32)
    exact = nets[1].double()(x, graph)
    assert relative(nets[0](*small).double(), exact) < 5e-3
    assert relative(nets[2](*small).double(), exact) > 0.1  # what powers of A would do


def test_read_back_refuses_terms_it_cannot_see():
    net = us.unroll(
        us.Fidelity(0.5) + us.EdgeSmoothness(torch.full((12,), 30.0)), us.GradientDescent(step=0.5), depth=8
    )
    with pytest.raises(us.IncompatibleError, match=r"EdgeSmoothness .* cannot be read back"):
        net.read_back(us.graph.grid(3, 3))


def test_an_activation_at_a_small_step_converges_to_its_own_minimiser(graph, x):
    objective = us.Fidelity(0.5) + us.Smoothness(0.5) + us.Activation(nn.Tanh())
    net = us.unroll(objective, us.ProximalGradient(step=0.1), depth=300)
    trace = net.trace(x, graph)
    assert trace.distance[-1] < 1e-6
    assert trace.gradient[-1] < 1e-6
    assert trace.minimum[-1] <= trace.after[-1] + 1e-9
    exact = us.unroll(objective, us.ProximalGradient(step=0.1), 1, adjoint=us.Implicit())(x, graph)
    assert relative(exact, trace.iterates[-1]) < 1e-6


@pytest.mark.parametrize("size", [1.0, 1e-4, 1e-8])
def test_small_upstream_gradients_keep_their_digits(size):
    graph = us.graph.grid(20, 20)
    x = torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
    net = us.unroll(us.Fidelity(0.1) + us.Smoothness(0.9), us.Exact())
    found = []
    for dtype in (torch.float32, torch.float64):
        leaf = x.to(dtype).requires_grad_()
        (slope,) = torch.autograd.grad(size * net(leaf, graph.to(dtype)).square().sum(), leaf)
        found.append(slope.double())
    assert relative(*found) < 1e-4


@pytest.mark.parametrize("alpha", [1e-1, 1e-2, 1e-3])
def test_composite_minimisers_are_as_exact_as_quadratic_ones(alpha):
    graph = us.graph.path(200).to(torch.float64)
    x = torch.randn(200, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    quadratic = us.Fidelity(alpha) + us.Smoothness(1 - alpha)
    assert relative(us.minimise(quadratic + us.Box(-1e6, 1e6), x, graph), us.minimise(quadratic, x, graph)) < 1e-7


class PerNode(us.Fidelity):
    """A stencil that looks at the graph."""

    def stencil(self, given):
        return us.Stencil(h=2.0 / given.graph.nodes)

    def value(self, h, given):
        return h.square().sum((-2, -1)) / given.graph.nodes


def test_hop_coefficients_are_not_remembered_for_stencils_that_look_around():
    net = us.unroll(us.Fidelity(0.3) + PerNode(1.0) + us.Smoothness(0.5), us.GradientDescent(step=0.4), depth=4)
    stored = us.unroll(net.objective, net.algorithm, 4, adjoint=us.Stored())
    for side in (5, 20):
        graph = us.graph.grid(side, side)
        x = torch.randn(side * side, 2, generator=torch.Generator().manual_seed(0))
        assert relative(net(x, graph), stored(x, graph)) < 1e-5


def test_checkpoints_see_the_parameters_of_their_own_call(graph, x):
    alpha = us.Learnable(0.2, per_layer=True, name="α")
    gradients = []
    for adjoint in (us.Stored(), us.Checkpointed(2)):
        net = us.unroll(
            us.Fidelity(alpha) + us.Smoothness(1 - alpha), us.GradientDescent(step=0.5), 5, adjoint=adjoint
        ).double()
        other = torch.linspace(0.1, 0.9, 5, dtype=torch.float64, requires_grad=True)
        out = torch.func.functional_call(net, {"coefficients.α": other}, (x, graph))
        gradients.append(torch.autograd.grad(out.square().sum(), other)[0])
    assert torch.allclose(*gradients)


def test_tensors_that_want_gradients_are_not_silently_fixed():
    for build in (
        lambda: us.Fidelity(nn.Parameter(torch.tensor(0.3))),
        lambda: us.Smoothness(1.0, metric=nn.Parameter(torch.eye(2))),
    ):
        with pytest.raises(TypeError, match="use Learnable"):
            build()


@pytest.mark.parametrize(
    "algorithm", [us.ProximalGradient(), us.Accelerated(), us.GradientDescent()], ids=lambda a: a.name
)
def test_edge_weights_go_with_the_default_step(algorithm, graph, x):
    net = us.unroll(us.Fidelity(0.5) + us.EdgeSmoothness(torch.linspace(-0.2, 1.0, 17)), algorithm, depth=3)
    assert net(x, graph).shape == x.shape


@pytest.mark.parametrize(
    ("signal", "words"),
    [
        (torch.ones(12, 2).numpy(), "not a tensor"),
        (torch.eye(12).to_sparse(), "sparse tensor"),
        (torch.full((12, 1), float("nan")), "x is nan"),
        (None, "not a tensor"),
    ],
)
def test_minimise_looks_at_its_input(signal, words):
    with pytest.raises((TypeError, ValueError), match=words):
        us.minimise(us.Fidelity(0.5) + us.Smoothness(0.5), signal, us.graph.grid(3, 4))


def test_layers_are_counted_from_one():
    net = us.testing.example_network()
    with pytest.raises(IndexError, match="from 1 to 5"):
        net.values(0)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda a, b: a / (2 * b), "α/(2 β)"),
        (lambda a, b: 2 * -a, "2 (−α)"),
        (lambda a, b: 2 * us.Fixed(0.1), "2·0.1"),
        (lambda a, b: (a / b) * b, "(α/β) β"),
    ],
)
def test_products_and_quotients_print_as_what_they_are(build, text):
    assert str(build(us.Learnable(0.1, name="α"), us.Learnable(0.2, name="β"))) == text


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"algorithm": us.GradientDescent}, "give an instance"),
        ({"algorithm": None}, "is not an algorithm"),
        ({"adjoint": "stored"}, "adjoint='stored'"),
        ({"adjoint": us.Stored}, "expected Polynomial"),
        ({"start": "zero"}, "start='zero'"),
    ],
)
def test_wrong_kinds_of_parts_are_named(how, words):
    arguments = {"algorithm": us.GradientDescent(), "depth": 3} | how
    with pytest.raises(TypeError, match=words):
        us.unroll(us.Fidelity(0.1) + us.Smoothness(0.9), **arguments)


@pytest.mark.parametrize(
    "leaf", [us.Learnable(0.3, per_layer=True, name="a"), us.Schedule(lambda k: 1 / k, name="a")], ids=repr
)
def test_a_problem_of_every_layer_is_no_single_problem(leaf):
    graph, x = us.graph.ring(5), torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    objective = us.Fidelity(leaf) + us.Smoothness(0.5)
    words = "reaches one minimiser, but the coefficient aₖ differs from layer to layer; tie it"
    for ask in (lambda: us.unroll(objective, us.Exact()), lambda: us.minimise(objective, x, graph)):
        with pytest.raises(us.IncompatibleError, match=words):
            ask()
    net = us.unroll(objective, us.GradientDescent(step=0.4), depth=3)
    third = us.Fidelity(float(leaf.start_layers(3)[2])) + us.Smoothness(0.5)
    assert torch.allclose(us.minimise(objective, x, graph, net.values(3)), us.minimise(third, x, graph))
    assert torch.allclose(objective.value(2 * x, x, graph, net.values(3)), third.value(2 * x, x, graph))
    if isinstance(leaf, us.Learnable):  # it begins with the same number in every layer
        assert float(objective.value(2 * x, x, graph)) == float(third.value(2 * x, x, graph))
        return
    for ask in (objective.value, objective.gradient):
        with pytest.raises(us.IncompatibleError, match=r"aₖ differs from layer to layer.*values=net.values"):
            ask(2 * x, x, graph)


class Shaped(torch.nn.Module):
    """A metric of some shape, whatever the input is."""

    def __init__(self, *shape):
        super().__init__()
        self.scale, self.shape = torch.nn.Parameter(torch.ones(())), shape

    def forward(self, x, graph):
        return self.scale * torch.ones(self.shape)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (
            torch.eye(3),
            "the metric T of Fidelity is for 3 × 3 channels, but the signal has 2; give a number, 2 numbers",
        ),
        (torch.ones(3), "the metric T of Fidelity is for 3 channels"),
        (1 - us.Symmetric(3, name="W"), "the metric W of Fidelity is for 3 × 3 channels"),
        (us.Diagonal(4, name="D"), "the metric D of Fidelity is for 4 channels"),
        (us.LowRank(3, 1, name="U"), "the metric U of Fidelity is for 3 × 3 channels"),
        (us.Learnable(torch.ones(3), name="d"), "the metric d of Fidelity is for 3 channels"),
        (us.Computed(Shaped(4, 3), name="C"), "the metric C of Fidelity is for 4 × 3 channels"),
        (us.Computed(Shaped(3), name="c"), "the metric c of Fidelity is for 3 channels"),
    ],
    ids=["matrix", "channels", "combined", "diagonal", "low rank", "learnable", "computed matrix", "computed channels"],
)
@pytest.mark.parametrize("channels", [1, 2])
def test_a_metric_on_other_channels_is_named(metric, words, channels):
    graph, x = us.graph.ring(4), torch.eye(4)[:, :channels]
    objective = us.Fidelity(0.5, metric=metric) + us.Smoothness(0.5) + us.Ridge(0.1, metric=torch.tensor([2.0]))
    words = words.replace("signal has 2", f"signal has {channels}").replace(" 2 numbers", f" {channels} numbers")
    nets = [us.unroll(objective, rule, 3) for rule in (us.GradientDescent(step=0.1), us.ConjugateGradient())]
    for ask in (*nets, us.unroll(objective, us.Exact()), nets[0].trace):
        with pytest.raises(us.IncompatibleError, match=words):
            ask(x, graph)
    for ask in (lambda: us.minimise(objective, x, graph), lambda: objective.value(x, x, graph)):
        with pytest.raises(us.IncompatibleError, match=words):
            ask()
