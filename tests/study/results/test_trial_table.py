"""Tables of trials: flat names, groups, and a choice that looks at validation only."""

import math
import sys
import types
from dataclasses import replace

import pytest
from torch import nn

import unspool as us
from unspool.errors import IncompatibleError
from unspool.study.results.best import Measure, Sample
from unspool.study.results.comparison import compare
from unspool.study.results.importances import importance
from unspool.study.results.trial_table import TrialTable, example_table
from unspool.study.store import Row, Status
from unspool.train import DataRecord, Ending, Result, Trial

NAN = float("nan")


def result(valid=0.8, test=0.8, loss=1.0, ending=Ending.ALL_EPOCHS):
    return Result(5, 50, 0.1, loss, valid, test, ending, 0.5)


def row(
    number,
    outcome=None,
    *,
    data="cora",
    score="accuracy",
    status=None,
    seed=0,
    model=us.models.GCN,
    config=None,
    **settings,
):
    plain = Trial(model, settings, us.train.TrainConfig() if config is None else config, seed).to_plain()
    state = status if status is not None else Status.WAITING if outcome is None else Status.DONE
    return Row(f"{data}{number}", number, DataRecord(data, "5e1f", score), plain, state, outcome)


def study(cells, **words):
    """Rows of {dropout: [outcome of each seed]}."""
    flat = [(dropout, seed, outcome) for dropout, held in cells.items() for seed, outcome in enumerate(held)]
    return TrialTable.of(row(n, o, seed=s, dropout=d, **words) for n, (d, s, o) in enumerate(flat))


class Shaped(nn.Module):
    """Takes a function."""

    def __init__(self, in_features, out_features, act=math.sin):
        super().__init__()


def test_columns_are_flat_and_varied_ones_differ():
    table = study({0.1: [result(), result()], 0.5: [result(), result()]}, hidden=8)
    assert table.varied == ("dropout", "seed")
    assert {
        "model",
        "data",
        "hidden",
        "dropout",
        "lr",
        "weight_decay",
        "epochs",
        "monitor",
        "min_epochs",
        "lower_level",
        "seed",
        "normalise_rows",
    } <= set(table.columns)
    first = table.records()[0]
    assert (first["model"], first["data"], first["hidden"], first["epochs"], first["epochs_run"]) == (
        "GCN",
        "cora",
        8,
        1000,
        50,
    )


def test_settings_that_only_tell_models_apart_are_not_varied():
    rows = [row(0, result(), model=us.models.APPNP, teleport=0.1), row(1, result(), hidden=8)]
    table = TrialTable.of(rows)
    assert table.varied == ("model",)
    assert table.records()[1]["teleport"] is None
    assert "teleport" not in table.filter(model="GCN").best().settings


@pytest.mark.parametrize(
    ("decay", "shown"),
    [(0.1, 0.1), ({"first": 0.1, "linear": 0.1, "hops": 0.0}, 0.1), ({"hops": 0.0}, 0.0), ({"first": 0.1, "gate": 0.2}, "first 0.1, gate 0.2")],
)  # fmt: skip
def test_decay_is_one_number_where_groups_agree(decay, shown):
    assert (
        TrialTable.of([row(0, result(), config=us.train.TrainConfig(weight_decay=decay))]).records()[0]["weight_decay"]
        == shown
    )


def test_decays_that_look_alike_stay_apart():
    plans = [us.train.TrainConfig(weight_decay=d) for d in ({"first": 0.1}, {"first": 0.1, "linear": 0.1}, 0.1)]
    table = TrialTable.of(row(n, result(), config=config) for n, config in enumerate(plans))
    assert [r["weight_decay"] for r in table.records()] == ["first 0.1", "first 0.1, linear 0.1", "all 0.1"]
    assert len(table.leaders()) == 3


def test_names_that_are_taken_get_a_longer_one():
    told = row(0, result()).trial | {"settings": {"lr": 3, "epoch": 4, "sizes": [64, 32]}}
    record = TrialTable.of([replace(row(0, result()), trial=told)]).records()[0]
    assert (record["settings.lr"], record["lr"], record["settings.epoch"], record["epoch"]) == (3, 0.01, 4, 5)
    assert record["sizes"] == (64, 32)


