"""Experiments on a small graph: they resume, choose on validation, replace their own cells only, and name what is missing."""

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unspool import datasets, models, train
from unspool.errors import InputError
from unspool.reproduce import experiment_files, machine, options
from unspool.reproduce import runner as runners
from unspool.reproduce.ablations import LearntRows, LearntSquares
from unspool.reproduce.causes import all_causes, causes_of
from unspool.reproduce.conditions import CLEAN, Condition, Factor, Phase
from unspool.reproduce.corrupt import corrupt
from unspool.reproduce.depth import run_depth
from unspool.reproduce.draws import draw_hash
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.options import Budget, RunOptions, Workspace
from unspool.reproduce.presets import PAPER
from unspool.reproduce.records import example_record
from unspool.reproduce.results import read, read_records
from unspool.reproduce.robust import robust_tests, run_robust
from unspool.reproduce.runner import ExperimentRunner
from unspool.reproduce.search import candidates, search
from unspool.reproduce.searches import run_grid, run_heterophily
from unspool.reproduce.summary import Tally, entries_of
from unspool.reproduce.table2 import run_table2, to_be_searched
from unspool.testing import check_model
from unspool.train import training

pytestmark = pytest.mark.long


#: How many settings of all eleven models the tuned search tries on each set: as in experiments/README.md.
TUNED = {"cora": 672, "citeseer": 674, "pubmed": 536, "photo": 453, "cs": 367, "physics": 277}


#: The parts of `robust` that damage features in front of the encoder; the others are in test_damage.py.
IN_FRONT = ("always", "after")


def small(name):
    if name == "physics":
        raise FileNotFoundError("Physics: ms_academic_phy.npz is missing; put it somewhere")
    return datasets.contextual_sbm(nodes=60, classes=2, seed=len(name))


def runner(folder, **scope):
    given = {
        "seeds": 2,
        "epochs": 3,
        "models": ("SGC", "MLP"),
        "datasets": ("cora",),
        "max_settings": 2,
        "parts": IN_FRONT,
        **scope,
    }
    return ExperimentRunner(
        Workspace(folder, device="cpu", jobs=1, command="unspool reproduce x"), RunOptions(**given), load=small
    )


def test_a_second_run_trains_nothing_and_writes_the_same(tmp_path):
    with runner(tmp_path) as first:
        rows = run_table2(first, ("paper", "tuned"))
    with runner(tmp_path) as second:
        assert run_table2(second, ("paper", "tuned")) == rows
        assert second.trained == 0
    found = read(tmp_path / "results")
    assert len(found.records) == len(rows)
    assert {(row.model, row.preset) for row in found.records} == {
        (m, p) for m in ("SGC", "MLP") for p in ("paper", "tuned")
    }
    # SGC has a column in the paper, MLP is searched; tuned searches both.
    assert sorted((s.model, s.preset) for s in found.searches) == [("MLP", "paper"), ("MLP", "tuned"), ("SGC", "tuned")]
    assert all(s.settings == 2 for s in found.searches)


def test_presets_and_datasets_stay_beside_one_another(tmp_path):
    with runner(tmp_path, models=("SGC",)) as first:
        run_table2(first, ("paper",))
    with runner(tmp_path, models=("SGC",), datasets=("citeseer",)) as second:
        run_table2(second, ("official",))
    found = read(tmp_path / "results")
    assert {(row.dataset, row.preset) for row in found.records} == {("cora", "paper"), ("citeseer", "official")}
    assert found.machine["experiments"]["table2"]["trials"] == 4
    assert found.machine["experiments"]["table2"]["commands"] == ["unspool reproduce x"]


def test_more_seeds_replace_the_cell(tmp_path):
    for seeds in (2, 3):
        with runner(tmp_path, models=("SGC",), seeds=seeds) as some:
            run_table2(some)
    assert [row.seed for row in read(tmp_path / "results").records] == [0, 1, 2]


