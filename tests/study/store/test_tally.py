"""Counting a study without reading it says what reading it says."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import unspool as us
from unspool.study.search.space import grid
from unspool.study.store import Status, Store, StoreProblem
from unspool.study.store.tally import tallied
from unspool.train import DataRecord, Ending, Result

RESULT = Result(12, 50, 0.1, 0.9, 0.7, 0.71, Ending.ALL_EPOCHS, 0.4)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path):
    """Five trials on one set and two on another, in all states."""
    with Store(tmp_path / "study.db") as made:
        trials = grid(us.models.GCN, seed=range(5)).trials("cora")
        keys = made.add(trials, DataRecord("cora", "5e1f"))
        others = made.add(trials[:2], DataRecord("texas", "77aa"))
        made.finish([(keys[0], RESULT), (others[0], replace(RESULT, valid_score=float("nan")))])
        made.fail(keys[1], "it broke")
        made.claim(keys, 2)
        yield made


def test_a_tally_counts_what_rows_tell(store):
    tally, rows = store.tally(), store.rows()
    assert list(tally.counts) == ["cora", "texas"]
    for name in (None, "cora", "texas"):
        counted = Counter(row.status for row in rows if name in (None, row.data.name))
        assert {status: tally.of(status, name) for status in Status} == {s: counted[s] for s in Status}
    assert (tally.total, tally.left) == (7, 4)
    assert tally.speed > 0


def test_glances_are_rows_seen_from_afar(store):
    for glance, row in zip(store.glances(), store.rows(), strict=True):
        assert (glance.key, glance.status) == (row.key, row.status)
        assert glance.epochs == (None if row.result is None else row.result.epochs)
    assert [glance.valid_score for glance in store.glances()] == [0.7, None, None, None, None, None, None]


def test_only_the_failed_are_read_where_they_are_asked_for(store):
    assert [(row.number, row.message) for row in store.rows(failed=True)] == [(2, "it broke")]


def test_trials_of_who_is_gone_wait(store):
    gone = [("cora", "running", "nobody", 3, None, None)]
    assert tallied(gone, {"somebody"}, NOON).counts == {"cora": {Status.WAITING: 3}}
    assert tallied(gone, {"nobody"}, NOON).counts == {"cora": {Status.RUNNING: 3}}


@pytest.mark.parametrize(("ago", "speed"), [(5, 0.8), (1200, 4 / 60)])
def test_the_speed_is_that_of_the_last_minute(ago, speed):
    first = (NOON - timedelta(seconds=ago)).isoformat(timespec="seconds")
    assert tallied([("cora", "done", None, 900, first, 4)], set(), NOON).speed == pytest.approx(speed)
    assert tallied([("cora", "done", None, 900, first, 0)], set(), NOON).speed is None


@pytest.mark.parametrize("change", ["status = 'dome'", "status = 7", "finished_at = 'long ago'"])
def test_damage_is_a_sentence(store, change):
    with store._connection.changing() as sql:
        sql.execute(f"UPDATE trial SET {change} WHERE number IN (1, 2, 6)")
    with pytest.raises(StoreProblem, match="is damaged; restore a copy"):
        store.tally()


def test_a_broken_seal_is_found_without_reading(store):
    store.check()
    with store._connection.changing() as sql:
        sql.execute("UPDATE trial SET test_score = 0.99 WHERE number = 1")
    with pytest.raises(StoreProblem, match=r"trial 1 in .* is damaged"):
        store.check()


def test_who_claims_elsewhere_is_seen_and_gives_back(tmp_path):
    with Store(tmp_path / "study.db") as store:
        keys = store.add(grid(us.models.GCN, seed=range(6)).trials("cora"), DataRecord("cora", "5e1f"))
        far, farther = store.for_worker("far", 7), store.for_worker("farther", 7)
        assert far.claim(keys, 2) + farther.claim(keys, 2) + store.claim(keys, 1) == keys[:5]
        assert {("far", 7, 2), ("farther", 7, 2)} < set(store.workers())
        farther.release(keys)  # its own alone
        assert store.tally().of(Status.WAITING) == 3
        far.finish([(keys[0], RESULT)], durable=False)
        far.leave()
        store.sync()
        assert [row.status.name for row in store.rows()] == [
            "DONE",
            "WAITING",
            "WAITING",
            "WAITING",
            "RUNNING",
            "WAITING",
        ]
        assert not farther._connection.closed
