"""The models on a GPU against the CPU in float64, dropout included, and as CUDA graphs. Run where there is one: pytest tests/gpu."""

import copy

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap

import unspool as us
from unspool.ops import dropout
from unspool.ops.features import SparseFeatures

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
MODELS = [m for m in us.models.MODELS if m is not us.models.MLP]


def case(nodes=300, features=40):
    generator = torch.Generator().manual_seed(0)
    index = torch.randint(0, nodes - 5, (2, 3 * nodes), generator=generator)
    index = torch.unique(torch.cat([index, index.flip(0)], 1), dim=1)
    graph = us.Graph.from_edges(index, nodes=nodes).to(torch.float64)
    x = torch.randn(nodes, features, generator=generator, dtype=torch.float64)
    return graph, x * (torch.rand(nodes, features, generator=generator) < 0.2)


def close(a, b, tolerance=1e-8):
    a, b = a.detach().cpu().double(), b.detach().cpu().double()
    return float((a - b).norm()) <= tolerance * max(1.0, float(b.norm()))


@pytest.mark.parametrize("shape", [(3, 500, 33), (1, 7, 1), (2, 64, 64)])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.37, 0.8])
def test_masks_are_those_of_the_cpu(shape, rate):
    key = dropout.key(torch.arange(shape[0]), 3, 1)
    count = torch.arange(shape[0])
    x = torch.randn(shape)
    rates = torch.full((shape[0],), rate)
    there = torch.ops.unspool.dropout_raw(x.cuda(), rates.cuda(), key.cuda(), count.cuda()).cpu()
    assert torch.allclose(there, torch.ops.unspool.dropout_raw(x, rates, key, count))
    for b in range(shape[0]):
        mask = dropout.keep_mask(shape[1:], rate, key[b], count[b])
        assert torch.equal(there[b] != 0, mask & (x[b] != 0))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", MODELS, ids=lambda m: m.__name__)
def test_training_gradients_agree_with_the_cpu(kind, sparse):
    torch.manual_seed(0)
    graph, x = case()
    here = kind(x.shape[1], 5).double()
    there = copy.deepcopy(here).cuda()
    features = SparseFeatures.from_tensor(x) if sparse else x
    a = here(features, graph)
    b = there(features.to("cuda"), graph.to("cuda"))
    assert close(b, a)
    a.square().sum().backward()
    b.square().sum().backward()
    for (name, p), q in zip(here.named_parameters(), there.parameters(), strict=True):
        if p.requires_grad:
            assert close(q.grad, p.grad, 1e-7), name


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", MODELS, ids=lambda m: m.__name__)
def test_trials_stack_on_the_gpu(kind, sparse):
    graph, x = case()
    graph, x = graph.to("cuda"), (SparseFeatures.from_tensor(x) if sparse else x).to("cuda")
    models = []
    for seed in range(3):
        torch.manual_seed(seed)
        models.append(kind(x.shape[1], 5).double().cuda())
    params, buffers = stack_module_state(copy.deepcopy(models))
    frozen = {k: v.detach() for k, v in params.items()}
    together = vmap(lambda p, b: functional_call(models[0], (p, b), (x, graph)))(frozen, buffers)
    for i, model in enumerate(models):
        assert close(together[i], model(x, graph))


@pytest.mark.parametrize("kind", MODELS, ids=lambda m: m.__name__)
def test_a_step_as_a_cuda_graph_trains_the_same(kind):
    graph, x = case()
    graph, x = graph.to(torch.float32).to("cuda"), SparseFeatures.from_tensor(x.float()).to("cuda")
    torch.manual_seed(0)
    model = kind(x.shape[1], 5).cuda()
    plain = copy.deepcopy(model)

    def step(m, adam):
        adam.zero_grad(set_to_none=True)
        loss = m(x, graph).square().mean()
        loss.backward()
        adam.step()
        return loss.detach()

    adam = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), capturable=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        first = [float(step(model, adam)) for _ in range(3)]
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        loss = step(model, adam)
    for _ in range(3):
        captured.replay()
        first.append(float(loss))
    other = torch.optim.Adam((p for p in plain.parameters() if p.requires_grad), capturable=True)
    second = [float(step(plain, other)) for _ in range(6)]
    assert first == pytest.approx(second, rel=1e-4)
