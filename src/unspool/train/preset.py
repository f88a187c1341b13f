"""Where everything comes from that nobody said: a named way to run a model on a dataset."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import nn

from unspool.train.trial import Trial


class Preset(ABC):
    """A named source of settings: the model's own defaults (``DEFAULT``), or those of a paper (``unspool.reproduce.PAPER``).

    A preset of your own is a subclass with a name and one method.
    """

    name: str

    @abstractmethod
    def trial(self, model: type[nn.Module], dataset: str) -> Trial:
        """The trial of a model on a dataset, with seed 0; one sentence where the preset has none."""


class _Default(Preset):
    """For data that no one has tuned on: defaults of the model, and of :class:`~unspool.train.TrainConfig`."""

    name = "default"

    def trial(self, model: type[nn.Module], dataset: str) -> Trial:
        """Nothing but defaults."""
        del dataset
        return Trial(model)


#: The model's own defaults, and those of :class:`~unspool.train.TrainConfig`.
DEFAULT: Preset = _Default()
