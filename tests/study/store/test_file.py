"""The file of a study: damaged, foreign, full, locked, removed; every trouble is one sentence."""

import os
import pickle
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import unspool as us
from unspool.study.search.space import grid
from unspool.study.store import Access, Status, Store, StoreProblem
from unspool.study.store import file as store_file
from unspool.train import DataRecord, Ending, Result

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


def test_a_file_is_made_whole_or_refused_in_one_sentence(path, tmp_path):
    text, empty, foreign = tmp_path / "text", tmp_path / "empty", tmp_path / "foreign"
    text.write_text("no database at all, but long enough to be one" * 30)
    empty.touch()
    link = sqlite3.connect(foreign)
    link.execute("CREATE TABLE mine (a)")
    link.close()
    with pytest.raises(StoreProblem, match=r"text is not a study.*; choose another file"):
        Store(text)
    with pytest.raises(StoreProblem, match="empty is empty; run the study first"):
        Store.open(empty, Access.READ)
    for access in Access:
        with pytest.raises(StoreProblem, match="foreign belongs to another program"):
            Store.open(foreign, access)
    assert sqlite3.connect(foreign).execute("PRAGMA journal_mode").fetchone() == ("delete",)  # and is left as it was
    with pytest.raises(StoreProblem, match="there is no study at"):
        Store.open(path, Access.READ)
    with pytest.raises(StoreProblem, match="is a folder"):
        Store(tmp_path)
    with pytest.raises(StoreProblem, match="does not exist; make it first"):
        Store(tmp_path / "no" / "study.db")
    with Store(empty) as made:
        assert made.rows() == []


@pytest.mark.parametrize("cut", [50, 3000, 4096, 20_000, 100_000])
def test_a_file_that_was_cut_off_is_refused(path, cut):
    with Store(path) as store:
        store.add(trials(300), CORA)
    os.truncate(path, cut)
    for access in Access:
        with pytest.raises(StoreProblem, match=r"damaged.*; (restore|choose)"):
            Store.open(path, access)


def test_a_file_that_is_overwritten_is_refused_now_or_later(path):
    with Store(path) as store:
        store.add(trials(300), CORA)
    noise = np.random.default_rng(0).bytes(4096 * 12)
    with path.open("r+b") as file:
        file.seek(4096 * 4)
        file.write(noise)
    with pytest.raises(StoreProblem, match="damaged"):
        Store(path)


def test_other_formats_are_named(path):
    for other in ("1", "2", "99"):
        with Store(path) as store, store._connection.changing() as sql:
            sql.execute("UPDATE meta SET value = ? WHERE name = 'format'", [other])
        for access in Access:
            with pytest.raises(StoreProblem, match=rf"has format {other} and .* reads format 3.*; run the study again"):
                Store.open(path, access)
        path.unlink()


def test_a_full_disk_loses_nothing(path):
    with Store(path) as store:
        keys = store.add(trials(), CORA)
        store.finish([(keys[0], RESULT)])
        store._connection._sql.execute("PRAGMA max_page_count = 1")  # as many as there are
        with pytest.raises(StoreProblem, match=r"disk is full.*everything finished before is kept"):
            store.add(trials(400), CORA)
        assert len(store.rows()) == 6
        store._connection._sql.execute("PRAGMA max_page_count = 1000000")
        assert len(store.add(trials(400), CORA)) == len(store.rows()) == 400
        assert store.rows()[0].result == RESULT


def test_room_is_looked_for_before_the_work(store, monkeypatch):
    store.check_disk_space(3_000_000)
    assert store.rows() == []
    if store.path is None:
        return
    assert {f.name for f in store.path.parent.iterdir()} <= {"study.db", "study.db-wal", "study.db-shm"}

    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store_file.os, "fsync", full)
    with pytest.raises(StoreProblem, match="has no room for 10 bytes more; make room"):
        store.check_disk_space(10)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that not even root can write")
def test_a_folder_that_cannot_be_written_is_named():
    with pytest.raises(StoreProblem, match=r"/proc/study\.db cannot be opened; change the permissions"):
        Store("/proc/study.db")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_study_in_a_folder_of_someone_else_can_be_read(path):
    with Store(path) as store:
        store.add(trials(), CORA)
    path.parent.chmod(0o555)
    try:
        with Store.open(path, Access.READ) as store:
            assert len(store.rows()) == 6
        with pytest.raises(StoreProblem, match="cannot be written"):
            Store(path)
    finally:
        path.parent.chmod(0o755)


def test_waiting_for_a_lock_ends(path, monkeypatch):
    monkeypatch.setattr(store_file, "PATIENCE", 0.1)
    with Store(path) as one, Store(path) as other:
        keys = one.add(trials(), CORA)
        with one._connection.changing(), pytest.raises(StoreProblem, match="locked by another program for too long"):
            other.claim(keys, 1)
        assert other.claim(keys, 1) == keys[:1]


def test_a_file_that_disappears_is_missed(path):
    with Store(path) as store:
        keys = store.add(trials(), CORA)
        path.rename(path.with_name("moved.db"))
        with pytest.raises(StoreProblem, match="removed or replaced while in use"):
            store.finish([(keys[0], RESULT)])
        path.with_name("moved.db").rename(path)
        store.finish([(keys[0], RESULT)])
        assert store.counts()[Status.DONE] == 1


def test_closed_stores_say_so(path):
    store = Store(path)
    store.close()
    store.close()
    with pytest.raises(StoreProblem, match="is closed; open it again"):
        store.rows()
    with pytest.raises(StoreProblem, match="stays in its process"), Store(None) as memory:
        pickle.dumps(memory)
