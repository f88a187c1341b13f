"""Fewer channels and fewer nodes give the same predictions: values, gradients and masks of a model as it is written."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

import unspool as us
from unspool.models import decoding
from unspool.ops import kernels

pytestmark = pytest.mark.long


class Linearised(us.models.Model):
    """A derived polynomial with matrices, and a decoder."""

    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, 6)
        t = us.Relaxed(6, per_layer=True, name="T")
        objective = us.Fidelity(1.0, metric=t) + us.Smoothness(1.0, metric=1 - t)
        self.propagation = us.unroll(objective, us.GradientDescent(step=0.5), 3)
        self.p_pos = nn.Sequential(us.nn.Dropout(0.4), us.nn.Linear(6, self.out_features))


MODELS = {
    "JKNet": lambda: us.models.JKNet(5, 3, hidden=6, depth=3, dropout=0.4),
    "GCNII": lambda: us.models.GCNII(5, 3, hidden=6, depth=3, dropout=0.4),
    "derived": lambda: Linearised(5, 3),
    "UGDGNN": lambda: us.models.UGDGNN(5, 3, hidden=6, depth=3, dropout=0.4),
}
ROWS = torch.tensor([7, 0, 11])


def made(name):
    torch.manual_seed(0)
    net = MODELS[name]().double()
    return net, torch.randn(12, 5, dtype=torch.float64), us.graph.grid(3, 4).to(torch.float64)


@pytest.mark.parametrize("name", MODELS)
def test_rows_are_those_of_all_nodes(name):
    found = []
    for rows in (None, ROWS):
        net, x, graph = made(name)
        out = net.train()(x, graph) if rows is None else net.train()(x, graph, rows=rows)
        out = out[ROWS] if rows is None else out
        parameters = [p for p in net.parameters() if p.requires_grad]
        found.append([out, *torch.autograd.grad(out.sin().sum(), parameters), net.eval()(x, graph)])
        assert torch.allclose(net(x, graph, rows=ROWS), found[-1][-1][ROWS], atol=1e-12)
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_each_trial_has_rows_of_its_own(name):
    net, x, graph = made(name)
    other = MODELS[name]().double()
    held = stack_module_state([net.eval(), other.eval()])
    rows = torch.stack([ROWS, ROWS.flip(0) - 0])
    out = vmap(lambda p, b, r: functional_call(net, (p, b), (x, graph), {"rows": r}))(*held, rows)
    assert torch.allclose(out[1], other(x, graph)[rows[1]], atol=1e-12)


@pytest.mark.parametrize("limit", [128, 3])
@pytest.mark.parametrize("name", ["JKNet", "derived"])
def test_a_linear_decoder_goes_into_the_matrices(monkeypatch, name, limit):
    net, x, graph = made(name)
    wanted, z = net.eval()(x, graph), net.p_pre(x)
    widths = []

    def counted(operator, hops, basis, z, weight):
        widths.append(weight.shape)
        monkeypatch.setattr(kernels, "fused", lambda *tensors: False)  # the products themselves have no kernel here
        return narrow(operator, hops, basis, z, weight)

    narrow = decoding._narrow
    monkeypatch.setattr(decoding, "_narrow", counted)
    monkeypatch.setattr(decoding, "WIDEST", limit)
    monkeypatch.setattr(kernels, "fused", lambda *tensors: True)
    found = decoding.decoded(net.propagation, net.p_pos, z, graph)
    assert widths == [(6, 3)]
    assert torch.allclose(found, wanted, atol=1e-12)
    net.train()
    assert decoding._linear(decoding._parts(net.p_pos)) is None  # dropout is awake
    net.p_pos.register_forward_hook(lambda *args: None)
    assert decoding._parts(net.p_pos) is None


def test_decoders_that_see_more_than_a_node_are_run_as_they_are():
    net, x, graph = made("JKNet")
    net.p_pos = nn.Sequential(us.nn.Linear(6, 3).double(), nn.Softmax(dim=0))
    net.eval()
    assert torch.allclose(net(x, graph, rows=ROWS), net(x, graph)[ROWS], atol=1e-12)