def test_objects_among_settings_are_words():
    kept = [us.Checkpointed(every=2), us.Stored(), None]
    rows = [row(n, result(0.5 + 0.1 * n), model=us.models.AirGNN, adjoint=one) for n, one in enumerate(kept)]
    table = TrialTable.of(rows)
    assert [one["adjoint"] for one in table.records()] == ["checkpointed(every=2)", "stored", None]
    assert table.filter(adjoint="stored").best().valid.mean == 0.6
    assert len(table.leaders()) == 3
    functions = [row(n, result(), model=Shaped, act=act) for n, act in enumerate((math.sin, math.cos))]
    assert [one["act"] for one in TrialTable.of(functions).records()] == ["sin", "cos"]


def test_functions_of_one_name_are_told_apart_by_their_code():
    rows = [
        row(n, result(0.5 + 0.1 * n), model=Shaped, act=act) for n, act in enumerate((lambda x: 2 * x, lambda x: 3 * x))
    ]
    table = TrialTable.of(rows)
    assert [one["act"] for one in table.records()] == [one["act"] for one in table.records()][:1] * 2
    assert [best.n for best in table.groups()] == [1, 1]
    assert len({best.settings["code"] for best in table.groups()}) == 2


def test_best_averages_over_seeds_and_never_looks_at_test():
    honest = {0.1: [result(0.70, 0.1), result(0.90, 0.2)], 0.5: [result(0.85, 0.9), result(0.72, 0.9)]}
    best = study(honest).best()
    assert best.settings["dropout"] == 0.1
    assert best.members == ((0,), (1,))
    assert best.test.values == (0.1, 0.2)
    assert (best.valid.mean, best.valid.std) == (pytest.approx(0.8), pytest.approx(math.sqrt(0.02)))
    assert best.test.error == pytest.approx(best.test.std / math.sqrt(2))
    swapped = {d: [replace(r, test_score=1 - r.test_score) for r in held] for d, held in honest.items()}
    assert study(swapped).best().settings == best.settings


def test_equal_scores_go_by_loss_then_by_order():
    assert study({0.1: [result(loss=2.0)], 0.5: [result(loss=1.0)]}).best().settings["dropout"] == 0.5
    assert study({0.1: [result()], 0.5: [result()]}).best().settings["dropout"] == 0.1
    # The same scores under other seeds have the same mean to the last bit.
    a, b = [0.1, 0.2, 0.3, 0.7], [0.7, 0.3, 0.2, 0.1]
    table = study({0.1: [result(v, loss=2.0) for v in a], 0.5: [result(v, loss=1.0) for v in b]})
    assert table.best().settings["dropout"] == 0.5


def test_by_loss():
    table = study({0.1: [result(0.9, loss=2.0)], 0.5: [result(0.8, loss=1.0)]})
    assert table.best(by=Measure.VALID_LOSS).settings["dropout"] == 0.5
    assert table.best().settings["dropout"] == 0.1


def test_diverged_groups_come_last():
    table = study({
        0.1: [result(0.99, ending=Ending.DIVERGED), result(0.99)],
        0.5: [result(0.5), result(0.5)],
        0.8: [result(NAN, NAN, NAN, Ending.DIVERGED), result(0.9)],
    })  # fmt: skip
    assert [b.settings["dropout"] for b in table.leaders()] == [0.5, 0.1, 0.8]
    last = table.leaders()[-1]
    assert (last.diverged, last.note, last.valid.mean) == (1, "1 of 2 diverged", 0.9)
    assert "1 of 2 diverged" in str(table)
    alone = study({0.1: [result(NAN, NAN, NAN, Ending.DIVERGED)]}).best()
    assert math.isnan(alone.valid.mean)
    assert "validation –" in str(alone)


def test_incomplete_groups_wait_while_there_are_complete_ones():
    table = study({0.1: [result(0.6), result(0.6)], 0.5: [result(0.9), None], 0.8: [None, None]})
    best = table.best()
    assert best.settings["dropout"] == 0.1
    assert best.note == "2 settings with unfinished trials left out"
    assert best.note in str(table)
    assert len(table) == 3


def test_incomplete_groups_compete_where_all_are():
    table = study({0.1: [result(0.6), None, None], 0.5: [result(0.9), result(0.9), None]})
    assert table.best().settings["dropout"] == 0.5
    assert table.best().note == "2 of 3 trials finished"


