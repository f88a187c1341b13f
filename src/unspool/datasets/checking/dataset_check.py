"""A data set, looked through."""

from __future__ import annotations

from dataclasses import dataclass

from unspool.datasets.checking.feature_columns import column_findings
from unspool.datasets.checking.finding import Finding, Kind, by_importance
from unspool.datasets.checking.measures import (
    GraphFacts,
    LabelFacts,
    SplitFacts,
    TargetFacts,
    graph_facts,
    label_facts,
    split_facts,
    target_facts,
)
from unspool.datasets.dataset import Dataset

#: A class of more than this share makes accuracy misleading.
UNBALANCED = 0.75
#: Such a share of nodes without edges is worth a remark.
LONELY = 0.1
#: Such a share of test nodes with the features of training nodes is worth a remark.
COPIES = 0.01
#: Fewer edges than this say little about neighbours.
TELLING = 50


@dataclass(frozen=True, eq=False)
class DataCheck:
    """What is in a data set, and what looks wrong in it.

    Attributes:
        name: what the set is called.
        features: how many features there are.
        graph: what is known of the graph.
        labels: of classes; None where there are none.
        targets: of numbers to predict.
        split: of the split; None where there is none.
        findings: what looks wrong, the most important first.
    """

    name: str
    features: int
    graph: GraphFacts
    labels: LabelFacts | None
    targets: tuple[TargetFacts, ...]
    split: SplitFacts | None
    findings: tuple[Finding, ...]


def check(dataset: Dataset, target_names: tuple[str, ...] = ()) -> DataCheck:
    """Look a data set through before it is trained on.

    Args:
        dataset: any data set.
        target_names: names of the numbers to predict, where they have any.

    Example:
        >>> from unspool import datasets
        >>> found = datasets.check(datasets.load("citeseer"))
        >>> found.graph.components, found.graph.isolated, round(found.labels.homophily, 2)
        (438, 48, 0.74)
        >>> [finding.kind.name for finding in found.findings]
        []
    """
    graph, labels, split = graph_facts(dataset), label_facts(dataset), split_facts(dataset)
    targets = target_facts(dataset, target_names)
    findings = [
        *_of_graph(graph),
        *_of_labels(labels, graph, split),
        *_of_split(dataset, split),
        *column_findings(dataset),
    ]
    if labels is None and not targets:
        findings.append(Finding(Kind.NO_ANSWER))
    return DataCheck(
        dataset.name, int(dataset.features.shape[1]), graph, labels, targets, split, by_importance(findings)
    )


def _of_graph(graph: GraphFacts) -> list[Finding]:
    found = list[Finding]()
    if graph.one_way and not graph.directed:
        found.append(Finding(Kind.ONE_WAY, count=graph.one_way, of=graph.listed))
    if graph.isolated > LONELY * graph.nodes:
        found.append(Finding(Kind.ISOLATED, count=graph.isolated, of=graph.nodes))
    if graph.loops:
        found.append(Finding(Kind.LOOPS, count=graph.loops, of=graph.listed))
    return found


def _of_labels(labels: LabelFacts | None, graph: GraphFacts, split: SplitFacts | None) -> list[Finding]:
    if labels is None:
        return []
    counted = zip(labels.classes, labels.counts, strict=True)
    rare = tuple(name for name, count in counted if 0 < count < 3) if split is None else ()
    found = [Finding(Kind.RARE_CLASS, count=len(rare), examples=rare[:4])] if rare else []
    if labels.majority > UNBALANCED and len([count for count in labels.counts if count]) > 1:
        name = labels.classes[labels.counts.index(max(labels.counts))]
        found.append(Finding(Kind.UNBALANCED, name, max(labels.counts), sum(labels.counts), labels.majority))
    if graph.edges >= TELLING and labels.homophily <= labels.chance:
        found.append(Finding(Kind.NOT_ALIKE, share=labels.homophily))
    if labels.missing:
        found.append(Finding(Kind.UNLABELLED, count=labels.missing, of=graph.nodes))
    return found


def _of_split(data: Dataset, split: SplitFacts | None) -> list[Finding]:
    if split is None or data.split is None:
        return []
    found = list[Finding]()
    if split.shared_rows > COPIES * split.test:
        found.append(Finding(Kind.SHARED_ROWS, count=split.shared_rows, of=split.test))
    if data.targets is None:
        trained, known = set(data.labels[data.split.train].tolist()), set(data.labels.tolist())
        lost = tuple(name for number, name in enumerate(data.classes) if number in known - trained)
        found += [Finding(Kind.UNTRAINED_CLASS, count=len(lost), examples=lost[:4])] if lost else []
    return found
