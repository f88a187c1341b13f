"""Tables of trials: flat names, groups, and a choice that looks at validation only."""

import math
import sys
import types
from dataclasses import replace

import pytest

import unspool as us
from unspool.errors import IncompatibleError
from unspool.study.results.best import Measure, Sample
from unspool.study.results.compare import compare
from unspool.study.results.importance import importance
from unspool.study.results.table import Table, example_table
from unspool.study.store import Row, Status
from unspool.study.trial import Result, Trial

NAN = float("nan")


def result(valid=0.8, test=0.8, loss=1.0, reason="all epochs"):
    return Result(5, 50, 0.1, loss, valid, test, reason, 0.5)


def row(number, outcome=None, *, data="cora", status=None, seed=0, model=us.models.GCN, plan=None, **settings):
    told = Trial(model, settings, us.train.Plan() if plan is None else plan, seed).describe()
    state = status if status is not None else Status.WAITING if outcome is None else Status.DONE
    return Row(f"{data}{number}", number, data, told, state, outcome, None, None, "5e1f")


def study(cells, **words):
    """Rows of {dropout: [outcome of each seed]}."""
    flat = [(dropout, seed, outcome) for dropout, held in cells.items() for seed, outcome in enumerate(held)]
    return Table.of(row(n, o, seed=s, dropout=d, **words) for n, (d, s, o) in enumerate(flat))


def test_columns_are_flat_and_varied_ones_differ():
    table = study({0.1: [result(), result()], 0.5: [result(), result()]}, hidden=8)
    assert table.varied == ("dropout", "seed")
    assert {"model", "data", "hidden", "dropout", "rate", "decay", "epochs", "seed", "normalise_rows"} <= set(
        table.columns
    )
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
    table = Table.of(rows)
    assert table.varied == ("model",)
    assert table.records()[1]["teleport"] is None
    assert "teleport" not in table.filter(model="GCN").best().settings


@pytest.mark.parametrize(
    ("decay", "shown"),
    [(0.1, 0.1), ({"first": 0.1, "linear": 0.1, "hops": 0.0}, 0.1), ({"hops": 0.0}, 0.0), ({"first": 0.1, "gate": 0.2}, "first 0.1, gate 0.2")],
)  # fmt: skip
def test_decay_is_one_number_where_groups_agree(decay, shown):
    assert Table.of([row(0, result(), plan=us.train.Plan(decay=decay))]).records()[0]["decay"] == shown


def test_decays_that_look_alike_stay_apart():
    plans = [us.train.Plan(decay=d) for d in ({"first": 0.1}, {"first": 0.1, "linear": 0.1}, 0.1)]
    table = Table.of(row(n, result(), plan=plan) for n, plan in enumerate(plans))
    assert [r["decay"] for r in table.records()] == ["first 0.1", "first 0.1, linear 0.1", "all 0.1"]
    assert len(table.leaders()) == 3


def test_names_that_are_taken_get_a_longer_one():
    told = row(0, result()).described | {"settings": {"rate": 3, "epoch": 4, "sizes": [64, 32]}}
    record = Table.of([replace(row(0, result()), described=told)]).records()[0]
    assert (record["settings.rate"], record["rate"], record["settings.epoch"], record["epoch"]) == (3, 0.01, 4, 5)
    assert record["sizes"] == (64, 32)


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
        0.1: [result(0.99, reason="diverged"), result(0.99)],
        0.5: [result(0.5), result(0.5)],
        0.8: [result(NAN, NAN, NAN, "diverged"), result(0.9)],
    })  # fmt: skip
    assert [b.settings["dropout"] for b in table.leaders()] == [0.5, 0.1, 0.8]
    last = table.leaders()[-1]
    assert (last.diverged, last.note, last.valid.mean) == (1, "1 of 2 diverged", 0.9)
    assert "1 of 2 diverged" in str(table)
    alone = study({0.1: [result(NAN, NAN, NAN, "diverged")]}).best()
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
    table = Table.of([*rows, row(9, seed=1, dropout=0.5, status=Status.FAILED)])
    assert table.best().settings["dropout"] == 0.1
    assert table.filter(dropout=0.5).best().note == "1 of 2 trials finished; 1 failed"


