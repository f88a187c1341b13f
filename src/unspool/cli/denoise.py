"""``unspool denoise``: signals on a graph in, denoised signals out; no labels, no training."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unspool import datasets
from unspool.cli.data_options import direction_is_noted
from unspool.cli.tables import check_table, write_table
from unspool.cli.terminal import echo
from unspool.datasets.files import Signals, read_signals
from unspool.datasets.node_files import Columns
from unspool.denoise import GCV, SURE, Denoised, denoise
from unspool.files import write_whole
from unspool.graph import Graph, Normalisation
from unspool.ops import solve_reports


@dataclass(frozen=True)
class DenoiseOptions:
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


def run(options: DenoiseOptions) -> None:
    """Read, choose, solve, write."""
    check_table(options.out, also=(".npy",))
    if options.noise is not None and (options.choose == "gcv" or options.weight is not None):
        raise ValueError("--noise is used by --choose sure; the others estimate it, or need none")
    rule = _rule(options)
    columns = Columns(
        options.id_column, options.feature_columns if options.feature_columns else None, header=options.header
    )
    with direction_is_noted(), solve_reports():
        signals = read_signals(options.edges, options.features, columns)
        graph, x = _graph(signals.dataset, options.normalise), torch.from_numpy(signals.values)
        found = denoise(x, graph, rule)
    _write(options.out, signals, found)
    missed = () if found.report.converged else (f"the solver missed its tolerance ({found.report})",)
    _say(options, graph, x, found, signals.dataset.notes + missed)


def _graph(data: datasets.Dataset, normalise: str) -> Graph:
    """The graph in float64: as models see it, or with the plain Laplacian, which keeps constants."""
    if normalise == "symmetric":
        return data.graph.to(torch.float64)
    made = Graph.from_edges(
        data.edge_index, data.nodes, data.edge_weight, normalise=Normalisation.NONE, loops=0.0, directed=False
    )
    return made.to(torch.float64)


def _rule(options: DenoiseOptions) -> Any:
    if options.weight is not None:
        if options.choose is not None:
            raise ValueError("--weight gives the weight and --choose a rule for it; give one of them")
        return options.weight
    return GCV() if options.choose == "gcv" else SURE(noise=options.noise)


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


def _say(options: DenoiseOptions, graph: Graph, x: torch.Tensor, found: Denoised, notes: tuple[str, ...]) -> None:
    choice = found.choice
    moved = float((found.signal - x).square().mean().sqrt())
    facts = {"nodes": graph.nodes, "signals": int(x.shape[1]), "weight": choice.weight, "noise": choice.noise, "moved": moved, "iterations": found.report.iterations, "residual": found.report.residual, "notes": list(notes), "out": str(options.out)}  # fmt: skip
    if options.as_json:
        echo(json.dumps(facts))
        return
    for note in notes:
        echo(f"note: {note}", err=True)
    by = "by hand" if options.weight is not None else f"by {'GCV' if options.choose == 'gcv' else 'SURE'}"
    noise = "" if choice.noise is None else f"; noise of standard deviation {choice.noise:.4g}"
    echo(f"{graph}\nminimises  {found.objective}   (α chosen {by}{noise})")
    echo(
        f"{facts['signals']} signals on {graph.nodes} nodes moved by {moved:.4g} (root mean square)\nwritten: {options.out}"
    )
