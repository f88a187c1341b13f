"""A run on disk: everything that the next epoch depends on, written whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unspool.files import Unsound, read_sealed, write_sealed
from unspool.train.record import Epoch

FORMAT = 6
#: What a run belongs to: its model and seed, its configuration, the settings of its model, its task, its code, its teachers.
About = Mapping[str, Mapping[str, Any]]
#: What is said where these parts differ, whose values say nothing to people.
_OTHER = {
    "task": "on other data",
    "code": "with other code of the model",
    "teacher": "with another teacher than {name} is now",
}


@dataclass(eq=False)
class Snapshot:
    """The state of a run between two epochs; model and optimiser carry the rest.

    Attributes:
        history: all epochs so far.
        kept: the number of the best epoch (0 before there is one) and its weights, changed together.
        ended: whether the stopping rule has spoken.
        seconds: how long all processes together have trained, when it was last written.
        seed: of the masks of an upper level's perturbations.
    """

    history: list[Epoch]
    kept: tuple[int, dict[str, Tensor]]
    ended: bool = False
    seconds: float = 0.0
    seed: int = 0
    _spare: dict[str, Tensor] = field(default_factory=dict[str, Tensor])

    @staticmethod
    def fresh(seed: int = 0) -> Snapshot:
        """Before the first epoch."""
        return Snapshot([], (0, {}), seed=seed)

    @property
    def best(self) -> Epoch | None:
        """The best epoch so far."""
        return self.history[self.kept[0] - 1] if self.kept[0] else None

    def keep(self, model: nn.Module) -> None:
        """Remember the weights of the last epoch as the best so far.

        They are copied beside the last best and put in its place in one assignment, so an interrupt finds one or the other.
        """
        with torch.no_grad():
            for name, value in model.state_dict().items():
                if name in self._spare:
                    self._spare[name].copy_(value)
                else:
                    self._spare[name] = value.detach().clone()
        old = self.kept[1]
        self.kept = (len(self.history), self._spare)
        self._spare = old


def write_snapshot(path: Path, state: Snapshot, model: nn.Module, optimiser: Any, about: About) -> None:
    """Save a run; the file appears under its name only when it is complete."""
    content = {
        "format": FORMAT,
        "about": {part: dict(held) for part, held in about.items()},
        "random": _random_state(model),
        "history": [e.to_list() for e in state.history],
        "best": state.kept[0],
        "weights": state.kept[1],
        "ended": state.ended,
        "seconds": state.seconds,
        "seed": state.seed,
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
    }
    write_sealed(path, lambda file: torch.save(content, file))


def read_snapshot(path: Path, model: nn.Module, optimiser: Any, about: About, seed: int = 0) -> Snapshot:
    """Continue a run, or begin one with this seed where there is no file yet; a run under another config or on other data is refused."""
    if not path.exists():
        return Snapshot.fresh(seed)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    try:
        content = torch.load(read_sealed(path), map_location=device, weights_only=True)
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']}")
        began = content["about"]
    except Unsound as problem:
        raise _useless(path, str(problem)) from None
    except Exception as problem:
        raise _useless(path, type(problem).__name__) from None
    for part, names in about.items():
        for name, value in names.items():
            there = began.get(part, {}).get(name)
            if there != value:
                other = f"with {name} {there}, not {value}"
                what = _OTHER[part].format(name=name) if part in _OTHER else other
                raise ValueError(f"{path} began {what}; continue it as it began, or remove it to start again")
    try:
        model.load_state_dict(content["model"])
        optimiser.load_state_dict(content["optimiser"])
        _set_random_state(model, content["random"])
        history = [Epoch.from_list(e) for e in content["history"]]
        kept = (int(content["best"]), dict(content["weights"]))
        return Snapshot(history, kept, bool(content["ended"]), float(content["seconds"]), int(content["seed"]))
    except Exception as problem:
        raise _useless(path, type(problem).__name__) from None


def _useless(path: Path, kind: str) -> ValueError:
    return ValueError(
        f"{path} cannot be continued ({kind}: it belongs to another model, another version, or is damaged); "
        "remove it to start again"
    )


def _random_state(model: nn.Module) -> list[Tensor]:
    """torch's generators, for modules that draw from them; our own dropout counts in buffers instead."""
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])]


def _set_random_state(model: nn.Module, state: list[Tensor]) -> None:
    torch.set_rng_state(state[0].cpu())
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    if device.type == "cuda" and len(state) > 1:
        torch.cuda.set_rng_state(state[1].cpu(), device)
