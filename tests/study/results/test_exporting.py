"""Files of trials: every row, every digit, whole or not at all."""

import csv
import json
import math
import sys
from dataclasses import replace

import pytest

from unspool.study.results.exporting import export
from unspool.study.results.trial_table import TrialTable, example_table
from unspool.study.store import Status
from unspool.train import Ending, Result


def rows():
    """A finished trial, a waiting one with other settings, a failed one, and one that diverged."""
    done = example_table().rows[0]
    told = done.trial

    def other(number, status, result=None, message=None, **changes):
        words = {"key": f"k{number}", "number": number, "status": Status[status], "result": result, "message": message}
        return replace(done, trial=told | changes, **words)

    third = replace(done, result=Result(1, 7, 1 / 3, 0.1 + 0.2, 0.5, 2 / 3, Ending.ALL_EPOCHS, 1e-9))
    return [
        third,
        other(1, "WAITING", settings={"dropout": 0.5, "sizes": [64, 32], "name": 'a "b", c\n日本'}, config=told["config"] | {"weight_decay": 0.1}),
        other(2, "FAILED", message="=1+1 out of memory", settings={"dropout": "auto"}),
        other(3, "DONE", Result(0, 3, math.nan, math.inf, math.nan, math.nan, Ending.DIVERGED, 0.1)),
    ]  # fmt: skip


def test_csv_round_trip(tmp_path):
    given = rows()
    file = export(given, tmp_path / "study.csv")
    with file.open(newline="", encoding="utf-8") as text:
        read = list(csv.DictReader(text))
    assert [r["status"] for r in read] == ["done", "waiting", "failed", "done"]
    assert [r["ending"] for r in read] == ["all_epochs", "", "", "diverged"]
    assert (read[0]["monitor"], read[0]["stop"], read[0]["lower_level"]) == ("valid_loss", "patience", "unrolled")
    assert float(read[0]["train_loss"]) == 1 / 3
    assert float(read[0]["valid_loss"]) == 0.1 + 0.2
    assert (read[0]["epochs"], read[0]["epochs_run"], read[0]["weight_decay"], read[0]["weight_decay.first"]) == (
        "200",
        "7",
        "0.0005",
        "0.0005",
    )
    assert (read[1]["sizes"], read[1]["name"], read[1]["valid_score"]) == ("[64, 32]", 'a "b", c\n日本', "")
    assert read[2]["message"] == "'=1+1 out of memory"
    assert math.isnan(float(read[3]["test_score"]))
    assert [p.name for p in tmp_path.iterdir()] == ["study.csv"]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", "\n=", "＝"])
def test_no_cell_is_a_formula(tmp_path, start):
    evil = f"{start}HYPERLINK(1)"
    row = rows()[0]
    told = row.trial | {"settings": {"dropout": -0.25, evil: evil, "sizes": [-1, 2]}, "model": evil, "preset": evil}
    result = replace(row.result, train_loss=-1.5)
    strange = replace(row, data=replace(row.data, name=evil, fingerprint=evil), message=evil, trial=told, result=result)
    with export([strange], tmp_path / "study.csv").open(newline="", encoding="utf-8") as text:
        (read,) = csv.DictReader(text)
    for name in ("data", "fingerprint", "model", "preset", "message", f"'{evil}"):
        assert read[name] == f"'{evil}"
    assert (read["dropout"], read["train_loss"]) == ("-0.25", "-1.5")
    assert not any(cell.startswith(("=", "+", "@", "\t", "\r", "\n", "＝")) for cell in (*read, *read.values()))
    assert json.loads(export([strange], tmp_path / "study.json").read_text())[0]["data"] == evil


def test_parquet_round_trip(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    read = parquet.read_table(export(rows(), tmp_path / "study.parquet")).to_pylist()
    assert read[0]["train_loss"] == 1 / 3
    assert (read[0]["epochs_run"], read[0]["seed"], read[0]["normalise_rows"]) == (7, 0, True)
    assert [r["dropout"] for r in read] == ["0.2", "0.5", "auto", "0.2"]
    assert [r["weight_decay.first"] for r in read] == [0.0005, None, 0.0005, 0.0005]
    assert read[1]["sizes"] == "[64, 32]"
    assert read[1]["valid_score"] is None
    assert math.isnan(read[3]["valid_score"])
    assert read[3]["valid_loss"] == math.inf


def test_json_is_json(tmp_path):
    def refuse(word):
        raise AssertionError(word)

    read = json.loads(export(rows(), tmp_path / "study.json").read_text(), parse_constant=refuse)
    lines = [json.loads(line) for line in export(rows(), tmp_path / "study.jsonl").read_text().splitlines()]
    assert read == lines
    assert read[0]["train_loss"] == 1 / 3
    assert read[1]["sizes"] == [64, 32]
    assert read[1]["name"] == 'a "b", c\n日本'
    assert read[3]["valid_loss"] is None


@pytest.mark.parametrize("ending", ["csv", "parquet", "json", "jsonl"])
def test_tables_and_rows_give_the_same_file_and_nothing_gives_headings(tmp_path, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    table = TrialTable.of(rows())
    one, other = (export(what, tmp_path / f"{k}.{ending}") for k, what in enumerate((table, iter(table.rows))))
    assert one.read_bytes() == other.read_bytes()
    empty = export([], tmp_path / f"empty.{ending}")
    assert empty.exists()
    if ending == "csv":
        assert empty.read_text().startswith("key,number,fingerprint,status,message,finished_at,model,data,lr")
    if ending == "json":
        assert json.loads(empty.read_text()) == []


def test_bad_places_leave_nothing(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"study\.xls: studies are written as \.csv, \.parquet, \.json or \.jsonl"):
        export(rows(), tmp_path / "study.xls")
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        export(rows(), tmp_path / "none" / "study.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match="writing Parquet needs pyarrow"):
        export(rows(), tmp_path / "study.parquet")
    assert list(tmp_path.iterdir()) == []
