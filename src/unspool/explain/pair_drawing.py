"""One picture of why two nodes are thought to be linked: hops and nodes of either side."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from unspool.explain.drawing import GREY, draw_bars, finish, plain_text, short_name, sign_colour
from unspool.explain.pair import PairExplanation, Side
from unspool.explain.splitting import Method
from unspool.spectral.figure import figure_class_of_matplotlib, write_figure


def plot_pair(found: PairExplanation, path: str | os.PathLike[str] | None = None, *, top: int = 10) -> Any:
    """Draw the explanation of a pair in four panels: a row for each end, with contributions by hop and by node.

    Args:
        found: what :func:`~unspool.explain.explain_pair` gave.
        path: where to write the picture (.png, .svg or .pdf), whole or not at all.
        top: so many nodes, 25 at most.

    Returns:
        A matplotlib ``Figure``.

    Example:
        >>> import torch, unspool as us
        >>> from unspool.explain import explain_pair, plot_pair
        >>> found = explain_pair(us.models.SGC(4, 8), torch.eye(6, 4), us.graph.ring(6), 0, 2)
        >>> len(plot_pair(found).axes)
        4
    """
    figure_class = figure_class_of_matplotlib()
    count = min(max(top, 1), 25)
    figure = figure_class(figsize=(12, 7.2 + 0.32 * max(count - 10, 0)), dpi=110, layout="constrained")
    rows = figure.subplots(2, 2, width_ratios=(1, 1.4))
    one, other = found.sides
    for axes, side, partner in zip(rows, (one, other), (other, one), strict=True):
        _draw_hops(axes[0], side)
        _draw_nodes(axes[1], found, side, partner, count)
    figure.suptitle(plain_text(_title(found)), fontsize=12)
    if path is not None:
        write_figure(figure, Path(path))
    return figure


def _title(found: PairExplanation) -> str:
    one, other = (short_name(side.name, 30) for side in found.sides)
    linked = "linked already" if found.edge else "not linked yet"
    told = f"{found.model}, {one} and {other}: probability {100 * found.probability:.0f} %, score {found.score:.3g} ({linked})"
    exact = all(side.split.method is Method.EXACT for side in found.sides)
    return told if exact else f"{told}   first-order split"


def _draw_hops(axis: Any, side: Side) -> None:
    rows = side.hop_rows()
    names, values = [name for name, _ in rows], [value for _, value in rows]
    axis.axhline(0, color=GREY, linewidth=0.8)
    axis.bar(range(len(rows)), values, color=[sign_colour(v) for v in values], width=0.7)
    shown = range(0, len(rows), -(-len(rows) // 13))
    axis.set_xticks(list(shown), [names[k] for k in shown])
    axis.set_xlim(-0.7, max(len(rows), 3) - 0.3)
    hops = side.split.by_hop is not None
    name = plain_text(short_name(side.name, 24))
    finish(axis, f"what reached {name}, by {'hop' if hops else 'distance'}", "hop k" if hops else "edges away")


def _draw_nodes(axis: Any, found: PairExplanation, side: Side, partner: Side, count: int) -> None:
    places, labels = side.largest(count), list[str]()
    for p in places:
        node, far = int(side.split.nodes[p]), int(side.distance[p])
        away = "no way" if far < 0 else f"{far} edge{'' if far == 1 else 's'}"
        who = "itself" if node == side.node else f"the other end, {away}" if node == partner.node else away
        labels.append(f"{short_name(found.name_of(node), 20)} ({who})")
    values = [float(side.split.total[p]) for p in places]
    rest = side.split.nodes.numel() - len(places)
    others = f"   ({rest} others together: {float(side.split.total.sum()) - sum(values):.3g})" if rest > 0 else ""
    draw_bars(axis, labels, values)
    finish(
        axis, f"whose features they are, seen by {plain_text(short_name(partner.name, 24))}", f"contribution{others}"
    )
