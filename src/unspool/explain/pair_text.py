"""The explanation of a pair in words and numbers, for a terminal."""

from __future__ import annotations

import math

from unspool.explain.pair import PairExplanation, Side
from unspool.explain.splitting import Method
from unspool.explain.text import bars, counted, cut, edges_away, percent


def describe(found: PairExplanation, top: int = 10) -> str:
    """The whole story."""
    one, other = found.sides
    blocks = [_head(found, top), *_side(found, one, other, top), *_side(found, other, one, top)]
    return "\n\n".join("\n".join(block) for block in blocks)


def _head(found: PairExplanation, top: int) -> list[str]:
    one, other = found.sides
    lines = [f"{found.model} on the link between {one.name} and {other.name}"]
    if found.objective:
        lines.append(f"minimises  {found.objective}")
    lines.append(f"probability {percent(found.probability)}; score h · h = {found.score:.{_decimals(found)}f}")
    lines.append(
        "they are linked already, and that edge takes part in the score"
        if found.edge
        else "they are not linked in the graph"
    )
    names = [cut(found.name_of(node)) for node in found.common[:top].tolist()]
    more = f" and {len(found.common) - len(names)} more" if len(found.common) > len(names) else ""
    shared = f": {', '.join(names)}{more}" if names else ""
    lines.append(f"{counted(len(found.common), 'common neighbour')}{shared}")
    if all(side.split.method is Method.EXACT for side in found.sides):
        lines.append("linear in each end: the contributions of either side sum to the score exactly")
    else:
        note = next(side.split.note for side in found.sides if side.split.method is not Method.EXACT)
        lines.append(f"not linear ({note}): gradient × input split, which is exact only to first order")
    return lines


def part_rows(found: PairExplanation, side: Side) -> list[tuple[str, float]]:
    """The few numbers that sum to the score, each with words."""
    rows = [(f"features of {cut(side.name)} itself", side.own), ("features of other nodes", side.neighbours)]
    exact = side.split.method is Method.EXACT
    if exact and side.split.bias != 0:
        rows.append(("bias of the decoder", side.split.bias))
    rest = found.remainder(side)
    if not exact or abs(rest) > 1e-4 * max(1.0, abs(found.score)):
        rows.append(("unexplained remainder", rest))
    return rows


def _side(found: PairExplanation, side: Side, other: Side, top: int) -> list[list[str]]:
    digits, hops = _decimals(found), side.split.by_hop is not None
    note = f" ({side.split.note})" if hops and side.split.note else ""
    by = "by hop" if hops else "by distance in edges"
    head = f"what reached {cut(side.name)} ({counted(side.degree, 'neighbour')}), weighed by the output of {cut(other.name)}"
    places = side.largest(top)
    names = [cut(found.name_of(int(side.split.nodes[p]))) for p in places]
    width = max([10, *map(len, names)])
    rows = [f"  {'node':<{width}}  edges  contribution"]
    for p, name in zip(places, names, strict=True):
        value = f"{float(side.split.total[p]) + 0.0:.{digits}f}"
        rows.append(f"  {name:<{width}}  {edges_away(int(side.distance[p])):>5}  {value:>12}")
    rest = side.split.nodes.numel() - len(places)
    if rest:
        value = float(side.split.total.sum() - side.split.total[places].sum())
        rows.append(f"  {'all others':<{width}}  {'':>5}  {value + 0.0:>12.{digits}f}")
    return [
        [head, *bars(part_rows(found, side), digits)],
        [f"{by}{note}", *bars(side.hop_rows(), digits)],
        [f"largest contributions ({len(places)} of {side.split.nodes.numel()} nodes)", *rows],
    ]


def _decimals(found: PairExplanation) -> int:
    """So many that the largest part has about five digits."""
    sizes = [abs(found.score), *(abs(value) for side in found.sides for _, value in part_rows(found, side))]
    largest = max(sizes)
    return min(max(4 - math.floor(math.log10(largest)), 0), 12) if largest > 0 else 4
