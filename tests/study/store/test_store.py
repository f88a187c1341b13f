"""The store: nothing is lost, nothing is done twice, and every trouble with the file is one sentence."""

import dataclasses
import json
import math
import os
import pickle
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import unspool as us
from unspool.study.search.space import grid
from unspool.study.store import Access, Status, Store, StoreProblem
from unspool.study.store.worker_lock import WorkerLock, is_alive
from unspool.train import DataRecord, Ending, LowerLevel, Monitor, Precision, Result, Stop, TrainConfig, Trial

RESULT = Result(12, 50, 0.1, 0.9, 0.7, 0.71, Ending.ALL_EPOCHS, 0.4)
CORA = DataRecord("cora", "5e1f")


def trials(count=6):
    return grid(us.models.GCN, seed=range(count)).trials("cora")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture(params=["file", "memory"])
def store(request, path):
    with Store(path if request.param == "file" else None) as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """What happened among the processes of sharing.py."""
    folder = tmp_path_factory.mktemp("shared")
    script = [sys.executable, str(Path(__file__).with_name("sharing.py")), str(folder)]
    done = subprocess.run(script, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not [
        f for f in folder.glob("*.lock") if not f.name.startswith("often")
    ]  # whose killed nobody has claimed after
    return json.loads(done.stdout)


def test_adding_twice_is_adding_once(store):
    keys = store.add(trials(), CORA)
    store.finish([(keys[0], RESULT)])
    assert store.add(trials(8), CORA)[:6] == keys
    assert [row.number for row in store.rows()] == list(range(1, 9))
    assert [row.key for row in store.rows()][:6] == keys
    assert store.rows()[0].result == RESULT


def test_rows_tell_all(store):
    source = {"dataset": "texas", "edges": ["a.csv", "b.csv"], "seed": 3, "deep": {"α": None}}
    texas = DataRecord("texas", "77aa", "R²", "numbers", source)
    store.add(trials(2), CORA)
    store.add(trials(2), texas)
    assert len(store.rows()) == 4
    assert {row.data for row in store.rows("cora")} == {CORA}
    (first, _) = store.rows("texas")
    assert (first.number, first.status, first.result, first.message, first.finished_at) == (
        3,
        Status.WAITING,
        None,
        None,
        None,
    )
    about = first.data
    assert (about.name, about.fingerprint, about.score, about.kind, about.source) == (
        "texas",
        "77aa",
        "R²",
        "numbers",
        source,
    )
    assert first.data == texas
    assert first.trial == trials(1)[0].to_plain()
    assert first.key == trials(1)[0].key("77aa")
    assert store.counts("texas")[Status.WAITING] == 2
    assert store.rows("nowhere") == []


def test_a_trial_comes_back_from_its_row(store):
    made = [
        Trial(us.models.GCN, {"hidden": 8, "dropout": 0.25}, TrainConfig(lr=0.02, weight_decay={"first": 0.1, "hops": 0.0}), 3),
        Trial(us.models.GPRGNN, {"masks": us.models.Masks.EACH_HOP, "warm": [0.5, 0.5], "depth": 1}, TrainConfig(
            monitor=Monitor.VALID_SCORE, stop=Stop.ABOVE_MEAN, min_epochs=4, optimiser=torch.optim.AdamW, precision=Precision.BFLOAT16,
        ), 4, normalise_rows=True, preset="mine"),
        Trial(us.models.AirGNN, {"adjoint": us.Checkpointed(every=2)}, TrainConfig(lower_level=LowerLevel.EXACT)),
    ]  # fmt: skip
    keys = store.add(made, CORA)
    for trial, key, row in zip(made, keys, store.rows(), strict=True):
        back = Trial.from_plain(row.trial)
        assert back.key(row.data.fingerprint) == trial.key("5e1f") == key == row.key
        assert (back.model, back.config, back.seed, back.normalise_rows, back.preset) == (
            trial.model, trial.config, trial.seed, trial.normalise_rows, trial.preset,
        )  # fmt: skip
        assert trial.schema.complete(back.settings) == trial.schema.complete(trial.settings)


def test_the_same_trial_on_other_data_is_another_one(store):
    one, other = store.add(trials(1), CORA) + store.add(trials(1), DataRecord("cora", "77aa"))
    assert one != other
    # What data are called, how they are scored and where they came from are for people: the first to say so is kept.
    assert store.add(trials(1), DataRecord("Cora", "5e1f", "F1", "binary", {"dataset": "cora"})) == [one]
    assert store.rows()[0].data == CORA


@pytest.mark.parametrize(
    "result",
    [
        dataclasses.replace(RESULT, test_score=math.nan, train_loss=1 / 3, valid_loss=math.inf, seconds=5e-324),
        Result(
            np.int64(1), np.int64(2), np.float32(0.1), np.float64(0.1), 0.5, math.nan, Ending.DIVERGED, np.float64(2)
        ),
    ],
)
def test_results_come_back_exactly(store, result):
    (key,) = store.add(trials(1), CORA)
    store.finish([(key, result)])
    (row,) = store.rows()
    for field in dataclasses.fields(Result):
        given, back = getattr(result, field.name), getattr(row.result, field.name)
        assert back == given or (math.isnan(back) and math.isnan(given))
        assert type(back) in (int, float, Ending)
    assert row.finished_at.endswith("+00:00")


@pytest.mark.parametrize("ending", Ending)
def test_every_ending_comes_back(store, ending):
    (key,) = store.add(trials(1), CORA)
    store.finish([(key, dataclasses.replace(RESULT, ending=ending))])
    assert store.rows()[0].result.ending is ending


def test_results_have_a_column_for_each_field(path):
    with Store(path):
        columns = [name for (_, name, *_) in sqlite3.connect(path).execute("PRAGMA table_info(trial)")]
    assert columns[-len(dataclasses.fields(Result)) :] == [f.name for f in dataclasses.fields(Result)]


def test_the_first_result_stays(store):
    (key,) = store.add(trials(1), CORA)
    store.finish([(key, RESULT)])
    store.finish([(key, dataclasses.replace(RESULT, epoch=1))])
    store.fail(key, "too late")
    assert store.rows()[0].result == RESULT
    assert store.rows()[0].message is None


def test_claims_are_in_order_and_given_back(store):
    keys = store.add(trials(), CORA)
    assert store.claim(keys[::-1], 2) == [keys[5], keys[4]]
    assert store.claim([keys[0], keys[0], keys[5]], 5) == [keys[0]]
    assert store.claim(keys, 0) == []
    store.release([keys[5], keys[1]])
    assert store.counts()[Status.RUNNING] == 2
    assert store.claim(keys, 9) == [keys[1], keys[2], keys[3], keys[5]]


def test_failures_end_a_trial_until_they_are_retried(store):
    keys = store.add(trials(2), CORA)
    store.claim(keys, 2)
    store.fail(keys[0], "the loss is no number")
    assert store.rows()[0].status is Status.FAILED
    assert store.rows()[0].message == "the loss is no number"
    assert store.claim(keys, 2) == []
    assert store.retry_failed() == 1
    assert store.claim(keys, 2) == [keys[0]]
    store.finish([(keys[0], RESULT)])
    assert store.rows()[0].status is Status.DONE


def test_unknown_trials_are_named(store):
    (key,) = store.add(trials(1), CORA)
    for wrong in (lambda: store.claim([key, "x"], 1), lambda: store.finish([(key, RESULT), ("x", RESULT)])):
        with pytest.raises(ValueError, match="no trial 'x'; add it"):
            wrong()
    with pytest.raises(ValueError, match="no trial 'y'"):
        store.fail("y", "")
    assert store.rows()[0].status is Status.WAITING


def test_two_stores_share_no_trial(path):
    with Store(path) as one, pickle.loads(pickle.dumps(one)) as other:
        keys = one.add(trials(), CORA)
        assert (one.claim(keys, 2), other.claim(keys, 9)) == (keys[:2], keys[2:])
        other.release(keys)  # only its own
        assert other.counts()[Status.RUNNING] == 2
        one.close()
        assert other.claim(keys, 9) == keys
    assert [f.name for f in path.parent.iterdir()] == ["study.db"]


def test_a_store_that_was_dropped_holds_nothing(path):
    first = Store(path)
    keys = first.add(trials(), CORA)
    assert first.claim(keys, 9) == keys
    first._connection._sql.close()
    del first
    with Store(path) as other:
        assert other.counts()[Status.WAITING] == 6
        assert other.claim(keys, 9) == keys


def test_threads_take_turns(path):
    with Store(path) as store:
        keys, got = store.add(trials(60), CORA), []
        crew = [
            threading.Thread(target=lambda: [got.extend(store.claim(keys, 2)) for _ in range(10)]) for _ in range(4)
        ]
        for member in crew:
            member.start()
        for member in crew:
            member.join()
        assert sorted(got) == sorted(keys)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "count"), [("together", 200), ("forked", 195)])
