"""Damage where the denoiser sees it: rows behind the encoder, edges, attacked graphs; ten draws, each of its own."""

import numpy as np
import pytest
import torch

import unspool as us
from unspool import datasets, train
from unspool.errors import InputError
from unspool.reproduce import experiment_files
from unspool.reproduce.attacked import run_attacked
from unspool.reproduce.conditions import CLEAN, Condition, Factor, Nodes, Phase
from unspool.reproduce.damage import DamagedLoader, hit_nodes, outlying, run_damage, with_steps
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.options import RunOptions, Workspace
from unspool.reproduce.presets import PAPER
from unspool.reproduce.records import Group, Quantity, Search, by_group
from unspool.reproduce.results import read_measurements, read_records, write_searches
from unspool.reproduce.robust import run_robust
from unspool.reproduce.runner import ExperimentRunner, TrainedNetwork
from unspool.reproduce.signals import ROWS, SQUARES, noisy, run_signals, signal_tests
from unspool.reproduce.table2 import to_be_searched
from unspool.train import training

pytestmark = pytest.mark.long


def small(name):
    return datasets.contextual_sbm(nodes=60, classes=2, seed=len(name))


def runner(folder, load=small, **scope):
    given = {"seeds": 2, "epochs": 20, "models": ("AirGNN", "APPNP"), "datasets": ("cora",), "max_settings": 1, **scope}
    return ExperimentRunner(Workspace(folder, device="cpu", jobs=1), RunOptions(**given), load=load)


# -- the settings ------------------------------------------------------------------------------------------------------


def test_lengths_and_draws_are_those_that_the_claim_is_about():
    for name in ("signals", "damage"):
        assert {1, 3, 10, 30} <= set(read_experiment(name)["lengths"])
    assert read_experiment("signals")["draws"] >= 10
    assert read_experiment("damage")["seeds"] >= 10  # each with a damage of its own
    assert read_experiment("robust")["draws"] >= 10
    assert read_experiment("attacked")["strengths"] == [0, 5, 10, 15, 20, 25]


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1.0, 3.0, 30.0])
def test_outliers_have_their_length_and_leave_the_others_alone(length):
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    hit = hit_nodes(50, 10, seed=1)
    worse = outlying(x, hit, length, seed=1)
    mask = torch.zeros(50, dtype=torch.bool)
    mask[hit] = True
    assert torch.equal(worse[~mask], x[~mask])
    assert torch.allclose(worse[mask].norm(dim=1), length * x[~mask].norm(dim=1).mean())
    (gradient,) = torch.autograd.grad(worse.sum(), x)
    assert (gradient[mask] == 0).all()  # nothing is learnt from what was replaced
    assert (gradient[~mask] == 1).all()


def test_every_seed_has_nodes_and_directions_of_its_own():
    x = torch.ones(200, 4)
    made = [outlying(x, hit_nodes(200, 10, seed), 3.0, seed) for seed in range(10)]
    assert len({tuple(hit_nodes(200, 10, seed).tolist()) for seed in range(10)}) == 10
    assert torch.equal(made[4], outlying(x, hit_nodes(200, 10, 4), 3.0, 4))
    assert all(not torch.equal(made[0], other) for other in made[1:])


def test_signals_are_the_same_but_for_the_length_of_the_outliers():
    _, places = us.graph.sensor(60)
    how = {"channels": 3, "noise": 0.2, "share": 10}
    one, three, none = (noisy(places, length, how, seed=4) for length in (1.0, 3.0, 0.0))
    assert torch.equal(one.hit, three.hit)
    assert none.hit.numel() == 0
    assert torch.equal(one.clean, three.clean)
    assert torch.allclose(3 * one.seen[one.hit], three.seen[three.hit])
    assert torch.equal(one.seen[one.seen.shape[0] - 1], three.seen[-1]) or (one.hit == 59).any()


