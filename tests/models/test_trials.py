"""A stack of trials is the single trials: outputs, gradients, dropout masks and rates."""

import copy

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap

import unspool as us
from reference.cases import CASES, build, close, edge_lists, slopes, sparse_signal, trainable

pytestmark = pytest.mark.long


INDEX, WEIGHTS, NODES = edge_lists()["weighted"]
STACKABLE = [name for name in CASES if name != "AirGNN-checkpointed"]


@pytest.fixture(scope="module")
def place():
    return us.Graph.from_edges(INDEX, nodes=NODES, weights=WEIGHTS).to(torch.float64)


def stacked(singles, x, graph):
    """Outputs and gradients of all trials at once, twice, so that masks move on."""
    parameters, buffers = stack_module_state(singles)
    base = copy.deepcopy(singles[0])
    parameters = {n: p.detach().requires_grad_(dict(base.named_parameters())[n].requires_grad) for n, p in parameters.items()}  # fmt: skip

    def run(p, b):
        return functional_call(base, (p, b), (x, graph))

    def loss(p, b):
        out = run(p, b)
        weight = torch.cos(torch.arange(out.numel(), dtype=out.dtype)).view(out.shape)
        return (out * weight).sum() + out.square().sum() / 2, out

    losses, first = vmap(loss)(parameters, buffers)
    losses.sum().backward()
    gradients = {n: p.grad for n, p in parameters.items() if p.requires_grad}
    return first.detach(), vmap(run)(parameters, buffers).detach(), gradients


def check(singles, x, graph):
    first, second, gradients = stacked(singles, x, graph)
    for trial, model in enumerate(singles):
        out = model(x, graph)
        assert close(first[trial], out)
        names = [n for n, p in model.named_parameters() if p.requires_grad]
        for name, alone in zip(names, slopes(out, model), strict=True):
            assert close(gradients[name][trial], alone), name
        assert close(second[trial], model(x, graph))


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("name", STACKABLE)
def test_a_stack_is_its_singles(name, form, place):
    x = sparse_signal(NODES)
    singles = [build(name, seed) for seed in range(3)]
    check(singles, x if form == "dense" else us.nn.SparseFeatures.from_tensor(x), place)


@pytest.mark.parametrize("name", [n for n in STACKABLE if "dropout" in CASES[n][1]])
@pytest.mark.parametrize("rates", [(0.2, 0.0, 0.8), (0.0, 0.5)])
def test_every_trial_may_have_its_own_rate(name, rates, place):
    singles = [build(name, seed, dropout=rate) for seed, rate in enumerate(rates)]
    check(singles, us.nn.SparseFeatures.from_tensor(sparse_signal(NODES)), place)


def test_trials_differ_in_their_masks(place):
    one = build("MLP")
    other = copy.deepcopy(one)
    other.load_state_dict({n: t + 1 if n.endswith("key") else t for n, t in one.state_dict().items()})
    assert all(torch.equal(a, b) for a, b in zip(trainable(one), trainable(other), strict=True))
    first, second, _ = stacked([one, other], sparse_signal(NODES), place)
    assert not close(first[0], first[1], 1e-3)
    assert not close(first[0], second[0], 1e-3)


def test_checkpointed_layers_refuse_to_stack(place):
    with pytest.raises(us.IncompatibleError, match=r"do not go under vmap .*use adjoint=Stored\(\)"):
        stacked([build("AirGNN-checkpointed", seed) for seed in range(2)], sparse_signal(NODES), place)


@pytest.mark.parametrize("name", ["UGDGNN", "GCNII", "PPNP"])
def test_trials_in_evaluation(name, place):
    singles = [build(name, seed).eval() for seed in range(3)]
    check(singles, sparse_signal(NODES), place)
