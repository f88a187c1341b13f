"""unspool reproduce: the blocks of the page at the end, one line for what is missing, JSON lines, and the same again without training."""

import gzip
import json
import re

import numpy as np
import pytest

from cli.people import ask, refuse
from unspool.cli.main import cli
from unspool.reproduce.results import read

pytestmark = pytest.mark.long


TINY = ["--epochs", "3", "--seeds", "2", "--max-settings", "2", "--jobs", "1", "--device", "cpu"]


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


def test_table2_prints_ours_and_theirs(first):
    assert "table2 on citeseer: 4 trials" in first  # MLP's search, then the printed settings
    assert "paper 71.50 ± 0.25" in first  # printed for SGC
    assert "of the 56 cells of Table 2 at or above the printed mean less one printed standard deviation" in first
    assert "3 were run; ArXiv's 8 need features that are not at hand" in first
    assert "Cut at 3 epochs of 1000" in first
    assert re.search(r"GPRGNN outperforms APPNP +0 of 1", first)
    assert "1 cell was searched: 2 settings" in first
    assert "runs were cut at 3 epochs" in first
    assert "Not run yet" not in first


def test_what_a_page_folds_away_is_named_and_printed_with_details(out, first):
    assert "(The paired tests behind this: preset paper: with --details)" in first
    assert "Paired tests, preset paper" not in first
    words = ("--models", "GPRGNN,APPNP,SGC,MLP", "--datasets", "citeseer", "--preset", "paper", "--details")
    text = run(out, "table2", *words)
    assert "Paired tests, preset paper" in text
    assert "with --details" not in text


def test_again_nothing_is_trained(out, first):
    before = read(out / "results")
    text = run(out, "table2", "--models", "GPRGNN,APPNP,SGC,MLP", "--datasets", "citeseer", "--preset", "paper")
    assert "table2 on citeseer" not in text
    assert sorted(map(str, read(out / "results").records)) == sorted(map(str, before.records))
    assert before.machine["experiments"]["table2"] == read(out / "results").machine["experiments"]["table2"]


def test_json_lines_say_the_same(out, first):
    found = events(run(out, "table2", "--models", "SGC,APPNP", "--datasets", "citeseer", "--json"))
    cells = {one["model"]: one for one in found if one["event"] == "cell"}
    assert set(cells) == {"SGC", "APPNP"}
    assert cells["SGC"]["printed"] == [71.5, 0.25]
    assert all(one["standing"] == "below" and one["causes"] and one["factor"] == "none" for one in cells.values())


def test_depth_answers_the_two_sentences(out):
    text = run(out, "depth", "--quick", "--models", "SGC")
    assert re.search(r"CiteSeer +SGC +\d\d\.\d\d", text)
    assert "depth helps SGC" in text
    assert "4 to 10 layers suffice for SGC" in text
    assert {row.depth for row in read(out / "results").of("depth")} == {1, 4, 16}


def test_robust_compares_counterparts(out):
    words = ("robust", "--quick", "--models", "AirGNN,APPNP", "--max-settings", "1")
    text = run(out, *words)
    for kind in ("features", "noise", "edges"):
        assert f"Mean test accuracy (%) under damage: {kind}\n" in text
        assert f"Mean test accuracy (%) under damage: {kind} after training\n" in text
    assert len(re.findall(r"% = 0 +% = 30", text)) == 6
    assert "AirGNN loses less than APPNP" in text
    assert "AirGNN, 64 layers" in text
    found = events(run(out, *words, "--json"))
    conditions = {(one["factor"], one["amount"], one["phase"]) for one in found if one["event"] == "cell"}
    assert ("edges", 30.0, "after_training") in conditions
    assert {one["topic"] for one in found if one["event"] == "claim"} >= {"loses_less"}


def test_robust_shows_damaged_and_clean_nodes_apart(out):
    words = ("robust", "--quick", "--parts", "signals,damage", "--models", "AirGNN,APPNP", "--max-settings", "1")
    text = run(out, *words)
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
    found = [one for one in events(run(out, *words, "--json")) if one["event"] == "measured"]
    assert {one["nodes"] for one in found} == {"all", "damaged", "clean"}
    assert {one["quantity"] for one in found} == {"error", "accuracy", "lost"}


