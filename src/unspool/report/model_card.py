"""The model card: one Markdown file that says what a trained model is, how good, for what, and how to load it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import unspool
from unspool.files import write_whole
from unspool.report.card_tables import data_notes, data_table
from unspool.report.evidence import Evidence
from unspool.report.findings import FEW, Topic, findings, unbalanced
from unspool.report.page import Block, Code, Maths, Notes, Page, Paragraph, Section
from unspool.report.problem import Problem
from unspool.report.score import headline
from unspool.report.score_tables import baseline_table, class_table, score_table
from unspool.report.text import Tone, counted, shown

FILE = "MODEL_CARD.md"
#: Classes with fewer nodes are named among the limits.
RARE = 10


def write_model_card(found: Evidence, problem: Problem, folder: Path) -> Path:
    """Write ``MODEL_CARD.md`` into the folder of a job.

    Example:
        >>> import tempfile, unspool as us
        >>> from unspool.report.seeds import read_job
        >>> from unspool.report.score import Score
        >>> out = Path(tempfile.mkdtemp())
        >>> place = us.save(us.models.SGC(5, 3), out / "seed0", metrics={"test_score": 0.7})
        >>> job = read_job(out)
        >>> file = write_model_card(Evidence.of(job, Score.of(job, None)), Problem.of(job.first.card, None), out)
        >>> file.read_text(encoding="utf-8").splitlines()[0]
        '# Model card: SGC'
    """
    name = found.job.first.part("data").get("name")
    title = f"Model card: {found.job.first.card['model']}" + (f" on {name}" if name else "")
    sections = [
        Section("What it is", _what(found, problem)),
        Section("Data", _data(found)),
        Section("How good it is", _scores(found)),
        Section("Its probabilities", _probabilities(found)),
        Section("Limits", [Notes(limits(found))]),
        Section("How to use it", _use(found)),
    ]
    page = Page(title, [], [s for s in sections if s.blocks], f"Written by unspool {unspool.__version__}.")
    file = folder / FILE
    write_whole(file, lambda f: f.write(page.markdown().encode()))
    return file


def limits(found: Evidence) -> list[str]:
    """What a user of the model should know before trusting it; each follows from a number of the job."""
    told = [
        "It was trained on one graph and measured on held-back nodes of the same graph; how well it does on other graphs is not known."
    ]
    if found.kind == "links":
        told = [
            "It was measured on edges that were held back, against pairs drawn at random; pairs that are hard to tell apart are rare among those."
        ]
    nodes = found.test_items
    if nodes is not None and nodes < FEW:
        told.append(f"The test set has {counted(nodes, 'node')} only: its scores are rough.")
    told += [t for t in (_rare(found, "training"), _rare(found, "test")) if t is not None]
    share = unbalanced(found)
    if share is not None:
        told.append(
            f"{shown(100 * share, 1)} % of the test nodes are one class; judge it by balanced accuracy, not by accuracy."
        )
    if len(found.job.counted) == 1:
        told.append("One seed was trained: how much of the result is chance is not known.")
    beside = (Topic.GRAPH, Topic.FEATURES, Topic.CONSTANT)
    told += [one.text for one in findings(found) if one.topic in beside and one.tone is not Tone.BETTER]
    told += [f"The data: {note}." for note in data_notes(found.job)]
    return told


def _rare(found: Evidence, which: str) -> str | None:
    if not found.classes:
        return None
    counts = found.evaluations[0].train_support if which == "training" else found.classes[0].support
    few = [f"{name} ({n})" for name, n in zip(found.names, counts, strict=False) if n < RARE]
    if not few:
        return None
    listed = ", ".join(few[:8]) + (f" and {len(few) - 8} more" if len(few) > 8 else "")
    return f"Classes with fewer than {RARE} {which} nodes: {listed}."


def _what(found: Evidence, problem: Problem) -> list[Block]:
    card = found.job.first.card
    kinds = {
        "classes": "one of several classes for every node", "binary": "yes or no for every node", "numbers": "numbers for every node",
        "ranking": "an order of the nodes", "links": "whether two nodes are linked",
    }  # fmt: skip
    seeds = counted(len(found.job.counted), "seed")
    words = f"A graph neural network, {card['model']}, that predicts {kinds.get(found.kind, 'something about every node')}; {seeds}."
    blocks: list[Block] = [Paragraph([words])]
    if problem.objective and problem.obstacle is None:
        blocks += [
            Paragraph(["It unrolls steps of an algorithm for this denoising problem:"]),
            Maths(problem.objective),
        ]
    return blocks


def _data(found: Evidence) -> list[Block]:
    table = data_table(found.job, None)
    return [] if table is None else [table]


def _scores(found: Evidence) -> list[Block]:
    tables = [baseline_table(found), score_table(found), class_table(found)]
    return [*headline(found.job, found.score), *(table for table in tables if table is not None)]


def _probabilities(found: Evidence) -> list[Block]:
    told = [one.text for one in findings(found) if one.topic is Topic.CALIBRATION]
    each = [
        f"Seed {seed.name}: temperature {shown(one.calibration.temperature, 4)}, expected calibration error on validation nodes "
        f"{shown(one.calibration.valid_before, 4)} before and {shown(one.calibration.valid_after, 4)} after, on test nodes "
        f"{shown(one.calibration.test_before, 4)} and {shown(one.calibration.test_after, 4)}."
        for seed, one in zip(found.seeds, found.evaluations, strict=True)
        if one.calibration is not None and one.calibration.temperature is not None
    ]
    return [*(Paragraph([words]) for words in told), *([Notes(each)] if each else [])]


def _use(found: Evidence) -> list[Block]:
    first = found.job.counted[0]
    place = first.place.name if first.place != found.job.folder else "."
    card = first.card
    own = ", model=Class" if ":" in str(card["model"]) else ""
    code = f'import unspool as us\n\nmodel = us.load("{place}"{own})  # in the folder of this file\noutput = model(x, graph)  # x: {card.get("in_features")} features for each node; graph: us.Graph'
    steps = first.part("data").get("transforms")
    notes = ["Rows of x were scaled to sum 1 in training; scale them alike."] if steps == ["row_normalised"] else []
    task: Mapping[str, object] = first.part("task")
    if "scale" in task:
        notes.append(
            "Outputs are standardised: times task.scale plus task.centre of model.card they have the units of the target."
        )
    blocks: list[Block] = [Code("unspool predict FOLDER --out predictions.csv"), Code(code)]
    return [*blocks, *([Notes(notes)] if notes else [])]
