"""Data of your own that is already in memory: tensors, PyTorch Geometric, NetworkX, SciPy."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.datasets import splits
from unspool.datasets.dataset import Dataset
from unspool.datasets.features import identity, read_features
from unspool.datasets.indicator import is_indicator, read_indicator
from unspool.datasets.labels import encode, read_label_numbers, read_targets
from unspool.datasets.sample_weight import read_sample_weight
from unspool.datasets.split import Split
from unspool.datasets.tables import is_number
from unspool.graph.edges import listed_once, read_edge_index, read_weights, tell, unsaid_of
from unspool.graph.merge import merged
from unspool.graph.pyg import pyg_edges

Splitting = Split | Callable[[Dataset], Split | None] | None


def from_tensors(
    edge_index: Any,
    features: Any = None,
    labels: Any = None,
    *,
    nodes: int | None = None,
    edge_weight: Any = None,
    classes: Sequence[str] | None = None,
    names: Sequence[Hashable] | None = None,
    targets: Any = None,
    feature_names: Sequence[str] | None = None,
    directed: bool | None = None,
    sample_weight: Any = None,
    class_order: Sequence[str] | None = None,
    split: Splitting = None,
    name: str = "own data",
) -> Dataset:
    """Make a data set from tensors, arrays or lists.

    Args:
        edge_index: integers of shape (2, edges), sources above targets.
        features: numbers of shape (nodes, features), dense or sparse; without any, every node gets one of its own.
        labels: a class number or name per node; -1, ``None``, NaN or an empty name where a node has none. Of shape (nodes, labels),
            several labels per node: 1 for yes, 0 for no, NaN where it is not known.
        nodes: how many nodes there are, where neither features nor labels tell.
        edge_weight: one non-negative number per edge.
        classes: names of the classes, where labels are numbers; of the labels, where there are several per node.
        names: the nodes' own names, in order.
        targets: numbers to be predicted instead of classes, one or a row per node; NaN where a node has none.
        feature_names: the names of the features' columns.
        directed: True to keep edges as they are listed. Otherwise every edge of the graph runs both ways, and of two directions
            the larger weight counts; False says that this is meant, and when nothing is said a
            :class:`~unspool.graph.EdgeDirectionWarning` and a note tell where it changes something.
        sample_weight: how much each node counts in training, one number of at least 0 per node; NaN where a node has no label.
        class_order: the names of the classes from the lowest to the highest, where they have an order to be learnt.
        split: a :class:`Split` or a function from data sets to splits; else 60/20/20 % of each class (of the nodes that have
            targets), seed 0.
        name: what the set is called.

    Example:
        >>> import torch
        >>> edges = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
        >>> data = from_tensors(edges, torch.randn(6, 3), ["a", "a", "a", "b", "b", "b"], directed=False)
        >>> data.labels, data.classes
        (tensor([0, 0, 0, 1, 1, 1]), ('a', 'b'))
        >>> from_tensors(edges, torch.randn(5, 3))
        Traceback (most recent call last):
            ...
        ValueError: edge 4 names node 5, but node ids run from 0 to 4 (nodes=5)
    """
    known = _names(names)
    read = None if features is None else read_features(features, known)
    count = _count(read, labels, targets, known, nodes)
    index, count = read_edge_index(_writable(edge_index), count)
    weight = None if edge_weight is None else read_weights(_writable(edge_weight), index.shape[1])
    index, weight, notes = _merged(index, weight, count, directed)
    if read is None:
        read = identity(count)
        notes = (*notes, "no features given: every node has one of its own")
    if read.shape[0] != count:
        raise ValueError(f"{read.shape[0]} rows of features for {count} nodes; give one row per node")
    several = is_indicator(labels)
    if labels is None or several:
        numbers, named = torch.full((count,), -1), ()
    else:
        numbers, named = read_label_numbers(labels, count)
    aims = None if targets is None else read_targets(targets, count)
    if several:
        aims, named = read_indicator(labels, count, said=classes is not None, alone=targets is None)
    named = named if classes is None else tuple(str(c) for c in classes)
    columns = None if feature_names is None else tuple(str(c) for c in feature_names)
    if columns is not None and len(columns) != read.shape[1]:
        raise ValueError(f"{len(columns)} names for {read.shape[1]} features; give one per column")
    made = Dataset(
        name, index, read, numbers, named, None, weight, known, notes, targets=aims, feature_names=columns,
        directed=directed is True, sample_weight=None if sample_weight is None else read_sample_weight(sample_weight, count),
    )  # fmt: skip
    return _with_split(made if class_order is None else made.in_order(class_order), split)


def from_pyg(
    data: Any,
    *,
    weight_column: int | None = None,
    directed: bool | None = None,
    split: Splitting = None,
    name: str = "own data",
) -> Dataset:
    """Make a data set from a PyTorch Geometric ``Data`` object: ``edge_index``, ``x``, ``y`` and the masks, if any.

    Whole numbers in ``y`` are classes, fractions are numbers to predict. Where a mask has several columns (several splits), the first
    is used and the others are kept as ``fold-1``, .... Which way edges run: as in :func:`from_tensors`.

    Args:
        data: the object; a ``HeteroData`` is refused.
        weight_column: which column of ``edge_attr`` is the weight, from 0. Without it ``edge_weight`` is, or an ``edge_attr`` of one
            column; several columns are refused, since nobody could tell.
        directed: as in :func:`from_tensors`.
        split: as in :func:`from_tensors`; else the masks.
        name: what the set is called.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> data = SimpleNamespace(edge_index=torch.tensor([[0, 1], [1, 0]]), x=torch.randn(6, 2), num_nodes=6)
        >>> from_pyg(data).nodes
        6
    """
    index, weight = pyg_edges(data, weight_column)
    recorded = _pyg_masks(data)
    first = next(iter(recorded.values()), None)
    chosen = split if split is not None or first is None else Split.from_codes(first, next(iter(recorded)))
    y = getattr(data, "y", None)
    fractions = isinstance(y, Tensor) and y.is_floating_point() and bool((y.isfinite() & (y != y.floor())).any())
    made = from_tensors(
        index, getattr(data, "x", None), None if fractions else y, nodes=data.num_nodes, edge_weight=weight,
        targets=y if fractions else None, directed=directed, split=chosen, name=name,
    )  # fmt: skip
    attributes = getattr(data, "edge_attr", None)
    many = attributes.shape[1] if isinstance(attributes, Tensor) and attributes.ndim > 1 else 1
    note = (f"of the {many} columns of edge_attr, {_used(weight_column)}",) if many > 1 else ()
    return made._like(recorded=recorded, notes=(*made.notes, *note))  # pyright: ignore[reportPrivateUsage]


def _used(weight_column: int | None) -> str:
    return (
        "none is used, as there is an edge_weight"
        if weight_column is None
        else f"only {weight_column} is used, as the weight"
    )


def from_scipy(adjacency: Any, features: Any = None, labels: Any = None, **how: Any) -> Dataset:
    """Make a data set from a SciPy adjacency matrix W, whose entry (i, j) lets node i see node j.

    Keyword arguments are those of :func:`from_tensors`.

    Example:
        >>> import numpy, scipy.sparse
        >>> from_scipy(scipy.sparse.csr_array(numpy.ones((3, 3)) - numpy.eye(3))).graph.edges
        3
    """
    if not hasattr(adjacency, "tocoo"):
        raise TypeError(
            f"adjacency is a {type(adjacency).__name__}: expected a SciPy sparse matrix; wrap it in csr_array"
        )
    entries = adjacency.tocoo()
    if entries.shape[0] != entries.shape[1]:
        raise ValueError(f"the adjacency matrix has shape {entries.shape}: it must be square")
    index = np.stack([entries.col, entries.row]).astype(np.int64)
    weight = None if (entries.data == 1).all() else entries.data.astype(np.float64)
    return from_tensors(index, features, labels, nodes=entries.shape[0], edge_weight=weight, **how)


def from_networkx(
    network: Any,
    features: Sequence[str] | Any = None,
    label: str | None = None,
    *,
    weight: str = "weight",
    directed: bool | None = None,
    split: Splitting = None,
    name: str = "own data",
) -> Dataset:
    """Make a data set from a NetworkX graph; nodes keep their order, and their names stand in ``names``.

    Args:
        network: the graph. One that is undirected stays so; the edges of a ``DiGraph`` run both ways too unless ``directed`` says
            otherwise.
        features: names of node attributes that hold numbers, or a matrix with one row per node in the graph's order.
        label: the node attribute that holds the class; nodes without it have no label.
        weight: the edge attribute that holds the weight; edges without it weigh 1.
        directed: as in :func:`from_tensors`.
        split: as in :func:`from_tensors`.
        name: what the set is called.

    Example:
        >>> import networkx
        >>> club = networkx.karate_club_graph()
        >>> from_networkx(club, label="club").classes
        ('Mr. Hi', 'Officer')
    """
    names = tuple(network.nodes())
    place = {node: i for i, node in enumerate(names)}
    ends = [(place[u], place[v]) for u, v in network.edges()]
    index = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    weights = [data.get(weight, 1.0) for _, _, data in network.edges(data=True)]
    attributes = [network.nodes[node] for node in names]
    by_attribute = isinstance(features, list | tuple) and all(isinstance(f, str) for f in features)
    x = attribute_matrix(attributes, names, list(features)) if by_attribute else features
    numbers, classes = None, None
    if label is not None:
        numbers, classes = attribute_labels(attributes, names, label)
    return from_tensors(
        index, x, numbers, nodes=len(names), edge_weight=None if all(w == 1 for w in weights) else weights,
        classes=classes, names=names, directed=directed if network.is_directed() else False, split=split, name=name,
    )  # fmt: skip


def attribute_matrix(attributes: Sequence[Any], names: Sequence[Hashable], columns: Sequence[str]) -> Any:
    """Numbers out of node attributes, one column per attribute."""
    rows: list[list[float]] = []
    for node, held in zip(names, attributes, strict=True):
        for column in columns:
            try:
                if isinstance(held[column], str) and not is_number(held[column]):
                    raise ValueError(held[column])
                float(held[column])
            except KeyError:
                raise ValueError(f"node {node!r} has no attribute {column!r}; leave it out of features=") from None
            except (TypeError, ValueError):
                raise ValueError(
                    f"attribute {column!r} of node {node!r} is {held[column]!r}, no number; encode it or leave it out"
                ) from None
        rows.append([float(held[column]) for column in columns])
    return np.array(rows, dtype=np.float64)


def attribute_labels(attributes: Sequence[Any], names: Sequence[Hashable], column: str) -> Any:
    """Classes out of a node attribute, which at least one node must have."""
    if not any(column in held for held in attributes):
        have = sorted({str(key) for held in attributes for key in held})
        raise ValueError(f"no node has an attribute {column!r}; there are {', '.join(have) if have else 'none'}")
    texts = [None if held.get(column) is None else str(held[column]) for held in attributes]
    return encode(texts, lambda row: f"attribute {column!r} of node {names[row]!r}")


def _writable(given: Any) -> Any:
    """Arrays that were opened read-only (memory maps) are copied, as torch warns about them; edges on a GPU come to the data."""
    if isinstance(given, Tensor):
        return given.cpu()
    return given.copy() if isinstance(given, np.ndarray) and not given.flags.writeable else given


def _with_split(made: Dataset, split: Splitting) -> Dataset:
    if split is not None:
        return made.with_split(split)
    if made.targets is not None:
        known = int((made.strata >= 0).sum())
        if known < 5:
            raise ValueError(f"{made.name}: {known} nodes have targets, too few to train, choose and test on")
        return made.with_split(lambda dataset: splits.random(dataset.strata, seed=0))
    if int(made.labels.max()) < 0:
        return made
    counts = np.bincount(made.labels[made.labels >= 0].numpy(), minlength=len(made.classes))
    for number, count in enumerate(counts):
        if 0 < count < 3:
            examples = "one example" if count == 1 else "two examples"
            raise ValueError(
                f"class {made.classes[number]!r} has only {examples}, so train, valid and test cannot each have one; "
                "merge it with another class, remove its labels, or pass a split of your own"
            )
    return made.with_split(lambda dataset: splits.random(dataset.labels, seed=0))


def _names(names: Sequence[Hashable] | None) -> tuple[Hashable, ...] | None:
    if names is None:
        return None
    seen: dict[Hashable, int] = {}
    for row, node in enumerate(names):
        if node in seen:
            raise ValueError(f"the node name {node!r} is in rows {seen[node]} and {row}; every node needs its own")
        seen[node] = row
    return tuple(names)


def _count(features: Any, labels: Any, targets: Any, names: Sequence[Any] | None, nodes: int | None) -> int | None:
    """How many nodes there are, from the first thing that tells."""
    if nodes is not None:
        return int(nodes)
    if features is not None:
        return int(features.shape[0])
    told: Any = next((given for given in (labels, targets, names) if given is not None), None)
    return None if told is None else int(told.shape[0]) if hasattr(told, "shape") else len(told)


def _merged(
    index: Tensor, weight: Tensor | None, nodes: int, directed: bool | None
) -> tuple[Tensor, Tensor | None, tuple[str, ...]]:
    """Edges as they are listed, without repeats and in canonical order, and what the owner should know."""
    once = listed_once(index, weight, nodes)
    unsaid = unsaid_of(merged(once.edges, once.weight, nodes, directed=False)) if directed is None else None
    tell((), unsaid)  # repeats are told by a note alone
    notes = (
        *once.notes,
        *(() if unsaid is None else (unsaid,)),
        *(("edges keep their direction",) if directed else ()),
    )
    return once.edges, once.weight, notes


def _pyg_masks(data: Any) -> dict[str, Tensor]:
    masks = [getattr(data, f"{part}_mask", None) for part in ("train", "val", "test")]
    if any(mask is None for mask in masks):
        return {}
    columns = [torch.as_tensor(mask).cpu().reshape(data.num_nodes, -1).bool() for mask in masks]
    if any(
        bool((a & b).any()) for a, b in ((columns[0], columns[1]), (columns[0], columns[2]), (columns[1], columns[2]))
    ):
        raise ValueError("the masks of data overlap; every node belongs to one part at most")
    codes = sum(code * column.to(torch.uint8) for code, column in enumerate(columns, start=1))
    table = torch.as_tensor(codes)
    if table.shape[1] == 1:
        return {"masks": table[:, 0]}
    return {f"fold-{number}": table[:, number].contiguous() for number in range(table.shape[1])}
