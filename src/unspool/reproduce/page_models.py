"""Trained networks on the page: what they do to each graph frequency, and their objective along depth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unspool import datasets
from unspool.datasets import Dataset
from unspool.errors import IncompatibleError
from unspool.models.folder import load_folder
from unspool.report import Block, Column, Figure, Folded, Heading, Notes, Panel, Paragraph, Table
from unspool.report import Cell as Shown
from unspool.report.figure import MISSING, can_draw
from unspool.report.seeds import Job, read_job
from unspool.report.spectra import GRID, learnt, read_models, response_panel, response_table, scaled_density
from unspool.report.text import counted, shown
from unspool.reproduce.networks import Density, Network, descent_of, read_networks
from unspool.reproduce.page_cells import NAMES, ORDER, called, place
from unspool.reproduce.page_descent import CAPTION, descent_table

#: Where the folder of results keeps trained models: a folder for each job, as ``unspool train --out`` writes it.
FOLDER = "models"

HOW = (
    "No trained networks are in this folder: unspool reproduce networks. Those in its subfolder models are drawn too: "
    "unspool train UGDGNN --dataset cora --seeds 10 --out FOLDER/models/ugdgnn-cora, then unspool report FOLDER."
)


def trained(folder: Path) -> list[Network]:
    """What ``networks.json`` holds and the jobs in ``folder/models``, by dataset and model; none where there is neither."""
    place_of = folder / FOLDER
    jobs = [read_job(p) for p in sorted(place_of.iterdir()) if p.is_dir()] if place_of.is_dir() else []
    held: dict[str, Dataset | None] = {}
    made = read_networks(folder)
    for job in jobs:
        name = str(job.first.part("data").get("name", "")).lower()
        if name not in held:
            held[name] = _data(job)
        made.append(_of_job(job, name, held[name]))
    return sorted(made, key=lambda t: (place(t.dataset, tuple(NAMES)), place(t.model, ORDER)))


def _of_job(job: Job, dataset: str, data: Dataset | None) -> Network:
    model = str(job.first.card["model"])
    if data is None:
        return Network(dataset, model, learnt(job.counted))
    try:
        nets = [(seed.name, load_folder(seed.place)[0].eval()) for seed in job.counted]
        descent, said = descent_of(model, nets, data)
    except (IncompatibleError, ValueError, TypeError, OSError) as problem:
        said = (f"{model}: no objective along depth: {problem}.",)
        return Network(dataset, model, learnt(job.counted), scaled_density(data.graph), None, said)
    return Network(dataset, model, read_models(nets), scaled_density(data.graph), descent, said)


def networks(all_of_them: Sequence[Network]) -> list[Block]:
    """For each dataset: responses over the density of its frequencies, and the objective along depth."""
    if not all_of_them:
        return [Paragraph([HOW])]
    words = (
        "Responses are read exactly from the trained weights: what the propagation does to each frequency of the graph, from 0 "
        "(constant along edges) to 2. The pale shape is the density of the graph's own frequencies."
    )
    blocks: list[Block] = [
        Paragraph([words]),
        *([] if can_draw() else [Paragraph([MISSING], "warning")]),
        passes(all_of_them),
    ]
    for number, data in enumerate(dict.fromkeys(t.dataset for t in all_of_them)):
        own = [t for t in all_of_them if t.dataset == data]
        blocks += [Heading(called(data)), *_dataset(own, number)]
    return blocks


def passes(all_of_them: Sequence[Network]) -> Table:
    """Which frequencies each trained network lets through."""
    heads = [*(Column(n, numbers=False) for n in ("dataset", "model")), "seeds", "at λ = 0", "at λ = 1", "at λ = 2"]
    rows: list[list[str | Shown]] = []
    for one in all_of_them:
        if one.found.gain is not None:
            gains = ends(one)
            seeds = len(one.found.seeds)
            numbers = [Shown(shown(g, 3), g) for g in gains]
            rows.append([called(one.dataset), one.model, Shown(str(seeds), seeds), *numbers, side(gains[0], gains[-1])])
    return Table("Mean response of trained networks", [*heads, Column("passes", numbers=False)], rows)


def ends(one: Network) -> tuple[float, float, float]:
    """The mean response at the lowest, the middle and the highest frequency."""
    if one.found.gain is None:
        raise ValueError(f"{one.model} on {one.dataset} has no response")
    mean = one.found.gain.values.mean(0)
    return float(mean[0]), float(mean[GRID.numel() // 2]), float(mean[-1])


def side(low: float, high: float) -> str:
    """In words, which end of the spectrum is stronger; by a factor of two or not at all.

    Example:
        >>> side(1.0, 0.1), side(0.2, -0.9), side(1.0, 0.8)
        ('low frequencies', 'high frequencies', 'both ends')
    """
    if abs(low) > 2 * abs(high):
        return "low frequencies"
    return "high frequencies" if abs(high) > 2 * abs(low) else "both ends"


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
    density = next((t.density for t in own if t.density is not None), None)
    notes = [f"{t.model}: {words}" for t in own for words in t.found.trouble]
    drawn = [t for t in own if t.found.gain is not None]
    blocks: list[Block] = []
    if drawn and can_draw():
        panels = [_response(t, density, f"response-{number}-{k}") for k, t in enumerate(drawn)]
        blocks.append(Figure(panels, "Frequency responses: one thin line for each seed, the thick one is their mean."))
    if density is None:
        notes.append("The files of this dataset are not on this machine: no density and no objectives are drawn.")
    descents = [t.descent for t in own if t.descent is not None]
    if descents and can_draw():
        blocks.append(Figure([d.panel(f"objective-{number}-{k}") for k, d in enumerate(descents)], CAPTION))
    tables: list[Block] = [descent_table(descents)] if descents else []
    tables += [response_table(t.found, f"{t.model}, frequency response") for t in drawn]
    blocks += [Folded("The numbers of these figures", tables)] if tables else []
    notes += [words for t in own for words in t.said]
    return [*blocks, *([Notes(notes)] if notes else [])]


def _response(one: Network, density: Density | None, name: str) -> Panel:
    return response_panel(one.found, density, name=name, title=f"{one.model}, {counted(len(one.found.seeds), 'seed')}")
