"""The report of one training job: what it scored, which problem it solves, how it was trained, what it learnt."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

import unspool
from unspool.datasets import Dataset
from unspool.errors import IncompatibleError
from unspool.files import write_whole
from unspool.graph import Graph
from unspool.models.pretrained import load_pretrained
from unspool.ops.stored_hops import StoredHops
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
from unspool.report.evidence import Evidence
from unspool.report.figure import Figure, Panel
from unspool.report.findings import Topic, findings, next_steps
from unspool.report.link_sections import link_lead, link_sections
from unspool.report.mistakes import error_blocks
from unspool.report.model_card import write_model_card
from unspool.report.page import Block, Code, Notes, Page, Paragraph, Section, Shown
from unspool.report.problem import Problem
from unspool.report.score import Score, beside_paper, check_paper, headline
from unspool.report.score_figures import reliability_figure, residual_figure
from unspool.report.score_tables import baseline_table, class_table, confusion_table, score_table, short_scores
from unspool.report.seeds import Job, read_job
from unspool.report.spectra import Learnt, hop_panel, hop_table, learnt, response_panel, response_table
from unspool.report.text import Mark, Tone, shown
from unspool.train import Monitor, TaskKind

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
    evidence = Evidence.of(job, score)
    problem = Problem.of(job.first.card, first_network(job, model, changed_code))
    errors = error_blocks(evidence, dataset, model, changed_code)
    sections = _sections(evidence, problem, errors, learnt(job.counted, model, changed_code), dataset, command)
    page = Page(_title(job), _lead(evidence, checked), sections, f"Written by unspool {unspool.__version__}.")
    write_whole(file, lambda f: f.write(page.html().encode()))
    write_whole(file.with_suffix(".md"), lambda f: f.write(page.markdown().encode()))
    if out is None:
        write_model_card(evidence, problem, job.folder)
    return file


def _sections(
    evidence: Evidence, problem: Problem, errors: list[Block], found: Learnt, dataset: Any, command: str | None
) -> list[Section]:
    job, score = evidence.job, evidence.score
    return [
        *link_sections(job),
        *_evaluated(evidence, errors),
        _section("How it was trained", [*_curves(job, score), *_training(job)], _trained_gist(job)),
        _section("Seeds", [seed_table(job, score)], score.range(job.values("test_score")) + score.unit),
        _section(
            "The denoising problem",
            problem.blocks(),
            "" if problem.obstacle is None else "not solved exactly by this network",
        ),
        _section(
            "What it learnt",
            _learnt(found, _graph(dataset)),
            "" if found.gain is None else "frequency response and hop coefficients",
        ),
        _section("Data", _data(job, dataset), _data_gist(job)),
        _section("To repeat it", _repeat(job, command)),
    ]


def first_network(job: Job, model: type[nn.Module] | None = None, changed_code: bool = False) -> Any:
    """The network of the first seed that counts; None where it cannot be built here."""
    try:
        return load_pretrained(job.counted[0].place, model=model, changed_code=changed_code)
    except (OSError, ValueError, TypeError):
        return None  # the part on what it learnt says why


def _title(job: Job) -> str:
    name = job.first.part("data").get("name")
    return str(job.first.card["model"]) + (f" on {name}" if name else "")


def _lead(evidence: Evidence, paper: tuple[float, float | None] | None) -> list[Block]:
    """One screen: the result, simpler models beside it, what the numbers say, and what to do next."""
    blocks: list[Block] = [*headline(evidence.job, evidence.score), *link_lead(evidence.job)]
    blocks += [Paragraph([words], "warning") for words in evidence.job.warnings()]
    beside = short_scores(evidence)
    blocks += [Paragraph([f"{beside[:1].upper()}{beside[1:]}."], "quiet")] if beside else []
    table = baseline_table(evidence)
    blocks += [] if table is None else [table]
    told, steps = findings(evidence), next_steps(evidence)
    if told:
        blocks += [
            Paragraph([Mark(one.text, one.tone)] if one.tone is Tone.WORSE else [one.text], "finding") for one in told
        ]
    blocks += beside_paper(evidence.job, evidence.score, paper)
    links = evidence.job.first.part("task").get("kind") == TaskKind.LINKS.value  # which has steps of its own
    if steps and not links and evidence.job.values("test_score"):
        blocks += [Paragraph(["What to do next:"]), Notes([step.text for step in steps])]
    return blocks


def _section(heading: str, blocks: list[Block], gist: str = "") -> Section:
    return Section(heading, blocks, gist, Shown.FOLDED)


def _evaluated(evidence: Evidence, errors: list[Block]) -> list[Section]:
    """What lies behind the score; sections that a kind of task does not have are left out."""
    tables = [score_table(evidence), class_table(evidence), confusion_table(evidence)]
    scores: list[Block] = [table for table in tables if table is not None]
    residuals, reliability = residual_figure(evidence), reliability_figure(evidence)
    if residuals is not None:
        scores.append(residuals)
    sections = [_section("Scores in detail", scores, short_scores(evidence))] if scores else []
    if reliability is not None:
        told = [Paragraph([one.text]) for one in findings(evidence) if one.topic is Topic.CALIBRATION]
        sections.append(
            _section("How far its probabilities can be trusted", [*told, reliability], _trust_gist(evidence))
        )
    if errors:
        sections.append(
            _section(
                "Errors worth a look", errors, "the most confident ones" if evidence.classes else "the largest ones"
            )
        )
    return sections


def _trust_gist(evidence: Evidence) -> str:
    before, after = (
        evidence.mean(lambda e, name=name: None if e.calibration is None else getattr(e.calibration, name))
        for name in ("test_before", "test_after")
    )
    if before is None or after is None:
        return "not calibrated"
    return f"expected calibration error {shown(100 * before, 1)} %, calibrated {shown(100 * after, 1)} %"


def _trained_gist(job: Job) -> str:
    chosen = [f"{epoch:g}" for seed in job.counted if (epoch := seed.metric("epoch")) is not None]
    if not chosen:
        return ""
    return (
        f"epoch {chosen[0]} was kept"
        if len(chosen) == 1
        else f"epochs {', '.join(chosen[:6])}{', …' if len(chosen) > 6 else ''} were kept"
    )


def _data_gist(job: Job) -> str:
    size = job.first.part("data").get("size")
    nodes = size.get("nodes") if isinstance(size, Mapping) else None
    return f"{nodes:,} nodes" if type(nodes) is int else ""


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
    if told and isinstance(dataset, Dataset) and told not in _hashes(dataset):
        words = f"The data set given for size and density is another one than that of the cards: its hash is {dataset.hash}."
        blocks.append(Paragraph([words], "warning"))
    return blocks if blocks else [Paragraph(["The card does not say what it was trained on."])]


def _repeat(job: Job, command: str | None) -> list[Block]:
    kept = job.first.card.get("command") if command is None else command
    line: Block = Code(kept) if isinstance(kept, str) and kept else Paragraph(["The command was not recorded."])
    return [line, machine_table(job)]


def _hashes(dataset: Dataset) -> tuple[str, ...]:
    """Of the data as they are, and with scaled rows, which hops on the disk never have."""
    stored = isinstance(dataset.features, StoredHops)
    return (dataset.hash,) if stored else (dataset.hash, dataset.row_normalised().hash)


def _graph(dataset: Any) -> Graph | None:
    """The graph whose frequencies are drawn, where it has any and is not too large."""
    if dataset is None:
        return None
    if isinstance(getattr(dataset, "features", None), StoredHops):  # which hold no graph
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
