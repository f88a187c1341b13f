import copy
import io

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap

import unspool as us

W = torch.tensor([[0.4, 0.3, 0.0], [-0.2, 0.5, 0.1], [0.0, 0.2, 0.6]])


def networks():
    alpha = us.Learnable(0.2, per_layer=True, within=(0, 1), name="α")
    tied = us.Learnable(0.3, within=(0, 1), name="α")
    free = us.Relaxed(3, initial=W, per_layer=True, name="W")
    return {
        "appnp": us.unroll(us.Fidelity(0.1) + us.Smoothness(0.9), us.GradientDescent(step=0.5), depth=6),
        "gpr": us.unroll(us.Fidelity(alpha) + us.Smoothness(1 - alpha), us.GradientDescent(step=0.5), depth=6),
        "sgc": us.unroll(
            us.Smoothness(1.0, metric=free) + us.Ridge(1.0, metric=1 - free), us.GradientDescent(step=0.5), depth=4
        ),
        "general": us.testing.example_network(),
        "nesterov": us.unroll(
            us.Fidelity(alpha) + us.Smoothness(1 - alpha), us.Accelerated(momentum=us.Learnable(0.4, name="m")), depth=6
        ),
        "chebyshev": us.unroll(us.Fidelity(tied) + us.Smoothness(1 - tied), us.Chebyshev(), depth=6),
        "inverse": us.unroll(
            us.Fidelity(tied, metric=us.Symmetric(3, psd=True)) + us.Smoothness(1 - tied), us.GradientDescent(), depth=5
        ),
        "diagonal": us.unroll(
            us.Fidelity(tied, metric=us.Diagonal(3)) + us.Smoothness(1.0), us.GradientDescent(step=0.2), depth=5
        ),
        "zero": us.unroll(
            us.Fidelity(alpha) + us.Smoothness(1 - alpha), us.GradientDescent(step=0.5), depth=6, start=us.Zero()
        ),
        "gcn": us.unroll(
            us.Smoothness(1.0, metric=free) + us.Ridge(1.0, metric=1 - free) + us.NonNegative(),
            us.ProximalGradient(step=0.5),
            depth=3,
        ),
        "air": us.unroll(us.Smoothness(tied) + us.RowSparseFidelity(1 - tied), us.ProximalGradient(), depth=5),
        "edges": us.unroll(
            us.Fidelity(tied) + us.EdgeSmoothness(us.Learnable(torch.ones(17), name="w")),
            us.GradientDescent(step=0.2),
            depth=4,
        ),
    }


class HalfWay(us.Exact):
    """Half of the way to the minimiser, were it ever asked."""

    def update(self, state, problem):
        return (0.5 * state[0] + 0.5 * super().update(state, problem)[0],)


class TwiceSmooth(us.SmoothTerm):
    """‖L H‖², a quadratic of the Laplacian that has no stencil."""

    affine_gradient = True
    uses_input = False

    def value(self, h, given):
        return given.graph.laplacian_times(h).square().sum((-2, -1))

    def gradient(self, h, given):
        return 2 * given.graph.laplacian_times(given.graph.laplacian_times(h))

    def lipschitz(self, given):
        return 8 * given.graph.scale**2


class SoftRidge(us.SmoothTerm):
    """Σ log cosh(h)."""

    uses_input = False

    def value(self, h, given):
        return torch.log(torch.cosh(h)).sum((-2, -1))

    def gradient(self, h, given):
        return torch.tanh(h)

    def lipschitz(self, given):
        return 1.0


@pytest.mark.parametrize("name", networks())
def test_laws(name):
    us.testing.check_unrolled(networks()[name])


@pytest.mark.parametrize("name", ["appnp", "gpr", "general", "inverse", "nesterov", "chebyshev"])
def test_laws_hold_without_normalisation(name):
    graph = us.graph.grid(3, 4, normalise=us.Normalisation.NONE).to(torch.float64)
    us.testing.check_unrolled(networks()[name], graph=graph)


