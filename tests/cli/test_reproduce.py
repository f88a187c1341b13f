"""unspool reproduce: tables at the end, one line for what is missing, JSON lines, and the same again without training."""

import gzip
import json
import re

import numpy as np
import pytest

from cli.people import ask
from unspool.cli.main import cli
from unspool.reproduce.results import read

TINY = ["--epochs", "3", "--seeds", "2", "--most", "2", "--jobs", "1", "--device", "cpu"]


def run(out, experiment, *more, code=0):
    return ask("reproduce", experiment, *TINY, "--out", out, *more, code=code)


def events(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduce")


@pytest.fixture(scope="module")
def first(out):
    return run(out, "table2", "--models", "GPRGNN,APPNP,SGC,MLP", "--datasets", "citeseer", "--preset", "paper")


def test_table2_prints_ours_beside_theirs(first):
    assert "table2 on citeseer: 4 trials" in first  # MLP's search, then the printed settings
    assert "set       model   ours" in first
    assert "71.50 ± 0.25" in first  # printed for SGC
    assert (
        "of the 56 cells of Table 2 within one printed standard deviation of the paper's mean, or above. 3 were run"
        in first
    )
    assert "ArXiv's 8 need features that are not at hand" in first
    assert "cut at 3 epochs of 1000" in first
    assert "GPRGNN outperforms APPNP" in first
    assert "searched on validation data" in first
    assert "MLP (paper): " in first
    assert "runs were cut at 3 epochs" in first


def test_again_nothing_is_trained(out, first):
    before = read(out / "results")
    text = run(out, "table2", "--models", "GPRGNN,APPNP,SGC,MLP", "--datasets", "citeseer", "--preset", "paper")
    assert " trials\n" not in text.partition("Table 2")[0].replace("table2:", "")
    assert sorted(map(str, read(out / "results").rows)) == sorted(map(str, before.rows))
    assert before.machine["experiments"]["table2"] == read(out / "results").machine["experiments"]["table2"]


def test_json_lines_say_the_same(out, first):
    found = events(run(out, "table2", "--models", "SGC,APPNP", "--datasets", "citeseer", "--json"))
    cells = [one for one in found if one["event"] == "cell"]
    assert {one["model"] for one in cells} == {"SGC", "APPNP"}
    assert cells[0]["printed"] == [71.5, 0.25] or cells[1]["printed"] == [71.5, 0.25]
    assert all(one["within"] is False and one["causes"] for one in cells)


def test_depth_answers_the_two_sentences(out):
    text = run(out, "depth", "--quick", "--models", "SGC")
    assert "citeseer: test accuracy in per cent over depth" in text
    assert "depth helps SGC" in text
    assert "4 to 10 layers suffice for SGC" in text
    assert {row.depth for row in read(out / "results").of("depth")} == {1, 4, 16}


def test_robust_compares_twins(out):
    text = run(out, "robust", "--quick", "--models", "AirGNN,APPNP", "--most", "1")
    for kind in ("features", "noise", "edges"):
        assert f"citeseer: test accuracy in per cent, damage: {kind}\n" in text
        assert f"citeseer: test accuracy in per cent, damage: {kind} after training\n" in text
    assert text.count("clean  30 %") == 6
    assert "AirGNN loses less than APPNP" in text
    assert "AirGNN (64)" in text


def test_robust_shows_damaged_and_clean_nodes_apart(out):
    text = run(out, "robust", "--quick", "--parts", "signals,damage", "--models", "AirGNN,APPNP", "--most", "1")
    assert "sensor: relative error, mean over 1 draws" in text
    for title in (
        "outliers behind the encoder, after training",
        "with 300 steps",
        "in training too",
        "random edges added",
    ):
        assert title in text
    assert re.search(r"AirGNN +damaged +[\d.]+", text)
    assert re.search(r"AirGNN +clean +[\d.]+", text)


def test_sentences_are_run_and_shown(out, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = run(out, "identity", "--datasets", "citeseer")
    assert "norm of W" in text
    assert "the identity outside W makes W small" in text
    text = run(out, "nonlinearity", "--datasets", "citeseer", "--depths", "2")
    assert "Dirichlet energy over size of H" in text
    text = run(out, "attacked", "--datasets", "citeseer", "--models", "APPNP", "--data", tmp_path, code=1)
    assert text.count("citeseer_metattack not run: citeseer_metattack.npz is missing") == text.count("not run:") == 1


def test_claims_are_told_from_files_alone(out, first):
    folder = out / "results"
    text = ask("reproduce", "claims", folder)
    assert "GPRGNN outperforms APPNP: holds in 0 of 1 comparisons" in text
    found = events(ask("reproduce", "claims", folder, "--json"))
    assert {one["event"] for one in found} == {"answer"}
    assert {"GPRGNN outperforms APPNP"} <= {one["sentence"] for one in found}


@pytest.mark.parametrize("word", ["0", "x", "2.5", "-1", ""])
def test_depths_are_whole_numbers(tmp_path, word):
    said = ask("reproduce", "depth", "--depths", word, "--out", tmp_path, code=2)
    assert "--depths" in said
    assert not list(tmp_path.iterdir())


def test_grid_and_heterophily_print_their_searches(out):
    text = run(out, "grid", "--models", "SGC", "--datasets", "citeseer")
    assert "SGC (grid): decay 0.0, 5e-05, 0.0005; rate 0.005, 0.01, 0.05, on citeseer" in text
    text = run(out, "heterophily", "--models", "SGC", "--datasets", "contextual_sbm")
    assert "heterophily on contextual_sbm: 4 trials" in text


def test_what_is_missing_is_said_in_one_line(out, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = run(out, "table2", "--models", "SGC", "--datasets", "arxiv,citeseer", "--data", tmp_path)
    assert "ogbn-arxiv not run: features missing\n" in text
    assert "citeseer  SGC" in text


def test_a_set_in_the_layout_of_ogb_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_arxiv(tmp_path / "data")
    text = run(tmp_path / "out", "table2", "--models", "UGDGNN", "--datasets", "arxiv", "--data", tmp_path / "data")
    assert "arxiv  UGDGNN" in text
    assert "70.91 ± 0.22" in text
    (row, _) = read(tmp_path / "out" / "results").rows
    assert (row.dataset, row.depth, row.settings["rows"]) == ("arxiv", 10, "as they are")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["table2", "--models", "gat"], "no model 'gat'; there are"),
        (["depth", "--datasets", "coral"], "no data set 'coral'; did you mean cora"),
        (["table2", "--datasets", "citeseer,texas"], "the paper has no settings for texas"),
        (["robust", "--parts", "signal"], "robust has no part 'signal'; there are signals, damage, always, after"),
        (["attacked", "--datasets", "pubmed"], "pubmed is not a set with attacked graphs"),
    ],
)
def test_wrong_names_are_refused_before_the_work(tmp_path, words, said):
    # main() makes one line of these errors.
    with pytest.raises(ValueError, match=said):
        cli(["reproduce", words[0], *TINY, "--out", str(tmp_path), *words[1:]], standalone_mode=False)
    assert not list(tmp_path.glob("results/*.csv"))


