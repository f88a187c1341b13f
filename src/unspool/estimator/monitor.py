"""Any scorer of scikit-learn as what chooses the epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer
from torch import Tensor

from unspool.errors import InputError
from unspool.train import Loss, Monitor

Array = np.ndarray[Any, Any]
Scorer = Callable[..., Any]


def scorer_of(given: Any) -> Scorer:
    """A scorer by its name, or one that is given.

    Example:
        >>> scorer_of("balanced_accuracy")
        make_scorer(balanced_accuracy_score, ...)
    """
    if isinstance(given, str):
        try:
            return get_scorer(given)
        except ValueError:
            names = ", ".join(f"Monitor.{one.name}" for one in Monitor)
            raise InputError(
                "monitor",
                given,
                f"{names}, or the name of a scorer of scikit-learn (sklearn.metrics.get_scorer_names())",
            ) from None
    if not callable(given):
        raise InputError("monitor", given, "a Monitor, the name of a scorer of scikit-learn, or a scorer")
    return given


class Scored(Loss):
    """A loss whose score is that of a scorer of scikit-learn; what is learnt is not changed.

    Args:
        inner: what training makes small.
        scorer: called as ``scorer(estimator, x, y)``.
        stand_in: the estimator that it is called with; x is the network's output.

    Example:
        >>> import torch
        >>> from unspool.train import CrossEntropy
        >>> auc = Scored(CrossEntropy(), scorer_of("roc_auc"), ClassesSoFar(np.array(["no", "yes"])))
        >>> float(auc.score(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1])))
        1.0
    """

    def __init__(self, inner: Loss, scorer: Scorer, stand_in: Any) -> None:
        self.inner, self.scorer, self.stand_in = inner, scorer, stand_in
        self.score_name = str(getattr(scorer, "__name__", "score"))

    def read(self, output: Tensor, ids: Tensor) -> Tensor:
        """As the loss does."""
        return self.inner.read(output, ids)

    def learn(self, output: Tensor, ids: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """As the loss does."""
        return self.inner.learn(output, ids, target)

    def check(self, target: Tensor, ids: Tensor, part: str) -> None:
        """As the loss does."""
        self.inner.check(target, ids, part)

    def to(self, device: torch.device | str) -> Loss:
        """The same loss on another device."""
        return Scored(self.inner.to(device), self.scorer, self.stand_in)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The loss itself."""
        return self.inner.loss(output, target)

    def sizes(self, target: Tensor, weight: Tensor | None) -> Tensor:
        """As the loss does."""
        return self.inner.sizes(target, weight)

    def check_rows(self) -> None:
        """As the loss does."""
        self.inner.check_rows()

    def check_batches(self) -> None:
        """As the loss does."""
        self.inner.check_batches()

    def score(self, output: Tensor, target: Tensor) -> Tensor:
        """What the scorer says of these rows."""
        rows = output.detach().double().cpu().numpy()
        found = self.scorer(self.stand_in, rows, self.stand_in.truth(target.detach().cpu().numpy()))
        return torch.tensor(float(found), dtype=torch.float64, device=output.device)


class ClassesSoFar(ClassifierMixin, BaseEstimator):
    """A classifier whose x is the output of a network."""

    def __init__(self, classes: Any) -> None:
        self.classes = classes
        self.classes_: Array = classes

    def truth(self, codes: Array) -> Array:
        """Class numbers as classes."""
        return self.classes_[codes]

    def predict_proba(self, x: Array) -> Array:
        """Softmax."""
        return torch.as_tensor(x).softmax(-1).numpy()

    def predict(self, x: Array) -> Array:
        """The class of the largest output."""
        return self.classes_[x.argmax(-1)]


class NumbersSoFar(RegressorMixin, BaseEstimator):
    """A regressor whose x is the output of a network; targets are at mean 0 and size 1, as they are learnt."""

    def truth(self, target: Array) -> Array:
        """Targets as they are."""
        return target

    def predict(self, x: Array) -> Array:
        """The output."""
        return x