def test_appnp_is_its_recurrence(graph, x):
    h, a = x, graph.to_dense()
    for _ in range(6):
        h = 0.9 * a @ h + 0.1 * x
    assert torch.allclose(networks()["appnp"](x, graph), h, atol=1e-12)


def test_a_start_of_ones_own_carries_a_second_polynomial(graph, x, random):
    start = torch.randn(x.shape, generator=random, dtype=torch.float64)
    objective = us.Fidelity(0.3, metric=us.Fixed(W.double())) + us.Smoothness(0.7)
    for algorithm in (us.GradientDescent(step=0.3), us.Accelerated(step=0.2), us.ProximalGradient(step=0.3)):
        lowered = us.unroll(objective, algorithm, 7, start=start)
        stepped = us.unroll(objective, algorithm, 7, start=start, adjoint=us.Stored())
        assert isinstance(lowered.adjoint, us.Polynomial)
        assert torch.allclose(lowered(x, graph), stepped(x, graph), atol=1e-12)
        assert set(lowered.lowered(graph)) == {"x", "start"}
        with pytest.raises(us.IncompatibleError, match="two polynomials"):
            lowered.hops(graph)
        us.testing.check_unrolled(lowered)


@pytest.mark.parametrize(
    "algorithm",
    [us.GradientDescent(step=0.5), us.GradientDescent(), us.Accelerated(), us.Chebyshev()],
    ids=lambda a: a.name,
)
def test_depth_reaches_the_exact_minimiser(algorithm, graph, x):
    objective = us.Fidelity(0.2) + us.Smoothness(0.8)
    deep = us.unroll(objective, algorithm, depth=400)(x, graph)
    assert torch.allclose(deep, us.minimise(objective, x, graph), atol=1e-7)


def test_momentum_keeps_its_digits_at_depth(x, graph):
    objective = us.Fidelity(0.02) + us.Smoothness(0.98)
    exact = us.unroll(objective, us.Chebyshev(), 60, adjoint=us.Stored())(x, graph)
    small, low = x.float(), graph.to(torch.float32)
    chebyshev = us.unroll(objective, us.Chebyshev(), 60)(small, low)
    powers = us.unroll(objective, us.Chebyshev(), 60, adjoint=us.Polynomial(us.Basis.POWERS))(small, low)
    assert float((chebyshev - exact).norm() / exact.norm()) < 1e-5
    assert float((powers - exact).norm() / exact.norm()) > 1e-2  # what the Chebyshev basis is there to avoid


def test_saved_bytes_do_not_grow_with_depth(graph, x):
    def saved(depth):
        alpha = us.Learnable(0.2, per_layer=True, within=(0, 1), name="α")
        net = us.unroll(us.Fidelity(alpha) + us.Smoothness(1 - alpha), us.GradientDescent(step=0.5), depth).double()
        total = 0

        def pack(t):
            nonlocal total
            total += t.numel() * t.element_size() if t.shape[:1] == x.shape[:1] and t.ndim >= 2 else 0
            return t

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            net(x.clone().requires_grad_(), graph)
        return total

    assert saved(4) == saved(64) > 0


def test_trials_stack(graph, x):
    nets = [us.testing.example_network().double() for _ in range(4)]
    with torch.no_grad():
        for i, net in enumerate(nets):
            for p in net.parameters():
                p.add_(0.05 * i)
    params, buffers = stack_module_state(nets)
    base = copy.deepcopy(nets[0])
    stacked = {n: p.detach().requires_grad_() for n, p in params.items()}
    out = vmap(lambda p: functional_call(base, (p, buffers), (x, graph)))(stacked)
    gradients = torch.autograd.grad(out.square().sum(), list(stacked.values()))
    for i, net in enumerate(nets):
        single = net(x, graph)
        assert torch.allclose(out[i], single, atol=1e-12)
        for stack, alone in zip(
            gradients, torch.autograd.grad(single.square().sum(), list(net.parameters())), strict=True
        ):
            assert torch.allclose(stack[i], alone, atol=1e-10)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        *("appnp", "nesterov", "inverse", "gcn", "edges"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("gpr", "general", "chebyshev", "air")),
    ],
)
def test_compiles_whole(name, graph, x):
    net = networks()[name].double()
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    leaf = x.clone().requires_grad_()
    # On a graph that nothing has been asked of yet: not even its incidence matrix is there.
    result = torch.autograd.grad(compiled(leaf, graph).square().sum(), [leaf, *net.parameters()])
    expected = torch.autograd.grad(net(leaf, graph).square().sum(), [leaf, *net.parameters()])
    assert all(torch.allclose(a, b, atol=1e-10) for a, b in zip(result, expected, strict=True))


