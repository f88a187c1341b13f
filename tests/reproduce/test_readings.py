"""Readings of cells that miss, networks as numbers, results that several processes write."""

import json
import multiprocessing
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from unspool import datasets, models
from unspool.report.spectra import Learnt, Spread
from unspool.reproduce.bench import Bench
from unspool.reproduce.depth import deepened, run_depth
from unspool.reproduce.machine import joined
from unspool.reproduce.networks import NETWORKS, Network, keep_networks, read_networks, run_networks
from unspool.reproduce.readings import affordable, all_readings, explained, missing_cells, run_readings
from unspool.reproduce.results import Results, example_record, read, write
from unspool.reproduce.settings import Place, Scope, read_settings
from unspool.reproduce.summary import compared
from unspool.reproduce.table2 import as_printed, run_table2, to_be_searched
from unspool.study.search.words import signature
from unspool.study.store.row import RESULT, sealed
from unspool.train import Select, Stop


def small(name):
    return datasets.contextual_sbm(nodes=60, classes=2, seed=len(name))


def bench(folder, stored=False, **scope):
    given = {"seeds": 2, "epochs": 3, "models": ("SGC", "GCN"), "datasets": ("cora",), "most": 2, **scope}
    return Bench(Place(folder, device="cpu", jobs=1, stored=stored), Scope(**given), load=small)


# -- readings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reading", all_readings(), ids=lambda reading: reading.name)
def test_every_reading_changes_some_trial_and_is_left_out_where_it_changes_none(reading):
    concerned = 0
    for kind in models.MODELS:
        printed = as_printed(kind, "photo", "paper")
        if printed is None or not reading.concerns(kind.__name__, "photo"):
            continue
        if not all(name in signature(kind).names for name in reading.settings):
            continue
        other = reading.of(printed)
        assert other.seed == printed.seed
        if reading.split is None and reading.times == 1:
            assert not reading.changes(printed) or other.key("data") != printed.key("data")
        other.build(7, 3)
        concerned += reading.changes(printed)
    assert concerned


def test_slow_cells_name_readings_that_exist():
    known = {reading.name for reading in all_readings()}
    for one in read_settings("readings")["slow"]:
        assert set(one["readings"]) <= known
        assert all(affordable(r, one["model"], "cora") for r in all_readings())
        assert {r.name for r in all_readings() if affordable(r, one["model"], one["datasets"][0])} == set(
            one["readings"]
        )


def test_readings_that_change_nothing_are_not_run():
    first = next(reading for reading in all_readings() if reading.decay == "first")
    raw = next(reading for reading in all_readings() if reading.name == "features as they are")
    assert not first.changes(as_printed(models.GCNII, "citeseer", "paper"))  # printed with decay 0
    assert first.changes(as_printed(models.GCNII, "cora", "paper"))
    assert not raw.changes(as_printed(models.GCN, "arxiv", "paper"))  # its features are never scaled


def test_readings_say_what_they_change():
    printed = as_printed(models.GCN, "cora", "paper")
    found = {reading.name: reading.of(printed) for reading in all_readings() if reading.concerns("GCN", "cora")}
    assert found["highest validation accuracy"].plan.select is Select.VALIDATION_ACCURACY
    assert not found["features as they are"].normalise_rows
    assert found["features as they are"].plan == printed.plan
    early = found["stops after 100 epochs without a lower validation loss"].plan
    assert (early.stop, early.patience) == (Stop.PATIENCE, 100)
    assert found["decay on the first layer alone"].plan.decay == {"first": 5e-4}


def test_only_cells_that_miss_are_read_again(tmp_path):
    """On noise every cell misses; one that is put above its print is left alone."""
    with bench(tmp_path) as first:
        rows = run_table2(first)
        good = [replace(row, test_score=0.99) if row.model == "GCN" else row for row in rows]
        write(first.place.results, "table2", good)
    with bench(tmp_path) as second:
        read_again = run_readings(second)
    assert {row.model for row in read_again} == {"SGC"}
    # --most 2: the first two readings, both seeds; the second stops early, and three epochs are the most.
    assert [row.preset for row in read_again] == [r.name for r in all_readings()[:2] for _ in range(2)]
    found = read(tmp_path / "results")
    assert [one.cell.first.model for one in explained(found)] == ["SGC"]
    assert len(explained(found)[0].readings) == 2