def test_processes_share_no_trial(shared, kind, count):
    well, shares = shared[kind]
    assert well
    taken = [key for share in shares for key in share]
    assert len(taken) == len(set(taken)) == count


def test_forked_children_leave_their_parent_its_claims(shared):
    assert shared["kept"] == 5


def test_the_killed_hold_nothing_and_lose_nothing(shared):
    told = shared["killed"]
    assert told["before"] == [[], 8]
    assert told["asleep"] == []
    assert told["seen"] == 8
    assert told["after"] == [told["keys"][2:], 2]
    assert told["locks"] == 1  # ours


def test_what_was_reported_done_outlives_every_kill(shared):
    told = shared["often"]
    assert all(told["kept"])
    assert told["done"] > 0
    assert told["held"] == 0


def test_keys_are_the_same_in_another_process(shared):
    here = [t.key("5e1f") for t in grid(us.models.GCN, seed=range(100), lr=[0.01, 0.05]).trials("cora")]
    assert shared["killed"]["keys"] == here[:10]


def test_another_machine_is_refused_while_one_is_at_work(path, monkeypatch):
    with Store(path) as one, Store(path) as other:
        keys = one.add(trials(), CORA)
        one.claim(keys, 1)
        monkeypatch.setattr("unspool.study.store.store.machine", lambda: "elsewhere")
        with pytest.raises(StoreProblem, match="one file serves one machine; give"):
            other.claim(keys, 1)
        one.close()
        assert other.claim(keys, 1) == keys[:1]


