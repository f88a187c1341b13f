"""Reading what users of scikit-learn have: features, graphs and node ids of many kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from unspool.datasets.features import Features, check_finite, read_features
from unspool.graph import Graph
from unspool.graph.from_edge_index import graph_of
from unspool.ops import SparseFeatures
from unspool.ops.stored_hops import StoredHops

Array = np.ndarray[Any, Any]

#: What to do when a grid search has cut the features into rows.
_ROWS = "inside a grid search bind both, features=x and graph=graph, and pass node ids as X"


def read_x(given: Any) -> Features:
    """Features as checked tensors (sparse where few entries are not zero) in torch's default dtype; hops on the disk as they are."""
    if isinstance(given, StoredHops):
        return given.to("cpu").to(torch.get_default_dtype())
    x = given
    if not isinstance(given, SparseFeatures):
        if getattr(given, "ndim", 2) == 1:
            raise ValueError(
                "x is one-dimensional: expected (nodes, features); Reshape your data with x[:, None] if it is one feature, "
                "and bind features=... if it holds node ids"
            )
        x = read_features(_numbers(given))
    elif not bool(torch.isfinite(given.values).all()):
        read_features(given)  # raises, and names the place
    x = x if x.device.type == "cpu" else x.to("cpu")
    return x if x.dtype == torch.get_default_dtype() else x.to(torch.get_default_dtype())


def read_signal(given: Any, missing: bool = False) -> Array:
    """A signal as a dense float array, float32 where it came so and float64 otherwise; one- or two-dimensional.

    With ``missing``, NaN entries may be in it.
    """
    if isinstance(given, SparseFeatures):
        given = given.to_dense()
    if isinstance(given, Tensor):
        given = given.detach().cpu().to_dense().numpy()
    if scipy.sparse.issparse(given):
        given = given.toarray()
    signal = np.asarray(_numbers(given))
    if signal.dtype.kind not in "fiub":
        raise TypeError(f"x holds {signal.dtype}: expected real numbers")
    if signal.dtype != np.float32:
        signal = signal.astype(np.float64, copy=False)
    if signal.ndim not in (1, 2) or signal.size == 0:
        raise ValueError(f"x has shape {signal.shape}: expected (nodes,) or (nodes, features), at least one of each")
    known = np.where(np.isnan(signal), 0, signal) if missing else signal
    check_finite(known if signal.ndim == 2 else known[:, None])
    return np.require(signal, requirements=["C", "W"])  # reversed and read-only arrays (joblib's) are no tensors


def read_graph(given: Any, nodes: int, dtype: torch.dtype, **how: Any) -> Graph:
    """A graph from what users have, on the CPU, checked against the number of nodes; ``how`` it is made, unless it is one already.

    Example:
        >>> import numpy as np, scipy.sparse
        >>> read_graph(scipy.sparse.csr_array(np.ones((3, 3)) - np.eye(3)), 3, torch.float32).edges
        3
    """
    if given is None:
        raise ValueError("there is no graph: pass graph=... to fit, or give it to the constructor")
    graph = _made(given, nodes, how)
    if graph.nodes != nodes:
        raise ValueError(f"x has {nodes} rows, but the graph has {graph.nodes} nodes: give one row per node; {_ROWS}")
    same = graph.dtype == dtype and graph.device.type == "cpu"
    return graph if same else graph.to(dtype=dtype, device="cpu")


def _made(given: Any, nodes: int, how: dict[str, Any]) -> Graph:
    if isinstance(given, Graph):
        return given
    if scipy.sparse.issparse(given):
        return Graph.from_scipy(given, **how)
    if getattr(given, "edge_index", None) is not None:
        return Graph.from_pyg(given, **how)
    if hasattr(given, "is_directed") and hasattr(given, "edges"):
        return Graph.from_networkx(given, **how)
    return Graph.from_edges(given, nodes, **how) if how else graph_of(given, nodes)


def read_ids(given: Any, nodes: int, what: str = "x") -> Array:
    """Node ids (or a mask over all nodes) as a flat array, checked against the number of nodes.

    Example:
        >>> read_ids([[0], [2]], 3)
        array([0, 2])
        >>> read_ids([0, 7], 3)
        Traceback (most recent call last):
            ...
        ValueError: x names node 7, but node ids run from 0 to 2
    """
    ids = np.asarray(given.detach().cpu() if isinstance(given, Tensor) else given)
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    if ids.dtype == bool and ids.shape == (nodes,):
        return np.flatnonzero(ids)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        bound = "; features are bound to the estimator, so x is not the feature matrix" if what == "x" else ""
        raise ValueError(f"{what} holds {ids.dtype} of shape {ids.shape}: expected node ids, whole numbers{bound}")
    outside = np.flatnonzero((ids < 0) | (ids >= nodes))
    if outside.size:
        raise ValueError(f"{what} names node {ids[outside[0]]}, but node ids run from 0 to {nodes - 1}")
    return ids.astype(np.int64)


def _numbers(given: Any) -> Any:
    """Object arrays (tables with mixed columns) as floats where that is possible."""
    if isinstance(given, Tensor | SparseFeatures) or scipy.sparse.issparse(given):
        return given
    array = np.asarray(given)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: features are real numbers; pass x.real or x.imag")
    if array.dtype.kind != "O":
        return array
    try:
        return array.astype(float)
    except (TypeError, ValueError) as problem:
        raise type(problem)(f"x cannot be read as numbers ({problem}); encode text first") from None
