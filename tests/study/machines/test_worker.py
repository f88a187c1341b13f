"""A worker at its end of the wire, without Ray: everything that crosses is pickled, and the owner answers at once."""

import pickle
from dataclasses import replace
from types import SimpleNamespace

import pytest

import unspool as us
from unspool import datasets
from unspool.study.engine import train_trials
from unspool.study.machines import worker as worker_module
from unspool.study.machines.owner import Owner, Worker
from unspool.study.machines.worker import RemoteStore, answers, check_code, check_versions, versions
from unspool.study.store import Status, Store, StoreProblem
from unspool.study.study import StoreTracker
from unspool.train import TrialLoader


class TaskError(Exception):
    """What Ray makes of an exception elsewhere."""

    def __init__(self, cause):
        super().__init__("a page of traceback")
        self.cause = cause


def get(questions):
    """Ray's ``get``: a value for a question, or values for several."""
    found = [q() for q in questions] if isinstance(questions, list) else questions()
    return pickle.loads(pickle.dumps(found))


WIRE = SimpleNamespace(get=get, exceptions=SimpleNamespace(RayTaskError=TaskError))


class Handle:
    """A handle of an actor: a verb runs when it is called, and answers when it is asked."""

    def __init__(self, actor):
        self._actor = actor

    def __getattr__(self, verb):
        return SimpleNamespace(remote=lambda *given: self._called(verb, pickle.loads(pickle.dumps(given))))

    def _called(self, verb, given):
        try:
            value = getattr(self._actor, verb)(*given)
        except Exception as problem:
            cause = problem

            def fail():
                raise TaskError(cause)

            return fail
        return lambda: value


@pytest.fixture
def data():
    return datasets.contextual_sbm(nodes=60, classes=2, seed=0)


def space():
    return us.study.grid(us.models.GCN, us.models.MLP, seed=range(3), hidden=4, epochs=5)


@pytest.fixture
def study(tmp_path, data):
    """A tracker on a file, its loader, and the owner of the file."""
    loader = TrialLoader(data)
    with Store(tmp_path / "study.db") as store:
        tracker = StoreTracker(store, space().trials(loader.name), loader.record)
        owner = Owner(store.path, list(tracker.keys.values()))
        yield tracker, loader, owner
        owner.close()


def far(tracker, owner, number=1):
    """The tracker as a worker gets it: its trials are other objects there."""
    store = RemoteStore(WIRE, Handle(owner), Worker(number, "far", number))
    return store, pickle.loads(pickle.dumps(tracker.through(None))).through(store)


def results(rows):
    return {row.key: replace(row.result, seconds=0.0) for row in rows if row.status is Status.DONE}


def test_the_engine_over_the_wire_gives_what_it_gives_here(study, data):
    tracker, loader, owner = study
    store, mine = far(tracker, owner)
    assert not set(mine.trials) & set(tracker.trials)
    train_trials(mine.trials, loader.prepare, mine)
    store.leave()
    counts = owner.counts()
    assert (store.finished, counts.ended, counts.running, counts.epochs) == (6, 6, 0, 30)
    found = results(tracker.store.rows())
    assert found == results(us.study.run(space(), data, device="cpu").rows)
    assert counts.best == max((result.valid_score, key) for key, result in found.items())
    assert store.seconds > 0


def test_two_workers_share_no_trial_and_one_that_died_holds_none(study):
    tracker, loader, owner = study
    (_, one), (other_store, other) = far(tracker, owner, 1), far(tracker, owner, 2)
    held, rest = one.claim(one.trials, 2), other.claim(other.trials, 9)
    assert len(rest) == 4
    assert not {one.keys[t] for t in held} & {other.keys[t] for t in rest}
    assert {(host, pid, many) for host, pid, many in tracker.store.workers()} == {("far", 1, 2), ("far", 2, 4)}
    owner.leave(1)
    assert owner.waiting() == 2
    assert one.claim(one.trials, 9) == []  # nobody listens to the dead
    other.release(rest)
    train_trials(other.trials, loader.prepare, other)
    other_store.leave()
    assert len(results(tracker.store.rows())) == 6