def test_rows_beat_squares_where_outliers_are_long(tmp_path, monkeypatch):
    few = {
        **read_experiment("signals"),
        "nodes": 120,
        "draws": 6,
        "choosing": 2,
        "lengths": [0, 30],
        "weights": [1.0, 3.0, 30.0],
    }
    monkeypatch.setattr(
        experiment_files, "read_experiment", lambda name: few if name == "signals" else read_experiment(name)
    )
    with runner(tmp_path) as some:
        found = run_signals(some)
        kept = read_measurements(tmp_path / "results", "signals")
        assert [(o.group, o.seed, o.nodes) for o in kept] == [(o.group, o.seed, o.nodes) for o in found]
        monkeypatch.setattr("unspool.reproduce.signals.minimise", None)  # nothing is computed a second time
        assert run_signals(some) == kept
    error = by_group(found, Quantity.ERROR)
    rows, squares = (error[Group("sensor", name, Condition(Factor.OUTLIERS, 30.0))] for name in (ROWS, SQUARES))
    assert max(rows.values()) < min(squares.values())
    (first, *_) = signal_tests(found)
    assert (first.claim.text, first.condition.amount, first.verdict.value) == (
        "‖H − X‖₂,₁ errs less than ‖H − X‖² where there are outliers",
        30.0,
        "holds",
    )


# -- networks ----------------------------------------------------------------------------------------------------------


def test_damaged_and_clean_nodes_are_scored_apart_and_nothing_is_trained_twice(tmp_path, monkeypatch):
    with runner(tmp_path) as some:
        found = run_damage(some)
        trained = some.trained
    there = {(one.model, one.condition) for one in found}
    how = read_experiment("damage")
    rows = Factor.ENCODED_ROWS
    for model in ("AirGNN", "APPNP"):
        for factor, phase, amounts in (
            (rows, Phase.AFTER_TRAINING, how["lengths"]),
            (rows, Phase.MANY_STEPS, how["lengths"]),
            (rows, Phase.ALWAYS, how["lengths_in_training"]),
            (Factor.EDGES, Phase.AFTER_TRAINING, how["edges"]),
        ):
            assert {(model, Condition(factor, float(a), phase)) for a in amounts} <= there
    test, weighed = len(small("cora").split.test), 0
    for model in ("AirGNN", "APPNP"):
        group = Group("cora", model, Condition(rows, 30.0, Phase.AFTER_TRAINING))
        parts = [by_group(found, Quantity.ACCURACY, nodes)[group] for nodes in Nodes]
        for seed in (0, 1):  # the whole is the mean of its parts, weighted by their nodes
            hit = np.isin(small("cora").split.test.numpy(), hit_nodes(60, how["share"], seed).numpy()).sum()
            if hit:  # of few nodes, no test node may be among those that were hit
                whole, worse, clean = (part[seed] for part in parts)
                assert whole == pytest.approx((hit * worse + (test - hit) * clean) / test, abs=1e-6)
                weighed += 1
            assert (seed in parts[1]) is bool(hit)
    assert weighed
    monkeypatch.setattr(training, "fit", None)
    with runner(tmp_path) as again:
        assert len(run_damage(again)) == len(found)
        assert again.trained == 0 < trained


def test_networks_that_are_trained_with_damage_learn_from_it(tmp_path):
    """The hook behind the encoder is there in training, whichever loader makes the model, and the seed decides it."""
    data = small("cora")
    trial = train.Trial(us.models.APPNP, {"hidden": 8}, train.TrainConfig(epochs=5))
    loader = DamagedLoader(train.TrialLoader(data), share=10, length=30.0)
    clean, worse = train.train_trial(trial, data)[1], train.train_trial(trial, loader)[1]
    assert worse.best != clean.best
    assert train.train_trial(trial, loader)[1].best == worse.best


def test_short_runs_do_not_take_the_place_of_long_ones(tmp_path):
    with runner(tmp_path, models=("APPNP",)) as some:
        run_damage(some)
    with (
        runner(tmp_path, models=("APPNP",), epochs=5) as short,
        pytest.raises(ValueError, match="20 epochs, and a run of 5"),
    ):
        short.check("robust", {})


