"""Objectives of trained networks along depth: what each layer does to the problem that it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from unspool.algorithm import Exact
from unspool.errors import IncompatibleError
from unspool.objective import channel
from unspool.report import Cell as Shown
from unspool.report import Column, Panel, Table
from unspool.report.figure import finish
from unspool.report.text import shown
from unspool.spectral.plot import BLUE, GREY, ORANGE
from unspool.unrolling import Unrolled

Step = tuple[float, float]

CAPTION = (
    "The objective along depth, as a share of its first value, in one seed. Networks of tied coefficients descend on one "
    "objective. Where every layer has its own, read back from the weights, rings are before its step and dots after it, and only the "
    "two of a layer belong together; of a free matrix its symmetric part counts, and values below zero mean that a term has a "
    "negative weight."
)


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

    def panel(self, name: str) -> Panel:
        """A ring before and a dot after each step."""
        run = [(before / self.scale, after / self.scale) for before, after in self.runs[0]]
        where = list(range(1, len(run) + 1))
        before, after = [b for b, _ in run], [a for _, a in run]
        largest = max(abs(v) for step in run for v in step)

        def draw(axis: Any) -> None:
            if self.tied:
                axis.plot(
                    [0, *where],
                    [before[0], *after],
                    "o-",
                    color=ORANGE,
                    markersize=4.5,
                    label="one objective for all layers",
                )
            else:
                axis.vlines(where, before, after, color=GREY, linewidth=1.2)
                axis.plot(where, before, "o", color=BLUE, markerfacecolor="none", markersize=6, label="before the step")
                axis.plot(where, after, "o", color=ORANGE, markersize=4.5, label="after it")
            if largest > 20:
                axis.set_yscale("symlog", linthresh=1.0)
            finish(axis, f"{self.model}, seed {self.seed}", "layer", "objective / first value")
            axis.set_xticks(range(0, len(run) + 1, 1 + len(run) // 6))

        ends = f"from {shown(before[0], 3)} before layer 1 to {shown(after[-1], 3)} after layer {len(run)}"
        return Panel.drawn(name, f"Objective of {self.model} along {len(run)} layers, {ends}.", draw)


def descent_table(found: Sequence[Descent]) -> Table:
    """How many layers lower their objective, over all seeds.

    Example:
        >>> print(descent_table([Descent("APPNP", "0", (((4.0, 2.0), (2.0, 1.0)),))]).markdown().splitlines()[-1])
        | APPNP | 1 | 2 | shared | 100 | 0.250 |
    """
    heads = [Column("model", numbers=False), "seeds", "layers", Column("objective", numbers=False)]
    last = ["layers that do not raise theirs (%)", "last value / first"]
    rows: list[list[str | Shown]] = []
    for one in found:
        counts = [Shown(str(n), float(n)) for n in (len(one.runs), len(one.runs[0]))]
        kind = "shared" if one.tied else "one per layer"
        rows.append([one.model, *counts, kind, Shown(shown(100 * one.falling, 0), one.falling), _ratio(one)])
    return Table("Objectives along depth", [*heads, *last], rows)


def along(model: Any, x: Any, graph: Any) -> list[Step]:
    """Each layer's own objective before and after its step.

    Example:
        >>> import torch, unspool as us
        >>> steps = along(us.models.APPNP(4, 2, depth=3).eval(), torch.eye(4), us.graph.ring(4))
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


def _stepped(net: Unrolled, x: Tensor, graph: Any) -> list[Step]:
    if isinstance(net.algorithm, Exact):
        raise IncompatibleError(f"{net.algorithm.name} goes to the minimiser at once, so nothing happens along depth")
    state: Any = net.algorithm.init(net.start.tensor(x))
    steps: list[Step] = []
    for k in range(1, net.depth + 1):
        problem = net.problem(x, graph, k)
        before = float(problem.value(state[0]).sum())
        state = net.algorithm.update(state, problem)
        steps.append((before, float(problem.value(state[0]).sum())))
    return steps


def _read_back(found: Any, x: Tensor, graph: Any) -> list[Step]:
    """H ← H − (H − X) a − L H b, layer by layer, under η = 1/2."""
    h, steps = x, list[Step]()
    for layer in found.layers:
        a, b = layer.fidelity, layer.smoothness
        before = _value(h, x, graph, a, b)
        h = h - channel.apply(h - x, a) - channel.apply(h - graph @ h, b)
        steps.append((before, _value(h, x, graph, a, b)))
    return steps


def _value(h: Tensor, x: Tensor, graph: Any, a: Any, b: Any) -> float:
    return float((channel.apply(h - x, a) * (h - x)).sum() + (channel.apply(h - graph @ h, b) * h).sum())


def _ratio(one: Descent) -> Shown:
    return Shown(shown(one.last, 3), one.last) if one.tied else Shown("–")
