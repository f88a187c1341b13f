"""torch.compile takes every model whole, training included, and changes nothing."""

import copy

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap

import unspool as us
from reference.cases import CASES, build, close, edge_lists, slopes, sparse_signal

pytestmark = pytest.mark.long


INDEX, WEIGHTS, NODES = edge_lists()["weighted"]


@pytest.fixture(scope="module")
def place():
    return us.Graph.from_edges(INDEX, nodes=NODES, weights=WEIGHTS).to(torch.float64)


PLAIN = [kind.__name__ for kind in us.models.MODELS]
OTHERS = [
    "SGC-pos", "JKNet-max", "JKNet-concatenate", "GCN-batch-norm", "GCNII-constant", "AirGNN-checkpointed",
    "UGDGNN-hidden-free", "UGDGNN-chebyshev", "UGDGNN-general",
]  # fmt: skip


#: One of each kind of propagation; all others, and both forms of features of each, are compiled in the release check.
FIRST = {
    "dense": ("APPNP", "UGDGNN", "PPNP", "GCN", "AirGNN", "DAGNN", "ElasticGNN", "TWIRLS", "SignedGNN", "FairGNN", "JKNet-concatenate", "GCN-batch-norm"),
    "sparse": ("MLP", "GPRGNN", "GCNII"),
}  # fmt: skip


def case(name, form):
    return pytest.param(name, form, marks=[] if name in FIRST[form] else pytest.mark.slow, id=f"{name}-{form}")


def compiled_and_eager(name, x, graph):
    torch._dynamo.reset()
    shallow = {"depth": 2} if "depth" in CASES[name][1] else {}
    model = build(name, **shallow)
    twin = copy.deepcopy(model)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    for _ in range(2):  # in training: the second call has masks of its own
        yield (model, compiled(x, graph)), (twin, twin(x, graph))


@pytest.mark.parametrize(
    ("name", "form"), [case(n, f) for n in PLAIN for f in ("dense", "sparse")] + [case(n, "dense") for n in OTHERS]
)
def test_compiles_whole(name, form, place):
    x = sparse_signal(NODES)
    x = x if form == "dense" else us.nn.SparseFeatures.from_tensor(x)
    for (model, out), (twin, expected) in compiled_and_eager(name, x, place):
        assert close(out, expected)
        for mine, theirs in zip(slopes(out, model), slopes(expected, twin), strict=True):
            assert close(mine, theirs)


def test_every_model_is_compiled():
    assert set(PLAIN) <= set(CASES)
    assert {*FIRST["dense"], *FIRST["sparse"]} <= {*PLAIN, *OTHERS}


@pytest.mark.parametrize("name", ["UGDGNN", "GCN"])
def test_stacks_compile(name, place):
    torch._dynamo.reset()
    singles, x = [build(name, seed, depth=2) for seed in range(2)], sparse_signal(NODES)
    parameters, buffers = stack_module_state(singles)
    parameters = {n: p.detach().requires_grad_() for n, p in parameters.items()}
    base = copy.deepcopy(singles[0])

    def loss(p, b):
        return functional_call(base, (p, b), (x, place)).square().sum()

    total = torch.compile(lambda p, b: vmap(loss)(p, b).sum(), backend="aot_eager", fullgraph=True)(parameters, buffers)
    total.backward()
    for trial, model in enumerate(singles):
        model(x, place).square().sum().backward()
        assert all(close(parameters[n].grad[trial], p.grad) for n, p in model.named_parameters())