def test_many_steps_are_near_the_minimiser_and_leave_the_network_alone(tmp_path):
    data = small("cora").row_normalised()
    model = us.models.APPNP(data.features.shape[1], 2, depth=2).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    task = train.Task.of(data)
    network = TrainedNetwork(None, model, task, None)
    with torch.no_grad():
        longer = with_steps(network, 300).model(task.x, task.graph)
        exact = us.minimise(model.objective, model.p_pre(task.x), task.graph)
    assert torch.allclose(longer, exact, atol=1e-4)
    assert model.propagation.depth == 2
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_parts_of_the_experiment_are_run_alone_and_unknown_ones_are_named(tmp_path, monkeypatch):
    few = {**read_experiment("signals"), "nodes": 60, "draws": 2, "choosing": 1, "lengths": [3], "weights": [1.0]}
    monkeypatch.setattr(
        experiment_files, "read_experiment", lambda name: few if name == "signals" else read_experiment(name)
    )
    with runner(tmp_path, parts=("signals",)) as some:
        assert run_robust(some) == []
        assert some.trained == 0
    assert (tmp_path / "results" / "signals.csv").is_file()
    assert not (tmp_path / "results" / "robust.csv").is_file()
    with pytest.raises(InputError) as wrong:
        RunOptions(parts=("signal",)).experiment("robust")
    assert (wrong.value.argument, wrong.value.value) == ("parts", "signal")


# -- settings that are recorded ----------------------------------------------------------------------------------------


def test_a_search_that_is_recorded_is_not_made_again(tmp_path):
    with runner(tmp_path, models=("AirGNN",)) as first:
        run_damage(first)
        searched = len(first.store.rows())
    assert searched > 0
    with runner(tmp_path / "other", models=("AirGNN",)) as second:
        sought = to_be_searched(us.models.AirGNN, "cora", "paper").fewer(1)
        trial = sought.trials[0]
        chosen = {"lr": trial.config.lr, "dropout": trial.settings["dropout"], "depth": trial.settings["depth"]}
        chosen["weight_decay"] = trial.config.weight_decay
        recorded = Search("table2", "cora", "AirGNN", "paper", 1, 2, sought.space, chosen, 0.8, 10)
        write_searches(second.workspace.results, "table2", [recorded])
        run_damage(second)
        assert len(second.store.rows()) == 0
        found = read_measurements(second.workspace.results, "damage")
        assert {one.settings["depth"] for one in found} == {trial.settings["depth"]}


# -- attacked graphs ---------------------------------------------------------------------------------------------------


def test_attacked_graphs_have_the_settings_of_the_set_before_the_attack(tmp_path):
    asked = []

    def load(name):
        asked.append(name)
        return small("cora")

    with runner(tmp_path, load, models=("APPNP", "GCN"), datasets=("cora",)) as some:  # cora-metattack means the same
        rows = run_attacked(some)
    assert asked == ["cora_metattack", *(f"cora_metattack_{share:g}" for share in (0.05, 0.1, 0.15, 0.2, 0.25))]
    strengths = [Condition(Factor.ATTACK, float(share)) for share in (5, 10, 15, 20, 25)]
    assert list(dict.fromkeys(row.condition for row in rows)) == [CLEAN, *strengths]
    assert {row.dataset for row in rows} == {"cora_metattack"}
    assert {row.lr for row in rows if row.model == "GCN"} == {PAPER.trial(us.models.GCN, "cora").config.lr}
    assert len(read_records(some.workspace.results, "attacked")) == len(rows) == 6 * 2 * 2


def test_attacked_graphs_need_settings_that_are_printed_or_recorded(tmp_path):
    with (
        runner(tmp_path, models=("LearntRows",), datasets=("cora-metattack",)) as some,
        pytest.raises(
            FileNotFoundError, match="records no settings of LearntRows on cora; run `unspool reproduce robust"
        ),
    ):
        run_attacked(some)
    with runner(tmp_path, datasets=("pubmed",)) as some, pytest.raises(InputError) as wrong:
        run_attacked(some)
    assert (wrong.value.argument, wrong.value.value) == ("datasets", "pubmed")
