"""Interpretations of cells that miss, networks as numbers, results that several processes write."""

import json
import multiprocessing
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from unspool import datasets, models
from unspool.report.spectra import Learnt, Spread
from unspool.reproduce.depth import deepened, run_depth
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.interpretations import (
    affordable,
    all_interpretations,
    explain_misses,
    missing_entries,
    run_interpretations,
)
from unspool.reproduce.machine import join_spans
from unspool.reproduce.networks import NETWORKS, Network, keep_networks, read_networks, run_networks
from unspool.reproduce.options import RunOptions, Workspace
from unspool.reproduce.records import Results, example_record
from unspool.reproduce.results import read, write
from unspool.reproduce.runner import ExperimentRunner
from unspool.reproduce.summary import entries_of
from unspool.reproduce.table2 import as_printed, run_table2, to_be_searched
from unspool.study.store.row import RESULT, sealed
from unspool.train import Monitor, Stop

pytestmark = pytest.mark.long


def small(name):
    return datasets.contextual_sbm(nodes=60, classes=2, seed=len(name))


def runner(folder, stored=False, **scope):
    given = {"seeds": 2, "epochs": 3, "models": ("SGC", "GCN"), "datasets": ("cora",), "max_settings": 2, **scope}
    return ExperimentRunner(Workspace(folder, device="cpu", jobs=1, stored=stored), RunOptions(**given), load=small)


# -- interpretations ----------------------------------------------------------------------------------------------------------


def named(name):
    return next(one for one in all_interpretations() if one.name == name)


@pytest.mark.parametrize("one", all_interpretations(), ids=lambda one: one.name)
def test_every_interpretation_changes_some_trial_and_is_left_out_where_it_changes_none(one):
    concerned = 0
    for kind in models.PAPER_MODELS:
        printed = as_printed(kind, "photo", "paper")
        if printed is None or not one.concerns(kind, "photo"):
            continue
        other = one.of(printed)
        assert other.seed == printed.seed
        if one.split is None and one.seed_factor == 1:
            assert not one.differs(printed) or other.key("data") != printed.key("data")
        other.build(7, 3)
        concerned += one.differs(printed)
    assert concerned


def test_an_interpretation_knows_how_many_things_it_changes():
    changes = {one.name: one.changes for one in all_interpretations()}
    assert {name for name, many in changes.items() if many == 0} == {"twice_the_seeds"}
    two = {"raw_rows_valid_score", "faulty_split_raw_rows", "class_channels_valid_score", "concatenate_valid_score"}
    assert {name for name, many in changes.items() if many > 1} == two
    assert len(changes) == len(all_interpretations())  # names are unlike one another


def test_slow_cells_name_interpretations_that_exist():
    every = all_interpretations()
    for one in read_experiment("interpretations")["slow"]:
        assert set(one["interpretations"]) <= {other.name for other in every}
        assert all(affordable(other, one["model"], "cora") for other in every)
        run = {other.name for other in every if affordable(other, one["model"], one["datasets"][0])}
        assert run == set(one["interpretations"])


def test_interpretations_that_change_nothing_are_not_run():
    first, raw = named("decay_first_layer"), named("raw_rows")
    assert not first.differs(as_printed(models.GCNII, "citeseer", "paper"))  # printed with decay 0
    assert first.differs(as_printed(models.GCNII, "cora", "paper"))
    assert not raw.differs(as_printed(models.GCN, "arxiv", "paper"))  # its features are never scaled


def test_interpretations_say_what_they_change():
    printed = as_printed(models.GCN, "cora", "paper")
    assert named("valid_score").of(printed).config.monitor is Monitor.VALID_SCORE
    assert not named("raw_rows").of(printed).normalise_rows
    assert named("raw_rows").of(printed).config == printed.config
    early = named("patience_100").of(printed).config
    assert (early.stop, early.patience) == (Stop.PATIENCE, 100)
    assert named("decay_first_layer").of(printed).config.weight_decay == {"first": 5e-4}


