"""Trained networks: what they do to each graph frequency, and their objective along depth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unspool import datasets
from unspool.datasets import Dataset
from unspool.errors import IncompatibleError
from unspool.models import load_pretrained
from unspool.report import (
    Block,
    Cell,
    Column,
    Figure,
    Folded,
    Notes,
    Panel,
    Paragraph,
    Rows,
    Table,
    counted,
    shown,
    text_columns,
)
from unspool.report.figure import finish
from unspool.report.seeds import Job, read_job
from unspool.report.spectra import GRID, learnt, read_models, response_panel, response_table, scaled_density
from unspool.reproduce.descent import Descent
from unspool.reproduce.networks import Density, Network, descent_of, read_networks
from unspool.reproduce.sections.names import DATASET_ORDER, MODEL_ORDER, dataset_title, order_of
from unspool.reproduce.sections.not_run import NotRun
from unspool.spectral.drawing import BLUE, GREY, ORANGE

#: Where the folder of results keeps trained models: a folder for each job, as ``unspool train --out`` writes it.
FOLDER = "models"

HOW = (
    "No trained networks are in this folder: unspool reproduce networks. Those in its subfolder models are drawn too: "
    "unspool train UGDGNN --dataset cora --seeds 10 --out FOLDER/models/ugdgnn-cora, then unspool report FOLDER."
)

CAPTION = (
    "The objective along depth, as a share of its first value, in one seed. Networks of tied coefficients descend on one "
    "objective. Where every layer has its own, read back from the weights, rings are before its step and dots after it, and only the "
    "two of a layer belong together; of a free matrix its symmetric part counts, and values below zero mean that a term has a "
    "negative weight."
)


def trained_networks(folder: Path) -> list[Network]:
    """What ``networks.json`` holds and the jobs in ``folder/models``, by dataset and model; none where there is neither."""
    inner = folder / FOLDER
    jobs = [read_job(place) for place in sorted(inner.iterdir()) if place.is_dir()] if inner.is_dir() else []
    held: dict[str, Dataset | None] = {}
    made = read_networks(folder)
    for job in jobs:
        name = str(job.first.part("data").get("name", "")).lower()
        if name not in held:
            held[name] = _data(job)
        made.append(_of_job(job, name, held[name]))
    order = (DATASET_ORDER, MODEL_ORDER)
    return sorted(made, key=lambda one: (order_of(one.dataset, order[0]), order_of(one.model, order[1])))


def _of_job(job: Job, dataset: str, data: Dataset | None) -> Network:
    """What a job has learnt; nothing is imported because a card names it."""
    model = str(job.first.card["model"])
    found = learnt(job.counted)
    if data is None or not found.seeds:
        return Network(dataset, model, found, None if data is None else scaled_density(data.graph))
    try:
        nets = [(seed.name, load_pretrained(seed.place)) for seed in job.counted]
        descent, notes = descent_of(model, nets, data)
    except (IncompatibleError, ValueError, TypeError, OSError) as problem:
        notes = (f"{model}: no objective along depth: {problem}.",)
        return Network(dataset, model, found, scaled_density(data.graph), None, notes)
    return Network(dataset, model, read_models(nets), scaled_density(data.graph), descent, notes)


def network_blocks(networks: Sequence[Network]) -> list[Block]:
    """For each dataset: responses over the density of its frequencies, and the objective along depth."""
    if not networks:
        return [NotRun([HOW])]
    words = (
        "Responses are read exactly from the trained weights: what the propagation does to each frequency of the graph, from 0 "
        "(constant along edges) to 2. The pale shape is the density of the graph's own frequencies."
    )
    blocks: list[Block] = [Paragraph([words]), response_summary(networks)]
    for number, data in enumerate(dict.fromkeys(one.dataset for one in networks)):
        own = [one for one in networks if one.dataset == data]
        blocks.append(Folded(f"{dataset_title(data)}: responses and objectives", _dataset(own, number)))
    return blocks


def response_summary(networks: Sequence[Network]) -> Table:
    """Which frequencies each trained network lets through."""
    columns = [*text_columns("dataset", "model"), "seeds", "at λ = 0", "at λ = 1", "at λ = 2"]
    rows: Rows = []
    for one in networks:
        gains = ends(one)
        if gains is not None:
            numbers = [Cell.count(len(one.learnt.seeds)), *(Cell.number(gain, 3) for gain in gains)]
            rows.append([dataset_title(one.dataset), one.model, *numbers, stronger_end(gains[0], gains[-1])])
    return Table("Mean response of trained networks", [*columns, Column("passes", numbers=False)], rows)


def ends(one: Network) -> tuple[float, float, float] | None:
    """The mean response at the lowest, the middle and the highest frequency; None where there is no exact one."""
    if one.learnt.gain is None:
        return None
    mean = one.learnt.gain.values.mean(0)
    return float(mean[0]), float(mean[GRID.numel() // 2]), float(mean[-1])


def stronger_end(low: float, high: float) -> str:
    """In words, which end of the spectrum is stronger; by a factor of two or not at all.

    Example:
        >>> stronger_end(1.0, 0.1), stronger_end(0.2, -0.9), stronger_end(1.0, 0.8)
        ('low frequencies', 'high frequencies', 'both ends')
    """
    if abs(low) > 2 * abs(high):
        return "low frequencies"
    return "high frequencies" if abs(high) > 2 * abs(low) else "both ends"


def descent_panel(one: Descent, name: str) -> Panel:
    """A ring before and a dot after each step."""
    run = [(before / one.scale, after / one.scale) for before, after in one.runs[0]]
    where = list(range(1, len(run) + 1))
    before, after = [b for b, _ in run], [a for _, a in run]
    largest = max(abs(v) for step in run for v in step)

    def draw(axis: Any) -> None:
        if one.tied:
            dots = {"color": ORANGE, "markersize": 4.5, "label": "one objective for all layers"}
            axis.plot([0, *where], [before[0], *after], "o-", **dots)
        else:
            axis.vlines(where, before, after, color=GREY, linewidth=1.2)
            axis.plot(where, before, "o", color=BLUE, markerfacecolor="none", markersize=6, label="before the step")
            axis.plot(where, after, "o", color=ORANGE, markersize=4.5, label="after it")
        if largest > 20:
            axis.set_yscale("symlog", linthresh=1.0)
        finish(axis, f"{one.model}, seed {one.seed}", "layer", "objective / first value")
        axis.set_xticks(range(0, len(run) + 1, 1 + len(run) // 6))

    change = f"from {shown(before[0], 3)} before layer 1 to {shown(after[-1], 3)} after layer {len(run)}"
    return Panel(name, f"Objective of {one.model} along {len(run)} layers, {change}.", draw)


def descent_table(found: Sequence[Descent]) -> Table:
    """How many layers lower their objective, over all seeds.

    Example:
        >>> print(descent_table([Descent("APPNP", "0", (((4.0, 2.0), (2.0, 1.0)),))]).markdown().splitlines()[-1])
        | APPNP | 1 | 2 | shared | 100 | 0.250 |
    """
    columns = [*text_columns("model"), "seeds", "layers", *text_columns("objective")]
    rows: Rows = []
    for one in found:
        counts = [Cell.count(len(one.runs)), Cell.count(len(one.runs[0]))]
        ending = [Cell.number(100 * one.falling, 0), Cell.number(one.last if one.tied else None, 3)]
        rows.append([one.model, *counts, "shared" if one.tied else "one per layer", *ending])
    last = ["layers that do not raise theirs (%)", "last value / first"]
    return Table("Objectives along depth", [*columns, *last], rows)


# -- inside ------------------------------------------------------------------------------------------------------------


def _data(job: Job) -> Dataset | None:
    """The data as the card describes them, where they are on this machine."""
    told = job.first.part("data")
    try:
        data = datasets.load(str(told.get("name", "")).lower())
    except (FileNotFoundError, ImportError, ValueError):
        return None
    return data.row_normalised() if "row_normalised" in (told.get("transforms") or ()) else data


def _dataset(own: Sequence[Network], number: int) -> list[Block]:
    density = next((one.density for one in own if one.density is not None), None)
    notes = [f"{one.model}: {words}" for one in own for words in one.learnt.unread]
    drawn = [one for one in own if one.learnt.gain is not None]
    blocks: list[Block] = []
    if drawn:
        panels = [_response(one, density, f"response-{number}-{k}") for k, one in enumerate(drawn)]
        caption = "Frequency responses: one thin line for each seed, the thick one is their mean."
        numbers = [response_table(one.learnt, f"{one.model}, frequency response") for one in drawn]
        blocks.append(Figure(panels, caption, numbers=numbers))
    if density is None:
        notes.append("The files of this dataset are not on this machine: no density and no objectives are drawn.")
    descents = [one.descent for one in own if one.descent is not None]
    if descents:
        panels = [descent_panel(one, f"objective-{number}-{k}") for k, one in enumerate(descents)]
        blocks.append(Figure(panels, CAPTION, numbers=[descent_table(descents)]))
    notes += [words for one in own for words in one.notes]
    return [*blocks, *([Notes(notes)] if notes else [])]


def _response(one: Network, density: Density | None, name: str) -> Panel:
    title = f"{one.model}, {counted(len(one.learnt.seeds), 'seed')}"
    return response_panel(one.learnt, density, name=name, title=title)
