"""Comparisons: the same numbers as scipy, seeds in pairs, and nothing claimed that chance could do."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from unspool.errors import IncompatibleError
from unspool.study.results.comparison import (
    FEW,
    Test,
    bootstrap_interval,
    compare,
    compare_all,
    holm,
    paired_t,
    signed_rank,
    student_interval,
)
from unspool.study.results.trial_table import TrialTable, example_table
from unspool.train import DataRecord

NAN = float("nan")


def gaps(n, seed=0, shift=0.3):
    return np.random.default_rng(seed).normal(shift, 1, n)


def scored(**models):
    """A table of {model: {seed: test score}}, all with the same validation score."""
    rows, pattern = [], example_table().rows[0]
    for model, scores in models.items():
        for seed, test in scores.items():
            words = {
                "key": f"{model}{seed}", "number": len(rows), "trial": pattern.trial | {"model": model, "seed": seed},
                "result": replace(pattern.result, test_score=test),
            }  # fmt: skip
            rows.append(replace(pattern, **words))
    return TrialTable.of(rows)


@pytest.mark.parametrize("n", [2, 3, 10, 40])
def test_p_values_are_those_of_scipy(n):
    some = gaps(n)
    assert paired_t(some) == pytest.approx(stats.ttest_rel(some, np.zeros(n)).pvalue)
    assert signed_rank(some) == pytest.approx(stats.wilcoxon(some, method="exact").pvalue)


def test_ranks_with_ties_count_every_choice_of_signs():
    some = np.array([1.0, 1.0, -2.0, 3.0, 3.0, 3.0, -1.0])
    ranks = stats.rankdata(abs(some))
    signs = np.array(np.meshgrid(*[[0, 1]] * 7)).reshape(7, -1).T
    sums, here = signs @ ranks, ranks[some > 0].sum()
    assert signed_rank(some) == pytest.approx(2 * min((sums >= here).mean(), (sums <= here).mean()))


@pytest.mark.parametrize("test", list(Test))
def test_p_values_are_fair_where_nothing_differs(test):
    found = paired_t if test is Test.PAIRED_T else signed_rank
    small = np.mean([found(gaps(12, seed, shift=0.0)) < 0.05 for seed in range(1000)])
    assert 0.03 < small < 0.065


def test_zero_and_equal_differences():
    assert paired_t(np.zeros(5)) == signed_rank(np.zeros(5)) == 1.0
    assert paired_t(np.full(5, 0.01)) == 0.0
    same = compare(scored(A={0: 0.8, 1: 0.7, 2: 0.6}, B={0: 0.8, 1: 0.7, 2: 0.6}), "A", "B")
    assert (same.difference, same.p_value, same.effect, same.low, same.high) == (0, 1, 0, 0, 0)
    assert str(same).startswith("A and B cannot be told apart")
    # 0.83 - 0.82 and 0.73 - 0.72 are different floats.
    shifted = compare(scored(A={0: 0.83, 1: 0.73, 2: 0.62}, B={0: 0.82, 1: 0.72, 2: 0.61}), "A", "B")
    single = {
        m: {k: float(np.float32(v)) for k, v in enumerate(held)}
        for m, held in {"A": (0.83, 0.73, 0.62), "B": (0.82, 0.72, 0.61)}.items()
    }
    assert compare(scored(**single), "A", "B").effect == shifted.effect == math.inf
    assert shifted.note == "all differences are equal"
    assert "effect size" not in str(shifted)


def test_the_interval_covers_the_truth():
    hits = 0
    for seed in range(200):
        low, high = bootstrap_interval(gaps(30, seed), 0.9, 500, 0)
        hits += low <= 0.3 <= high
    assert 165 <= hits <= 193
    some = gaps(10)
    assert bootstrap_interval(some, 0.9, 500, 1) == bootstrap_interval(some, 0.9, 500, 1)
    narrow, wide = bootstrap_interval(some, 0.5, 2000, 0), bootstrap_interval(some, 0.99, 2000, 0)
    assert wide[0] < narrow[0] < some.mean() < narrow[1] < wide[1]


def test_swapping_sides_turns_the_difference_round():
    table = example_table(seeds=6)
    one, other = compare(table, "GCN", "UGDGNN"), compare(table, "UGDGNN", "GCN")
    assert one.difference == -other.difference
    assert one.p_value == other.p_value
    assert one.effect == -other.effect
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=2e-4)
    assert one.difference == pytest.approx(one.a.test.mean - one.b.test.mean)


def test_sides_are_models_settings_or_groups():
    table = example_table()
    found = compare(table, {"model": "GCN", "dropout": 0.2}, {"model": "GCN", "dropout": 0.8})
    assert found.names == ("GCN (dropout 0.2)", "GCN (dropout 0.8)")
    best = table.best()
    assert compare(table, best, "GCN").a == best
    with pytest.raises(ValueError, match="no trial has model='MLP'; there are GCN, UGDGNN"):
        compare(table, "GCN", "MLP")


def test_missing_seeds_are_named_and_left_out():
    table = scored(A={0: 0.8, 1: 0.7, 2: 0.9, 5: 0.1}, B={0: 0.7, 1: 0.65, 2: 0.7, 7: 0.9, 8: NAN})
    found = compare(table, "A", "B")
    assert found.members == ((0,), (1,), (2,))
    assert (found.missing_a, found.missing_b) == (((7,),), ((5,),))
    assert found.note == "A lacks seed 7; B lacks seed 5"
    assert found.difference == pytest.approx((0.1 + 0.05 + 0.2) / 3)
    with pytest.raises(
        IncompatibleError, match="two test scores on the same seed are needed, found 1: A lacks seed 2; B lacks seed 1"
    ):
        compare(scored(A={0: 0.8, 1: 0.7}, B={0: 0.7, 2: 0.7}), "A", "B")
    with pytest.raises(IncompatibleError, match="found 0"):
        compare(scored(A={0: NAN, 1: NAN}, B={0: NAN, 1: NAN}), "A", "B")


def test_bad_words_are_refused():
    table = example_table()
    for words, message in (
        ({"test": "t"}, "expected Test.PAIRED_T or Test.WILCOXON"),
        ({"confidence": 95}, "expected a number between 0 and 1"),
        ({"draws": 0}, "needs at least one"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            compare(table, "GCN", "UGDGNN", **words)
    other = TrialTable.of([*table.rows, *(replace(r, data=DataRecord("b", ""), key=f"b{r.key}") for r in table.rows)])
    with pytest.raises(IncompatibleError, match="scores on cora and b cannot be compared"):
        compare(other, {"model": "GCN", "data": "cora"}, {"model": "GCN", "data": "b"})
    with pytest.raises(ValueError, match="at least two models"):
        compare_all(table, ["GCN"])


def test_holm_is_bonferroni_step_by_step():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
    table = scored(**{m: {s: 0.1 * k + 0.01 * ((s * (k + 3)) % 5) for s in range(5)} for k, m in enumerate("ABC")})
    found = compare_all(table)
    assert [one.names for one in found] == [("A", "B"), ("A", "C"), ("B", "C")]
    assert [one.corrected for one in found] == holm([one.p_value for one in found])
    assert "(Holm)" in str(found[0])


def test_scores_that_are_no_shares_are_printed_as_they_are():
    rows = example_table().rows
    table = TrialTable.of(replace(row, data=replace(row.data, score="R²")) for row in rows)
    assert "UGDGNN is 0.01 above GCN on cora (test R², 3 pairs)" in str(compare(table, "UGDGNN", "GCN"))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_interval_of_few_pairs_says_what_the_test_says(n):
    draw = np.random.default_rng(n)
    for _ in range(50):
        gaps = draw.normal(0.8, 1.0, n)
        low, high = student_interval(gaps, 0.95)
        assert (low > 0 or high < 0) == (paired_t(gaps) < 0.05)
        around = stats.t.interval(0.95, n - 1, gaps.mean(), stats.sem(gaps))
        assert (low, high) == pytest.approx(around)


def test_fewer_than_six_pairs_have_students_interval():
    for seeds in (FEW - 1, FEW):
        found = compare(example_table(seeds=seeds), "UGDGNN", "GCN")
        gaps = (np.array(found.a_scores) - np.array(found.b_scores)).round(6)
        wanted = student_interval(gaps, 0.95) if seeds < FEW else bootstrap_interval(gaps, 0.95, 10_000, 0)
        assert (found.low, found.high) == pytest.approx(wanted)
        assert ("Student's" in str(found)) == (seeds < FEW)
