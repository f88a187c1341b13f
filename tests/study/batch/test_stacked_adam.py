"""Adam for a stack is Adam for each of its trials."""

import math

import pytest
import torch

from unspool.study.batch.adam import StackedAdam
from unspool.train.adam import Adam


@pytest.mark.parametrize("way", ["_step_each", "_step_together"])
def test_adam_is_adam(way, monkeypatch):
    torch.manual_seed(0)
    start = {"a": torch.randn(3, 4, 2, dtype=torch.float64), "b": torch.randn(3, dtype=torch.float64)}
    monkeypatch.setattr(StackedAdam, "_step_each", getattr(StackedAdam, way))
    stacked = {name: value.clone().requires_grad_() for name, value in start.items()}
    rates, decays = [0.1, 0.01, 0.5], {"a": [0.0, 0.1, 0.2], "b": [0.3, 0.0, 0.0]}
    adam = StackedAdam(stacked)
    adam.begin(range(3), rates, decays)
    singles = [{name: value[t].clone().requires_grad_() for name, value in start.items()} for t in range(3)]
    alone = [
        Adam([{"params": [v], "weight_decay": decays[n][t]} for n, v in one.items()], lr=rates[t])
        for t, one in enumerate(singles)
    ]
    for _ in range(5):
        adam.step({name: -value.detach().sin() for name, value in stacked.items()})
        for one, its in zip(singles, alone, strict=True):
            its.zero_grad()
            sum(value.cos().sum() for value in one.values()).backward()
            its.step()
    for t, one in enumerate(singles):
        for name, value in one.items():
            gap = (stacked[name][t] - value).abs().max()
            assert gap == 0 if way == "_step_each" else gap < 1e-13
    assert not math.isnan(float(stacked["a"].detach().sum()))
