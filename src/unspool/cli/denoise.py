"""``unspool denoise``: signals on a graph in, denoised signals out; no labels, no training."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unspool import datasets
from unspool.cli.source import noted, said_in_options
from unspool.cli.tables import check_table, write_table
from unspool.cli.terminal import echo
from unspool.datasets.files import Signals, read_signals
from unspool.datasets.node_files import Columns
from unspool.denoise import GCV, SURE, Denoised, denoise
from unspool.files import write_whole
from unspool.graph import Graph, Normalisation
from unspool.ops.convergence import solve_reports


@dataclass(frozen=True)
class Order:
    """What the user asked for."""

    edges: Path
    features: Path
    id_column: str | None
    feature_columns: tuple[str, ...]
    header: bool | None
    weight: float | None
    choose: str | None
    noise: float | None
    normalise: str
    out: Path
    as_json: bool


def run(order: Order) -> None:
    """Read, choose, solve, write."""
    check_table(order.out, also=(".npy",))
    if order.noise is not None and (order.choose == "gcv" or order.weight is not None):
        raise ValueError("--noise is used by --choose sure; the others find it out, or need none")
    rule = _rule(order)
    columns = Columns(order.id_column, order.feature_columns if order.feature_columns else None, header=order.header)
    with said_in_options(), noted(), solve_reports():
        signals = read_signals(order.edges, order.features, columns)
        graph, x = _graph(signals.dataset, order.normalise), torch.from_numpy(signals.values)
        found = denoise(x, graph, rule)
    _write(order.out, signals, found)
    missed = () if found.report.converged else (f"the solver missed its tolerance ({found.report})",)
    _say(order, graph, x, found, signals.dataset.notes + missed)


def _graph(data: datasets.Dataset, normalise: str) -> Graph:
    """The graph in float64: as models see it, or with the plain Laplacian, which keeps constants."""
    if normalise == "symmetric":
        return data.graph.to(torch.float64)
    made = Graph.from_edges(
        data.edge_index, data.nodes, data.edge_weight, normalise=Normalisation.NONE, loops=0.0, directed=False
    )
    return made.to(torch.float64)


def _rule(order: Order) -> Any:
    if order.weight is not None:
        if order.choose is not None:
            raise ValueError("--weight gives the weight and --choose a rule for it; give one of them")
        return order.weight
    return GCV() if order.choose == "gcv" else SURE(noise=order.noise)


def _write(out: Path, signals: Signals, found: Denoised) -> None:
    """The same columns again, with all their digits."""
    data, values = signals.dataset, found.signal.numpy()
    if out.suffix.lower() == ".npy":
        write_whole(out, lambda file: np.save(file, values))
        return
    names = signals.names if signals.names is not None else [f"x{c}" for c in range(values.shape[1])]
    ids = range(data.nodes) if data.names is None else data.names
    called = "id" if signals.id_name is None else signals.id_name
    write_table(
        out, [(called, [str(i) for i in ids]), *((name, values[:, c]) for c, name in enumerate(names))], exact=True
    )


def _say(order: Order, graph: Graph, x: torch.Tensor, found: Denoised, notes: tuple[str, ...]) -> None:
    choice = found.choice
    moved = float((found.signal - x).square().mean().sqrt())
    facts = {"nodes": graph.nodes, "signals": int(x.shape[1]), "weight": choice.weight, "noise": choice.noise, "moved": moved, "iterations": found.report.iterations, "residual": found.report.residual, "notes": list(notes), "out": str(order.out)}  # fmt: skip
    if order.as_json:
        echo(json.dumps(facts))
        return
    for note in notes:
        echo(f"note: {note}", err=True)
    by = "by hand" if order.weight is not None else f"by {'GCV' if order.choose == 'gcv' else 'SURE'}"
    noise = "" if choice.noise is None else f"; noise of standard deviation {choice.noise:.4g}"
    echo(f"{graph}\nminimises  {found.objective}   (α chosen {by}{noise})")
    echo(
        f"{facts['signals']} signals on {graph.nodes} nodes moved by {moved:.4g} (root mean square)\nwritten: {order.out}"
    )
