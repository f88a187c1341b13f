"""What the report of a job that looks for links says more: how links were held back, ranks, what is reached without training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from unspool.report.figure import Figure, Panel, finish
from unspool.report.page import Block, Code, Notes, Paragraph, Section
from unspool.report.score import Score
from unspool.report.seeds import Job, Seed
from unspool.report.table import Cell, Column, Table
from unspool.report.text import counted, number, shown
from unspool.spectral.drawing import BLUE, ORANGE
from unspool.train import LinkBaseline, TaskKind

#: What is counted, by its name in cards.
METRICS = {
    "auc": Score("AUC", percent=True),
    "average_precision": Score("average precision", percent=True),
    "mrr": Score("MRR", percent=False),
    "hits@1": Score("Hits@1", percent=True),
    "hits@10": Score("Hits@10", percent=True),
    "hits@50": Score("Hits@50", percent=True),
}
TERMS = (
    "AUC: the chance that a test link scores above a pair that is not a link; 50 % is guessing, and ties count half.",
    "Average precision: the area under precision by recall over the same pairs; 50 % is guessing.",
    "MRR: the mean of 1/rank of each test link among its rivals; 1 means always first.",
    "Hits@k: the share of test links among the first k of their rivals.",
)


@dataclass(frozen=True, eq=False)
class LinkNumbers:
    """The numbers that the counted seeds of a job have about links.

    Attributes:
        seeds: those whose cards have them.
    """

    seeds: tuple[Seed, ...]

    @staticmethod
    def of(job: Job) -> LinkNumbers | None:
        """None where the job looks for something else."""
        if job.first.part("task").get("kind") != TaskKind.LINKS.value:
            return None
        return LinkNumbers(tuple(seed for seed in job.counted if seed.part("links")))

    def values(self, baseline: LinkBaseline | None, metric: str) -> list[float]:
        """A metric of the network, or of a baseline, seed by seed."""
        found = [_part(_who(seed, baseline), metric) for seed in self.seeds]
        return [value for value in map(number, found) if value is not None]

    def mean(self, baseline: LinkBaseline | None, metric: str) -> float | None:
        """Its mean over the seeds."""
        values = self.values(baseline, metric)
        return sum(values) / len(values) if values else None

    def best_baseline(self, metric: str) -> LinkBaseline | None:
        """The one that reaches most without training."""
        known = [(value, kind) for kind in LinkBaseline if (value := self.mean(kind, metric)) is not None]
        return max(known, key=lambda one: one[0])[1] if known else None


def _who(seed: Seed, baseline: LinkBaseline | None) -> Any:
    links = seed.part("links")
    return links.get("network") if baseline is None else _part(links.get("baselines"), baseline.name.lower())


def _part(held: Any, name: str) -> Any:
    return held.get(name) if isinstance(held, Mapping) else None


def link_lead(job: Job) -> list[Block]:
    """Below the headline: what was asked, and whether the network is worth its training; nothing for other kinds."""
    found = LinkNumbers.of(job)
    if found is None:
        return []
    words = "Links: given two nodes, how probable is an edge between them? The test links were taken out of the graph first."
    mrr = found.mean(None, "mrr")
    if mrr is not None:
        hits = METRICS["hits@10"].shown(found.mean(None, "hits@10"))
        words += f" Among its rivals a test link has a mean reciprocal rank (MRR) of {shown(mrr, 4)}; {hits} % are among the first ten."
    return [Paragraph([words]), *(Paragraph([line]) for line in comparison(found))]


def comparison(found: LinkNumbers) -> list[str]:
    """The network beside the best score that needs no training: by AUC, and by MRR."""
    lines: list[str] = []
    for metric in ("auc", "mrr"):
        kind, ours, score = found.best_baseline(metric), found.mean(None, metric), METRICS[metric]
        theirs = None if kind is None else found.mean(kind, metric)
        if kind is None or ours is None or theirs is None:
            continue
        best = f"the best score without training, {kind.value}, has {score.shown(theirs)}{score.unit}"
        told = f"{score.name} {score.shown(ours)}{score.unit}; {best}"
        gained = "." if ours > theirs else ": the network gains nothing over it."
        lines.append(told + gained)
    return lines


def link_sections(job: Job) -> list[Section]:
    """The sections of a job that looks for links; none for other kinds."""
    found = LinkNumbers.of(job)
    if found is None:
        return []
    if not found.seeds:
        words = "The cards hold no ranks: they were written by an earlier version. Train again to have them."
        return [Section("How well links are found", [Paragraph([words])])]
    return [
        Section("How well links are found", [_table(found), Notes(TERMS), *_histogram(found.seeds[0])]),
        Section("How it was measured", [Notes(protocol_words(found.seeds[0]))]),
        Section("What to do next", _next(job, found)),
    ]


def _table(found: LinkNumbers) -> Table:
    rows = [[name, *(_cell(found, kind, metric) for metric in METRICS)] for name, kind in _rows()]
    over = f", mean ± standard deviation over {len(found.seeds)} seeds" if len(found.seeds) > 1 else ""
    heads = [Column("score", numbers=False), *(score.heading for score in METRICS.values())]
    return Table(f"Test links: the network, and scores that need no training, on the same pairs{over}", heads, rows)


def _rows() -> list[tuple[str, LinkBaseline | None]]:
    return [("the network", None), *((kind.value, kind) for kind in LinkBaseline)]


def _cell(found: LinkNumbers, kind: LinkBaseline | None, metric: str) -> Cell:
    return Cell(METRICS[metric].range(found.values(kind, metric)), found.mean(kind, metric))


def protocol_words(seed: Seed) -> list[str]:
    """How links were held back and what stood against them, in sentences; empty where a card does not say."""
    held = seed.part("links").get("protocol")
    told = {name: number(_part(held, name)) for name in ("train", "valid", "test", "ranked", "rivals")}
    if any(value is None for value in told.values()):
        return ["The card does not say how it was measured."]
    train, valid, test, ranked, rivals = (int(value) for value in told.values() if value is not None)
    every = train + valid + test
    few = [f"No link has more than {rivals} rivals here, so Hits@50 says little."] if rivals < 100 else []
    return [
        f"Of {counted(every, 'link')}, {valid} ({100 * valid / every:.1f} %) were held back to choose the epoch and {test} "
        f"({100 * test / every:.1f} %) for the test. The network sees a graph without them, in training and in the test.",
        "Against the links of each part stand as many pairs that are not links anywhere in the whole graph, drawn uniformly, each once. Those "
        "of validation and test stay the same.",
        "In training, pairs are drawn anew in every epoch, uniformly among all pairs, so that nobody has to know the links that were held back; a "
        "few of them may be links.",
        f"For ranks, each of {counted(ranked, 'test link')} keeps one end, and competes with up to {rivals} other nodes that are not linked with it "
        "anywhere in the whole graph. Of equal scores the mean rank counts.",
        f"The seed ({seed.name} here) draws all of this; the same seed draws the same links, pairs and rivals for every model.",
        *few,
    ]


def _next(job: Job, found: LinkNumbers) -> list[Block]:
    commands = {
        f"unspool predict {job.folder} --top 10 --out out/recommended.csv": "new links for every node",
        f"unspool predict {job.folder} --pairs pairs.csv --out out/scores.csv": "two columns of nodes",
        f"unspool explain {found.seeds[0].place} --node A --other B": "why a pair is probable",
    }
    width = max(map(len, commands))
    lines = [f"{command:<{width}}  # {what}" for command, what in commands.items()]
    words = "Predictions are made with every known edge in the graph, those that were held back here too."
    kind, ours = found.best_baseline("auc"), found.mean(None, "auc")
    theirs = None if kind is None else found.mean(kind, "auc")
    blocks: list[Block] = [Code("\n".join(lines)), Paragraph([words])]
    if kind is not None and ours is not None and theirs is not None and ours <= theirs:
        hint = (
            f"Here {kind.value} does as well without training. Try another model or other features, or take that score."
        )
        blocks.insert(0, Paragraph([hint], "warning"))
    return blocks


def _histogram(seed: Seed) -> list[Block]:
    held = seed.part("links").get("histogram")
    bars, links, others = (_numbers(_part(held, name)) for name in ("bars", "links", "others"))
    if not bars or len(links) != len(bars) - 1 or len(others) != len(links) or bars != sorted(bars):
        return []

    def draw(axis: Any) -> None:
        for counts, colour, label in ((others, ORANGE, "not linked"), (links, BLUE, "linked")):
            axis.stairs(counts, bars, color=colour, fill=True, alpha=0.35)
            axis.stairs(counts, bars, color=colour, linewidth=1.8, label=label)
        finish(axis, "scores of test pairs", "score h · h, 0 is a probability of one half", "pairs")

    middle = [(low + high) / 2 for low, high in pairwise(bars)]
    means = [
        sum(c * m for c, m in zip(counts, middle, strict=True)) / max(sum(counts), 1) for counts in (links, others)
    ]
    label = f"Histogram of the scores of test pairs: {sum(links):g} links around {shown(means[0], 2)}, {sum(others):g} others around {shown(means[1], 2)}."
    words = f"The further apart the two lie, the better links are told from other pairs. Seed {seed.name}."
    return [Figure([Panel("linkscores", label, draw)], words)]


def _numbers(held: Any) -> list[float]:
    if not isinstance(held, Sequence) or isinstance(held, str):
        return []
    found = [number(value) for value in held]
    return [] if None in found else [value for value in found if value is not None]
