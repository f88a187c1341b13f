"""Optuna's studies on our batches: what is told, what is refused, and that nothing is trained twice."""

import math
import subprocess
import sys

import optuna
import pytest
from optuna.trial import TrialState
from torch import nn

import unspool as us
from unspool import datasets
from unspool.settings import choice, integers, uniform
from unspool.study import Measure, Store, grid
from unspool.study.evaluation import evaluate
from unspool.study.optuna_search import optimise
from unspool.train import TaskKind, TrialLoader

pytestmark = pytest.mark.long


SAMPLERS = {
    "random": lambda: optuna.samplers.RandomSampler(seed=0),
    "TPE": lambda: optuna.samplers.TPESampler(seed=0, n_startup_trials=4),
    "NSGA-II": lambda: optuna.samplers.NSGAIISampler(seed=0, population_size=4),
}


class Fragile(nn.Module):
    """Raises, or blows up, if asked to."""

    def __init__(self, in_features, out_features, *, kind="good"):
        super().__init__()
        self.kind, self.only = kind, us.nn.Linear(in_features, out_features)

    def forward(self, x, graph):
        if self.kind == "raises":
            raise RuntimeError("no such thing")
        return self.only(x) * (math.nan if self.kind == "diverges" else 1.0)


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=60, classes=2, seed=0)


@pytest.fixture(autouse=True)
def _quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)


def search(sampler=None, direction="maximize", **options):
    sampler = optuna.samplers.RandomSampler(seed=0) if sampler is None else sampler
    return optuna.create_study(direction=direction, sampler=sampler, **options)


def suggest(trial):
    dropout, lr = trial.suggest_float("dropout", 0, 0.9), trial.suggest_float("lr", 1e-3, 1e-1, log=True)
    depth = trial.suggest_int("depth", 1, 2)
    return grid(us.models.GPRGNN, seed=range(2), hidden=6, epochs=6, dropout=dropout, lr=lr, depth=depth)


def fragile(trial):
    kind = trial.suggest_categorical("kind", ["good", "raises", "diverges"])
    return grid(Fragile, seed=range(2), epochs=3, kind=kind)


def told(study):
    return [(t.number, t.state, t.params, t.value, t.user_attrs) for t in study.trials]


# -- what is told ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", Measure)
def test_told_is_the_mean_of_the_trials(by, data):
    study = search(direction="maximize" if by is Measure.VALID_SCORE else "minimize")
    found = optimise(study, suggest, data, trials=5, batch=3, by=by, device="cpu")
    assert len(study.trials) == 5
    for trial in study.trials:
        run = us.study.run(suggest(optuna.trial.FixedTrial(trial.params)), data, device="cpu")
        results = [row.result for row in run.rows]
        values = [r.valid_score if by is Measure.VALID_SCORE else r.valid_loss for r in results]
        assert trial.value == pytest.approx(sum(values) / 2, rel=1e-5)
        assert trial.user_attrs["test_scores"] == [r.test_score for r in results]
        assert trial.user_attrs["valid_scores"] == [r.valid_score for r in results]
        assert trial.user_attrs["epochs"] == [r.epoch for r in results]
        assert trial.user_attrs["seeds"] == [0, 1]
        assert trial.user_attrs["test_score"] == pytest.approx(sum(r.test_score for r in results) / 2)
    assert len(found.table) == 10
    best = found.best(by=by)
    assert study.best_value == (best.valid if by is Measure.VALID_SCORE else best.loss).mean


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_seeded_sampler_makes_the_same_study_again(name, data):
    one, two = search(SAMPLERS[name]()), search(SAMPLERS[name]())
    for study in (one, two):
        optimise(study, suggest, data, trials=12, batch=4, device="cpu")
    assert told(one) == told(two)
    assert len({t.params["dropout"] for t in one.trials}) > 6


def test_all_at_once(data):
    """A batch is one call of the engine: all its settings and seeds are trained together."""
    totals = []
    optimise(
        search(), suggest, data, trials=6, batch=4, seeds=range(3), watch=lambda p: totals.append(p.total), device="cpu"
    )
    assert set(totals) == {12, 6}


def test_seeds_of_the_call_replace_those_of_the_space(data):
    study = search()
    optimise(study, suggest, data, trials=2, batch=2, seeds=[7, 3, 9], device="cpu")
    assert study.trials[0].user_attrs["seeds"] == [7, 3, 9]