def test_without_table2_readings_say_what_to_run_first(tmp_path):
    with (
        bench(tmp_path) as some,
        pytest.raises(FileNotFoundError, match="run `unspool reproduce table2 --preset paper` first"),
    ):
        run_readings(some)


def test_readings_of_other_results_say_what_to_run_first(tmp_path):
    with bench(tmp_path, models=("SGC",)) as some:
        run_table2(some, ("official",))
        with pytest.raises(FileNotFoundError, match="run `unspool reproduce table2 --preset paper` first"):
            run_readings(some)


# -- what is there in part ---------------------------------------------------------------------------------------------


def test_a_reading_with_missing_seeds_is_not_kept(tmp_path):
    with bench(tmp_path, models=("SGC",), seeds=1) as first:
        run_table2(first)
        run_readings(first)
    with bench(tmp_path, models=("SGC",), seeds=2, stored=True) as second:
        before = list(second.store.rows())
        assert run_readings(second) == []  # of two seeds the study has one
        assert second.trained == 0
        assert list(second.store.rows()) == before


def test_a_search_or_a_curve_that_is_there_in_part_is_not_kept(tmp_path, monkeypatch):
    with bench(tmp_path, models=("MLP",), seeds=2, most=3) as first:
        run_table2(first)
    with bench(tmp_path, models=("MLP",), seeds=2, most=4, stored=True) as second:
        assert run_table2(second) == []  # of four settings the study has three
    with bench(tmp_path, models=("MLP",), seeds=2, most=3, stored=True) as third:
        assert len(run_table2(third)) == 3 * 2
    with bench(tmp_path, models=("SGC",), seeds=1) as first:
        whole = first.scope.asked("depth")["depths"]
        monkeypatch.setattr("unspool.reproduce.depth.deepened", lambda trial, depths: deepened(trial, depths[:2]))
        assert len(run_depth(first)) == 2
        monkeypatch.undo()
    with bench(tmp_path, models=("SGC",), seeds=1, stored=True) as second:
        assert run_depth(second) == []
    assert len(whole) > 2
    assert len(read(tmp_path / "results").of("depth")) == 2  # nothing takes the place of what is there


def test_a_setting_of_which_a_seed_failed_is_no_cell(tmp_path):
    with bench(tmp_path, models=("SGC", "GCN")) as some:
        run_table2(some)
        rows = [row for row in some.store.rows() if row.described["model"] == "SGC"]
        _fail(tmp_path / "study.db", rows[0].key)
    with bench(tmp_path, models=("SGC", "GCN"), stored=True) as again:
        assert {row.model for row in run_table2(again)} == {"GCN"}
        assert len(again.failed) == 1


def _fail(file, key):
    with closing(sqlite3.connect(file)) as store, store:
        store.execute(f"update trial set {', '.join(f'{name} = null' for name in RESULT)} where key = ?", (key,))
        seal = sealed(key, "failed", "no", "today", *(None for _ in RESULT))
        change = "update trial set status = 'failed', message = 'no', finished_at = 'today', ended = ? where key = ?"
        store.execute(change, (seal, key))


def test_the_reading_that_explains_a_cell_is_the_nearest_that_is_within():
    low = [example_record(seed, test_score=0.8) for seed in range(3)]
    near = [example_record(seed, experiment="readings", preset="near", test_score=0.8320) for seed in range(3)]
    far = [example_record(seed, experiment="readings", preset="far", test_score=0.9) for seed in range(3)]
    worse = [example_record(seed, experiment="readings", preset="worse", test_score=0.7) for seed in range(3)]
    (one,) = explained(Results([*low, *far, *worse, *near]))
    assert [cell.first.preset for cell in one.readings] == ["near", "far", "worse"]
    assert one.by.first.preset == "near"
    (none,) = explained(Results([*low, *worse]))
    assert none.by is None
    assert missing_cells([*near]) == []


def test_tuned_tries_the_settings_of_the_paper_and_of_the_authors_too():
    for data, wanted in (("cora", 2), ("photo", 1)):
        sought = to_be_searched(models.GCNII, data, "tuned")
        keys = {(t.settings["depth"], t.plan.rate, str(t.plan.decay)) for t in sought.trials}
        found = 0
        for preset in ("paper", "official"):
            printed = as_printed(models.GCNII, data, preset)
            found += (
                printed is not None and (printed.settings["depth"], printed.plan.rate, str(printed.plan.decay)) in keys
            )
        assert found == wanted


# -- networks ----------------------------------------------------------------------------------------------------------


