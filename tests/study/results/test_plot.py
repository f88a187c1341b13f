"""Pictures of studies: they show the numbers, and odd studies draw too."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from unspool.errors import IncompatibleError
from unspool.study.results.comparison import Test, compare
from unspool.study.results.importances import importance
from unspool.study.results.plot import plot_choices, plot_compare, plot_grid, plot_importance, plot_leaders
from unspool.study.results.trial_table import TrialTable, example_table
from unspool.train import DataRecord, Ending

pytestmark = pytest.mark.long


TABLE = example_table()
PICTURES = {
    "leaders": plot_leaders,
    "choices": plot_choices,
    "grid": lambda t, **w: plot_grid(t, "dropout", "model", **w),
    "compare": lambda t, **w: plot_compare(compare(t, "GCN", "UGDGNN", test=Test.WILCOXON), **w),
    "importance": lambda t, **w: plot_importance(importance(t), **w),
}


def changed(table, change):
    """The same trials with other words or results."""
    return TrialTable.of(replace(r, **change(r)) for r in table.rows)


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_written_in_every_format(name, tmp_path):
    for ending, start in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        file = tmp_path / f"{name}.{ending}"
        PICTURES[name](TABLE, path=file)
        assert file.read_bytes().startswith(start)
    with pytest.raises(ValueError, match=r"written as \.png, \.svg or \.pdf"):
        PICTURES[name](TABLE, path=tmp_path / "a.gif")


@pytest.mark.parametrize("name", PICTURES)
def test_without_matplotlib_the_way_out_is_named(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match=r"pip install 'unspool\[plot\]'"):
        PICTURES[name](TABLE)


@pytest.mark.parametrize("name", PICTURES)
def test_missing_tests_divergence_and_single_seeds_draw_too(name):
    few = TABLE.filter(seed=[0, 1])
    odd = changed(
        few,
        lambda r: (
            {"result": replace(r.result, valid_score=float("nan"), ending=Ending.DIVERGED)} if r.number < 3 else {}
        ),
    )
    PICTURES[name](odd).draw_without_rendering()
    if name != "compare":
        blind = changed(TABLE.filter(seed=0), lambda r: {"result": replace(r.result, test_score=float("nan"))})
        PICTURES[name](blind).draw_without_rendering()


def test_leaders_show_means_and_one_panel_for_each_dataset():
    axis = plot_leaders(TABLE, n=2).axes[0]
    means = [float(line.get_xdata()[0]) for line in axis.lines if len(line.get_xdata()) == 1]
    best = TABLE.leaders(2)
    wanted = [100 * s.mean for b in best for s in (b.valid, b.test)]
    assert all(any(m == pytest.approx(w) for m in means) for w in wanted)
    assert [t.get_text() for t in axis.get_yticklabels()] == [b.label for b in best]
    assert axis.get_title(loc="left") == "best settings of UGDGNN on cora, chosen by validation"
    two = [*TABLE.rows, *changed(TABLE, lambda r: {"data": DataRecord("pubmed", ""), "key": f"p{r.key}"}).rows]
    assert len(plot_leaders(TrialTable.of(two)).axes) == 2


def test_choices_show_one_dot_for_each_setting_and_their_mean():
    axis = plot_choices(TABLE, "dropout").axes[0]
    *strips, line = axis.lines
    assert sum(len(s.get_xdata()) for s in strips) == 6
    groups = TABLE.groups()
    wanted = [100 * np.mean([g.valid.mean for g in groups if g.settings["dropout"] == d]) for d in (0.2, 0.5, 0.8)]
    assert list(line.get_ydata()) == pytest.approx(wanted)
    with pytest.raises(ValueError, match="no setting is called 'width'; those that vary are model, dropout"):
        plot_choices(TABLE, "width")


def test_many_values_lie_on_an_axis_and_rates_on_a_logarithmic_one():
    pattern = TABLE.rows[0]

    def at(k):
        config = pattern.trial["config"] | {"lr": 10 ** (-3 + 0.1 * k)}
        told = pattern.trial | {"config": config, "settings": {"dropout": 0.05 * k if k else None}}
        return replace(pattern, key=str(k), number=k, trial=told)

    table = TrialTable.of(at(k) for k in range(18))
    dropout, lr = plot_choices(table).axes
    assert (dropout.get_xlabel(), dropout.get_xscale(), len(dropout.lines[0].get_xdata())) == ("dropout", "linear", 17)
    assert (lr.get_xlabel(), lr.get_xscale()) == ("lr", "log")
    many = TrialTable.of(at(k) for k in range(40))
    with pytest.raises(IncompatibleError, match="too many values for a heat map"):
        plot_grid(many, "lr", "dropout")


def test_grids_write_the_means_and_leave_holes():
    axis = plot_grid(TABLE, "dropout", "model").axes[0]
    assert [t.get_text() for t in axis.texts] == [f"{100 * g.valid.mean:.1f}" for g in TABLE.groups()]
    holes = TrialTable.of(r for r in TABLE.rows if r.number >= 3)
    assert plot_grid(holes, "dropout", "model").axes[0].texts[0].get_text() == "–"


def test_comparisons_show_pairs_and_interval():
    found = compare(TABLE, "GCN", "UGDGNN")
    left, right = plot_compare(found).axes
    drawn = [tuple(line.get_ydata()) for line in left.lines]
    assert drawn == [pytest.approx((100 * a, 100 * b)) for a, b in zip(found.a_scores, found.b_scores, strict=True)]
    assert right.get_title(loc="left").startswith("paired t-test: p ")


def test_importance_bars_are_the_shares():
    found = importance(TABLE)
    axis = plot_importance(found).axes[0]
    assert [p.get_width() for p in axis.patches] == pytest.approx([100 * share for _, share in found.bars()])


def test_odd_names_are_no_formulas():
    odd = changed(TABLE, lambda r: {"trial": r.trial | {"model": f"a $very$ long_{{name}} {r.trial['model']} " * 3}})
    for draw in (plot_leaders, plot_choices, lambda t: plot_grid(t, "dropout", "model")):
        draw(odd).draw_without_rendering()


def test_nothing_to_draw_is_said():
    with pytest.raises(IncompatibleError, match="nothing to draw"):
        plot_leaders(TrialTable.of([]))
    with pytest.raises(IncompatibleError, match="nothing to draw"):
        plot_choices(TrialTable.of([]))
    with pytest.raises(IncompatibleError, match="no hyper-parameter varies"):
        plot_choices(TABLE.filter(model="GCN", dropout=0.5))
    two = [*TABLE.rows, replace(TABLE.rows[0], data=DataRecord("b", ""), key="b")]
    with pytest.raises(IncompatibleError, match=r"use filter\(data="):
        plot_grid(TrialTable.of(two), "dropout", "model")