def test_failed_trials_make_a_group_incomplete():
    rows = [*study({0.1: [result(0.6), result(0.6)]}).rows, row(8, result(0.9), dropout=0.5)]
    table = TrialTable.of([*rows, row(9, seed=1, dropout=0.5, status=Status.FAILED)])
    assert table.best().settings["dropout"] == 0.1
    assert table.filter(dropout=0.5).best().note == "1 of 2 trials finished; 1 failed"


def test_rows_count_once_and_in_order():
    table = study({0.1: [result(0.6)], 0.5: [result(0.7)]})
    again = TrialTable.of([*reversed(table.rows), *table.rows])
    assert again.rows == table.rows
    twice = TrialTable.of([*table.rows, row(8, seed=0, dropout=0.1), row(9, result(0.9), seed=0, dropout=0.1)])
    assert twice.filter(dropout=0.1).best().valid.values == (0.9,)


def test_changed_data_under_the_same_name_is_other_data():
    old = study({0.1: [result(0.9)]}).rows
    new = [
        replace(r, key=f"new{r.key}", number=9, data=DataRecord("cora", "77aa"))
        for r in study({0.1: [result(0.6)]}).rows
    ]
    table = TrialTable.of([*old, *new])
    assert [b.data for b in table.best_each()] == ["cora 5e1f", "cora 77aa"]
    with pytest.raises(IncompatibleError, match="scores on cora 5e1f and cora 77aa cannot be compared"):
        table.best()


@pytest.mark.parametrize(
    ("one", "other", "names"),
    [
        (
            DataRecord("cora", "5e1f00-aa"),
            DataRecord("cora", "77aa00-aa"),
            ["cora 5e1f00", "cora 77aa00"],
        ),  # other data
        (
            DataRecord("cora", "5e1f00-aa"),
            DataRecord("cora", "5e1f00-bb"),
            ["cora aa", "cora bb"],
        ),  # other splits or losses
        (DataRecord("cora", "5e1f00-aa"), DataRecord("cora", "5e1f00-aa", "F1"), ["cora accuracy", "cora F1"]),
        (DataRecord("cora", "5e1f00-aa"), DataRecord("texas", "77aa00-aa"), ["cora", "texas"]),
        (DataRecord("cora", "5e1f00-aa"), DataRecord("cora", "5e1f00-aa", source={"dataset": "cora"}), ["cora"]),
    ],
)
def test_data_are_told_apart_by_what_they_are(one, other, names):
    rows = [replace(row(k, result(0.5 + 0.1 * k), seed=k), data=data) for k, data in enumerate((one, other))]
    table = TrialTable.of(rows)
    assert [best.data for best in table.best_each()] == names
    assert sum(len(table.filter(data=name)) for name in names) == 2
    if len(names) > 1:
        with pytest.raises(IncompatibleError, match="cannot be compared"):
            table.best()


def test_every_dataset_keeps_its_own_score():
    rows = [row(0, result(0.5, 0.25)), row(1, result(0.5, 0.25), data="rain", score="R²")]
    table = TrialTable.of(rows)
    assert [(best.data, best.score) for best in table.leaders()] == [("cora", "accuracy"), ("rain", "R²")]
    shares, squares = str(table).split("\n\n")
    assert "50.00 %" in shares
    assert "0.5000" in squares
    assert "%" not in squares
    assert table.filter(data="rain").best().score == "R²"


def test_presets_tell_no_groups_apart():
    rows = list(study({0.1: [result(0.6), result(0.8)]}).rows)
    rows[1] = replace(rows[1], trial=rows[1].trial | {"preset": "paper"})
    assert TrialTable.of(rows).best().n == 2
    assert len(TrialTable.of(rows).filter(preset="paper")) == 1


def test_datasets_are_not_compared():
    rows = [
        row(n, result(0.5 + 0.1 * n), data=d, dropout=p)
        for n, (d, p) in enumerate([("a", 0.1), ("b", 0.1), ("a", 0.5), ("b", 0.5)])
    ]
    table = TrialTable.of(rows)
    with pytest.raises(IncompatibleError, match=r"scores on a and b cannot be compared; use filter\(data=\.\.\.\)"):
        table.best()
    assert [(b.data, b.settings["dropout"]) for b in table.best_each()] == [("a", 0.5), ("b", 0.5)]
    assert [b.data for b in table.leaders(1)] == ["a", "b"]
    both = table.best(over=("data", "seed"))
    assert both.members == (("a", 0), ("b", 0))
    assert "several datasets" in str(both)


