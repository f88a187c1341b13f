"""Trials of one group that wait for their turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence

from unspool.train import PreparedTrial, Trial

#: Trials that are offered at once, at least: asking for each alone would make the store busy.
OFFER = 64
#: A trial that can begin, and what others must agree in to share its batch.
Ready = tuple[PreparedTrial, Hashable]


class Queue:
    """Claims trials and makes them ready, no earlier than they are wanted.

    Args:
        trials: in their order.
        claim: which of some trials may be trained here, up to a number.
        build: a trial made ready, with its signature; None if that failed.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> from unspool.study.engine.batching import signature
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> task = train.Task.of(data)
        >>> def build(trial):
        ...     member = PreparedTrial(trial, trial.build(data.features.shape[1], 2), task)
        ...     return member, signature(member)
        >>> queue = Queue([Trial(us.models.MLP, seed=s) for s in range(3)], lambda some, n: list(some)[:n], build)
        >>> first, alike = queue.first()
        >>> first.trial.seed, [m.trial.seed for m in queue.some(5, alike)], queue.first()
        (0, [1, 2], None)
    """

    def __init__(
        self,
        trials: Sequence[Trial],
        claim: Callable[[Sequence[Trial], int], list[Trial]],
        build: Callable[[Trial], Ready | None],
    ) -> None:
        self._claim, self._build = claim, build
        self._waiting = deque(trials)
        self._claimed: deque[Trial] = deque()
        self._passed_over: list[Trial] = []

    @property
    def length(self) -> int:
        """The most that may still come."""
        return len(self._waiting) + len(self._claimed) + len(self._passed_over)

    def first(self) -> Ready | None:
        """The next trial of whatever kind, and its signature."""
        self._claimed.extendleft(reversed(self._passed_over))
        self._passed_over = []
        while (trial := self._next(1)) is not None:
            if (ready := self._build(trial)) is not None:
                return ready
        return None

    def some(self, count: int, alike: Hashable) -> list[PreparedTrial]:
        """Up to ``count`` trials of this signature; others are kept for later."""
        found: list[PreparedTrial] = []
        missed = 0  # in a row: where no two trials are alike, all would be built again for each of them
        while len(found) < count and missed < OFFER and (trial := self._next(count - len(found))) is not None:
            if (ready := self._build(trial)) is None:
                continue
            if ready[1] == alike:
                found.append(ready[0])
                missed = 0
            else:
                self._passed_over.append(trial)
                missed += 1
        return found

    def again(self, trials: Sequence[Trial]) -> None:
        """These were claimed and have to begin anew."""
        self._claimed.extendleft(reversed(trials))

    def _next(self, wanted: int) -> Trial | None:
        while not self._claimed and self._waiting:
            offer = [self._waiting.popleft() for _ in range(min(max(OFFER, 4 * wanted), len(self._waiting)))]
            got = self._claim(offer, wanted)
            self._claimed.extend(got)
            if len(got) >= wanted:  # otherwise the rest is done, or other processes have it
                taken = set(got)
                self._waiting.extendleft(t for t in reversed(offer) if t not in taken)
        return self._claimed.popleft() if self._claimed else None
