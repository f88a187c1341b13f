"""StableGNN: its problems, and what stands outside the unrolled part."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import unspool as us
from reference.models import stablegnn
from unspool.models import StableGNN, Steps


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_uniform_steps_are_the_mean_of_all_hops_and_read_back_as_one_over_k(depth: int) -> None:
    model, graph = StableGNN(5, 3, depth=depth).double(), us.graph.ring(7).to(torch.float64)
    hops = model.propagation.hops(graph, torch.zeros(7, 64, dtype=torch.float64))
    assert torch.allclose(hops, torch.full((depth + 1,), 1 / (depth + 1), dtype=torch.float64), rtol=1e-6)
    read = [float(layer.alpha) for layer in model.propagation.read_back().layers]
    assert read == pytest.approx([1 / (k + 1) for k in range(1, depth + 1)], rel=1e-6)


def test_learnt_steps_begin_as_uniform_ones_and_train() -> None:
    torch.manual_seed(0)
    model, graph = StableGNN(5, 3, depth=3, steps=Steps.LEARNT), us.graph.ring(7)
    assert torch.allclose(model.propagation.hops(graph, torch.zeros(7, 64)), torch.full((4,), 0.25))
    model(torch.eye(7)[:, :5], graph).square().sum().backward()
    assert bool((model.propagation.coefficients["α"].grad.abs() > 0).all())


def test_reweighted_steps_are_those_of_the_formula() -> None:
    torch.manual_seed(1)
    model = StableGNN(5, 3, hidden=6, depth=3, steps=Steps.REWEIGHTED, smoothness=2.0, threshold=0.7).double().eval()
    graph = us.graph.grid(3, 3).to(torch.float64)
    x = torch.randn(9, 5, dtype=torch.float64)
    assert torch.allclose(model(x, graph), stablegnn(model, graph.to_dense(), x), rtol=1e-9)


@pytest.mark.parametrize("steps", Steps)
def test_batch_normalisation_and_residual_layers_change_no_reading(steps: Steps) -> None:
    """They stand in the decoder: the propagation is the same function with and without."""
    made: list[StableGNN] = []
    changes: list[dict[str, Any]] = [{}, {"batch_norm": True, "head_layers": 3, "skip": True}]
    for more in changes:
        torch.manual_seed(0)
        made.append(StableGNN(5, 3, hidden=4, depth=3, steps=steps, **more).eval())
    h, graph = torch.randn(9, 4, generator=torch.Generator().manual_seed(2)), us.graph.grid(3, 3)
    assert str(made[0].objective) == str(made[1].objective)
    assert torch.equal(made[0].propagation(h, graph), made[1].propagation(h, graph))
    assert type(made[1].p_pos[0]).__name__ == "BatchNorm1d"


def test_a_residual_layer_adds_its_input() -> None:
    torch.manual_seed(0)
    plain = us.nn.Perceptron([4, 4, 4, 2])
    torch.manual_seed(0)
    adding = us.nn.Perceptron([4, 4, 4, 2], residual=True)
    x = torch.randn(5, 4)
    h = x
    for layer in list(plain.layers)[:2]:
        h = h + torch.relu(layer(h))
    assert torch.allclose(adding(x), plain.layers[2](h))
    assert not torch.allclose(adding(x), plain(x))