def test_what_was_queued_comes_first(data):
    study = search()
    study.enqueue_trial({"dropout": 0.25, "lr": 0.05, "depth": 2})
    optimise(study, suggest, data, trials=2, batch=2, device="cpu")
    assert study.trials[0].params == {"dropout": 0.25, "lr": 0.05, "depth": 2}


def test_samplers_that_come_to_an_end(data):
    study = search(optuna.samplers.GridSampler({"kind": ["good", "raises", "diverges"]}, seed=0))
    optimise(study, fragile, data, trials=50, batch=1, device="cpu")
    assert len(study.trials) == 3
    assert {t.params["kind"] for t in study.trials} == {"good", "raises", "diverges"}


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_failed_and_diverged_settings(data):
    study = search()
    optimise(study, fragile, data, trials=12, batch=12, device="cpu")
    states = {t.params["kind"]: t.state for t in study.trials}
    assert states == {"good": TrialState.COMPLETE, "raises": TrialState.FAIL, "diverges": TrialState.PRUNED}
    said = {t.params["kind"]: t.user_attrs.get("failure") for t in study.trials}
    assert said == {"good": None, "raises": "RuntimeError: no such thing", "diverges": "diverged"}


def test_settings_that_do_not_fit_fail_alone(data):
    def some(trial):
        return grid(us.models.GPRGNN, hidden=4, epochs=3, depth=trial.suggest_int("depth", -1, 3), seed=0)

    study = search()
    optimise(study, some, data, trials=12, batch=6, device="cpu")
    failed = [t for t in study.trials if t.state is TrialState.FAIL]
    assert failed
    assert all(t.params["depth"] < 1 and f"depth={t.params['depth']}" in t.user_attrs["failure"] for t in failed)
    done = [t for t in study.trials if t.state is TrialState.COMPLETE]
    assert len(failed) + len(done) == 12
    assert all(t.params["depth"] >= 1 for t in done)
    assert done


def test_settings_that_do_not_fit_together_fail_alone(data):
    def some(trial):
        start = trial.suggest_categorical("start", ["ppr", "warm"])
        return grid(us.models.GPRGNN, hidden=4, epochs=3, start=us.models.HopStart[start.upper()], seed=0)

    study = search()
    optimise(study, some, data, trials=8, batch=4, device="cpu")
    states = {t.params["start"]: t.state for t in study.trials}
    assert states == {"ppr": TrialState.COMPLETE, "warm": TrialState.FAIL}
    assert any("cannot be built" in t.user_attrs.get("failure", "") for t in study.trials)


def test_values_that_never_fit_are_said(data):
    study = search()
    with pytest.raises(us.IncompatibleError, match=r"all 10 trials so far failed, the first with InputError: hidden=0"):
        optimise(study, lambda t: grid(us.models.GCN, hidden=0), data, trials=100, batch=5, device="cpu")
    assert {t.state for t in study.trials} == {TrialState.FAIL}


def test_nothing_but_failures_is_said(data):
    study = search()
    with pytest.raises(
        us.IncompatibleError, match=r"all 12 trials so far failed, the first with RuntimeError: no such thing; see"
    ):
        optimise(study, lambda t: grid(Fragile, kind="raises", seed=0), data, trials=100, batch=6, device="cpu")
    assert len(study.trials) == 12


def test_suggest_may_prune(data):
    def some(trial):
        if trial.suggest_float("dropout", 0, 0.9) > 0.5:
            raise optuna.TrialPruned
        return grid(us.models.MLP, hidden=4, epochs=2, seed=0, dropout=trial.params["dropout"])

    study = search()
    optimise(study, some, data, trials=8, batch=4, device="cpu")
    assert len(study.trials) == 8
    for trial in study.trials:
        assert trial.state is (TrialState.PRUNED if trial.params["dropout"] > 0.5 else TrialState.COMPLETE)


@pytest.mark.parametrize("where", ["suggest", "training"])
def test_an_interrupt_leaves_nothing_open(where, data):
    def stop(*given):
        raise KeyboardInterrupt

    study, given = search(), {"suggest": suggest, "watch": stop} if where == "training" else {"suggest": stop}
    with pytest.raises(KeyboardInterrupt):
        optimise(study, dataset=data, trials=4, batch=4, device="cpu", **given)
    assert {t.state for t in study.trials} == {TrialState.FAIL}
    optimise(study, suggest, data, trials=4, batch=4, device="cpu")  # what was cut off does not count
    assert sum(t.state is TrialState.COMPLETE for t in study.trials) == 4


