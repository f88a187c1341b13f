"""What is written down while a run goes on and when it ends."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import Enum


class Ending(Enum):
    """Why a run ended: its last epoch, its stopping rule, an interrupt, or numbers that are not finite."""

    ALL_EPOCHS = "all epochs"
    STOPPED = "stopped early"
    INTERRUPTED = "interrupted"
    DIVERGED = "diverged"


@dataclass(frozen=True)
class Epoch:
    """Losses and scores of one epoch; validation and test are measured with the weights after its step.

    Example:
        >>> Epoch.from_list(Epoch(1, 1.9, 1.8, 0.3, 0.2).to_list()).epoch
        1
    """

    epoch: int
    train_loss: float
    valid_loss: float
    valid_score: float
    test_score: float

    def to_list(self) -> list[float]:
        """Plain numbers, for files."""
        return [float(v) for v in astuple(self)]

    @staticmethod
    def from_list(values: list[float]) -> Epoch:
        """Back from plain numbers."""
        return Epoch(int(values[0]), *values[1:])


@dataclass(frozen=True)
class Result:
    """What came of a trial: the numbers of the epoch that validation chose.

    Attributes:
        epoch: the selected epoch; ``epochs``: how many were run.
        train_loss, valid_loss, valid_score, test_score: at the selected epoch.
        ending: why it ended.
        seconds: how long it trained; in a batch, its share.

    Example:
        >>> Result(12, 50, 0.1, 0.9, 0.7, 0.71, Ending.ALL_EPOCHS, 0.4).test_score
        0.71
    """

    epoch: int
    epochs: int
    train_loss: float
    valid_loss: float
    valid_score: float
    test_score: float
    ending: Ending
    seconds: float
