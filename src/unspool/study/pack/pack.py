"""What every way of training trials together looks like from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import nn

from unspool.study.trial import Trial
from unspool.train.task import Task


@dataclass(frozen=True, eq=False)
class Member:
    """A trial that is ready to train: its fresh model (on the CPU) and its task (on the device of the pack).

    Tasks of one pack share features, graph, classes and loss; their three sets of nodes may differ, and with them the scale of numbers.
    """

    trial: Trial
    model: nn.Module
    task: Task


class Pack(Protocol):
    """A fixed number of slots that take one epoch at a time together; each slot trains one trial.

    What a slot computes never depends on the other slots, so an idle slot may go on with whatever it holds.
    """

    @property
    def slots(self) -> int:
        """How many trials train at once."""
        ...

    def put(self, slots: Sequence[int], members: Sequence[Member]) -> None:
        """Start trials anew in these slots; whatever was there is gone."""
        ...

    def advance(self, epochs: int) -> NDArray[np.float64]:
        """Train all slots for some epochs.

        Returns:
            An array of shape (epochs, slots, 4): train loss, validation loss, validation score and test score after each
            epoch, NaN where a slot has diverged or there is no test set.
        """
        ...

    def shrunk(self, slots: Sequence[int]) -> Pack:
        """A smaller pack of these slots, with their trials as far as they are."""
        ...


@runtime_checkable
class Ahead(Pack, Protocol):
    """A pack that can be sent ahead: ``begin`` and ``end`` are the halves of ``advance``, and others may begin in between."""

    def begin(self, epochs: int) -> None:
        """Give a GPU some epochs to do, on a stream of the pack's own, and do not wait for them; at most as many as are kept there."""
        ...

    def end(self) -> NDArray[np.float64]:
        """Wait for what was begun, and give its numbers."""
        ...


def check_ahead(epochs: int, most: int) -> int:
    """The number of epochs, if their numbers can be kept on the device.

    Example:
        >>> check_ahead(25, 64)
        25
    """
    if not 1 <= epochs <= most:
        raise ValueError(f"{epochs} epochs ahead: a pack keeps the numbers of 1 to {most}")
    return epochs
