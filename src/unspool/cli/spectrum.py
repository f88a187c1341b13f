"""``unspool spectrum``: what a trained model does to each graph frequency."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unspool.cli.data_options import DataOptions
from unspool.cli.demo import can_draw, check_writable
from unspool.cli.predict import load_checked
from unspool.cli.terminal import echo
from unspool.cli.train_options import optional_model
from unspool.cli.training_data import training_data
from unspool.datasets.arrays import Damaged, load_arrays
from unspool.datasets.edge_files import read_edges
from unspool.datasets.files import node_names
from unspool.errors import IncompatibleError
from unspool.graph import Graph
from unspool.models.pretrained import find_folder
from unspool.spectral import Response, plot, response
from unspool.spectral.linear_form import Neither, read, width_of

#: Channels of white noise to follow where the model does not ask for a number of its own.
CHANNELS = 8


def run(checkpoint: Path, kind: str | None, changed_code: bool, data: DataOptions, out: Path, as_json: bool) -> None:
    """Load, read, print, draw."""
    drawn = can_draw()
    data.check()
    if drawn:
        check_writable(out)
    model = load_checked(find_folder(checkpoint), optional_model(kind), changed_code)
    graph, notes = graph_for(model, data, checkpoint)
    h = response(model, graph)
    name = type(model).__name__
    if as_json:
        echo(json.dumps(record(name, str(model.objective), h, out if drawn else None), ensure_ascii=False))
    else:
        echo(f"{name} minimises  {model.objective}\n")
        if graph is not None:
            echo("\n".join([f"{graph}", *(f"note: {note}" for note in (*graph.notes, *notes)), ""]))
        echo(f"{h}\n")
        if h.hops is not None:
            echo("\n".join(hop_lines(h)) + "\n")
    if not drawn:
        if not as_json:
            echo("no picture: drawing needs matplotlib (pip install 'unspool[plot]')")
        return
    x = None if graph is None else noise(model, h, graph)
    plot(model, graph, x, out, title=short(f"{name}: {model.objective}"), known=h)
    if not as_json:
        echo(f"picture: {out}")


def graph_for(model: Any, data: DataOptions, checkpoint: Path) -> tuple[Graph | None, list[str]]:
    """The graph to look at, with remarks: the one that was named; else, where the model needs one, that of its training."""
    card: Mapping[str, Any] = model.card
    if data.edges is not None:
        graph = read_graph(data.edges)
        return graph, _other_nodes(card, graph)
    if data.dataset is not None:
        held, notes = training_data(card, data, checkpoint)
        return held.graph, notes
    found = read(model)
    if not isinstance(found, Neither):
        return None, []
    if not card.get("data"):
        raise IncompatibleError(
            f"{found.reason}, so its response can only be measured on a graph; give its edges with --edges, or --dataset"
        )
    held, notes = training_data(card, data, checkpoint)
    return held.graph, [*notes, f"measured on {held.name}, which it was trained on"]


def _other_nodes(card: Mapping[str, Any], graph: Graph) -> list[str]:
    """A remark where a file of edges has another number of nodes than the training had: those without edges are not in it."""
    size = (card.get("data") or {}).get("size")
    trained = size.get("nodes") if isinstance(size, Mapping) else None
    if not isinstance(trained, int) or trained == graph.nodes:
        return []
    alone = "; nodes without edges are not in a file of edges, so leave --edges out to take the data of its training"
    return [
        f"these edges name {graph.nodes} nodes, and the model was trained on {trained}{alone if graph.nodes < trained else ''}"
    ]


def noise(model: Any, h: Response, graph: Graph) -> torch.Tensor:
    """White noise of the width that the propagation takes."""
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    free = h.hops is not None and h.hops.ndim == 1
    width = CHANNELS if free else width_of(model)
    generator = torch.Generator().manual_seed(0)
    return torch.randn(graph.nodes, width, generator=generator, dtype=torch.float64).to(like.dtype)


def hop_lines(h: Response) -> list[str]:
    """The hop coefficients as a table: numbers as they are, maps by size and mean of the diagonal."""
    assert h.hops is not None
    rows = hop_rows(h)
    heads = list(rows[0])
    lines = ["   ".join(["hop".rjust(4), *(n.rjust(max(len(n), 11)) for n in heads)])]
    for k, row in enumerate(rows):
        lines.append("   ".join([f"{k:>4}", *(f"{row[n]:.4g}".rjust(max(len(n), 11)) for n in heads)]))
    return lines


def hop_rows(h: Response) -> list[dict[str, float]]:
    """One record for each hop."""
    hops = h.hops
    assert hops is not None
    if hops.ndim == 1:
        return [{"coefficient": float(c)} for c in hops]
    if hops.ndim == 2:
        return [{"mean": float(c.mean()), "smallest": float(c.min()), "largest": float(c.max())} for c in hops]
    return [
        {"spectral norm": float(torch.linalg.matrix_norm(c, ord=2)), "mean of diagonal": float(c.diagonal().mean())}
        for c in hops
    ]


def record(name: str, objective: str, h: Response, out: Path | None) -> dict[str, Any]:
    """Everything that is printed, as one object."""
    return {
        "model": name,
        "objective": objective,
        "kind": h.describe(),
        "exact": h.exact,
        "degree": h.degree,
        "basis": None if h.basis is None else h.basis.value,
        "response": h.rows(41),
        "hops": None if h.hops is None else hop_rows(h),
        "picture": None if out is None else str(out),
    }


def short(text: str, most: int = 140) -> str:
    """A title that fits above the picture."""
    return text if len(text) <= most else text[: most - 1] + "…"


# -- reading edges -----------------------------------------------------------------------------------------------------


def read_graph(path: Path) -> Graph:
    """A graph from a file of edges, which run both ways, as frequencies need; remarks stay in ``graph.notes``."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file of edges {path}; check the path")
    if path.suffix.lower() in (".parquet", ".graphml", ".npy", ".pt"):
        return _named_graph(path)
    found = _from_npz(path) if path.suffix == ".npz" else _from_text(path)
    if found is None:
        return _named_graph(path)
    index, weights = found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Graph.from_edges(index, weights=weights)