def test_only_cells_that_miss_are_read_again(tmp_path):
    """On noise every cell misses; one that is put above its print is left alone."""
    with runner(tmp_path) as first:
        rows = run_table2(first)
        good = [replace(r, result=replace(r.result, test_score=0.99)) if r.model == "GCN" else r for r in rows]
        write(first.workspace.results, "table2", good)
    with runner(tmp_path) as second:
        read_again = run_interpretations(second)
    assert {row.model for row in read_again} == {"SGC"}
    # --max-settings 2: the first two interpretations, both seeds; the second stops early, and three epochs are the most.
    assert [row.interpretation for row in read_again] == [
        one.name for one in all_interpretations()[:2] for _ in range(2)
    ]
    assert {row.preset for row in read_again} == {"paper"}
    found = read(tmp_path / "results")
    assert [one.entry.first.model for one in explain_misses(found)] == ["SGC"]
    assert len(explain_misses(found)[0].tried) == 2


def test_without_table2_interpretations_say_what_to_run_first(tmp_path):
    with (
        runner(tmp_path) as some,
        pytest.raises(FileNotFoundError, match="run `unspool reproduce table2 --preset paper` first"),
    ):
        run_interpretations(some)


def test_interpretations_of_other_results_say_what_to_run_first(tmp_path):
    with runner(tmp_path, models=("SGC",)) as some:
        run_table2(some, ("official",))
        with pytest.raises(FileNotFoundError, match="run `unspool reproduce table2 --preset paper` first"):
            run_interpretations(some)


# -- what is there in part ---------------------------------------------------------------------------------------------


def test_an_interpretation_with_missing_seeds_is_not_kept(tmp_path):
    with runner(tmp_path, models=("SGC",), seeds=1) as first:
        run_table2(first)
        run_interpretations(first)
    with runner(tmp_path, models=("SGC",), seeds=2, stored=True) as second:
        before = list(second.store.rows())
        assert run_interpretations(second) == []  # of two seeds the study has one
        assert second.trained == 0
        assert list(second.store.rows()) == before


def test_a_search_or_a_curve_that_is_there_in_part_is_not_kept(tmp_path, monkeypatch):
    with runner(tmp_path, models=("MLP",), seeds=2, max_settings=3) as first:
        run_table2(first)
    with runner(tmp_path, models=("MLP",), seeds=2, max_settings=4, stored=True) as second:
        assert run_table2(second) == []  # of four settings the study has three
    with runner(tmp_path, models=("MLP",), seeds=2, max_settings=3, stored=True) as third:
        assert len(run_table2(third)) == 3 * 2
    with runner(tmp_path, models=("SGC",), seeds=1) as first:
        whole = first.options.experiment("depth")["depths"]
        monkeypatch.setattr("unspool.reproduce.depth.deepened", lambda trial, depths: deepened(trial, depths[:2]))
        assert len(run_depth(first)) == 2
        monkeypatch.undo()
    with runner(tmp_path, models=("SGC",), seeds=1, stored=True) as second:
        assert run_depth(second) == []
    assert len(whole) > 2
    assert len(read(tmp_path / "results").of("depth")) == 2  # nothing takes the place of what is there


def test_a_setting_of_which_a_seed_failed_is_no_cell(tmp_path):
    with runner(tmp_path, models=("SGC", "GCN")) as some:
        run_table2(some)
        rows = [row for row in some.store.rows() if row.trial["model"] == "SGC"]
        _fail(tmp_path / "study.db", rows[0].key)
    with runner(tmp_path, models=("SGC", "GCN"), stored=True) as again:
        assert {row.model for row in run_table2(again)} == {"GCN"}
        assert len(again.failed) == 1


