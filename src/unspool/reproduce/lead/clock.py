"""The time of a search: every stage has its share, whatever the stages before it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence


class Clock:
    """Decides by time alone how many slices of its work a stage can do, one at least.

    A stage may take its share of what is left when it begins, the shares of the stages after it beside its own; a slice begins where one that
    takes as long as the longest so far would end in time. So a stage that ran over takes from all later ones alike.

    Args:
        seconds: for everything; None: there is no end.
        shares: of the stages, in their order.
        now: the time, in seconds.

    Example:
        >>> times = iter([0.0, 0.0, 10.0, 30.0, 60.0])
        >>> clock = Clock(100.0, [0.5, 0.3, 0.2], now=lambda: next(times))
        >>> clock.begin()  # up to 50 s
        >>> clock.another(), clock.another(), clock.another()  # at the start, after 10 s, and after 20 s more
        (True, True, True)
        >>> clock.another()  # at 60 s
        False
    """

    def __init__(
        self, seconds: float | None, shares: Sequence[float], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds, self.shares, self.now = seconds, list(shares), now
        self.began = now()
        self.stage = 0
        self.end = self.last = self.longest = 0.0
        self.slices = 0

    @property
    def unlimited(self) -> bool:
        """Whether there is no end."""
        return self.seconds is None

    def begin(self) -> None:
        """The next stage."""
        now, later = self.now(), self.shares[self.stage :]
        if self.seconds is not None:
            left = max(self.began + self.seconds - now, 0.0)
            self.end = now + left * later[0] / sum(later)
        self.stage, self.slices, self.longest, self.last = self.stage + 1, 0, 0.0, now

    def another(self) -> bool:
        """Whether there is time for one more slice; asked before each of them."""
        self.slices += 1
        if self.seconds is None or self.slices == 1:
            return True
        now = self.now()
        self.longest, self.last = max(self.longest, now - self.last), now
        return now + self.longest <= self.end
