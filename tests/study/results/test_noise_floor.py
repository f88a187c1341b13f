"""The floor of an importance: what a setting that does nothing would explain."""

import numpy as np
import pytest

from unspool.study.results.importances import Method, importance
from unspool.study.results.noise_floor import floors_of_columns, floors_of_grid
from unspool.study.results.trial_table import TrialTable, example_table
from unspool.study.results.variance_shares import one_way_shares


def test_a_setting_that_does_nothing_stays_below_its_floor_mostly():
    below, rounds = 0, 60
    for seed in range(rounds):
        draw = np.random.default_rng(seed)
        trials = draw.normal(size=(3, 4, 5))  # nothing matters: everything is noise
        means = trials.mean(-1)
        share = means.mean(1).var() / means.var()
        below += share <= floors_of_grid(["a", "b"], trials)["a"]
    assert 0.85 * rounds < below  # 95 per cent, but for luck


def test_a_small_effect_beside_a_large_one_is_seen():
    draw = np.random.default_rng(0)
    large, small = np.array([0.0, 5.0, 10.0])[:, None, None], np.array([0.0, 0.3])[None, :, None]
    trials = large + small + 0.05 * draw.normal(size=(3, 2, 6))
    means = trials.mean(-1)
    floors = floors_of_grid(["large", "small"], trials)
    share = means.mean(0).var() / means.var()
    assert floors["small"] < share < 0.01  # shuffling among all settings would put the floor above one tenth


def test_seeds_that_are_hard_for_all_count_for_none():
    draw = np.random.default_rng(0)
    effect = np.array([0.0, 0.1])[:, None] + 0.01 * draw.normal(size=(2, 8))
    hard = 3 * draw.normal(size=8)
    assert floors_of_grid(["a"], effect + hard)["a"] == pytest.approx(floors_of_grid(["a"], effect)["a"], rel=1e-6)


def test_a_shuffled_copy_is_measured_beside_the_real_columns():
    draw = np.random.default_rng(0)
    columns = {"matters": list(range(60)), "idle": draw.permutation(60).tolist()}
    values = np.arange(60.0)
    floors = floors_of_columns(one_way_shares, 100, columns, values)
    shares = one_way_shares(columns, values)
    assert shares["matters"] > 0.8 > floors["matters"]
    assert shares["idle"] <= floors["idle"]


def test_importances_have_a_floor_for_every_setting_by_every_method():
    table = example_table(seeds=5)
    for method in Method:
        found = importance(table, method=method)
        assert set(found.floors) == set(found.shares) == {"model", "dropout"}
        assert all(0 <= floor <= 1 for floor in found.floors.values())
    assert importance(table).noise == ()
    assert "chance" in str(importance(table))


def test_different_seeds_of_settings_do_not_stop_it():
    rows = [row for row in example_table(seeds=4).rows if not (row.trial["model"] == "GCN" and row.trial["seed"] == 3)]
    assert set(importance(TrialTable.of(rows)).floors) == {"model", "dropout"}
