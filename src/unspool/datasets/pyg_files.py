"""Files that ``torch.save`` wrote of PyTorch Geometric's ``Data``, opened without PyG and without running any code of theirs.

A pickle is a program. torch reads it with ``weights_only``, which builds tensors, lists and dictionaries alone; for the few classes of PyG
it gets stand-ins that hold what they are told.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from unspool.datasets.dataset import Dataset
from unspool.datasets.limits import TooLarge, check_archive
from unspool.datasets.own import Splitting, from_pyg
from unspool.datasets.tables import check_file
from unspool.errors import DataError, IncompatibleError, InputError, mention
from unspool.graph.edges import read_edge_index, read_weights
from unspool.graph.pyg import pyg_edges

_DATA, _HETERO = "torch_geometric.data.data.Data", "torch_geometric.data.hetero_data.HeteroData"
#: All that files of these two ask for beside tensors.
_ASKED = (
    _DATA, _HETERO, "torch_geometric.data.data.DataEdgeAttr", "torch_geometric.data.data.DataTensorAttr",
    "torch_geometric.data.storage.GlobalStorage", "torch_geometric.data.storage.BaseStorage", "torch_geometric.data.storage.NodeStorage",
    "torch_geometric.data.storage.EdgeStorage", "torch_geometric.data.graph_store.EdgeAttr", "torch_geometric.data.feature_store.TensorAttr",
)  # fmt: skip
#: What is taken out of them.
_PARTS = ("edge_index", "x", "y", "edge_weight", "edge_attr", "train_mask", "val_mask", "test_mask")
_STRANGER = re.compile(r"GLOBAL ([\w.]+)")


def from_pyg_file(
    path: Path,
    *,
    weight_column: str | None = None,
    drop_columns: Sequence[str] = (),
    directed: bool | None = None,
    split: Splitting = None,
    name: str | None = None,
) -> Dataset:
    """The data set in a ``.pt`` file: a ``Data``, what PyG keeps as ``processed/data.pt``, or a dictionary of such tensors.

    Args:
        path: the file.
        weight_column: which column of ``edge_attr`` is the weight, from 0.
        drop_columns: ``edge_attr`` to do without it; nothing else has a name.
        directed: as in :func:`~unspool.datasets.from_tensors`.
        split: as there; else the masks.
        name: what the set is called; else the name of the file.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "ring.pt"
        >>> torch.save({"edge_index": torch.tensor([[0, 1, 2], [1, 2, 0]]), "x": torch.ones(3, 2)}, file)
        >>> from_pyg_file(file, directed=False)
        ring: 3 nodes, 3 edges, 2 features, 0 classes
    """
    other = next((column for column in drop_columns if column != "edge_attr"), None)
    if other is not None:
        raise InputError("drop_columns", other, f"edge_attr, as {path.name} names no columns")
    held = _parts(path)
    if drop_columns:
        held.pop("edge_attr")
    called = path.name.split(".")[0] if name is None else name
    with _of_file(path):
        place = _place(weight_column)
        return from_pyg(SimpleNamespace(**held), weight_column=place, directed=directed, split=split, name=called)


def read_pyg_edges(path: Path, weight_column: str | None = None) -> tuple[Any, Any, int]:
    """The edges of such a file alone: ``edge_index``, weights or None, and the number of nodes."""
    held = _parts(path)
    with _of_file(path):
        index, weight = pyg_edges(SimpleNamespace(**held), _place(weight_column))
        index, nodes = read_edge_index(index, held["num_nodes"])
        weight = None if weight is None else read_weights(weight, index.shape[1]).numpy()
    return index.numpy(), weight, nodes


def _place(weight_column: str | None) -> int | None:
    if weight_column is not None and not (weight_column.isascii() and weight_column.isdecimal()):
        raise InputError("weight_column", weight_column, "the number of a column of edge_attr, from 0")
    return None if weight_column is None else int(weight_column)


@contextmanager
def _of_file(path: Path) -> Generator[None]:
    """Problems of tensors, said of the file that holds them."""
    try:
        yield
    except InputError:
        raise
    except DataError as problem:
        ways = f"take one as the weight with {mention('weight_column')}, or none with {mention('drop_columns', 'edge_attr')}"
        hint = ways if problem.where == "edge_attr" else problem.hint
        raise DataError(f"{path.name}, {problem.where}", problem.problem, hint) from None
    except (ValueError, TypeError) as problem:
        raise DataError(path.name, str(problem)) from None


def _parts(path: Path) -> dict[str, Any]:
    """The tensors in a file by name, and how many nodes there are."""
    held = _mapping(path, _opened(path))
    parts = {name: held[name] for name in _PARTS if held.get(name) is not None}
    for name, value in parts.items():
        if not isinstance(value, Tensor) or value.layout is not torch.strided:
            raise DataError(f"{path.name}", f"{name} is not a dense tensor", "make it one, and save it again")
    if "edge_index" not in parts:
        have = ", ".join(map(str, held)) if held else "nothing"
        raise DataError(f"{path.name}", f"it has no edge_index (it has {have})", "save a Data with edge_index")
    known = held.get("num_nodes")
    rows = next((parts[name].shape[0] for name in ("x", "y", "train_mask") if name in parts and parts[name].ndim), None)
    index = parts["edge_index"]
    highest = int(index.max()) + 1 if index.numel() and not index.is_floating_point() else 0
    count = known if isinstance(known, int) else rows if rows is not None else highest
    return {**{name: parts.get(name) for name in _PARTS}, "num_nodes": count}


def _opened(path: Path) -> Any:
    check_file(path)
    # Trap: made anew for every file, since a pickle may set attributes of whatever it is handed.
    stand_ins = {name: type(name.rpartition(".")[2], (), {}) for name in _ASKED}
    try:
        data = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_archive(path, archive)
    except (TooLarge, OSError):
        raise
    except (
        Exception
    ):  # Trap: besides BadZipFile, a changed byte gives UnicodeDecodeError, NotImplementedError and others
        raise DataError(f"{path}", "it is damaged, or not a file of torch.save", "save it again") from None
    try:
        with warnings.catch_warnings(), torch.serialization.safe_globals([(c, name) for name, c in stand_ins.items()]):
            warnings.simplefilter("ignore")
            return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as problem:  # whatever a changed byte makes of it
        found = _STRANGER.search(str(problem))
        what = "it is damaged" if found is None else f"it asks for {found[1]}, and code of a file is not run"
        raise DataError(f"{path}", what, "save a Data of tensors with torch.save(data, ...)") from None


def _mapping(path: Path, held: Any) -> Mapping[str, Any]:
    """What a file holds, by name."""
    if isinstance(held, Sequence) and not isinstance(held, str) and len(held) in (2, 3):  # PyG's processed/data.pt
        if isinstance(held[1], Mapping) and any(isinstance(v, Tensor) and v.numel() > 2 for v in held[1].values()):
            raise IncompatibleError(f"{path.name} holds several graphs, and one is needed; save one of them")
        held = held[0]
    if isinstance(held, Mapping):
        if "_global_store" in held:
            raise _hetero(path)
        return held
    kind = type(held).__name__
    if kind == "HeteroData":
        raise _hetero(path)
    store = getattr(held, "__dict__", {}).get("_store")
    mapping = getattr(store, "__dict__", {}).get("_mapping")
    if kind != "Data" or not isinstance(mapping, Mapping):
        raise DataError(f"{path.name}", f"it holds a {kind}, not a Data of PyTorch Geometric", "save one")
    return mapping


def _hetero(path: Path) -> IncompatibleError:
    return IncompatibleError(
        f"{path.name} holds a HeteroData, and graphs here have one kind of nodes and of edges; save data.to_homogeneous(), or one kind of "
        "edges between nodes of one kind"
    )
