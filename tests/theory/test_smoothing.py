"""Over-smoothing: the certificates hold, and each fails once its claim is broken."""

import pytest
import torch

import unspool as us
from unspool.theory import CLAIMS, smoothing

SHRINKS, COLLAPSES, ONLY_RELU = smoothing.CLAIMS
whole = smoothing.layer


@pytest.mark.parametrize("claim", smoothing.CLAIMS, ids=lambda claim: claim.test.__name__)
def test_registered(claim):
    assert claim in CLAIMS


def test_layers_are_those_of_the_models():
    torch.manual_seed(0)
    model = us.models.GCN(3, 3, hidden=3, depth=3, bias=False).double().eval()
    g = us.graph.grid(3, 4).to(torch.float64)
    h = torch.randn(12, 3, dtype=torch.float64)
    w = next(iter(model.propagation.weights)).detach()
    w = (w + w.T) / 2
    assert torch.allclose(smoothing.layer(h, w, g, relu=True), torch.relu(g @ h @ w))
    assert torch.allclose(smoothing.layer(h, w, g, relu=False), g @ h @ w)


def test_a_layer_that_sharpens_breaks_them(monkeypatch):
    monkeypatch.setattr(smoothing, "layer", lambda h, t, g, relu: h @ t + 0.5 * (h - g @ h) @ t)
    for claim in (SHRINKS, COLLAPSES, ONLY_RELU):
        assert not claim.certify(trials=1).as_stated


def test_a_relu_that_moves_off_the_eigenvector_breaks_the_bound(monkeypatch):
    def leaking(h, t, g, relu):
        out = whole(h, t, g, False)
        return torch.where(out > 0, out, -3 * out) if relu else out

    monkeypatch.setattr(smoothing, "layer", leaking)
    assert not SHRINKS.certify(trials=2).as_stated


def test_without_the_relu_nothing_raises_the_share(monkeypatch):
    monkeypatch.setattr(smoothing, "layer", lambda h, t, g, relu: whole(h, t, g, False))
    assert not ONLY_RELU.certify(trials=1).as_stated
