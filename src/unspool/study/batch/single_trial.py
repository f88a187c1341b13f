"""A batch of one slot, for trials that cannot be stacked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from unspool.study.batch.written import own_copy
from unspool.train import PreparedTrial, seeded
from unspool.train.conduct import found_by_us
from unspool.train.epochs import Epochs, make_optimiser


class SingleTrial:
    """One trial that trains as :func:`unspool.train.fit` trains it, behind the face of a batch.

    For whatever does not stack: another optimiser than Adam, half precision, learning rates that change, clipped gradients, losses that draw at random, modules that look at
    values. What such a trial draws from torch's generator comes from its own seed, so neighbours do not change it.

    Args:
        members: exactly one.
        keep: whether what the trial says of all nodes is kept, in ``said``.

    Example:
        >>> import torch, unspool as us
        >>> from unspool import datasets, train
        >>> from unspool.train import Trial
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> trial = Trial(us.models.MLP, config=train.TrainConfig(optimiser=torch.optim.SGD))
        >>> batch = SingleTrial([PreparedTrial(trial, trial.build(data.features.shape[1], 2), train.Task.of(data))])
        >>> batch.run_epochs(2).shape
        (2, 1, 4)
    """

    def __init__(self, members: Sequence[PreparedTrial], keep: bool = False) -> None:
        if len(members) != 1:
            raise ValueError(f"{len(members)} trials for a batch of one slot: give one")
        self._keep = keep
        self.said: torch.Tensor | None = None
        self.load([0], members)

    @property
    def slots(self) -> int:
        """One."""
        return 1

    def load(self, slots: Sequence[int], members: Sequence[PreparedTrial]) -> None:
        """Start another trial."""
        if not members:
            return
        (member,) = members
        self._device = member.task.target.device
        model = own_copy(member.model).to(self._device)  # members stay as they are: a batch may be opened again
        config, seed = member.trial.config, member.trial.seed
        self._epochs = Epochs(model, make_optimiser(config, model), member.task, config, seed)
        with seeded(member.trial.seed, self._device):
            self._generators = _generators(self._device)
        if member.generator is not None:
            self._generators[0] = member.generator

    def run_epochs(self, epochs: int) -> NDArray[np.float64]:
        """Train for some epochs."""
        numbers = np.full((epochs, 1, 4), np.nan)
        said: list[torch.Tensor] = []
        with seeded(None, self._device):
            _set_generators(self._device, self._generators)
            for k in range(epochs):
                try:
                    numbers[k, 0] = self._epochs()
                except ValueError as problem:
                    if not self._epochs.stepped or not found_by_us(problem):
                        raise
                    break  # what is wrong inside the model now was right before a step was taken: it has diverged
                if not np.isfinite(numbers[k, 0, 0]):
                    numbers[k] = np.nan
                    break
                if self._keep and self._epochs.said is not None:
                    said.append(self._epochs.said.clone())
            self._generators = _generators(self._device)
        self.said = torch.stack(said)[:, None] if said else None
        return numbers

    def compact(self, slots: Sequence[int]) -> SingleTrial:
        """Itself: there is nothing smaller."""
        return self


def _generators(device: torch.device) -> list[torch.Tensor]:
    found = [torch.get_rng_state()]
    return [*found, torch.cuda.get_rng_state(device)] if device.type == "cuda" else found


def _set_generators(device: torch.device, states: list[torch.Tensor]) -> None:
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)
