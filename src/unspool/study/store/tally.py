"""How many trials of a study are how far, counted by the database: nothing of what they are is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from unspool.study.store.row import Status, status_of

#: Counts of trials and their ends, by data set and state.
QUESTION = (
    "SELECT data, status, worker, count(*), min(finished_at), sum(finished_at >= ?) FROM trial "
    "GROUP BY data, status, worker ORDER BY min(number)"
)
#: The seconds that a speed is taken from.
RECENT = 60.0


@dataclass(frozen=True)
class Tally:
    """The counts of a study.

    Attributes:
        counts: trials in each state, by data set, in the order of the file.
        speed: trials that ended in the last minute, for each second; None where none did.

    Example:
        >>> tally = Tally({"cora": {Status.DONE: 3, Status.WAITING: 1}, "texas": {Status.DONE: 2}}, None)
        >>> tally.of(Status.DONE), tally.of(Status.DONE, "cora"), tally.total
        (5, 3, 6)
    """

    counts: Mapping[str, Mapping[Status, int]]
    speed: float | None

    def of(self, status: Status, data: str | None = None) -> int:
        """Trials in a state, of one data set or of all."""
        return sum(held.get(status, 0) for name, held in self.counts.items() if data in (None, name))

    @property
    def left(self) -> int:
        """Those that have not ended."""
        return self.of(Status.WAITING) + self.of(Status.RUNNING)

    @property
    def total(self) -> int:
        """All of them."""
        return sum(map(self.of, Status))


@dataclass(frozen=True)
class Glance:
    """A trial, seen from afar.

    Attributes:
        key: its name on its data.
        status: how far it is.
        valid_score, epochs: of its result; None where there is none, or it is not finite.

    Example:
        >>> Glance("5e1f", Status.WAITING).ended
        False
    """

    key: str
    status: Status
    valid_score: float | None = None
    epochs: int | None = None

    @property
    def ended(self) -> bool:
        """Whether it is done or failed."""
        return self.status in (Status.DONE, Status.FAILED)


def tallied(found: Iterable[tuple[Any, ...]], alive: AbstractSet[str], now: datetime) -> Tally:
    """What the database answers to :data:`QUESTION`, given who of those at work is alive.

    Example:
        >>> from datetime import UTC
        >>> now = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
        >>> tallied([("cora", "done", None, 3, "2026-01-01T12:00:00+00:00", 3)], set(), now)
        Tally(counts={'cora': {<Status.DONE: 'done'>: 3}}, speed=0.1)
    """
    counts: dict[str, dict[Status, int]] = {}
    firsts, recent = list[str](), 0
    for data, status, worker, many, first, ends in found:
        state, held = status_of(status, worker, alive), counts.setdefault(data, {})
        held[state] = held.get(state, 0) + many
        firsts += [] if first is None else [first]
        recent += ends if ends is not None else 0
    if not recent:
        return Tally(counts, None)
    # A study that began ten seconds ago has no minute behind it; the clock of the file counts whole seconds.
    age = (now - datetime.fromisoformat(min(firsts))).total_seconds()
    return Tally(counts, recent / min(RECENT, max(age, 1.0)))
