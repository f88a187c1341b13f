"""Saving a model and coming back: one file, written whole or not at all, read without unpickling code."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unspool.files import Unsound, read_sealed, write_sealed
from unspool.models import airgnn, appnp, dagnn, gcn, gcnii, gprgnn, jknet, mlp, ppnp, sgc, ugdgnn
from unspool.models.channels import Channels
from unspool.models.hop_start import HopStart
from unspool.models.masks import Masks
from unspool.models.model import Model, Origin
from unspool.ops.polynomial import Basis
from unspool.unrolling import Checkpointed, Stored

FORMAT = 1

_MODELS: dict[str, type[Model]] = {
    m.__name__: m
    for m in (
        sgc.SGC, ppnp.PPNP, appnp.APPNP, jknet.JKNet, gprgnn.GPRGNN, gcn.GCN, gcnii.GCNII, airgnn.AirGNN, dagnn.DAGNN,
        ugdgnn.UGDGNN, mlp.MLP,
    )
}  # fmt: skip
_CHOICES: dict[str, type[Enum]] = {
    c.__name__: c
    for c in (
        sgc.Side, jknet.Combine, HopStart, gcnii.IdentityMapping, Channels, ugdgnn.Mixing, ugdgnn.Layers, Masks,
        Basis,
    )
}  # fmt: skip


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to a file: its name, its settings and its state dict.

    The file appears under its name only when it is complete, so an interrupted run leaves the old one as it was. It ends with
    a checksum, which :func:`load` compares.

    Example:
        >>> import tempfile, pathlib, unspool as us
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.pt"
        >>> us.models.save(us.models.GCN(5, 3), file)
        >>> us.models.load(file).out_features
        3
    """
    if not isinstance(model, Model):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"{type(model).__name__} is no model of this package; save its state_dict() with torch.save instead"
        )
    content = {"format": FORMAT, **describe(model), "state": model.state_dict()}
    write_sealed(path, lambda file: torch.save(content, file))


def load(path: str | os.PathLike[str], device: torch.device | str = "cpu") -> Model:
    """Read a model that :func:`save` wrote, in evaluation mode. Only tensors and plain values are read, never code."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    check_device(device)
    try:
        content = torch.load(read_sealed(path), map_location=device, weights_only=True)
    except Exception as problem:
        why = problem if isinstance(problem, Unsound) else type(problem).__name__
        raise ValueError(f"{path} is no checkpoint of unspool, or is damaged ({why}); save the model again") from None
    if not isinstance(content, dict) or "model" not in content or "state" not in content:
        raise ValueError(f"{path} is no checkpoint of unspool: it holds no model; write it with unspool.models.save")
    return build_again(content, content["state"], str(path), device)


def check_device(device: torch.device | str) -> None:
    """Raise one sentence when a device does not exist or cannot be used here."""
    try:
        torch.empty(0, device=device)
        if torch.device(device).type == "meta":
            raise RuntimeError("holds no numbers")
    except (AssertionError, RuntimeError, NotImplementedError):
        raise ValueError(
            f"the device {str(device)!r} cannot be used here; take 'cpu', or a torch that knows it"
        ) from None


def build_again(
    content: dict[str, Any], state: dict[str, torch.Tensor], path: str, device: torch.device | str
) -> Model:
    """A model from its description and its weights, in evaluation mode; ``path`` is named where they do not fit."""
    if content.get("format") != FORMAT:
        raise ValueError(f"{path} has format {content.get('format')}, this version reads {FORMAT}; update unspool")
    if content.get("model") not in _MODELS:
        raise ValueError(
            f"{path} holds a {content.get('model')!r}, which this version of unspool does not know; update unspool"
        )
    try:
        _check_widths(content, state)
        model = _built(content)
        first = next((t for t in state.values() if t.is_floating_point() and t.ndim), None)
        model.to(device).to(first.dtype if first is not None else torch.get_default_dtype())
        _check_kinds(model.state_dict(), state)
        model.load_state_dict(state)
    except (AttributeError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as problem:
        why = " ".join(str(problem).partition("\nException raised from")[0].split())  # torch speaks in several lines
        raise ValueError(f"{path} does not fit its own description: {why}") from None
    return model.eval()


def _check_widths(content: dict[str, Any], state: dict[str, torch.Tensor]) -> None:
    """Refuse a width that none of the weights has before so much memory is asked for."""
    widest = max((length for value in state.values() for length in value.shape), default=0)
    named = {"hidden": content["settings"].get("hidden"), **{n: content[n] for n in ("in_features", "out_features")}}
    for name, width in named.items():
        if isinstance(width, int) and width > max(widest, 1000):  # what is small may be built to see
            raise ValueError(f"{name}={width}, but no weight has more than {widest} rows or columns")


def _check_kinds(wanted: dict[str, torch.Tensor], state: dict[str, torch.Tensor]) -> None:
    """Torch would squeeze numbers of one kind into another: complex into real, fractions into whole."""
    for name, value in wanted.items():
        if name in state and state[name].dtype != value.dtype:
            raise ValueError(f"{name} holds {state[name].dtype}, expected {value.dtype}")


def describe(model: Model | Origin) -> dict[str, Any]:
    """What a model must be built from, in plain values."""
    kind, origin = model.kind if isinstance(model, Origin) else type(model), model.origin
    if _MODELS.get(kind.__name__) is not kind:
        raise TypeError(f"{kind.__name__} is no model of this package; save its state_dict() with torch.save instead")
    return {
        "model": kind.__name__,
        "in_features": model.in_features,
        "out_features": model.out_features,
        "settings": {name: _plain(value) for name, value in model.settings.items()},
        "origin": describe(origin) if isinstance(origin, Origin) else origin,
        "exact": bool(getattr(model, "solved_exactly", False)),
    }


def _built(content: dict[str, Any]) -> Model:
    kind = _MODELS[content["model"]]
    widths = (content["in_features"], content["out_features"])
    settings = {name: _value(value) for name, value in content["settings"].items()}
    made = _unsolved(kind, widths, settings, content["origin"])
    return made.solve_exactly() if content.get("exact", False) else made


def _unsolved(kind: type[Model], widths: tuple[int, int], settings: dict[str, Any], origin: Any) -> Model:
    if origin == "filter":
        return ugdgnn.filter_shell(widths[0], settings["depth"], settings["basis"])
    if origin is not None:
        return kind.from_model(_built(origin))  # type: ignore[attr-defined]
    return kind(*widths, **settings)


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return {"choice": type(value).__name__, "value": value.value}
    if isinstance(value, Checkpointed):
        return {"adjoint": "Checkpointed", "every": value.every}
    if isinstance(value, Stored):
        return {"adjoint": "Stored"}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic | torch.Tensor) and value.ndim == 0:
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"the setting {value!r} cannot be saved; save the model's state_dict() with torch.save instead")


def _value(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "choice" in value:
        return _CHOICES[value["choice"]](value["value"])
    return Checkpointed(value["every"]) if value["adjoint"] == "Checkpointed" else Stored()
