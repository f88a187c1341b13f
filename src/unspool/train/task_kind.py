"""What is predicted, decided in one place."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from torch import Tensor

from unspool.datasets import Dataset
from unspool.errors import UNSHOWN, InputError, mention
from unspool.train.class_weight import Balance, ClassWeight, read_class_weight
from unspool.train.counts import Counts, check_counts
from unspool.train.loss import Binary, CrossEntropy, Loss, Ranking, Regression
from unspool.train.multilabel import MultiLabel
from unspool.train.ordinal import Ordinal, class_probabilities

#: Output channels where the loss compares pairs of nodes.
PAIR_CHANNELS = 64


class TaskKind(Enum):
    """What is predicted: one of several classes, yes or no, several labels, ordered classes, numbers, counts, an order, or links.

    Example:
        >>> from unspool import datasets
        >>> TaskKind.seen_in(datasets.load("citeseer")).name
        'CLASSES'
    """

    CLASSES = "classes"
    BINARY = "binary"
    MULTILABEL = "multilabel"
    ORDINAL = "ordinal"
    NUMBERS = "numbers"
    COUNTS = "counts"
    RANKING = "ranking"
    LINKS = "links"

    @staticmethod
    def seen_in(data: Any) -> TaskKind:
        """What the targets of a dataset ask for: two classes are classes as any others, and numbers are not taken for counts."""
        if getattr(data, "targets", None) is None:
            return TaskKind.ORDINAL if getattr(data, "ordered", False) else TaskKind.CLASSES
        return TaskKind.MULTILABEL if getattr(data, "multilabel", False) else TaskKind.NUMBERS

    def check(self, data: Dataset) -> None:
        """Raise one sentence where a dataset does not have what is to be predicted."""
        if self in (TaskKind.NUMBERS, TaskKind.COUNTS, TaskKind.RANKING) and (data.targets is None or data.multilabel):
            raise InputError("target_columns", UNSHOWN, f"a column of numbers, which the loss {self.value} learns from")
        if self in _OF_CLASSES and (not data.classes or data.multilabel):
            raise InputError(
                "label_column",
                UNSHOWN,
                f"a column of classes, as {data.name} has {'several labels per node' if data.multilabel else 'no labels to learn from'}",
                f"or give them with {mention('labels')}",
            )
        if self is TaskKind.MULTILABEL and not data.multilabel:
            raise InputError(
                "label_columns",
                UNSHOWN,
                "several columns of 1 (yes) and 0 (no), each named by itself",
                "name two or more",
            )
        if self is TaskKind.BINARY and len(data.classes) != 2:
            raise InputError("loss", self.value, f"two classes to tell apart, and {data.name} has {len(data.classes)}")
        if self is TaskKind.ORDINAL:
            _check_order(data)
        if self is TaskKind.COUNTS and data.targets is not None:
            check_counts(data.targets, data.name)
        if self is TaskKind.RANKING and data.targets is not None and data.targets.shape[1] != 1:
            raise InputError(
                "loss", self.value, "one column of numbers to order nodes by", f"give one {mention('target_columns')}"
            )
        if self in (TaskKind.RANKING, TaskKind.LINKS) and data.sample_weight is not None:
            raise InputError(
                "sample_weight", UNSHOWN, f"none with the loss {self.value}, which compares pairs of nodes"
            )

    def class_weight(self, given: Any, classes: Sequence[Any]) -> ClassWeight | None:
        """What somebody says about the weights of classes, read and checked against their names."""
        if given is None:
            return None
        if self is TaskKind.MULTILABEL:
            if given not in (Balance.BALANCED, Balance.BALANCED.value):
                raise InputError("class_weight", UNSHOWN, "balanced, where nodes have several labels")
            return Balance.BALANCED
        if self not in _OF_CLASSES:
            raise InputError(
                "class_weight",
                UNSHOWN,
                f"none with the loss {self.value}, which has no classes",
                f"nodes are weighed with {mention('sample_weight')}",
            )
        return read_class_weight(given, classes)

    def outputs(self, data: Dataset) -> int:
        """How many output channels a model needs."""
        if self in (TaskKind.CLASSES, TaskKind.ORDINAL):
            return len(data.classes) - (self is TaskKind.ORDINAL)
        if self in (TaskKind.NUMBERS, TaskKind.COUNTS, TaskKind.MULTILABEL):
            assert data.targets is not None
            return int(data.targets.shape[1])
        return PAIR_CHANNELS if self is TaskKind.LINKS else 1

    def loss(self) -> Loss:
        """The upper loss; that of links belongs to its pairs, and is made with them."""
        made: dict[Any, Any] = {
            TaskKind.CLASSES: CrossEntropy, TaskKind.BINARY: Binary, TaskKind.MULTILABEL: MultiLabel, TaskKind.ORDINAL: Ordinal,
            TaskKind.NUMBERS: Regression, TaskKind.COUNTS: Counts, TaskKind.RANKING: Ranking,
        }  # fmt: skip
        return made[self]()

    def answer(self, output: Tensor) -> Tensor:
        """What a network says, as people read it: probabilities, expected counts (in units of their scale), or the output itself.

        Example:
            >>> import torch
            >>> TaskKind.BINARY.answer(torch.zeros(1, 1)), TaskKind.ORDINAL.answer(torch.zeros(1, 1))
            (tensor([[0.5000]]), tensor([[0.5000, 0.5000]]))
        """
        if self is TaskKind.CLASSES:
            return output.softmax(-1)
        if self is TaskKind.ORDINAL:
            return class_probabilities(output)
        if self in (TaskKind.BINARY, TaskKind.MULTILABEL):
            return output.sigmoid()
        return output.exp() if self is TaskKind.COUNTS else output


_OF_CLASSES = (TaskKind.CLASSES, TaskKind.BINARY, TaskKind.ORDINAL)


def _check_order(data: Dataset) -> None:
    if len(data.classes) < 2:
        raise InputError("loss", "ordinal", f"at least two classes in order, and {data.name} has {len(data.classes)}")
    if not data.ordered and not all(name.lstrip("+-").isdecimal() for name in data.classes):
        raise InputError(
            "class_order",
            UNSHOWN,
            f"the classes from the lowest to the highest, as names do not tell: {', '.join(data.classes)}",
            "give them in their order, with commas between",
        )
