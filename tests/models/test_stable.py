"""StableGNN: its problems, and what stands outside the unrolled part."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import unspool as us
from reference.models import stablegnn
from unspool.models import Signal, StableGNN, Steps


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


@pytest.mark.parametrize("steps", [Steps.UNIFORM, Steps.PPR])
def test_denoising_the_features_is_denoising_hidden_ones_where_all_is_linear_in_front(steps: Steps) -> None:
    torch.manual_seed(0)
    hidden = StableGNN(5, 3, hidden=4, depth=3, steps=steps).double().eval()
    features = StableGNN(5, 3, hidden=4, depth=3, steps=steps, signal=Signal.FEATURES).double().eval()
    features.p_pos[1].weight.data.copy_(hidden.p_pre.layers[0].weight.data)
    features.p_pos[-1].load_state_dict(hidden.p_pos[-1].state_dict())
    x, graph = torch.randn(9, 5, dtype=torch.float64), us.graph.grid(3, 3).to(torch.float64)
    assert torch.allclose(features(x, graph), hidden(x, graph), rtol=1e-6)


def test_normalised_features_are_those_of_grand() -> None:
    """Mean of hops, normalised, linear, ReLU, normalised, linear: written out."""
    torch.manual_seed(0)
    model = StableGNN(
        5, 3, hidden=4, depth=2, signal=Signal.FEATURES, batch_norm=True, dropout=0.0, head_dropout=0.0
    ).double()
    x, graph = torch.randn(9, 5, dtype=torch.float64), us.graph.grid(3, 3).to(torch.float64)
    a = graph.to_dense()
    h = (x + a @ x + a @ a @ x) / 3

    def normal(z: torch.Tensor) -> torch.Tensor:
        return (z - z.mean(0)) / (z.var(0, unbiased=False) + 1e-5).sqrt()

    linear, head = model.p_pos[2], model.p_pos[5]
    wanted = normal(torch.relu(normal(h) @ linear.weight)) @ head.layers[0].weight
    assert torch.allclose(model(x, graph), wanted, rtol=1e-6)
