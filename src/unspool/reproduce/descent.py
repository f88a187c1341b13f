"""Objectives of trained networks along depth: what each layer does to the problem that it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from unspool.algorithm import Exact
from unspool.errors import IncompatibleError
from unspool.graph import Graph
from unspool.objective import channel
from unspool.unrolling import Unrolled

#: The objective of a layer before and after its step.
Step = tuple[float, float]


@dataclass(frozen=True)
class Descent:
    """The steps of a model, seed by seed; the first seed is drawn.

    Example:
        >>> found = Descent("APPNP", "0", (((4.0, 2.0), (2.0, 1.0)),))
        >>> found.tied, found.falling, found.last
        (True, 1.0, 0.25)
    """

    model: str
    seed: str
    runs: tuple[tuple[Step, ...], ...]

    @property
    def scale(self) -> float:
        """The size of the first value of the seed that is drawn; 1 where that is zero."""
        size = abs(self.runs[0][0][0])
        return size if size > 0 else 1.0

    @property
    def tied(self) -> bool:
        """Whether what follows a layer precedes the next one: all layers share one objective."""
        run = self.runs[0]
        gaps = [abs(a[1] - b[0]) for a, b in pairwise(run)]
        return all(gap <= 1e-5 * self.scale for gap in gaps)

    @property
    def falling(self) -> float:
        """The share of layers, over all seeds, whose step does not raise their own objective."""
        steps = [step for run in self.runs for step in run]
        return sum(after <= before + 1e-6 * abs(before) for before, after in steps) / len(steps)

    @property
    def last(self) -> float:
        """The last value as a share of the first, in the seed that is drawn."""
        return self.runs[0][-1][1] / self.scale


def objective_steps(model: Any, x: Any, graph: Graph) -> list[Step]:
    """Each layer's own objective before and after its step.

    Example:
        >>> import torch, unspool as us
        >>> steps = objective_steps(us.models.APPNP(4, 2, depth=3).eval(), torch.eye(4), us.graph.ring(4))
        >>> len(steps), all(after <= before for before, after in steps)
        (3, True)
    """
    net = model.propagation
    net = net.as_unrolled() if hasattr(net, "as_unrolled") else net
    with torch.no_grad():
        start = model.p_pre(x)
        if isinstance(net, Unrolled):
            return _stepped(net, start, graph)
        if hasattr(net, "read_back"):
            return _read_back(net.read_back(), start.double(), graph.to(torch.float64))
    raise IncompatibleError(f"{type(model).__name__} has no objective that its layers descend on")


def _stepped(net: Unrolled, x: Tensor, graph: Graph) -> list[Step]:
    if isinstance(net.algorithm, Exact):
        raise IncompatibleError(f"{net.algorithm.name} goes to the minimiser at once, so nothing happens along depth")
    state: Any = net.algorithm.init(net.start.tensor(x), net.problem(x, graph, 1))
    steps: list[Step] = []
    for k in range(1, net.depth + 1):
        problem = net.problem(x, graph, k)
        before = float(problem.value(state[0]).sum())
        state = net.algorithm.update(state, problem)
        steps.append((before, float(problem.value(state[0]).sum())))
    return steps


def _read_back(found: Any, x: Tensor, graph: Graph) -> list[Step]:
    """H ← H − (H − X) a − L H b, layer by layer, under η = 1/2."""
    h, steps = x, list[Step]()
    for layer in found.layers:
        a, b = layer.fidelity, layer.smoothness
        before = _value(h, x, graph, a, b)
        h = h - channel.apply(h - x, a) - channel.apply(h - graph @ h, b)
        steps.append((before, _value(h, x, graph, a, b)))
    return steps


def _value(h: Tensor, x: Tensor, graph: Graph, a: Any, b: Any) -> float:
    return float((channel.apply(h - x, a) * (h - x)).sum() + (channel.apply(h - graph @ h, b) * h).sum())
