"""The one process that holds the file of a study, for workers on other machines: what a store does, done for each of them by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unspool.study.store import Status, Store
from unspool.train import Result


@dataclass(frozen=True)
class Worker:
    """A process that trains, as the file knows it.

    Attributes:
        number: its own in this run.
        host: its machine, for people.
        pid: its process there.
    """

    number: int
    host: str
    pid: int


@dataclass(frozen=True)
class Counts:
    """What workers have told since the owner began.

    Attributes:
        ended: trials that are done or failed.
        running: trials that workers hold.
        epochs: of the trials that are done.
        best: the highest validation score and its key.
    """

    ended: int
    running: int
    epochs: int
    best: tuple[float, str] | None


class Owner:
    """The file of a study and who works on it; Ray makes an actor of it, next to the file.

    Whoever leaves, or is said to have died, holds nothing any more; a worker that was thought dead and asks again gets nothing. Results are
    written when they come, and on the disk before they are counted: one wait for the disk serves all that came since the last one.

    Args:
        path: the file.
        keys: of the trials that this run is about.

    Example:
        >>> import tempfile, unspool as us
        >>> from unspool.train import DataRecord, Ending, Trial
        >>> path = Path(tempfile.mkdtemp()) / "study.db"
        >>> with Store(path) as store:
        ...     keys = store.add([Trial(us.models.GCN, seed=s) for s in range(3)], DataRecord("cora", "5e1f"))
        >>> owner, one = Owner(path, keys), Worker(1, "far", 7)
        >>> mine = owner.claim(one, keys, 2)
        >>> owner.finish(one, [(mine[0], Result(12, 50, 0.1, 0.9, 0.7, 0.71, Ending.ALL_EPOCHS, 0.4))])
        >>> owner.counts().ended, owner.counts().running, owner.waiting()
        (1, 1, 1)
        >>> owner.leave(1)
        >>> owner.counts().running, owner.waiting(), owner.claim(one, keys, 2)
        (0, 2, [])
    """

    def __init__(self, path: Path, keys: Sequence[str]) -> None:
        self._store, self._keys = Store(path), frozenset(keys)
        self._stores: dict[int, Store] = {}
        self._held: dict[int, set[str]] = {}
        self._gone: set[int] = set()
        self._ended, self._epochs = set[str](), 0
        self._best: tuple[float, str] | None = None
        self._unsynced = False

    def claim(self, worker: Worker, keys: Sequence[str], count: int) -> list[str]:
        """As :meth:`Store.claim`, for a worker."""
        if worker.number in self._gone:
            return []
        got = self._of(worker).claim(keys, count)
        self._held[worker.number].update(got)
        return got

    def release(self, worker: Worker, keys: Sequence[str]) -> None:
        """As :meth:`Store.release`, for a worker."""
        if worker.number not in self._gone:
            self._of(worker).release(keys)
            self._held[worker.number].difference_update(keys)

    def finish(self, worker: Worker, pairs: Sequence[tuple[str, Result]]) -> None:
        """As :meth:`Store.finish`, also for a worker that was thought dead: a result is a result."""
        self._store.finish(pairs, durable=False)
        new = [(key, result) for key, result in pairs if key not in self._ended]
        self._epochs += sum(result.epochs for _, result in new)
        scores = [(result.valid_score, key) for key, result in new if result.valid_score == result.valid_score]
        self._best = max([*scores, *([] if self._best is None else [self._best])], default=None)
        self._unsynced = True
        self._end(worker, [key for key, _ in pairs])

    def fail(self, worker: Worker, key: str, message: str) -> None:
        """As :meth:`Store.fail`."""
        self._store.fail(key, message)
        self._end(worker, [key])

    def leave(self, number: int) -> None:
        """A worker has ended, or died: others may have what it holds."""
        self._gone.add(number)
        self._held.pop(number, None)
        store = self._stores.pop(number, None)
        if store is not None:
            store.leave()

    def counts(self) -> Counts:
        """How far the trials of this run are; what is counted is on the disk. May run beside the other verbs, who need not wait for the disk."""
        unsynced, self._unsynced = self._unsynced, False
        found = Counts(len(self._ended), sum(map(len, list(self._held.values()))), self._epochs, self._best)
        if unsynced:
            self._store.sync()
        return found

    def waiting(self) -> int:
        """Trials of this run that nobody trains, here or elsewhere on this machine."""
        return sum(one.status is Status.WAITING and one.key in self._keys for one in self._store.glances())

    def close(self) -> None:
        """Write everything down, and give back what is held."""
        self.counts()
        for number in list(self._stores):
            self.leave(number)
        self._store.close()

    def _of(self, worker: Worker) -> Store:
        if worker.number not in self._stores:
            self._stores[worker.number] = self._store.for_worker(worker.host, worker.pid)
            self._held[worker.number] = set()
        return self._stores[worker.number]

    def _end(self, worker: Worker, keys: Sequence[str]) -> None:
        self._ended.update(keys)
        self._held.get(worker.number, set[str]()).difference_update(keys)
