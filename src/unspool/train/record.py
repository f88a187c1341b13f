"""What is written down after every epoch."""

from __future__ import annotations

from dataclasses import astuple, dataclass


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