def test_best_each_of_other_settings():
    table = study({0.1: [result(0.6)], 0.5: [result(0.7)]})
    assert [b.valid.mean for b in table.best_each("dropout")] == [0.6, 0.7]
    assert table.best_each(over=("seed", "dropout"))[0].n == 2


def test_filter_by_value_list_and_class():
    table = TrialTable.of(
        [row(0, result()), row(1, result(), model=us.models.SGC), row(2, result(), model=us.models.SGC, seed=1)]
    )
    assert len(table.filter(model=us.models.SGC)) == len(table.filter(model="SGC", seed=[0, 1])) == 2
    assert len(table.filter(model="GCN", seed=range(3))) == 1
    with pytest.raises(ValueError, match="no setting is called 'drop'; there are model, data"):
        table.filter(drop=1)
    with pytest.raises(ValueError, match="no trial has model='GNC'; there are GCN, SGC"):
        table.filter(model="GNC")


class Own(us.models.GCN):
    """A user's own model, known by its module and name."""


def test_own_models_are_found_without_their_module():
    table = TrialTable.of([row(0, result(), model=Own)])
    assert table.best().model.endswith("test_trial_table:Own")
    assert len(table.filter(model="Own")) == len(table.filter(model=Own)) == 1


def test_nothing_finished_is_said():
    assert str(TrialTable.of([])) == "no trials"
    waiting = study({0.1: [None]})
    assert str(waiting) == "cora: 0 of 1 trials finished, 1 setting\nno trial has finished yet"
    assert waiting.leaders() == waiting.best_each() == ()
    for table in (waiting, TrialTable.of([])):
        with pytest.raises(IncompatibleError, match="no trial has finished yet"):
            table.best()
    with pytest.raises(ValueError, match="over='sede': there is no such setting"):
        waiting.best("sede")


def test_the_printed_table():
    rows = [*study({0.1: [result(0.8, 0.7), result(0.82, 0.72)], 0.5: [result(0.9, NAN), result(0.9, NAN)]}).rows]
    assert str(TrialTable.of(rows)).splitlines() == [
        "cora: 4 of 4 trials finished, 2 settings",
        "dropout  validation      test            seeds",
        "0.5      90.00 ± 0.00 %  –               2",
        "0.1      81.00 ± 1.41 %  71.00 ± 1.41 %  2",
    ]
    squares = study({0.1: [result(0.8, 0.7), result(0.82, 0.72)]}, score="R²")
    assert "0.8100 ± 0.0141" in str(squares)
    assert squares.best().score == "R²"
    many = study({0.01 * k: [result()] for k in range(1, 15)})
    assert str(many).endswith("(the 10 best of 14)")


def test_a_sample_of_nothing_and_of_one():
    assert math.isnan(Sample(()).mean)
    assert math.isnan(Sample((0.5,)).std)
    assert Sample((0.5, NAN)).mean == 0.5


def test_data_frames(monkeypatch):
    made = types.SimpleNamespace(DataFrame=lambda rows, columns: (rows, columns))
    monkeypatch.setitem(sys.modules, "pandas", made)
    rows, columns = example_table().frame()
    assert len(rows) == 18
    assert set(columns) == set(rows[0])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match="a data frame needs pandas"):
        example_table().frame()


def test_ten_thousand_trials_take_no_time():
    base = row(0, result(), dropout=0.1)
    rows = [
        replace(base, key=str(n), number=n, trial=base.trial | {"seed": n % 10, "settings": {"dropout": n // 10}})
        for n in range(10_000)
    ]
    assert len(TrialTable.of(rows).leaders(1000)) == 1000


def test_names_from_files_steer_no_terminal():
    evil = "x\x1b[2Jy\u202e"
    given = example_table(seeds=4).rows
    told = [row.trial | {"model": f"{row.trial['model']}{evil}"} for row in given]
    rows = [
        replace(
            r,
            data=replace(r.data, name=evil),
            trial=d | {"settings": {evil: r.trial["settings"]["dropout"], "kind": evil}},
        )
        for r, d in zip(given, told, strict=True)
    ]
    table = TrialTable.of(
        [*rows, replace(rows[0], key="failed", number=99, result=None, status=Status.FAILED, message=evil)]
    )
    names = [best.model for best in table.best_each("model")]
    for thing in (table, table.best(), compare(table, *names), importance(table)):
        assert "[2J" in str(thing)
        assert not set(str(thing)) & {"\x1b", "\u202e"}
