"""A data set: a graph, features, labels, a split, and a list of what was done to them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.datasets.components import largest_component
from unspool.datasets.features import Features, moved, row_normalise, take_rows, to_numpy
from unspool.datasets.fingerprint import fingerprint
from unspool.datasets.split import PARTS, Split
from unspool.datasets.statistics import Statistics, measure
from unspool.errors import InputError
from unspool.graph import Graph
from unspool.notebook import facts
from unspool.ops import SparseFeatures
from unspool.ops.stored_hops import StoredHops


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A graph with features, labels and a split; immutable, and open about what was done to it.

    Get one from :func:`unspool.datasets.load`, the generators, or your own files (:func:`unspool.datasets.from_files`
    and its siblings).

    Attributes:
        name: the set's name.
        edge_index: the edges as they came, without repeats, sources above targets: int64 of shape (2, edges).
        features: X of shape (nodes, features): a tensor, or ``SparseFeatures`` where few entries are not zero; or ``StoredHops``, Aᵏ X on
            the disk, and then there are no edges.
        labels: a class number per node, int64; -1 where a node has no label.
        classes: the names of the classes.
        split: which nodes train, choose and test; ``None`` where there is none.
        edge_weight: one number per edge, or ``None``.
        names: the nodes' own names in order, where they have any.
        notes: what was done on the way here.
        recorded: splits that came with the data, as one code per node (see :func:`unspool.datasets.splits.recorded`).
        targets: numbers to be predicted, shape (nodes, numbers), NaN where a node has none; ``None`` where there are none.
        feature_names: the names of the features' columns, where they have any.
        directed: whether edges run in the listed direction only; else every edge counts both ways.
        categories: columns of the file that became one feature per category, with the categories of each.
        sample_weight: how much each node counts in training, float32, NaN where it is not said; ``None`` where all count the same.
        ordered: whether the classes are listed from the lowest to the highest (:meth:`in_order`).

    Where nodes have several labels each, ``classes`` are their names and ``targets`` hold 1, 0 or NaN for each
    (:attr:`multilabel`).

    Example:
        >>> from unspool import datasets
        >>> data = datasets.load("citeseer")
        >>> data
        CiteSeer: 3327 nodes, 4552 edges, 3703 features (0.85 % not zero, sparse), 6 classes
          split public: 120 train, 500 valid, 1000 test (...)
          ...
        >>> data.graph
        Graph(nodes=3327, edges=4552, undirected, symmetric normalisation, float32, cpu)
        >>> data.row_normalised().notes[-1]
        'features row-normalised'
    """

    name: str
    edge_index: Tensor
    features: Features
    labels: Tensor
    classes: tuple[str, ...]
    split: Split | None = None
    edge_weight: Tensor | None = None
    names: tuple[Hashable, ...] | None = None
    notes: tuple[str, ...] = ()
    recorded: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    targets: Tensor | None = None
    feature_names: tuple[str, ...] | None = None
    directed: bool = False
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    sample_weight: Tensor | None = None
    ordered: bool = False

    def __post_init__(self) -> None:
        nodes = self.nodes
        if self.labels.shape != (nodes,):
            raise ValueError(
                f"{self.name}: {self.labels.numel()} labels for {nodes} rows of features; give one per node"
            )
        if self.names is not None and len(self.names) != nodes:
            raise ValueError(f"{self.name}: {len(self.names)} node names for {nodes} nodes; give one per node")
        if self.split is not None and self.split.nodes != nodes:
            raise ValueError(f"{self.name}: the split is one of {self.split.nodes} nodes, the graph has {nodes}")
        if self.targets is not None and self.targets.shape[0] != nodes:
            raise ValueError(
                f"{self.name}: {self.targets.shape[0]} rows of targets for {nodes} rows of features; give one per node"
            )
        if self.sample_weight is not None and self.sample_weight.shape != (nodes,):
            raise ValueError(
                f"{self.name}: weights of shape {tuple(self.sample_weight.shape)} for {nodes} nodes; give one per node"
            )
        if nodes and int(self.labels.max()) >= len(self.classes):
            raise ValueError(
                f"{self.name}: label {int(self.labels.max())} occurs, but there are names for "
                f"{len(self.classes)} class{'' if len(self.classes) == 1 else 'es'}"
            )

    # -- asking ----------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.features.shape[0])

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self.features.device

    @property
    def multilabel(self) -> bool:
        """Whether nodes have several labels each, yes or no, in place of one class.

        Example:
            >>> from unspool import datasets
            >>> data = datasets.from_tensors([[0, 1], [1, 0]], labels=[[1, 0, 1], [0, 0, 1]] * 3)
            >>> data.multilabel, data.classes
            (True, ('0', '1', '2'))
        """
        if self.targets is None or not self.classes or len(self.classes) != self.targets.shape[1]:
            return False
        return bool((self.labels < 0).all())

    @functools.cached_property
    def graph(self) -> Graph:
        """The graph with self-loops and symmetric normalisation, every edge running both ways unless ``directed``; made when first
        asked for."""
        with torch.inference_mode(False):  # what is remembered must be of use in training too
            made = Graph.from_edges(self.edge_index, self.nodes, self.edge_weight, directed=self.directed)
        return made if self.names is None else replace(made, names=self.names)

    @functools.cached_property
    def hash(self) -> str:
        """32 hexadecimal digits that name the content (edges, features, labels, names), whatever the split."""
        if isinstance(self.features, StoredHops):
            return _stored_hash(self, self.features)
        weight = None if self.edge_weight is None else self.edge_weight.cpu().double().numpy()
        names = None if self.names is None else [str(name) for name in self.names]
        return content_hash(
            self.edge_index.cpu().numpy(),
            to_numpy(self.features),
            self.labels.cpu().numpy(),
            self.classes,
            weight,
            names,
            None if self.targets is None else self.targets.cpu().numpy(),
            self.directed,
            None if self.sample_weight is None else self.sample_weight.cpu().numpy(),
        )

    @property
    def strata(self) -> Tensor:
        """What random splits keep the mix of: the class of every node, or 0 where it has targets (of several labels, one that is
        known); -1 where it has neither.

        Example:
            >>> from unspool import datasets
            >>> datasets.from_tensors([[0, 1], [1, 0]], targets=[1.0, 2.0, None, 4.0, 5.0, 6.0]).strata
            tensor([ 0,  0, -1,  0,  0,  0])
        """
        if self.targets is None:
            return self.labels
        known = torch.isfinite(self.targets)
        return torch.where(known.any(1) if self.multilabel else known.all(1), 0, -1)

    def statistics(self) -> Statistics:
        """Count nodes, distinct edges, features, classes, isolated nodes and empty rows; measure homophily.

        Example:
            >>> from unspool import datasets
            >>> datasets.load("citeseer").statistics().isolated
            48
        """
        return self._statistics

    @functools.cached_property
    def _statistics(self) -> Statistics:
        if isinstance(self.features, StoredHops):
            seen, (nodes, features), unknown = self.features.graph, self.features.shape, float("nan")
            return Statistics(nodes, int(seen["edges"]), features, len(self.classes), None, None, unknown, unknown)
        edges, labels = self.edge_index.cpu().numpy(), self.labels.cpu().numpy()
        return measure(edges, to_numpy(self.features), labels, len(self.classes))

    # -- changing --------------------------------------------------------------------------------------------------

    def with_split(self, split: Split | Callable[[Dataset], Split | None]) -> Dataset:
        """The same data under another split: a :class:`Split`, or a function from data sets to splits (or to None, for none).

        Example:
            >>> from unspool import datasets
            >>> data = datasets.load("citeseer")
            >>> data.with_split(lambda d: datasets.splits.per_class(d.labels, seed=7)).split.train.shape
            torch.Size([120])
        """
        made = split if isinstance(split, Split) else split(self)
        return self._like(split=None if made is None else made.to(self.device))

    def in_order(self, classes: Sequence[str]) -> Dataset:
        """The same data with its classes numbered from the lowest to the highest, which ordered classes are learnt by.

        Args:
            classes: all their names, the lowest first.

        Example:
            >>> from unspool import datasets
            >>> data = datasets.from_tensors([[0, 1], [1, 0]], labels=["low", "high", "mid"] * 3).in_order(["low", "mid", "high"])
            >>> data.classes, data.labels[:3]
            (('low', 'mid', 'high'), tensor([0, 2, 1]))
        """
        wanted = tuple(str(name) for name in classes)
        if sorted(wanted) != sorted(self.classes) or self.targets is not None:
            there = ", ".join(self.classes) if self.classes and self.targets is None else "none"
            raise InputError("class_order", ", ".join(wanted), f"every class once, and {self.name} has {there}")
        place = torch.tensor([*(wanted.index(name) for name in self.classes), -1], device=self.labels.device)
        return replace(self, labels=place[self.labels], classes=wanted, ordered=True)

    def row_normalised(self) -> Dataset:
        """The same data with rows of features that sum to one (see :func:`~unspool.datasets.features.row_normalise`).

        Example:
            >>> from unspool import datasets
            >>> data = datasets.load("citeseer").row_normalised()
            >>> round(float(data.features.to_dense()[0].sum()), 4)
            1.0
        """
        changed = replace(self, features=row_normalise(self.features), notes=(*self.notes, "features row-normalised"))
        return _remember(changed, graph=self.__dict__.get("graph"))

    def largest_component(self) -> Dataset:
        """The largest connected component alone; nodes keep their old ids as names, splits lose the nodes that go.

        Example:
            >>> from unspool import datasets
            >>> datasets.load("citeseer").largest_component()
            CiteSeer: 2120 nodes, 3679 edges, ...
        """
        kept = largest_component(self.edge_index.cpu().numpy(), self.nodes)
        if kept.size == self.nodes:
            return self
        place = np.full(self.nodes, -1)
        place[kept] = np.arange(kept.size)
        inside = torch.as_tensor(place, device=self.device)
        ends = inside[self.edge_index]
        alive = (ends >= 0).all(dim=0)
        rows = torch.as_tensor(kept, device=self.device)
        names = tuple(str(i) for i in kept) if self.names is None else tuple(self.names[i] for i in kept)
        recorded = {name: codes[rows.cpu()] for name, codes in self.recorded.items()}
        note = f"largest component: {kept.size} of {self.nodes} nodes"
        return Dataset(
            name=self.name,
            edge_index=ends[:, alive],
            features=take_rows(self.features, kept),
            labels=self.labels[rows],
            classes=self.classes,
            split=None if self.split is None else _restricted(self.split, inside, kept.size),
            edge_weight=None if self.edge_weight is None else self.edge_weight[alive],
            names=names,
            notes=(*self.notes, note),
            recorded={name: codes for name, codes in recorded.items() if set(codes.tolist()) >= {1, 2, 3}},
            targets=None if self.targets is None else self.targets[rows],
            feature_names=self.feature_names,
            directed=self.directed,
            categories=self.categories,
            sample_weight=None if self.sample_weight is None else self.sample_weight[rows],
            ordered=self.ordered,
        )

    def to(self, device: torch.device | str) -> Dataset:
        """The same data on another device.

        Example:
            >>> from unspool import datasets
            >>> datasets.grid(5, 5).to("cpu").device
            device(type='cpu')
        """
        where = torch.device(device)
        graph = self.__dict__.get("graph")
        changed = self._like(
            edge_index=self.edge_index if isinstance(self.features, StoredHops) else self.edge_index.to(where),
            features=moved(self.features, where),
            labels=self.labels.to(where),
            split=None if self.split is None else self.split.to(where),
            edge_weight=None if self.edge_weight is None else self.edge_weight.to(where),
            targets=None if self.targets is None else self.targets.to(where),
            sample_weight=None if self.sample_weight is None else self.sample_weight.to(where),
        )
        changed.__dict__.pop("graph", None)
        return _remember(changed, graph=None if graph is None else graph.to(where))

    def _like(self, **changes: Any) -> Dataset:
        """A copy of the same content: what was computed from it is still true."""
        return _remember(replace(self, **changes), graph=self.__dict__.get("graph"), hash=self.__dict__.get("hash"))

    def _repr_html_(self) -> str:
        first, *rest = repr(self).split("\n  ")
        return facts(self.name, [("size", first.removeprefix(f"{self.name}: ")), ("notes", "; ".join(rest))])

    def __repr__(self) -> str:
        count = self.statistics()
        density = f" ({count.density:.2%} not zero, sparse)".replace("%", " %")
        kind = density if isinstance(self.features, SparseFeatures) else ""
        if isinstance(self.features, StoredHops):
            kind = f", hops 0 to {self.features.depth} on the disk"
        if self.targets is None:
            aim = f"{count.classes} classes{' in order' if self.ordered else ''}"
        elif self.multilabel:
            aim = f"{len(self.classes)} labels, yes or no each"
        else:
            aim = f"{self.targets.shape[1]} number{'s'[: self.targets.shape[1] > 1]} to predict"
        lines = [f"{self.name}: {count.nodes} nodes, {count.edges} edges, {count.features} features{kind}, {aim}"]
        if self.split is not None:
            sizes = ", ".join(f"{getattr(self.split, part).numel()} {part}" for part in PARTS)
            lines.append(f"split {self.split.name}: {sizes} ({self.split.hash[:8]})")
        unlabelled = int((self.labels < 0).sum()) if self.targets is None else int((self.strata < 0).sum())
        if unlabelled and self.classes:
            lines.append(f"{unlabelled} nodes without a label")
        elif unlabelled and self.targets is not None:
            what = "the number" if self.targets.shape[1] == 1 else "all of the numbers"
            lines.append(f"{unlabelled} nodes without {what} to predict, which are not trained on")
        return "\n  ".join([*lines, *self.notes])


