"""How far one trial has come, and when it ends: the rules of :func:`unspool.train.fitting`, one epoch after another."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from unspool.train import Ending, Epoch, Monitor, Result, Stop, Trial


class TrialProgress:
    """The epochs of one trial as they come in, in pieces of any size.

    Selecting and stopping are the config's own methods. A trial that ends within a piece is cut there, so the result does not
    depend on where pieces begin and end.

    Args:
        trial: whose config decides.

    Example:
        >>> import numpy as np, unspool as us
        >>> progress = TrialProgress(Trial(us.models.MLP, config=us.train.TrainConfig(epochs=3)))
        >>> progress.take(np.array([[0.9, 1.0, 0.5, 0.5], [0.8, 0.9, 0.6, 0.55]]), seconds=1.0)
        2
        >>> progress.take(np.array([[0.7, 1.1, 0.7, 0.6], [0.6, 0.1, 0.9, 0.9]]), seconds=1.0)
        1
        >>> progress.ending.value, progress.result().epoch, progress.result().test_score
        ('all epochs', 2, 0.55)
    """

    def __init__(self, trial: Trial) -> None:
        self.trial, self.config = trial, trial.config
        self.best: Epoch | None = None
        self.ending: Ending | None = None
        self.seconds = 0.0
        self.epochs = 0
        self.said: Tensor | None = None  # at the best epoch
        self._history: list[Epoch] = []

    @property
    def left(self) -> int:
        """How many epochs may still come."""
        return self.config.epochs - self.epochs

    def take(self, numbers: NDArray[np.float64], seconds: float, said: Tensor | None = None) -> int:
        """Read the next epochs, shape (epochs, 4), until the trial ends; gives how many were its own.

        ``said``, shape (epochs, nodes, outputs), is what the network said after each of them, where that of the best one is to be kept.
        """
        best, first = self.best, self.epochs + 1
        taken = self._take(numbers, seconds)
        if said is not None and self.best is not None and self.best is not best:
            self.said = said[self.best.epoch - first].clone()
        return taken

    def _take(self, numbers: NDArray[np.float64], seconds: float) -> int:
        self.seconds += seconds
        if self._goes_on(len(numbers)) and np.isfinite(numbers[:, :3]).all():
            return self._take_together(numbers[: self.left])
        taken = 0
        for row in numbers.tolist():
            if self.ending is not None:
                break
            taken += self._read(row)
        return taken

    def _goes_on(self, many: int) -> bool:
        """Whether no rule can stop the trial within the next epochs, whatever they bring."""
        if self.config.stop is Stop.PATIENCE:
            return self.epochs + many - (self.epochs if self.best is None else self.best.epoch) < self.config.patience
        if self.config.stop is Stop.ABOVE_MEAN:
            return self.epochs + many <= max(self.config.min_epochs, self.config.patience)
        return self.config.stop is Stop.NEVER

    def _take_together(self, numbers: NDArray[np.float64]) -> int:
        """The same where nothing stops early: only the best of these epochs can be the best of all."""
        if self.config.stop is Stop.ABOVE_MEAN:  # it looks back
            self._history += [Epoch(self.epochs + k, *row) for k, row in enumerate(numbers.tolist(), 1)]
        loss, score = numbers[:, 0 if self.config.monitor is Monitor.TRAIN_LOSS else 1], numbers[:, 2]
        if self.config.monitor is Monitor.LAST_EPOCH:
            place = len(numbers) - 1
        elif self.config.monitor in (Monitor.VALID_LOSS, Monitor.TRAIN_LOSS):
            place = int(loss.argmin())
        else:
            place = int(np.where(score == score.max(), loss, np.inf).argmin())
        now = Epoch(self.epochs + place + 1, *numbers[place].tolist())
        if self.best is None or self.config.better(now, self.best):
            self.best = now
        self.epochs += len(numbers)
        if self.left == 0:
            self.ending = Ending.ALL_EPOCHS
        return len(numbers)

    def result(self) -> Result:
        """What came of it; NaN where it diverged before its first epoch was over."""
        assert self.ending is not None
        nothing = Epoch(0, math.nan, math.nan, math.nan, math.nan)
        best = nothing if self.best is None else self.best
        return Result(
            best.epoch, self.epochs, best.train_loss, best.valid_loss, best.valid_score, best.test_score, self.ending, self.seconds
        )  # fmt: skip

    def _read(self, row: list[float]) -> int:
        """One epoch; gives 1 if it counts."""
        if not (math.isfinite(row[0]) and math.isfinite(row[1])):  # outputs that are no numbers have an argmax too
            self.ending = Ending.DIVERGED
            return 0
        self.epochs += 1
        now = Epoch(self.epochs, *row)
        if self.config.stop is not Stop.NEVER:
            self._history.append(now)
        if self.best is None or self.config.better(now, self.best):
            self.best = now
        if self.config.stop is not Stop.NEVER and self.config.ended(self._history, self.best):
            self.ending = Ending.STOPPED
        elif self.left == 0:
            self.ending = Ending.ALL_EPOCHS
        return 1
