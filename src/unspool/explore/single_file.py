"""The explorer as one HTML file that needs nothing else."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.errors import InputError
from unspool.explore.layout import grid_places, place_nodes, ring_places
from unspool.files import write_whole
from unspool.graph import Graph, generators

#: Nodes of the largest graph that is drawn: every node is a dot, and every step of the page takes milliseconds.
LARGEST = 2000


def page(graph: Graph | None = None, signal: Any = None, *, title: str = "your graph", positions: Any = None) -> str:
    """The explorer as text: write a problem with sliders, see the signal layer by layer, the response, and the network's name.

    Without a graph the page has a ring, a grid, a sensor network and communities; a graph of one's own comes first. What the page
    computes is what the package computes: the Python code that it shows gives the same numbers.

    Args:
        graph: undirected and symmetrically normalised, of at most 2,000 nodes.
        signal: one number per node, taken as it is; without one, the page makes signals from the places of the nodes.
        title: the name of the graph on the page.
        positions: where the nodes are drawn, shape (nodes, 2); computed when omitted.

    Example:
        >>> import unspool as us
        >>> text = us.explore.page(us.graph.path(5), [0.0, 0.1, 0.9, 1.1, 1.0])
        >>> "APPNP" in text, len(text) < 1_000_000
        (True, True)
    """
    graphs = ([] if graph is None else [_own(graph, signal, title, positions)]) + _built_in()
    # "<" is written as an escape, so that nothing in a title can end the element that holds the data.
    data = json.dumps(graphs, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    here = resources.files("unspool.explore")
    text = (here / "explorer.html").read_text(encoding="utf-8")
    for mark, name in (("{{MATHS}}", "maths.js"), ("{{PAGE}}", "page.js")):
        text = text.replace(mark, (here / name).read_text(encoding="utf-8"))
    return text.replace("{{GRAPHS}}", data)


def write_page(path: str | os.PathLike[str], graph: Graph | None = None, signal: Any = None, **how: Any) -> Path:
    """Write the explorer to an HTML file; see :func:`page`.

    Example:
        >>> import pathlib, tempfile, unspool as us
        >>> us.explore.write_page(pathlib.Path(tempfile.mkdtemp()) / "explorer.html").name
        'explorer.html'
    """
    file = Path(path)
    if file.suffix.lower() not in (".html", ".htm"):
        raise InputError("path", str(path), "the name of a .html file")
    text = page(graph, signal, **how)
    write_whole(file, lambda f: f.write(text.encode()))
    return file


def _built_in() -> list[dict[str, Any]]:
    from unspool.datasets import contextual_sbm

    sensor, places = generators.sensor(150)
    social = contextual_sbm(nodes=90, classes=3, homophily=0.95, degree=6, seed=1).graph
    return [
        _described("sensor", "150 sensors", sensor, places.double().numpy(), "graph, positions = us.graph.sensor(150)"),
        _described("grid", "a grid, 12 × 12", generators.grid(12, 12), grid_places(12, 12), "graph = us.graph.grid(12, 12)"),
        _described("ring", "a ring of 60", generators.ring(60), ring_places(60), "graph = us.graph.ring(60)"),
        _described(
            "community", "three communities of 30", social, place_nodes(social),
            "graph = us.datasets.contextual_sbm(nodes=90, classes=3, homophily=0.95, degree=6, seed=1).graph",
        ),
    ]  # fmt: skip


def _own(graph: Graph, signal: Any, title: str, positions: Any) -> dict[str, Any]:
    given: Any = graph
    if not isinstance(given, Graph):
        raise InputError("graph", type(given).__name__, "an unspool.Graph", "us.Graph.from_edges(...) makes one")
    if graph.nodes > LARGEST:
        raise InputError(
            "graph", f"{graph.nodes} nodes", f"at most {LARGEST}", "take a part of it; us.unroll has no such limit"
        )
    graph.require_incidence()
    if graph.scale != 1.0:
        raise InputError("graph", "a graph that is not normalised", "one that is", "leave normalise= at its default")
    if positions is None:
        places = place_nodes(graph)
    else:
        places = np.asarray(positions, dtype=np.float64)
        if places.shape != (graph.nodes, 2) or not np.isfinite(places).all():
            raise InputError("positions", f"shape {places.shape}", f"finite numbers of shape ({graph.nodes}, 2)")
        low, high = places.min(0), places.max(0)
        places = (places - low) / np.where(high > low, high - low, 1.0)
    found = _described("own", title, graph, places, "graph = ...  # your graph, as us.explore was given it")
    return found if signal is None else {**found, "signal": _signal(signal, graph.nodes)}


def _signal(signal: Any, nodes: int) -> list[float]:
    values = torch.as_tensor(signal, dtype=torch.float64).detach().cpu()
    if values.numel() != nodes:
        raise InputError("signal", f"shape {tuple(values.shape)}", f"one number for each of the {nodes} nodes")
    if not bool(torch.isfinite(values).all()):
        raise InputError("signal", "a number that is missing or infinite", "finite numbers", "us.denoise fills gaps")
    return _numbers(values.reshape(-1))


def _described(name: str, title: str, graph: Graph, places: Any, code: str) -> dict[str, Any]:
    """Everything that the page needs of a graph: A above and on its diagonal, degrees, places, frequencies."""
    exact = graph.to(torch.float64)
    row, col, value = exact.operator.rows(), exact.operator.forward.col.long(), exact.operator.forward.val
    upper, own = row < col, torch.zeros(graph.nodes, dtype=torch.float64)
    own[row[row == col]] = value[row == col]
    return {
        "name": name,
        "title": title,
        "code": code,
        "edges": [
            [int(i), int(j), float(f"{float(a):.9g}")]
            for i, j, a in zip(row[upper], col[upper], value[upper], strict=True)
        ],
        "own": _numbers(own),
        "degree": _numbers(graph.degree.double().reshape(-1)),
        "positions": [[round(float(u), 4), round(float(v), 4)] for u, v in places],
        "frequencies": [round(float(f), 5) for f in torch.linalg.eigvalsh(torch.eye(graph.nodes, dtype=torch.float64) - exact.to_dense())],
    }  # fmt: skip


def _numbers(values: Tensor) -> list[float]:
    return [float(f"{float(v):.9g}") for v in values]