def test_refusals(data):
    with pytest.raises(
        us.IncompatibleError, match=r"scores are maximised, but the study minimises: make it with direction='maximize'"
    ):
        optimise(search(direction="minimize"), suggest, data)
    with pytest.raises(
        us.IncompatibleError, match=r"losses are minimised, but the study maximises.*or give by=Measure.VALID_SCORE"
    ):
        optimise(search(), suggest, data, by=Measure.VALID_LOSS)
    with pytest.raises(us.IncompatibleError, match=r"2 directions, and one number is reported; use evaluate"):
        optimise(optuna.create_study(directions=["maximize", "minimize"]), suggest, data)
    with pytest.raises(TypeError, match="NoneType is not an Optuna study"):
        optimise(None, suggest, data)
    with pytest.raises(ValueError, match="batch=0"):
        optimise(search(), suggest, data, batch=0)
    with pytest.raises(ValueError, match="trials=0"):
        optimise(search(), suggest, data, trials=0)
    with pytest.raises(TypeError, match=r"seeds=3: expected several, such as range\(3\)"):
        optimise(search(), suggest, data, seeds=3)
    with pytest.raises(ValueError, match="seeds: the list is empty"):
        optimise(search(), suggest, data, seeds=[])
    for wrong, said in [(lambda t: {"dropout": 0.5}, "dict: expected a space"), (lambda t: None, "NoneType: expected")]:
        study = search()
        with pytest.raises(TypeError, match=said):
            optimise(study, wrong, data, batch=2)
        assert {t.state for t in study.trials} == {TrialState.FAIL}
    with pytest.raises(ValueError, match="2 settings where one is wanted"):
        optimise(search(), lambda t: grid(us.models.MLP, dropout=[0.1, 0.2]), data)


def test_without_optuna(monkeypatch, data):
    study = search()
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(us.IncompatibleError, match=r"needs Optuna: pip install 'unspool\[optuna\]'"):
        optimise(study, suggest, data)


def test_optuna_is_loaded_by_those_who_search():
    code = "import sys, unspool.study.optuna_search; sys.exit('optuna' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- where settings say that searches look -------------------------------------------------------------------------------


class Mine(us.models.Model):
    """Declares where to search."""

    pull: float = us.setting(0.4, "strength", above=0, at_most=1, search=uniform(0.2, 0.6))
    size: us.models.Masks = us.setting(us.models.Masks.ONCE, "a choice", search=choice(list(us.models.Masks)))

    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        self.propagation = us.unroll(us.Fidelity(self.pull) + us.Smoothness(0.5), us.GradientDescent(step=0.5), 2)


@pytest.mark.parametrize("model", [*us.models.MODELS, Mine, Fragile], ids=lambda kind: kind.__name__)
def test_a_model_is_asked_for_what_it_declares(model):
    declared = us.study.declared_search(model)
    study = search()
    ask = us.study.suggest(model, seed=range(3), epochs=5)
    for _ in range(5):
        (first, *rest) = ask(trial := study.ask()).trials("cora")
        assert len(rest) == 2
        assert set(trial.params) == set(declared)
        assert first.config.epochs == 5
        assert first.config.lr == trial.params["lr"]
        assert set(first.settings) == set(declared) & set(first.schema)


def test_what_is_said_goes_before_what_is_declared():
    study = search()
    ask = us.study.suggest(us.models.GPRGNN, depth=4, lr=0.05, teleport=uniform(0.3, 0.31), hidden=integers(5, 6))
    for _ in range(5):
        (trial,) = ask(asked := study.ask()).trials("cora")
        assert set(asked.params) == {"weight_decay", "dropout", "teleport", "hidden"}
        assert (trial.settings["depth"], trial.config.lr) == (4, 0.05)
        assert 0.3 <= trial.settings["teleport"] <= 0.31
        assert trial.settings["hidden"] in (5, 6)


def test_choices_are_plain_to_optuna_and_members_to_us():
    study = search()
    kinds = set()
    for _ in range(12):
        (trial,) = us.study.suggest(Mine)(asked := study.ask()).trials("cora")
        assert asked.params["size"] in ("once", "each_hop")
        kinds.add(trial.settings["size"])
    assert kinds == set(us.models.Masks)


