"""Importance: exact on grids whose parts are known, near the truth elsewhere."""

import itertools
import sys
from dataclasses import replace

import numpy as np
import pytest

from unspool.errors import IncompatibleError
from unspool.study.results.best import Measure
from unspool.study.results.importances import Method, importance
from unspool.study.results.trial_table import TrialTable, example_table
from unspool.train import DataRecord, Ending


def table_of(points, score, seeds=1, ending=Ending.ALL_EPOCHS):
    """Trials at settings with a known score."""
    rows, pattern = [], example_table().rows[0]
    for settings in points:
        for seed in range(seeds):
            value = score(**settings)
            words = {
                "key": str(len(rows)), "number": len(rows), "trial": pattern.trial | {"settings": settings, "seed": seed},
                "result": replace(pattern.result, valid_score=value, valid_loss=1 - value, ending=ending),
            }  # fmt: skip
            rows.append(replace(pattern, **words))
    return TrialTable.of(rows)


def grid(**levels):
    return [dict(zip(levels, values, strict=True)) for values in itertools.product(*levels.values())]


def test_a_sum_has_main_effects_only():
    # Levels -1, 0, 1 have variance 2/3, levels -1, 1 variance 1: shares 4·2/3 and 1 of 11/3.
    table = table_of(grid(a=[-1, 0, 1], b=[-1, 1], c=[1, 2]), lambda a, b, c: 0.02 * a + 0.01 * b)
    found = importance(table)
    assert found.method is Method.GRID
    assert found.shares == pytest.approx({"a": 8 / 11, "b": 3 / 11, "c": 0.0})
    assert list(found.shares) == ["a", "b", "c"]
    assert max(found.interactions.values()) == pytest.approx(0, abs=1e-12)
    assert found.rest == pytest.approx(0, abs=1e-12)


def test_a_product_is_all_interaction():
    found = importance(table_of(grid(a=[-1, 1], b=[-1, 1]), lambda a, b: a * b))
    assert found.interactions["a", "b"] == pytest.approx(1)
    triple = importance(table_of(grid(a=[-1, 1], b=[-1, 1], c=[-1, 1]), lambda a, b, c: a * b * c))
    assert triple.rest == pytest.approx(1)


def test_shares_sum_to_one_whatever_the_scores():
    draw = np.random.default_rng(0)
    table = table_of(grid(a=[1, 2, 3], b=["x", "y"], c=[0.1, 0.2]), lambda **_: float(draw.random()), seeds=3)
    found = importance(table)
    assert sum(found.shares.values()) + sum(found.interactions.values()) + found.rest == pytest.approx(1)
    assert sum(share for _, share in found.bars()) == pytest.approx(1, abs=0.02)


def test_loss_is_another_target_and_seeds_are_averaged():
    table = table_of(grid(a=[1, 2], b=[1, 2]), lambda a, b: 0.1 * a, seeds=2)
    found = importance(table, Measure.VALID_LOSS)
    assert found.shares["a"] == pytest.approx(1)
    assert found.count == 4
    assert "validation loss of 4 settings" in str(found)


def test_hyper_parameters_that_move_together_are_one():
    points = [{"dropout": d, "propagation_dropout": d, "a": a} for d in (0.1, 0.5) for a in (1, 2)]
    found = importance(table_of(points, lambda dropout, a, **_: dropout + 0.1 * a))
    assert found.method is Method.GRID
    assert set(found.shares) == {"dropout", "a"}
    assert found.note == "propagation_dropout moves with dropout"
    alone = importance(table_of([{"x": v, "y": 2 * v} for v in (1, 2, 3)], lambda x, y: x))
    assert alone.shares == pytest.approx({"x": 1.0})


def random_points(count):
    draw = np.random.default_rng(0)
    return [dict(zip("abc", map(float, draw.uniform(-1, 1, 3)), strict=True)) for _ in range(count)]


# One-way shares take in whatever else is correlated by chance (-0.2 in the first 80 points here), so they need more points;
# quartiles of a straight line keep 15/16 of its variance.
@pytest.mark.parametrize(("method", "count", "near"), [(Method.FOREST, 80, 0.12), (Method.ONE_WAY, 400, 0.08)])
def test_random_searches_find_nearly_the_truth(method, count, near):
    if method is Method.FOREST:
        pytest.importorskip("sklearn")
    found = importance(table_of(random_points(count), lambda a, b, c: 0.2 * a + 0.1 * b), method=method)
    assert found.method is method
    assert found.shares["a"] == pytest.approx(0.8, abs=near)
    assert found.shares["b"] == pytest.approx(0.2, abs=near)
    assert found.shares["c"] < 0.05
    assert sum(found.shares.values()) + found.rest == pytest.approx(1)


def test_the_method_follows_what_is_there(monkeypatch):
    pytest.importorskip("sklearn")
    table = table_of(random_points(20), lambda a, b, c: a)
    assert importance(table).method is Method.FOREST
    assert importance(table) == importance(table)
    holes = table_of(grid(a=[1, 2, 3], b=[1, 2, 3])[:-1], lambda a, b: a)
    assert importance(holes).method is Method.FOREST
    with pytest.raises(IncompatibleError, match="not a full grid"):
        importance(holes, method=Method.GRID)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    assert importance(table).method is Method.ONE_WAY
    with pytest.raises(ValueError, match="needs scikit-learn"):
        importance(table, method=Method.FOREST)


def test_missing_settings_and_words_are_values_too():
    pytest.importorskip("sklearn")
    points = [{"a": a} for a in ("x", "y", "z")] + [{"a": a, "b": b} for a in ("x", "y") for b in (1, 2)]
    found = importance(table_of(points, lambda a, b=0: 0.1 * (a == "x") + 0.01 * b))
    assert set(found.shares) == {"a", "b"}


def test_diverged_settings_count_as_the_worst():
    fine = table_of(grid(a=[1, 2, 3], b=[1, 2]), lambda a, b: 0.1 * a)
    rows = list(fine.rows)
    for place in (4, 5):  # a = 3
        rows[place] = replace(
            rows[place], result=replace(rows[place].result, valid_score=float("nan"), ending=Ending.DIVERGED)
        )
    mixed = table_of(grid(a=[1, 2, 3], b=[1, 2]), lambda a, b: 0.1 * a + 0.01 * b)
    gone = [replace(r, result=replace(r.result, ending=Ending.DIVERGED)) if r.number > 3 else r for r in mixed.rows]
    filled = [replace(r, result=replace(r.result, valid_score=0.11)) if r.number > 3 else r for r in mixed.rows]
    assert importance(TrialTable.of(rows)).shares["a"] == pytest.approx(1)
    assert importance(TrialTable.of(gone)) == importance(TrialTable.of(filled))


def test_nothing_to_explain_is_said():
    with pytest.raises(IncompatibleError, match="1 finished setting: importance needs at least two"):
        importance(table_of(grid(a=[1]), lambda a: 0.5))
    with pytest.raises(IncompatibleError, match="all settings have the same validation score"):
        importance(table_of(grid(a=[1, 2]), lambda a: 0.5))
    mixed = [*example_table().rows, replace(example_table().rows[0], data=DataRecord("b", ""), key="b")]
    with pytest.raises(IncompatibleError, match=r"use filter\(data="):
        importance(TrialTable.of(mixed))
