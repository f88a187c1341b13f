"""Hypergradients against finite differences of the whole lower problem, and training by them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

import unspool as us
from unspool import datasets, train
from unspool.errors import IncompatibleError, InputError
from unspool.train import Hyper, Order, TrainConfig
from unspool.train.hyper import HyperLevel, hypergradient
from unspool.train.upper import Seen, Upper
from unspool.train.upper.level import UpperLevel

GRAPH = us.graph.grid(4, 5).to(torch.float64)
X = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = torch.randn(20, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
TEACH, LEARN = torch.arange(0, 10), torch.arange(10, 20)


def losses() -> tuple[us.HopNetwork, list[object]]:
    """Ridge regression on filtered features: w has one minimum, which is a function of the hop coefficients."""
    net = us.HopNetwork([0.5, 0.3, 0.2]).double()

    def output(at: Mapping[str, Tensor]) -> Tensor:
        return torch.func.functional_call(net, {"coefficients": at["hops"]}, (X, GRAPH)) @ at["w"]

    def inner(at: Mapping[str, Tensor]) -> Tensor:
        return (output(at) - Y)[LEARN].square().mean() + 0.05 * at["w"].square().sum()

    def outer(at: Mapping[str, Tensor]) -> Tensor:
        return (output(at) - Y)[TEACH].square().mean() + 0.01 * at["hops"].square().sum()

    return net, [inner, outer]


def minimum(hops: Tensor) -> Tensor:
    """w*(θ) by the normal equations."""
    net = us.HopNetwork(hops.tolist()).double()
    with torch.no_grad():
        net.coefficients.copy_(hops)
        a = net(X, GRAPH)[LEARN]
        return torch.linalg.solve(a.T @ a / 10 + 0.05 * torch.eye(3, dtype=torch.float64), a.T @ Y[LEARN] / 10)


@pytest.mark.parametrize("order", Order)
def test_the_hypergradient_is_the_slope_of_the_whole_problem(order: Order) -> None:
    _, (inner, outer) = losses()
    hops = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64, requires_grad=True)
    start = minimum(hops.detach()) if order is Order.IMPLICIT else torch.ones(3, 1, dtype=torch.float64)
    w = start.clone().requires_grad_()
    how = Hyper(order=order, steps=20, damping=0.0)
    _, slopes, (found,) = hypergradient(inner, outer, {"w": w}, {"hops": hops}, how, 0.1)  # type: ignore[arg-type]
    for k in range(3):
        ends: list[float] = []
        for sign in (1, -1):
            at = hops.detach().clone()
            at[k] += sign * 1e-5
            if order is Order.IMPLICIT:
                moved = minimum(at)
            else:
                held = start.clone().requires_grad_()
                moved = start - 0.1 * torch.autograd.grad(inner({"w": held, "hops": at}), held)[0]  # type: ignore[operator]
            ends.append(float(outer({"w": moved, "hops": at})))  # type: ignore[operator]
        assert float(found[k]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-9)
    assert torch.allclose(slopes[0], torch.autograd.grad(inner({"w": w, "hops": hops}), w)[0])  # type: ignore[operator]


UPPERS = {
    "none": "ce",
    "entropy": "ce + entropy",
    "consistency": "ce + 2*consistency(views=1, temperature=0.5)",
    "confident": "ce + 2*consistency(views=2, confidence=0.3)",
    "neighbours": "ce + 2*neighbours(0.5)",
    "pseudo_labels": "ce + 2*pseudo_labels(0.35)",
    "class_mass": "class_mass",
    "all": "class_mass + consistency(views=3, temperature=0.6) + neighbours + 0.5*pseudo_labels(0.3) under drop_nodes(0.4)",
}
CLASSES = torch.randint(3, (20,), generator=torch.Generator().manual_seed(2))
TASK = train.Task(X, GRAPH, CLASSES, LEARN[:6], TEACH, LEARN[6:])


@pytest.mark.parametrize("name", UPPERS)
def test_a_step_is_differentiated_through_the_targets_of_terms(name: str) -> None:
    """Targets are constants of a training step, and differ in the step that other hops lead to: masks and lost nodes stay."""
    torch.manual_seed(0)
    model = us.models.GPRGNN(3, 3, hidden=5, depth=2, dropout=0.4).double()
    level = UpperLevel(Upper.parse(UPPERS[name]), model, TASK, seed=0)
    config = TrainConfig(lr=0.5, weight_decay=0.01)
    whole = HyperLevel(Hyper(), model, TASK, config, level.loss)
    start = {key: value.clone() for key, value in model.state_dict().items()}
    whole.step()
    coefficients = model.propagation.coefficients
    found, drawn = coefficients.grad.clone(), model.state_dict()["p_pre.dropout.count"] != start["p_pre.dropout.count"]
    assert drawn

    def stepped(change: Tensor) -> float:
        model.load_state_dict(start)
        with torch.no_grad():
            coefficients.add_(change)
        model.train().zero_grad()
        level.loss().backward()
        decays = {id(p): g["weight_decay"] for g in config.parameter_groups(model) for p in g["params"]}
        with torch.no_grad():
            for one in model.parameters():
                if one is not coefficients:
                    one.sub_(0.5 * (one.grad + decays[id(one)] * one))
            output = model.eval()(X, GRAPH)[whole.teachers]
        return float(torch.nn.functional.cross_entropy(output, CLASSES[whole.teachers]))

    for k, direction in enumerate(torch.eye(3, dtype=torch.float64)):
        slope = (stepped(1e-5 * direction) - stepped(-1e-5 * direction)) / 2e-5
        assert float(found[k]) == pytest.approx(slope, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", ["none", "consistency", "neighbours", "class_mass"])
def test_a_minimum_is_differentiated_through_the_targets_of_terms(name: str) -> None:
    """Where the gradient is 0 its derivative is not symmetric if targets move with the weights."""
    upper, net = Upper.parse(UPPERS[name]), us.HopNetwork([0.5, 0.3, 0.2]).double()

    def output(at: Mapping[str, Tensor]) -> Tensor:
        return torch.func.functional_call(net, {"coefficients": at["hops"]}, (X, GRAPH)) @ at["w"]

    def inner(at: Mapping[str, Tensor]) -> Tensor:
        seen = Seen(output(at)[None], CLASSES, LEARN, GRAPH, train.CrossEntropy(), torch.tensor(1))
        return upper.value(seen) + 0.2 * at["w"].square().sum()

    def outer(at: Mapping[str, Tensor]) -> Tensor:
        return torch.nn.functional.cross_entropy(output(at)[TEACH], CLASSES[TEACH])

    def rest(hops: Tensor) -> Tensor:
        w, slope = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True), torch.ones(())
        while float(slope.abs().max()) > 1e-12:
            slope = torch.autograd.grad(inner({"w": w, "hops": hops}), w)[0]
            w = (w - slope).detach().requires_grad_()
        return w

    hops = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    how = Hyper(order=Order.IMPLICIT, steps=9, damping=0.0)
    found = hypergradient(inner, outer, {"w": rest(hops)}, {"hops": hops.requires_grad_()}, how, 0.1)[2][0]
    hops = hops.detach()
    for k, direction in enumerate(torch.eye(3, dtype=torch.float64)):
        ends = [hops + sign * 1e-5 * direction for sign in (1, -1)]
        high, low = (float(outer({"w": rest(at).detach(), "hops": at})) for at in ends)
        assert float(found[k]) == pytest.approx((high - low) / 2e-5, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("upper", [None, "ce + consistency(views=2, temperature=0.5) under drop_nodes(0.3)"])
def test_coefficients_learn_on_validation_nodes_alone(order: Order, upper: str | None) -> None:
    """With a rate of zero nearly, the weights are those of training alone; with one, only what validation nodes say moves the hops."""
    data = datasets.contextual_sbm(nodes=80, classes=2, seed=0)
    task = train.Task.of(data)
    config = TrainConfig(epochs=4, upper=upper)
    torch.manual_seed(0)
    model = us.models.GPRGNN(16, 2, hidden=8, depth=2, dropout=0.0)
    start = model.propagation.coefficients.detach().clone()
    run = train.fit(model, task, config, hyper=Hyper(lr=0.05, order=order))
    assert all(math.isfinite(e.valid_loss) for e in run.history)
    assert not torch.allclose(model.propagation.coefficients, start, atol=1e-3)


def test_teachers_and_choosers_share_no_node_and_test_labels_count_for_nothing() -> None:
    data = datasets.contextual_sbm(nodes=80, classes=2, seed=0)
    task = train.Task.of(data)
    teachers, rest = Hyper().parts(task)
    assert set(teachers.tolist()).isdisjoint(rest.valid.tolist())
    assert set(teachers.tolist()) | set(rest.valid.tolist()) == set(task.valid.tolist())
    runs: list[list[float]] = []
    for changed in (False, True):
        target = task.target.clone()
        if changed:
            target[task.test] = 1 - target[task.test]
        torch.manual_seed(0)
        model = us.models.GPRGNN(16, 2, hidden=8, depth=2)
        other = train.Task(task.x, task.graph, target, task.train, task.valid, task.test)
        runs.append(
            [e.valid_loss for e in train.fit(model, other, TrainConfig(epochs=4), hyper=Hyper(lr=0.05)).history]
        )
    assert runs[0] == runs[1]


def test_a_run_that_was_cut_off_goes_on_and_another_hyper_is_refused(tmp_path: Path) -> None:
    data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    trial = train.Trial(us.models.GPRGNN, {"hidden": 8, "depth": 2}, TrainConfig(epochs=6))
    whole = train.train_trial(trial, data, hyper=Hyper())[1]
    short = train.Trial(trial.model, trial.settings, TrainConfig(epochs=2))
    train.train_trial(short, data, hyper=Hyper(), snapshot=tmp_path / "run.pt")
    found = train.train_trial(trial, data, hyper=Hyper(), snapshot=tmp_path / "run.pt")[1]
    assert [e.to_list() for e in found.history] == [e.to_list() for e in whole.history]
    with pytest.raises(ValueError, match="with hyper"):
        train.train_trial(trial, data, hyper=Hyper(lr=0.5), snapshot=tmp_path / "run.pt")


def test_what_cannot_be_is_refused() -> None:
    task = train.Task.of(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
    with pytest.raises(
        InputError, match="group='hops': expected one of several groups of MLP, which has first, linear"
    ):
        train.fit(us.models.MLP(16, 2), task, TrainConfig(epochs=1), hyper=Hyper())
    for config in (
        TrainConfig(epochs=1, lr_schedule=train.Rates.COSINE),
        TrainConfig(epochs=1, optimiser=torch.optim.LBFGS, weight_decay=0),
        TrainConfig(epochs=1, optimiser=lambda groups, lr: torch.optim.LBFGS(groups, lr=lr / 2)),
    ):
        with pytest.raises(IncompatibleError, match="hyper goes with a constant learning rate, and an optimiser that"):
            train.fit(us.models.GPRGNN(16, 2), task, config, hyper=Hyper())
    for wrong in (
        {"lr": 0},
        {"lr": float("inf")},
        {"lr": "x"},
        {"lr": True},
        {"steps": 2.5},
        {"damping": float("nan")},
    ):
        with pytest.raises(InputError, match=f"{next(iter(wrong))}=.*: expected a"):
            Hyper(**wrong)  # type: ignore[arg-type]
