"""``unspool denoise``: signals on a graph in, denoised signals out; no labels, no training."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from unspool import datasets
from unspool.cli.data_options import direction_is_noted
from unspool.cli.progress import LiveScreen
from unspool.cli.tables import check_table, write_table
from unspool.cli.terminal import Terminal, echo
from unspool.datasets.files import Signals, read_signals
from unspool.datasets.node_files import Columns
from unspool.denoise import GCV, SURE, BentMeanWarning, Denoised, HeldOut, denoise
from unspool.denoise.constant import MOST, bent_mean
from unspool.denoise.missing import check_fillable
from unspool.errors import DataError, mention
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
    drop_columns: tuple[str, ...]
    header: bool | None
    problem: str
    fill: bool
    seed: int
    weight: float | None
    choose: str | None
    noise: float | None
    normalise: str
    out: Path
    as_json: bool


def run(options: DenoiseOptions) -> None:
    """Read, choose, solve, write."""
    check_table(options.out, also=(".npy",))
    if options.noise is not None and (options.choose in ("gcv", "held-out") or options.weight is not None):
        raise ValueError("--noise is used by --choose sure; the others estimate it, or need none")
    if options.problem == "robust" and (options.choose in ("sure", "gcv") or options.noise is not None):
        raise ValueError(
            "--choose sure and gcv and --noise take values that are far off for signal, and --problem robust is there to leave them out; choose "
            "its weight with --choose held-out, or give it with --weight"
        )
    columns = Columns(
        options.id_column, options.feature_columns if options.feature_columns else None, header=options.header, drop=options.drop_columns
    )  # fmt: skip
    with direction_is_noted(), solve_reports():
        signals = read_signals(options.edges, options.features, columns, gaps=True)
        graph, x = _graph(signals.dataset, options.normalise), torch.from_numpy(signals.values)
        _check_gaps(signals, graph, x, options)
        rule = _rule(options, gaps=bool(x.isnan().any()))
        with TriedScreen(Terminal(stderr=True), options.as_json) as screen, warnings.catch_warnings():
            warnings.simplefilter("ignore", BentMeanWarning)  # it is a note here
            found = denoise(x, graph, rule, problem=options.problem, progress=screen.show)
    _write(options.out, signals, found)
    missed = () if found.report.converged else (f"the solver missed its tolerance ({found.report})",)
    _say(options, graph, x, found, (*signals.dataset.notes, *missed, *_bent(x, graph)))


def _check_gaps(signals: Signals, graph: Graph, x: torch.Tensor, options: DenoiseOptions) -> None:
    """Refuse missing values that nobody asked to fill in, or that cannot be."""
    missing, data = x.isnan(), signals.dataset
    if not bool(missing.any()):
        return
    if not options.fill:
        node, column = torch.nonzero(missing)[0].tolist()
        name = column if signals.names is None else repr(signals.names[column])
        many = int(missing.sum())
        raise DataError(
            options.features.name,
            f"column {name} has no value at node {node if data.names is None else data.names[node]}"
            + (f", and {many - 1} more are missing" if many > 1 else ""),
            f"{mention('fill')} fills them in from their neighbours",
        )
    check_fillable(~missing, graph, signals.names, data.names)


def _bent(x: torch.Tensor, graph: Graph) -> tuple[str, ...]:
    """A remark where the normalisation decides what is taken away."""
    times = bent_mean(x, graph)
    if times <= MOST:
        return ()
    return (
        f"--normalise symmetric rescales constant signals by the degrees of the nodes, and bends the mean of these by {times:.3g} standard "
        "deviations; subtract the mean first, or use --normalise none",
    )


def _graph(data: datasets.Dataset, normalise: str) -> Graph:
    """The graph in float64: as models see it, or with the plain Laplacian, which keeps constants."""
    if normalise == "symmetric":
        return data.graph.to(torch.float64)
    made = Graph.from_edges(
        data.edge_index, data.nodes, data.edge_weight, normalise=Normalisation.NONE, loops=0.0, directed=False
    )
    return made.to(torch.float64)


def _rule(options: DenoiseOptions, gaps: bool) -> float | GCV | SURE | HeldOut:
    if options.weight is not None:
        if options.choose is not None:
            raise ValueError("--weight gives the weight and --choose a rule for it; give one of them")
        return options.weight
    if gaps and (options.choose in ("sure", "gcv") or options.noise is not None):
        raise ValueError(
            "--choose sure and gcv and --noise need signals without gaps; use --choose held-out or --weight with --fill"
        )
    if options.choose == "held-out" or (
        options.choose is None and options.noise is None and (gaps or options.problem != "smooth")
    ):
        return HeldOut(seed=options.seed)
    return GCV(seed=options.seed) if options.choose == "gcv" else SURE(noise=options.noise, seed=options.seed)


class TriedScreen(LiveScreen[Progress]):
    """How many candidates have been tried: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, console: Terminal, as_json: bool) -> None:
        super().__init__(console, as_json)
        self._bar: Any = None
        if console.is_terminal and not as_json:
            columns = (TextColumn("choosing α"), BarColumn(20), MofNCompleteColumn())
            self._live = Progress(*columns, console=console, transient=True, refresh_per_second=5)

    def show(self, done: int, most: int) -> None:
        """So many solves of at most so many."""
        if self._live is not None:
            self._bar = self._live.add_task("", total=most) if self._bar is None else self._bar
            self._live.update(self._bar, completed=done)
        elif not self.as_json and self._is_time():
            echo(f"choosing α: {done} of at most {most} solves", err=True)


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
    gaps = int(x.isnan().sum())
    moved = float((found.signal - x)[~x.isnan()].square().mean().sqrt())
    facts = {"nodes": graph.nodes, "signals": int(x.shape[1]), "problem": options.problem, "filled": gaps, "weight": choice.weight, "noise": choice.noise, "moved": moved, "iterations": found.report.iterations, "residual": found.report.residual, "notes": list(notes), "out": str(options.out)}  # fmt: skip
    if options.as_json:
        echo(json.dumps(facts))
        return
    for note in notes:
        echo(f"note: {note}", err=True)
    names: dict[type, str] = {GCV: "by GCV", SURE: "by SURE", HeldOut: "by held-out values", float: "by hand"}
    noise = "" if choice.noise is None else f"; noise of standard deviation {choice.noise:.4g}"
    echo(f"{graph}\nminimises  {found.objective}   (α chosen {names[type(_rule(options, gaps > 0))]}{noise})")
    filled = f", {gaps} missing values filled in" if gaps else ""
    echo(
        f"{facts['signals']} signal{'' if facts['signals'] == 1 else 's'} on {graph.nodes} nodes moved by {moved:.4g} (root mean square){filled}\nwritten: {options.out}"
    )
