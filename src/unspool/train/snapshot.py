"""A run on disk: everything that the next epoch depends on, written whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unspool.files import write_whole
from unspool.train.record import Epoch

FORMAT = 1


@dataclass(eq=False)
class Snapshot:
    """The state of a run between two epochs; model and optimiser carry the rest."""

    history: list[Epoch]
    best: int
    weights: dict[str, Tensor]
    ended: bool = False

    @staticmethod
    def fresh() -> Snapshot:
        """Before the first epoch."""
        return Snapshot([], 0, {})


def write_snapshot(path: Path, state: Snapshot, model: nn.Module, optimiser: Any) -> None:
    """Save a run; the file appears under its name only when it is complete."""
    content = {
        "format": FORMAT,
        "history": [e.to_list() for e in state.history],
        "best": state.best,
        "weights": state.weights,
        "ended": state.ended,
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
    }
    write_whole(path, lambda file: torch.save(content, file))


def read_snapshot(path: Path, model: nn.Module, optimiser: Any) -> Snapshot:
    """Continue a run, or begin one where there is no file yet."""
    if not path.exists():
        return Snapshot.fresh()
    try:
        content = torch.load(path, weights_only=True)
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']}")
        model.load_state_dict(content["model"])
        optimiser.load_state_dict(content["optimiser"])
        history = [Epoch.from_list(e) for e in content["history"]]
        return Snapshot(history, int(content["best"]), content["weights"], bool(content["ended"]))
    except Exception as problem:
        raise ValueError(
            f"{path} cannot be continued ({type(problem).__name__}: it belongs to another model, another version, or is damaged); "
            "remove it to start anew"
        ) from None
