"""unspool study export: every trial as one row, for other programs."""

import csv

import pytest

from cli.people import ask
from cli.study.small import rows


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "parquet"])
def test_all_trials_are_written(file, tmp_path, ending):
    out = tmp_path / f"trials.{ending}"
    assert ask("study", "export", file, out) == f"12 trials in {out}\n"
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    if ending == "csv":
        with out.open(newline="") as held:
            told = list(csv.DictReader(held))
        assert [float(one["test_score"]) for one in told] == [row.result.test_score for row in rows(file)]
        assert {one["lr"] for one in told} == {"0.01"}
        assert {"weight_decay", "monitor", "min_epochs", "lower_level", "ending", "fingerprint"} <= set(told[0])
