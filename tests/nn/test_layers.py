"""Linear layers and perceptrons are torch's own, for dense and sparse features."""

import math

import pytest
import torch

from unspool.nn import Bias, Linear, Perceptron, SparseFeatures, Start
from unspool.nn.flatten import Densify

X = torch.randn(20, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def torch_linear(layer):
    made = torch.nn.Linear(*layer.weight.shape, bias=layer.bias is not None).double()
    with torch.no_grad():
        made.weight.copy_(layer.weight.T)
        if layer.bias is not None:
            made.bias.copy_(layer.bias)
    return made


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_linear_is_torchs(form, bias):
    layer = Linear(5, 3, bias).double()
    peer, x = torch_linear(layer), X * (X > 0)
    out = layer(x if form == "dense" else SparseFeatures.from_tensor(x))
    assert torch.allclose(out, peer(x), atol=1e-12)
    mine = torch.autograd.grad(out.square().sum(), list(layer.parameters()))
    theirs = torch.autograd.grad(peer(x).square().sum(), list(peer.parameters()))
    assert torch.allclose(mine[0], theirs[0].T, atol=1e-12)
    assert not bias or torch.allclose(mine[1], theirs[1], atol=1e-12)


def test_linear_takes_leading_dimensions():
    layer = Linear(5, 3).double()
    assert torch.allclose(layer(torch.stack([X, 2 * X]))[1], layer(2 * X), atol=1e-12)


def test_starts():
    torch.manual_seed(0)
    uniform, glorot = Linear(100, 50), Linear(100, 50, start=Start.GLOROT)
    assert 0.095 < float(uniform.weight.detach().abs().max()) <= 0.1
    assert 0.05 < float(uniform.bias.detach().abs().max()) <= 0.1
    bound = math.sqrt(6 / 150)
    assert 0.95 * bound < float(glorot.weight.detach().abs().max()) <= bound
    assert bool((glorot.bias == 0).all())


@pytest.mark.parametrize("widths", [[5, 3], [5, 4, 3], [5, 4, 4, 2]])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("open_end", [True, False])
@pytest.mark.parametrize("batch_norm", [True, False])
def test_perceptron_is_torchs(widths, bias, open_end, batch_norm):
    net = Perceptron(widths, bias=bias, batch_norm=batch_norm, open_end=open_end).double()
    parts = []
    for i, layer in enumerate(net.layers):
        hidden = i + 1 < len(net.layers)
        parts.append(torch_linear(layer))
        parts += [torch.nn.BatchNorm1d(layer.weight.shape[1]).double()] if hidden and batch_norm else []
        parts += [torch.nn.ReLU()] if hidden or not open_end else []
    peer = torch.nn.Sequential(*parts)
    for training in (True, True, False):  # running statistics agree in the end
        assert torch.allclose(net.train(training)(X), peer.train(training)(X), atol=1e-12)


def test_a_bias_that_normalisation_takes_away_is_not_trained_and_old_ones_load():
    net = Perceptron([5, 4, 4, 3], batch_norm=True).double()
    assert [layer.bias.requires_grad for layer in net.layers] == [False, False, True]
    net(X)
    state = net.state_dict()
    for i in (0, 1):  # as weights of an older version may be: running means follow a bias
        assert not state[f"layers.{i}.bias"].any()
        state = {**state, f"layers.{i}.bias": torch.ones(4).double()}
        state[f"norms.{i}.running_mean"] = state[f"norms.{i}.running_mean"] + 1
    old = Perceptron([5, 4, 4, 3], batch_norm=True).double()
    old.load_state_dict(state)
    assert torch.allclose(old.eval()(X), net.eval()(X), atol=1e-12)


def test_perceptron_drops_before_each_layer_and_after():
    plain, after = Perceptron([5, 8, 3], dropout=0.5), Perceptron([5, 8, 3], after=0.5)
    x = X.float()
    plain(x)
    assert int(plain.dropout.count) == 2
    assert int(plain.after.count) == 0
    zeros = float((after(x) == 0).float().mean())
    assert 0.2 < zeros < 0.8
    assert torch.equal(after.eval()(x), after(x))


def test_bias_and_densify():
    layer = Bias(5).double()
    with torch.no_grad():
        layer.bias.add_(2.0)
    assert torch.equal(layer(X), X + 2)
    assert Densify()(X) is X
    assert torch.equal(Densify()(SparseFeatures.from_tensor(X)), X)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Linear(0, 3), "a layer from 0 to 3 features: both must be at least 1"),
        (lambda: Linear(3, 0), "a layer from 3 to 0"),
        (lambda: Linear(4, 3)(X.float()), "x has 5 features, but the model was built for 4"),
        (lambda: Linear(4, 3)(SparseFeatures.from_tensor(X.float())), "x has 5 features, but the model was built for 4"),
        (lambda: Linear(5, 3)(X), r"x is float64, the model float32: call model.to\(torch.float64\)"),
        (lambda: Linear(5, 3).double()(SparseFeatures.from_tensor(X.float())), "x is float32, the model float64"),
    ],
)  # fmt: skip
def test_bad_layers_are_named(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_layers_print():
    assert repr(Linear(5, 3)) == "Linear(5, 3)"
    assert repr(Linear(5, 3, bias=False)) == "Linear(5, 3, bias=False)"