def test_rows_count_once_and_in_order():
    table = study({0.1: [result(0.6)], 0.5: [result(0.7)]})
    again = Table.of([*reversed(table.rows), *table.rows])
    assert again.rows == table.rows
    twice = Table.of([*table.rows, row(8, seed=0, dropout=0.1), row(9, result(0.9), seed=0, dropout=0.1)])
    assert twice.filter(dropout=0.1).best().valid.values == (0.9,)


def test_changed_data_under_the_same_name_is_other_data():
    old = study({0.1: [result(0.9)]}).rows
    new = [replace(r, key=f"new{r.key}", number=9, mark="77aa") for r in study({0.1: [result(0.6)]}).rows]
    table = Table.of([*old, *new])
    assert [b.data for b in table.best_each()] == ["cora 5e1f", "cora 77aa"]
    with pytest.raises(IncompatibleError, match="scores on cora 5e1f and cora 77aa cannot be compared"):
        table.best()


def test_presets_tell_no_groups_apart():
    rows = list(study({0.1: [result(0.6), result(0.8)]}).rows)
    rows[1] = replace(rows[1], described=rows[1].described | {"preset": "paper"})
    assert Table.of(rows).best().n == 2
    assert len(Table.of(rows).filter(preset="paper")) == 1


def test_datasets_are_not_compared():
    rows = [
        row(n, result(0.5 + 0.1 * n), data=d, dropout=p)
        for n, (d, p) in enumerate([("a", 0.1), ("b", 0.1), ("a", 0.5), ("b", 0.5)])
    ]
    table = Table.of(rows)
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
    table = Table.of(
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
    table = Table.of([row(0, result(), model=Own)])
    assert table.best().model.endswith("test_table.Own")
    assert len(table.filter(model="Own")) == len(table.filter(model=Own)) == 1


def test_nothing_finished_is_said():
    assert str(Table.of([])) == "no trials"
    waiting = study({0.1: [None]})
    assert str(waiting) == "cora: 0 of 1 trials finished, 1 setting\nno trial has finished yet"
    assert waiting.leaders() == waiting.best_each() == ()
    for table in (waiting, Table.of([])):
        with pytest.raises(IncompatibleError, match="no trial has finished yet"):
            table.best()
    with pytest.raises(ValueError, match="over='sede': no setting is called so"):
        waiting.best("sede")


def test_the_printed_table():
    rows = [*study({0.1: [result(0.8, 0.7), result(0.82, 0.72)], 0.5: [result(0.9, NAN), result(0.9, NAN)]}).rows]
    assert str(Table.of(rows)).splitlines() == [
        "cora: 4 of 4 trials finished, 2 settings",
        "dropout  validation      test            seeds",
        "0.5      90.00 ± 0.00 %  –               2",
        "0.1      81.00 ± 1.41 %  71.00 ± 1.41 %  2",
    ]
    assert "0.8100 ± 0.0141" in str(Table.of(rows, score="R²"))
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
        replace(
            base, key=str(n), number=n, described=base.described | {"seed": n % 10, "settings": {"dropout": n // 10}}
        )
        for n in range(10_000)
    ]
    assert len(Table.of(rows).leaders(1000)) == 1000


def test_names_from_files_steer_no_terminal():
    evil = "x\x1b[2Jy\u202e"
    given = example_table(seeds=4).rows
    told = [row.described | {"model": f"{row.described['model']}{evil}"} for row in given]
    rows = [
        replace(r, data=evil, described=d | {"settings": {evil: r.described["settings"]["dropout"], "kind": evil}})
        for r, d in zip(given, told, strict=True)
    ]
    table = Table.of(
        [*rows, replace(rows[0], key="failed", number=99, result=None, status=Status.FAILED, message=evil)]
    )
    names = [best.model for best in table.best_each("model")]
    for thing in (table, table.best(), compare(table, *names), importance(table)):
        assert "[2J" in str(thing)
        assert not set(str(thing)) & {"\x1b", "\u202e"}
