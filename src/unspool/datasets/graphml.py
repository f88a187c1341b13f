"""GraphML files: nodes with attributes, edges with weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from unspool.datasets.edge_files import EdgeFile
from unspool.datasets.tables import is_number

_SPACE = "{http://graphml.graphdrawing.org/xmlns}"


def read_graphml(path: Path) -> EdgeFile:
    """Read the graph of a GraphML file; the edge attribute ``weight`` is its weight, 1 where neither edge nor default tells.

    What an edge list cannot say is refused: several graphs, graphs in nodes, hyperedges, ports, edges of both kinds.

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
        raise ValueError(f"{path} is not well-formed GraphML ({problem}); export it again") from None
    graph = _child(top, "graph")
    if graph is None:
        raise ValueError(f"{path} holds no graph; export it again as GraphML")
    _check_parts(path, top, graph)
    of_nodes, of_edges = (_Keys(path, _children(top, "key"), domain) for domain in ("node", "edge"))
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
        weights.append(_weight(path, number, of_edges.data(edge, f"edge {number}")))
    listed = set(names)
    for number, end in ((i, end) for ends in (sources, targets) for i, end in enumerate(ends)):
        if end not in listed:
            raise ValueError(
                f"{path.name}, edge {number}: node {end!r} is not among its {len(names)} nodes; export it again"
            )
    held = None if all(weight == 1 for weight in weights) else np.array(weights)
    attributes = tuple(of_nodes.data(node, f"node {name!r}") for name, node in zip(names, nodes, strict=True))
    return EdgeFile(
        sources, targets, held, lambda edge: f"{path.name}, edge {edge}", names, attributes,
        undirected=graph.get("edgedefault") == "undirected",
    )  # fmt: skip


def _weight(path: Path, number: int, held: dict[str, str]) -> float:
    text = held.get("weight", "1")
    if not is_number(text):
        raise ValueError(f"{path.name}, edge {number}: the weight {text!r} is not a number; correct it, or remove it")
    weight = float(text)
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


class _Keys:
    """What the data of nodes, or of edges, are called, and their defaults."""

    def __init__(self, path: Path, keys: list[Any], domain: str) -> None:
        own = [key for key in keys if key.get("for", "all") in (domain, "all")]
        self.path, self.names = path, {key.get("id", ""): key.get("attr.name", key.get("id", "")) for key in own}
        self.defaults = dict[str, str]()
        for key in own:
            default, name = _child(key, "default"), self.names[key.get("id", "")]
            if default is not None and self.defaults.setdefault(name, _text(default)) != _text(default):
                raise ValueError(f"{path.name} has two defaults for {name!r}; keep one")

    def data(self, element: Any, what: str) -> dict[str, str]:
        """The data of an element by name. networkx has a key for each type of one name, so two keys may share it."""
        held = dict[str, str]()
        for child in _children(element, "data"):
            name = self.names.get(child.get("key", ""), child.get("key", ""))
            if name in held:
                raise ValueError(f"{self.path.name}, {what} has two data called {name!r}; keep one")
            held[name] = _text(child)
        return {**self.defaults, **held}


def _text(element: Any) -> str:
    return (element.text if element.text is not None else "").strip()


def _check_parts(path: Path, top: Any, graph: Any) -> None:
    """Refuse by name what would be lost."""
    if len(_children(top, "graph")) > 1:
        raise ValueError(f"{path.name} holds a second graph; put each into a file of its own")
    default = graph.get("edgedefault")
    edges = _children(graph, "edge")
    for parent, known in (
        (graph, {"node", "edge"}),
        *((part, set[str]()) for part in (*_children(graph, "node"), *edges)),
    ):
        for child in parent:
            tag = str(child.tag).removeprefix(_SPACE)
            if tag not in {"data", "desc", *known}:
                inside = (
                    ""
                    if parent is graph
                    else f" inside {str(parent.tag).removeprefix(_SPACE)} {parent.get('id', '')!r}"
                )
                nested = "a nested graph" if tag == "graph" else f"<{tag}>"
                raise ValueError(
                    f"{path.name} holds {nested}{inside}, which is not read; export it with plain nodes and edges"
                )
    for number, edge in enumerate(edges):
        port = next((name for name in ("sourceport", "targetport") if edge.get(name) is not None), None)
        if port is not None:
            raise ValueError(f"{path.name}, edge {number} has a {port}, which is not read; export it without ports")
        flag = edge.get("directed")
        if flag is not None and (flag.strip().lower() in ("true", "1")) != (default == "directed"):
            raise ValueError(
                f"{path.name}, edge {number} has directed={flag!r} in a graph with edgedefault={default!r}; make all edges of one kind"
            )
