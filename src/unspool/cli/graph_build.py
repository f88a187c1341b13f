"""The work of ``unspool graph build``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from unspool.cli.terminal import echo
from unspool.datasets.edge_chunks import edge_chunks, has_weights
from unspool.errors import InputError
from unspool.graph import Graph
from unspool.graph.building import build_graph

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def memory_bytes(text: str) -> int:
    """A size as people write it.

    Example:
        >>> memory_bytes("1.5GB"), memory_bytes("500 MB")
        (1610612736, 524288000)
    """
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?)(?:I?B)?\s*", text.upper())
    if found is None:
        raise InputError("memory", text, "a size, such as 8GB or 500MB")
    return int(float(found[1]) * _UNITS[found[2]])


def run(
    edges: Sequence[Path], out: Path, memory: str, *, nodes: int | None, loops: float, weight_column: str | None, directed: bool | None
) -> None:  # fmt: skip
    """Build the graph, and say what it is."""
    budget = memory_bytes(memory)
    weighted = has_weights(edges, weight_column)
    files = [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path in edges]
    notes = build_graph(
        lambda: edge_chunks(edges, weight_column, nodes), out, memory=budget, asked={"files": files, "weight": weight_column},
        nodes=nodes, directed=directed, loops=loops, weighted=weighted, tell=lambda line: echo(line, err=True),
    )  # fmt: skip
    for note in notes:
        echo(f"note: {note}", err=True)
    echo(f"{out}: {Graph.open(out)}")