def test_workers_are_those_who_train(store):
    assert store.workers() == []
    keys = store.add(trials(), CORA)
    store.claim(keys, 2)
    ((_, process, many),) = store.workers()
    assert (process, many) == (os.getpid(), 2)
    store.finish([(keys[0], RESULT)])
    assert [many for _, _, many in store.workers()] == [1]
    store.release(keys)
    assert store.workers() == []


def test_worker_locks_are_alive_until_they_let_go(path):
    one, other = WorkerLock(path), WorkerLock(path)
    assert is_alive(path, one.token)
    one.let_go()
    assert not is_alive(path, one.token)
    assert is_alive(path, other.token)
    other.let_go()


def test_readers_see_a_study_that_is_being_written(path):
    with Store(path) as writer, Store.open(path, Access.READ) as reader:
        keys = writer.add(trials(), CORA)
        writer.claim(keys, 2)
        assert reader.counts()[Status.RUNNING] == 2
        with writer._connection.changing() as sql:  # half-way through a change
            sql.execute("UPDATE trial SET status = 'done'")
            assert reader.counts()[Status.DONE] == 0
            assert reader.rows()[0].status is Status.RUNNING
        for wrong in (lambda: reader.add(trials(), CORA), lambda: reader.claim(keys, 1), reader.check_disk_space):
            with pytest.raises(StoreProblem, match="opened for reading"):
                wrong()
