"""Depth and robustness on the page: curves with their spread, and the numbers behind them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from unspool.report import Block, Column, Figure, Folded, Heading, Paragraph, Table
from unspool.report import Cell as Shown
from unspool.report.figure import MISSING, Panel, can_draw
from unspool.report.text import shown
from unspool.reproduce.after import AFTER
from unspool.reproduce.attacked import attacked_answers
from unspool.reproduce.cells import Cell, choose
from unspool.reproduce.depth import depth_answers, smoothing_answers
from unspool.reproduce.page_cells import NAMES, ORDER, called, distinct
from unspool.reproduce.page_claims import answers_blocks
from unspool.reproduce.page_lines import Key, Line, lines_panel
from unspool.reproduce.results import Record
from unspool.reproduce.robust import damage, robust_answers
from unspool.reproduce.settings import read_settings

#: The model that Figure 1 of the paper is about.
ABOUT = "UGDGNN"

#: The kinds of damage: a heading, and the name of the axis.
KINDS = {
    "features": ("Features of some nodes replaced by those of others", "nodes with foreign features (%)"),
    "noise": ("Features of some nodes replaced by noise", "nodes with noise for features (%)"),
    "edges": ("Random edges added", "edges added (%)"),
    f"features {AFTER}": ("Features replaced by those of others, after training", "nodes with foreign features (%)"),
    f"noise {AFTER}": ("Features replaced by noise, after training", "nodes with noise for features (%)"),
    f"edges {AFTER}": ("Random edges added after training", "edges added (%)"),
    "attacked": ("Edges changed by Metattack", "edges changed (%)"),
}


def depth(rows: Sequence[Record]) -> list[Block]:
    """Accuracy by number of layers: a panel for each dataset, and the depth at which UGDGNN is best and good enough."""
    cells = choose([r for r in rows if r.depth is not None], ("dataset", "variant", "model", "preset", "depth"))
    if not cells:
        return [Paragraph(["Not run yet: unspool reproduce depth"])]
    words = (
        'The paper says of its Figure 1 that depth "can help to improve the classification performance" and that '
        '"a small number of layers suffices", 4 to 10. Settings are those of Table 2, not tuned again for each depth.'
    )
    by_data = {data: _lines(cells, data, _layers) for data in distinct((c.first.dataset for c in cells), NAMES)}
    blocks: list[Block] = [Paragraph([words]), *_figure(by_data, "depth", "layers K", _by_doubling, ABOUT)]
    if any(line.name == ABOUT for lines in by_data.values() for line in lines):
        blocks.append(enough(by_data))
    blocks += answers_blocks([*depth_answers(rows), *smoothing_answers(rows)], "depth")
    return [*blocks, Folded("The numbers of these curves", [_numbers(by_data, "K", "by depth")])]


def enough(by_data: dict[str, list[Line]], model: str = ABOUT) -> Table:
    """Where a model is best, and how few layers come within half a point of that.

    Example:
        >>> line = Line("UGDGNN", (1.0, 2.0, 4.0, 8.0), (75.0, 80.0, 83.0, 83.2), (0.5, 0.5, 0.5, 0.5))
        >>> print(enough({"cora": [line]}).markdown().splitlines()[-1])
        | Cora | 75.00 | 83.20 | 8 | 4 | +8.20 |
    """
    heads = ["one layer", "best", "at K", "smallest K within 0.5 points of it", "depth gains"]
    rows: list[list[str | Shown]] = []
    for data, lines in by_data.items():
        for line in lines:
            if line.name == model:
                top = max(line.mean)
                at = line.where[line.mean.index(top)]
                least = next(k for k, mean in zip(line.where, line.mean, strict=True) if mean >= top - 0.5)
                gain = top - line.mean[0]
                cells = [_number(line.mean[0], 2), _number(top, 2), _number(at, 0), _number(least, 0)]
                rows.append([called(data), *cells, Shown(f"+{shown(gain, 2)}", gain)])
    caption = f"{model} by depth. The best depth is read off test scores, to describe the curve, not to choose a model"
    return Table(caption, [Column("dataset", numbers=False), *heads], rows)


def robust(rows: Sequence[Record]) -> list[Block]:
    """Accuracy under growing damage in front of the encoder, a panel for each dataset and kind of damage."""
    cells = _damaged(rows)
    if not cells:
        return [Paragraph(["Not run yet: unspool reproduce robust --parts always,after"])]
    words = (
        "Some nodes have their features replaced by others as long as they were, in front of a perceptron that may undo it, or the graph gets random "
        "edges, for training and testing alike or after training on clean data. LearntRows and LearntSquares take the same steps on an ℓ2,1 and a squared fidelity whose weight they learn in every "
        "layer; settings of every model were searched on clean data, depth included."
    )
    draws = sorted({int(row.settings.get("draws", 2)) for row in rows})  # rows of before 0.2 do not say it
    many = " or ".join(str(one) for one in draws)
    tests = (
        "What is tested is the change from clean data to damaged data, seed by seed, so a model that is better on clean data has no "
        f"advantage. Each damage was drawn {many} times, and seeds take turns with the draws: the tests are about these draws."
    )
    tested = answers_blocks(robust_answers(rows), "damage in front of the encoder", "mean change from clean data")
    return [
        Paragraph([words]),
        Paragraph([tests]),
        *tested,
        *_by_kind(cells, "robust", read_settings("robust")["pairs"]),
    ]


def attacked(rows: Sequence[Record]) -> list[Block]:
    """Accuracy on graphs that others have attacked.

    Example:
        >>> attacked([])[0].markdown()
        'Not run yet: unspool reproduce attacked'
    """
    cells = _damaged(rows)
    if not cells:
        return [Paragraph(["Not run yet: unspool reproduce attacked"])]
    words = (
        "The largest components of Cora and CiteSeer with up to 25 % of their edges changed by Metattack, computed by others for the split that is used here "
        "(10 % of the nodes to train, 10 % to validate). Settings are those of Table 2 before the attack. An attack on edges is not what the ℓ2,1 fidelity is about: it "
        "forgives rows of X, and every row of X is as it was. A perceptron sees no edges."
    )
    pairs = [[robust, 0, twin] for robust, twin in read_settings("attacked")["pairs"]]
    tested = answers_blocks(attacked_answers(rows), "attacked edges", "mean change from the graph before the attack")
    return [Paragraph([words]), *tested, *_by_kind(cells, "attacked", pairs, perceptron=True)]


def _damaged(rows: Sequence[Record]) -> list[Cell]:
    found = choose(rows, ("dataset", "variant", "model", "preset", "depth"))
    return [c for c in found if damage(c.first.variant) is not None]


def _by_kind(cells: Sequence[Cell], name: str, pairs: Sequence[Sequence[Any]], perceptron: bool = False) -> list[Block]:
    """Panels and numbers for each kind of damage."""
    blocks: list[Block] = []
    kinds = list(dict.fromkeys(kind for c in cells if (kind := _kind(c))))
    for kind in kinds:
        own = [c for c in cells if _kind(c) in ((kind,) if AFTER in kind else (kind, ""))]
        by_data = {
            data: _lines(own, data, _share, _deeper(own, data))
            for data in distinct((c.first.dataset for c in own), NAMES)
        }
        title, across = KINDS.get(kind, (kind.capitalize(), f"{kind} (%)"))
        blocks += [Heading(title), *_pairs(by_data, f"{name}{kinds.index(kind)}", across, pairs, perceptron)]
        blocks.append(Folded(f"The numbers of these curves: {kind}", [_numbers(by_data, "%", f"under damage: {kind}")]))
    return blocks


# -- inside ------------------------------------------------------------------------------------------------------------


def _kind(cell: Cell) -> str:
    found = damage(cell.first.variant)
    return "" if found is None else found[0]


def _share(cell: Cell) -> float:
    found = damage(cell.first.variant)
    return 0.0 if found is None else found[1]


def _layers(cell: Cell) -> float:
    return float(cell.first.depth or 0)


def _deeper(cells: Sequence[Cell], data: str) -> set[tuple[str, int]]:
    """Models that were run at a second, larger depth, and whose curves must say so."""
    own = {(c.first.model, c.first.depth) for c in cells if c.first.dataset == data and c.first.depth is not None}
    least: dict[str, int] = {}
    for model, layers in own:
        least[model] = min(layers, least.get(model, layers))
    return {(model, layers) for model, layers in own if layers > least[model]}


def _lines(cells: Iterable[Cell], data: str, where: Any, deep: Collection[tuple[str, int]] = ()) -> list[Line]:
    """The curves of one dataset; a model that was run with several presets or depths is told apart by them."""
    own = [c for c in cells if c.first.dataset == data and not math.isnan(c.mean)]
    several = len({c.first.preset for c in own}) > 1
    groups: dict[str, dict[float, Cell]] = {}
    for cell in own:
        name = f"{cell.first.model}, {cell.first.preset}" if several else cell.first.model
        name += f", {cell.first.depth} layers" if (cell.first.model, cell.first.depth) in deep else ""
        groups.setdefault(name, {})[where(cell)] = cell
    made: list[Line] = []
    for name in distinct(groups, ORDER):
        points = sorted(groups[name].items())
        around = [None if math.isnan(c.test.std) else 100 * c.test.std for _, c in points]
        made.append(Line(name, tuple(k for k, _ in points), tuple(c.mean for _, c in points), tuple(around)))
    return made


def _figure(by_data: dict[str, list[Line]], name: str, across: str, shape: Any, banded: str | None) -> list[Block]:
    if not can_draw():
        return [Paragraph([MISSING], "warning")]
    models = distinct((line.name for lines in by_data.values() for line in lines), ORDER)
    panels = [
        lines_panel(f"{name}-{k}", called(data), across, lines, banded=banded, shape=shape)
        for k, (data, lines) in enumerate(by_data.items())
    ]
    words = "Mean test accuracy over seeds; bands are one standard deviation"
    return [Key(models), Figure(panels, f"{words}, drawn for {banded} only." if banded else f"{words}.")]


def _pairs(
    by_data: dict[str, list[Line]], name: str, across: str, pairs: Sequence[Sequence[Any]], perceptron: bool
) -> list[Block]:
    """A panel for each robust model and its twin, and one for the others; a perceptron far below them is in the numbers alone."""
    if not can_draw():
        return [Paragraph([MISSING], "warning")]
    panels: list[Panel] = []
    shown_names: set[str] = set()
    for data, lines in by_data.items():
        for title, own in _paired(lines, pairs, perceptron):
            shown_names |= {line.name for line in own}
            label = f"{called(data)}: {title}"
            panels.append(lines_panel(f"{name}-{len(panels)}", label, across, own))
    words = "Mean test accuracy over seeds; bands are one standard deviation. A model with the ℓ2,1 fidelity stands beside the one with squares."
    return [Key(distinct(shown_names, ORDER)), Figure(panels, words)]


def _paired(lines: Sequence[Line], pairs: Sequence[Sequence[Any]], perceptron: bool) -> list[tuple[str, list[Line]]]:
    groups: list[tuple[str, list[Line]]] = []
    left = {line.name: line for line in lines if perceptron or line.name != "MLP"}
    for robust, depth, twin in pairs:
        names = [f"{robust}, {depth} layers" if depth else robust, twin]
        if all(one in left for one in names):
            groups.append((" and ".join(names), [left.pop(one) for one in names]))
    return [*groups, ("others" if groups else "all models", list(left.values()))] if left else groups


def _numbers(by_data: dict[str, list[Line]], head: str, what: str) -> Table:
    where = sorted({k for lines in by_data.values() for line in lines for k in line.where})
    columns = [*(Column(n, numbers=False) for n in ("dataset", "model")), *(f"{head} = {k:g}" for k in where)]
    rows: list[list[str | Shown]] = [
        [called(data), line.name, *(_number(line.at(k), 2) for k in where)]
        for data, lines in by_data.items()
        for line in lines
    ]
    return Table(f"Mean test accuracy (%) {what}", columns, rows)


def _number(value: float | None, digits: int) -> Shown:
    return Shown(shown(value, digits), value)


def _by_doubling(axis: Any) -> None:
    """Depths grow by doubling, and are written as they are."""
    ticks = [1, 2, 4, 8, 16, 32, 64]
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [str(k) for k in ticks])
    axis.minorticks_off()
