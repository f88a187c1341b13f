"""Outliers in raw signals: what a long row does to the minimiser with a fidelity of row lengths, and with one of squares.

The paper says that AirGNN's robustness *can be readily established by investigating its corresponding GSD problem*. So the problem
itself is solved here, without a network around it, on signals of which some rows are replaced by rows that are 1, 3, 10 and 30 times
as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from unspool.algorithm import minimise
from unspool.graph import Graph, sensor
from unspool.objective import Fidelity, Objective, RowSparseFidelity, Smoothness
from unspool.reproduce.claims import Claim, ClaimTest, Topic, compare_values, corrected
from unspool.reproduce.conditions import Condition, Factor, Nodes
from unspool.reproduce.records import Group, Measurement, Quantity, by_group
from unspool.reproduce.results import keep_measurements, read_measurements
from unspool.reproduce.runner import ExperimentRunner

#: The two fidelities, and the name of the graph in the results.
ROWS, SQUARES, GRAPH = "rows", "squares", "sensor"


@dataclass(frozen=True, eq=False)
class Noisy:
    """A clean signal, what was observed, and which rows are outliers."""

    clean: Tensor
    seen: Tensor
    hit: Tensor


def run_signals(runner: ExperimentRunner) -> list[Measurement]:
    """Denoise with both fidelities, and keep relative errors in ``signals.csv``; what is there already is not computed again.

    Nothing is trained, so the number of networks and ``--seeds`` change nothing.
    """
    how, folder = runner.options.experiment("signals"), runner.workspace.results
    there = read_measurements(folder, "signals")
    found: list[Measurement] = []
    graph, places = sensor(how["nodes"], how["neighbours"])
    graph, places = graph.to(torch.float64), places.double()
    for length in how["lengths"]:
        for name in (ROWS, SQUARES):
            group = Group(GRAPH, name, Condition(Factor.OUTLIERS, float(length)))
            old = [one for one in there if one.group == group]
            if {one.seed for one in old} != set(range(how["draws"])) and not runner.workspace.stored:
                old = _measured(graph, places, group, how)
                keep_measurements(folder, "signals", old)
            found += old
    return found


def _measured(graph: Graph, places: Tensor, group: Group, how: dict[str, Any]) -> list[Measurement]:
    """One fidelity at one length: its weight from draws of its own, then the errors of the others."""
    many, name, length = how["draws"], group.model, group.condition.amount
    ahead = [noisy(places, length, how, many + number) for number in range(how["choosing"])]
    weight = min(how["weights"], key=lambda w: fmean(_errors(graph, one, name, w, how)[Nodes.ALL] for one in ahead))
    told = {"weight": float(weight), **{key: how[key] for key in ("nodes", "channels", "noise", "share", "choosing")}}
    return [
        Measurement("signals", *group, seed, Quantity.ERROR, nodes, value, told)
        for seed in range(many)
        for nodes, value in _errors(graph, noisy(places, length, how, seed), name, weight, how).items()
    ]


def noisy(places: Tensor, length: float, how: dict[str, Any], seed: int) -> Noisy:
    """A smooth signal with noise everywhere and long rows at some nodes; the seed decides all of it.

    Example:
        >>> how = {"channels": 4, "noise": 0.1, "share": 10}
        >>> made = noisy(sensor(50)[1], 30.0, how, seed=0)
        >>> made.hit.numel(), bool(made.seen[made.hit].norm(dim=1).min() > 20 * made.clean.norm(dim=1).mean())
        (5, True)
    """
    random = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64).to(places.dtype)

    channels, nodes = how["channels"], places.shape[0]
    turns = 2 * torch.pi * torch.rand(channels, generator=random, dtype=torch.float64).to(places.dtype)
    clean = torch.sin(3 * places @ normal(2, channels) + turns)
    size = clean.norm(dim=1).mean()
    seen = clean + how["noise"] * size / channels**0.5 * normal(nodes, channels)
    hit = torch.randperm(nodes, generator=random)[: round(how["share"] / 100 * nodes) if length else 0]
    seen[hit] = length * size * torch.nn.functional.normalize(normal(hit.numel(), channels), dim=1)
    return Noisy(clean, seen, hit)


def problem(name: str, weight: float) -> Objective:
    """The two problems.

    Example:
        >>> print(problem("rows", 3.0))
        3 ‖B H‖²  +  ‖H − X‖₂,₁
    """
    fidelity = RowSparseFidelity(1.0) if name == ROWS else Fidelity(1.0)
    return Smoothness(weight) + fidelity


def _errors(graph: Graph, one: Noisy, name: str, weight: float, how: dict[str, Any]) -> dict[Nodes, float]:
    """Relative errors: of all rows, of those that were replaced, and of the others."""
    found = minimise(problem(name, weight), one.seen, graph, tolerance=how["tolerance"])
    clean = torch.ones(graph.nodes, dtype=torch.bool)
    clean[one.hit] = False
    parts = {Nodes.ALL: torch.ones_like(clean), Nodes.DAMAGED: ~clean, Nodes.CLEAN: clean}
    return {part: float((found - one.clean)[m].norm() / one.clean[m].norm()) for part, m in parts.items() if m.any()}


def signal_tests(measurements: Sequence[Measurement]) -> list[ClaimTest]:
    """Whether ‖H − X‖₂,₁ has the smaller error, draw by draw; p-values are corrected over lengths (Holm).

    Example:
        >>> from unspool.reproduce.records import example_measurement
        >>> found = [
        ...     example_measurement(s, model=m, value=v + 0.001 * (s * len(m) % 5))
        ...     for s in range(6) for m, v in ((ROWS, 0.11), (SQUARES, 0.5))
        ... ]
        >>> [(str(test.condition), test.verdict.value) for test in signal_tests(found)]
        [('outliers of length 10', 'holds')]
    """
    tests: list[ClaimTest] = []
    for nodes, where, outliers in QUESTIONS:
        claim = Claim(Topic.ERRS_LESS, f"‖H − X‖₂,₁ errs less than ‖H − X‖²{where}", lower=True)
        errors = by_group(measurements, Quantity.ERROR, nodes)
        each: list[ClaimTest] = []
        for length in sorted({group.condition.amount for group in errors if bool(group.condition.amount) is outliers}):
            condition = Condition(Factor.OUTLIERS, length)
            rows, squares = (errors.get(Group(GRAPH, name, condition), {}) for name in (ROWS, SQUARES))
            each += compare_values(claim, GRAPH, condition, (ROWS, rows), (SQUARES, squares))
        tests += corrected(each)
    return tests


#: What is asked: of which nodes, in words, and whether there are outliers; without them the answer is the price of being robust.
QUESTIONS = (
    (Nodes.ALL, " where there are outliers", True),
    (Nodes.DAMAGED, " on damaged nodes", True),
    (Nodes.CLEAN, " on clean nodes among them", True),
    (Nodes.ALL, " where there are no outliers", False),
)