def _fail(file, key):
    with closing(sqlite3.connect(file)) as store, store:
        store.execute(f"update trial set {', '.join(f'{name} = null' for name in RESULT)} where key = ?", (key,))
        seal = sealed(key, "failed", "no", "today", *(None for _ in RESULT))
        change = "update trial set status = 'failed', message = 'no', finished_at = 'today', ended = ? where key = ?"
        store.execute(change, (seal, key))


def tried(name, score):
    return [
        example_record(seed, experiment="interpretations", interpretation=name, test_score=score) for seed in range(3)
    ]


def explaining(*records):
    low = [example_record(seed, test_score=0.8) for seed in range(3)]
    (one,) = explain_misses(Results([*low, *(record for some in records for record in some)]))
    return one


def test_the_interpretation_that_explains_a_cell_is_the_nearest_that_is_within():
    near, far, worse = tried("last_epoch", 0.8320), tried("raw_rows", 0.9), tried("valid_score", 0.7)
    one = explaining(far, worse, near)
    assert [entry.first.interpretation for entry in one.tried] == ["last_epoch", "raw_rows", "valid_score"]
    assert one.by.first.interpretation == "last_epoch"
    assert explaining(worse).by is None
    assert missing_entries([*near]) == []


def test_one_change_explains_before_two_and_before_chance_and_before_the_authors():
    one, two = tried("last_epoch", 0.829), tried("raw_rows_valid_score", 0.8324)
    more, authors = (
        tried("twice_the_seeds", 0.8324),
        [example_record(s, preset="official", test_score=0.8324) for s in range(3)],
    )
    every = [one, two, more, authors]
    for place, name in enumerate(["last_epoch", "raw_rows_valid_score", "twice_the_seeds", ""]):
        by = explaining(*every[place:]).by.first
        assert (by.interpretation, by.preset) == (name, "paper" if name else "official")


def test_tuned_tries_the_settings_of_the_paper_and_of_the_authors_too():
    for data, wanted in (("cora", 2), ("photo", 1)):
        sought = to_be_searched(models.GCNII, data, "tuned")
        keys = {(t.settings["depth"], t.config.lr, str(t.config.weight_decay)) for t in sought.trials}
        found = 0
        for preset in ("paper", "official"):
            printed = as_printed(models.GCNII, data, preset)
            found += (
                printed is not None
                and (printed.settings["depth"], printed.config.lr, str(printed.config.weight_decay)) in keys
            )
        assert found == wanted


# -- networks ----------------------------------------------------------------------------------------------------------


def test_networks_come_back_from_their_file_as_they_were(tmp_path):
    with runner(tmp_path, models=("UGDGNN", "SGC"), datasets=("cora", "texas"), max_settings=1) as some:
        made = run_networks(some)
    again = read_networks(tmp_path / "results")
    assert [(one.dataset, one.model) for one in again] == [(one.dataset, one.model) for one in made]
    assert {one.dataset for one in made} == {"cora", "texas"}
    for one, other in zip(made, again, strict=True):
        assert torch.allclose(one.learnt.gain.values, other.learnt.gain.values, rtol=1e-3)
        assert all(torch.allclose(a, b, rtol=1e-3) for a, b in zip(one.density, other.density, strict=True))
        assert [len(run) for run in one.descent.runs] == [len(run) for run in other.descent.runs]
    keep_networks(tmp_path / "results", [again[0]])
    assert len(read_networks(tmp_path / "results")) == len(again)


def test_networks_are_not_trained_twice(tmp_path, monkeypatch):
    with runner(tmp_path, models=("SGC",)) as some:
        first = run_networks(some)
    with runner(tmp_path, models=("SGC",)) as some:
        monkeypatch.setattr("unspool.reproduce.networks.describe_networks", None)
        assert [one.key for one in run_networks(some)] == [one.key for one in first]
        assert some.trained == 0
    monkeypatch.undo()
    with runner(tmp_path, models=("SGC",), epochs=4) as some:  # another plan is another network
        assert run_networks(some)[0].key != first[0].key
    told = json.loads((tmp_path / "results" / "machine.json").read_text())
    assert told["experiments"]["networks"]["trials"] == 2 + 2


