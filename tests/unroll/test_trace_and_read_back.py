import pytest
import torch

import unspool as us


def test_trace_gives_iterates_and_numbers(graph, x):
    objective = us.Fidelity(0.2) + us.Smoothness(0.8)
    net = us.unroll(objective, us.GradientDescent(step=0.5), depth=5)
    trace = net.trace(x, graph)
    target = us.minimise(objective, x, graph)
    assert len(trace) == 6
    assert torch.equal(trace.iterates[0], x)
    assert torch.allclose(trace.iterates[-1], net(x, graph))
    for k, h in enumerate(list(trace)[1:]):
        assert trace.after[k] == pytest.approx(float(objective.value(h, x, graph)))
        assert trace.gradient[k] == pytest.approx(float(objective.gradient(h, x, graph).norm()))
        assert trace.distance[k] == pytest.approx(float((h - target).norm() / target.norm()), rel=1e-5)
    assert list(trace.before[1:]) == pytest.approx(list(trace.after[:-1]))
    assert all(b <= a for a, b in zip(trace.before, trace.after, strict=True))
    assert "layer" in str(trace)


def test_trace_with_per_layer_coefficients_looks_at_each_layers_own_problem(graph, x):
    alpha = us.Learnable(0.2, per_layer=True, name="α")
    objective = us.Fidelity(alpha) + us.Smoothness(1 - alpha)
    net = us.unroll(objective, us.GradientDescent(step=0.5), depth=3).double()
    with torch.no_grad():
        net.coefficients["α"].copy_(torch.tensor([0.1, 0.5, 0.9]))
    trace = net.trace(x, graph)
    for k in range(3):
        values = net.values(k + 1)
        assert trace.before[k] == pytest.approx(float(objective.value(trace.iterates[k], x, graph, values).detach()))
        assert trace.after[k] == pytest.approx(float(objective.value(trace.iterates[k + 1], x, graph, values).detach()))
        assert trace.minimum[k] <= trace.after[k] <= trace.before[k]
    assert trace.before[1] != pytest.approx(trace.after[0])


def test_trace_says_why_there_is_no_minimiser(graph, x):
    trace = us.unroll(us.Smoothness(1.0), us.GradientDescent(step=0.5), depth=2).trace(x, graph)
    assert trace.distance == (None, None)
    assert "mentions X" in trace.reason
    assert "no minimiser" in str(trace)


def test_read_back_of_an_unrolled_network():
    alpha = us.Learnable(0.2, per_layer=True, name="α")
    net = us.unroll(
        us.Fidelity(alpha) + us.Smoothness(1 - alpha) + us.Ridge(0.05), us.GradientDescent(step=0.5), depth=3
    )
    with torch.no_grad():
        net.coefficients["α"].copy_(torch.tensor([0.1, -0.5, 3.0]))
    layers = net.read_back().layers
    assert [layer.alpha for layer in layers] == pytest.approx([0.1, -0.5, 3.0], abs=1e-6)
    assert [layer.beta for layer in layers] == pytest.approx([0.9, 1.5, -2.0], abs=1e-6)
    assert [layer.fidelity_psd for layer in layers] == [True, False, True]
    assert [layer.smoothness_psd for layer in layers] == [True, True, False]
    # η·curvature at λ = 0 and 2: α + 0.05 and α + 2β + 0.05
    assert [layer.stable for layer in layers] == [True, False, False]
    assert [layer.descends for layer in layers] == [True, False, False]
    assert all(layer.ridge == pytest.approx(0.05) for layer in layers)


def test_descends_is_what_the_trace_sees(graph, x):
    for step, expected in ((0.9, True), (1.2, False)):  # L = 2 (0.1 + 0.9 · 2) = 3.8, 2/L = 0.526 in units of η
        net = us.unroll(us.Fidelity(0.1) + us.Smoothness(0.9), us.GradientDescent(step=step * 2 / 3.8), depth=1)
        assert net.read_back().layers[0].descends is expected


def test_a_relaxed_metric_is_seen():
    w = us.Relaxed(2, initial=torch.tensor([[1.0, 1.0], [0.0, 1.0]]), name="W")
    layer = us.unroll(us.Smoothness(0.5, metric=w), us.GradientDescent(step=0.5), depth=1).read_back().layers[0]
    assert layer.asymmetry > 0.1
    assert not layer.descends
    assert torch.allclose(
        torch.as_tensor(layer.smoothness), 0.5 * torch.tensor([[1.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    )


@pytest.mark.parametrize("shape", [(6,), (6, 3), (6, 3, 3)])
def test_free_hops_are_read_back_as_layers(shape, graph, x, random):
    hops = torch.randn(shape, dtype=torch.float64, generator=random)
    net = us.HopNetwork(hops).double()
    with torch.no_grad():
        net.coefficients.copy_(hops)
    found = net.read_back()
    assert len(found.layers) == 5
    h, a = x, graph.to_dense()
    for layer in found.layers:
        t, rest = (torch.as_tensor(m, dtype=torch.float64) for m in (layer.fidelity, layer.smoothness))
        h = (a @ h) @ rest + x @ t if t.ndim == 2 else (a @ h) * rest + x * t
    factor = torch.as_tensor(found.factor, dtype=torch.float64)
    out = h @ factor if factor.ndim == 2 else h * factor
    assert torch.allclose(out, net(x, graph), atol=1e-8)


def test_reading_back_what_was_unrolled(graph):
    alpha = us.Learnable(0.2, per_layer=True, name="α")
    net = us.unroll(us.Fidelity(alpha) + us.Smoothness(1 - alpha), us.GradientDescent(step=0.5), depth=4).double()
    with torch.no_grad():
        net.coefficients["α"].copy_(torch.tensor([0.1, 0.6, 0.3, 0.8]))
    found = us.read_back_hops(net.hops(graph))
    assert [layer.alpha for layer in found.layers] == pytest.approx([0.1, 0.6, 0.3, 0.8])
    assert found.factor == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("hops", "words"),
    [
        (torch.tensor([1.0, -1.0]), "pure high-pass"),
        (torch.tensor([[[1.0, 0], [0, 1]], [[1, 0], [0, -1]]]), "erases some signals of frequency zero"),
        (torch.tensor([1.0, 1.0, -1.0]), "after hop 0 the partial sum"),
        (torch.ones(3, 2, 4), "change the width"),
        (torch.ones(1), "nothing to read back"),
    ],
)
def test_impossible_hops_say_why(hops, words):
    with pytest.raises(us.Refusal, match=words):
        us.read_back_hops(hops)


def test_trailing_zero_hops_are_fine():
    layers = us.read_back_hops(torch.tensor([1.0, 0.0, 0.0])).layers
    assert [layer.alpha for layer in layers] == [0.0, 1.0]


def test_momentum_layers_cannot_be_read():
    with pytest.raises(us.Refusal, match="mix several iterates"):
        us.unroll(us.Fidelity(0.5), us.Accelerated(), depth=2).read_back()


def test_a_free_ridge_is_seen():
    ridge = us.Ridge(0.5, metric=us.Relaxed(2, initial=torch.tensor([[0.5, 0.4], [0.0, 0.5]])))
    layer = us.unroll(us.Fidelity(0.5) + ridge, us.GradientDescent(step=0.5), depth=1).read_back().layers[0]
    assert layer.asymmetry > 0.1
    assert not layer.descends
