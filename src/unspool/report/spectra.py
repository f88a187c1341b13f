"""What the seeds of a job have learnt: frequency responses and hop coefficients, with their spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError
from unspool.graph import Graph, spectral_density
from unspool.models import load_pretrained
from unspool.models.registry import find_stored
from unspool.ops import Basis
from unspool.report.figure import Panel, finish
from unspool.report.seeds import Seed
from unspool.report.table import Cell, Table
from unspool.report.text import counted, shown
from unspool.spectral import response
from unspool.spectral.drawing import BLUE, GREEN, GREY, ORANGE, PALE
from unspool.spectral.linear_form import Neither, propagation_of, read

#: Where responses are evaluated, and where the table shows them.
GRID = torch.linspace(0, 2, 121, dtype=torch.float64)
SHOWN = 15


@dataclass(frozen=True, eq=False)
class Spread:
    """A quantity of each seed: ``values`` has a row for each."""

    name: str
    values: Tensor

    @property
    def same(self) -> bool:
        """Whether all seeds have the same numbers, because nothing about them is learnt."""
        return bool((self.values - self.values[:1]).abs().max() <= 1e-9 * (1 + self.values.abs().max()))


@dataclass(frozen=True, eq=False)
class Learnt:
    """What was read from the weights of the seeds.

    Attributes:
        seeds: the names of those that could be read.
        gain: the response on :data:`GRID`.
        band: smallest and largest over channels, directions and seeds, where there are several.
        hops: quantities by hop.
        chebyshev: whether hops multiply Chebyshev polynomials of A instead of powers.
        unread: sentences about what could not be read.
    """

    seeds: tuple[str, ...]
    gain: Spread | None
    band: tuple[Tensor, Tensor] | None
    hops: tuple[Spread, ...]
    chebyshev: bool
    unread: tuple[str, ...]


def learnt(seeds: Sequence[Seed], model: type[nn.Module] | None = None, changed_code: bool = False) -> Learnt:
    """Read the weights of seeds; what cannot be read exactly is said in a sentence.

    Args:
        seeds: of one job.
        model: the class, where it is not of this package: a card is not allowed to name code, and without it nothing is imported.
        changed_code: take it although its code was another one then.

    Example:
        >>> import tempfile, unspool as us
        >>> from unspool.models.pretrained import save_pretrained
        >>> from unspool.report.seeds import read_job
        >>> out = tempfile.mkdtemp()
        >>> place = save_pretrained(us.models.APPNP(5, 3, depth=2, teleport=0.5), out + "/seed0")
        >>> learnt(read_job(out).seeds).hops[0].values
        tensor([[0.5000, 0.2500, 0.2500]], dtype=torch.float64)
    """
    try:
        find_stored(seeds[0].card["model"], model)
    except IncompatibleError as problem:
        name = seeds[0].card["model"]
        if model is not None or ":" not in str(name):
            return _nothing(f"What it learnt is not shown: {problem}.")
        return _nothing(
            f"What it learnt is not shown: the file holds a model {name}, which is not imported just because a file names it; if you "
            f"trust it, give its class: --model {name} (in Python model=...)."
        )
    nets: list[tuple[str, Any]] = []
    unread: list[str] = []
    for seed in seeds:
        try:
            nets.append((seed.name, load_pretrained(seed.place, model=model, changed_code=changed_code)))
        except (OSError, ValueError, TypeError) as problem:
            unread.append(f"Seed {seed.name} could not be read: {problem}.")
    return read_models(nets, unread)


def read_models(nets: Sequence[tuple[str, Any]], unread: Sequence[str] = ()) -> Learnt:
    """The same of models that are in memory, each with the name of its seed.

    Example:
        >>> import unspool as us
        >>> read_models([("0", us.models.APPNP(5, 3, depth=2, teleport=0.5))]).seeds
        ('0',)
    """
    names: list[str] = []
    found: list[tuple[Any, Any]] = []
    missing = list(unread)
    for name, model in nets:
        try:
            kind = read(model)
            if isinstance(kind, Neither):
                return _nothing(f"{kind.reason}, so it has no exact response to draw.")
            found.append((propagation_of(model), response(model)))
            names.append(name)
        except (ValueError, TypeError) as problem:
            missing.append(f"Seed {name} could not be read: {problem}.")
    if not found:
        return _nothing(*missing)
    gain, band = _gains([h for _, h in found])
    hops = () if any(h.hops is None for _, h in found) else _hops(found)
    return Learnt(tuple(names), gain, band, hops, found[0][1].basis is Basis.CHEBYSHEV, tuple(missing))


def _nothing(*why: str) -> Learnt:
    return Learnt((), None, None, (), False, why)


def _gains(responses: list[Any]) -> tuple[Spread, tuple[Tensor, Tensor] | None]:
    values = [h(GRID) for h in responses]
    if values[0].ndim == 1:
        return Spread("response h(λ)", torch.stack(values)), None
    lines = torch.stack(values if values[0].ndim == 2 else [h.gains(GRID) for h in responses])
    band = (lines.amin((0, 2)), lines.amax((0, 2)))
    if values[0].ndim == 2:
        return Spread("response, mean over channels", lines.mean(2)), band
    return Spread("median gain", lines.quantile(0.5, dim=2)), band


def _hops(found: list[tuple[Any, Any]]) -> tuple[Spread, ...]:
    hops = torch.stack([h.hops for _, h in found])
    if hops.ndim == 2:
        return (Spread("γₖ", hops),)
    if hops.ndim == 3:
        return (Spread("cₖ, mean over channels", hops.mean(2)),)
    own = [getattr(net, "gamma", None) for net, _ in found]
    free = [g.detach().to("cpu", torch.float64) for g in own if isinstance(g, Tensor) and g.ndim == 1]
    diagonal = Spread("mean of the diagonal of cₖ", hops.diagonal(dim1=2, dim2=3).mean(2))
    norm = Spread("spectral norm of cₖ", torch.linalg.matrix_norm(hops, ord=2))
    gamma = [Spread("γₖ", torch.stack(free))] if len(free) == len(found) else []
    return (*gamma, diagonal, norm)


# -- tables ------------------------------------------------------------------------------------------------------------


def response_table(what: Learnt, caption: str = "Frequency response") -> Table:
    """The response at some frequencies."""
    assert what.gain is not None
    rows = [
        [_cell(float(GRID[k]), 2), *_three(what.gain, k), *([_cell(float(edge[k])) for edge in what.band or ()])]
        for k in range(0, GRID.numel(), SHOWN)
    ]
    wide = ["smallest of any channel", "largest of any channel"] if what.band else []
    return Table(f"{caption}: {what.gain.name}", ["λ", *_heads(what.gain, ""), *wide], rows)


def hop_table(what: Learnt) -> Table:
    """The hop coefficients."""
    heads = [head for s in what.hops for head in _heads(s, s.name)]
    count = what.hops[0].values.shape[1]
    rows = [[_cell(float(k), 0), *(c for s in what.hops for c in _three(s, k))] for k in range(count)]
    return Table(f"Hop coefficients, {counted(len(what.seeds), 'seed')}", ["hop k", *heads], rows)


def _heads(spread: Spread, name: str) -> list[str]:
    if spread.values.shape[0] == 1 or spread.same:
        return [name if name else "value"]
    start = f"{name}: " if name else ""
    return [f"{start}mean", "smallest", "largest"]


def _three(spread: Spread, place: int) -> list[Cell]:
    column = spread.values[:, place]
    if spread.values.shape[0] == 1 or spread.same:
        return [_cell(float(column[0]))]
    return [_cell(float(v)) for v in (column.mean(), column.min(), column.max())]


def _cell(value: float, digits: int = 4) -> Cell:
    return Cell(shown(value, digits), value)


# -- drawings ----------------------------------------------------------------------------------------------------------


def response_panel(
    what: Learnt,
    graph: Graph | tuple[Tensor, Tensor] | None = None,
    *,
    name: str = "response",
    title: str = "frequency response",
) -> Panel:
    """Each seed's response and their mean, over the density of a graph's frequencies, or one that :func:`scaled_density` made."""
    assert what.gain is not None
    gain, lines = what.gain, what.gain.values
    several = lines.shape[0] > 1 and not gain.same

    def draw(axis: Any) -> None:
        axis.axhline(0, color=GREY, linewidth=0.8)
        if what.band is not None:
            which = "all channels and seeds" if several else "all channels"
            axis.fill_between(GRID, *what.band, color=BLUE, alpha=0.18, linewidth=0, label=which)
        if several:
            for k, line in enumerate(lines):
                axis.plot(GRID, line, color=BLUE, linewidth=1, alpha=0.8, label=None if k else "each seed")
        axis.plot(GRID, lines.mean(0), color=ORANGE, linewidth=2.2, label="mean of seeds" if several else gain.name)
        low, high = axis.get_ylim()
        low = min(low, -0.03 * (high - low))
        axis.set(xlim=(0, 2), ylim=(low, high))
        if graph is not None:
            density = scaled_density(graph) if isinstance(graph, Graph) else graph
            _draw_density(axis, *density, -low / (high - low))
        finish(axis, title, "graph frequency λ", gain.name)

    ends = [f"{shown(float(lines[:, k].mean()), 3)} at λ = {float(GRID[k]):g}" for k in (0, 30, 60, 90, 120)]
    kind = (
        f"mean of {counted(lines.shape[0], 'seed')}"
        if several
        else "the same for every seed"
        if lines.shape[0] > 1
        else "one seed"
    )
    return Panel(name, f"Line chart of the {gain.name} ({kind}): {', '.join(ends)}.", draw)


def scaled_density(graph: Graph) -> tuple[Tensor, Tensor]:
    """Where a graph's frequencies lie between 0 and 2, and how dense they are there.

    Example:
        >>> import unspool as us
        >>> where, height = scaled_density(us.graph.ring(30))
        >>> bool(where.max() <= 2 and (height >= 0).all())
        True
    """
    density = spectral_density(graph)
    return density.frequency / graph.scale, density.value * graph.scale


def _draw_density(axis: Any, where: Tensor, height: Tensor, below: float) -> None:
    """Behind the response, standing on its zero line, on a scale that nobody needs; a spike may leave the panel."""
    behind = axis.twinx()
    behind.set_zorder(axis.get_zorder() - 1)
    axis.patch.set_visible(False)
    behind.fill_between(where, height, color=PALE, linewidth=0, label="density of the graph's λ")
    top, bulk = float(height.max()), float(height.quantile(0.97))
    top = 1.6 * (min(top, 3 * bulk) if bulk > 0 else max(top, 1e-12))
    behind.set(ylim=(-top * below / (1 - below), top), yticks=[])
    for side in behind.spines.values():
        side.set_visible(False)


def hop_panel(what: Learnt) -> Panel:
    """Each coefficient's mean, with a bar from the smallest to the largest seed."""
    count, kinds = what.hops[0].values.shape[1], len(what.hops)
    looks = ((BLUE, "o"), (ORANGE, "D"), (GREEN, "s"))

    def draw(axis: Any) -> None:
        axis.axhline(0, color=GREY, linewidth=0.8)
        for place, (spread, (colour, marker)) in enumerate(zip(what.hops, looks, strict=False)):
            where = torch.arange(count) + 0.2 * (place - (kinds - 1) / 2)
            low, mean, high = spread.values.amin(0), spread.values.mean(0), spread.values.amax(0)
            axis.vlines(where, low, high, color=colour, linewidth=3, alpha=0.55)
            axis.plot(where, mean, marker, color=colour, markersize=4.5, label=spread.name)
        _whole(axis, count)
        polynomial = "Tₖ(A)" if what.chebyshev else "Aᵏ"
        finish(axis, "hop coefficients", "hop k", f"coefficient of {polynomial}")

    means = ", ".join(shown(float(v), 3) for v in what.hops[0].values.mean(0)[:31])
    label = f"Hop coefficients for k = 0 to {count - 1}, {counted(len(what.seeds), 'seed')}; {what.hops[0].name} is {means} on average."
    return Panel("hops", label, draw)


def _whole(axis: Any, count: int) -> None:
    step = 1 + (count - 1) // 12
    axis.set_xticks(range(0, count, step))
    axis.set_xlim(-0.6, count - 0.4)