def test_a_declared_search_on_a_preset():
    class Printed(us.train.Preset):
        name = "printed"

        def trial(self, model, dataset):
            return us.study.Trial(
                model, {"bias": False}, us.train.TrainConfig(epochs=3), normalise_rows=True, preset=self.name
            )

    (trial,) = us.study.suggest(us.models.SGC, preset=Printed())(search().ask()).trials("cora")
    assert (trial.settings["bias"], trial.config.epochs, trial.normalise_rows, trial.preset) == (
        False,
        3,
        True,
        "printed",
    )


def test_a_declared_search_finds_something(data):
    study = search(SAMPLERS["TPE"]())
    found = optimise(
        study, us.study.suggest(us.models.SGC, epochs=8), data, trials=6, batch=3, seeds=range(2), device="cpu"
    )
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 6
    assert len(found.table) == 12
    assert {"lr", "weight_decay", "depth"} <= set(found.table.varied)
    best = found.best()
    assert study.best_params["lr"] == best.settings["lr"]
    assert study.best_params["depth"] == best.settings["depth"]


def test_the_best_network_of_a_search_can_be_had(data):
    study = search()
    found = optimise(study, suggest, data, trials=3, batch=2, device="cpu")
    row = max(found.rows, key=lambda one: one.result.valid_score)
    task = TrialLoader(data).task(row.trial["seed"])
    output = found.model(row)(task.x, task.graph)
    assert float(task.loss.score(output[task.test], task.target[task.test])) == pytest.approx(row.result.test_score)


def test_links_are_searched_through_a_loader(data):
    study = search()
    found = optimise(study, suggest, TrialLoader(data, kind=TaskKind.LINKS), trials=2, batch=2)
    assert {row.data.score for row in found.rows} == {"AUC"}
    assert all(0 <= t.value <= 1 for t in study.trials)


# -- going on ----------------------------------------------------------------------------------------------------------


def test_the_same_script_again_trains_only_what_is_missing(tmp_path, data):
    trained = []

    class Counting(Store):
        def finish(self, pairs):
            trained.extend(key for key, _ in pairs)
            super().finish(pairs)

    class Cut(Exception):
        pass

    def cut(progress):
        if len(trained) >= 11:
            raise Cut

    def go(study, path, **options):
        with Counting(path) as store:
            optimise(study, suggest, data, trials=12, batch=4, store=store, device="cpu", most=3, **options)
        return told(study)

    whole = go(search(SAMPLERS["TPE"]()), tmp_path / "whole.db")
    assert len(trained) == 24
    trained.clear()
    with pytest.raises(Cut):
        go(search(SAMPLERS["TPE"]()), tmp_path / "cut.db", watch=cut)
    assert 11 <= len(trained) < 24
    again = go(search(SAMPLERS["TPE"]()), tmp_path / "cut.db")
    assert len(trained) == len(set(trained)) == 24
    assert [row[:3] for row in again] == [row[:3] for row in whole]
    assert [row[3] for row in again] == pytest.approx([row[3] for row in whole])


def test_a_study_on_disk_goes_on(tmp_path, data):
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(tmp_path / "optuna.log")))
    study = search(storage=storage, study_name="mine")
    optimise(study, suggest, data, trials=3, batch=2, device="cpu")
    again = optuna.load_study(study_name="mine", storage=storage)
    optimise(again, suggest, data, trials=5, batch=4, device="cpu")
    optimise(again, suggest, data, trials=5, batch=4, device="cpu")  # it has them
    assert [t.state for t in again.trials] == [TrialState.COMPLETE] * 5


def test_the_same_setting_twice_is_trained_once(data):
    study = search()
    found = optimise(
        study,
        lambda t: grid(us.models.MLP, hidden=t.suggest_int("hidden", 3, 4), epochs=2, seed=0),
        data,
        trials=8,
        device="cpu",
    )
    assert len(found.table) == 2
    assert len({(t.params["hidden"], t.value) for t in study.trials}) == 2


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_ask_and_tell_by_hand(data):
    study, other = search(), search()
    asked = [study.ask() for _ in range(4)]
    for trial, outcome in zip(asked, evaluate(map(suggest, asked), data, device="cpu"), strict=True):
        study.tell(trial, outcome.value())
    optimise(other, suggest, data, trials=4, batch=4, device="cpu")
    assert [t.value for t in study.trials] == [t.value for t in other.trials]
