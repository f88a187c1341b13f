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
from unspool.reproduce.bench import Bench
from unspool.reproduce.claims import Answer, compare_values, corrected
from unspool.reproduce.measured import Measured, chosen, keep, read_measured

#: The two fidelities, and the name of the graph in the results.
ROWS, SQUARES, GRAPH = "rows", "squares", "sensor"


@dataclass(frozen=True, eq=False)
class Noisy:
    """A clean signal, what was observed, and which rows are outliers."""

    clean: Tensor
    seen: Tensor
    hit: Tensor


def run_signals(bench: Bench) -> list[Measured]:
    """Denoise with both fidelities, and keep relative errors in ``signals.csv``; what is there already is not computed again.

    Nothing is trained, so the number of networks and ``--seeds`` change nothing.
    """
    how = bench.scope.asked("signals")
    there = read_measured(bench.place.results, "signals")
    found: list[Measured] = []
    graph, places = sensor(how["nodes"], how["neighbours"])
    graph, places = graph.to(torch.float64), places.double()
    for length in how["lengths"]:
        for name in (ROWS, SQUARES):
            cell = (GRAPH, name, "outliers", float(length))
            old = [one for one in there if one.cell == cell]
            if {one.seed for one in old} != set(range(how["draws"])) and not bench.place.stored:
                old = _measured(graph, places, name, length, how)
                keep(bench.place.results, "signals", old)
            found += old
    return found


def _measured(graph: Graph, places: Tensor, name: str, length: float, how: dict[str, Any]) -> list[Measured]:
    """One fidelity at one length: its weight from draws of its own, then the errors of the others."""
    many = how["draws"]
    ahead = [noisy(places, length, how, many + number) for number in range(how["choosing"])]
    weight = min(how["weights"], key=lambda w: fmean(_errors(graph, one, name, w, how)["error"] for one in ahead))
    told = {"weight": float(weight), **{key: how[key] for key in ("nodes", "channels", "noise", "share", "choosing")}}
    return [
        Measured("signals", GRAPH, name, "outliers", float(length), seed, quantity, value, told)
        for seed in range(many)
        for quantity, value in _errors(graph, noisy(places, length, how, seed), name, weight, how).items()
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


def _errors(graph: Graph, one: Noisy, name: str, weight: float, how: dict[str, Any]) -> dict[str, float]:
    """Relative errors: of all rows, of those that were replaced, and of the others."""
    found = minimise(problem(name, weight), one.seen, graph, tolerance=how["tolerance"])
    clean = torch.ones(graph.nodes, dtype=torch.bool)
    clean[one.hit] = False
    parts = {"error": torch.ones_like(clean), "error on damaged": ~clean, "error on clean": clean}
    return {word: float((found - one.clean)[m].norm() / one.clean[m].norm()) for word, m in parts.items() if m.any()}


def outliers(length: float) -> str:
    """A length in words.

    Example:
        >>> outliers(10.0), outliers(0.0)
        ('outliers of length 10', 'no outliers')
    """
    return f"outliers of length {length:g}" if length else "no outliers"


def signal_answers(found: Sequence[Measured]) -> list[Answer]:
    """Whether ‖H − X‖₂,₁ has the smaller error, draw by draw; p-values are corrected over lengths (Holm).

    Example:
        >>> from unspool.reproduce.measured import example_measured
        >>> rows = [
        ...     example_measured(s, model=m, value=v + 0.001 * (s * len(m) % 5))
        ...     for s in range(6) for m, v in ((ROWS, 0.11), (SQUARES, 0.5))
        ... ]
        >>> [(answer.dataset, answer.verdict.value) for answer in signal_answers(rows)]
        [('sensor (outliers of length 10)', 'holds')]
    """
    answers: list[Answer] = []
    for quantity, where, whether in QUESTIONS:
        mine = chosen(found, quantity, lambda one: one.experiment == "signals")
        each: list[Answer] = []
        for length in sorted({cell[3] for cell in mine if bool(cell[3]) is whether}):
            sides = [(name, mine.get((GRAPH, name, "outliers", length), {})) for name in (ROWS, SQUARES)]
            sentence = f"‖H − X‖₂,₁ errs less than ‖H − X‖²{where}"
            each += compare_values(sentence, f"{GRAPH} ({outliers(length)})", *sides, lower=True)
        answers += corrected(each)
    return answers


#: What is asked: the quantity, in words, and whether there are outliers; without them the answer is the price of being robust.
QUESTIONS = (
    ("error", " where there are outliers", True),
    ("error on damaged", " on damaged nodes", True),
    ("error on clean", " on clean nodes among them", True),
    ("error", " where there are no outliers", False),
)
