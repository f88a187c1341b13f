"""The pictures of a study on a page: what each setting does, all settings at once, scores in the order of the trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from unspool.report import Figure, Panel, Stroke, counted
from unspool.report.figure import Shape, finish
from unspool.spectral.drawing import BLUE, GREY, ORANGE
from unspool.study.report.findings import Findings
from unspool.study.results.best import Best
from unspool.study.results.exporting import order, shown
from unspool.study.results.importances import Importance
from unspool.study.results.plot import LOGARITHMIC, draw_choice, draw_importance
from unspool.study.results.variance_shares import MANY
from unspool.train.loss import SHARES

#: So many settings are drawn as lines: of more, the best.
LINES = 400
#: This part of the settings stands out.
TOP = 0.1


def importance_panel(name: str, found: Importance) -> Panel:
    """How much each setting explains, and what chance gives."""

    def draw(axis: Any) -> None:
        draw_importance(axis, found)
        finish(axis, "What matters", f"share of the variance of the {found.target.value} (%)", "")
        axis.grid(visible=False)

    told = "; ".join(f"{name} {100 * share:.0f} %" for name, share in found.bars())
    return Panel(name, f"Share of the variance of the {found.target.value}: {told}.", draw)


def choice_panels(name: str, found: Findings) -> list[Panel]:
    """A panel for each setting that varies: one dot per setting, a line through the means."""
    groups = [g for g in found.leaders if g.valid.finite]
    names = [k for k in found.best.varied if len({g.settings.get(k) for g in groups}) > 1]
    return [_choice(f"{name}-{k}", setting, groups) for k, setting in enumerate(names)]


def _choice(name: str, setting: str, groups: Sequence[Best]) -> Panel:
    values, means = [g.settings.get(setting) for g in groups], [g.valid.mean for g in groups]

    def draw(axis: Any) -> None:
        draw_choice(axis, setting, values, means, groups[0].score)
        finish(axis, setting, setting, _validation(groups[0].score))
        axis.set_ylim(low, high)

    times = 100 if groups[0].score in SHARES else 1
    margin = 0.05 * (max(means) - min(means))
    low, high = times * (min(means) - margin), times * (max(means) + margin)  # the same in all panels
    best = groups[0]
    return Panel(
        name, f"Validation score against {setting}; the best settings have {shown(best.settings.get(setting))}.", draw
    )


def parallel_figure(name: str, found: Findings) -> Figure | None:
    """Every setting as one line across axes for its values and its score; None where fewer than two things vary."""
    groups = [g for g in found.leaders if g.valid.finite][:LINES]
    names = [k for k in found.best.varied if len({g.settings.get(k) for g in groups}) > 1]
    if len(names) < 2:
        return None
    columns = {k: [g.settings.get(k) for g in groups] for k in names}
    times = 100 if found.best.score in SHARES else 1
    columns[_validation(found.best.score)] = [times * g.valid.mean for g in groups]
    scales = {k: _Scale(k, values) for k, values in columns.items()}
    top = max(1, math.ceil(TOP * len(groups)))

    def draw(axis: Any) -> None:
        for place in reversed(range(len(groups))):
            heights = [scales[k].place(values[place]) for k, values in columns.items()]
            colour, width = (ORANGE, 3.2) if place == 0 else (BLUE, 1.6) if place < top else (GREY, 0.7)
            axis.plot(range(len(columns)), heights, color=colour, linewidth=width, alpha=1 if place < top else 0.55)
        for across, scale in enumerate(scales.values()):
            axis.axvline(across, color=GREY, linewidth=1, zorder=0)
            for height, text in scale.marks():
                box = {"boxstyle": "round,pad=0.15", "facecolor": "none", "edgecolor": "none"}
                axis.text(across + 0.02, height + 0.012, text, fontsize=9, bbox=box)
        finish(axis, "", "", "")
        axis.grid(visible=False)
        axis.set_xticks(range(len(columns)), list(columns))
        axis.set(yticks=[], ylim=(-0.06, 1.1), xlim=(-0.1, len(columns) - 0.7))
        for line in axis.spines.values():
            line.set_visible(False)

    key = {"the best": Stroke(ORANGE)}
    key |= {f"among the best {top}": Stroke(BLUE)} if top > 1 else {}
    key |= {"the others": Stroke(GREY)} if top < len(groups) else {}
    label = f"Parallel coordinates of {counted(len(groups), 'setting')} over {', '.join(names)} and the validation score; the best: {found.best.label}."
    caption = "Each line is one setting: where it crosses an axis is its value, and on the last axis its mean validation score."
    more = len(found.leaders) - len(groups)
    caption += f" The {len(groups)} best are drawn, {more} are not." if more > 0 else ""
    return Figure([Panel(name, label, draw, Shape.WIDE)], caption, key)


class _Scale:
    """Where the values of a column stand between 0 and 1: numbers on a line or by factors, words and missing values side by side."""

    def __init__(self, name: str, values: Sequence[Any]) -> None:
        self.kinds = sorted(set(values), key=order)
        self.numbers = len(self.kinds) > MANY and all(isinstance(v, int | float) for v in self.kinds)
        self.factors = self.numbers and name in LOGARITHMIC and self.kinds[0] > 0

    def place(self, value: Any) -> float:
        """The height of a value."""
        if not self.numbers:
            return self.kinds.index(value) / max(1, len(self.kinds) - 1)
        low, high, here = (math.log(v) if self.factors else v for v in (self.kinds[0], self.kinds[-1], value))
        return float((here - low) / (high - low))

    def marks(self) -> list[tuple[float, str]]:
        """What is written along the axis: every value, or both ends of many."""
        told = [self.kinds[0], self.kinds[-1]] if self.numbers else self.kinds
        return [(self.place(value), shown(value)) for value in told]


def order_panel(name: str, found: Findings) -> Panel:
    """Validation scores in the order in which trials ended, and the best so far."""
    ended = [row for row in found.table.rows if row.result is not None and math.isfinite(row.result.valid_score)]
    ended.sort(key=lambda row: (row.finished_at is None, row.finished_at, row.number))
    times = 100 if found.best.score in SHARES else 1
    scores = [times * row.result.valid_score for row in ended if row.result is not None]
    so_far = list(accumulate(scores, max))

    def draw(axis: Any) -> None:
        where = range(1, len(scores) + 1)
        axis.plot(where, scores, "o", color=BLUE, markersize=3.5, alpha=0.5, markeredgewidth=0, label="one trial")
        axis.step(where, so_far, where="post", color=ORANGE, linewidth=1.8, label="best so far")
        finish(axis, "Scores over trials", "trials, in the order in which they ended", _validation(found.best.score))

    told = (
        f"the best is {max(scores):.4g}, reached by trial {1 + scores.index(max(scores))}" if scores else "none ended"
    )
    return Panel(name, f"Validation score of {counted(len(scores), 'trial')} in the order of their end: {told}.", draw)


def _validation(score: str) -> str:
    return f"validation {score}" + (" (%)" if score in SHARES else "")
