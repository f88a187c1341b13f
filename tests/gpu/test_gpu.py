"""What only a GPU can show: the Triton kernels against float64 on the CPU. Run where there is one: pytest tests/gpu."""

import pytest
import torch
from torch.func import vmap

import unspool as us
from unspool.ops import dropout
from unspool.ops.operator import HUB
from unspool.ops.spmm import spmm

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2}


def hubbed(nodes=3000, seed=0):
    """A random graph with hubs far above the splitting length, and isolated nodes."""
    generator = torch.Generator().manual_seed(seed)
    index = torch.randint(0, nodes - 10, (2, 4 * nodes), generator=generator)
    hub = torch.stack(
        [torch.randint(0, nodes - 10, (HUB * 9 + 17,), generator=generator), torch.full((HUB * 9 + 17,), 5)]
    )
    weights = torch.rand(index.shape[1] + hub.shape[1], generator=generator)
    index = torch.cat([index, hub], dim=1)
    key = index[1] * nodes + index[0]
    keep = torch.unique(key, return_inverse=True)[1].argsort()[: torch.unique(key).numel()]
    order = torch.unique(keep)
    unique = torch.unique(key[order])
    return us.Graph.from_edges(
        torch.stack([unique % nodes, unique // nodes]), nodes=nodes, weights=weights[: unique.numel()], directed=True
    )


def relative(a, b):
    return float((a.double().cpu() - b.double().cpu()).norm() / b.double().cpu().norm())


@pytest.mark.parametrize("width", [1, 3, 16, 64, 100, 200])
@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_product(width, dtype):
    graph = hubbed()
    x = torch.randn(graph.nodes, width, dtype=torch.float64)
    expected = graph.to(torch.float64) @ x
    kind = torch.float64 if dtype == torch.float64 else torch.float32
    on_gpu = graph.to("cuda").to(kind)
    assert on_gpu.operator.forward.hubs.shape[0] > 1
    result = on_gpu @ x.to("cuda", dtype)
    assert result.dtype == dtype
    assert relative(result, expected) < TOLERANCE[dtype]
    transposed = spmm(on_gpu.operator.T, x.to("cuda", dtype))
    assert relative(transposed, spmm(graph.to(torch.float64).operator.T, x)) < TOLERANCE[dtype]


def test_products_are_bitwise_repeatable():
    graph = hubbed().to("cuda")
    x = torch.randn(graph.nodes, 64, device="cuda")
    first = graph @ x
    assert all(torch.equal(first, graph @ x) for _ in range(20))


def test_incidence_on_gpu():
    graph = us.graph.grid(40, 50).to("cuda")
    x = torch.randn(2000, 3, device="cuda")
    b = graph.incidence()
    assert relative(b.T @ (b @ x), x - graph @ x) < 1e-5


@pytest.mark.parametrize("basis", list(us.Basis))
@pytest.mark.parametrize("shape", [(7,), (7, 6), (7, 6, 4), (1,), (2, 6, 6)])
def test_propagate_and_its_gradient(basis, shape):
    graph = us.graph.grid(30, 20)
    x = torch.randn(3, 600, 6, dtype=torch.float64, requires_grad=True)
    hops = torch.randn(3, *shape, dtype=torch.float64, requires_grad=True)
    exact = graph.to(torch.float64)

    def loss(graph, x, hops):
        return vmap(lambda x, c: us.propagate(graph, x, c, basis).sin().sum())(x, hops).sum()

    expected = torch.autograd.grad(loss(exact, x, hops), (x, hops))
    gpu = graph.to("cuda").to(torch.float64)
    xg, hg = (t.detach().cuda().requires_grad_() for t in (x, hops))
    result = torch.autograd.grad(loss(gpu, xg, hg), (xg, hg))
    assert all(relative(a, b) < 1e-10 for a, b in zip(result, expected, strict=True))
    compiled = torch.compile(lambda x, c: loss(gpu, x, c), fullgraph=True)
    result = torch.autograd.grad(compiled(xg, hg), (xg, hg))
    assert all(relative(a, b) < 1e-10 for a, b in zip(result, expected, strict=True))


def test_bfloat16_propagation():
    graph = hubbed()
    x, hops = torch.randn(graph.nodes, 32), torch.softmax(torch.randn(6), 0)
    expected = us.propagate(graph.to(torch.float64), x.double(), hops.double())
    assert relative(us.propagate(graph.to("cuda"), x.cuda().bfloat16(), hops.cuda()), expected) < 2e-2


def test_propagation_in_a_cuda_graph():
    graph = us.graph.grid(30, 20).to("cuda")
    x = torch.randn(600, 16, device="cuda", requires_grad=True)
    hops = torch.rand(6, device="cuda", requires_grad=True)
    weight = torch.randn(600, 16, device="cuda")

    def run():
        return torch.autograd.grad((us.propagate(graph, x, hops) * weight).sum(), (x, hops))

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        result = run()
    with torch.no_grad():
        x.normal_()
    captured.replay()
    assert all(relative(a, b) < 1e-5 for a, b in zip(result, run(), strict=True))


def test_masks_agree_with_the_cpu():
    key = dropout.key(7, 3, 1)
    mask = dropout.keep_mask((500, 33), 0.37, key)
    assert torch.equal(mask, dropout.keep_mask((500, 33), 0.37, key.cuda()).cpu())


@pytest.mark.parametrize(
    "algorithm", [us.GradientDescent(step=0.5), us.Accelerated(), us.Chebyshev(), us.ProximalGradient(), us.Exact()]
)
def test_unrolled_networks_agree_with_the_cpu(algorithm):
    graph = us.graph.grid(20, 20)
    objective = us.Fidelity(us.Learnable(0.2, within=(0, 1), name="α")) + us.Smoothness(0.8)
    net = us.unroll(objective, algorithm, None if isinstance(algorithm, us.Exact) else 12)
    x = torch.randn(400, 5)
    expected = torch.autograd.grad(net(x, graph).sin().sum(), net.parameters())
    net = net.cuda()
    result = torch.autograd.grad(net(x.cuda(), graph.to("cuda")).sin().sum(), net.parameters())
    assert all(relative(a, b) < 1e-3 for a, b in zip(result, expected, strict=True))


def test_signals_on_the_wrong_device_are_named():
    with pytest.raises(ValueError, match=r"x is on cpu, the graph on cuda:0"):
        us.graph.ring(4).to("cuda") @ torch.ones(4, 1)
