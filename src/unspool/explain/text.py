"""An explanation in words and numbers, for a terminal."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
from torch import Tensor

from unspool.explain.explanation import Explanation
from unspool.explain.score import Outputs, predictions
from unspool.explain.splitting import Method

#: Width of the bars behind the numbers.
BAR = 24


def describe(found: Explanation, top: int = 10) -> str:
    """The whole story, for a terminal."""
    blocks = [
        _head(found),
        _parts(found),
        _hops(found),
        _neighbours(found, top),
        _edges(found, top),
        _change(found),
        _features(found, top),
        _frequencies(found),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _head(found: Explanation) -> list[str]:
    score, place = found.score, found.place
    lines = [f"{found.model} at node {found.name}, which has {counted(found.degree, 'neighbour')}"]
    if found.objective:
        lines.append(f"minimises  {found.objective}")
    chances = score.probabilities
    if chances is None:
        lines.append("outputs " + ", ".join(_number(value, found) for value in score.outputs))
    else:
        best = score.predicted
        order = torch.argsort(chances, descending=True, stable=True).tolist()
        others = [c for c in order if c != best][:2]
        rest = ", ".join(f"{score.names[c]} {percent(chances[c])}" for c in others)
        lines.append(f"predicted {score.names[best]} ({percent(chances[best])}; next {rest})")
    if found.labels is not None and int(found.labels[place]) >= 0:
        lines.append(f"true label {found.class_of(int(found.labels[place])) or int(found.labels[place])}")
    lines.append(f"explained: {score} = {_number(score.value, found)}")
    if found.split.method is Method.EXACT:
        lines.append("linear: the contributions below sum to it exactly")
    else:
        lines.append(f"not linear ({found.split.note}): gradient × input split, which is exact only to first order")
    return lines


def part_rows(found: Explanation) -> list[tuple[str, float]]:
    """The few numbers that sum to the score, each with words."""
    parts = found.parts
    rows: list[tuple[str, float]] = []
    if parts.fidelity is None or parts.returned is None:
        rows.append(("its own features", parts.own))
    else:
        rows.append(("its own features, directly (fidelity)", parts.fidelity))
        rows.append(("its own features, back along edges and loops", parts.returned))
    rows.append(("features of other nodes", parts.neighbours))
    exact = found.split.method is Method.EXACT
    if exact and parts.bias != 0:
        rows.append(("bias of the decoder", parts.bias))
    if not exact or abs(parts.remainder) > 1e-4 * max(1.0, abs(found.score.value)):
        rows.append(("unexplained remainder", parts.remainder))
    return rows


def _parts(found: Explanation) -> list[str]:
    rows, parts = part_rows(found), found.parts
    lines = ["where it comes from", *bars(rows, _decimals(found))]
    if parts.fidelity is not None and parts.smoothness is not None:
        given, smoothed = _number(parts.fidelity, found), _number(parts.smoothness, found)
        lines.append(f"  fidelity {given}, smoothness (all that passed an edge) {smoothed}")
    shares = (f"  its share of {s.term}: {s.before:.4g} before the denoiser, {s.after:.4g} after" for s in found.terms)
    return [*lines, *shares]


def hop_rows(found: Explanation) -> list[tuple[str, float]]:
    """Contributions by hop where there are hops, else by distance."""
    if found.split.by_hop is not None:
        return list(zip(found.split.hops, found.split.by_hop.sum(1).tolist(), strict=True))
    names = {-1: "no way"}
    return [(names.get(d, str(d)), value) for d, value in found.by_distance.items()]


def _hops(found: Explanation) -> list[str]:
    hops = found.split.by_hop is not None
    title = "by hop" if hops else "by distance in edges"
    note = f" ({found.split.note})" if hops and found.split.note else ""
    return [f"{title}{note}", *bars(hop_rows(found), _decimals(found))]


def _neighbours(found: Explanation, top: int) -> list[str]:
    places = found.largest(top)
    others = len(found.split.nodes) - 1
    if not others:
        return ["no other node contributes: this node is isolated, or its network looks no further"]
    names = [cut(found.name_of(int(found.split.nodes[p]))) for p in places]
    width = max(10, *map(len, names))
    kinds = max([9, *(len(cut(name, 20)) for name in found.score.names)]) if found.score.kind is Outputs.CLASSES else 0
    head = f"  {'node':<{width}}  edges  contribution"
    head += f"  {'predicted':<{kinds}}" if kinds else ""
    head += "  label" if found.labels is not None and kinds else ""
    lines = [f"largest contributions of other nodes ({len(places)} of {others})", head]
    for p, name in zip(places, names, strict=True):
        line = f"  {name:<{width}}  {edges_away(int(found.distance[p])):>5}  {_number(found.split.total[p], found):>12}"
        line += f"  {cut(found.class_of(int(found.predicted[p])), 20):<{kinds}}" if kinds else ""
        if found.labels is not None and kinds:
            line += f"  {cut(found.class_of(int(found.labels[p])), 20) or '?'}"
        lines.append(line.rstrip())
    if others > len(places):
        rest = found.parts.neighbours - float(found.split.total[places].sum())
        lines.append(f"  {'all others':<{width}}  {'':>5}  {_number(rest, found):>12}")
    return lines


def edge_rows(found: Explanation, top: int | None = None) -> list[tuple[str, float]]:
    """The other ends of the node's edges, each with its weight in the last layer: the lowest weights first."""
    if found.edges is None:
        return []
    row = found.edges.weights[-1]
    order = torch.argsort(row, stable=True)[:top].tolist()
    ends = found.edges.edges.sum(0) - found.node
    return [(found.name_of(int(ends[e])), float(row[e])) for e in order]