def test_what_is_missing_is_named_and_the_rest_runs(tmp_path):
    with runner(tmp_path, datasets=("physics", "cora"), models=("SGC",)) as some:
        rows = run_table2(some)
    assert {row.dataset for row in rows} == {"cora"}
    assert (
        some.missing["physics"]
        == "physics not run: its files are not here; `unspool datasets physics` says where they belong"
    )
    assert "physics" in read(tmp_path / "results").machine["not_run"]


def test_official_leaves_out_models_whose_authors_say_nothing(tmp_path):
    with runner(tmp_path, models=("UGDGNN", "SGC")) as some:
        assert {row.model for row in run_table2(some, ("official",))} == {"SGC"}
    with pytest.raises(InputError) as wrong:
        run_table2(some, ("best",))
    assert (wrong.value.argument, wrong.value.value) == ("preset", "best")


def test_depth_has_every_depth_and_the_settings_of_table_2(tmp_path, monkeypatch):
    held = {**read_experiment("depth"), "depths": [1, 3]}
    monkeypatch.setattr(
        experiment_files, "read_experiment", lambda name: held if name == "depth" else read_experiment(name)
    )
    with runner(tmp_path, models=("SGC", "AirGNN", "MLP")) as some:
        rows = run_depth(some)
    assert {(row.model, row.depth) for row in rows} == {(m, k) for m in ("SGC", "AirGNN") for k in (1, 3)}
    assert {row.lr for row in rows if row.model == "SGC"} == {PAPER.trial(models.SGC, "cora").config.lr}
    assert {row.preset for row in rows} == {"paper"}


KINDS = (Factor.FEATURES, Factor.NOISE, Factor.EDGES)


def after(factor, amount):
    return Condition(factor, float(amount), Phase.AFTER_TRAINING)


def is_after(record):
    return record.condition.phase is Phase.AFTER_TRAINING


def test_robust_has_every_condition_and_clean_data_once(tmp_path):
    with runner(tmp_path, models=("APPNP", "SGC"), budget=Budget.QUICK) as some:
        rows = run_robust(some)
    always = [CLEAN, *(Condition(factor, 30.0) for factor in KINDS)]
    later = [after(factor, share) for factor in KINDS for share in (0, 30)]
    assert list(dict.fromkeys(row.condition for row in rows)) == always + later
    assert len({(row.condition, row.model, row.seed) for row in rows}) == len(rows) == (4 + 6) * 2 * 2
    assert {row.dataset for row in rows} == {"cora"}
    assert _told(read_records(some.workspace.results, "robust")) == _told(rows)


def _told(rows):
    return sorted((str(r.condition), r.condition.kind, r.setting, r.seed, round(r.result.test_score, 6)) for r in rows)


@pytest.mark.slow
def test_corruption_after_training_meets_networks_that_learnt_from_clean_data(tmp_path, monkeypatch):
    with runner(tmp_path, models=("APPNP", "AirGNN", "MLP"), budget=Budget.QUICK, epochs=30) as some:
        rows = run_robust(some)
        trained = some.trained
    by = {(row.condition, row.model, row.depth, row.seed): row for row in rows}
    for (condition, *who), row in by.items():
        if condition.phase is Phase.AFTER_TRAINING:
            clean = by[(condition.reference, *who)]
            # Only the data that is tested on is another one.
            assert replace(row.result, test_score=0.0) == replace(clean.result, test_score=0.0)
            stored = by[(CLEAN, *who)]  # in a stack, on the same data
            assert clean.result.valid_loss == pytest.approx(stored.result.valid_loss, rel=1e-3)

    def scores(factor, amount):
        return [r.result.test_score for r in rows if r.model == "MLP" and r.condition == after(factor, amount)]

    assert (
        scores(Factor.EDGES, 30) == scores(Factor.FEATURES, 0) != scores(Factor.FEATURES, 30)
    )  # a perceptron sees no edges
    monkeypatch.setattr(training, "fit", None)  # nothing is trained a second time
    with runner(tmp_path, models=("APPNP", "AirGNN", "MLP"), budget=Budget.QUICK, epochs=30) as again:
        assert _told(run_robust(again)) == _told(rows)
        assert again.trained == 0 < trained


