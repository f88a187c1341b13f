"""Data and models in double precision, where a trial among others and the same trial alone can be compared to the last digits."""

from dataclasses import replace

import numpy as np
import torch

from reference.cases import doubles
from unspool.train import TrialLoader, train_trial


class DoubleLoader(TrialLoader):
    """A loader of features, graphs, numbers and models in double precision; what tasks share, they share here too."""

    def __init__(self, data, **options):
        self._doubled = {}
        super().__init__(data, **options)

    def task(self, seed=0, normalise_rows=False):
        found = super().task(seed, normalise_rows)
        if id(found) not in self._doubled:
            parts = {name: self._double(getattr(found, name)) for name in ("x", "graph", "target")}
            self._doubled[id(found)] = (found, replace(found, **parts))
        return self._doubled[id(found)][1]

    def make(self, trial):
        with doubles():
            return super().make(trial)

    def _double(self, part):
        if isinstance(part, torch.Tensor) and not part.is_floating_point():
            return part
        if id(part) not in self._doubled:
            self._doubled[id(part)] = (part, part.to(torch.float64))
        return self._doubled[id(part)][1]


def alone(trial, loader):
    """The run of a trial that nobody else trains beside."""
    with doubles():
        return train_trial(trial, loader)[1]


def numbers(run):
    """Losses and scores of every epoch, as batches give them."""
    return np.array([[e.train_loss, e.valid_loss, e.valid_score, e.test_score] for e in run.history])
