"""A damaged study: a flipped bit is an error that names the file, or changes nothing; no row is ever read wrongly."""

import dataclasses
import itertools
import json
import math
import random
import re
import sqlite3

import pytest

import unspool as us
from unspool.study import Study
from unspool.study.search.space import grid
from unspool.study.store import Access, Status, Store, StoreProblem
from unspool.study.store.row import sealed
from unspool.train import DataRecord, Ending, Result, Trial

pytestmark = pytest.mark.long


RESULT = Result(12, 50, 0.1, 0.9, 0.7, 0.71, Ending.ALL_EPOCHS, 0.4)
SOURCE = {"dataset": "cora", "rows": [1, 2]}
CORA = DataRecord("cora", "5e1f-0a2b", "accuracy", "classes", SOURCE)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """A small study with a trial in every state, as bytes, and what it says."""
    path = tmp_path_factory.mktemp("whole") / "study.db"
    with Store(path) as store:
        keys = store.add(grid(us.models.GCN, seed=range(8)).trials("cora"), CORA)
        for k, key in enumerate(keys[:5]):
            store.finish([(key, dataclasses.replace(RESULT, test_score=math.nan if k == 4 else k / 7, epochs=k + 13))])
        store.fail(keys[5], "out of memory")
    assert not path.with_name("study.db-wal").exists()
    return path.read_bytes(), told(path)


def told(path):
    """Everything that a study says."""
    with Store.open(path, Access.READ) as store:
        return repr(store.rows()), repr(store.counts()), repr(store.rows("cora")), repr(store.workers())


def what_is_said(path):
    try:
        return told(path)
    except StoreProblem as problem:
        return str(problem)


def test_a_flipped_bit_is_an_error_that_names_the_file_or_changes_nothing(content, tmp_path):
    whole, expected = content
    path, draw = tmp_path / "study.db", random.Random(0)
    refused = 0
    for _ in range(400):
        place, bit = draw.randrange(len(whole)), draw.randrange(8)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :])
        found = what_is_said(path)
        assert found == expected or str(path) in found, (place, bit)
        refused += found != expected
        for beside in tmp_path.glob("study.db-*"):
            beside.unlink()
    assert refused > 20


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE trial SET test_score = 0.99 WHERE number = 2",
        "UPDATE trial SET test_score = NULL WHERE number = 2",
        "UPDATE trial SET trial = replace(trial, 'GCN', 'SGC') WHERE number = 2",
        "UPDATE trial SET data = 'texas' WHERE number = 2",
        "UPDATE trial SET fingerprint = 'x' WHERE number = 2",
        "UPDATE trial SET score = 'R²' WHERE number = 2",
        "UPDATE trial SET kind = 'links' WHERE number = 2",
        "UPDATE trial SET source = replace(source, 'cora', 'texas') WHERE number = 2",
        "UPDATE trial SET source = NULL WHERE number = 2",
        "UPDATE trial SET ending = 'stopped' WHERE number = 2",
        "UPDATE trial SET ending = NULL WHERE number = 2",
        "UPDATE trial SET key = 'x' WHERE number = 2",
        "UPDATE trial SET number = 99 WHERE number = 2",
        "UPDATE trial SET status = 'waiting' WHERE number = 2",
        "UPDATE trial SET status = 'failed' WHERE number = 2",
        "UPDATE trial SET status = 'dome' WHERE number = 2",
        "UPDATE trial SET status = 'done' WHERE number = 7",
        "UPDATE trial SET status = 'waitinf' WHERE number = 7",
        "UPDATE trial SET status = 7 WHERE number = 7",
        "UPDATE trial SET status = 'failed' WHERE number = 7",
        "UPDATE trial SET message = 'other' WHERE number = 6",
        "UPDATE trial SET finished_at = 'long ago' WHERE number = 2",
        "UPDATE trial SET seconds = 'many' WHERE number = 2",
        "UPDATE trial SET trial = x'00ff' WHERE number = 2",
        "UPDATE trial SET made = 'x' WHERE number = 7",
        "UPDATE trial SET ended = 'x' WHERE number = 2",
        "UPDATE trial SET ended = NULL WHERE number = 2",
    ],
)
def test_a_changed_row_is_named(content, tmp_path, change):
    path = tmp_path / "study.db"
    path.write_bytes(content[0])
    link = sqlite3.connect(path)
    assert link.execute(change).rowcount == 1
    link.commit()
    link.close()
    number = re.search(r"number = (\d+)$", change)[1] if "SET number" not in change else "99"
    for access in Access:
        with pytest.raises(StoreProblem, match=rf"trial {number} in .*study\.db is damaged; restore a copy"):
            Study(Store.open(path, access)).best()
    with pytest.raises(StoreProblem):
        Store(path)  # nothing is trained into it


BOMB = "[" * 100_000 + "]" * 100_000
PLAIN = Trial(us.models.GCN).to_plain()


def changed(**words):
    return json.dumps({**PLAIN, **words})


def configured(**words):
    return changed(config={**PLAIN["config"], **words})


