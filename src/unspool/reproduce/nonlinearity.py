"""Does nonlinearity hurt depth? One network with and without H ≥ 0, and what becomes of its Dirichlet energy along depth.

The paper builds UGDGNN without nonlinear steps because *some recent works have empirically demonstrated that the nonlinearities are the
main factor for performance degradations in deep GNNs*. Here the two networks are the same but for the constraint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from unspool.datasets import Dataset
from unspool.graph import Graph
from unspool.report.text import counted
from unspool.reproduce.alone import Trained, accuracy, settings_of, train_each
from unspool.reproduce.bench import Bench
from unspool.reproduce.claims import Answer, compare_values, corrected
from unspool.reproduce.measured import Measured, chosen, keep, read_measured
from unspool.reproduce.rectified import WithNonNegative, WithoutNonNegative
from unspool.study import Trial
from unspool.train import Plan

#: With and without the constraint.
WITH, WITHOUT = WithNonNegative.__name__, WithoutNonNegative.__name__


def run_nonlinearity(bench: Bench) -> list[Measured]:
    """Train both networks at every depth, and keep accuracies and energies in ``nonlinearity.csv``."""
    how = bench.scope.asked("nonlinearity")
    found: list[Measured] = []
    with bench.timed("nonlinearity"):
        for name in how["datasets"]:
            data = bench.data(name)
            for teleport in how["teleports"] if data is not None else ():
                for depth in how["depths"]:
                    for kind in (WithNonNegative, WithoutNonNegative):
                        found += _one(bench, data, _trial(kind, teleport, depth, how), how)  # pyright: ignore[reportArgumentType]
    return found


def problem_name(teleport: float) -> str:
    """Which problem a share of X in every layer makes.

    Example:
        >>> problem_name(0.0), problem_name(0.1)
        ("GCN's problem", "GCNII's problem")
    """
    return "GCNII's problem" if teleport else "GCN's problem"


def _trial(kind: type[Any], teleport: float, depth: int, how: dict[str, Any]) -> Trial:
    plan = Plan(rate=how["rate"], decay=how["decay"], epochs=how["epochs"])
    settings = {"depth": depth, "teleport": teleport, "dropout": how["dropout"]}
    return Trial(kind, settings, plan, normalise_rows=True)


def _one(bench: Bench, data: Dataset, trial: Trial, how: dict[str, Any]) -> list[Measured]:
    trial = bench.shortened(trial)
    told, depth, seeds = settings_of(trial, data), float(trial.settings["depth"]), range(how["seeds"])
    cell = (data.name, trial.name, problem_name(trial.settings["teleport"]), depth)
    there = [
        one for one in read_measured(bench.place.results, "nonlinearity") if one.cell == cell and one.settings == told
    ]
    if {one.seed for one in there} >= set(seeds) or bench.place.stored:
        return [one for one in there if one.seed in seeds]
    bench.say(
        f"nonlinearity on {data.name}: {trial.name}, {cell[2]}, {counted(int(depth), 'layer')}, {counted(len(seeds), 'seed')}"
    )
    nets = train_each(bench, data.row_normalised(), [replace(trial, seed=seed) for seed in seeds])
    if len(nets) < len(seeds):
        return []
    made = [
        Measured("nonlinearity", data.name, trial.name, cell[2], depth, net.trial.seed, quantity, value, told)
        for net in nets
        for quantity, value in _numbers(net).items()
    ]
    keep(bench.place.results, "nonlinearity", made)
    return made


@torch.no_grad()
def _numbers(net: Trained) -> dict[str, float]:
    """Accuracies of the selected epoch, and how much of the energy of X is left after the layers."""
    task, model = net.task, net.model
    x = model.p_pre(task.x)
    output = model(task.x, task.graph)
    h = model.propagation(x, task.graph.with_general_laplacian())
    return {
        "accuracy": accuracy(output, task, task.test),
        "train accuracy": accuracy(output, task, task.train),
        "energy": roughness(h, task.graph),
        "energy of X": roughness(x, task.graph),
    }


def roughness(h: Tensor, graph: Graph) -> float:
    """The Dirichlet energy over the size, tr HᵀLH / ‖H‖²: 0 for what is as smooth as the graph allows, at most 2; 0 for H = 0.

    Example:
        >>> import unspool as us
        >>> roughness(torch.ones(6, 2), us.graph.ring(6)), roughness(torch.tensor([[1.0], [-1]] * 3), us.graph.ring(6))
        (0.0, 1.3333...)
    """
    size = float(h.double().square().sum())
    if size == 0:
        return 0.0
    return max(0.0, float((h * (h - graph @ h)).double().sum()) / size)


def nonlinearity_answers(found: Sequence[Measured]) -> list[Answer]:
    """Whether the network without H ≥ 0 is better at each depth, and whether it loses less from the fewest layers to more of them.

    P-values are corrected over depths, problems and sets (Holm).

    Example:
        >>> from unspool.reproduce.measured import example_measured
        >>> rows = [
        ...     example_measured(s, experiment="nonlinearity", dataset="cora", model=m, kind="GCN's problem", amount=32.0,
        ...                      quantity="accuracy", value=v + 0.001 * (s * len(m) % 5))
        ...     for s in range(6) for m, v in ((WITH, 0.5), (WITHOUT, 0.7))
        ... ]
        >>> [(answer.dataset, answer.verdict.value) for answer in nonlinearity_answers(rows)]
        [("cora (GCN's problem, 32 layers)", 'holds')]
    """
    mine = chosen(found, "accuracy", lambda one: one.experiment == "nonlinearity")
    worse: list[Answer] = []
    costs: list[Answer] = []
    for name, kind in dict.fromkeys((cell[0], cell[2]) for cell in mine):
        depths = sorted({cell[3] for cell in mine if (cell[0], cell[2]) == (name, kind)})
        for depth in depths:
            sides = [(model, mine.get((name, model, kind, depth), {})) for model in (WITHOUT, WITH)]
            where = f"{name} ({kind}, {depth:g} layers)"
            worse += compare_values("nonlinearity hurts", where, *sides)
            if depth > depths[0]:
                first = {model: mine.get((name, model, kind, depths[0]), {}) for model in (WITHOUT, WITH)}
                lost = [(m, {s: first[m][s] - v for s, v in now.items() if s in first[m]}) for m, now in sides]
                costs += compare_values("depth costs more with nonlinearity", where, *lost, lower=True)
    return [*corrected(worse), *corrected(costs)]
