"""``unspool predict`` for models of links: pairs of a file, or the most probable new links of nodes."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unspool.cli.tables import write_table
from unspool.cli.terminal import echo
from unspool.datasets import Dataset
from unspool.datasets.tables import PARQUET, SOURCES, TARGETS, TEXT, Table, read_table, suffix
from unspool.errors import UNSHOWN, DataError, IncompatibleError, InputError, mention
from unspool.explain import find_node, find_nodes
from unspool.links import LinkScorer

#: Recommendations of a node when nothing is said.
TOP = 10
#: So many rows are printed.
SHOWN = 10


@dataclass(frozen=True)
class LinkQuestion:
    """What is asked about links.

    Attributes:
        pairs: a file of pairs, to be scored.
        top: how many recommendations each node gets.
        nodes: for whom, names with commas between.
    """

    pairs: Path | None = None
    top: int | None = None
    nodes: str | None = None

    def check(self, only: str) -> None:
        """Refuse questions that contradict each other."""
        for name in ("top", "nodes"):
            if self.pairs is not None and getattr(self, name) is not None:
                raise InputError(
                    name, UNSHOWN, f"nothing beside {mention('pairs')}, which says what is scored", "leave one out"
                )
        if only != "all" and (self.pairs is not None or self.nodes is not None):
            raise InputError("only", only, "nothing where the nodes are named one by one", "leave it out")

    def refuse(self, kind: str, checkpoint: Path) -> None:
        """Refuse all of it for a model that does not look for links."""
        for name in ("pairs", "top"):
            if getattr(self, name) is not None:
                raise IncompatibleError(
                    f"{mention(name)} is for models of links, and {checkpoint} was trained on {kind}; train one with {mention('loss', 'links')}"
                )


def run(
    models: Sequence[Any], data: Dataset, asked: LinkQuestion, chosen: Tensor, out: Path, device: str, as_json: bool
) -> None:
    """Score or recommend, write the table, tell what it holds."""
    names = [str(i) for i in range(data.nodes)] if data.names is None else [str(name) for name in data.names]
    # Before the network runs: what cannot be answered is refused at once.
    pairs = None if asked.pairs is None else _read_pairs(asked.pairs, data)
    nodes = chosen if asked.nodes is None else _read_nodes(asked.nodes, data)
    top = min(TOP, data.nodes - 1) if asked.top is None else asked.top
    if pairs is None and not top < data.nodes:
        raise InputError("top", top, f"at most {data.nodes - 1}, as {data.name} has {data.nodes} nodes")
    scorer = LinkScorer.of(models, data.features.to(device), data.graph.to(device))
    if pairs is not None:
        told, table = _scored(scorer, pairs, names)
    else:
        told, table = _recommended(scorer, nodes, top, names)
    write_table(out, list(table.items()))
    if as_json:
        echo(json.dumps({**told, "models": len(models), "out": str(out)}))
        return
    echo(f"{data.name}: {_words(told, len(models))}")
    for line in _first_rows(table):
        echo(line)
    echo(
        "probabilities are those of a draw with as many links as other pairs, as in training; among all pairs links are rarer"
    )
    echo(f"written: {out}")


def check_direction(data: Dataset) -> None:
    """Refuse a graph whose edges run one way: links have no direction."""
    if data.directed:
        words = f"links without a direction: hᵤ · hᵥ says the same of both, and {data.name} is directed"
        raise InputError("directed", UNSHOWN, words, "let its edges run both ways")


def _scored(scorer: LinkScorer, pairs: Tensor, names: list[str]) -> tuple[dict[str, int], dict[str, Any]]:
    found = scorer.score(pairs)
    low, high = pairs.min(1).values, pairs.max(1).values
    distinct = torch.unique(low * len(names) + high).numel()
    told = {"pairs": len(pairs), "repeated": len(pairs) - distinct, "edges": int(found.edge.sum())}
    columns = {
        "source": [names[i] for i in pairs[:, 0].tolist()], "target": [names[i] for i in pairs[:, 1].tolist()],
        "probability": found.probability.numpy(), "score": found.score.numpy(), "edge": found.edge.tolist(),
    }  # fmt: skip
    return told, columns


def _recommended(
    scorer: LinkScorer, nodes: Tensor, top: int, names: list[str]
) -> tuple[dict[str, int], dict[str, Any]]:
    found = scorer.recommend(nodes, top)
    told = {"nodes": nodes.numel(), "top": top, "recommendations": found.node.numel()}
    columns = {
        "id": [names[i] for i in found.node.tolist()], "rank": found.rank.tolist(),
        "other": [names[i] for i in found.other.tolist()],
        "probability": found.probability.numpy(), "score": found.score.numpy(),
    }  # fmt: skip
    return told, columns


def _words(told: dict[str, int], models: int) -> str:
    mean = "" if models == 1 else f", averaged over {models} seeds"
    if "pairs" in told:
        twice = f", {told['repeated']} of them repeated" if told["repeated"] else ""
        return f"scored {told['pairs']} pair{'s'[: told['pairs'] != 1]}{twice}, {told['edges']} already linked{mean}"
    return f"{told['recommendations']} new links, up to {told['top']} for {told['nodes']} node{'s'[: told['nodes'] != 1]}{mean}"


def _first_rows(table: dict[str, Any]) -> list[str]:
    """The first rows of a table, for a terminal."""
    heads = [name for name in table if name != "score"]
    rows = [[_shown(table[name][row]) for name in heads] for row in range(min(SHOWN, len(table[heads[0]])))]
    widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
    lines = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [heads, *rows]
    ]
    more = len(table[heads[0]]) - len(rows)
    return [*lines, *([f"  ... and {more} more"] if more else [])]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _read_nodes(text: str, data: Dataset) -> Tensor:
    """Names with commas between; one that holds a comma is written in quotes, unless it stands alone."""
    if data.names is not None and text in map(str, data.names):
        return find_nodes([text], data.nodes, data.names)
    try:
        names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error:  # such as a line break inside
        names = []
    if not names or "" in names:
        raise InputError("nodes", text, "names of nodes with commas between")
    found = find_nodes(names, data.nodes, data.names)
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise InputError("nodes", text, f"every node once, and {twice[0]} is there twice")
    return found


def _read_pairs(path: Path, data: Dataset) -> Tensor:
    """Two nodes in each row of a table, in its order."""
    if suffix(path) not in (*TEXT, *PARQUET):
        raise InputError("pairs", str(path), "a table that ends in .csv, .tsv, .txt or .parquet")
    bare, places = read_table(path, comments=True), dict[str, int]()
    if len(bare.columns) < 2:
        raise DataError(str(path), "it has one column, and a pair has two", "is the separator right?")
    if data.names is not None:
        places = {str(name): place for place, name in enumerate(data.names)}
    table = _headed(bare, places, data)
    columns = [table.texts(column) for column in _columns(table)]
    ends = [[_place(table, row, text, places, data) for row, text in enumerate(column)] for column in columns]
    pairs = torch.tensor(ends, dtype=torch.int64).T
    same = torch.nonzero(pairs[:, 0] == pairs[:, 1]).flatten()
    if same.numel():
        row = int(same[0])
        raise DataError(
            table.where(row),
            f"{columns[0][row]!r} is paired with itself",
            "drop the line: a node is not linked with itself",
        )
    if table is not bare and not any(cell.lower() in SOURCES for cell in bare.first()):
        # A mistyped pair looks like a header, too: said aloud.
        said = ", ".join(bare.first())
        echo(f"note: {bare.where(0)}: {said} are not nodes, and taken for the names of the columns", err=True)
    return pairs


def _headed(table: Table, places: dict[str, int], data: Dataset) -> Table:
    """The first line is a header where neither of its first two cells is a node."""
    if table.header is not None:
        return table
    first = table.first()[:2]
    if any(
        cell in places or (not places and cell.isdecimal() and len(cell) < 19 and int(cell) < data.nodes)
        for cell in first
    ):
        return table
    return table.with_header()


def _columns(table: Table) -> tuple[int, int]:
    small = [] if table.header is None else [name.lower() for name in table.header]
    found = [next((c for c, name in enumerate(small) if name in known), None) for known in (SOURCES, TARGETS)]
    if found[0] is not None and found[1] is not None:
        return found[0], found[1]
    if len(table.columns) > 2:
        hint = "call them source and target in the first line"
        raise DataError(str(table.path), f"it has {len(table.columns)} columns, and a pair has two", hint)
    return 0, 1


def _place(table: Table, row: int, text: str, places: dict[str, int], data: Dataset) -> int:
    if text not in places:
        if not text:
            raise DataError(table.where(row), "a node is missing", "a pair has two")
        try:
            places[text] = find_node(text, data.nodes, data.names)
        except ValueError as problem:
            raise DataError(table.where(row), str(problem)) from None
    return places[text]