def test_compiled_code_takes_each_graphs_own_incidence_matrix(graph, x):
    net = us.unroll(us.Fidelity(0.3) + us.EdgeSmoothness(torch.ones(17)), us.GradientDescent(step=0.2), depth=2)
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    for seed in range(3):
        order = torch.randperm(graph.nodes, generator=torch.Generator().manual_seed(seed))
        result = compiled(x, us.graph.permuted(graph, order))
        assert torch.allclose(result, net(x, us.graph.permuted(graph, order)), atol=1e-12)


def test_state_dict_and_copies(graph, x):
    net = us.testing.example_network().double()
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    twin = us.testing.example_network().double()
    with torch.no_grad():
        next(twin.parameters()).add_(1.0)
    twin.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(twin(x, graph), net(x, graph))
    assert torch.equal(copy.deepcopy(net)(x, graph), net(x, graph))


def test_leading_dimensions(graph, random):
    x = torch.randn(2, 3, graph.nodes, 3, dtype=torch.float64, generator=random)
    for name, network in networks().items():
        net = network.double()
        expected = torch.stack([torch.stack([net(s, graph) for s in row]) for row in x])
        assert torch.allclose(net(x, graph), expected, atol=1e-12), name


def test_bfloat16_signals(x):
    graph = us.graph.grid(3, 4)
    out = networks()["appnp"](x.bfloat16(), graph)
    assert out.dtype == torch.bfloat16
    assert torch.allclose(out.double(), networks()["appnp"](x, graph.to(torch.float64)), atol=0.05)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda o: us.unroll(o, us.GradientDescent()), "needs a depth"),
        (lambda o: us.unroll(o, us.GradientDescent(), depth=0), "at least 1"),
        (lambda o: us.unroll(o, us.GradientDescent(), depth=2.5), "whole number"),
        (lambda o: us.unroll(o, us.Exact(), depth=3), "leave it out"),
        (lambda o: us.unroll(o, us.Exact(), adjoint=us.Stored()), "use adjoint=Implicit"),
        (lambda o: us.unroll(o, HalfWay()), "HalfWay writes an update of its own"),
        (
            lambda o: us.unroll(o + us.Sparse(0.1), us.ProximalGradient(), 3, adjoint=us.Polynomial()),
            "cannot lower: Sparse is not quadratic",
        ),
        (
            lambda o: us.unroll(o + us.EdgeSmoothness(torch.ones(3)), us.GradientDescent(), 3, adjoint=us.Polynomial()),
            "cannot lower: EdgeSmoothness states no stencil",
        ),
        (
            lambda o: us.unroll(o + TwiceSmooth(), us.GradientDescent(), 3, adjoint=us.Polynomial()),
            "cannot lower: TwiceSmooth states no stencil",
        ),
        (
            lambda o: us.unroll(o + SoftRidge(), us.GradientDescent(), 3, adjoint=us.Polynomial()),
            "cannot lower: SoftRidge is not quadratic",
        ),
        (lambda o: us.unroll("‖H‖²", us.GradientDescent(), 3), "is not an objective"),
        (
            lambda o: us.unroll(
                us.Fidelity(us.Learnable(0.1, name="α")) + us.Smoothness(us.Learnable(0.1, name="α")),
                us.GradientDescent(),
                3,
            ),
            "both named α",
        ),
        (lambda o: us.unroll(us.Fidelity(us.Learnable(0.1, name="a.b")), us.GradientDescent(), 3), "holds a dot"),
        (lambda o: us.Checkpointed(every=0), "at least one step"),
        (lambda o: us.HopNetwork(torch.ones(())), "expected"),
    ],
)
def test_bad_networks_are_named(build, words):
    with pytest.raises((ValueError, TypeError), match=words):
        build(us.Fidelity(0.1) + us.Smoothness(0.9))


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (torch.ones(12), r"use x\[:, None\]"),
        (torch.ones(5, 2), "has 12 nodes"),
        (torch.ones(12, 2, dtype=torch.long), "floating-point"),
        (torch.ones(12, 2, dtype=torch.float64), r"graph.to\(torch.float64\)"),
        (torch.full((12, 2), float("nan")), "x is nan at node 0, feature 0"),
        (
            torch.ones(12, 2).index_put((torch.tensor([7]), torch.tensor([1])), torch.tensor(float("inf"))),
            "x is inf at node 7, feature 1",
        ),
    ],
)
def test_bad_signals_are_named(x, words):
    net, graph = networks()["appnp"], us.graph.grid(3, 4)
    for use in (net, net.trace, us.HopNetwork(torch.ones(3))):
        with pytest.raises((ValueError, TypeError), match=words):
            use(x, graph)


