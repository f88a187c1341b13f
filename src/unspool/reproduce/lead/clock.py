"""The time of a search: how many rounds it has, and how many settings can go on to more seeds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

#: The part of the time by whose end the rounds are over, and of what is then left that each later stage may take but for the last.
ROUNDS, LATER = 0.55, 0.6
#: A call trains for at least this part of the time of its round, however few its trials: small stacks are hardly faster.
LEAST = 0.4


class Clock:
    """Decides by time alone, so that entries that are searched in turns stop together.

    Args:
        seconds: for everything; None: there is no end.
        stages: how many follow the rounds.
        now: the time, in seconds.

    Example:
        >>> times = iter([0.0, 20.0, 40.0, 50.0])
        >>> clock = Clock(100.0, stages=2, now=lambda: next(times))
        >>> clock.another(), clock.another(), clock.another()  # after 20, 40 and 50 seconds
        (True, True, False)
    """

    def __init__(self, seconds: float | None, stages: int, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.stages, self.now = seconds, stages, now
        self.began, self.rounds = now(), 0
        self.cost: dict[Hashable, tuple[float, int]] = {}

    def another(self) -> bool:
        """Whether there is time for one more round, half of which may be beyond the end."""
        if self.seconds is None:
            return True
        gone, self.rounds = self.now() - self.began, self.rounds + 1
        return gone + gone / self.rounds / 2 <= ROUNDS * self.seconds

    def took(self, shape: Hashable, seconds: float, trials: int) -> None:
        """What the trials of a structure took in their round."""
        self.cost.setdefault(shape, (seconds, trials))

    def fitting(self, stage: int, shapes: Sequence[Sequence[Hashable]], seeds: int) -> int:
        """How many settings of each entry can train under so many more seeds; one at least.

        Args:
            stage: from 1 on.
            shapes: of the settings of each entry, the best first.
            seeds: that they have not had.
        """
        most = min(map(len, shapes))
        if self.seconds is None:
            return most
        left = self.seconds - (self.now() - self.began)
        room = left if stage == self.stages else LATER * left
        fits = [m for m in range(1, most + 1) if self._guess([one[:m] for one in shapes], seeds) <= room]
        return max(fits, default=1)

    def _guess(self, shapes: Sequence[Sequence[Hashable]], seeds: int) -> float:
        """The time that these settings will take."""
        total = 0.0
        for shape, many in Counter(shape for one in shapes for shape in one).items():
            seconds, trials = self.cost[shape]
            total += seconds * max(many * seeds / trials, LEAST)
        return total
