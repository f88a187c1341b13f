"""The denoising problem of a trained network, and whether this very network takes steps on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unspool.errors import IncompatibleError, InputError
from unspool.report.page import Block, Maths, Paragraph
from unspool.train import TrainConfig
from unspool.train.upper import Upper


@dataclass(frozen=True)
class Problem:
    """What a card and its network say about the problem behind a propagation.

    Attributes:
        objective: the problem; empty where the card names none.
        derivation: how the model is derived from it.
        upper: what training made small, where that was said as a sum.
        obstacle: why the steps of this network are not steps on it; None where they are, or where nobody can tell.
    """

    objective: str
    derivation: str
    obstacle: str | None = None
    upper: Upper | None = None

    @staticmethod
    def of(card: Mapping[str, Any], network: Any) -> Problem:
        """Look at the network, where there is one: widths, biases and normalisation may rule a derivation out.

        Example:
            >>> import torch, unspool as us
            >>> model = us.models.GCN(5, 3, hidden=4, depth=3)
            >>> _ = torch.nn.init.ones_(model.propagation.biases[0])
            >>> Problem.of({"objective": str(model.objective), "derivation": model.derivation}, model).obstacle
            'a layer has a bias, and the problem has none'
        """
        obstacle = None
        steps = getattr(getattr(network, "propagation", None), "as_unrolled", None)
        if callable(steps):
            try:
                steps()
            except IncompatibleError as problem:
                obstacle = str(problem).partition(";")[0]
        return Problem(_text(card, "objective"), _text(card, "derivation"), obstacle, _upper(card))

    def line(self) -> str:
        """For a terminal; empty where there is nothing to say."""
        if not self.objective:
            return ""
        return (
            f"it minimises  {self.objective}"
            if self.obstacle is None
            else f"its kind of layer minimises  {self.objective}   (not this network: {self.obstacle})"
        )

    def blocks(self) -> list[Block]:
        """For a page."""
        made: list[Block] = []
        if self.upper is not None:
            made += [
                Paragraph(
                    [
                        f"What training made small ({self.upper.note}); pʳ is what view r of the network says, p̄ the mean of the views:"
                    ]
                ),
                Maths(self.upper.formula),
            ]
        if self.objective and self.obstacle is None:
            made.append(Paragraph(["The problem behind its propagation:"]))
        elif self.objective:
            made.append(
                Paragraph([
                    f"The problem of its kind of layer. This network does not minimise it: {self.obstacle}. It holds for layers that meet the "
                    "condition below, and says in which direction such layers move signals."
                ])
            )  # fmt: skip
        if self.objective:
            words = "H: the signal that is sought; X: the encoded features; B: the incidence matrix of the graph."
            made += [Maths(self.objective), Paragraph([words])]
        if self.derivation:
            made.append(Paragraph([f"Derivation: {self.derivation}."]))
        return made if made else [Paragraph(["The card does not name its problem."])]


def _upper(card: Mapping[str, Any]) -> Upper | None:
    """What the card says of the upper level; None where it says nothing, or names what files know by name only."""
    trial: Any = card.get("trial")
    config: Any = trial.get("config") if isinstance(trial, Mapping) else None
    said: Any = config.get("upper") if isinstance(config, Mapping) else None
    try:
        return None if said is None else TrainConfig.schema["upper"].from_plain(said)
    except InputError:
        return None


def _text(card: Mapping[str, Any], name: str) -> str:
    found = card.get(name)
    return str(found) if found else ""
