"""What trained networks have learnt: responses and objectives along depth, as numbers small enough to be kept with the results.

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

from unspool.datasets import Dataset
from unspool.errors import IncompatibleError
from unspool.files import one_at_a_time, write_whole
from unspool.models import Model
from unspool.report import counted
from unspool.report.spectra import Learnt, Spread, read_models, scaled_density
from unspool.reproduce.descent import Descent, objective_steps
from unspool.reproduce.presets import knows
from unspool.reproduce.runner import ExperimentRunner, TrainedNetwork
from unspool.reproduce.searches import heterophily_search
from unspool.reproduce.table2 import chosen_settings
from unspool.train import Trial, TrialLoader

#: The file in the folder of the results.
NETWORKS = "networks.json"

#: Frequency and height of a graph's density of frequencies, both on the scale of the normalised Laplacian.
Density = tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class Network:
    """A model trained on a dataset, seed by seed, and what its weights say.

    Attributes:
        dataset, model: names.
        learnt: its responses, and what could not be read.
        density: of the graph's frequencies; None where the data are not here.
        descent: its objective along depth; None where it has none.
        notes: sentences about what is missing.
        epochs: the most that each was trained.
        key: of the trials behind it; a network with the same one is not trained again.
    """

    dataset: str
    model: str
    learnt: Learnt
    density: Density | None = None
    descent: Descent | None = None
    notes: tuple[str, ...] = ()
    key: str = ""
    epochs: int = 0


def run_networks(runner: ExperimentRunner) -> list[Network]:
    """Train the chosen setting of each model once more, for its weights, and keep what it has learnt in ``networks.json``.

    Settings are those of Table 2 under the preset ``paper``, and on other sets those that the search on heterophilous graphs chose.
    """
    if runner.workspace.stored:  # weights are not in the study
        return read_networks(runner.workspace.results)
    how = runner.options.experiment("networks")
    kinds = runner.options.model_classes("networks")
    made: list[Network] = []
    with runner.timed("networks"):
        for data in runner.datasets(how["datasets"]):
            made += _on(runner, data, kinds, how["seeds"])
    return made


def _on(runner: ExperimentRunner, data: Dataset, kinds: Sequence[type[Model]], seeds: int) -> list[Network]:
    folder = runner.workspace.results
    there = {(one.dataset, one.model): one for one in readable_networks(folder)}
    loader = runner.loader(data)
    made: list[Network] = []
    for trial in map(runner.shortened, _chosen(runner, data, kinds).values()):
        trials = [trial.with_seed(seed) for seed in range(seeds)]
        key = f"{trial.key(loader.fingerprint)} x {seeds}"
        old = there.get((data.name.lower(), trial.name))
        if old is not None and old.key == key:
            made.append(old)
            continue
        epochs = trial.config.epochs
        runner.say(f"networks on {data.name}: {trial.name}, {counted(seeds, 'seed')} of at most {epochs} epochs")
        networks = runner.train_networks(loader, trials)
        if len(networks) == seeds:
            made.append(replace(describe_networks(loader, networks), key=key, epochs=epochs))
            keep_networks(folder, made[-1:])
    return made


def readable_networks(folder: Path) -> list[Network]:
    """The same as :func:`read_networks`; nothing where the file is broken, since it is written anew."""
    try:
        return read_networks(folder)
    except ValueError:
        return []


def _chosen(runner: ExperimentRunner, data: Dataset, kinds: Sequence[type[Model]]) -> dict[str, Trial]:
    """The settings of the table that a set is in; over as many seeds as that table has, so that its searches are there already."""
    if knows(data.name):
        seeds = runner.options.usual_seeds("table2")
        return chosen_settings(runner, "table2", data, kinds, "paper", seeds).chosen
    return heterophily_search(runner, data, kinds).chosen


def describe_networks(loader: TrialLoader, networks: Sequence[TrainedNetwork]) -> Network:
    """What networks that differ in nothing but their seed have learnt.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> loader = TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> trial = Trial(us.models.APPNP, {"depth": 2, "hidden": 4}, train.TrainConfig(epochs=3))
        >>> model, run = train.train_trial(trial, loader)
        >>> made = describe_networks(loader, [TrainedNetwork(trial, model, loader.task(), run.result)])
        >>> made.learnt.gain.values.shape, len(made.descent.runs)
        (torch.Size([1, 121]), 1)
    """
    trial, data = networks[0].trial, loader.data
    nets = [(str(one.trial.seed), one.model.cpu().eval()) for one in networks]
    used = data.row_normalised() if trial.normalise_rows else data
    descent, notes = descent_of(trial.name, nets, used)
    return Network(data.name.lower(), trial.name, read_models(nets), scaled_density(data.graph), descent, notes)


def descent_of(name: str, nets: Sequence[tuple[str, Any]], data: Dataset) -> tuple[Descent | None, tuple[str, ...]]:
    """The objective along depth of trained networks, or why there is none."""
    try:
        runs = [objective_steps(model, data.features, data.graph) for _, model in nets]
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
        plain = {"densities": densities, "networks": [_plain(one) for one in both]}
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":")) + "\n"
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
            f"{file} is not a file of networks, or was cut off; write it again with `unspool reproduce networks`"
        ) from None


def _plain(one: Network) -> dict[str, Any]:
    gain, band, descent = one.learnt.gain, one.learnt.band, one.descent
    steps = [] if descent is None else [[[float(f"{v:.6g}") for v in step] for step in run] for run in descent.runs]
    return {
        "dataset": one.dataset,
        "model": one.model,
        "key": one.key,
        "epochs": one.epochs,
        "seeds": one.learnt.seeds,
        "notes": one.notes,
        "unread": one.learnt.unread,
        "gain": None if gain is None else {"name": gain.name, "values": [_rounded(row) for row in gain.values]},
        "band": None if band is None else [_rounded(edge) for edge in band],
        "runs": steps if steps else None,
    }


def _read(one: Mapping[str, Any], density: Sequence[Sequence[float]] | None) -> Network:
    gain = None if one["gain"] is None else Spread(one["gain"]["name"], _tensor(one["gain"]["values"]))
    band = None if one["band"] is None else (_tensor(one["band"][0]), _tensor(one["band"][1]))
    descent = None
    if one["runs"]:
        descent = Descent(one["model"], one["seeds"][0] if one["seeds"] else "0", _steps(one["runs"]))
    learnt = Learnt(tuple(one["seeds"]), gain, band, (), False, tuple(one["unread"]))
    height = None if density is None else (_tensor(density[0]), _tensor(density[1]))
    return Network(
        one["dataset"], one["model"], learnt, height, descent, tuple(one["notes"]), one["key"], one["epochs"]
    )


def _steps(runs: Sequence[Sequence[Sequence[float]]]) -> tuple[tuple[tuple[float, float], ...], ...]:
    return tuple(tuple((float(before), float(after)) for before, after in run) for run in runs)


def _rounded(values: Tensor) -> list[float]:
    return [float(f"{v:.4g}") for v in values.tolist()]


def _tensor(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
