"""Who keeps results while trials train: in memory or in a store, each trial is somebody's once and ends once."""

import pytest

import unspool as us
from unspool.study import Store
from unspool.study.engine.tracker import MemoryTracker
from unspool.study.study import StoreTracker
from unspool.train import DataRecord, Ending, Result, Trial

RESULT = Result(12, 50, 0.1, 0.9, 0.7, 0.71, Ending.ALL_EPOCHS, 0.4)


@pytest.fixture
def trials():
    return [Trial(us.models.GCN, seed=seed) for seed in range(5)]


@pytest.fixture(params=["memory", "store", "file"])
def tracker(request, trials, tmp_path):
    if request.param == "memory":
        yield MemoryTracker()
        return
    with Store(tmp_path / "study.db" if request.param == "file" else None) as store:
        yield StoreTracker(store, trials, DataRecord("cora", "5e1f"))


def test_what_is_claimed_is_claimed_once(tracker, trials):
    assert tracker.claim(trials[::-1], 2) == [trials[4], trials[3]]
    assert tracker.claim(trials, 9) == trials[:3]
    assert tracker.claim(trials, 9) == []


def test_what_is_released_can_be_claimed_again(tracker, trials):
    tracker.claim(trials, 5)
    tracker.release(trials[1:3])
    assert tracker.claim(trials, 9) == trials[1:3]


def test_what_has_ended_is_never_claimed_again(tracker, trials):
    tracker.claim(trials, 2)
    tracker.finish([(trials[0], RESULT)])
    tracker.fail(trials[1], "out of memory")
    tracker.release(trials)
    assert tracker.claim(trials, 9) == trials[2:]


def test_a_store_knows_trials_by_their_keys(trials):
    with Store(None) as store:
        data = DataRecord("cora", "5e1f")
        StoreTracker(store, trials, data).finish([(trials[0], RESULT)])
        again = [Trial(us.models.GCN, seed=seed) for seed in range(6)]  # other objects, the same trials
        tracker = StoreTracker(store, again, data)
        assert tracker.claim(again, 9) == again[1:]
        assert store.rows()[0].result == RESULT
        assert len(StoreTracker(store, again, DataRecord("cora", "77aa")).claim(again, 9)) == 6  # other data
