"""How a set of trials is getting on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from unspool.train import Result, Trial

#: Seconds between two reports, where nothing ended.
EVERY = 0.2
#: A look at a study is followed by a pause of so many times its length, or watching a large one would keep a core busy.
IDLE = 30


def pause_after(seconds: float, every: float = EVERY) -> float:
    """How long to wait after a look that took so many seconds.

    Example:
        >>> pause_after(0.001), pause_after(0.1)
        (0.2, 3.0)
    """
    return max(every, IDLE * seconds)


@dataclass(frozen=True, eq=False)
class Progress:
    """A look at trials while they train.

    Attributes:
        done: how many have ended, failures too.
        total: how many were asked for; others may be training some of them.
        running: how many train at this moment.
        epochs_per_second: epochs of trials, all together.
        trials_per_second: ends of trials.
        best: the highest validation score so far and its trial.
        seconds_left: a guess; None before the first has ended.

    Example:
        >>> Progress(done=3, total=10, running=4).seconds_left is None
        True
    """

    done: int
    total: int
    running: int
    epochs_per_second: float = 0.0
    trials_per_second: float = 0.0
    best: tuple[float, Trial] | None = None
    seconds_left: float | None = None


class Clock:
    """Counts ends and epochs, and tells the watcher now and then.

    Args:
        total: how many trials there are.
        watch: whom to tell, if anybody.

    Example:
        >>> import unspool as us
        >>> from unspool.train import Ending
        >>> clock = Clock(2, watch=lambda progress: print(progress.done, "of", progress.total))
        >>> clock.ended([(Trial(us.models.MLP), Result(1, 1, 0.1, 0.2, 0.9, 0.8, Ending.ALL_EPOCHS, 0.1))])
        >>> clock.tell(running=1, at_once=True)
        1 of 2
    """

    def __init__(self, total: int, watch: Callable[[Progress], None] | None) -> None:
        self.total, self.watch = total, watch
        self.done, self.epochs = 0, 0
        self.best: tuple[float, Trial] | None = None
        self.began = self._reported_at = time.monotonic()

    def ended(self, pairs: list[tuple[Trial, Result]]) -> None:
        """Some trials have a result."""
        self.done += len(pairs)
        for trial, result in pairs:
            if self.best is None or result.valid_score > self.best[0]:
                # NaN is greater than nothing, so a trial that diverged at once never counts as the best.
                self.best = (result.valid_score, trial) if result.valid_score == result.valid_score else self.best

    def tell(self, running: int, at_once: bool = False) -> None:
        """Report, if it is time to."""
        now = time.monotonic()
        if self.watch is None or not (at_once or now - self._reported_at >= EVERY):
            return
        self._reported_at, spent = now, max(now - self.began, 1e-9)
        left = None if self.done == 0 else max(self.total - self.done, 0) * spent / self.done
        self.watch(
            Progress(self.done, self.total, running, self.epochs / spent, self.done / spent, self.best, left)
        )  # fmt: skip