def watched(monkeypatch, change):
    """Lets ``change`` have a look at every run that is trained for its weights: given the model and what trains it."""
    whole = training.fit

    def changed(model, task, config, **how):
        return change(model, lambda: whole(model, task, config, **how))

    monkeypatch.setattr(training, "fit", changed)


def test_the_weights_of_the_selected_epoch_are_tested(tmp_path, monkeypatch):
    runs = []

    def keep(model, fit):
        runs.append(fit())
        return runs[-1]

    watched(monkeypatch, keep)
    with runner(tmp_path, models=("APPNP", "MLP"), budget=Budget.QUICK, epochs=60) as some:
        rows = run_robust(some)
    clean = [row.result.test_score for row in rows if row.condition == after(Factor.NOISE, 0)]
    assert clean == pytest.approx([run.best.test_score for run in runs], abs=1e-6)
    assert any(run.best.test_score != run.history[-1].test_score for run in runs)


def test_long_training_tells_how_far_it_is(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(runners, "LINE_EVERY", 0.0)
    with runner(tmp_path, models=("AirGNN",), budget=Budget.QUICK, seeds=3) as some:
        some.say = said.append
        run_robust(some)
    assert said[0] == "robust on cora: AirGNN, 6 networks, corrupted after training"
    assert [line.partition(",")[0] for line in said[1:]] == ["  1 of 3 networks", "  2 of 3 networks"] * 2
    assert all(line.endswith("s left") for line in said[1:])


def test_an_interrupted_network_is_not_a_result(tmp_path, monkeypatch):
    def cut(model, fit):
        run = fit()
        return replace(run, ending=train.Ending.INTERRUPTED) if type(model).__name__ == "MLP" else run

    watched(monkeypatch, cut)
    with runner(tmp_path, models=("APPNP", "MLP"), budget=Budget.QUICK) as some, pytest.raises(KeyboardInterrupt):
        run_robust(some)
    kept = read_records(tmp_path / "results", "robust")
    assert {row.model for row in kept if is_after(row)} == {"APPNP"}


def test_only_settings_that_lack_something_are_trained_again(tmp_path, monkeypatch):
    trained = []

    def break_some(model, fit):
        trained.append(int(model.settings["depth"]))
        if model.settings["depth"] == 64 and len(trained) < 5:
            raise RuntimeError("broken")
        return fit()

    watched(monkeypatch, break_some)
    for _ in range(3):
        with runner(tmp_path, models=("AirGNN",), budget=Budget.QUICK) as some:
            rows = [row for row in run_robust(some) if is_after(row)]
    assert len([k for k in trained if k != 64]) == 2  # two seeds, once
    assert trained[4:] == [64, 64]  # the other depth a second time, and no third
    assert len(rows) == 2 * 2 * 6
    assert _told(r for r in read_records(tmp_path / "results", "robust") if is_after(r)) == _told(rows)


def test_a_network_that_diverges_is_told_and_leaves_out_its_setting(tmp_path, monkeypatch):
    def diverge(model, fit):
        if type(model).__name__ == "SGC":
            raise train.Diverged("the loss is not a number")
        return fit()

    watched(monkeypatch, diverge)
    with runner(tmp_path, models=("SGC", "MLP"), budget=Budget.QUICK) as some:
        rows = run_robust(some)
        assert some.failed == ["SGC on cora: Diverged: the loss is not a number"]
    assert {row.model for row in rows if is_after(row)} == {"MLP"}


def test_learnt_rows_and_squares_differ_in_the_norm_alone(tmp_path):
    check_model(lambda: LearntRows(5, 3, depth=4), features=5)
    check_model(lambda: LearntSquares(5, 3, depth=4), features=5)
    with runner(tmp_path, models=("LearntRows", "LearntSquares"), budget=Budget.QUICK) as some:
        rows = run_robust(some)
    sentence = "LearntRows loses less than LearntSquares"
    found = {test.claim.text for test in robust_tests(rows)}
    assert found == {sentence, f"{sentence} where damage comes after training"}


def test_each_seed_sees_its_own_corruption(tmp_path, monkeypatch):
    held = {**read_experiment("robust"), "kinds": ["edges"], "shares": [50], "draws": 2}
    monkeypatch.setattr(
        experiment_files, "read_experiment", lambda name: held if name == "robust" else read_experiment(name)
    )
    with runner(tmp_path, models=("SGC",), seeds=4, parts=("always",)) as some:
        rows = run_robust(some)
        marks = {row.data.fingerprint for row in some.store.rows()}
    assert sorted(row.seed for row in rows) == [0, 1, 2, 3]
    assert len(marks) == 2


def test_grid_and_heterophily_choose_on_validation(tmp_path):
    with runner(tmp_path, models=("SGC",)) as some:
        grid = run_grid(some)
        other = run_heterophily(some)
    assert {row.preset for row in grid} == {"grid"}
    assert {row.preset for row in other} == {"default"}
    found = read(tmp_path / "results")
    assert found.experiments == ("grid", "heterophily")
    for one in found.searches:
        rows = found.of(one.experiment)
        best = max(
            {r.lr: np.mean([x.result.valid_score for x in rows if x.setting == r.setting]) for r in rows}.values()
        )
        assert one.valid_score == pytest.approx(best, abs=1e-6)


def test_a_search_takes_its_finalists_to_all_seeds(tmp_path):
    """Ten settings on one seed, eight of them on three, three of them on all five."""
    assert read_experiment("table2")["search"]["stages"] == [[1, 8], [3, 3]]
    with runner(tmp_path, models=("MLP",), seeds=5, max_settings=10) as some:
        rows = run_table2(some)
        tried = {row.key for row in some.store.rows()}
    assert len({row.setting for row in rows}) == 3
    assert len(rows) == 3 * 5
    assert len(tried) == 10 + 8 * 2 + 3 * 2
    (one,) = read(tmp_path / "results").searches
    assert (one.settings, one.trials, one.seeds) == (10, 32, 5)


# -- corruption --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Factor.FEATURES, Factor.NOISE])
@pytest.mark.parametrize("name", ["sparse", "dense"])
def test_corruption_hits_the_share_it_says_and_shares_are_nested(kind, name):
    data = datasets.load("citeseer") if name == "sparse" else datasets.contextual_sbm(nodes=200, classes=2, seed=0)
    before = _dense(data)
    hit = {share: set(np.flatnonzero((_dense(corrupt(data, kind, share, 1)) != before).any(1))) for share in (0.1, 0.3)}
    for share, nodes in hit.items():
        assert 0.97 * share * data.nodes <= len(nodes) <= round(share * data.nodes)  # equal rows may be swapped
    assert hit[0.1] <= hit[0.3]
    assert corrupt(data, kind, 0.0) is data
    again = corrupt(data, kind, 0.3, 1)
    assert (_dense(again) == _dense(corrupt(data, kind, 0.3, 1))).all()
    assert again.split is data.split


def test_swapped_rows_are_rows_of_other_nodes():
    data = datasets.contextual_sbm(nodes=50, classes=2, seed=0)
    worse, before = _dense(corrupt(data, Factor.FEATURES, 1.0)), _dense(data)
    for node in range(50):
        source = np.flatnonzero((before == worse[node]).all(1))
        assert source.size
        assert node not in source


def test_noise_is_as_long_as_the_rows():
    data = datasets.load("citeseer").row_normalised()
    worse = _dense(corrupt(data, Factor.NOISE, 0.5))
    hit = (worse != _dense(data)).any(1)
    lengths = [float((x**2).sum(1).mean()) for x in (worse[hit], _dense(data))]
    assert lengths[0] == pytest.approx(lengths[1], rel=0.1)


def test_added_edges_are_new_and_few():
    data = datasets.load("citeseer")
    worse = corrupt(data, Factor.EDGES, 0.5)
    more = worse.statistics().edges - data.statistics().edges
    assert 0.48 * 4552 < more <= round(0.5 * 4552)
    with pytest.raises(InputError, match=r"share=1\.5"):
        corrupt(data, Factor.EDGES, 1.5)


def _dense(data):
    x = data.features
    return (x.to_dense() if hasattr(x, "operator") else x).numpy()


# -- data files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["table2", "depth", "robust", "grid", "heterophily"])
def test_settings_name_models_and_sets_that_exist(name):
    held = read_experiment(name)
    assert [options.model_named(one).__name__ for one in held["models"]] == held["models"]
    assert RunOptions(datasets=tuple(held["datasets"])).experiment(name)["datasets"] == held["datasets"]
    assert held["seeds"] == 10


@pytest.mark.parametrize(
    ("dataset", "model", "lots"),
    [("cora", "UGDGNN", "1fa5b9cf148bae49"), ("photo", "GPRGNN", "4254add779b6884c"), ("pubmed", "GCNII", "bb716dc7d060390c")],
)  # fmt: skip
def test_the_published_draws_can_be_drawn_again(dataset, model, lots):
    """Which settings were searched is part of the results, so it outlives all changes of keys."""
    drawn = to_be_searched(getattr(models, model), dataset, "tuned").trials
    assert hashlib.sha256("\n".join(map(draw_hash, drawn)).encode()).hexdigest()[:16] == lots


@pytest.mark.slow
def test_the_tuned_space_counts_as_the_docs_say():
    """Sixty are drawn on Cora, and the paper's own comes in addition; a small space is tried whole."""
    drawn = to_be_searched(models.UGDGNN, "cora", "tuned")
    assert math.prod(map(len, drawn.space.values())) == 3 * 3 * 5 * 4 * 2 * 2 * 2 * 2
    assert len(drawn.trials) == 60 + 1
    assert (
        len(to_be_searched(models.SGC, "cora", "tuned").trials) == 3 * 5 * 4 + 1
    )  # all of the space; the authors' decay is not in it
    kinds = RunOptions().model_classes("table2")
    counts = {name: sum(len(to_be_searched(k, name, "tuned").trials) for k in kinds) for name in TUNED}
    assert counts == TUNED
    assert "teleport" in to_be_searched(models.GPRGNN, "cora", "tuned").space


def test_masks_of_nothing_are_not_tried_twice():
    space = {"propagation_dropout": [0.0, 0.5], "masks": ["once", "each_hop"]}
    tried = candidates(models.UGDGNN, "cora", "tuned", space).trials
    told = [(trial.settings["propagation_dropout"], trial.settings["masks"].value) for trial in tried]
    assert told == [(0.0, "once"), (0.5, "once"), (0.5, "each_hop")]


def test_rows_are_searched_where_the_space_says_so():
    tried = candidates(models.SGC, "photo", "tuned", {"lr": [0.01], "normalise_rows": [True, False]})
    assert [trial.normalise_rows for trial in tried.trials] == [True, False]
    assert tried.space["normalise_rows"] == [True, False]


def test_known_settings_go_through_to_the_last_stage(tmp_path):
    """The worst of three settings is known: it is in the final with all seeds, beside the best one."""
    tried = candidates(models.SGC, "citeseer", "tuned", {"lr": [0.5, 0.2, 1e-6]}, {"epochs": 5})
    known = replace(tried, known=tried.trials[-1:])
    with ExperimentRunner(Workspace(tmp_path), RunOptions()) as some:
        data = some.dataset("citeseer")
        without = search(some, "table2", data, [tried], seeds=2, stages=[[1, 1]])
        found = search(some, "table2", data, [known], seeds=2, stages=[[1, 1]])
    assert {row.lr for row in without.records} == {row.lr for row in found.records} - {1e-6}
    assert [row.seed for row in found.records if row.lr == 1e-6] == [0, 1]
    assert found.chosen["SGC"].config.lr == without.chosen["SGC"].config.lr != 1e-6


def test_a_setting_that_is_said_is_the_one_that_was_stored_unsaid(tmp_path):
    """Seed 0 was trained before anybody said ``masks``; the other seeds are not another setting."""
    fixed = {"epochs": 5, "hidden": 8, "propagation_dropout": 0.0}
    unsaid = candidates(models.UGDGNN, "citeseer", "tuned", {"lr": [0.01]}, fixed)
    said = candidates(models.UGDGNN, "citeseer", "tuned", {"lr": [0.01], "masks": ["once"]}, fixed)
    with ExperimentRunner(Workspace(tmp_path), RunOptions()) as some:
        data = some.dataset("citeseer")
        search(some, "table2", data, [unsaid], seeds=1, stages=[])
        found = search(some, "table2", data, [said], seeds=3, stages=[])
    assert some.trained == 3  # the first seed is in the store
    assert len({row.setting for row in found.records}) == 1
    assert all(row.settings["masks"] == "once" for row in found.records)


def test_a_few_of_the_settings_keep_of_the_known_those_that_are_left():
    tried = candidates(models.SGC, "cora", "tuned", {"lr": [0.5, 0.2, 0.1]})
    few = replace(tried, known=tried.trials).fewer(1)
    assert len(few.trials) == 1
    assert [trial.key("") for trial in few.known] == [trial.key("") for trial in few.trials]


def test_every_cause_concerns_some_cell():
    known = {kind.__name__ for kind in models.PAPER_MODELS} | {"*"}
    for cause in all_causes():
        assert cause.model in known
        assert cause.dataset in {*experiment_files.read_experiment("table2")["datasets"], "*"}
    assert not causes_of("GCN", "cora")


def test_cells_are_met_within_one_printed_deviation_or_above():
    scores = {"GCN": 0.8275, "SGC": 0.8500, "APPNP": 0.8262}  # printed 83.24 ± 0.50, 81.49 ± 0.35, 82.88 ± 0.25
    rows = [example_record(s, model=m, test_score=v) for m, v in scores.items() for s in range(2)]
    entries = entries_of(rows, "paper")
    assert {one.first.model: one.met for one in entries} == {
        "GCN": True,
        "SGC": True,
        "APPNP": False,
    }
    found = Tally.of(entries, "paper")
    assert (found.met, found.run, found.printed) == (2, 3, 56)


def test_the_machine_has_no_names_of_machines():
    import platform

    told = json.dumps(machine.machine_facts("cpu"))
    assert platform.node() not in told
    assert Path.home().as_posix() not in told


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    from contextlib import contextmanager

    @contextmanager
    def watching(title, trials, before):
        def watch(now):
            if now.done >= 2:
                raise KeyboardInterrupt

        yield watch

    def some(watching=None):
        scope = RunOptions(seeds=6, epochs=40, models=("GCN",), datasets=("cora",))
        return ExperimentRunner(Workspace(tmp_path, device="cpu", jobs=1, command="c"), scope, watching, load=small)

    with some(watching) as cut, pytest.raises(KeyboardInterrupt):
        run_table2(cut)
    with some() as rest:
        rows = run_table2(rest)
        assert rest.trained + cut.trained == 6
    assert [row.seed for row in rows] == list(range(6))
    assert read(tmp_path / "results").machine["experiments"]["table2"]["trials"] == 6