def test_a_broken_file_of_networks_is_named_and_can_be_written_again(tmp_path):
    (tmp_path / NETWORKS).write_text('{"networks": [{}], "densities": {}}')
    with pytest.raises(
        ValueError, match=r"networks.json is not a file of networks.*; write it again with `unspool reproduce networks`"
    ):
        read_networks(tmp_path)
    gain = Spread("response h(λ)", torch.ones(1, 121, dtype=torch.float64))
    keep_networks(tmp_path, [Network("cora", "APPNP", Learnt(("0",), gain, None, (), False, ()))])
    assert [one.model for one in read_networks(tmp_path)] == ["APPNP"]


# -- several processes -------------------------------------------------------------------------------------------------


def crew_context():
    """Processes that share nothing but the seconds that importing takes."""
    context = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
    context.set_forkserver_preload([__name__])
    return context


def _keep(folder, name):
    torch.set_num_threads(1)
    with runner(folder, datasets=(name,), models=("SGC",)) as some:
        for _ in range(10):
            with some.timed("table2"):
                some.trained += 1
                some.keep("table2", [example_record(seed, dataset=name) for seed in range(3)])


def test_processes_that_write_into_one_folder_lose_nothing(tmp_path):
    context = crew_context()
    crew = [context.Process(target=_keep, args=(tmp_path, name)) for name in ("cora", "citeseer")]
    for one in crew:
        one.start()
    for one in crew:
        one.join()
    assert [one.exitcode for one in crew] == [0, 0]
    found = read(tmp_path / "results")
    assert {row.dataset for row in found.records} == {"cora", "citeseer"}
    assert len(found.records) == 6
    assert found.machine["experiments"]["table2"]["trials"] == 20


def _search(folder, barrier, queue):
    torch.set_num_threads(1)
    with runner(folder, models=("MLP", "SGC"), seeds=3, max_settings=9, epochs=30) as some:
        barrier.wait()
        queue.put([run_table2(some), some.trained])


def test_two_processes_on_the_same_search_choose_the_same_and_train_nothing_twice(tmp_path):
    context = crew_context()
    barrier, queue = context.Barrier(2), context.Queue()
    crew = [context.Process(target=_search, args=(tmp_path, barrier, queue)) for _ in range(2)]
    for one in crew:
        one.start()
    (first, a), (second, b) = queue.get(timeout=120), queue.get(timeout=120)
    for one in crew:
        one.join()
    assert sorted(map(str, first)) == sorted(map(str, second))
    with runner(tmp_path, models=("MLP", "SGC"), seeds=3, max_settings=9, epochs=30) as alone:
        assert sorted(map(str, run_table2(alone))) == sorted(map(str, first))
        assert alone.trained == 0
        assert a + b == len(list(alone.store.rows()))


def test_time_that_overlaps_counts_once():
    assert join_spans([[0, 10], [2, 5], [9, 12], [20, 21]]) == [[0, 12], [20, 21]]
    assert join_spans([]) == []


def test_a_second_machine_does_not_take_the_place_of_the_first(tmp_path):
    file = tmp_path / "results" / "machine.json"
    file.parent.mkdir()
    older = {"table2": {"trials": 5, "seconds": 7.0, "spans": [[0.0, 7.0]], "hardware": ["a GPU"], "commands": ["c"]}}
    file.write_text(json.dumps({"machines": [{"hardware": "a GPU", "torch": "2.11"}], "experiments": older}))
    with runner(tmp_path, models=("SGC",)) as some:
        run_table2(some)
    told = json.loads(file.read_text())
    assert told["machines"][0]["hardware"] == "a GPU"
    assert len(told["machines"]) == 2
    assert told["experiments"]["table2"]["trials"] == 5 + 2
    assert told["experiments"]["table2"]["seconds"] >= 7.0
    with runner(tmp_path, models=("SGC",)) as some:
        run_table2(some)
    assert len(json.loads(file.read_text())["machines"]) == 2


