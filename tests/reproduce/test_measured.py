"""Numbers that are not trials: what is written is read again, cells are replaced alone, wrong files are named, tables say what files hold."""

import pytest

from unspool.reproduce.grids import grids
from unspool.reproduce.measured import COLUMNS, MEASURED, example_measured, keep, read_measured
from unspool.reproduce.results import read


def test_what_is_kept_is_read_again_and_other_cells_stay(tmp_path):
    first = [example_measured(seed, model=model) for model in ("rows", "squares") for seed in range(3)]
    keep(tmp_path, "signals", first)
    assert read_measured(tmp_path, "signals") == first
    again = [example_measured(seed, model="rows", value=0.5) for seed in range(2)]
    keep(tmp_path, "signals", again)
    assert read_measured(tmp_path) == [*first[3:], *again]
    assert read(tmp_path).measured == [*first[3:], *again]  # a folder that holds nothing else


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n", "has no column 'experiment'"),
        (",".join(COLUMNS) + "\nsignals,sensor,rows,outliers,10,x,error,0.1,{}\n", "row 2 cannot be read"),
        (",".join(COLUMNS) + "\nsignals,sensor,rows,outliers,10,0,error,nan,{}\n", "row 2 cannot be read"),
        (",".join(COLUMNS) + "\nsignals,sensor\n", "row 2 cannot be read"),
    ],
)
def test_a_file_that_is_not_one_of_ours_is_named(tmp_path, text, told):
    (tmp_path / "signals.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=told) as caught:
        read_measured(tmp_path)
    assert "signals.csv" in str(caught.value)
    assert "unspool reproduce robust" in str(caught.value)


def test_an_unknown_experiment_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no experiment called 'table2' measures anything"):
        keep(tmp_path, "table2", [])


def test_tables_have_damaged_and_clean_nodes_apart():
    values = {
        "accuracy": 0.7,
        "accuracy on damaged": 0.3,
        "accuracy on clean": 0.8,
        "lost": 0.1,
        "lost on damaged": 0.5,
        "lost on clean": 0.0,
    }
    rows = [
        example_measured(s, experiment="damage", dataset="cora", model="AirGNN", kind="channels", amount=30.0, quantity=q, value=v)
        for s in range(3) for q, v in values.items()
    ]  # fmt: skip
    (grid,) = grids(rows, "damage")
    assert grid.heads == ("before", "length 30")
    assert grid.texts == [
        ("AirGNN", "all", "80.00", "70.00"), ("AirGNN", "damaged", "80.00", "30.00"), ("AirGNN", "clean", "80.00", "80.00"),
    ]  # fmt: skip


@pytest.mark.parametrize("experiment", MEASURED)
def test_nothing_measured_makes_no_table(experiment):
    assert grids([], experiment) == []
