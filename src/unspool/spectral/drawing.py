"""One picture of a network: its response, its hop coefficients, and where the energy goes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unspool.graph import Graph, spectral_density
from unspool.ops import Basis
from unspool.spectral.energies import BANDS, Energy, energy
from unspool.spectral.figure import figure_class_of_matplotlib, write_figure
from unspool.spectral.fit import Fit
from unspool.spectral.measuring import MeasuredResponse
from unspool.spectral.responses import Response, response

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, GREY, PALE = "#0072B2", "#D55E00", "#009E73", "#6E6E6E", "#DADADA"

#: Up to this many singular directions are drawn one by one.
FEW = 8

#: Energies below this share of the input's are not drawn.
FLOOR = 1e-8


def plot(
    what: Any,
    graph: Graph | None = None,
    x: Tensor | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    bands: Sequence[float] = BANDS,
    features: int | None = None,
    known: Response | None = None,
) -> Any:
    """Draw what a network does to frequencies, in up to three panels.

    1. The response over [0, 2], above the graph's own density of frequencies: h for numbers and diagonals, singular values for
       matrices, points where it was measured.
    2. The hop coefficients: bars for numbers, mean and range for diagonals, spectral norm and mean of the diagonal for
       matrices. Measured responses show their coherence here; exact minimisers have neither.
    3. With ``x``, the energy along depth in each frequency band, relative to that of ``x``.

    Needs no display and leaves pyplot alone.

    Args:
        what: a network, a model, a :class:`Response` or a :class:`Fit`.
        graph: whose frequencies are drawn, and where networks that are not linear are measured.
        x: a signal to follow, of shape (nodes, features).
        path: where to write the picture (.png, .svg or .pdf), whole or not at all.
        title: above the figure.
        bands: edges of the frequency bands in panel 3.
        features: the width of the noise, for networks that are measured; see :func:`response`.
        known: the response of ``what``, where it was found before: measuring takes a while on large graphs.

    Returns:
        A matplotlib ``Figure``.

    Example:
        >>> import torch, unspool as us
        >>> net = us.unroll(us.Fidelity(0.1) + us.Smoothness(0.9), us.GradientDescent(step=0.5), depth=10)
        >>> figure = plot(net, us.graph.ring(8), torch.eye(8))
        >>> [axis.get_xlabel() for axis in figure.axes if axis.get_xlabel()]
        ['graph frequency λ', 'hop k', 'depth k']
    """
    figure_class = figure_class_of_matplotlib()
    h = what if isinstance(what, Response) else what.response if isinstance(what, Fit) else known
    if h is None:
        h = response(what, graph, features=features)
    along = None
    if x is not None:
        if graph is None:
            raise ValueError("following x through the network needs its graph; give graph= too")
        along = energy(h if isinstance(what, Response | Fit) else what, x, graph, bands)
    middle = isinstance(h, MeasuredResponse) or h.hops is not None
    count = 1 + int(middle) + int(along is not None)
    figure = figure_class(figsize=(4.7 * count, 4.3), dpi=130, layout="constrained")
    panels = list(figure.subplots(1, count, squeeze=False)[0])
    _draw_response(panels.pop(0), h, graph)
    if isinstance(h, MeasuredResponse):
        _draw_coherence(panels.pop(0), h)
    elif h.hops is not None:
        _draw_hops(panels.pop(0), h.hops, h.basis)
    if along is not None:
        _draw_energy(panels.pop(0), along)
    if title is not None:
        figure.suptitle(title, fontsize=11)
    if path is not None:
        write_figure(figure, Path(path))
    return figure


# -- panels ------------------------------------------------------------------------------------------------------------


def _draw_response(axis: Any, h: Response, graph: Graph | None) -> None:
    axis.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    where = torch.linspace(0, 2, 401, dtype=torch.float64)
    if isinstance(h, MeasuredResponse):
        axis.plot(h.frequency, h.gain, "o", color=BLUE, markersize=3.5, alpha=0.7, label="measured gain", zorder=3)
        label = "gain"
    else:
        value = h(where)
        label = {1: "response h(λ)", 2: "response of each channel", 3: "gain (singular values of h)"}[value.ndim]
        if value.ndim == 1:
            axis.plot(where, value, color=BLUE, linewidth=2, label="h(λ)", zorder=3)
        else:
            _draw_many(axis, where, value if value.ndim == 2 else h.gains(where), value.ndim == 3)
    low, high = axis.get_ylim()
    low = min(low, -0.03 * (high - low))
    axis.set(xlim=(-0.03, 2.03), ylim=(low, high), ylabel=label)
    if graph is not None:
        _draw_density(axis, graph, below=-low / (high - low))
    _finish(axis, "frequency response", "graph frequency λ")


def _draw_many(axis: Any, where: Tensor, lines: Tensor, ordered: bool) -> None:
    """Several channels or singular directions: the range as a light band, some lines inside it."""
    low, high = lines.amin(1), lines.amax(1)
    axis.fill_between(where, low, high, color=BLUE, alpha=0.15, linewidth=0, label="range", zorder=2)
    count = lines.shape[1]
    if count <= FEW:
        name = "each direction" if ordered else "each channel"
        for k in range(count):
            axis.plot(where, lines[:, k], color=BLUE, linewidth=1, label=name if k == 0 else None, zorder=3)
    else:
        for edge in (low, high):
            axis.plot(where, edge, color=BLUE, linewidth=0.8, zorder=3)
    if count > 2:
        middle = lines.quantile(0.5, dim=1)
        axis.plot(where, middle, color=ORANGE, linewidth=2, linestyle="--", label=f"median of {count}", zorder=4)


def _draw_density(axis: Any, graph: Graph, below: float) -> None:
    """Behind the response, standing on its zero line (``below`` of the panel lies under it), on a scale that nobody needs."""
    density = spectral_density(graph)
    behind = axis.twinx()
    behind.set_zorder(axis.get_zorder() - 1)
    axis.patch.set_visible(False)
    height = density.value * graph.scale
    behind.fill_between(density.frequency / graph.scale, height, color=PALE, linewidth=0)
    top = 1.6 * _tall(height)
    behind.set(ylim=(-top * below / (1 - below), top), yticks=[])
    for side in behind.spines.values():
        side.set_visible(False)
    axis.fill_between([], [], color=PALE, linewidth=0, label="density of the graph's frequencies")


def _tall(height: Tensor) -> float:
    """A height that shows the bulk of a density: a spike (isolated nodes, say) may leave the panel."""
    top, bulk = float(height.max()), float(height.quantile(0.97))
    return min(top, 3 * bulk) if bulk > 0 else max(top, 1e-12)


def _draw_hops(axis: Any, hops: Tensor, basis: Basis | None) -> None:
    k = torch.arange(hops.shape[0])
    axis.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    if hops.ndim == 1:
        colours = [BLUE if float(c) >= 0 else ORANGE for c in hops]
        axis.bar(k.numpy(), hops.numpy(), color=colours, width=0.7, zorder=2)
    elif hops.ndim == 2:
        middle, low, high = hops.mean(1), hops.amin(1), hops.amax(1)
        axis.vlines(
            k.numpy(),
            low.numpy(),
            high.numpy(),
            color=BLUE,
            alpha=0.35,
            linewidth=5,
            label="range over channels",
            zorder=2,
        )
        axis.plot(k, middle, "o", color=ORANGE, markersize=4.5, label="mean", zorder=3)
    else:
        norm = torch.linalg.matrix_norm(hops, ord=2)
        axis.bar(k.numpy(), norm.numpy(), color=BLUE, alpha=0.45, width=0.7, label="spectral norm", zorder=2)
        diagonal = hops.diagonal(dim1=1, dim2=2).mean(1)
        axis.plot(k, diagonal, "D", color=ORANGE, markersize=4.5, label="mean of the diagonal", zorder=3)
    axis.set(ylabel="coefficient of Tₖ(A)" if basis is Basis.CHEBYSHEV else "coefficient of Aᵏ")
    _whole(axis, hops.shape[0])
    _finish(axis, "hop coefficients", "hop k")


def _draw_coherence(axis: Any, h: MeasuredResponse) -> None:
    axis.plot(h.frequency, h.coherence, "o", color=GREEN, markersize=3.5, alpha=0.7)
    axis.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    axis.annotate("linear", (2, 1), (-4, -4), textcoords="offset points", ha="right", va="top", fontsize=8, color=GREY)
    axis.set(xlim=(-0.03, 2.03), ylim=(-0.03, 1.06), ylabel="coherence of output with input")
    _finish(axis, "how linear it is", "graph frequency λ")


def _draw_energy(axis: Any, along: Energy) -> None:
    import matplotlib

    first = along.input if along.input > 0 else 1.0
    depth = torch.arange(along.total.numel())
    tones = matplotlib.colormaps["viridis"]
    count = along.bands.shape[1]
    marker = "o" if depth.numel() <= 24 else ""
    for b, name in enumerate(along.names):
        share = along.bands[:, b] / first
        look: dict[str, Any] = {"color": tones(0.9 * b / max(count - 1, 1)), "marker": marker, "markersize": 3}
        if float(share.max()) < FLOOR:
            axis.plot([], [], linewidth=1.8, label=f"λ {name}: none", **look)
        else:
            axis.plot(depth, share.clamp_min(FLOOR / 10), linewidth=1.8, label=f"λ {name}", **look)
    total = along.total / first
    axis.plot(depth, total.clamp_min(FLOOR / 10), color="black", linewidth=1.4, linestyle="--", label="all")
    shown = torch.cat([(along.bands / first).flatten(), total])
    shown = shown[shown >= FLOOR]
    low, high = (float(shown.min()), float(shown.max())) if shown.numel() else (0.1, 1.0)
    axis.set(
        yscale="log", ylim=(max(FLOOR, min(low, high / 10) / 1.5), 1.5 * high), ylabel="energy / energy of the input"
    )
    _whole(axis, depth.numel())
    _finish(axis, f"energy of the {along.followed}", "depth k", columns=3)


# -- around the panels -------------------------------------------------------------------------------------------------


def _finish(axis: Any, title: str, xlabel: str, columns: int = 2) -> None:
    axis.set_title(title, fontsize=10, loc="left")
    axis.set_xlabel(xlabel)
    axis.tick_params(labelsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    handles, _ = axis.get_legend_handles_labels()
    if handles:
        axis.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=min(columns, len(handles)), fontsize=8, frameon=False
        )


def _whole(axis: Any, count: int) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=min(10, max(count, 2))))
    axis.set_xlim(-0.6, count - 0.4)
