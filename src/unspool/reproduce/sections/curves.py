"""Depth and robustness: curves with their spread, and the numbers behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from unspool.report import Block, Cell, Figure, Heading, Panel, Paragraph, Rows, Table, shown, text_columns
from unspool.reproduce.attacked import attacked_tests
from unspool.reproduce.conditions import CLEAN, Factor, Phase
from unspool.reproduce.depth import depth_tests, smoothing_tests
from unspool.reproduce.entries import Entry, choose
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.records import Results
from unspool.reproduce.robust import robust_tests
from unspool.reproduce.sections.claim_blocks import claim_blocks
from unspool.reproduce.sections.lines import Line, key_of, lines_panel, lines_table, one_scale
from unspool.reproduce.sections.names import DATASET_ORDER, MODEL_ORDER, dataset_title, in_order, order_of
from unspool.reproduce.sections.not_run import not_run

#: The model that Figure 1 of the paper is about.
ABOUT = "UGDGNN"
#: What is varied here, and what tells entries apart.
_BY = ("dataset", "condition", "model", "preset", "depth")

#: The kinds of corruption: a heading, and the name of the axis.
_KINDS = {
    (Factor.FEATURES, Phase.ALWAYS): "Features of some nodes replaced by those of others",
    (Factor.NOISE, Phase.ALWAYS): "Features of some nodes replaced by noise",
    (Factor.EDGES, Phase.ALWAYS): "Random edges added",
    (Factor.FEATURES, Phase.AFTER_TRAINING): "Features replaced by those of others, after training",
    (Factor.NOISE, Phase.AFTER_TRAINING): "Features replaced by noise, after training",
    (Factor.EDGES, Phase.AFTER_TRAINING): "Random edges added after training",
    (Factor.ATTACK, Phase.ALWAYS): "Edges changed by Metattack",
}
_AXES = {
    Factor.FEATURES: "nodes with foreign features (%)",
    Factor.NOISE: "nodes with noise for features (%)",
    Factor.EDGES: "edges added (%)",
    Factor.ATTACK: "edges changed (%)",
}

Pairs = Sequence[tuple[str, int, str]]


def depth_blocks(results: Results) -> list[Block]:
    """Accuracy by number of layers: a panel for each dataset, and the depth at which UGDGNN is best and good enough."""
    records = results.of("depth")
    entries = choose([one for one in records if one.depth is not None], _BY)
    if not entries:
        return not_run("depth")
    words = (
        'The paper says of its Figure 1 that depth "can help to improve the classification performance" and that '
        '"a small number of layers suffices", 4 to 10. Settings are those of Table 2, not tuned again for each depth.'
    )
    by_dataset = _by_dataset(entries, lambda entry: float(entry.first.depth or 0))
    numbers = lines_table(by_dataset, "K", "by depth")
    blocks: list[Block] = [Paragraph([words]), *_depth_figures(by_dataset, numbers)]
    if any(line.model == ABOUT for line in _all(by_dataset)):
        blocks.append(enough_layers(by_dataset))
    models = in_order((one.model for one in records), (ABOUT, *MODEL_ORDER))
    about = [ABOUT] if ABOUT in models else models
    tests = [test for model in about for test in depth_tests(records, model)]
    return [*blocks, *claim_blocks([*tests, *smoothing_tests(records)], "depth")]


def enough_layers(by_dataset: Mapping[str, Sequence[Line]], model: str = ABOUT) -> Table:
    """Where a model is best, and how few layers come within half a point of that.

    Example:
        >>> line = Line("UGDGNN", (1.0, 2.0, 4.0, 8.0), (75.0, 80.0, 83.0, 83.2), (0.5, 0.5, 0.5, 0.5))
        >>> print(enough_layers({"cora": [line]}).markdown().splitlines()[-1])
        | Cora | 75.00 | 83.20 | 8 | 4 | +8.20 |
    """
    heads = ["one layer", "best", "at K", "smallest K within 0.5 points of it", "depth gains"]
    rows: Rows = []
    for data, lines in by_dataset.items():
        for line in lines:
            if line.model == model:
                top = max(line.mean)
                at = line.where[line.mean.index(top)]
                least = next(k for k, mean in zip(line.where, line.mean, strict=True) if mean >= top - 0.5)
                gain = top - line.mean[0]
                numbers = [Cell.number(line.mean[0]), Cell.number(top), Cell.number(at, 0), Cell.number(least, 0)]
                rows.append([dataset_title(data), *numbers, Cell(f"+{shown(gain, 2)}", gain)])
    caption = f"{model} by depth. The best depth is read off test scores, to describe the curve, not to choose a model"
    return Table(caption, [*text_columns("dataset"), *heads], rows)


def robust_blocks(results: Results) -> list[Block]:
    """Accuracy under growing damage in front of the encoder, a panel for each dataset and kind of damage."""
    records = results.of("robust")
    if not records:
        return not_run("robust --parts always,after")
    words = (
        "Some nodes have their features replaced by others as long as they were, in front of a perceptron that may undo it, or the graph gets random "
        "edges, for training and testing alike or after training on clean data. LearntRows and LearntSquares take the same steps on an ℓ2,1 and a squared fidelity whose weight they learn in every "
        "layer; settings of every model were searched on clean data, depth included."
    )
    many = " or ".join(
        str(one) for one in sorted({int(one.settings["draws"]) for one in records if "draws" in one.settings})
    )
    rule = (
        "What is tested is the change from clean data to damaged data, seed by seed, so a model that is better on clean data has no "
        f"advantage. Each damage was drawn {many or 'several'} times, and seeds take turns with the draws: the tests are about these draws."
    )
    tested = claim_blocks(robust_tests(records), "damage in front of the encoder", "mean change from clean data")
    rule += " In the pictures a model with the ℓ2,1 fidelity is in one panel with the one with squares."
    pairs: Pairs = read_experiment("robust")["pairs"]
    return [Paragraph([words]), Paragraph([rule]), *tested, *_by_kind(choose(records, _BY), "robust", pairs, ("MLP",))]


def attacked_blocks(results: Results) -> list[Block]:
    """Accuracy on graphs that others have attacked.

    Example:
        >>> attacked_blocks(Results([]))[0].markdown()
        'Not run yet: unspool reproduce attacked'
    """
    records = results.of("attacked")
    if not records:
        return not_run("attacked")
    words = (
        "The largest components of Cora and CiteSeer with up to 25 % of their edges changed by Metattack, computed by others for the split that is used here "
        "(10 % of the nodes to train, 10 % to validate). Settings are those of Table 2 before the attack. An attack on edges is not what the ℓ2,1 fidelity is about: it "
        "forgives rows of X, and every row of X is as it was. A perceptron sees no edges."
    )
    pairs: Pairs = [(robust, 0, other) for robust, other in read_experiment("attacked")["pairs"]]
    tested = claim_blocks(attacked_tests(records), "attacked edges", "mean change from the graph before the attack")
    return [Paragraph([words]), *tested, *_by_kind(choose(records, _BY), "attacked", pairs)]


# -- inside ------------------------------------------------------------------------------------------------------------


def _depth_figures(by_dataset: Mapping[str, Sequence[Line]], numbers: Table) -> list[Block]:
    """Sets with several models on one scale, and sets with one model on another: it would be a flat line on the first."""
    parts = [{d: ls for d, ls in by_dataset.items() if (len(ls) > 1) is several} for several in (True, False)]
    parts = [part for part in parts if part]
    caption = f"Mean test accuracy over seeds, on one scale; bands are one standard deviation, drawn for {ABOUT} only."
    made: list[Block] = []
    for number, part in enumerate(parts):
        shape = _by_doubling(one_scale(part.values()))
        panels = [
            lines_panel(f"depth{number}-{k}", dataset_title(data), "layers K", lines, banded=ABOUT, shape=shape)
            for k, (data, lines) in enumerate(part.items())
        ]
        made.append(Figure(panels, caption, key_of(_all(part)), [numbers] if number == len(parts) - 1 else ()))
    return made


def _by_kind(entries: Sequence[Entry], name: str, pairs: Pairs, undrawn: Collection[str] = ()) -> list[Block]:
    """Panels and numbers for each kind of damage; models far below the others are in the numbers alone."""
    blocks: list[Block] = []
    conditions = [entry.first.condition for entry in entries if entry.first.condition != CLEAN]
    for number, (factor, phase) in enumerate(dict.fromkeys((one.factor, one.phase) for one in conditions)):
        own = [e for e in entries if (e.first.condition.factor, e.first.condition.phase) == (factor, phase)]
        if phase is Phase.ALWAYS:  # after training each kind has clean data of its own
            own += [entry for entry in entries if entry.first.condition == CLEAN]
        by_dataset = _by_dataset(own, lambda entry: entry.first.condition.amount, depths=True)
        panels: list[Panel] = []
        drawn: list[Line] = []
        for data, lines in by_dataset.items():
            groups = _paired([line for line in lines if line.model not in undrawn], pairs)
            scale = one_scale(some for _, some in groups)
            for title, some in groups:
                label = f"{dataset_title(data)}: {title}"
                place = f"{name}{number}-{len(panels)}"
                panels.append(lines_panel(place, label, _AXES[factor], some, shape=scale))
                drawn += some
        caption = "Mean test accuracy over seeds; bands are one standard deviation."
        kind = own[0].first.condition.kind
        table = lines_table(by_dataset, "%", f"under damage: {kind}")
        blocks += [Heading(_KINDS[factor, phase]), Figure(panels, caption, key_of(drawn), [table])]
    return blocks


def _by_dataset(
    entries: Sequence[Entry], where: Callable[[Entry], float], depths: bool = False
) -> dict[str, list[Line]]:
    datasets = in_order((entry.first.dataset for entry in entries), DATASET_ORDER)
    own = {data: [entry for entry in entries if entry.first.dataset == data] for data in datasets}
    return {data: _lines(some, where, depths) for data, some in own.items()}


def _lines(entries: Sequence[Entry], where: Callable[[Entry], float], depths: bool) -> list[Line]:
    """The curves of one dataset; a model that was run with several presets or depths is told apart by them."""
    own = [entry for entry in entries if not math.isnan(entry.mean)]
    several = len({entry.first.preset for entry in own}) > 1
    deep = _deeper(own) if depths else set[tuple[str, int | None]]()
    groups: dict[tuple[str, str], dict[float, Entry]] = {}
    for entry in own:
        first = entry.first
        details = [first.preset] if several else []
        details += [f"{first.depth} layers"] if (first.model, first.depth) in deep else []
        groups.setdefault((first.model, ", ".join(details)), {})[where(entry)] = entry
    made: list[Line] = []
    for model, detail in sorted(groups, key=lambda group: (order_of(group[0], MODEL_ORDER), group[1])):
        points = sorted(groups[model, detail].items(), key=lambda point: point[0])
        around = [None if math.isnan(e.test.std) else 100 * e.test.std for _, e in points]
        made.append(Line(model, tuple(k for k, _ in points), tuple(e.mean for _, e in points), tuple(around), detail))
    return made


def _deeper(entries: Iterable[Entry]) -> set[tuple[str, int | None]]:
    """Models that were run at a second, larger depth, and whose curves must say so."""
    own = {(entry.first.model, entry.first.depth) for entry in entries if entry.first.depth is not None}
    least: dict[str, int] = {}
    for model, layers in own:
        least[model] = min(layers or 0, least.get(model, layers or 0))
    return {(model, layers) for model, layers in own if (layers or 0) > least[model]}


def _paired(lines: Sequence[Line], pairs: Pairs) -> list[tuple[str, list[Line]]]:
    """The lines of each robust model and its counterpart, and those of the others."""
    groups: list[tuple[str, list[Line]]] = []
    left = {(line.model, line.detail): line for line in lines}
    for robust, depth, other in pairs:
        names = [(robust, f"{depth} layers" if depth else ""), (other, "")]
        if all(one in left for one in names):
            some = [left.pop(one) for one in names]
            groups.append((" and ".join(line.name for line in some), some))
    return [*groups, ("others" if groups else "all models", list(left.values()))] if left else groups


def _all(by_dataset: Mapping[str, Sequence[Line]]) -> list[Line]:
    return [line for lines in by_dataset.values() for line in lines]


def _by_doubling(upright: Callable[[Any], None]) -> Callable[[Any], None]:
    """Depths grow by doubling, and are written as they are; ``upright`` sets the other axis."""
    ticks = [1, 2, 4, 8, 16, 32, 64]

    def shape(axis: Any) -> None:
        upright(axis)
        axis.set_xscale("log", base=2)
        axis.set_xticks(ticks, [str(k) for k in ticks])
        axis.minorticks_off()

    return shape