def test_sentences_are_run_and_shown(out, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = run(out, "identity", "--datasets", "citeseer")
    assert "norm of W" in text
    assert "the identity outside W makes W small" in text
    text = run(out, "nonlinearity", "--datasets", "citeseer", "--depths", "2")
    assert "Dirichlet energy over size of H" in text
    text = run(out, "attacked", "--datasets", "citeseer", "--models", "APPNP", "--data", tmp_path, code=1)
    assert text.count("citeseer_metattack not run: its files are not here") == text.count("not run:") == 1


def test_claims_are_told_from_files_alone(out, first):
    folder = out / "results"
    text = ask("reproduce", "claims", folder)
    assert re.search(r"GPRGNN outperforms APPNP +0 of 1", text)
    found = events(ask("reproduce", "claims", folder, "--json"))
    assert {one["event"] for one in found} == {"claim"}
    assert {"gprgnn_above_appnp"} <= {one["topic"] for one in found}


@pytest.mark.parametrize("word", ["0", "x", "2.5", "-1", ""])
def test_depths_are_whole_numbers(tmp_path, word):
    said = ask("reproduce", "depth", "--depths", word, "--out", tmp_path, code=2)
    assert "--depths" in said
    assert not list(tmp_path.iterdir())


def test_grid_and_heterophily_print_their_searches(out):
    text = run(out, "grid", "--models", "SGC", "--datasets", "citeseer", "--details")
    assert "lr: 0.005, 0.01, 0.05; weight_decay: 0, 5e-05, 0.0005" in text
    text = run(out, "heterophily", "--models", "SGC", "--datasets", "contextual_sbm")
    assert "heterophily on contextual_sbm: 4 trials" in text


def test_what_is_missing_is_said_in_one_line(out, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = run(out, "table2", "--models", "SGC", "--datasets", "arxiv,citeseer", "--data", tmp_path)
    assert "arxiv not run: its files are not here; `unspool datasets arxiv` says where they belong\n" in text
    assert "paper 71.50 ± 0.25" in text


def test_a_set_in_the_layout_of_ogb_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_arxiv(tmp_path / "data")
    text = run(tmp_path / "out", "table2", "--models", "UGDGNN", "--datasets", "arxiv", "--data", tmp_path / "data")
    assert "paper 70.91 ± 0.22" in text
    (row, _) = read(tmp_path / "out" / "results").records
    assert (row.dataset, row.depth, row.settings["normalise_rows"]) == ("arxiv", 10, False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["table2", "--models", "gat"], "gat"),
        (["depth", "--datasets", "coral"], "did you mean cora"),
        (["table2", "--datasets", "citeseer,texas"], "sets that the paper has settings for"),
        (["robust", "--parts", "signal"], "parts of robust: signals, damage, always, after"),
        (["attacked", "--datasets", "pubmed"], "sets with attacked graphs"),
    ],
)
def test_wrong_names_are_refused_before_the_work(tmp_path, words, said):
    assert said in refuse("reproduce", words[0], *TINY, "--out", tmp_path, *words[1:])
    assert not list(tmp_path.glob("results/*.csv"))


def test_datasets_and_table1(tmp_path):
    text = ask("reproduce", "datasets", "--data", tmp_path)
    assert re.search(r"CiteSeer +3,327", text)
    assert "printed edges count repeated links and self-loops" in " ".join(text.split())
    found = events(ask("reproduce", "table1", "--trials", "1", "--json"))
    by_model = {one["model"]: one for one in found}
    assert {"SGC", "PPNP", "APPNP"} <= set(by_model)
    assert by_model["APPNP"]["verdict"] == "holds"


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


def test_interpretations_need_table2_and_show_every_one(out, first, tmp_path):
    with pytest.raises(FileNotFoundError, match="run `unspool reproduce table2 --preset paper` first"):
        cli(["reproduce", "interpretations", *TINY, "--out", str(tmp_path)], standalone_mode=False)
    assert not list(tmp_path.iterdir())
    words = ("interpretations", "--models", "SGC", "--datasets", "citeseer")
    text = run(out, *words)
    assert re.search(r"SGC +CiteSeer", text)
    assert "highest validation accuracy" in run(out, *words, "--details")
    found = events(run(out, *words, "--json"))
    assert {one["interpretation"] for one in found if one["event"] == "cell"} >= {"valid_score"}


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
    assert "Table 2" not in nothing
    assert "run it without --stored" in nothing
