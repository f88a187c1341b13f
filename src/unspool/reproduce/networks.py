"""What trained networks have learnt: responses and objectives along depth, as numbers small enough to be kept beside results.

Weights of a benchmark take megabytes, and what the report draws of them is a few hundred numbers: the response at some
frequencies and the objective before and after each layer, for every seed, and the density of the graph's frequencies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unspool import models, study, train
from unspool.datasets import Dataset
from unspool.errors import IncompatibleError
from unspool.files import one_at_a_time, write_whole
from unspool.report.spectra import Learnt, Spread, read_models, scaled_density
from unspool.report.text import counted
from unspool.reproduce.bench import Bench
from unspool.reproduce.page_descent import Descent, along
from unspool.reproduce.table2 import chosen_settings
from unspool.reproduce.wide import heterophily_search
from unspool.study import Trial
from unspool.train.device import device_for

#: The file beside the results.
NETWORKS = "networks.json"

#: Frequency and height of a graph's density of frequencies, both on the scale of the normalised Laplacian.
Density = tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class Network:
    """A model trained on a dataset, seed by seed, and what its weights say.

    Attributes:
        dataset, model: names.
        found: its responses, and what could not be read.
        density: of the graph's frequencies; None where the data are not here.
        descent: its objective along depth; None where it has none.
        said: sentences about what is missing.
        epochs: the most that each was trained.
        key: of the trials behind it; a network with the same one is not trained again.
    """

    dataset: str
    model: str
    found: Learnt
    density: Density | None = None
    descent: Descent | None = None
    said: tuple[str, ...] = ()
    key: str = ""
    epochs: int = 0


def run_networks(bench: Bench) -> list[Network]:
    """Train the chosen setting of each model once more, alone, and keep what it has learnt in ``networks.json``.

    Settings are those of Table 2 under the preset ``paper``, and on other sets those that the search on heterophilous graphs chose.
    """
    if bench.place.stored:  # weights are not in the study
        return read_networks(bench.place.results)
    how = bench.scope.asked("networks")
    kinds = bench.scope.kinds("networks")
    made: list[Network] = []
    with bench.timed("networks"):
        for name in how["datasets"]:
            data = bench.data(name)
            if data is not None:
                made += _on(bench, data, kinds, how["seeds"])
    return made


def _on(bench: Bench, data: Dataset, kinds: Sequence[type[models.Model]], seeds: int) -> list[Network]:
    there = {(one.dataset, one.model): one for one in readable_networks(bench.place.results)}
    provide = study.Provider(data)
    made: list[Network] = []
    for trial in _chosen(bench, data, kinds).values():
        trials = [bench.shortened(replace(trial, seed=seed)) for seed in range(seeds)]
        key = f"{trials[0].key(provide.mark)} x {len(trials)}"
        old = there.get((data.name.lower(), trial.name))
        if old is not None and old.key == key:
            made.append(old)
            continue
        bench.say(
            f"networks on {data.name}: {trial.name}, {counted(len(trials), 'seed')} of at most {trials[0].plan.epochs} epochs"
        )
        try:
            made.append(
                replace(trained_network(data, trials, bench.place.device), key=key, epochs=trials[0].plan.epochs)
            )
        except (train.Diverged, torch.OutOfMemoryError) as problem:
            bench.failed.append(f"{trial.name} on {data.name}: {problem}")
            continue
        bench.trained += len(trials)
        keep_networks(bench.place.results, made[-1:])
    return made


def readable_networks(folder: Path) -> list[Network]:
    """The same as :func:`read_networks`; nothing where the file is broken, since it is written anew."""
    try:
        return read_networks(folder)
    except ValueError:
        return []


def _chosen(bench: Bench, data: Dataset, kinds: Sequence[type[models.Model]]) -> dict[str, Trial]:
    """The settings of the table that a set is in; over as many seeds as that table has, so that its searches are there already."""
    if models.has_preset(data.name):
        return chosen_settings(bench, "table2", data, kinds, "paper", bench.scope.usual_seeds("table2")).chosen
    return heterophily_search(bench, data, kinds).chosen


def trained_network(data: Dataset, trials: Sequence[Trial], device: str | None = None) -> Network:
    """Train trials that differ in nothing but their seed, and read what they have learnt.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> plan = train.Plan(epochs=3)
        >>> made = trained_network(data, [Trial(us.models.APPNP, {"depth": 2, "hidden": 4}, plan, seed) for seed in (0, 1)])
        >>> made.found.gain.values.shape, len(made.descent.runs)
        (torch.Size([2, 121]), 2)
    """
    provide = study.Provider(data, device_for(device))
    nets: list[tuple[str, Any]] = []
    for trial in trials:
        member = provide(trial)
        model = member.model.to(member.task.target.device)
        train.fit(model, member.task, trial.plan)
        nets.append((str(trial.seed), model.cpu().eval()))
    used = data.row_normalised() if trials[0].normalise_rows else data
    descent, said = descent_of(trials[0].name, nets, used)
    return Network(data.name.lower(), trials[0].name, read_models(nets), scaled_density(data.graph), descent, said)


def descent_of(name: str, nets: Sequence[tuple[str, Any]], data: Dataset) -> tuple[Descent | None, tuple[str, ...]]:
    """The objective along depth of trained networks, or why there is none."""
    try:
        runs = [along(model, data.features, data.graph) for _, model in nets]
    except (IncompatibleError, ValueError, TypeError) as problem:
        return None, (f"{name}: no objective along depth: {problem}.",)
    return Descent(name, nets[0][0], tuple(tuple(steps) for steps in runs)), ()


# -- files -------------------------------------------------------------------------------------------------------------


def keep_networks(folder: Path, made: Sequence[Network]) -> Path:
    """Put networks into ``networks.json``; others of other models and sets stay."""
    file = folder / NETWORKS
    with one_at_a_time(folder):
        new = {(one.dataset, one.model) for one in made}
        held = [one for one in readable_networks(folder) if (one.dataset, one.model) not in new]
        both = [*held, *made]
        densities = {one.dataset: [_rounded(part) for part in one.density] for one in both if one.density is not None}
        told = {"densities": densities, "networks": [_told(one) for one in both]}
        text = json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n"
        write_whole(file, lambda out: out.write(text.encode()))
    return file


def read_networks(folder: Path) -> list[Network]:
    """What ``networks.json`` holds; nothing where there is none.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp())
        >>> gain = Spread("response h(λ)", torch.ones(1, 121, dtype=torch.float64))
        >>> one = Network("cora", "APPNP", Learnt(("0",), gain, None, (), False, ()), None, Descent("APPNP", "0", (((4.0, 2.0),),)))
        >>> file = keep_networks(place, [one])
        >>> read_networks(place)[0].descent.runs
        (((4.0, 2.0),),)
    """
    file = folder / NETWORKS
    if not file.is_file():
        return []
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        return [_read(one, told["densities"].get(one["dataset"])) for one in told["networks"]]
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"{file} is no file of networks, or was cut off; write it again with `unspool reproduce networks`"
        ) from None


def _told(one: Network) -> dict[str, Any]:
    gain, band, descent = one.found.gain, one.found.band, one.descent
    return {
        "dataset": one.dataset, "model": one.model, "key": one.key, "epochs": one.epochs, "seeds": one.found.seeds, "said": one.said, "trouble": one.found.trouble,
        "gain": None if gain is None else {"name": gain.name, "values": [_rounded(row) for row in gain.values]},
        "band": None if band is None else [_rounded(edge) for edge in band],
        "runs": None if descent is None else [[[float(f"{v:.6g}") for v in step] for step in run] for run in descent.runs],
    }  # fmt: skip


def _read(one: Mapping[str, Any], density: Sequence[Sequence[float]] | None) -> Network:
    gain = None if one["gain"] is None else Spread(one["gain"]["name"], _tensor(one["gain"]["values"]))
    band = None if one["band"] is None else (_tensor(one["band"][0]), _tensor(one["band"][1]))
    runs = one["runs"]
    descent = None
    if runs:
        descent = Descent(one["model"], one["seeds"][0] if one["seeds"] else "0", _steps(runs))
    found = Learnt(tuple(one["seeds"]), gain, band, (), False, tuple(one["trouble"]))
    height = None if density is None else (_tensor(density[0]), _tensor(density[1]))
    return Network(
        one["dataset"],
        one["model"],
        found,
        height,
        descent,
        tuple(one["said"]),
        one.get("key", ""),
        one.get("epochs", 0),
    )


def _steps(runs: Sequence[Sequence[Sequence[float]]]) -> tuple[tuple[tuple[float, float], ...], ...]:
    return tuple(tuple((float(before), float(after)) for before, after in run) for run in runs)


def _rounded(values: Tensor) -> list[float]:
    return [float(f"{v:.4g}") for v in values.tolist()]


def _tensor(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