def test_networks_come_back_from_their_file_as_they_were(tmp_path):
    with bench(tmp_path, models=("UGDGNN", "SGC"), datasets=("cora", "texas"), most=1) as some:
        made = run_networks(some)
    again = read_networks(tmp_path / "results")
    assert [(one.dataset, one.model) for one in again] == [(one.dataset, one.model) for one in made]
    assert {one.dataset for one in made} == {"cora", "texas"}
    for one, other in zip(made, again, strict=True):
        assert torch.allclose(one.found.gain.values, other.found.gain.values, rtol=1e-3)
        assert all(torch.allclose(a, b, rtol=1e-3) for a, b in zip(one.density, other.density, strict=True))
        assert [len(run) for run in one.descent.runs] == [len(run) for run in other.descent.runs]
    keep_networks(tmp_path / "results", [again[0]])
    assert len(read_networks(tmp_path / "results")) == len(again)


def test_networks_are_not_trained_twice(tmp_path, monkeypatch):
    with bench(tmp_path, models=("SGC",)) as some:
        first = run_networks(some)
    with bench(tmp_path, models=("SGC",)) as some:
        monkeypatch.setattr("unspool.reproduce.networks.trained_network", None)
        assert [one.key for one in run_networks(some)] == [one.key for one in first]
        assert some.trained == 0
    monkeypatch.undo()
    with bench(tmp_path, models=("SGC",), epochs=4) as some:  # another plan is another network
        assert run_networks(some)[0].key != first[0].key
    told = json.loads((tmp_path / "results" / "machine.json").read_text())
    assert told["experiments"]["networks"]["trials"] == 2 + 2


def test_a_broken_file_of_networks_is_named_and_can_be_written_again(tmp_path):
    (tmp_path / NETWORKS).write_text('{"networks": [{}], "densities": {}}')
    with pytest.raises(
        ValueError, match=r"networks.json is no file of networks.*; write it again with `unspool reproduce networks`"
    ):
        read_networks(tmp_path)
    gain = Spread("response h(λ)", torch.ones(1, 121, dtype=torch.float64))
    keep_networks(tmp_path, [Network("cora", "APPNP", Learnt(("0",), gain, None, (), False, ()))])
    assert [one.model for one in read_networks(tmp_path)] == ["APPNP"]


# -- several processes -------------------------------------------------------------------------------------------------


def _keep(folder, name):
    torch.set_num_threads(1)
    with bench(folder, datasets=(name,), models=("SGC",)) as some:
        for _ in range(10):
            with some.timed("table2"):
                some.trained += 1
                some.keep("table2", [example_record(seed, dataset=name) for seed in range(3)])


def test_processes_that_write_into_one_folder_lose_nothing(tmp_path):
    context = multiprocessing.get_context("spawn")
    crew = [context.Process(target=_keep, args=(tmp_path, name)) for name in ("cora", "citeseer", "pubmed")]
    for one in crew:
        one.start()
    for one in crew:
        one.join()
    assert [one.exitcode for one in crew] == [0, 0, 0]
    found = read(tmp_path / "results")
    assert {row.dataset for row in found.rows} == {"cora", "citeseer", "pubmed"}
    assert len(found.rows) == 9
    assert found.machine["experiments"]["table2"]["trials"] == 30


def _search(folder, barrier, queue):
    torch.set_num_threads(1)
    with bench(folder, models=("MLP", "SGC"), seeds=3, most=9, epochs=30) as some:
        barrier.wait()
        queue.put([run_table2(some), some.trained])


def test_two_processes_on_the_same_search_choose_the_same_and_train_nothing_twice(tmp_path):
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(2), context.Queue()
    crew = [context.Process(target=_search, args=(tmp_path, barrier, queue)) for _ in range(2)]
    for one in crew:
        one.start()
    (first, a), (second, b) = queue.get(timeout=120), queue.get(timeout=120)
    for one in crew:
        one.join()
    assert sorted(map(str, first)) == sorted(map(str, second))
    with bench(tmp_path, models=("MLP", "SGC"), seeds=3, most=9, epochs=30) as alone:
        assert sorted(map(str, run_table2(alone))) == sorted(map(str, first))
        assert alone.trained == 0
        assert a + b == len(list(alone.store.rows()))


def test_time_that_overlaps_counts_once():
    assert joined([[0, 10], [2, 5], [9, 12], [20, 21]]) == [[0, 12], [20, 21]]
    assert joined([]) == []