def _edges(found: Explanation, top: int) -> list[str]:
    rows = edge_rows(found, top)
    if found.edges is None or not rows:
        return []
    width = max(len(cut(name)) for name, _ in rows)
    many, gone = found.edges.edges.shape[1], found.edges.cut().shape[1]
    signs = "; below 0 it pushes apart" if bool((found.edges.weights[-1] < 0).any()) else ""
    title = f"how much its edges count in the last layer ({len(rows)} of {many}, {gone} let go; {found.edges.whole:.3g} is a whole one{signs})"
    return [title, *(f"  {cut(name):<{width}}  {weight:>8.3g}" for name, weight in rows)]


def _change(found: Explanation) -> list[str]:
    change = found.change
    lines = ["what the denoiser changed"]
    if change.distance is None:
        lines.append(
            f"  layers change the width from {change.before.numel()} to {change.after.numel()} channels, so before and after "
            "have nothing to compare"
        )
    else:
        size = float(torch.linalg.vector_norm(change.before))
        angle = "" if change.cosine is None else f", cosine of the angle {change.cosine:.3f}"
        lines.append(f"  moved by {change.distance:.4g}, from a length of {size:.4g}{angle}")
        strongest = torch.argsort((change.after - change.before).abs(), descending=True, stable=True)[:4].tolist()
        moves = [f"{channel_name(found, c)}: {change.before[c]:.3f} → {change.after[c]:.3f}" for c in strongest]
        lines.append(f"  channels that moved most   {';  '.join(moves)}")
    return lines if change.alone is None else [*lines, _without(found, change.alone)]


def _without(found: Explanation, alone: Tensor) -> str:
    score = found.score
    value, was = _number(score.of(alone), found), _number(score.value, found)
    if score.probabilities is None:
        return f"  without its neighbours {score} would be {value} instead of {was}"
    guess, best = int(predictions(alone[None])[0]), score.predicted
    words = "still be predicted as" if guess == best else "be predicted as"
    instead = "" if guess == best else f" instead of {score.names[best]}"
    return (
        f"  without its neighbours it would {words} {score.names[guess]}{instead} ({score}: {value} instead of {was})"
    )


def channel_name(found: Explanation, channel: int) -> str:
    """A channel by its class, where the denoiser works on the classes' scores, else by its number."""
    same = found.change.after.numel() == found.score.outputs.numel() == len(found.score.names)
    return (
        found.score.names[channel]
        if same and len(found.score.names) > 1 and found.score.kind is Outputs.CLASSES
        else f"channel {channel}"
    )


