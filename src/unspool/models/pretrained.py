"""A trained model as a folder: weights in safetensors, and one JSON file that says what they are. Nothing in it is executed."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unspool import identity
from unspool.device import check_device
from unspool.errors import UNSHOWN, IncompatibleError, InputError, mention
from unspool.files import utf8, write_whole
from unspool.models import registry
from unspool.models.model import Model, Origin
from unspool.models.ugdgnn import filter_shell
from unspool.settings import schema_of

FORMAT = 2
CARD = "model.json"
HISTORY = "history.csv"
#: What every card says about its files.
_FRAME = ("format", "weights", "weights_sha256", "history_sha256", "checksum")
#: Names of files with weights: the digits are the first of their sha256.
WEIGHTS = r"weights-[0-9a-f]{12}\.safetensors"


@dataclass(frozen=True)
class BuiltFrom:
    """What a module was built from, where it does not say so itself: its two widths, its settings and its code.

    Args:
        in_features, out_features, settings: of its constructor.
        code: the mark of its class before it was trained (:func:`unspool.identity.own_code`); as it is now when omitted.
    """

    in_features: int
    out_features: int
    settings: Mapping[str, Any]
    code: str | None = None


def save_pretrained(
    model: nn.Module,
    folder: str | os.PathLike[str],
    *,
    built_from: BuiltFrom | None = None,
    history: bytes | None = None,
    **facts: Any,
) -> Path:
    """Write a model and what is known about it (data, preset, metrics) into a folder, from which :func:`load_pretrained` builds it again.

    The weights get a name of their own, and the JSON file, which names them, is put in place last and in one move: at any
    moment the folder holds the old model or the new one, whole. The JSON file carries checksums of the weights, of
    ``history`` (what training wrote down of its epochs, kept as ``history.csv``) and of itself, and whoever reads compares them.

    A class that is not of this package is stored by its name, ``package.module:Class``; whoever loads it names it.

    Args:
        model: a :class:`~unspool.models.Model`, or any module together with ``built_from``.
        folder: made where there is none.
        built_from: how a module was built that is not a :class:`~unspool.models.Model`.
        history: what training wrote down of its epochs.
        facts: anything else that JSON can hold, under names of its own; it is found in ``model.card`` again.

    Example:
        >>> import tempfile, unspool as us
        >>> place = us.save(us.models.SGC(5, 3), tempfile.mkdtemp(), metrics={"test": 0.71})
        >>> model = us.load(place)
        >>> model.card["metrics"], model.card["objective"]
        ({'test': 0.71}, '‖B H‖²')
    """
    from safetensors.torch import save

    about = {
        **describe(model, built_from),
        "model_code": _code(_kinds(model)) if built_from is None or built_from.code is None else built_from.code,
        "objective": str(getattr(model, "objective", "")),
        "derivation": str(getattr(model, "derivation", "")),
        "versions": {"unspool": _version(), "torch": torch.__version__, "python": platform.python_version()},
    }
    _check_facts(facts, {*about, *_FRAME})
    place = Path(folder)
    # Tensors of a state dict may be views of one another's memory, which safetensors refuses.
    state = {name: value.detach().cpu().clone().contiguous() for name, value in model.state_dict().items()}
    content = save(state)
    checksum = hashlib.sha256(content).hexdigest()
    weights = f"weights-{checksum[:12]}.safetensors"
    card = {
        "format": FORMAT,
        "weights": weights,
        "weights_sha256": checksum,
        **({} if history is None else {"history_sha256": hashlib.sha256(history).hexdigest()}),
        **about,
        **facts,
    }
    sealed = _sealed(card)  # before anything is written: what JSON cannot hold must not leave weights without a card
    place.mkdir(parents=True, exist_ok=True)
    write_whole(place / weights, lambda file: file.write(content))
    if history is not None:
        write_whole(place / HISTORY, lambda file: file.write(history))
    write_whole(place / CARD, lambda file: file.write(sealed))
    for old in place.glob("weights-*.safetensors"):
        if old.name != weights and _is_ours(old):
            old.unlink()
    return place


def _check_facts(facts: Mapping[str, Any], taken: set[str]) -> None:
    """Before anything is written."""
    for name, value in facts.items():
        if name in taken:
            raise InputError(name, UNSHOWN, "a fact of another name: the card says something else under this one")
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            raise InputError(name, value, "a fact that JSON can hold: numbers, text, lists and dictionaries") from None


def write_card(folder: str | os.PathLike[str], card: dict[str, Any]) -> None:
    """Write ``model.json``, with a checksum of everything that it says."""
    sealed = _sealed(card)
    write_whole(Path(folder) / CARD, lambda file: file.write(sealed))


def _sealed(card: dict[str, Any]) -> bytes:
    said = json.loads(json.dumps({name: value for name, value in card.items() if name != "checksum"}))
    text = json.dumps({**said, "checksum": _checksum(said)}, indent=1, ensure_ascii=False)
    return utf8(text).encode()


def read_card(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read ``model.json``; one sentence where it is missing, damaged, or not as it was written.

    Example:
        >>> import tempfile, unspool as us
        >>> place = save_pretrained(us.models.SGC(5, 3), tempfile.mkdtemp(), metrics={"test": 0.71})
        >>> read_card(place)["metrics"]
        {'test': 0.71}
    """
    file = Path(folder) / CARD
    if not file.is_file():
        raise FileNotFoundError(
            f"{folder} holds no finished model: {CARD} is missing; give the folder that a model was saved to"
        )
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
        raise ValueError(f"{file} is damaged: its checksum does not match; train again or restore it")
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


