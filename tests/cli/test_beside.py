"""What unspool train says beside the score, what it keeps of it, and calibrated predictions."""

import csv
import json

import numpy as np
import pytest
import torch

from cli.people import ask, refuse
from unspool import datasets
from unspool.models.pretrained import load_with_card, read_card, write_card
from unspool.train import baselines
from unspool.train.baselines import Baseline, read_baselines

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Customers of whom four in five stay, whatever they do."""
    place, chance = tmp_path_factory.mktemp("customers"), np.random.default_rng(0)
    edges = {tuple(sorted(pair)) for pair in chance.integers(0, 200, (500, 2)).tolist() if pair[0] != pair[1]}
    (place / "calls.csv").write_text("source,target\n" + "\n".join(f"c{a},c{b}" for a, b in sorted(edges)) + "\n")
    x = chance.normal(0, 1, (200, 2))
    rows = [f"c{i},{x[i, 0]:.3f},{x[i, 1]:.3f},{'leaves' if i % 5 == 0 else 'stays'}" for i in range(200)]
    (place / "customers.csv").write_text("\n".join(["id,age,calls,churn", *rows]) + "\n")
    return place


def options(files):
    said = ["--edges", files / "calls.csv", "--features", files / "customers.csv", "--label-column", "churn"]
    return [*said, "--epochs", 15, "--device", "cpu"]


def test_an_unbalanced_set_is_remarked(files, tmp_path):
    text = ask("train", "SGC", *options(files), "--out", tmp_path)
    assert (
        "80.0 % of the test nodes are one class (stays), so accuracy 80.00 is what always answering that class gives"
        in text
    )
    assert "beside it: always the most common class 80.00; MLP (the features alone) " in text
    assert "balanced accuracy 50.00" in text
    assert "80.0 % of the test nodes" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "# Model card: SGC" in (tmp_path / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_programs_get_the_same_numbers(files, tmp_path):
    told = json.loads(ask("train", "SGC", *options(files), "--json", "--out", tmp_path).splitlines()[-1])
    held = read_baselines(tmp_path)
    assert told["event"] == "summary"
    assert told["baselines"] == {one.baseline.value: held.mean(one.baseline) for one in held.entries}
    assert told["majority"] == pytest.approx(0.8)
    assert 0 <= told["auc"] <= 1
    assert told["balanced_accuracy"] == read_card(tmp_path / "seed0")["evaluation"]["classes"]["balanced_accuracy"]


def test_baselines_are_measured_once_and_only_when_wanted(files, tmp_path, monkeypatch):
    words = ["train", "SGC", *options(files), "--out", tmp_path]
    assert "beside it" not in ask(*words, "--no-baselines")
    assert not (tmp_path / "baselines.json").exists()
    assert "beside it" in ask(*words, "--resume")
    kept = (tmp_path / "baselines.json").read_bytes()
    monkeypatch.setattr(baselines, "train_trial", None)  # measuring again would fail
    assert "beside it" in ask(*words, "--resume")
    assert (tmp_path / "baselines.json").read_bytes() == kept
    assert "beside it" in ask(*words, "--no-baselines")
    # Those of another configuration are not shown as if they were this one's.
    assert "beside it" not in ask(*words, "--lr", 0.5, "--no-baselines")
    assert not (tmp_path / "baselines.json").exists()


def test_an_interrupt_while_baselines_are_measured_keeps_the_models(files, tmp_path, monkeypatch):
    monkeypatch.setattr("unspool.cli.train.measure_baselines", lambda *_: None)
    from click.testing import CliRunner

    from unspool.cli.main import cli

    ended = CliRunner().invoke(cli, list(map(str, ["train", "SGC", *options(files), "--out", tmp_path])))
    assert ended.exit_code == 130
    assert "--resume continues" in ended.output
    monkeypatch.undo()
    text = ask("train", "SGC", *options(files), "--out", tmp_path, "--resume")
    assert "seed 0: finished before" in text
    assert read_baselines(tmp_path).of(Baseline.FEATURES).scores


def test_the_report_can_be_written_again_without_training(files, tmp_path):
    ask("train", "SGC", *options(files), "--out", tmp_path)
    once = (tmp_path / "report.md").read_text(encoding="utf-8")
    (tmp_path / "report.md").unlink()
    ask("report", tmp_path)
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == once


# -- predictions -------------------------------------------------------------------------------------------------------


def column(path, name):
    with path.open(newline="") as file:
        return np.array([float(row[name]) for row in csv.DictReader(file)])


def test_probabilities_are_calibrated_unless_one_says_otherwise(tmp_path):
    ask("train", "SGC", "--epochs", 30, "--no-baselines", "--no-report", "--out", tmp_path / "t")
    model, card = load_with_card(tmp_path / "t" / "seed0")
    warm = card["evaluation"]["calibration"]["temperature"]
    data = datasets.load("citeseer").row_normalised()
    with torch.no_grad():
        output = model(data.features, data.graph).double()
    text = ask("predict", tmp_path / "t", "--out", tmp_path / "p.csv")
    assert "probabilities are calibrated" in text
    assert np.allclose(column(tmp_path / "p.csv", "p_AI"), (output / warm).softmax(-1)[:, 0], atol=1e-6)
    raw = ask("predict", tmp_path / "t", "--out", tmp_path / "raw.csv", "--uncalibrated", "--json")
    assert json.loads(raw.splitlines()[-1])["temperatures"] == []
    assert np.allclose(column(tmp_path / "raw.csv", "p_AI"), output.softmax(-1)[:, 0], atol=1e-6)
    with (tmp_path / "p.csv").open() as a, (tmp_path / "raw.csv").open() as b:
        assert [row["prediction"] for row in csv.DictReader(a)] == [row["prediction"] for row in csv.DictReader(b)]


@pytest.mark.parametrize("warm", [0, -1.0, "hot", [1.0], 1e999])
def test_a_temperature_that_is_none_is_refused(warm, tmp_path):
    ask("train", "SGC", "--epochs", 2, "--no-baselines", "--no-report", "--out", tmp_path / "t")
    card = read_card(tmp_path / "t" / "seed0")
    card["evaluation"]["calibration"] = {"temperature": warm, "nodes": 3}
    write_card(tmp_path / "t" / "seed0", card)
    assert "evaluation.calibration.temperature" in refuse("predict", tmp_path / "t", "--out", tmp_path / "p.csv")
