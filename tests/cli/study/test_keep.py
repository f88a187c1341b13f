"""unspool study run --keep: the networks of the best settings, beside the file of the study."""

import json

import pytest
import torch

import unspool as us
from cli.people import ask, refuse

pytestmark = pytest.mark.long

SMALL = ["--dataset", "contextual_sbm", "--epochs", "4", "--jobs", "1"]


def test_the_best_are_kept_on_request(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ["--dataset", "contextual_sbm", "--seeds", "2", "--epochs", "6", "--out", "s.db"]
    lines = ask("study", "run", "GCN", "--dropout", "0.1,0.8", *small, "--keep", "1", "--json").splitlines()
    kept = [json.loads(line) for line in lines if '"kept"' in line]
    best = next(json.loads(line) for line in lines if '"summary"' in line)["best"]
    assert len(kept) == 2
    for event in kept:
        model = us.load(event["folder"])
        assert model.card["trial"]["settings"]["dropout"] == best["settings"]["dropout"]
        assert torch.isfinite(next(model.parameters())).all()
    ask("predict", "s.db.models/best1", "--out", "p.csv")


def test_networks_of_an_earlier_run_do_not_stay_among_the_new(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ask("study", "run", "GCN", "--dropout", "0.1,0.8", *SMALL, "--seeds", "2", "--keep", "2", "--out", "s.db")
    folder = tmp_path / "s.db.models"
    assert len(list(folder.glob("best*/seed*/model.json"))) == 4
    (folder / "best2" / "seed1" / "notes.txt").write_text("mine")
    (folder / "mine").mkdir()
    ask("study", "run", "SGC", *SMALL, "--seeds", "1", "--keep", "1", "--out", "s.db")
    assert [us.load(card.parent).card["model"] for card in folder.rglob("model.json")] == ["SGC"]
    left = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.parent.name != "seed0")
    assert left == ["best1", "best1/seed0", "best2", "best2/seed1", "best2/seed1/notes.txt", "mine"]


def test_no_two_studies_share_a_folder_and_none_is_in_the_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file in ("s", "s.db", "s.v2"):
        ask("study", "run", "SGC", *SMALL, "--seeds", "1", "--keep", "1", "--out", file)
        assert us.load(f"{file}.models/best1").card["model"] == "SGC"


def test_what_is_in_the_way_is_said_before_the_training(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["study", "run", "SGC", *SMALL, "--seeds", "1", "--keep", "1", "--out"]
    (tmp_path / "taken.db.models").write_text("mine")
    assert "cannot write into taken.db.models: File exists" in refuse(*words, "taken.db")
    assert not (tmp_path / "taken.db").exists()
    place = tmp_path / "s.db.models" / "best1" / "seed0"
    place.mkdir(parents=True)
    (place / "model.json").write_text("{")
    assert "model.json is damaged" in refuse(*words, "s.db")
    assert (place / "model.json").read_text() == "{"