# -- nothing is lost ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "said"),
    [({"epochs": 2}, "with 3 epochs, and a run of 2"), ({"seeds": 1}, "with 2 seeds, and a run of 1")],
)
def test_short_runs_do_not_take_the_place_of_long_ones(tmp_path, scope, said):
    with runner(tmp_path) as first:
        run_table2(first)
    with (
        runner(tmp_path, **scope) as second,
        pytest.raises(ValueError, match=f"{said} would take its place; give another folder with --out"),
    ):
        second.check("table2", {})
    with runner(tmp_path, datasets=("citeseer",), **scope) as other:
        other.check("table2", {})
    with runner(tmp_path, seeds=3, epochs=5) as longer:
        longer.check("table2", {})
    with runner(tmp_path) as short, pytest.raises(ValueError, match="with 9 epochs"):
        short.check("networks", {("cora", "UGDGNN"): 9, ("cora", "SGC"): 9})


CORRUPT = {
    "cut": (lambda text: text[: len(text) - 30], "row 5 is cut off"),
    "binary": (lambda text: "\x96\x00", "is not a CSV file"),
    "foreign": (lambda text: "a,b\n1,2\n", "has no column 'experiment'"),
}


@pytest.mark.parametrize("kind", CORRUPT)
def test_broken_results_are_named_with_a_way_out(tmp_path, kind):
    change, said = CORRUPT[kind]
    file = write(tmp_path, "table2", [example_record(seed) for seed in range(4)])
    broken = change(file.read_text())
    file.write_bytes(broken.encode("latin-1", "replace"))
    with pytest.raises(ValueError, match=rf"table2.csv.*{said}.*; move it away and run `unspool reproduce` again"):
        read(tmp_path)


def test_a_score_that_is_none_is_named(tmp_path):
    write(tmp_path, "table2", [example_record(0), example_record(1, test_score=7.0)])
    with pytest.raises(ValueError, match=r"table2.csv: test_score is 7, and a score is at most 1; move it away"):
        read(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "null", "3", '{"machines": 3}', '{"experiments": []}'])
def test_a_broken_file_of_the_machine_is_named(tmp_path, text):
    write(tmp_path, "table2", [example_record()])
    (tmp_path / "machine.json").write_text(text)
    with pytest.raises(ValueError, match=r"machine.json is not a file of results, or was cut off; move it away"):
        read(tmp_path)


def test_totals_of_the_docs_are_those_of_the_committed_results():
    root = Path(__file__).parents[2]
    found = read(root / "experiments" / "results")
    met = [entry.met for entry in entries_of(found.of("table2"), "paper") if entry.met is not None]
    explained = explain_misses(found)
    page, readme = ((root / name).read_text(encoding="utf-8") for name in ("docs/reproduction.md", "README.md"))
    assert len(met) == 48
    for text in (page, readme):
        assert f"**{sum(met)} of the 56 cells**" in text
    explaining = [one.by for one in explained if one.by is not None]
    missed, by_authors = len(met) - sum(met), sum(not entry.first.interpretation for entry in explaining)
    assert f"{missed} are below" in readme
    assert f"**The {missed} that miss, and how each was explained.**" in page
    assert f"For {len(explaining) - by_authors} cells one of them meets it" in " ".join(page.split())
    assert (len(explaining), by_authors) == (missed, 1)
    most = max(len(one.interpreted) for one in explained)
    assert f"up to {most} interpretations for a cell" in page
    tuned = [entry for entry in entries_of(found.of("table2"), "tuned") if entry.first.model == "UGDGNN"]
    above = sum(entry.difference >= 0 for entry in tuned)
    words = ["no", "one", "two", "three", "four", "five", "six"][above]
    assert f"at or above the printed mean on {words} of six sets" in page