@pytest.mark.parametrize("adjoint", [None, us.Stored(), us.Checkpointed(every=50)])
@pytest.mark.parametrize("step", [3.0, 30.0])  # beyond 2/L
def test_a_signal_that_grows_without_end_is_named(adjoint, step):
    graph, x = us.graph.grid(3, 4), torch.ones(12, 2).requires_grad_()
    net = us.unroll(us.Fidelity(0.5) + us.Smoothness(0.5), us.GradientDescent(step=step), 400, adjoint=adjoint)
    with pytest.raises(
        ValueError, match=r"the signal is (inf|-inf|nan) at node 0, feature 0 after 400 layers: .* smaller step"
    ):
        net(x, graph)
    few = us.unroll(us.Fidelity(0.5) + us.Smoothness(0.5), us.GradientDescent(step=step), 4, adjoint=adjoint)
    assert bool(torch.isfinite(few(x, graph)).all())  # large is not wrong
    stacked = torch.func.vmap(net, in_dims=(0, None))(torch.ones(2, 12, 2), graph) if adjoint is None else None
    assert stacked is None or not bool(
        torch.isfinite(stacked).any()
    )  # trials side by side are their trainer's business


def test_a_network_wants_a_graph():
    with pytest.raises(TypeError, match="not an unspool Graph"):
        networks()["appnp"](torch.ones(3, 1), torch.tensor([[0], [1]]))


def test_objectives_without_smoothness_run_on_any_graph():
    directed = us.Graph.from_edges([[0, 1], [1, 2]], nodes=3, directed=True)
    x = torch.eye(3)
    assert torch.allclose(
        us.unroll(us.Fidelity(0.5) + us.Ridge(0.5), us.GradientDescent(step=0.5), 30)(x, directed), x / 2, atol=1e-6
    )


def test_a_first_call_in_inference_mode_does_no_harm(graph, x):
    plain = us.unroll(us.Fidelity(0.1) + us.Smoothness(0.9), us.GradientDescent(step=0.5), depth=4)
    edges = us.unroll(us.Fidelity(0.5) + us.EdgeSmoothness(torch.ones(17)), us.GradientDescent(step=0.2), depth=2)
    for net in (plain, edges):
        with torch.inference_mode():
            expected = net(x, graph)
        leaf = x.clone().requires_grad_()
        out = net(leaf, graph)
        out.sum().backward()
        assert torch.equal(out, expected)
        assert leaf.grad is not None