def test_a_second_machine_does_not_take_the_place_of_the_first(tmp_path):
    file = tmp_path / "results" / "machine.json"
    file.parent.mkdir()
    older = {"table2": {"trials": 5, "seconds": 7.0, "hardware": ["a GPU"], "commands": ["c"]}}
    file.write_text(
        json.dumps({"hardware": "a GPU", "torch": "2.11", "experiments": older})
    )  # as older versions wrote it
    with bench(tmp_path, models=("SGC",)) as some:
        run_table2(some)
    told = json.loads(file.read_text())
    assert told["machines"][0]["hardware"] == "a GPU"
    assert len(told["machines"]) == 2
    assert told["experiments"]["table2"]["trials"] == 5 + 2
    assert told["experiments"]["table2"]["seconds"] >= 7.0
    with bench(tmp_path, models=("SGC",)) as some:
        run_table2(some)
    assert len(json.loads(file.read_text())["machines"]) == 2


# -- nothing is lost ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "said"),
    [({"epochs": 2}, "with 3 epochs, and a run of 2"), ({"seeds": 1}, "with 2 seeds, and a run of 1")],
)
def test_short_runs_do_not_take_the_place_of_long_ones(tmp_path, scope, said):
    with bench(tmp_path) as first:
        run_table2(first)
    with (
        bench(tmp_path, **scope) as second,
        pytest.raises(ValueError, match=f"{said} would take its place; give another folder with --out"),
    ):
        second.check("table2", {})
    with bench(tmp_path, datasets=("citeseer",), **scope) as other:
        other.check("table2", {})
    with bench(tmp_path, seeds=3, epochs=5) as longer:
        longer.check("table2", {})
    with bench(tmp_path) as short, pytest.raises(ValueError, match="with 9 epochs"):
        short.check("networks", {("cora", "UGDGNN"): 9, ("cora", "SGC"): 9})


CORRUPT = {
    "cut": (lambda text: text[: len(text) - 30], "row 5 is cut off"),
    "binary": (lambda text: "\x96\x00", "is no CSV file"),
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
    with pytest.raises(ValueError, match=r"machine.json is no file of results, or was cut off; move it away"):
        read(tmp_path)


def test_totals_of_the_docs_are_those_of_the_committed_results():
    root = Path(__file__).parents[2]
    found = read(root / "experiments" / "results")
    cells = [one.cell.met for one in compared(found.of("table2"), "paper") if one.cell.met is not None]
    explaining = [one.by.first.preset for one in explained(found) if one.by is not None]
    page, readme = ((root / name).read_text(encoding="utf-8") for name in ("docs/reproduction.md", "README.md"))
    assert len(cells) == 48
    for text in (page, readme):
        assert f"**{sum(cells)} of the 56 cells**" in text
    missed, by_authors = len(cells) - sum(cells), explaining.count("official")
    assert f"Each of the {missed} that miss" in readme
    assert f"for {len(explaining) - by_authors} of them one of up to" in readme
    assert f"**The {missed} that miss, and how each was explained.**" in page
    assert f"For {len(explaining) - by_authors} cells one of them meets it" in " ".join(page.split())
    assert (len(explaining), by_authors) == (missed, 1)
    most = max(len([r for r in one.readings if r.first.preset != "official"]) for one in explained(found))
    assert f"up to {most} readings for a cell" in page
    assert f"one of up to {most} such readings" in readme
    tuned = {
        one.cell.first.dataset: one.cell
        for one in compared(found.of("table2"), "tuned")
        if one.cell.first.model == "UGDGNN"
    }
    above = [name for name, cell in tuned.items() if cell.difference >= 0]
    assert (
        f"at or above the printed mean on {['no', 'one', 'two', 'three', 'four', 'five', 'six'][len(above)]} of six sets"
        in page
    )


def test_one_change_explains_before_two_and_before_chance():
    low = [example_record(seed, test_score=0.80) for seed in range(3)]
    names = {"last epoch": 0.829, "no bias, last epoch": 0.8324, "twice as many repetitions": 0.8324}
    others = [
        example_record(seed, experiment="readings", preset=name, test_score=score)
        for name, score in names.items() for seed in range(3)
    ]  # fmt: skip
    assert explained(Results([*low, *others]))[0].by.first.preset == "last epoch"
    assert explained(Results([*low, *others[3:]]))[0].by.first.preset == "no bias, last epoch"
    assert explained(Results([*low, *others[6:]]))[0].by.first.preset == "twice as many repetitions"