def rewritten(content, path, **columns):
    """A study whose second row somebody has written anew, seal and all."""
    path.write_bytes(content[0])
    link = sqlite3.connect(path)
    names = ("key", "number", "data", "fingerprint", "score", "kind", "source", "trial")
    held = dict(
        zip(names, link.execute(f"SELECT {', '.join(names)} FROM trial WHERE number = 2").fetchone(), strict=True)
    )
    held |= columns
    link.execute(
        "UPDATE trial SET source = ?, trial = ?, made = ? WHERE number = 2",
        [held["source"], held["trial"], sealed(*(held[name] for name in names))],
    )
    link.commit()
    link.close()
    return path


@pytest.mark.parametrize(
    "trial",
    [
        BOMB, '{"a":' * 5000 + "1" + "}" * 5000, "{}", "[]", "7", "null", "", "{", '"words"', "NaN",
        changed(settings=[1]), changed(settings={"a": [[[[[[[[[[1]]]]]]]]]]}), changed(config={}), changed(config=None),
        configured(lr="fast"), configured(lr=-1.0), configured(weight_decay={"first": None}), configured(monitor="luck"), configured(more=1),
        configured(optimiser=["SGD"]), configured(epochs=2.5), changed(seed="zero"), changed(seed=True), changed(model=["GCN"]),
        changed(normalise_rows=1), changed(code=None), json.dumps({k: v for k, v in PLAIN.items() if k != "preset"}),
    ],
    ids=lambda text: text[:40] + text[-40:],
)  # fmt: skip
def test_a_trial_that_was_written_by_another_hand_is_a_sentence(content, tmp_path, trial):
    path = rewritten(content, tmp_path / "study.db", trial=trial)
    with pytest.raises(StoreProblem, match=r"trial 2 in .*study\.db is damaged"):
        Study.open(path).best()


@pytest.mark.parametrize("source", [BOMB, "[]", "7", "", "{", '"words"', "NaN"], ids=lambda text: text[:12])
def test_a_source_that_was_written_by_another_hand_is_a_sentence(content, tmp_path, source):
    path = rewritten(content, tmp_path / "study.db", source=source)
    with pytest.raises(StoreProblem, match=r"trial 2 in .*study\.db is damaged"):
        Study.open(path).best()


def test_what_is_rewritten_and_right_is_read(content, tmp_path):
    path = rewritten(content, tmp_path / "study.db", trial=configured(lr=0.5), source=None)
    row = Study.open(path).rows[1]
    assert (row.trial["config"]["lr"], row.data.source) == (0.5, None)


@pytest.mark.parametrize(
    "part",
    [
        "cora",
        "5e1f-0a2b",
        "accuracy",
        '"rows"',
        '"GCN"',
        '"valid_loss"',
        "all_epochs",
        "out of memory",
        "waiting",
        "failed",
    ],
)
def test_any_bit_of_a_row_that_flips_is_found(content, tmp_path, part):
    """Every bit of some words, wherever they stand in the file: no row says anything else than what was written."""
    whole, expected = content
    path, found = tmp_path / "study.db", 0
    places = [k for k in range(len(whole)) if whole.startswith(part.encode(), k)]
    assert places
    for place, at, bit in itertools.product(
        random.Random(0).sample(places, min(3, len(places))), range(len(part)), range(8)
    ):
        where = place + at
        path.write_bytes(whole[:where] + bytes([whole[where] ^ (1 << bit)]) + whole[where + 1 :])
        said = what_is_said(path)
        assert said == expected or str(path) in said, (where, bit)
        found += said != expected
    assert found


def test_other_tables_are_refused(content, tmp_path):
    path = tmp_path / "study.db"
    for change in (
        "DROP INDEX claimed",
        "CREATE TRIGGER sly AFTER INSERT ON trial BEGIN DELETE FROM trial; END",
        "CREATE VIEW sly AS SELECT * FROM trial",
        "ALTER TABLE trial ADD COLUMN more TEXT",
    ):
        path.write_bytes(content[0])
        link = sqlite3.connect(path)
        link.execute(change)
        link.close()
        for access in Access:
            with pytest.raises(StoreProblem, match=r"study\.db is damaged"):
                Store.open(path, access)


def test_rows_stay_sealed_through_everything_that_happens_to_them(tmp_path):
    with Store(tmp_path / "study.db") as store:
        keys = store.add(grid(us.models.GCN, seed=range(4)).trials("cora"), CORA)
        store.claim(keys, 3)
        store.release(keys[:1])
        store.finish([(keys[1], RESULT)])
        store.fail(keys[2], "out of memory")
        assert [row.status.name for row in store.rows()] == ["WAITING", "DONE", "FAILED", "WAITING"]
        store.retry_failed()
        store.claim(keys, 4)
        store.finish([(key, RESULT) for key in keys])
        assert {row.status for row in store.rows()} == {Status.DONE}
    assert {row.result for row in Study.open(tmp_path / "study.db").rows} == {RESULT}