def test_the_result_of_a_worker_that_was_thought_dead_counts(study):
    tracker, loader, owner = study
    store, mine = far(tracker, owner)
    slow = mine.claim(mine.trials, 1)
    owner.leave(1)
    train_trials(
        slow,
        loader.prepare,
        SimpleNamespace(claim=lambda wanted, count: slow, finish=mine.finish, release=mine.release),
    )
    store.leave()
    assert (owner.counts().ended, len(results(tracker.store.rows()))) == (1, 1)


def test_a_trial_that_fails_is_written_down(study):
    tracker, _, owner = study
    store, mine = far(tracker, owner)

    def prepare(trial):
        raise ValueError("no such thing")

    train_trials(mine.trials, prepare, mine)
    store.leave()
    assert {row.message for row in tracker.store.rows()} == {"ValueError: no such thing"}
    assert (owner.counts().ended, owner.waiting()) == (6, 0)


def test_what_is_wrong_with_the_file_reaches_the_worker(study):
    tracker, loader, owner = study
    _, mine = far(tracker, owner)
    owner._store._connection.access = us.study.Access.READ
    with pytest.raises(StoreProblem, match="opened for reading"):
        train_trials(mine.trials, loader.prepare, mine)
    owner._store._connection.access = us.study.Access.WRITE


def test_quick_trials_are_claimed_one_ahead_and_given_back_where_they_are_not_wanted(study):
    tracker, _, owner = study
    store, mine = far(tracker, owner)
    first, second, third, *_ = mine.trials
    assert mine.claim(mine.trials, 1) == [first]
    assert owner.counts().running == 1  # nobody knows yet how long they take
    assert mine.claim(mine.trials, 1) == [second]
    assert owner.counts().running == 3
    assert mine.claim(mine.trials[4:], 1) == [mine.trials[4]]  # and not the third, which is given back
    assert tracker.store.tally().of(Status.RUNNING) == 4  # with one ahead again
    assert mine.claim(mine.trials, 2) == [mine.trials[5], third]
    store.leave()
    assert (owner.counts().running, owner.waiting()) == (0, 6)


def test_results_are_on_the_disk_before_they_are_counted(study, monkeypatch):
    tracker, loader, owner = study
    synced = []
    monkeypatch.setattr(Store, "sync", lambda self: synced.append(len(results(self.rows()))))
    store, mine = far(tracker, owner)
    train_trials(mine.trials, loader.prepare, mine)
    store.leave()
    assert synced == []
    assert (owner.counts().ended, synced) == (6, [6])
    assert (owner.counts().ended, synced) == (6, [6])  # once


def test_answers_raise_what_was_raised():
    def fail():
        raise TaskError(StoreProblem("the disk is full"))

    with pytest.raises(StoreProblem, match=r"^the disk is full$"):
        answers(WIRE, fail)


@pytest.mark.parametrize("name", list(versions()))
def test_versions_that_differ_are_a_sentence(name):
    check_versions(versions(), "far")
    with pytest.raises(
        us.IncompatibleError, match=rf"far has {name} .*, and the machine that began the study has {name} 0; install"
    ):
        check_versions({**versions(), name: "0"}, "far")


class Calm(us.models.GCN):
    """A model of one's own."""

    gain = 1.0


def test_code_that_differs_is_a_sentence(monkeypatch):
    trial = us.study.Trial(Calm)
    assert trial.code != us.study.Trial(us.models.GCN).code
    check_code([trial, us.study.Trial(us.models.GCN)], "far")
    monkeypatch.setattr(Calm, "gain", 2.0)
    with pytest.raises(
        us.IncompatibleError, match="the code of Calm on far is not that of the machine that began the study"
    ):
        check_code([trial], "far")


def test_a_declared_gpu_that_torch_cannot_use_is_a_sentence(monkeypatch):
    monkeypatch.setattr(
        worker_module, "check_device", lambda device: (_ for _ in ()).throw(us.errors.InputError("device", device, "x"))
    )
    with pytest.raises(us.IncompatibleError, match=r"far has declared a GPU to Ray, and torch .* cannot use one there"):
        worker_module._check_gpu("cuda", "far")
