"""Going on from what an earlier ``fit`` has learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from unspool.errors import IncompatibleError, mention

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Before:
    """What an earlier ``fit`` left behind: the class of the model, its weights, and the classes that they tell apart."""

    kind: type[nn.Module]
    weights: dict[str, Tensor]
    classes: Array | None

    @staticmethod
    def of(estimator: Any) -> Before | None:
        """Of a fitted estimator; None of one that is not."""
        model = getattr(estimator, "model_", None)
        if model is None:
            return None
        weights = {name: value.detach().clone() for name, value in model.state_dict().items()}
        return Before(type(model), weights, getattr(estimator, "classes_", None))

    def hand_over(self, model: nn.Module, estimator: Any) -> None:
        """Put the weights into a fresh model, or one sentence where they do not belong there."""
        classes: Any = getattr(estimator, "classes_", None)
        if self.classes is not None and not np.array_equal(self.classes, classes):
            raise IncompatibleError(
                f"the weights were learnt for the classes {_listed(self.classes)}, and y has {_listed(classes)}; give all of them, or fit "
                f"with {mention('warm_start', False)}"
            )
        wanted = {name: value.shape for name, value in model.state_dict().items()}
        if type(model) is not self.kind or {name: value.shape for name, value in self.weights.items()} != wanted:
            raise IncompatibleError(
                f"the weights belong to a {self.kind.__name__} of other settings or features; keep them as they were, or fit with "
                f"{mention('warm_start', False)}"
            )
        model.load_state_dict(self.weights)


def _listed(classes: Any) -> str:
    return ", ".join(map(str, classes))
