"""A trained graph network in one file, with NumPy alone.

    python THIS_FILE features.npy predictions.npy
    python THIS_FILE features.csv predictions.csv

Features have one row per node, in the order of training. In Python: ``from THIS_FILE import predict``, then ``predict(x)`` on the
graph of training, or ``predict(x, edges=pairs)`` on another one. ``ABOUT`` says what the network is and what its columns mean.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import sys
from typing import Any

import numpy as np

# What follows is filled in when a network is exported: facts as JSON, arrays as an .npz file in base64.
ABOUT: dict[str, Any] = json.loads("{}")
ARRAYS = ""


def predict(x: Any, edges: Any = None) -> np.ndarray[Any, Any]:
    """What the network says of every node: probabilities of ABOUT["classes"], numbers, or raw output, as ABOUT["meaning"] says.

    Args:
        x: features, shape (nodes, features).
        edges: node numbers of shape (2, edges) for another graph, whose edges run both ways and weigh one.
    """
    held = _arrays()
    h = np.asarray(x, dtype=np.float64)
    if h.ndim != 2 or h.shape[1] != ABOUT["features"] or not np.isfinite(h).all():
        raise ValueError(
            f"features have shape {h.shape}: expected finite numbers of shape (nodes, {ABOUT['features']})"
        )
    if edges is None and len(h) != ABOUT["nodes"]:
        raise ValueError(f"{len(h)} rows for the {ABOUT['nodes']} nodes of training; give edges=... for another graph")
    matrix = (held["crow"], held["col"], held["val"]) if edges is None else _normalised(edges, len(h))
    if ABOUT["normalise_rows"]:
        h = h - h.min()
        h = h / np.maximum(h.sum(axis=1, keepdims=True), 1.0)
    h = _layers(h, "pre", held)
    h = _propagated(h, held["hops"], matrix)
    return _answer(_layers(h, "pos", held), held)


def _arrays() -> dict[str, np.ndarray[Any, Any]]:
    with np.load(io.BytesIO(base64.b64decode(ARRAYS)), allow_pickle=False) as file:
        return dict(file)


def _layers(h: np.ndarray[Any, Any], part: str, held: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    for i, positive in enumerate(ABOUT[part]):
        weight, bias = held.get(f"{part}{i}_weight"), held.get(f"{part}{i}_bias")
        h = h if weight is None else h @ weight
        h = h if bias is None else h + bias
        h = np.maximum(h, 0.0) if positive else h
    return h


def _product(matrix: Any, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A sparse matrix in compressed rows times a signal."""
    crow, col, val = matrix
    out = np.zeros((len(crow) - 1, x.shape[1]))
    filled = np.flatnonzero(np.diff(crow))  # reduceat gives an empty row the entry after it
    if len(filled):
        out[filled] = np.add.reduceat(val[:, None] * x[col], crow[filled], axis=0)
    return out


def _propagated(x: np.ndarray[Any, Any], hops: np.ndarray[Any, Any], matrix: Any) -> np.ndarray[Any, Any]:
    """The sum over k of p_k(A) X c_k, by Horner's rule for powers and Clenshaw's for Chebyshev polynomials."""
    chebyshev = ABOUT["basis"] == "chebyshev"
    weighed = [x @ c if c.ndim == 2 else x * c for c in hops]
    y, lagged = weighed[-1], None
    for k in reversed(range(len(weighed) - 1)):
        found = (2.0 if chebyshev and k > 0 else 1.0) * _product(matrix, y) + weighed[k]
        y, lagged = found if lagged is None else found - lagged, y if chebyshev else None
    return y


def _normalised(edges: Any, nodes: int) -> Any:
    """Self-loops added, both directions, D^(-1/2) W D^(-1/2): as the network was trained to see graphs."""
    if not ABOUT["other_graphs"]:
        raise ValueError("the network was trained on a graph that was normalised in another way: give no edges")
    pairs = np.asarray(edges)
    if pairs.ndim != 2 or pairs.shape[0] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(f"edges have shape {pairs.shape} of {pairs.dtype}: expected whole numbers of shape (2, edges)")
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < nodes:
        raise ValueError(f"edges name nodes from {pairs.min()} to {pairs.max()}, and there are {nodes}")
    loops = np.arange(nodes)
    key = np.unique(np.concatenate([pairs[0] * nodes + pairs[1], pairs[1] * nodes + pairs[0], loops * nodes + loops]))
    row, col = key // nodes, key % nodes
    degree = np.bincount(row, minlength=nodes)
    crow = np.concatenate([[0], np.cumsum(degree)])
    return crow, col, 1.0 / np.sqrt(degree[row] * degree[col].astype(float))


def _answer(h: np.ndarray[Any, Any], held: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    h = h / ABOUT["temperature"]
    if ABOUT["meaning"] == "classes":
        h = np.exp(h - h.max(axis=1, keepdims=True))
        return h / h.sum(axis=1, keepdims=True)
    if ABOUT["meaning"] in ("yes", "labels"):
        return _sigmoid(h)
    if ABOUT["meaning"] == "ordered":
        above = h[:, :1] - np.cumsum(np.hstack([0.0 * h[:, :1], np.logaddexp(0.0, h[:, 1:])]), axis=1)
        reached, none = _sigmoid(above), np.zeros((len(h), 1))
        return np.hstack([none + 1.0, reached]) - np.hstack([reached, none])
    h = np.exp(h) if ABOUT["meaning"] == "counts" else h
    return h * held["scale"] + held["centre"] if "scale" in held else h


def _sigmoid(h: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.exp(-np.logaddexp(0.0, -h))


def _main(words: list[str]) -> None:
    if len(words) != 2:
        sys.exit(f"usage: python {sys.argv[0]} features.npy predictions.npy (or .csv, with a line of names)")
    source, target = words
    x = (
        np.load(source, allow_pickle=False)
        if source.endswith(".npy")
        else np.loadtxt(source, delimiter=",", skiprows=1)
    )
    found = predict(np.atleast_2d(x))
    if target.endswith(".npy"):
        np.save(target, found)
    else:
        with open(target, "w", encoding="utf-8", newline="") as file:
            # Names of classes may have commas and quotes in them.
            csv.writer(file, lineterminator="\n").writerow(ABOUT["columns"])
            np.savetxt(file, found, delimiter=",")


if __name__ == "__main__":
    try:
        _main(sys.argv[1:])
    except (OSError, ValueError) as problem:
        sys.exit(str(problem))
