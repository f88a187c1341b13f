"""unspool study best: settings are chosen by validation, and by nothing else."""

import statistics

import pytest

from cli.people import ask
from cli.study.small import lines, rows


def test_it_is_chosen_by_validation(file):
    told, held = lines("best", file), rows(file)
    assert len(told) == 4
    assert [one["valid_mean"] for one in told] == sorted((one["valid_mean"] for one in told), reverse=True)
    for one in told:
        mine = [
            row.result
            for row in held
            if row.trial["model"] == one["model"] and row.trial["settings"]["dropout"] == one["settings"]["dropout"]
        ]
        assert one["test_mean"] == pytest.approx(statistics.fmean(result.test_score for result in mine))
        assert one["test_std"] == pytest.approx(statistics.stdev(result.test_score for result in mine))


def test_which_and_how_many(file):
    told = lines("best", file)
    assert len(lines("best", file, "--top", 2)) == 2
    assert [one["model"] for one in lines("best", file, "--each", "model")] == ["GCN", "MLP"]
    assert {one["model"] for one in lines("best", file, "--where", "model=mlp")} == {"MLP"}
    assert [one["valid_loss"] for one in lines("best", file, "--by", "loss")] == sorted(o["valid_loss"] for o in told)
    (whole,) = lines("best", file, "--over", "seed", "--over", "dropout", "--where", "GCN")
    assert whole["trials"] == 6


def test_what_a_person_reads(file):
    assert "best by validation score: GCN on contextual_sbm" in ask("study", "best", file)
    assert "validation loss" in ask("study", "best", file, "--by", "loss")


def test_settings_of_training_are_named_as_they_are_typed(file):
    assert (
        len(lines("best", file, "--where", "lr=0.01", "--where", "monitor=valid_loss", "--where", "weight-decay=5e-4"))
        == 4
    )
