"""A folder of hops: one large file, the numbers of its nodes, what is known of them, and a card that is written last."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unspool.errors import DataError
from unspool.graph import Graph
from unspool.ops.stored_hops import StoredHops
from unspool.sealed_folder import FolderKind, file_of

#: How a folder with hops is sealed, and what is said of one that is not.
HOPS = FolderKind(
    what="unspool hops",
    card="hops.json",
    format=1,
    work=".writing",
    absent="there are no hops in this folder",
    unfinished="hops were being written here and are not finished",
    foreign="it is not the card of hops",
    make="write hops there with unspool hops",
    again="write them again with unspool hops",
    go_on="run the same unspool hops again to go on",
)
#: The files of a folder; the nodes are there where not all are stored, the facts where anything is known.
STORED, NODES, FACTS = "hops", "nodes", "facts.npz"
#: The types of the numbers; NumPy has no bfloat16, and holds its bits.
KINDS = {"<f4": torch.float32, "<f8": torch.float64, "<u2": torch.bfloat16}


def about_graph(graph: Graph) -> dict[str, Any]:
    """What a card says of the graph."""
    w = graph.adjacency
    return {
        "nodes": graph.nodes, "edges": graph.edges, "entries": w.entries, "undirected": graph.undirected,
        "normalisation": graph.normalisation.value,
    }  # fmt: skip


def read_folder(folder: Any, check: bool = True) -> StoredHops:
    """The hops in a folder; a torn, changed or foreign folder is refused in one sentence.

    Args:
        folder: where.
        check: whether to compare checksums, which reads everything once.
    """
    place = Path(folder)
    card = HOPS.opened(place, check)
    if not _says_all(card):
        raise DataError(str(place / HOPS.card), "it does not say what the hops are", HOPS.again)
    rows, many, features = (int(size) for size in card["shape"])
    kind = np.dtype(str(card["dtype"]))
    nodes = torch.from_numpy(np.fromfile(file_of(place, NODES), "<i8")) if NODES in card["arrays"] else None
    size = rows * many * features * kind.itemsize
    if card["arrays"][STORED]["bytes"] != size or (nodes is not None and nodes.numel() != rows):
        raise DataError(str(place), "its files do not fit each other", HOPS.again)
    return StoredHops(
        file_of(place, STORED).resolve(), torch.Size([rows, features]), many - 1, _handed_out(kind), kind, _checksum(card),
        dict(card["graph"]), nodes,
    )  # fmt: skip


def _says_all(card: Mapping[str, Any]) -> bool:
    """Whether a card has the shape and the type of the numbers, their file, and what is known of the graph."""
    shape = card.get("shape")
    sizes = isinstance(shape, list) and len(shape) == 3 and all(isinstance(size, int) and size > 0 for size in shape)  # pyright: ignore
    return sizes and card.get("dtype") in KINDS and STORED in card["arrays"] and isinstance(card.get("graph"), dict)


def _handed_out(kind: np.dtype[Any]) -> torch.dtype:
    """Networks compute with float32, in whatever half precision hops are stored."""
    return torch.float32 if KINDS[kind.str] is torch.bfloat16 else KINDS[kind.str]


def _checksum(card: Mapping[str, Any]) -> str:
    """Of the hops and their nodes: what else is known of them does not count."""
    known = [
        str(card["shape"]),
        *(card["arrays"][name]["sha256"] for name in (STORED, NODES) if name in card["arrays"]),
    ]
    return hashlib.sha256(" ".join(known).encode()).hexdigest()
