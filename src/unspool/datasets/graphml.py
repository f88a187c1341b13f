"""GraphML files: nodes with attributes, edges with weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from unspool.datasets.edge_files import EdgeFile

_SPACE = "{http://graphml.graphdrawing.org/xmlns}"


def read_graphml(path: Path) -> EdgeFile:
    """Read the first graph of a GraphML file; the edge attribute ``weight`` is its weight, 1 where it is missing.

    Example:
        >>> import tempfile, pathlib, networkx
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "club.graphml"
        >>> networkx.write_graphml(networkx.karate_club_graph(), file)
        >>> held = read_graphml(file)
        >>> len(held.nodes), len(held.sources), held.attributes[0]
        (34, 78, {'club': 'Mr. Hi'})
    """
    try:
        top = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, LookupError, ValueError) as problem:  # the others: of an encoding that nobody knows
        raise ValueError(f"{path} is no well-formed GraphML ({problem}); export it again") from None
    graph = _child(top, "graph")
    if graph is None:
        raise ValueError(f"{path} holds no graph; export it again as GraphML")
    keys = {key.get("id", ""): key.get("attr.name", key.get("id", "")) for key in _children(top, "key")}
    nodes = _children(graph, "node")
    names = tuple(node.get("id", "") for node in nodes)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{path.name} lists node {twice!r} twice; every node needs its own id")
    sources: list[str] = []
    targets: list[str] = []
    weights: list[float] = []
    for number, edge in enumerate(_children(graph, "edge")):
        sources.append(edge.get("source", ""))
        targets.append(edge.get("target", ""))
        weights.append(_weight(path, number, _data(edge, keys)))
    listed = set(names)
    for number, end in ((i, end) for ends in (sources, targets) for i, end in enumerate(ends)):
        if end not in listed:
            raise ValueError(
                f"{path.name}, edge {number}: node {end!r} is not among its {len(names)} nodes; export it again"
            )
    held = None if all(weight == 1 for weight in weights) else np.array(weights)
    attributes = tuple(_data(node, keys) for node in nodes)
    return EdgeFile(
        sources, targets, held, lambda edge: f"{path.name}, edge {edge}", names, attributes,
        undirected=graph.get("edgedefault") == "undirected",
    )  # fmt: skip


def _weight(path: Path, number: int, held: dict[str, str]) -> float:
    text = held.get("weight", "1")
    try:
        weight = float(text)
    except ValueError:
        raise ValueError(f"{path.name}, edge {number}: the weight {text!r} is no number; mend it") from None
    if not 0 <= weight < float("inf"):
        raise ValueError(
            f"{path.name}, edge {number}: the weight is {weight:g}, but weights are finite and not negative"
        )
    return weight


def _children(parent: Any, tag: str) -> list[Any]:
    return [child for child in parent if child.tag in (tag, _SPACE + tag)]


def _child(parent: Any, tag: str) -> Any:
    found = _children(parent, tag)
    return found[0] if found else None


def _data(element: Any, keys: dict[str, str]) -> dict[str, str]:
    held = {
        child.get("key", ""): (child.text if child.text is not None else "").strip()
        for child in _children(element, "data")
    }
    return {str(keys.get(key, key)): text for key, text in held.items()}
