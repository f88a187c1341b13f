"""A trained model as a folder: weights in safetensors, and one JSON file that says what they are."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

import torch

from unspool.files import write_whole
from unspool.models.checkpoint import FORMAT, build_again, check_device, describe, load
from unspool.models.model import Model

CARD = "model.json"


def save_folder(model: Model, folder: str | os.PathLike[str], **facts: Any) -> Path:
    """Write a model and what is known about it (preset, dataset, hashes, metrics) into a folder.

    The weights get a name of their own, and the JSON file, which names them, is put in place last and in one move: at any
    moment the folder holds the old model or the new one, whole.

    Example:
        >>> import tempfile, unspool as us
        >>> from unspool.models.folder import load_folder, save_folder
        >>> place = save_folder(us.models.SGC(5, 3), tempfile.mkdtemp(), metrics={"test": 0.71})
        >>> model, card = load_folder(place)
        >>> card["metrics"], card["objective"]
        ({'test': 0.71}, '‖B H‖²')
    """
    from safetensors.torch import save

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    # Tensors of a state dict may be views of one another's memory, which safetensors refuses.
    state = {name: value.detach().cpu().clone().contiguous() for name, value in model.state_dict().items()}
    content = save(state)
    weights = f"weights-{hashlib.sha256(content).hexdigest()[:12]}.safetensors"
    write_whole(place / weights, lambda file: file.write(content))
    card = {
        "format": FORMAT,
        "weights": weights,
        **describe(model),
        "objective": str(model.objective),
        "reading": model.reading,
        "versions": {"unspool": _version(), "torch": torch.__version__, "python": platform.python_version()},
        **facts,
    }
    text = json.dumps(card, indent=1, ensure_ascii=False)
    write_whole(place / CARD, lambda file: file.write(text.encode()))
    for old in place.glob("weights-*.safetensors"):
        if old.name != weights:
            old.unlink()
    return place


def load_folder(folder: str | os.PathLike[str], device: torch.device | str = "cpu") -> tuple[Model, dict[str, Any]]:
    """Read a model and its card back, in evaluation mode; nothing in the folder is executed."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    place = Path(folder)
    check_device(device)
    if not (place / CARD).is_file():
        raise FileNotFoundError(f"{place} holds no finished model: {CARD} is missing")
    try:
        card = json.loads((place / CARD).read_text(encoding="utf-8"))
        weights = place / Path(card["weights"]).name  # never outside the folder, whatever the card says
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise ValueError(f"{place / CARD} is damaged; train again or restore it") from None
    try:
        state = load_file(weights, device=str(device))
    except FileNotFoundError:
        raise FileNotFoundError(f"{place} holds no weights: {weights.name} is missing") from None
    except SafetensorError:
        raise ValueError(f"{weights} is damaged; train again or restore it") from None
    model = build_again(card, state, str(place), device)
    model.card = card
    return model, card


def load_trained(place: str | os.PathLike[str], device: torch.device | str = "cpu") -> Model:
    """Read a trained model, in evaluation mode: a folder, or a file that :func:`~unspool.models.save` wrote.

    ``model.card`` says what the folder knows: the data, its classes, the preset, the metrics.

    Example:
        >>> import tempfile, unspool as us
        >>> from unspool.models.folder import save_folder
        >>> place = save_folder(us.models.SGC(5, 3), tempfile.mkdtemp(), data={"classes": ["a", "b", "c"]})
        >>> us.load(place).card["data"]["classes"]
        ['a', 'b', 'c']
    """
    found = Path(place)
    if found.is_file():
        return load(found, device)
    if not found.exists():
        raise FileNotFoundError(f"there is no model {found}; give the folder or the file that it was saved to")
    seeds = sorted(p.parent.name for p in found.glob(f"seed*/{CARD}"))
    if len(seeds) == 1 and not (found / CARD).is_file():
        found = found / seeds[0]
    elif seeds and not (found / CARD).is_file():
        raise ValueError(f"{found} holds {len(seeds)} models; take one of them, such as {found / seeds[0]}")
    return load_folder(found, device)[0]


def _version() -> str:
    import unspool

    return unspool.__version__
