"""Laws of node models: named ones, and one's own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from unspool.graph import Graph, permuted
from unspool.testing.laws import random_signal, relative, require, small_graph


def check_model(build: Callable[[], nn.Module], features: int, graph: Graph | None = None, seed: int = 0) -> None:
    """Check that a model ``model(x, graph)`` keeps the laws that training, tuning and packing rely on.

    * outputs and gradients are finite, one row per node;
    * permuting the nodes permutes the output;
    * the same seed gives the same training run, bit for bit;
    * its state dict makes a round trip, and training goes on from it as if nothing had happened;
    * a stack of three trials equals three single ones, outputs and gradients, in training mode.

    Args:
        build: makes a fresh model, from torch's generator (a class with its arguments bound, or a lambda).
        features: channels of its input.
        graph: where it is tried; a weighted graph of twelve nodes by default.
        seed: of models and input.

    Raises:
        LawBroken: with the law and the size of the violation.

    Example:
        >>> import unspool as us
        >>> us.testing.check_model(lambda: us.models.GPRGNN(5, 3, depth=4), features=5)
    """
    if isinstance(build, nn.Module):
        raise TypeError(
            "check_model builds several models of one kind: give a function that makes one, such as lambda: MyModel(5, 3)"
        )
    graph = small_graph() if graph is None else graph
    x = random_signal(graph, features, torch.Generator().manual_seed(seed))
    name = type(_made(build, seed)).__name__
    out = _made(build, seed)(x, graph)
    require(out.shape[0] == graph.nodes, f"{name} gives {out.shape[0]} rows for {graph.nodes} nodes")
    require(bool(torch.isfinite(out).all()), f"{name} gives numbers that are not finite")
    for parameter, slope in _slopes(_made(build, seed), x, graph).items():
        require(bool(torch.isfinite(slope).all()), f"the gradient of {parameter} in {name} is not finite")
    _check_permutation(_made(build, seed).eval(), x, graph, name)
    _check_runs(build, x, graph, name, seed)
    _check_stack(build, x, graph, name, seed)


def _made(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build().double().train()


def _loss(out: Tensor) -> Tensor:
    return (out * torch.cos(torch.arange(out.numel(), dtype=out.dtype).view(out.shape))).sum()


def _slopes(model: nn.Module, x: Tensor, graph: Graph) -> dict[str, Tensor]:
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    found: Any = torch.autograd.grad(_loss(model(x, graph)), list(trained.values()), allow_unused=True)
    return {n: g for n, g in zip(trained, found, strict=True) if g is not None}


def _check_permutation(model: nn.Module, x: Tensor, graph: Graph, name: str) -> None:
    order = torch.randperm(graph.nodes, generator=torch.Generator().manual_seed(1))
    gap = relative(model(x[order], permuted(graph, order)), model(x, graph)[order])
    require(gap < 1e-9, f"permuting the nodes changes {name}: its output differs by {gap:.1e}")


def _train(model: nn.Module, x: Tensor, graph: Graph, steps: int, adam: Any = None) -> Any:
    adam = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=0.01) if adam is None else adam
    for _ in range(steps):
        adam.zero_grad()
        _loss(model(x, graph)).backward()
        adam.step()
    return adam


def _check_runs(build: Callable[[], nn.Module], x: Tensor, graph: Graph, name: str, seed: int) -> None:
    first, second = _made(build, seed), _made(build, seed)
    adam = _train(first, x, graph, 2)
    _train(second, x, graph, 2)
    same = all(
        torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )
    require(same, f"two runs of {name} from the same seed differ")
    third = _made(build, seed + 1)
    third.load_state_dict(first.state_dict())
    again = torch.optim.Adam((p for p in third.parameters() if p.requires_grad), lr=0.01)
    again.load_state_dict(copy.deepcopy(adam.state_dict()))
    _train(first, x, graph, 1, adam)
    _train(third, x, graph, 1, again)
    same = all(torch.equal(a, b) for a, b in zip(first.state_dict().values(), third.state_dict().values(), strict=True))
    require(same, f"{name} does not go on from its state dict as it would have without: something is kept elsewhere")


def _check_stack(build: Callable[[], nn.Module], x: Tensor, graph: Graph, name: str, seed: int) -> None:
    models = [_made(build, seed + i) for i in range(3)]
    params, buffers = stack_module_state([copy.deepcopy(m) for m in models])

    def run(p: Any, b: Any) -> Tensor:
        return functional_call(models[0], (p, b), (x, graph))

    out = vmap(run)(params, buffers)
    trained = {n: p for n, p in params.items() if p.requires_grad}
    found = torch.autograd.grad(sum(_loss(o) for o in out), list(trained.values()), allow_unused=True)  # type: ignore[arg-type]
    for i, model in enumerate(models):
        gap = relative(out[i], copy.deepcopy(model)(x, graph))
        require(gap < 1e-9, f"trial {i} of a stack of {name} differs from the same trial alone by {gap:.1e}")
        single = _slopes(model, x, graph)
        for parameter, slope in zip(trained, found, strict=True):
            if slope is not None:
                gap = relative(slope[i], single[parameter])
                require(gap < 1e-8, f"the gradient of {parameter} in a stack of {name} differs by {gap:.1e}")
