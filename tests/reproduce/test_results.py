"""Files of results: what is written is read again; a file is whole or as it was; wrong files are named."""

import dataclasses
import math
from pathlib import Path

import pytest

from unspool.reproduce.conditions import Condition, Factor
from unspool.reproduce.entries import choose, ranked
from unspool.reproduce.records import EXPERIMENTS, Search, example_record
from unspool.reproduce.results import read, read_searches, write, write_machine, write_searches
from unspool.train import Ending

EXAMPLE = Path(__file__).parent / "example_results"


def test_what_is_written_is_read_again(tmp_path):
    rows = [
        example_record(0),
        example_record(
            1, depth=None, dropout=None, weight_decay={"first": 0.005}, condition=Condition(Factor.EDGES, 20.0)
        ),
        example_record(
            2, ending=Ending.DIVERGED, test_score=math.nan, settings={"start": "ppr", "normalise_rows": True}
        ),
    ]
    searches = [Search("table2", "cora", "MLP", "paper", 27, 81, {"lr": [0.01]}, {"lr": 0.01}, 0.5, 10)]
    write(tmp_path, "table2", rows)
    write_searches(tmp_path, "table2", searches)
    write_machine(tmp_path, {"not_run": {}})
    found = read(tmp_path)
    assert found.records[:2] == rows[:2]
    assert math.isnan(found.records[2].result.test_score)
    assert found.searches == searches
    assert found.machine == {"not_run": {}}


def test_searches_of_other_experiments_stay(tmp_path):
    one = Search("grid", "cora", "SGC", "grid", 9, 90, {}, {}, 0.5, 10)
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
    with pytest.raises(ValueError, match="row 2 cannot be read"):
        read(tmp_path)


def test_rows_go_into_their_own_file(tmp_path):
    with pytest.raises(ValueError, match="does not belong into depth"):
        write(tmp_path, "depth", [example_record()])
    with pytest.raises(ValueError, match="no experiment called 'table9'"):
        write(tmp_path, "table9", [])


def test_the_example_is_readable_and_has_every_experiment():
    found = read(EXAMPLE)
    assert found.experiments == EXPERIMENTS
    assert found.machine["experiments"]["table2"]["trials"] > 0
    assert all(math.isfinite(one.result.test_score) for one in found.records)


def test_test_scores_choose_nothing():
    rows = [
        example_record(s, lr=r, valid_score=v, test_score=t)
        for s in range(3)
        for r, v, t in ((0.1, 0.7, 0.9), (0.2, 0.8, 0.1))
    ]
    assert [cell.first.lr for cell in ranked(rows)] == [0.2, 0.1]
    assert choose(rows)[0].test.mean == pytest.approx(0.1)


def test_settings_with_fewer_seeds_or_diverged_trials_come_last():
    full = [example_record(s, lr=0.1, valid_score=0.5) for s in range(3)]
    few = [example_record(0, lr=0.2, valid_score=0.9)]
    burst = [
        example_record(s, lr=0.3, valid_score=0.9, ending=Ending.DIVERGED if s else Ending.ALL_EPOCHS) for s in range(3)
    ]
    assert [cell.first.lr for cell in ranked([*few, *burst, *full])] == [0.1, 0.3, 0.2]


def test_fields_are_columns_and_enums_are_names(tmp_path):
    row = example_record(0, condition=Condition(Factor.EDGES, 20.0), weight_decay={"first": 0.005})
    head, line = write(tmp_path, "table2", [row]).read_text().splitlines()
    told = dict(zip(head.split(",")[:9], line.split(",")[:9], strict=True))
    assert (told["factor"], told["amount"], told["phase"]) == ("edges", "20", "always")
    assert "all_epochs" in line
    assert '{""first"":0.005}' in line