def load_pretrained(
    folder: str | os.PathLike[str],
    *,
    model: type[nn.Module] | None = None,
    device: torch.device | str = "cpu",
    changed_code: bool = False,
) -> Any:
    """Read a model that :func:`save_pretrained` or ``unspool train`` wrote, in evaluation mode; nothing in the folder is executed.

    ``model.card`` says what the folder knows: the data, its classes, the preset, the metrics.

    Args:
        folder: of one model; of a training job with a single seed, too.
        model: the class, where it is neither of this package nor registered by an installed one: a file is not allowed to name code.
        device: where the weights go.
        changed_code: take the class as it is now, although its code was another one when the model was saved; it is refused otherwise.

    Example:
        >>> import tempfile, unspool as us
        >>> place = us.save(us.models.SGC(5, 3), tempfile.mkdtemp(), data={"classes": ["a", "b", "c"]})
        >>> us.load(place).card["data"]["classes"]
        ['a', 'b', 'c']
    """
    return load_with_card(folder, model=model, device=device, changed_code=changed_code)[0]


def load_with_card(
    folder: str | os.PathLike[str],
    *,
    model: type[nn.Module] | None = None,
    device: torch.device | str = "cpu",
    changed_code: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """The same, with the card beside the model."""
    from safetensors import SafetensorError
    from safetensors.torch import load as read

    given: Any = model  # of any type, as Python allows
    if given is not None and not (isinstance(given, type) and issubclass(given, nn.Module)):
        raise InputError("model", given, "a class such as us.models.GCN", "us.models.find_model finds one by its name")
    place = find_folder(folder)
    check_device(device)
    card = read_card(place)
    if card.get("format") != FORMAT:
        raise ValueError(
            f"{place} has format {card.get('format')!r}, this version of unspool reads {FORMAT}; train again, or use the other version"
        )
    named = card.get("weights")
    if not isinstance(named, str) or named != Path(named).name:  # never outside the folder, whatever the card says
        raise ValueError(f"{place / CARD} is damaged: it names no weights; train again or restore it")
    weights = place / named
    if not weights.is_file():
        raise FileNotFoundError(f"{place} holds no weights: {named} is missing")
    content = weights.read_bytes()
    if hashlib.sha256(content).hexdigest() != card.get("weights_sha256"):
        raise ValueError(f"{weights} is damaged: its checksum does not match; train again or restore it")
    try:
        state = read(content)
    except (SafetensorError, KeyError, RuntimeError, TypeError, ValueError):
        raise ValueError(f"{weights} is damaged; train again or restore it") from None
    kinds = _classes(card, model)
    if not changed_code:
        _check_code(kinds, card, place)
    made: Any = _build_again(kinds, card, state, str(place), device)
    made.card = card
    return made, card


def find_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder of a model: itself, or that of the only seed in it."""
    found = Path(folder)
    if not found.exists():
        raise FileNotFoundError(f"there is no model {found}; give the folder that it was saved to")
    seeds = sorted(p.parent.name for p in found.glob(f"seed*/{CARD}"))
    if seeds and not (found / CARD).is_file():
        if len(seeds) > 1:
            raise ValueError(f"{found} holds {len(seeds)} models; take one of them, such as {found / seeds[0]}")
        return found / seeds[0]
    return found


def describe(model: nn.Module | Origin, built_from: BuiltFrom | None = None) -> dict[str, Any]:
    """What a model must be built from, in plain values.

    Example:
        >>> import unspool as us
        >>> describe(us.models.SGC(5, 3))["settings"]
        {'depth': 2, 'bias': True, 'weights': 'pre'}
    """
    if not isinstance(model, Model | Origin) and built_from is None:
        raise TypeError(
            f"{type(model).__name__} does not say how it was built; give built_from=BuiltFrom(in_features, out_features, settings), or make "
            "it an unspool.models.Model"
        )
    kind = model.kind if isinstance(model, Origin) else type(model)
    how: Any = model if isinstance(model, Model | Origin) else built_from
    origin: Any = getattr(model, "origin", None)
    schema = schema_of(kind)
    return {
        "model": registry.name_of(kind),
        "in_features": how.in_features,
        "out_features": how.out_features,
        "settings": schema.to_plain(schema.check(how.settings)),
        "origin": describe(origin) if isinstance(origin, Origin) else origin,
        "solved_exactly": bool(getattr(model, "solved_exactly", False)),
    }


def _classes(card: dict[str, Any], given: type[nn.Module] | None) -> dict[Any, Any]:
    """The classes of a model and of those whose parts it took over, by their names in the file."""
    names: list[Any] = [card.get("model")]
    origin = card.get("origin")
    while isinstance(origin, dict):
        names.append(origin.get("model"))
        origin = origin.get("origin")
    known = () if given is None else (registry.name_of(given), given.__name__)
    if given is not None and not any(name in known for name in names):
        registry.find_stored(names[0], given)  # says so
    return {str(name): registry.find_stored(name, given if name in known else None) for name in names}


def _kinds(model: nn.Module) -> list[type[nn.Module]]:
    """The class of a model and of those whose parts it took over."""
    found: list[type[nn.Module]] = [type(model)]
    origin = getattr(model, "origin", None)
    while isinstance(origin, Origin):
        found.append(origin.kind)
        origin = origin.origin
    return list(dict.fromkeys(found))


def _code(kinds: Iterable[type]) -> str | None:
    try:
        return identity.own_code(*kinds)
    except IncompatibleError:  # it holds something without a content to compare
        return None


def _check_code(kinds: dict[Any, Any], card: dict[str, Any], place: Path) -> None:
    known = card.get("model_code")
    if isinstance(known, str) and identity.is_other_code(known, _code(kinds.values())):
        raise IncompatibleError(
            f"the code of {card['model']} has changed since {place} was saved (or a value or a package that it uses), so it may be another "
            f"network; restore the code, train again, or take it as it is with {mention('changed_code')}"
        )


def _build_again(
    kinds: dict[Any, Any], card: dict[str, Any], state: Any, path: str, device: torch.device | str
) -> nn.Module:
    """A model from its description and its weights, in evaluation mode; ``path`` is named where they do not fit."""
    try:
        _check_widths(card, state)
        model = _built(kinds, card)
        first = next((t for t in state.values() if t.is_floating_point() and t.ndim), None)
        model.to(device).to(first.dtype if first is not None else torch.get_default_dtype())
        _check_kinds(model.state_dict(), state)
        model.load_state_dict(state)
    except (AttributeError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as problem:
        why = " ".join(str(problem).partition("\nException raised from")[0].split())  # torch speaks in several lines
        raise ValueError(f"{path} does not fit its own description: {why}") from None
    return model.eval()


def _check_widths(card: dict[str, Any], state: dict[str, torch.Tensor]) -> None:
    """Refuse a width that none of the weights has before so much memory is asked for."""
    widest = max((length for value in state.values() for length in value.shape), default=0)
    named = {"hidden": card["settings"].get("hidden"), **{n: card[n] for n in ("in_features", "out_features")}}
    for name, width in named.items():
        if isinstance(width, int) and width > max(widest, 1000):  # what is small may be built to see
            raise ValueError(f"{name}={width}, but no weight has more than {widest} rows or columns")


def _check_kinds(wanted: dict[str, torch.Tensor], state: dict[str, torch.Tensor]) -> None:
    """Torch would squeeze numbers of one kind into another: complex into real, fractions into whole."""
    for name, value in wanted.items():
        if name in state and state[name].dtype != value.dtype:
            raise ValueError(f"{name} holds {state[name].dtype}, expected {value.dtype}")


def _built(kinds: dict[Any, Any], card: dict[str, Any]) -> Any:
    kind, widths = kinds[card["model"]], (card["in_features"], card["out_features"])
    settings, origin = schema_of(kind).from_plain(card["settings"]), card["origin"]
    if origin == "filter":
        made: Any = filter_shell(widths[0], settings["depth"], settings["basis"])
    elif origin is not None:
        made = kind.from_model(_built(kinds, origin))
    else:
        made = kind(*widths, **settings)
    return made.solve_exactly() if card.get("solved_exactly", False) else made


def _version() -> str:
    import unspool

    return unspool.__version__
