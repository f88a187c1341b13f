"""What every way of training trials together looks like from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from unspool.train import PreparedTrial


class TrialBatch(Protocol):
    """A fixed number of slots that take one epoch at a time together; each slot trains one trial.

    What a slot computes never depends on the other slots, so an idle slot may go on with whatever it holds.
    """

    @property
    def slots(self) -> int:
        """How many trials train at once."""
        ...

    @property
    def said(self) -> Tensor | None:
        """What each slot said of all nodes after each epoch of the last call, shape (epochs, slots, nodes, outputs); None where it is not kept."""
        ...

    def load(self, slots: Sequence[int], members: Sequence[PreparedTrial]) -> None:
        """Start trials anew in these slots; whatever was there is gone."""
        ...

    def run_epochs(self, epochs: int) -> NDArray[np.float64]:
        """Train all slots for some epochs.

        Returns:
            An array of shape (epochs, slots, 4): train loss, validation loss, validation score and test score after each
            epoch, NaN where a slot has diverged or there is no test set.
        """
        ...

    def compact(self, slots: Sequence[int]) -> TrialBatch:
        """A smaller batch of these slots, with their trials as far as they are."""
        ...


@runtime_checkable
class AsyncBatch(TrialBatch, Protocol):
    """A batch that can be sent ahead: ``start_epochs`` and ``finish_epochs`` are the halves of ``run_epochs``, and others may begin in between."""

    def start_epochs(self, epochs: int) -> None:
        """Give a GPU some epochs to do, on a stream of the batch's own, and do not wait for them; at most as many as are kept there."""
        ...

    def finish_epochs(self) -> NDArray[np.float64]:
        """Wait for what was begun, and give its numbers."""
        ...


def check_ahead(epochs: int, most: int) -> int:
    """The number of epochs, if their numbers can be kept on the device.

    Example:
        >>> check_ahead(25, 64)
        25
    """
    if not 1 <= epochs <= most:
        raise ValueError(f"{epochs} epochs ahead: a batch keeps the numbers of 1 to {most}")
    return epochs
