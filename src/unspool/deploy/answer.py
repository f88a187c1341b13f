"""What an exported network answers with: probabilities and numbers on their own scale, not what lies inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from unspool.datasets.features import row_normalise
from unspool.errors import IncompatibleError
from unspool.train.evaluation import temperature_of
from unspool.train.ordinal import class_probabilities


class Meaning(Enum):
    """What the channels of a network's output are.

    ``RAW``: they are given as they are (embeddings, scores to rank by). ``CLASSES``: scores of one class each, given as probabilities.
    ``YES``: one score, given as the probability of the second class. ``LABELS``: a score for each of several labels, given as
    probabilities. ``ORDERED``: thresholds between classes in order, given as probabilities of the classes. ``NUMBERS``: numbers, given on
    the scale of the targets. ``COUNTS``: logarithms of expected counts, given as counts.
    """

    RAW = "raw"
    CLASSES = "classes"
    YES = "yes"
    LABELS = "labels"
    ORDERED = "ordered"
    NUMBERS = "numbers"
    COUNTS = "counts"


#: By what cards call the kind of a task.
_MEANINGS = {
    "classes": Meaning.CLASSES, "binary": Meaning.YES, "multilabel": Meaning.LABELS, "ordinal": Meaning.ORDERED,
    "numbers": Meaning.NUMBERS, "counts": Meaning.COUNTS, "ranking": Meaning.RAW, "links": Meaning.RAW,
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """How features go in and what comes out, for a trained network that stands alone.

    Attributes:
        meaning: what the output channels are.
        classes: their names, where they are classes.
        centre, scale: of the targets in training, where they are numbers.
        normalise_rows: whether rows of features are scaled first, as they were in training.
        temperature: what scores are divided by, so that probabilities are calibrated.

    Example:
        >>> answer = Answer(Meaning.NUMBERS, centre=(10.0,), scale=(2.0,))
        >>> answer.read(torch.tensor([[0.0], [1.0]])).flatten()
        tensor([10., 12.])
    """

    meaning: Meaning = Meaning.RAW
    classes: tuple[str, ...] = ()
    centre: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    normalise_rows: bool = False
    temperature: float = 1.0

    @staticmethod
    def of_card(card: Mapping[str, Any]) -> Answer:
        """As the card of a trained model says.

        Example:
            >>> Answer.of_card({"task": {"kind": "classes"}, "data": {"classes": ["no", "yes"]}}).classes
            ('no', 'yes')
        """
        task, data = card.get("task") or {}, card.get("data") or {}
        kind = task.get("kind")
        if kind is not None and kind not in _MEANINGS:
            raise IncompatibleError(
                f"a network that was trained for {kind} is not exported: what its output means is only known here for "
                f"{', '.join(_MEANINGS)}"
            )
        transforms: list[str] = data.get("transforms") or []
        return Answer(
            Meaning.RAW if kind is None else _MEANINGS[kind],
            tuple(map(str, data.get("classes") or ())),
            tuple(map(float, task.get("centre", ()))),
            tuple(map(float, task.get("scale", ()))),
            "row_normalised" in transforms,
            1.0 if (warm := temperature_of(card)) is None else warm,
        )

    def prepare(self, x: Tensor) -> Tensor:
        """Features as the network takes them."""
        return row_normalise(x) if self.normalise_rows else x  # pyright: ignore[reportReturnType] - dense stays dense

    def read(self, output: Tensor) -> Tensor:
        """What is said of each node."""
        if self.meaning in (Meaning.CLASSES, Meaning.YES):
            warm = output if self.temperature == 1.0 else output / self.temperature
            return warm.softmax(-1) if self.meaning is Meaning.CLASSES else warm.sigmoid()
        if self.meaning is Meaning.LABELS:
            return output.sigmoid()
        if self.meaning is Meaning.ORDERED:
            return class_probabilities(output)
        output = output.exp() if self.meaning is Meaning.COUNTS else output
        if self.meaning is not Meaning.RAW and self.scale:
            scale, centre = (torch.tensor(value, dtype=torch.float64).to(output) for value in (self.scale, self.centre))
            return output * scale + centre
        return output


def answer_of(model: Any, given: Answer | None) -> Answer:
    """The answer that was given, else that of the model's card, else its raw output.

    Example:
        >>> answer_of(torch.nn.Identity(), None).meaning.name
        'RAW'
    """
    card = getattr(model, "card", None)
    if given is not None:
        return given
    return Answer.of_card(card) if isinstance(card, Mapping) else Answer()
