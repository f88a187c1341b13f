"""Pictures of a study: the leaders, each hyper-parameter, two of them at once, a comparison, and what matters.

Each function returns a matplotlib ``Figure``, and writes it where a path is given.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unspool.errors import IncompatibleError
from unspool.spectral.drawing import BLUE, GREEN, GREY, ORANGE, PALE
from unspool.spectral.figure import figure_class_of_matplotlib, write_figure
from unspool.study.results.best import Best, Sample
from unspool.study.results.comparison import Comparison
from unspool.study.results.exporting import order, shown
from unspool.study.results.importances import Importance
from unspool.study.results.trial_table import TrialTable
from unspool.study.results.variance_shares import MANY
from unspool.train.loss import SHARES

Over = str | Sequence[str]
Where = str | os.PathLike[str] | None

#: Hyper-parameters that people vary by factors.
LOGARITHMIC = ("lr", "weight_decay")


def plot_leaders(table: TrialTable, n: int = 10, over: Over = "seed", path: Where = None) -> Any:
    """Draw the best settings of each dataset: every trial as a dot, mean and standard deviation of validation and test.

    Args:
        table: the trials.
        n: so many settings for each dataset.
        over: what is averaged over.
        path: where to write the picture (.png, .svg or .pdf), whole or not at all.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> len(plot_leaders(example_table()).axes[0].get_yticklabels())
        6
    """
    leaders = table.leaders(n, over)
    if not leaders:
        raise IncompatibleError("no trial has finished yet, so there is nothing to draw")
    panels = list(dict.fromkeys(best.data for best in leaders))
    counts = [sum(best.data == data for best in leaders) for data in panels]
    figure = _figure(8.2, 1.0 + sum(0.42 * max(c, 2) + 0.75 for c in counts))
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=[max(c, 2) + 1 for c in counts])[:, 0]
    for axis, data in zip(axes, panels, strict=True):
        _draw_leaders(axis, [best for best in leaders if best.data == data])
        models = {best.model for best in leaders if best.data == data}
        what = f"settings of {models.pop()}" if len(models) == 1 else "settings"
        _finish(axis, f"best {what} on {data}, chosen by validation", _score(table))
    _legend(figure, axes[0])
    return _written(figure, path)


def plot_choices(table: TrialTable, name: str | None = None, over: Over = "seed", path: Where = None) -> Any:
    """Draw the validation score against a hyper-parameter, or each of them: one dot per setting, a line through the means.

    Args:
        table: trials on one dataset.
        name: of the hyper-parameter; all that vary, when omitted.
        over, path: as in :func:`plot_leaders`.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> [axis.get_xlabel() for axis in plot_choices(example_table()).axes]
        ['model', 'dropout']
    """
    groups = _groups(table, over)
    names = [k for k in groups[0].varied if len({g.settings.get(k) for g in groups}) > 1] if name is None else [name]
    if not names:
        raise IncompatibleError("no hyper-parameter varies between the finished trials, so there is nothing to draw")
    wide, tall = min(len(names), 3), -(-len(names) // 3)
    figure = _figure(4.3 * wide, 3.7 * tall)
    axes = figure.subplots(tall, wide, squeeze=False).flatten()
    for axis, one in zip(axes, names, strict=False):
        draw_choice(axis, one, _known(table, one, groups), [g.valid.mean for g in groups], _score_name(table))
        _finish(axis, "", one)
    for axis in axes[len(names) :]:
        axis.remove()
    for axis in axes[: len(names) : wide]:
        axis.set_ylabel(f"mean validation {_score(table)}", fontsize=9)
    _legend(figure, axes[0])
    return _written(figure, path)


def plot_grid(table: TrialTable, x: str, y: str, over: Over = "seed", path: Where = None) -> Any:
    """Draw the validation score over two hyper-parameters as a heat map, averaged over all others.

    Args:
        table: trials on one dataset.
        x, y: names of the hyper-parameters.
        over, path: as in :func:`plot_leaders`.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> len(plot_grid(example_table(), "dropout", "model").axes[0].texts)
        6
    """
    groups = _groups(table, over)
    across, down = _known(table, x, groups), _known(table, y, groups)
    columns, lines = sorted(set(across), key=order), sorted(set(down), key=order)
    if max(len(columns), len(lines)) > 30:
        raise IncompatibleError(f"{x} and {y} have too many values for a heat map; use plot_choices()")
    pairs = list(zip(groups, across, down, strict=True))
    cells = [[Sample(tuple(g.valid.mean for g, a, b in pairs if (a, b) == (c, r))) for c in columns] for r in lines]
    means = np.array([[cell.mean for cell in row] for row in cells])
    figure = _figure(2.6 + 0.85 * max(len(columns), 3), 1.7 + 0.5 * max(len(lines), 3))
    axis = figure.subplots()
    image = axis.imshow(means * _times(_score_name(table)), cmap="viridis", aspect="auto")
    _write_cells(axis, means, _score_name(table))
    axis.set_xticks(range(len(columns)), [_folded(shown(v)) for v in columns])
    axis.set_yticks(range(len(lines)), [_folded(shown(v)) for v in lines])
    bar = figure.colorbar(image)
    bar.set_label(f"mean validation {_score(table)}", fontsize=9)
    _finish(axis, "", x)
    axis.set_ylabel(y, fontsize=9)
    return _written(figure, path)


def plot_compare(found: Comparison, path: Where = None) -> Any:
    """Draw a comparison: on the left both test scores of every pair, on the right the differences with their interval.

    Example:
        >>> from unspool.study.results.comparison import compare
        >>> from unspool.study.results.trial_table import example_table
        >>> len(plot_compare(compare(example_table(), "GCN", "UGDGNN")).axes)
        2
    """
    figure = _figure(8.6, 4.0)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    times, unit = _times(found.a.score), " / %" if found.a.score in SHARES else ""
    for a, b in zip(found.a_scores, found.b_scores, strict=True):
        colour = BLUE if a > b else ORANGE if b > a else GREY
        left.plot([0, 1], [times * a, times * b], "o-", color=colour, linewidth=1.2, markersize=5, alpha=0.75)
    left.set_xticks([0, 1], [_folded(name) for name in found.names])
    left.set_xlim(-0.35, 1.35)
    _finish(left, f"{found.n} pairs on {found.a.data}", "")
    left.set_ylabel(f"test {found.a.score}{unit}", fontsize=9)
    gaps = times * (np.array(found.a_scores) - np.array(found.b_scores))
    right.axhline(0, color=GREY, linewidth=0.9)
    right.plot(0.12 * _fanned(gaps), gaps, "o", color=GREY, markersize=5, alpha=0.6, label="each pair")
    mean = times * found.difference
    reach = [[mean - times * found.low], [times * found.high - mean]]
    told = f"mean, {100 * found.confidence:g} % interval"
    right.errorbar([0.55], [mean], yerr=np.abs(reach), fmt="D", color=GREEN, capsize=5, linewidth=2, label=told)
    right.set(xlim=(-0.5, 1.0), xticks=[])
    p, word = (found.p_value, "p") if found.corrected is None else (found.corrected, "corrected p")
    _finish(right, f"{found.test.value}: {word} {'< 0.0001' if p < 1e-4 else f'= {p:.2g}'}", "")
    right.set_ylabel("difference" + (" in points" if unit else ""), fontsize=9)
    right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.03), ncols=2, fontsize=9, frameon=False)
    return _written(figure, path)


def plot_importance(found: Importance, path: Where = None) -> Any:
    """Draw how much each hyper-parameter explains: alone in blue, in pairs in green, the rest in grey; a mark for what chance gives.

    Example:
        >>> from unspool.study.results.importances import importance
        >>> from unspool.study.results.trial_table import example_table
        >>> len(plot_importance(importance(example_table())).axes[0].patches)
        3
    """
    figure = _figure(7.0, 1.3 + 0.36 * max(len(found.bars()), 3))
    axis = figure.subplots()
    draw_importance(axis, found)
    _finish(axis, found.method.value, f"share of the variance of the {found.target.value} / %")
    _legend(figure, axis)
    return _written(figure, path)


# -- panels ------------------------------------------------------------------------------------------------------------


def draw_importance(axis: Any, found: Importance) -> None:
    """Bars on an axis, and a mark on each for what chance gives."""
    bars = found.bars()
    colours = [BLUE if name in found.shares else GREY if name == "the rest" else GREEN for name, _ in bars]
    drawn = axis.barh(range(len(bars)), [100 * share for _, share in bars], color=colours, height=0.66)
    axis.bar_label(drawn, [f"{100 * share:.0f} %" for _, share in bars], padding=4, fontsize=9)
    floors = [(100 * found.floors[name], place) for place, (name, _) in enumerate(bars) if name in found.floors]
    look: dict[str, Any] = {"color": ORANGE, "linestyle": "", "marker": "|", "markersize": 16, "markeredgewidth": 2.2}
    axis.plot(*zip(*floors, strict=True), label="what chance gives", **look)
    axis.set_yticks(range(len(bars)), [_folded(name, 40) for name, _ in bars])
    axis.set_ylim(max(len(bars), 3) - 0.4, -0.6)
    axis.set_xlim(0, 112 * max(*(share for _, share in bars), *found.floors.values()))


def _draw_leaders(axis: Any, leaders: Sequence[Best]) -> None:
    times = _times(leaders[0].score)
    for y, best in enumerate(leaders):
        for sample, colour, off, name in ((best.valid, BLUE, -0.14, "validation"), (best.test, ORANGE, 0.14, "test")):
            if not sample.finite:
                continue
            values = times * np.array(sample.finite)
            look: dict[str, Any] = {"color": colour, "marker": "o", "linestyle": ""}
            axis.plot(values, [y + 2 * off] * len(values), markersize=4, alpha=0.35, markeredgewidth=0, **look)
            error = times * sample.std if len(values) > 1 else None
            label = f"{name}: mean ± standard deviation" if y == 0 else None
            axis.errorbar([values.mean()], [y + off], xerr=error, markersize=5.5, capsize=3, label=label, **look)
    several = len({best.model for best in leaders}) > 1
    names = [", ".join(filter(None, [best.model if several or not best.label else "", best.label])) for best in leaders]
    axis.set_yticks(range(len(leaders)), [_folded(name, 48) for name in names])
    axis.set_ylim(max(len(leaders), 2) - 0.5, -0.5)
    axis.grid(visible=True, axis="x", color=PALE, linewidth=0.8)


def draw_choice(axis: Any, name: str, values: Sequence[Any], means: Sequence[float], score: str) -> None:
    """Few values stand side by side; many numbers lie on an axis."""
    if len(set(values)) > MANY:  # a model without this setting has no place on a scale
        means = [mean for mean, value in zip(means, values, strict=True) if value is not None]
        values = [value for value in values if value is not None]
    kinds = sorted(set(values), key=order)
    height = _times(score) * np.array(means)
    dots: dict[str, Any] = {"color": BLUE, "markersize": 4.5, "alpha": 0.5, "markeredgewidth": 0}
    numbers = all(isinstance(v, int | float) for v in kinds)
    axis.grid(visible=True, axis="y", color=PALE, linewidth=0.8)
    if len(kinds) > MANY and numbers:
        axis.plot(values, height, "o", label="one setting", **dots)
        places = np.array_split(np.argsort(values, kind="stable"), 6)
        middles = [Sample(tuple(height[place])).mean for place in places]
        where = [float(np.median(np.array(values)[place])) for place in places]
        if name in LOGARITHMIC and kinds[0] > 0:
            axis.set_xscale("log")
    else:
        split = [height[[v == kind for v in values]] for kind in kinds]
        for place, here in enumerate(split):
            axis.plot(place + 0.3 * _fanned(here), here, "o", label=None if place else "one setting", **dots)
        middles, where = [Sample(tuple(here)).mean for here in split], list(range(len(kinds)))
        axis.set_xticks(where, [_folded(shown(kind), 14) for kind in kinds])
        axis.set_xlim(-0.6, len(kinds) - 0.4)
    line = "D-" if numbers else "D"  # words have no order
    axis.plot(where, middles, line, color=ORANGE, markersize=6, linewidth=1.6, label="mean of settings")


def _write_cells(axis: Any, means: Any, score: str) -> None:
    low, high = np.nanmin(means), np.nanmax(means)
    for (line, column), value in np.ndenumerate(means):
        bright = np.isnan(value) or (value - low) > 0.6 * max(high - low, 1e-12)
        text = "–" if np.isnan(value) else f"{100 * value:.1f}" if score in SHARES else f"{value:.3f}"
        axis.text(column, line, text, ha="center", va="center", fontsize=9, color="black" if bright else "white")


# -- around the panels -------------------------------------------------------------------------------------------------


def _groups(table: TrialTable, over: Over) -> tuple[Best, ...]:
    groups = table.groups(over)
    if not any(g.valid.finite for g in groups):
        raise IncompatibleError("no trial has finished with a validation score, so there is nothing to draw")
    if len({g.data for g in groups}) > 1:
        raise IncompatibleError("scores on several datasets do not belong in one picture; use filter(data=...) first")
    return groups


def _known(table: TrialTable, name: str, groups: Sequence[Best]) -> list[Any]:
    if name not in table.columns:
        raise ValueError(f"no setting is called {name!r}; those that vary are {', '.join(groups[0].varied)}")
    return [g.settings.get(name) for g in groups]


def _fanned(heights: Any) -> Any:
    """Sideways places from -1 to 1 that keep dots apart, the same in every run: neighbours in height go to different sides."""
    places = np.zeros(len(heights))
    pattern = np.array([0.0, 0.6, -0.6, 0.3, -0.3, 0.9, -0.9])
    places[np.argsort(heights, kind="stable")] = np.resize(pattern, len(heights))
    return places


def _figure(wide: float, tall: float) -> Any:
    return figure_class_of_matplotlib()(figsize=(wide, tall), dpi=130, layout="constrained")


def _finish(axis: Any, title: str, xlabel: str) -> None:
    axis.set_title(_folded(title, 80), fontsize=10, loc="left")
    axis.set_xlabel(_folded(xlabel, 80), fontsize=9)
    axis.tick_params(labelsize=9)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _legend(figure: Any, axis: Any) -> None:
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=9, frameon=False)


def _written(figure: Any, path: Where) -> Any:
    if path is not None:
        write_figure(figure, Path(path))
    return figure


def _score(table: TrialTable) -> str:
    score = _score_name(table)
    return f"{score} / %" if score in SHARES else score


def _times(score: str) -> float:
    return 100.0 if score in SHARES else 1.0


def _folded(text: str, width: int = 24) -> str:
    """Long names on several lines; and a dollar sign is a dollar sign, since names are no formulas."""
    return "\n".join(textwrap.wrap(text, width)).replace("$", r"\$")


def _score_name(table: TrialTable) -> str:
    """What the scores of a table are; of several, the first."""
    return table.rows[0].data.score if table.rows else "accuracy"