def _named_graph(path: Path) -> Graph:
    held = read_edges(path)
    place = {node: row for row, node in enumerate(node_names(held, None, None)[0])}
    index = np.array([[place[node] for node in side] for side in (held.sources, held.targets)], dtype=np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Graph.from_edges(index, len(place), held.weights, directed=False if held.undirected else None)


def _from_npz(path: Path) -> tuple[Any, Any]:
    try:
        held = load_arrays(path)
    except Damaged as problem:
        raise ValueError(f"{path} is not an .npz file of plain arrays ({problem})") from None
    if "edge_index" not in held:
        raise ValueError(f"{path} holds {', '.join(held) or 'nothing'}, but no edge_index of shape (2, edges)")
    return held["edge_index"], held.get("edge_weight")


def _from_text(path: Path) -> tuple[Any, Any] | None:
    """Two or three columns between commas, semicolons or white space; comments (#) and one heading at the top.

    None where nodes have names instead of numbers.
    """
    rows: list[list[str]] = []
    numbers: list[int] = []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text: give two columns of node ids, or an .npz file") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("#") and not rows:
            continue
        words = re.split(r"\s*[,;]\s*|\s+", line.strip())
        if words != [""]:
            rows.append(words)
            numbers.append(number)
    if rows and not _is_number(rows[0][0]):
        rows, numbers = rows[1:], numbers[1:]
    if not rows:
        raise ValueError(f"{path} holds no edges; is it complete?")
    if not any(_is_number(word) for words in rows for word in words[:2]):
        return None
    width = len(rows[0])
    for words, number in zip(rows, numbers, strict=True):
        fine = width in (2, 3) and len(words) == width and words[0].isdecimal() and words[1].isdecimal()
        if not fine or (width == 3 and not _is_number(words[2])):
            raise ValueError(
                f"{path}, line {number}: expected two node ids (0, 1, 2, ...) and perhaps a weight, "
                f"the same in every line; found {' '.join(words)!r}"
            )
    index = np.array([[int(r[0]) for r in rows], [int(r[1]) for r in rows]], dtype=np.int64)
    return index, None if width == 2 else [float(r[2]) for r in rows]


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
