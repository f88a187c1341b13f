"""Trained networks on the page: what they do to each graph frequency, and their objective along depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unspool import datasets
from unspool.datasets import Dataset
from unspool.models.folder import load_folder
from unspool.refusal import Refusal
from unspool.report import Block, Column, Figure, Folded, Heading, Notes, Panel, Paragraph, Table
from unspool.report import Cell as Shown
from unspool.report.figure import MISSING, can_draw
from unspool.report.seeds import Job, read_job
from unspool.report.spectra import GRID, Learnt, learnt, response_panel, response_table
from unspool.report.text import counted, shown
from unspool.reproduce.page_cells import NAMES, ORDER, called, place
from unspool.reproduce.page_descent import CAPTION, Descent, along, descent_table

#: Where the folder of results keeps trained models: a folder for each job, as ``unspool train --out`` writes it.
FOLDER = "models"

HOW = (
    "No trained models are in this folder. Responses and objectives are drawn for those in its subfolder models: "
    "unspool train UGDGNN --dataset cora --seeds 10 --out FOLDER/models/ugdgnn-cora, then unspool report FOLDER."
)


@dataclass(frozen=True, eq=False)
class Trained:
    """A job, what its weights say, and the data it was trained on where they are here."""

    job: Job
    found: Learnt
    data: Dataset | None

    @property
    def model(self) -> str:
        """The name of the class."""
        return str(self.job.first.card["model"])

    @property
    def dataset(self) -> str:
        """The name of the data, in lower case."""
        return str(self.job.first.part("data").get("name", "")).lower()


def trained(folder: Path) -> list[Trained]:
    """The jobs in ``folder/models``, by dataset and model; none where there is no such folder."""
    place_of = folder / FOLDER
    jobs = [read_job(p) for p in sorted(place_of.iterdir()) if p.is_dir()] if place_of.is_dir() else []
    held: dict[str, Dataset | None] = {}
    made: list[Trained] = []
    for job in jobs:
        one = Trained(job, learnt(job.counted), None)
        if one.dataset not in held:
            held[one.dataset] = _data(job)
        made.append(Trained(job, one.found, held[one.dataset]))
    return sorted(made, key=lambda t: (place(t.dataset, tuple(NAMES)), place(t.model, ORDER)))


def networks(all_of_them: Sequence[Trained]) -> list[Block]:
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


def passes(all_of_them: Sequence[Trained]) -> Table:
    """Which frequencies each trained network lets through."""
    heads = [*(Column(n, numbers=False) for n in ("dataset", "model")), "seeds", "at λ = 0", "at λ = 1", "at λ = 2"]
    rows: list[list[str | Shown]] = []
    for one in all_of_them:
        if one.found.gain is not None:
            mean = one.found.gain.values.mean(0)
            gains = [float(mean[k]) for k in (0, GRID.numel() // 2, -1)]
            seeds = len(one.found.seeds)
            numbers = [Shown(shown(g, 3), g) for g in gains]
            rows.append([called(one.dataset), one.model, Shown(str(seeds), seeds), *numbers, side(gains[0], gains[-1])])
    return Table("Mean response of trained networks", [*heads, Column("passes", numbers=False)], rows)


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


def _dataset(own: Sequence[Trained], number: int) -> list[Block]:
    graph = next((t.data.graph for t in own if t.data is not None), None)
    notes = [f"{t.model}: {words}" for t in own for words in t.found.trouble]
    drawn = [t for t in own if t.found.gain is not None]
    blocks: list[Block] = []
    if drawn and can_draw():
        panels = [_response(t, graph, f"response-{number}-{k}") for k, t in enumerate(drawn)]
        blocks.append(Figure(panels, "Frequency responses: one thin line for each seed, the thick one is their mean."))
    if graph is None:
        notes.append("The files of this dataset are not on this machine: no density and no objectives are drawn.")
    descents, said = _descents([t for t in own if t.data is not None])
    if descents and can_draw():
        blocks.append(Figure([d.panel(f"objective-{number}-{k}") for k, d in enumerate(descents)], CAPTION))
    tables: list[Block] = [descent_table(descents)] if descents else []
    tables += [response_table(t.found, f"{t.model}, frequency response") for t in drawn]
    blocks += [Folded("The numbers of these figures", tables)] if tables else []
    notes += said
    return [*blocks, *([Notes(notes)] if notes else [])]


def _response(one: Trained, graph: Any, name: str) -> Panel:
    return response_panel(one.found, graph, name=name, title=f"{one.model}, {counted(len(one.found.seeds), 'seed')}")


def _descents(own: Sequence[Trained]) -> tuple[list[Descent], list[str]]:
    found, said = list[Descent](), list[str]()
    for one in own:
        try:
            assert one.data is not None
            models = [load_folder(seed.place)[0].eval() for seed in one.job.counted]
            runs = [along(model, one.data.features, one.data.graph) for model in models]
        except (Refusal, ValueError, TypeError, OSError) as problem:
            said.append(f"{one.model}: no objective along depth: {problem}.")
            continue
        found.append(Descent(one.model, one.job.counted[0].name, tuple(tuple(steps) for steps in runs)))
    return found, said
