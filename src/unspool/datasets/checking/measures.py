"""What is measured of graphs, labels and splits."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from unspool.datasets.components import distinct_edges
from unspool.datasets.features import to_numpy

if TYPE_CHECKING:
    from unspool.datasets.dataset import Dataset

Array = np.ndarray[Any, Any]

#: Rows of fewer whole numbers than this may be equal by chance.
TELLING = 8


@dataclass(frozen=True)
class GraphFacts:
    """What is known of a graph.

    Attributes:
        nodes: number of nodes.
        edges: pairs of different nodes that are joined, whichever way.
        listed: edges as they are listed, without repeats.
        one_way: those of them that are not listed the other way round, too.
        directed: whether they keep their direction.
        loops: edges from a node to itself.
        components: connected components; a node without edges is one.
        largest: nodes in the largest of them.
        isolated: nodes without an edge to another.
        weighted: whether edges have weights.
    """

    nodes: int
    edges: int
    listed: int
    one_way: int
    directed: bool
    loops: int
    components: int
    largest: int
    isolated: int
    weighted: bool


@dataclass(frozen=True)
class LabelFacts:
    """What is known of classes.

    Attributes:
        classes: their names.
        counts: nodes in each.
        missing: nodes without a label.
        majority: the share of the largest class.
        homophily: the share of the edges between labelled nodes that join two of one class; NaN without any.
        chance: what that share would be if labels had been dealt to the same ends at random.
    """

    classes: tuple[str, ...]
    counts: tuple[int, ...]
    missing: int
    majority: float
    homophily: float
    chance: float


@dataclass(frozen=True)
class TargetFacts:
    """What is known of a number to predict: how many nodes lack it, its mean, spread and range."""

    name: str
    missing: int
    mean: float
    deviation: float
    low: float
    high: float


@dataclass(frozen=True)
class SplitFacts:
    """Sizes of the parts, and how many test nodes have exactly the features of a training node, where that is hardly chance."""

    name: str
    train: int
    valid: int
    test: int
    shared_rows: int


def graph_facts(data: Dataset) -> GraphFacts:
    """Count what a graph has.

    Example:
        >>> from unspool import datasets
        >>> found = graph_facts(datasets.from_tensors([[0, 1, 3], [1, 0, 3]], nodes=4))
        >>> found.edges, found.one_way, found.loops, found.components, found.isolated
        (1, 0, 1, 3, 2)
    """
    index, nodes = data.edge_index.cpu().numpy(), data.nodes
    pairs = distinct_edges(index, nodes)
    off = index[:, index[0] != index[1]]
    back = np.isin(off[1] * nodes + off[0], off[0] * nodes + off[1])
    matrix = scipy.sparse.coo_array((np.ones(pairs.shape[1], np.int8), (pairs[0], pairs[1])), shape=(nodes, nodes))
    many, of_node = scipy.sparse.csgraph.connected_components(matrix, directed=False)
    return GraphFacts(
        nodes, int(pairs.shape[1]), int(index.shape[1]), int((~back).sum()), data.directed, int(index.shape[1] - off.shape[1]), int(many),
        int(np.bincount(of_node).max()), nodes - int(np.unique(pairs).size), data.edge_weight is not None,
    )  # fmt: skip


def label_facts(data: Dataset) -> LabelFacts | None:
    r"""Count classes, and compare neighbours with what chance would give; None where there are no labels.

    The chance level is :math:`\sum_c (d_c / \sum_c d_c)^2` with :math:`d_c` the ends of edges in class c.

    Example:
        >>> from unspool import datasets
        >>> found = label_facts(datasets.load("citeseer"))
        >>> round(found.majority, 3), round(found.homophily, 3), round(found.chance, 3)
        (0.211, 0.736, 0.197)
    """
    labels = data.labels.cpu().numpy()
    known = labels[labels >= 0]
    if not known.size:
        return None
    counts = np.bincount(known, minlength=len(data.classes))
    ends = labels[distinct_edges(data.edge_index.cpu().numpy(), data.nodes)]
    ends = ends[:, (ends >= 0).all(axis=0)]
    alike = float((ends[0] == ends[1]).mean()) if ends.size else float("nan")
    shares = np.bincount(ends.ravel(), minlength=len(data.classes)) / max(ends.size, 1)
    chance = float((shares**2).sum()) if ends.size else float("nan")
    counted = tuple(int(count) for count in counts)
    return LabelFacts(data.classes, counted, int((labels < 0).sum()), float(counts.max() / known.size), alike, chance)


def target_facts(data: Dataset, names: tuple[str, ...]) -> tuple[TargetFacts, ...]:
    """Describe the numbers to predict."""
    if data.targets is None:
        return ()
    found = list[TargetFacts]()
    for place, values in enumerate(data.targets.cpu().double().numpy().T):
        held = values[np.isfinite(values)]
        name = names[place] if place < len(names) else str(place)
        numbers = (held.mean(), held.std(), held.min(), held.max()) if held.size else (float("nan"),) * 4
        found.append(TargetFacts(name, int(values.size - held.size), *(float(number) for number in numbers)))
    return tuple(found)


def split_facts(data: Dataset) -> SplitFacts | None:
    """Count the parts, and rows of features that are in both training and test set.

    Example:
        >>> from unspool import datasets
        >>> split_facts(datasets.load("citeseer"))
        SplitFacts(name='public', train=120, valid=500, test=1000, shared_rows=1)
    """
    split = data.split
    if split is None:
        return None
    marks = _row_marks(to_numpy(data.features))
    train, test = split.train.cpu().numpy(), split.test.cpu().numpy()
    seen = {marks[node] for node in train} - {None}
    shared = sum(marks[node] in seen for node in test)
    return SplitFacts(split.name, train.size, int(split.valid.numel()), test.size, shared)


def _row_marks(features: Any) -> list[bytes | None]:
    """Bytes that are equal where rows are; None of rows that may well be equal by chance: a few whole numbers, or nothing."""
    rows = scipy.sparse.csr_array(features)
    rows.sort_indices()
    found = list[bytes | None]()
    for a, b in pairwise(rows.indptr):
        held = rows.data[a:b]
        telling = b - a >= TELLING or bool((held != np.floor(held)).any())
        found.append(rows.indices[a:b].tobytes() + held.tobytes() if telling else None)
    return found
