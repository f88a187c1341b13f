"""One picture of an explanation: hops, neighbours, what changed, parts, features, and the frequency response."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from unspool.explain.explanation import Explanation
from unspool.explain.score import Outputs
from unspool.explain.splitting import Method
from unspool.explain.text import channel_name, hop_rows, part_rows
from unspool.spectral.figure import figure_class_of_matplotlib, write_figure

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, GREY, PALE = "#0072B2", "#D55E00", "#009E73", "#6E6E6E", "#BFBFBF"

#: More channels than this are not drawn: those that moved most are.
CHANNELS = 12


def plot(found: Explanation, path: str | os.PathLike[str] | None = None, *, top: int = 10) -> Any:
    """Draw an explanation in six panels.

    Above: contributions by hop (by distance where the network is not linear), the neighbours that contribute most, and the
    node's channels before and after the denoiser. Below: the few parts that sum to the score, the node's own features behind
    its own part, and the frequency response. Blue speaks for the explained score, orange against it.

    Args:
        found: what :func:`~unspool.explain.explain` gave.
        path: where to write the picture (.png, .svg or .pdf), whole or not at all.
        top: so many neighbours and features, 25 at most.

    Returns:
        A matplotlib ``Figure``.

    Example:
        >>> import torch, unspool as us
        >>> from unspool.explain import explain, plot
        >>> found = explain(us.models.SGC(4, 2), torch.eye(6, 4), us.graph.ring(6), node=0)
        >>> len(plot(found).axes)
        6
    """
    figure_class = figure_class_of_matplotlib()
    count = min(max(top, 1), 25)
    size = (15.5, 8.2 + 0.16 * max(count - 10, 0))
    figure = figure_class(figsize=size, dpi=110, layout="constrained")
    above, below = figure.subplots(2, 3, width_ratios=(1, 1.15, 1.15))
    _draw_hops(above[0], found)
    _draw_neighbours(above[1], found, count)
    _draw_change(above[2], found)
    _draw_parts(below[0], found)
    _draw_features(below[1], found, count)
    _draw_response(below[2], found)
    figure.suptitle(plain_text(_title(found)), fontsize=12)
    if path is not None:
        write_figure(figure, Path(path))
    return figure


def _title(found: Explanation) -> str:
    score = found.score
    what = f"{found.model}, node {short_name(found.name, 40)}: {score} = {score.value:.3g}"
    if score.probabilities is not None:
        sure = 100 * float(score.probabilities[score.predicted])
        what += f"   (predicted {short_name(score.names[score.predicted], 30)}, {sure:.0f} %)"
    return what if found.split.method is Method.EXACT else f"{what}   first-order split"


# -- panels ------------------------------------------------------------------------------------------------------------


def _draw_hops(axis: Any, found: Explanation) -> None:
    rows = hop_rows(found)
    names, values = [name for name, _ in rows], [value for _, value in rows]
    axis.axhline(0, color=GREY, linewidth=0.8)
    axis.bar(range(len(rows)), values, color=[sign_colour(v) for v in values], width=0.7)
    shown = range(0, len(rows), -(-len(rows) // 13))  # all of up to 13, every second of up to 26, ...
    axis.set_xticks(list(shown), [names[k] for k in shown])
    axis.set_xlim(-0.7, max(len(rows), 3) - 0.3)
    hops = found.split.by_hop is not None
    finish(axis, "contribution by hop" if hops else "contribution by distance", "hop k" if hops else "edges away")


def _draw_neighbours(axis: Any, found: Explanation, count: int) -> None:
    places = found.largest(count)
    if not places:
        say(axis, "neighbours", "no other node contributes")
        return
    labels: list[str] = []
    for p in places:
        far, kind = int(found.distance[p]), found.class_of(int(found.predicted[p]))
        away = "no way" if far < 0 else f"{far} edge{'' if far == 1 else 's'}"
        detail = f"{away}, {short_name(kind, 14)}" if kind else away
        labels.append(f"{short_name(found.name_of(int(found.split.nodes[p])), 20)} ({detail})")
    values = [float(found.split.total[p]) for p in places]
    rest = len(found.split.nodes) - 1 - len(places)
    # No bar: the sum of thousands of small ones would hide those that are shown.
    others = f"   ({rest} others together: {found.parts.neighbours - sum(values):.3g})" if rest > 0 else ""
    draw_bars(axis, [f"{short_name(found.name, 20)} (itself)", *labels], [found.parts.own, *values], emphasise=0)
    kinds = ", predicted class" if found.score.kind is Outputs.CLASSES else ""
    finish(axis, f"contribution of nodes (distance{kinds})", f"contribution{others}")


def _draw_change(axis: Any, found: Explanation) -> None:
    """Channels before and after; where layers change the width, the outputs without neighbours and with them."""
    change, names = found.change, found.score.names
    if change.comparable:
        before, after, words = change.before, change.after, ("before: its own features", "after: denoised")
        called, title = [channel_name(found, c) for c in range(before.numel())], "channels before and after"
    elif change.alone is None:
        say(axis, "before and after", "the width changes, and the network runs on no other graph")
        return
    else:
        before, after, words = change.alone, found.score.outputs, ("without its neighbours", "with them")
        called, title = (
            list(names if len(names) == before.numel() else ("output",)),
            "outputs without and with neighbours",
        )
    kept = torch.argsort((after - before).abs(), descending=True, stable=True)[:CHANNELS].sort().values.tolist()
    y = torch.arange(len(kept), dtype=torch.float64)
    axis.axvline(0, color=GREY, linewidth=0.8)
    axis.barh((y - 0.19).tolist(), before[kept].tolist(), height=0.36, color=PALE, label=words[0])
    axis.barh((y + 0.19).tolist(), after[kept].tolist(), height=0.36, color=GREEN, label=words[1])
    axis.set_yticks(y.tolist(), [plain_text(short_name(called[c], 18)) for c in kept])
    axis.set_ylim(max(len(kept), 3) - 0.4, -0.6)
    axis.use_sticky_edges = False
    axis.margins(x=0.05)
    some = f", the {len(kept)} of {before.numel()} that moved most" if before.numel() > len(kept) else ""
    finish(axis, f"{title}{some}", "value", legend=True)


def _draw_parts(axis: Any, found: Explanation) -> None:
    """A waterfall: each part begins where the one before it ended, and the last bar is the score."""
    short = {
        "its own features, directly (fidelity)": "own, directly\n(fidelity)",
        "its own features, back along edges and loops": "own, back\nalong edges",
        "features of other nodes": "other nodes",
        "bias of the decoder": "bias",
        "unexplained remainder": "remainder",
        "its own features": "own features",
    }
    rows = part_rows(found)
    begin, labels = 0.0, [short[name] for name, _ in rows]
    for y, (_, value) in enumerate(rows):
        axis.barh(y, value, left=begin, height=0.62, color=sign_colour(value))
        begin += value
        axis.plot([begin, begin], [y - 0.31, y + 1.31], color=GREY, linewidth=0.8)
    axis.barh(len(rows), found.score.value, height=0.62, color=GREY)
    axis.axvline(0, color=GREY, linewidth=0.8)
    axis.set_yticks(range(len(rows) + 1), [*labels, "score"])
    axis.set_ylim(len(rows) + 0.6, -0.6)
    axis.use_sticky_edges = False
    axis.margins(x=0.05)
    finish(axis, "where the score comes from", "running sum")


def _draw_features(axis: Any, found: Explanation, count: int) -> None:
    features = found.features
    if features is None or not features.columns.numel():
        reason = "the node has no features" if features is not None else "the encoder looks at more than this node"
        say(axis, "its own features", reason)
        return
    chosen = features.largest(count)
    names = features.names
    plain = all(names[p] == str(int(features.columns[p])) for p in chosen)
    labels = [f"feature {names[p]}" if plain else short_name(names[p], 26) for p in chosen]
    draw_bars(axis, labels, [float(features.shares[p]) for p in chosen])
    finish(axis, f"its own features, {len(chosen)} of {features.columns.numel()}", "contribution")


def _draw_response(axis: Any, found: Explanation) -> None:
    h = found.response
    if h is None:
        say(axis, "frequency response", "known only by measuring:\nunspool spectrum" if found.response_note else "none")
        return
    where = torch.linspace(0, 2, 201, dtype=torch.float64)
    value = h(where)
    axis.axhline(0, color=GREY, linewidth=0.8)
    if value.ndim == 1:
        axis.plot(where, value, color=BLUE, linewidth=2)
    else:
        gains = h.gains(where)
        low, high = gains.amin(1), gains.amax(1)
        axis.fill_between(where, low, high, color=BLUE, alpha=0.18, linewidth=0, label="range over directions")
        axis.plot(where, gains.median(1).values, color=BLUE, linewidth=2, label="median")
    axis.set(xlim=(-0.03, 2.03), ylabel="response h(λ)" if value.ndim == 1 else "gain")
    finish(axis, "frequency response", "graph frequency λ", legend=value.ndim > 1)


# -- around the panels -------------------------------------------------------------------------------------------------


def draw_bars(axis: Any, labels: list[str], values: list[float], emphasise: int | None = None) -> None:
    """One bar below another, each with its label."""
    axis.axvline(0, color=GREY, linewidth=0.8)
    drawn = axis.barh(range(len(values)), values, height=0.66, color=[sign_colour(v) for v in values])
    if emphasise is not None:
        drawn[emphasise].set(edgecolor="black", linewidth=1.0)
    axis.set_yticks(range(len(values)), [plain_text(label) for label in labels])
    axis.set_ylim(max(len(values), 3) - 0.4, -0.6)


def sign_colour(value: float) -> str:
    """Blue speaks for the score, orange against it."""
    return BLUE if value >= 0 else ORANGE


def finish(axis: Any, title: str, xlabel: str, legend: bool = False) -> None:
    """What every panel has."""
    axis.set_title(title, fontsize=10, loc="left")
    axis.set_xlabel(xlabel, fontsize=9)
    axis.tick_params(labelsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    if legend:
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, fontsize=8, frameon=False)


def say(axis: Any, title: str, words: str) -> None:
    """A panel that has nothing to draw says why."""
    axis.set_title(title, fontsize=10, loc="left")
    axis.text(0.5, 0.5, words, ha="center", va="center", fontsize=10, color=GREY, transform=axis.transAxes)
    axis.set(xticks=[], yticks=[])
    for side in axis.spines.values():
        side.set_visible(False)


def short_name(text: str, most: int) -> str:
    """A name that fits: its beginning and its end."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most - most // 2 - 1) :]}"


def plain_text(text: str) -> str:
    """Names are no formulas: a dollar sign is a dollar sign, and a line break none."""
    return " ".join(text.split()).replace("$", r"\$")
