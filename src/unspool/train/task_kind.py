"""What is predicted, decided in one place."""

from __future__ import annotations

from enum import Enum
from typing import Any

from unspool.datasets import Dataset
from unspool.errors import UNSHOWN, InputError, mention
from unspool.train.loss import Binary, CrossEntropy, Loss, Ranking, Regression

#: Output channels where the loss compares pairs of nodes.
PAIR_CHANNELS = 64


class TaskKind(Enum):
    """What is predicted: one of several classes, yes or no, numbers, an order, or links.

    Example:
        >>> from unspool import datasets
        >>> TaskKind.seen_in(datasets.load("citeseer")).name
        'CLASSES'
    """

    CLASSES = "classes"
    BINARY = "binary"
    NUMBERS = "numbers"
    RANKING = "ranking"
    LINKS = "links"

    @staticmethod
    def seen_in(data: Dataset) -> TaskKind:
        """What the targets of a dataset ask for."""
        return TaskKind.CLASSES if data.targets is None else TaskKind.NUMBERS

    def check(self, data: Dataset) -> None:
        """Raise one sentence where a dataset does not have what is to be predicted."""
        if self in (TaskKind.NUMBERS, TaskKind.RANKING) and data.targets is None:
            raise InputError("target_columns", UNSHOWN, f"a column of numbers, which the loss {self.value} learns from")
        if self in (TaskKind.CLASSES, TaskKind.BINARY) and not data.classes:
            raise InputError(
                "label_column",
                UNSHOWN,
                f"a column of classes, as {data.name} has no labels to learn from",
                f"or give them with {mention('labels')}",
            )
        if self is TaskKind.BINARY and len(data.classes) != 2:
            raise InputError("loss", self.value, f"two classes to tell apart, and {data.name} has {len(data.classes)}")
        if self is TaskKind.RANKING and data.targets is not None and data.targets.shape[1] != 1:
            raise InputError(
                "loss", self.value, "one column of numbers to order nodes by", f"give one {mention('target_columns')}"
            )

    def outputs(self, data: Dataset) -> int:
        """How many output channels a model needs."""
        if self is TaskKind.CLASSES:
            return len(data.classes)
        if self is TaskKind.NUMBERS:
            assert data.targets is not None
            return int(data.targets.shape[1])
        return PAIR_CHANNELS if self is TaskKind.LINKS else 1

    def loss(self) -> Loss:
        """The upper loss; that of links belongs to its pairs, and is made with them."""
        made: dict[Any, Any] = {
            TaskKind.CLASSES: CrossEntropy, TaskKind.BINARY: Binary, TaskKind.NUMBERS: Regression, TaskKind.RANKING: Ranking,
        }  # fmt: skip
        return made[self]()
