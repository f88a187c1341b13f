"""Laws of whole studies: killed, shared, reordered, out of room, with broken trials among good ones; the table is the same."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from torch import nn

import unspool as us
from unspool import datasets
from unspool.study import Provider, Status, Store, StoreProblem, Study, train_trials
from unspool.study.run import StoreLedger

#: Float32, and packs of other widths: BLAS rounds differently, which moves losses by a few units in the seventh digit.
ROUNDING = 1e-5


class Fragile(nn.Module):
    """Raises when it is built, when it is called, or never."""

    def __init__(self, in_features, out_features, *, breaks="never"):
        super().__init__()
        if breaks == "built":
            raise RuntimeError("cannot be built")
        self.breaks, self.only = breaks, us.nn.Linear(in_features, out_features)

    def forward(self, x, graph):
        if self.breaks == "called":
            raise RuntimeError("cannot be called")
        return graph @ self.only(x)


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=60, classes=2, seed=0)


@pytest.fixture(scope="module")
def trials(data):
    """Two kinds, two lengths: slots are refilled while others are at work."""
    space = us.study.grid(
        us.models.GCN, us.models.UGDGNN, seed=range(3), hidden=8, depth=2, dropout=[0.2, 0.5], epochs=[4, 9]
    )
    return space.trials(data.name)


def table(study):
    return {row.key: row.result for row in study.rows if row.status is Status.DONE}


def exact(result):
    return result.epoch, result.epochs, result.valid_score, result.test_score, result.reason


def check_same(found, wanted):
    assert found.keys() == wanted.keys()
    for key, result in found.items():
        assert exact(result) == exact(wanted[key])
        assert result.valid_loss == pytest.approx(wanted[key].valid_loss, rel=ROUNDING)
        assert result.train_loss == pytest.approx(wanted[key].train_loss, rel=ROUNDING)


@pytest.fixture(scope="module")
def wanted(trials, data):
    return table(us.study.run(trials, data, device="cpu"))


# -- killed ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def killing(tmp_path_factory):
    """What happened to the processes of killing.py."""
    script = [sys.executable, str(Path(__file__).with_name("killing.py")), str(tmp_path_factory.mktemp("killing"))]
    done = subprocess.run(script, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_same_told(found, wanted):
    """Tables as killing.py writes them."""
    assert found.keys() == wanted.keys()
    for key, (discrete, losses) in found.items():
        assert discrete == wanted[key][0]
        assert losses == pytest.approx(wanted[key][1], rel=ROUNDING)


@pytest.mark.parametrize("kind", ["alone", "packed"])
def test_killed_again_and_again_ends_as_if_never_killed(killing, kind):
    whole, killed = killing[kind], killing[f"killed {kind}"]
    assert whole["well"]
    assert len(whole["table"]) == 24
    assert killed["kills"] == 15
    assert killed["amid"] >= 3  # some were done, some not
    for study in killed["studies"]:
        assert study["well"]
        assert len(study["told"]) == len(set(study["told"]))  # nothing that is done is done again
        check_same_told(study["table"], whole["table"])
        if kind == "alone":
            assert study["table"] == whole["table"]  # the same packs of one: the same bits


def test_two_processes_train_every_trial_once(killing):
    found = killing["together"]
    assert found["well"]
    assert sorted(found["told"][0] + found["told"][1]) == sorted(killing["packed"]["table"])
    check_same_told(found["table"], killing["packed"]["table"])


def test_jobs_that_are_killed_with_their_parent_go_on(killing):
    assert killing["crew"]["amid"]
    assert killing["crew"]["well"]
    check_same_told(killing["crew"]["table"], killing["packed"]["table"])


# -- in any order, in any packs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 3, 7, 1024])
def test_the_table_does_not_depend_on_packs_and_order(most, trials, data, wanted):
    mixed = random.Random(most).sample(trials, len(trials))
    check_same(table(us.study.run(mixed, data, device="cpu", most=most)), wanted)


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_the_table_does_not_depend_on_when_one_looks(chunk, trials, data, wanted):
    provide = Provider(data)
    ledger = StoreLedger(Store(None), trials, provide.name, provide.mark)
    train_trials(trials, provide, ledger, most=5, chunk=chunk)
    check_same(table(Study(ledger.store)), wanted)


def test_pieces_of_a_study_are_the_study(trials, data, wanted):
    store = Store(None)
    for some in (trials[5:9], trials[::2], trials):
        us.study.run(some, data, store=store, device="cpu", most=4)
    check_same(table(Study(store)), wanted)


# -- two datasets ------------------------------------------------------------------------------------------------------


def test_one_store_keeps_two_datasets(tmp_path, trials, data, wanted):
    other = datasets.contextual_sbm(nodes=50, classes=2, seed=1)
    some = trials[:6]
    us.study.run(some, data, store=tmp_path / "study.db", device="cpu")
    before = table(Study.open(tmp_path / "study.db"))
    us.study.run(some, other, store=tmp_path / "study.db", device="cpu")
    after = table(Study.open(tmp_path / "study.db"))
    assert len(after) == 12
    assert {key: after[key] for key in before} == before
    check_same(before, {key: wanted[key] for key in before})
    alone = table(us.study.run(some, other, device="cpu"))
    check_same({key: result for key, result in after.items() if key not in before}, alone)


# -- broken trials -----------------------------------------------------------------------------------------------------


def test_a_trial_that_raises_fails_alone(trials, data, wanted):
    fragile = us.study.grid(Fragile, seed=range(2), breaks=["never", "built", "called"], epochs=3)
    study = us.study.run([*fragile.trials(data.name), *trials], data, device="cpu")
    failed = {row.key: row for row in study.rows if row.status is Status.FAILED}
    assert sorted(row.message for row in failed.values()) == (
        ["RuntimeError: cannot be built"] * 2 + ["RuntimeError: cannot be called"] * 2
    )
    done = table(study)
    assert len(done) == len(trials) + 2
    check_same({key: done[key] for key in wanted}, wanted)
    us.study.run(fragile, data, store=study.store, device="cpu")  # what failed stays so until somebody asks
    assert len(table(study)) == len(done)


# -- a full disk -------------------------------------------------------------------------------------------------------


class Filling(Store):
    """Its disk is full after so many trials."""

    left = 10

    def finish(self, pairs):
        self.left -= len(pairs)
        if self.left < 0:
            self._link._sql.execute("PRAGMA max_page_count = 1")  # as many as there are
        super().finish(pairs)


def test_a_disk_that_fills_up_in_the_middle(tmp_path, trials, data, wanted):
    path = tmp_path / "study.db"
    many = us.study.grid(us.models.GCN, seed=range(60), hidden=4, epochs=2).trials(data.name)
    with Filling(path) as store, pytest.raises(StoreProblem, match=r"disk is full.*everything finished before is kept"):
        us.study.run([*trials, *many], data, store=store, device="cpu")
    kept = table(Study.open(path))
    assert 10 <= len(kept) < len(trials) + len(many)
    study = us.study.run([*trials, *many], data, store=path, device="cpu")
    done = table(study)
    assert len(done) == len(trials) + len(many)
    assert {key: done[key] for key in kept} == kept
    check_same({key: done[key] for key in wanted}, wanted)


def test_a_store_that_found_room_again_goes_on(tmp_path, trials, data, wanted):
    many = us.study.grid(us.models.GCN, seed=range(60), hidden=4, epochs=2).trials(data.name)
    with Filling(tmp_path / "study.db") as store:
        with pytest.raises(StoreProblem, match="disk is full"):
            us.study.run([*trials, *many], data, store=store, device="cpu")
        store.left = 10**9
        store._link._sql.execute("PRAGMA max_page_count = 1000000")
        done = table(us.study.run([*trials, *many], data, store=store, device="cpu"))
    assert len(done) == len(trials) + len(many)
    check_same({key: done[key] for key in wanted}, wanted)
