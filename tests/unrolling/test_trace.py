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
