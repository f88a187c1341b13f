"""The same layers in PyTorch Geometric, with the same weights."""

import math

import pytest
import torch
from torch_geometric import nn as peers

from reference.cases import HIDDEN, IN, OUT, build, close, edge_lists, signal
from unspool import Graph, datasets, models

pytestmark = pytest.mark.long


LISTS = edge_lists()
_CITESEER = datasets.load("citeseer").graph.operator
LISTS["citeseer"] = torch.stack([_CITESEER.forward.col.long(), _CITESEER.rows()]), None, _CITESEER.shape[0]


@pytest.fixture(params=["isolated", "weighted", "directed", "karate", "citeseer"])
def place(request):
    index, weights, nodes = LISTS[request.param]
    return index, weights, signal(nodes)


def graph_of(place):
    """PyG keeps edges in the direction in which they are listed."""
    index, weights, x = place
    return Graph.from_edges(index, x.shape[0], weights, directed=True).to(torch.float64)


def copied(peer, **tensors):
    """A PyG layer in float64 with our weights; theirs are stored the other way round."""
    peer = peer.double()
    with torch.no_grad():
        for name, value in tensors.items():
            target = peer.get_parameter(name.replace("__", "."))
            target.copy_(value)
    return peer.eval()


@pytest.mark.parametrize("name", ["SGC", "SGC-no-bias"])
def test_sgc(name, place):
    index, weights, x = place
    model = build(name).eval()
    depth, bias = model.settings["depth"], model.settings["bias"]
    peer = copied(peers.SGConv(IN, OUT, K=depth, bias=bias), lin__weight=model.p_pre.weight.T)
    if bias:
        copied(peer, lin__bias=model.p_pos.bias)
    assert close(model(x, graph_of(place)), peer(x, index, weights))


@pytest.mark.parametrize("teleport", [0.1, 0.5])
def test_appnp(teleport, place):
    index, weights, x = place
    model = build("APPNP", teleport=teleport, depth=7).eval()
    peer = peers.APPNP(K=7, alpha=teleport, dropout=0.0)
    assert close(model(x, graph_of(place)), peer(model.p_pre(x), index, weights))


@pytest.mark.parametrize("depth", [2, 3])
def test_gcn(depth, place):
    index, weights, x = place
    model = build("GCN", depth=depth).eval()
    h, net = x, model.propagation
    for k, w in enumerate([model.p_pre.layers[0].weight, *net.weights]):
        h = torch.relu(h) if k > 0 else h
        layer = copied(peers.GCNConv(*w.shape), lin__weight=w.T, bias=net.biases[k])
        h = layer(h, index, weights)
    assert close(model(x, graph_of(place)), h)


@pytest.mark.parametrize("depth", [2, 3])
def test_gcn_as_a_basic_model(depth):
    index, _, nodes = LISTS["isolated"]
    model, peer = build("GCN", depth=depth).eval(), peers.GCN(IN, HIDDEN, depth, OUT).double()
    with torch.no_grad():
        for conv, w, b in zip(
            peer.convs,
            [model.p_pre.layers[0].weight, *model.propagation.weights],
            model.propagation.biases,
            strict=True,
        ):
            conv.lin.weight.copy_(w.T)
            conv.bias.copy_(b)
    assert close(model(signal(nodes), index), peer.eval()(signal(nodes), index))


@pytest.mark.parametrize("name", ["GCNII", "GCNII-constant"])
def test_gcnii(name, place):
    index, weights, x = place
    model = build(name).eval()
    s = model.settings
    h = start = model.p_pre(x)
    for layer, w in enumerate(model.propagation.coefficients["W"], 1):
        # log(θ/l + 1) is their only schedule; a constant β is one with θ = exp(β) − 1 in layer 1.
        theta, number = (s["strength"], layer) if s["identity"] is models.IdentityMapping.LOGARITHMIC else (math.expm1(s["strength"]), 1)  # fmt: skip
        peer = copied(peers.GCN2Conv(HIDDEN, alpha=s["teleport"], theta=theta, layer=number), weight1=w)
        h = torch.relu(peer(h, start, index, weights))
    assert close(model(x, graph_of(place)), model.p_pos(h))


def test_jknet_with_all_layers(place):
    """Their JumpingKnowledge over their GCNConv."""
    index, weights, x = place
    for name, mode in (("JKNet-max", "max"), ("JKNet-concatenate", "cat")):
        model = build(name).eval()
        h, layers = x, []
        for w, b in zip([model.p_pre.layers[0].weight, *model.propagation.weights], model.propagation.biases, strict=True):  # fmt: skip
            h = torch.relu(copied(peers.GCNConv(*w.shape), lin__weight=w.T, bias=b)(h, index, weights))
            layers.append(h)
        joined = peers.JumpingKnowledge(mode)(layers)
        assert close(model(x, graph_of(place)), model.p_pos(joined))