def content_hash(
    edges: Any,
    features: Any,
    labels: Any,
    classes: Any,
    weight: Any = None,
    names: Any = None,
    targets: Any = None,
    directed: bool = False,
    sample_weight: Any = None,
) -> str:
    """The fingerprint of a data set's content, from arrays."""
    if isinstance(features, np.ndarray):
        parts = ["dense", features.astype(np.float32, copy=False)]
    else:
        parts = [
            "sparse",
            features.shape,
            features.indptr,
            features.indices,
            features.data.astype(np.float32, copy=False),
        ]
    extra = () if targets is None else (targets.astype(np.float32, copy=False),)
    way = ("directed",) if directed else ()
    counted = () if sample_weight is None else ("weights of nodes", sample_weight.astype(np.float32, copy=False))
    return fingerprint("data set", edges, parts, labels, classes, weight, names, *extra, *way, *counted)


def _stored_hash(data: Dataset, features: StoredHops) -> str:
    """The fingerprint of data whose hops are on the disk: of the checksums of the folder, and of what is known of the nodes."""
    known = [data.labels, data.targets, data.sample_weight]
    arrays = [None if part is None else part.cpu().numpy() for part in known]
    return fingerprint("stored hops", features.checksum, *arrays, data.classes)


def _remember(dataset: Dataset, **known: Any) -> Dataset:
    """Fill cached properties whose values are known."""
    dataset.__dict__.update({name: value for name, value in known.items() if value is not None})
    return dataset


def _restricted(split: Split, place: Tensor, nodes: int) -> Split:
    """The split of the nodes that stay, under their new ids."""
    parts = [place[getattr(split, part)] for part in PARTS]
    return Split(*(part[part >= 0] for part in parts), nodes=nodes, name=f"{split.name}, restricted", seed=split.seed)
