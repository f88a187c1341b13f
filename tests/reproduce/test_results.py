"""Files of results: what is written is read again; a file is whole or as it was; wrong files are named."""

import dataclasses
import math
from pathlib import Path

import pytest

from unspool.reproduce import results
from unspool.reproduce.cells import choose, ranked
from unspool.reproduce.results import Search, example_record, read, read_searches, write, write_machine, write_searches

EXAMPLE = Path(__file__).parent / "example_results"


def test_what_is_written_is_read_again(tmp_path):
    rows = [
        example_record(0),
        example_record(1, depth=None, dropout=None, decay="first 0.005", variant="edges 20 %"),
        example_record(2, reason="diverged", test_score=math.nan, settings={"start": "ppr", "rows": "normalised"}),
    ]
    searches = [Search("table2", "cora", "", "MLP", "paper", 27, 81, {"rate": [0.01]}, {"rate": 0.01}, 0.5, 10)]
    write(tmp_path, "table2", rows)
    write_searches(tmp_path, "table2", searches)
    write_machine(tmp_path, {"torch": "2.11"})
    found = read(tmp_path)
    assert found.rows[:2] == rows[:2]
    assert math.isnan(found.rows[2].test_score)
    assert found.searches == searches
    assert found.machine == {"torch": "2.11"}


def test_searches_of_other_experiments_stay(tmp_path):
    one = Search("grid", "cora", "", "SGC", "grid", 9, 90, {}, {}, 0.5, 10)
    write_searches(tmp_path, "grid", [one])
    write_searches(tmp_path, "table2", [dataclasses.replace(one, experiment="table2")])
    write_searches(tmp_path, "grid", [])
    assert [s.experiment for s in read_searches(tmp_path)] == ["table2"]


def test_a_file_that_is_none_of_ours_is_named(tmp_path):
    (tmp_path / "depth.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"depth\.csv has no column 'experiment'"):
        read(tmp_path)
    write(tmp_path, "depth", [example_record(experiment="depth")])
    broken = (tmp_path / "depth.csv").read_text(encoding="utf-8").replace(",180,", ",many,")
    (tmp_path / "depth.csv").write_text(broken, encoding="utf-8")
    with pytest.raises(ValueError, match="a row cannot be read"):
        read(tmp_path)


def test_rows_go_into_their_own_file(tmp_path):
    with pytest.raises(ValueError, match="does not belong into depth"):
        write(tmp_path, "depth", [example_record()])
    with pytest.raises(ValueError, match="no experiment called 'table9'"):
        write(tmp_path, "table9", [])


def test_the_example_is_readable_and_has_every_experiment():
    found = read(EXAMPLE)
    assert found.experiments == results.EXPERIMENTS
    assert found.machine["experiments"]["table2"]["trials"] > 0
    assert all(math.isfinite(row.test_score) for row in found.rows)


def test_test_scores_choose_nothing():
    rows = [
        example_record(s, rate=r, valid_score=v, test_score=t)
        for s in range(3)
        for r, v, t in ((0.1, 0.7, 0.9), (0.2, 0.8, 0.1))
    ]
    assert [cell.first.rate for cell in ranked(rows)] == [0.2, 0.1]
    assert choose(rows)[0].test.mean == pytest.approx(0.1)


def test_settings_with_fewer_seeds_or_diverged_trials_come_last():
    full = [example_record(s, rate=0.1, valid_score=0.5) for s in range(3)]
    few = [example_record(0, rate=0.2, valid_score=0.9)]
    burst = [example_record(s, rate=0.3, valid_score=0.9, reason="diverged" if s else "all epochs") for s in range(3)]
    assert [cell.first.rate for cell in ranked([*few, *burst, *full])] == [0.1, 0.3, 0.2]
