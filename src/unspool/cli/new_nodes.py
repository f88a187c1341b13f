"""``unspool predict --new-nodes``: nodes that the graph did not have, joined to it by edges of their own."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unspool.cli.data_options import DataOptions
from unspool.cli.terminal import echo
from unspool.cli.training_data import columns_in_training
from unspool.datasets import Dataset
from unspool.datasets.edge_files import EdgeFile, read_edges
from unspool.datasets.features import as_features, row_normalise_like
from unspool.datasets.node_files import Columns, read_features
from unspool.datasets.tables import check_file
from unspool.deploy import NodePredictions, predict_new_nodes
from unspool.deploy.new_nodes import check_knows_edges
from unspool.errors import DataError, IncompatibleError, InputError, mention
from unspool.graph import NewEdges
from unspool.train import TaskKind


@dataclass(eq=False)
class NewNodes:
    """New nodes as their files have them, and how much of the graph their predictions took."""

    names: list[str]
    features: Any
    edges: NewEdges
    notes: tuple[str, ...] = ()
    found: list[NodePredictions] = field(default_factory=list[NodePredictions])

    @staticmethod
    def read(nodes: Path, edges: Path | None, card: Mapping[str, Any], data: Dataset, given: DataOptions) -> NewNodes:
        """From a table or array of features and a list of edges; columns are those of the training, by name.

        Args:
            nodes: features, one row a new node; without ids they are numbered behind the old ones.
            edges: between new and old nodes, or among new ones.
            card: of the trained model.
            data: the old nodes.
            given: what was said about the data.
        """
        if (card.get("task") or {}).get("kind") == TaskKind.RANKING.value:
            raise IncompatibleError(
                f"ranks compare all nodes with one another, so new nodes have none; leave {mention('new_nodes')} out"
            )
        check_knows_edges(data.features)
        check_file(nodes)
        source = columns_in_training(given, card, nodes)
        facts: Mapping[str, Any] = card.get("data") or {}
        columns = Columns(
            source.id_column,
            list(source.feature_columns) or None,
            header=source.header,
            one_hot=facts.get("categories") or {},
        )
        held = read_features(nodes, columns, answers=False)
        width = int(held.matrix.shape[1])
        if width != data.features.shape[1]:
            raise DataError(
                str(nodes), f"it has {width} features a node, and the model was trained on {data.features.shape[1]}",
                f"give the same columns ({mention('feature_columns')} names them)",
            )  # fmt: skip
        features = as_features(held.matrix)
        if "row_normalised" in (facts.get("transforms") or ()):
            features = row_normalise_like(features, data.features)
        count = int(held.matrix.shape[0])
        names = [str(data.nodes + i) for i in range(count)] if held.ids is None else held.ids
        known = _numbered(data, names, nodes)
        return NewNodes(names, features, _read_joins(edges, source, known, data, nodes), held.notes)

    @property
    def ids(self) -> Tensor:
        """Which old nodes they are: none."""
        return torch.empty(0, dtype=torch.int64)

    def say(self, model: Any, x: Any, graph: Any) -> Tensor:
        """What a model says of them."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.found.append(predict_new_nodes(model, x, graph, self.features, self.edges))
        for sentence in {str(one.message) for one in told} if len(self.found) == 1 else ():
            echo(f"note: {sentence}", err=True)
        return self.found[-1].output

    def record(self) -> dict[str, int]:
        """How much of the graph was read, for programs."""
        return {
            "new_nodes": len(self.names),
            "nodes_read": max(f.nodes_read for f in self.found),
            "edges_read": max(f.edges_read for f in self.found),
        }

    def sentence(self, nodes: int) -> str:
        """The same for people."""
        hops, read = self.found[0].hops, max(f.nodes_read for f in self.found) - len(self.names)
        if hops is None:
            return f"read all {nodes} old nodes: the model looks at the whole graph at once"
        return f"read {read} of {nodes} old nodes: all that lie within {hops} hop{'s'[: hops != 1]} of the new ones"


def _numbered(data: Dataset, names: list[str], nodes: Path) -> dict[str, int]:
    """The number of every node by its name, new ones behind the old."""
    old = map(str, range(data.nodes)) if data.names is None else map(str, data.names)
    known = {name: place for place, name in enumerate(old)}
    twice = next((name for name in names if name in known), None)
    if twice is not None:
        raise DataError(
            str(nodes), f"node {twice!r} is in the graph already", "leave it out, or predict for it without --new-nodes"
        )
    return known | {name: data.nodes + place for place, name in enumerate(names)}


def _read_joins(
    path: Path | None, source: DataOptions, known: Mapping[str, int], data: Dataset, nodes: Path
) -> NewEdges:
    """The edges of a file by the numbers of nodes; each has a new node at one end."""
    if path is None:
        return NewEdges(torch.empty(2, 0, dtype=torch.int64))
    weight = (
        source.weight_column
        if source.weight_column is None
        or path.suffix.lower() in (".csv", ".tsv", ".txt", ".parquet", ".pq", ".graphml")
        else None
    )
    held = read_edges(path, source.edge_columns or None, weight)
    ends = torch.tensor(
        [
            [_place(name, edge, held, known, nodes) for edge, name in enumerate(side)]
            for side in (held.sources, held.targets)
        ]
    )
    ends = ends.reshape(2, -1).long()
    old = torch.nonzero((ends < data.nodes).all(0)).flatten()
    if old.numel():
        raise DataError(
            held.where(int(old[0])), "both nodes are in the graph already, and its edges are those of the training",
            f"drop the line, or give the whole graph with {mention('edges')}",
        )  # fmt: skip
    return NewEdges(ends, None if held.weights is None else held.weights)


def _place(name: Any, edge: int, held: EdgeFile, known: Mapping[str, int], nodes: Path) -> int:
    place = known.get(str(name))
    if place is None:
        raise DataError(
            held.where(edge),
            f"node {str(name)!r} is neither in the graph nor in {nodes.name}",
            "add it there, or drop the line",
        )
    return place


def check_alone(new_nodes: Path | None, new_edges: Path | None, only: str, others: Mapping[str, Any]) -> None:
    """Refuse what makes no sense beside new nodes, or without them."""
    if new_nodes is None:
        if new_edges is not None:
            raise InputError(
                "new_edges", str(new_edges), f"{mention('new_nodes')} beside it, with the features of the new nodes"
            )
        return
    if only != "all":
        raise InputError("only", only, f"nothing beside {mention('new_nodes')}, which says for whom", "leave it out")
    for name, value in others.items():
        if value is not None:
            raise InputError(
                name, str(value), f"nothing beside {mention('new_nodes')}, which says for whom", "leave it out"
            )
