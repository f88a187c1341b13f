"""A trained model as a folder: weights in safetensors, and one JSON file that says what they are."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from pathlib import Path
from typing import Any

import torch

from unspool.files import utf8, write_whole
from unspool.models.checkpoint import FORMAT, build_again, check_device, describe, load
from unspool.models.model import Model

CARD = "model.json"
HISTORY = "history.csv"
#: Names of files with weights: the digits are the first of their sha256.
WEIGHTS = r"weights-[0-9a-f]{12}\.safetensors"


def save_folder(model: Model, folder: str | os.PathLike[str], *, history: bytes | None = None, **facts: Any) -> Path:
    """Write a model and what is known about it (preset, dataset, hashes, metrics) into a folder.

    The weights get a name of their own, and the JSON file, which names them, is put in place last and in one move: at any
    moment the folder holds the old model or the new one, whole. The JSON file carries checksums of the weights, of
    ``history`` (what training wrote down of its epochs, kept as ``history.csv``) and of itself, and whoever reads compares them.

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
    checksum = hashlib.sha256(content).hexdigest()
    weights = f"weights-{checksum[:12]}.safetensors"
    write_whole(place / weights, lambda file: file.write(content))
    if history is not None:
        write_whole(place / HISTORY, lambda file: file.write(history))
    card = {
        "format": FORMAT,
        "weights": weights,
        "weights_sha256": checksum,
        **({} if history is None else {"history_sha256": hashlib.sha256(history).hexdigest()}),
        **describe(model),
        "objective": str(model.objective),
        "derivation": model.derivation,
        "versions": {"unspool": _version(), "torch": torch.__version__, "python": platform.python_version()},
        **facts,
    }
    write_card(place, card)
    for old in place.glob("weights-*.safetensors"):
        if old.name != weights and _is_ours(old):
            old.unlink()
    return place


def write_card(folder: str | os.PathLike[str], card: dict[str, Any]) -> None:
    """Write ``model.json``, with a checksum of everything that it says."""
    said = json.loads(json.dumps({name: value for name, value in card.items() if name != "checksum"}))
    text = json.dumps({**said, "checksum": _checksum(said)}, indent=1, ensure_ascii=False)
    write_whole(Path(folder) / CARD, lambda file: file.write(utf8(text).encode()))


def read_card(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read ``model.json``; one sentence where it is missing, damaged, or not as it was written.

    Example:
        >>> import tempfile, unspool as us
        >>> place = save_folder(us.models.SGC(5, 3), tempfile.mkdtemp(), metrics={"test": 0.71})
        >>> read_card(place)["metrics"]
        {'test': 0.71}
    """
    file = Path(folder) / CARD
    if not file.is_file():
        raise FileNotFoundError(f"{folder} holds no finished model: {CARD} is missing")
    try:
        card = json.loads(file.read_bytes().decode("utf-8"))
        found = card.pop("checksum", None)
        fits = found == _checksum(card)
    except (ValueError, AttributeError, TypeError, RecursionError):  # neither JSON nor UTF-8, or not a card at all
        raise ValueError(f"{file} is damaged; train again or restore it") from None
    if found is None:
        raise ValueError(
            f"{file} carries no checksum: it is damaged, or an older version wrote it; train again or restore it"
        )
    if not fits:
        raise ValueError(f"{file} is damaged: its checksum does not fit; train again or restore it")
    return card


def history_fits(folder: Path, card: dict[str, Any]) -> bool:
    """Whether the history in a folder, if there is one and the card knows it, is that of the card's model."""
    known, file = card.get("history_sha256"), folder / HISTORY
    if known is None or not file.is_file():  # Trap: a pipe or a device would be read without end
        return True
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest() == known
    except OSError:
        return True  # whoever reads it says what is wrong


def _checksum(said: dict[str, Any]) -> str:
    """Of what a card says, however it is laid out."""
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _is_ours(path: Path) -> bool:
    """Whether a file is one of weights that we wrote: the name says what the content is."""
    if not re.fullmatch(WEIGHTS, path.name) or not path.is_file() or path.is_symlink():
        return False
    return path.name.startswith(f"weights-{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}.")


def load_folder(folder: str | os.PathLike[str], device: torch.device | str = "cpu") -> tuple[Model, dict[str, Any]]:
    """Read a model and its card back, in evaluation mode; nothing in the folder is executed."""
    from safetensors import SafetensorError
    from safetensors.torch import load as read

    place = Path(folder)
    check_device(device)
    card = read_card(place)
    named = card.get("weights")
    if not isinstance(named, str) or named != Path(named).name:  # never outside the folder, whatever the card says
        raise ValueError(f"{place / CARD} is damaged: it names no weights; train again or restore it")
    weights = place / named
    if not weights.is_file():
        raise FileNotFoundError(f"{place} holds no weights: {named} is missing")
    content = weights.read_bytes()
    if hashlib.sha256(content).hexdigest() != card.get("weights_sha256"):
        raise ValueError(f"{weights} is damaged: its checksum does not fit; train again or restore it")
    try:
        state = read(content)
    except (SafetensorError, KeyError, RuntimeError, TypeError, ValueError):
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