def _features(found: Explanation, top: int) -> list[str]:
    features = found.features
    if features is None or not features.columns.numel():
        return []
    chosen = features.largest(top)
    rows = [(cut(features.names[p]), float(features.shares[p])) for p in chosen]
    title = f"its own features behind that ({len(chosen)} of {features.columns.numel()} that are not zero)"
    lines = [title, *bars(rows, _decimals(found))]
    if abs(features.rest) > 1e-4 * max(1.0, abs(found.score.value)):
        lines.append(f"  and {_number(features.rest, found)} from the encoder's biases")
    return lines


def _frequencies(found: Explanation) -> list[str]:
    lines: list[str] = []
    if found.bands is not None:
        words = ", ".join(f"{name} {gain:.3f}" for name, gain in found.bands.items())
        lines.append(f"frequency response (root mean square gain)   {words}")
    elif found.response_note:
        lines.append(f"frequency response: {found.response_note}")
    if found.layers is not None:
        lines.append(f"gradient steps behind it, first to last   {_steps(found)}")
        if found.layers.note:
            lines.append(f"  {found.layers.note}")
    elif found.layers_note:
        lines.append(f"gradient steps behind it: {found.layers_note}")
    return lines


def _steps(found: Explanation) -> str:
    from unspool.objective.channel import eigenvalue_range

    assert found.layers is not None
    layers = found.layers.layers
    if all(layer.alpha is not None and layer.beta is not None for layer in layers):
        words = [f"(α {_small(layer.alpha)}, β {_small(layer.beta)})" for layer in layers]
        groups = [(word, len(list(run))) for word, run in itertools.groupby(words)]
        return ", ".join(word if count == 1 else f"{count} × {word}" for word, count in groups)
    told: list[str] = []
    for name, maps in (("α·Tα", [x.fidelity for x in layers]), ("β·Tβ", [x.smoothness for x in layers])):
        spans = [eigenvalue_range(t) for t in maps]
        told.append(
            f"eigenvalues of {name} " + ", ".join(f"{float(low):.2g}..{float(high):.2g}" for low, high in spans)
        )
    return "; ".join(told)


# -- small things ------------------------------------------------------------------------------------------------------


def bars(rows: list[tuple[str, float]], decimals: int) -> list[str]:
    """A number and a bar per row; bars of negative numbers are hatched."""
    width = max((len(name) for name, _ in rows), default=0)
    largest = max((abs(value) for _, value in rows), default=0.0)
    lines: list[str] = []
    for name, value in rows:
        length = round(BAR * abs(value) / largest) if largest > 0 else 0
        bar = ("█" if value >= 0 else "░") * length
        lines.append(f"  {name:<{width}}  {value + 0.0:>10.{decimals}f}  {bar}".rstrip())
    return lines


def _decimals(found: Explanation) -> int:
    """So many that the largest part has about five digits, the same for all numbers of one explanation."""
    sizes = [abs(found.score.value), *(abs(value) for _, value in part_rows(found))]
    largest = max(sizes)
    return min(max(4 - math.floor(math.log10(largest)), 0), 12) if largest > 0 else 4


def _number(value: Any, found: Explanation) -> str:
    return f"{float(value) + 0.0:.{_decimals(found)}f}"


def cut(name: str, most: int = 40) -> str:
    """A name that fits into a table: its beginning and its end."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-(most - most // 2 - 1) :]}"


def _small(value: Any) -> str:
    return f"{round(float(value), 12) + 0.0:.3g}"


def edges_away(distance: int) -> str:
    """A distance, or that there is no way."""
    return "none" if distance < 0 else str(distance)


def percent(share: Any) -> str:
    """A share, in per cent."""
    return f"{100 * float(share):.1f} %"


def counted(number: int, word: str) -> str:
    """How many there are of what."""
    return f"{number or 'no'} {word}{'' if number == 1 else 's'}"