def test_datasets_and_table1(tmp_path):
    text = ask("reproduce", "datasets", "--data", tmp_path)
    assert "CiteSeer  printed  3,327" in text
    assert "printed edges count repeated links and self-loops" in text
    found = events(ask("reproduce", "table1", "--trials", "1", "--json"))
    assert [one["model"] for one in found][:3] == ["SGC", "PPNP", "APPNP"]
    assert found[2]["certificates"][0]["verdict"] == "holds"


def make_arxiv(root, nodes=60):
    random = np.random.default_rng(0)
    tables = {
        "raw/edge": random.integers(nodes, size=(150, 2)),
        "raw/node-feat": np.round(random.standard_normal((nodes, 6)), 6),
        "raw/node-label": (np.arange(nodes) % 4)[:, None],
        "split/time/train": np.arange(0, 20)[:, None],
        "split/time/valid": np.arange(20, 30)[:, None],
        "split/time/test": np.arange(30, nodes)[:, None],
    }
    for name, table in tables.items():
        path = root / "ogbn_arxiv" / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(",".join(repr(v.item()) for v in row) for row in table)
        path.write_bytes(gzip.compress((text + "\n").encode()))


def test_readings_need_table2_and_show_every_reading(out, first, tmp_path):
    with pytest.raises(FileNotFoundError, match="run `unspool reproduce table2 --preset paper` first"):
        cli(["reproduce", "readings", *TINY, "--out", str(tmp_path)], standalone_mode=False)
    assert not list(tmp_path.iterdir())
    text = run(out, "readings", "--models", "SGC", "--datasets", "citeseer")
    assert re.search(r"SGC +as printed", text)
    assert "highest validation accuracy" in text
    assert "cells are explained by a reading" in text
    found = events(run(out, "readings", "--models", "SGC", "--datasets", "citeseer", "--json"))
    assert {one["preset"] for one in found if one["event"] == "reading"} >= {"highest validation accuracy"}


def test_networks_say_what_they_let_through(out):
    text = run(out, "networks", "--models", "SGC,APPNP", "--datasets", "citeseer", "--seeds", "1")
    assert "networks on citeseer: SGC, 1 seed of at most 3 epochs" in text
    assert "low frequencies" in text or "both ends" in text
    found = events(run(out, "networks", "--models", "SGC", "--datasets", "citeseer", "--seeds", "1", "--json"))
    assert [(one["model"], one["at_0"]) for one in found if one["event"] == "response"] == [("SGC", pytest.approx(1.0))]


def test_stored_trains_nothing(out, first, tmp_path):
    again = run(out, "table2", "--models", "SGC", "--datasets", "citeseer", "--stored")
    assert "71.50 ± 0.25" in again
    nothing = ask(
        "reproduce", "table2", *TINY, "--models", "SGC", "--datasets", "citeseer", "--stored", "--out", tmp_path
    )
    assert "ours" not in nothing
    assert "--stored" in nothing
