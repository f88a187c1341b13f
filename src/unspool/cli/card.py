"""The card of a trained model, looked through before anything is done with it: every part of the kind that training writes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unspool.cli.data_options import DataOptions
from unspool.graph import Normalisation
from unspool.models.pretrained import CARD
from unspool.train import TaskKind

_Test = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64


def _is_record(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _list_of(one: _Test) -> _Test:
    return lambda value: isinstance(value, Sequence) and not isinstance(value, str) and all(map(one, value))


def _is_finite(value: Any) -> bool:
    return _is_number(value) and abs(value) < 1e300 and math.isfinite(value)


_TEXTS, _RECORDS, _WHOLES = _list_of(_is_text), (_is_record, "a record"), (_is_whole, "a whole number of at least 0")
_TEXT, _LIST, _NUMBER = (_is_text, "text"), (_TEXTS, "a list of texts"), (_is_number, "a number")
_FINITE = (_list_of(_is_finite), "a list of finite numbers")
#: What may stand where, by dotted names; nothing need be there, and None is nothing.
_KINDS: dict[str, tuple[_Test, str]] = {
    "data": _RECORDS, "data.name": _TEXT, "data.hash": _TEXT, "data.split": _TEXT, "data.split_name": _TEXT,
    "data.classes": _LIST, "data.features": _LIST, "data.targets": _LIST, "data.transforms": _LIST, "data.notes": _LIST,
    "data.source": _RECORDS, **{f"data.source.{name}": _TEXT for name in DataOptions.__dataclass_fields__},
    **{
        f"data.source.{name}": _LIST
        for name in ("target_columns", "feature_columns", "drop_columns", "one_hot", "label_columns", "class_order", "class_weight", "edge_columns")
    },
    "data.categories": (lambda value: _is_record(value) and all(_is_text(name) and _TEXTS(held) for name, held in value.items()), "lists of texts by column"),
    "data.source.directed": (lambda value: isinstance(value, bool), "true or false"),
    "task": _RECORDS, "task.score": _TEXT, "task.centre": _FINITE, "task.scale": _FINITE,
    "task.kind": (lambda value: value in [kind.value for kind in TaskKind], f"one of {', '.join(kind.value for kind in TaskKind)}"),
    "data.normalisation": (lambda value: value in [one.value for one in Normalisation], f"one of {', '.join(one.value for one in Normalisation)}"),
    "data.fingerprint": _TEXT, "key": _TEXT, "model_code": _TEXT, "trial": _RECORDS, "trial.preset": _TEXT, "trial.config": _RECORDS, "trial.settings": _RECORDS,
    "command": _TEXT, "data.size": _RECORDS, "metrics": _RECORDS, "metrics.seed": _WHOLES, "metrics.epochs": _WHOLES,
    "metrics.ending": _TEXT, "metrics.test_score": _NUMBER, "links": _RECORDS, "evaluation": _RECORDS, "evaluation.calibration": _RECORDS,
    "evaluation.calibration.temperature": (lambda value: _is_finite(value) and value > 0, "a number above 0"),
}  # fmt: skip


def check_card(card: Mapping[str, Any], folder: Path, outputs: int | None = None) -> None:
    """Raise one sentence where a card says something that training does not write.

    Args:
        card: what the file says.
        folder: where it is.
        outputs: how many numbers the model says about a node.

    Example:
        >>> check_card({"data": {"source": {"dataset": 5}}}, Path("out"))
        Traceback (most recent call last):
            ...
        ValueError: out/model.json is damaged: data.source.dataset is 5, expected text; train again or restore it
    """
    problem = what_is_wrong(card)
    task = card.get("task") or {}
    if problem is None:
        centre, scale = (task.get(name) or [] for name in ("centre", "scale"))
        if len(centre) != len(scale) or 0 in scale:
            problem = "task.centre and task.scale do not belong together"
        elif scale and outputs is not None and len(scale) not in (1, outputs):
            problem = f"task.scale holds {len(scale)} numbers for {outputs} outputs"
    if problem is not None:
        raise ValueError(f"{folder / CARD} is damaged: {problem}; train again or restore it")


def what_is_wrong(card: Mapping[str, Any]) -> str | None:
    """The first part of a card that is not of its kind, in words.

    Example:
        >>> what_is_wrong({"data": {"source": {"cloud": "far"}}})
        "data.source has the unknown entry 'cloud'"
    """
    for name, (fits, wanted) in _KINDS.items():
        found: Any = card
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        if found is not None and not fits(found):
            return f"{name} is {_short(found)}, expected {wanted}"
    strange = set((card.get("data") or {}).get("source") or {}) - set(DataOptions.__dataclass_fields__)
    return f"data.source has the unknown entry {_short(min(strange))}" if strange else None


def _short(value: Any) -> str:
    """A value in a sentence."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
