"""What a data set measures, beside what the paper prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unspool.datasets.components import distinct_edges

if TYPE_CHECKING:
    import os

    from unspool.datasets.dataset import Dataset

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Statistics:
    """Counts of a data set.

    Attributes:
        nodes: number of nodes.
        edges: distinct undirected edges: each pair of neighbours once, self-loops left out.
        features: columns of X.
        classes: number of classes.
        isolated: nodes without a neighbour; None where it is not known, as of hops on the disk.
        zero_rows: nodes whose features are all zero; None likewise.
        density: share of the entries of X that are not zero; nan likewise.
        homophily: share of the edges between labelled nodes that join nodes of one class; nan without any.

    Example:
        >>> from unspool import datasets
        >>> datasets.load("citeseer").statistics()
        Statistics(nodes=3327, edges=4552, features=3703, classes=6, isolated=48, zero_rows=15, density=0.0085..., homophily=0.735...)
    """

    nodes: int
    edges: int
    features: int
    classes: int
    isolated: int | None
    zero_rows: int | None
    density: float
    homophily: float


def measure(edge_index: Array, features: Any, labels: Array, classes: int) -> Statistics:
    """The statistics of a data set given as arrays (features: an array or a SciPy ``csr_array``)."""
    nodes = labels.size
    edges = distinct_edges(edge_index, nodes)
    dense = isinstance(features, np.ndarray)
    filled = np.count_nonzero(features, axis=1) if dense else np.diff(features.indptr)
    ends = labels[edges]
    known = (ends >= 0).all(axis=0)
    alike = (ends[0] == ends[1])[known]
    return Statistics(
        nodes=nodes,
        edges=int(edges.shape[1]),
        features=int(features.shape[1]),
        classes=classes,
        isolated=nodes - int(np.unique(edges).size),
        zero_rows=int((filled == 0).sum()),
        density=float(filled.sum()) / max(1, features.shape[0] * features.shape[1]),
        homophily=float(alike.mean()) if alike.size else float("nan"),
    )


@dataclass(frozen=True)
class Row:
    """One line of :func:`table3`: what is printed, what the files hold, and why they differ.

    ``printed`` and ``counted`` hold nodes, edges, features and classes; ``counted`` is ``None`` for a set whose files
    are not here, and its features are ``None`` where only the graph is.
    """

    name: str
    printed: tuple[int, int, int, int]
    counted: tuple[int, int, int | None, int] | None
    remark: str


class Table3(tuple[Row, ...]):
    """The rows of :func:`table3`; prints as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        head = ("data set", "printed: nodes / edges / features / classes", "counted", "remark")
        cells = [head, *((row.name, _slashes(row.printed), _slashes(row.counted), row.remark) for row in self)]
        widths = [max(len(line[column]) for line in cells) for column in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[3]]).rstrip()
            for line in cells
        )


#: Table 3 of the paper, as printed: (nodes, edges, features, classes), and why our counts differ.
PRINTED: dict[str, tuple[tuple[int, int, int, int], str]] = {
    "Cora": ((2708, 5429, 1433, 7), "printed edges count repeated links"),
    "CiteSeer": ((3327, 4732, 3703, 6), "printed edges count repeated links and self-loops"),
    "PubMed": ((19717, 44338, 500, 3), "printed edges count repeated links and self-loops"),
    "CS": ((18333, 81894, 6805, 15), ""),
    "Physics": ((34493, 247962, 8415, 5), ""),
    "Photo": ((7487, 119043, 745, 8), "printed is the largest component; the file has 7650 nodes and 119081 edges"),
    "ArXiv": ((169343, 1166243, 128, 40), "printed edges are directed citations; counted is every pair once"),
}


def table3(root: str | os.PathLike[str] | None = None, cache: str | os.PathLike[str] | None = None) -> Table3:
    """The paper's Table 3 beside counts of the files that are here (erratum 12); sets that are absent stay blank.

    Photo is counted on its largest component, as printed.

    Args:
        root: the data root, as in :func:`unspool.datasets.load`.
        cache: the folder for processed sets, as there.

    Example:
        >>> from unspool import datasets
        >>> citeseer = datasets.table3(root="/nowhere", cache="/nowhere")[1]
        >>> citeseer.printed, citeseer.counted
        ((3327, 4732, 3703, 6), (3327, 4552, 3703, 6))
    """
    from unspool.datasets.named_sets import load

    def found(name: str) -> Dataset | None:
        try:
            return load(name, root, cache=cache)
        except FileNotFoundError:
            return None

    return Table3(_row(name, found) for name in PRINTED)


def _row(name: str, found: Callable[[str], Dataset | None]) -> Row:
    printed, remark = PRINTED[name]
    data = found(name.lower())
    bare = data is None and name == "ArXiv"
    if bare:
        data, remark = found("arxiv-graph"), f"graph only; {remark}"
    if data is None:
        return Row(name, printed, None, "not here")
    count = (data.largest_component() if name == "Photo" else data).statistics()
    columns = None if bare else count.features
    return Row(name, printed, (count.nodes, count.edges, columns, count.classes), remark)


def _slashes(numbers: tuple[int | None, ...] | None) -> str:
    return "-" if numbers is None else " / ".join("-" if number is None else str(number) for number in numbers)
