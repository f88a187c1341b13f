"""The work of ``unspool hops``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from unspool import hops
from unspool.cli.graph_build import memory_bytes
from unspool.cli.terminal import echo
from unspool.datasets.arrays import Damaged, load_arrays
from unspool.errors import DataError, IncompatibleError, mention
from unspool.graph import Graph, Normalisation


def run(
    graph: Path, features: Path, depth: int, out: Path, memory: str, *, nodes: Path | None, labels: Path | None, split: Path | None,
    feature_columns: Sequence[str], drop_columns: Sequence[str], normalise: str, half: bool,
) -> None:  # fmt: skip
    """Write the hops, and say what they are."""
    if split is not None and labels is None:
        raise IncompatibleError(
            f"{mention('split')} says which nodes train, and without {mention('labels')} there is nothing that they could learn; add "
            f"{mention('labels')}, or leave {mention('split')} out"
        )
    budget, opened = memory_bytes(memory), Graph.open(graph, normalise=Normalisation(normalise))
    facts = None
    if labels is not None:
        facts = hops.NodeFacts.read(opened.nodes, _array(labels), None if split is None else _arrays(split), out.name)
        if facts.targets is None and not facts.classes:
            raise DataError(str(labels), "no node has a label", f"leave {mention('labels')} out, or give some")
    chosen = None if nodes is None else _array(nodes)
    stored = hops.write(
        opened, features, depth, out, nodes=chosen, memory=budget, facts=facts, dtype=torch.bfloat16 if half else None,
        feature_columns=feature_columns or None, drop_columns=drop_columns, tell=lambda line: echo(line, err=True),
    )  # fmt: skip
    echo(f"{out}: {stored}")


def _arrays(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; check the path")
    try:
        return load_arrays(path)
    except Damaged as problem:
        raise DataError(
            str(path), f"it cannot be read ({problem})", "write it with numpy.save or numpy.savez"
        ) from None


def _array(path: Path) -> Any:
    """The one array of a ``.npy`` file."""
    found = _arrays(path)
    if "" not in found:
        raise DataError(
            str(path), f"it holds {', '.join(found) or 'nothing'}, not one array", "write it with numpy.save"
        )
    return found[""]
