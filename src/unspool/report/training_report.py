"""The report of one training job: what it scored, which problem it solves, how it was trained, what it learnt."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from torch import nn

import unspool
from unspool.datasets import Dataset
from unspool.errors import IncompatibleError
from unspool.files import write_whole
from unspool.graph import Graph
from unspool.report.card_tables import (
    config_table,
    data_notes,
    data_table,
    machine_table,
    monitor_of,
    seed_table,
    settings_table,
)
from unspool.report.curves import curves
from unspool.report.figure import Figure, Panel
from unspool.report.link_sections import link_lead, link_sections
from unspool.report.page import Block, Code, Maths, Notes, Page, Paragraph, Section
from unspool.report.score import Score, check_paper, headline
from unspool.report.seeds import Job, read_job
from unspool.report.spectra import Learnt, hop_panel, hop_table, learnt, response_panel, response_table
from unspool.train import Monitor

#: Densities of graphs with more stored entries than this are not drawn: the report should not take longer than the training.
LARGEST = 10_000_000


def training(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    dataset: Any = None,
    paper: tuple[float, float | None] | None = None,
    command: str | None = None,
    model: type[nn.Module] | None = None,
    changed_code: bool = False,
) -> Path:
    """Write the report of a training job: one HTML file that needs nothing else, and the same as Markdown beside it.

    The same folder gives the same bytes. Seeds that were interrupted, or that belong to another job, are shown and do not count in
    means. Without matplotlib the report has no figures, and says so.

    Args:
        folder: what training wrote: ``seed0``, ``seed1``, ... with ``model.json`` and, where it was kept, ``history.csv``.
        out: the HTML file; ``report.html`` in the folder when omitted.
        dataset: a :class:`~unspool.datasets.Dataset` or a :class:`~unspool.Graph`, whose frequencies are drawn behind the response.
        paper: mean and standard deviation to compare with, as printed (accuracy and AUC in per cent).
        command: what was typed to train, for those who want to repeat it.
        model: the class of the model, where it is not of this package: nothing is imported because a card names it, and without the
            class the report leaves out what it would have to run the network for.
        changed_code: as for :func:`unspool.load`.

    Returns:
        The HTML file.

    Example:
        >>> import tempfile, unspool as us
        >>> from unspool.models.pretrained import save_pretrained
        >>> out = tempfile.mkdtemp()
        >>> task, data = {"kind": "classes", "score": "accuracy"}, {"name": "Cora"}
        >>> for seed, test in enumerate([0.70, 0.72]):
        ...     model = us.models.SGC(5, 3)
        ...     place = save_pretrained(model, f"{out}/seed{seed}", task=task, data=data, metrics={"test_score": test})
        >>> file = training(out, paper=(71.1, 0.5))
        >>> print(file.with_suffix(".md").read_text(encoding="utf-8"))
        # SGC on Cora
        <BLANKLINE>
        71.00 ± 1.41 %
        <BLANKLINE>
        test accuracy, mean ± standard deviation over 2 seeds.
        <BLANKLINE>
        The paper prints 71.10 ± 0.50 %: ours is −0.10 points, below it, within its standard deviation.
        ...
    """
    job = read_job(folder)
    file = job.folder / "report.html" if out is None else Path(out)
    if file.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{file.name}: a report is a .html file, with its Markdown next to it")
    checked = check_paper(paper)
    score = Score.of(job, checked)
    check_paper(paper, score)
    found = learnt(job.counted, model, changed_code)
    page = _page(job, score, checked, found, dataset, command)
    write_whole(file, lambda f: f.write(page.html().encode()))
    write_whole(file.with_suffix(".md"), lambda f: f.write(page.markdown().encode()))
    return file


def _page(
    job: Job,
    score: Score,
    paper: tuple[float, float | None] | None,
    found: Learnt,
    dataset: Dataset | Graph | None,
    command: str | None,
) -> Page:
    name = job.first.part("data").get("name")
    title = str(job.first.card["model"]) + (f" on {name}" if name else "")
    sections = [
        *link_sections(job),
        Section("The denoising problem", _problem(job)),
        Section("How it was trained", _training(job)),
        Section("Seeds", [seed_table(job, score)]),
        Section("Training curves", _curves(job, score)),
        Section("What it learnt", _learnt(found, _graph(dataset))),
        Section("Data", _data(job, dataset)),
        Section("To repeat it", _repeat(job, command)),
    ]
    lead: list[Block] = [
        *headline(job, score, paper),
        *link_lead(job),
        *(Paragraph([w], "warning") for w in job.warnings()),
    ]
    return Page(title, lead, sections, f"Written by unspool {unspool.__version__}.")


def _problem(job: Job) -> list[Block]:
    card = job.first.card
    objective, derivation = card.get("objective"), card.get("derivation")
    blocks: list[Block] = []
    if objective:
        blocks += [Paragraph(["The problem behind its propagation:"]), Maths(str(objective))]
        blocks.append(
            Paragraph(["H: the signal that is sought; X: the encoded features; B: the incidence matrix of the graph."])
        )
    if derivation:
        blocks.append(Paragraph([f"Derivation: {derivation}."]))
    return blocks if blocks else [Paragraph(["The card does not name its problem."])]


def _training(job: Job) -> list[Block]:
    config, monitor = config_table(job), monitor_of(job)
    blocks: list[Block] = []
    if monitor not in (None, Monitor.LAST_EPOCH):
        part = "training" if monitor is Monitor.TRAIN_LOSS else "validation"
        words = f"Each seed keeps the weights of one epoch, chosen on the {part} set: {monitor.value}."
        blocks.append(Paragraph([words]))
    return [*blocks, *([config] if config else []), settings_table(job)]


def _curves(job: Job, score: Score) -> list[Block]:
    told = [s for s in job.counted if s.history]
    if not told:
        return [Paragraph(["No epochs were kept (history.csv), so there are no curves."])]
    figure = curves(told, score)
    blocks: list[Block] = [] if figure is None else [figure]
    silent = [s.name for s in job.counted if not s.history and not s.trouble]
    if silent:
        blocks.append(Paragraph([f"Without history.csv, and so not in the curves: seed {', '.join(silent)}."]))
    return blocks if blocks else [Paragraph(["Not drawn."])]


def _learnt(found: Learnt, graph: Graph | None) -> list[Block]:
    notes: list[Block] = [Paragraph([words]) for words in found.unread]
    if found.gain is None:
        return notes
    tables = [response_table(found), *([hop_table(found)] if found.hops else [])]
    panels: list[Panel] = [response_panel(found, graph), *([hop_panel(found)] if found.hops else [])]
    words = "What the propagation does to each frequency of a graph, from 0 (constant along edges) to 2, read exactly from the weights."
    if found.hops:
        words += " Bars of the hop coefficients reach from the smallest to the largest seed."
    if found.band is not None:
        words += " The coefficients are maps of channels, so each frequency has several gains: the singular values of h(λ) for matrices."
    return [Figure(panels, words, numbers=tables), *notes]


def _data(job: Job, dataset: Dataset | Graph | None) -> list[Block]:
    table, notes = data_table(job, dataset), data_notes(job)
    blocks: list[Block] = [] if table is None else [table]
    if notes:
        blocks += [Paragraph(["What was done to the data:"]), Notes(notes)]
    told = job.first.part("data").get("hash")
    if told and isinstance(dataset, Dataset) and told not in (dataset.hash, dataset.row_normalised().hash):
        words = f"The data set given for size and density is another one than that of the cards: its hash is {dataset.hash}."
        blocks.append(Paragraph([words], "warning"))
    return blocks if blocks else [Paragraph(["The card does not say what it was trained on."])]


def _repeat(job: Job, command: str | None) -> list[Block]:
    kept = job.first.card.get("command") if command is None else command
    line: Block = Code(kept) if isinstance(kept, str) and kept else Paragraph(["The command was not recorded."])
    return [line, machine_table(job)]


def _graph(dataset: Any) -> Graph | None:
    """The graph whose frequencies are drawn, where it has any and is not too large."""
    if dataset is None:
        return None
    graph = dataset if isinstance(dataset, Graph) else getattr(dataset, "graph", None)
    if not isinstance(graph, Graph):
        raise TypeError(
            f"dataset is {type(dataset).__name__}: expected a Dataset or a Graph, such as datasets.load('citeseer')"
        )
    try:
        graph.require_laplacian()
    except IncompatibleError:
        return None
    return graph if graph.operator.forward.col.numel() <= LARGEST else None
