"""Reading labels: class numbers or class names, with gaps where a node has none."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.errors import DataError, mention

#: A class number beyond this is a name.
MOST = 1_000_000
#: Texts that mean "no label".
BLANK = frozenset({"", "-1", "-1.0", "nan", "na", "n/a", "none", "null", "?"})


def read_label_numbers(given: Any, nodes: int) -> tuple[Tensor, tuple[str, ...]]:
    """Class numbers, one per node, as int64 with -1 for none, and names for the classes.

    Numbers keep their values. Whole floats count as whole numbers and NaN as no label, since that is how tables with
    gaps store them.

    Example:
        >>> read_label_numbers([0, 2, -1], nodes=3)
        (tensor([ 0,  2, -1]), ('0', '1', '2'))
        >>> read_label_numbers([0.0, 0.5], nodes=2)
        Traceback (most recent call last):
            ...
        unspool.errors.DataError: the label of node 1: 0.5 is not a class: labels are whole numbers or names; ...
    """
    labels = np.asarray(given.detach().cpu() if isinstance(given, Tensor) else given)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(
            f"labels have shape {labels.shape}: expected one class per node; for one-hot rows pass labels.argmax(1)"
        )
    if labels.size != nodes:
        raise ValueError(f"{labels.size} labels for {nodes} nodes; give one per node, -1 where there is none")
    if labels.dtype.kind in "OUS":
        numbers, classes = encode(
            [None if v is None else as_text(v, f"the label of node {row}") for row, v in enumerate(labels.tolist())],
            lambda row: f"the label of node {row}",
        )
        return torch.as_tensor(numbers), classes
    if labels.dtype.kind == "f":
        labels = np.where(np.isnan(labels), -1, labels)
        broken = np.flatnonzero(labels != np.floor(labels))
        if broken.size:
            raise _no_class(f"the label of node {broken[0]}", labels[broken[0]])
    elif labels.dtype.kind not in "iub":
        raise TypeError(f"labels hold {labels.dtype}: expected whole numbers or names")
    numbers = labels.astype(np.int64)
    low = np.flatnonzero(numbers < -1)
    if low.size:
        raise ValueError(
            f"the label of node {low[0]} is {numbers[low[0]]}: classes count from 0, and -1 marks nodes without a label"
        )
    high = int(numbers.max(initial=-1))
    if high >= MOST:
        raise ValueError(
            f"the label of node {int(numbers.argmax())} is {high}, but numbers of classes count from 0; give such names as text"
        )
    return torch.as_tensor(numbers), tuple(str(c) for c in range(high + 1))


def read_targets(given: Any, nodes: int) -> Tensor:
    """Numbers to be predicted, as float32 of shape (nodes, numbers), NaN for none.

    Example:
        >>> read_targets([1.5, None, 2.0], nodes=3).flatten()
        tensor([1.5000,    nan, 2.0000])
    """
    raw = given.detach().cpu().numpy() if isinstance(given, Tensor) else given
    try:
        values = np.asarray(raw, dtype=np.float32)
    except (TypeError, ValueError):
        raise TypeError("targets hold something that is not a number; for classes give labels instead") from None
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2:
        raise ValueError(f"targets have shape {values.shape}: expected one number, or a row of numbers, per node")
    if values.shape[0] != nodes:
        raise ValueError(f"{values.shape[0]} targets for {nodes} nodes; give one per node, NaN where there is none")
    if np.isinf(values).any():
        row = int(np.argwhere(np.isinf(values))[0][0])
        raise ValueError(f"the target of node {row} is infinite; targets are numbers, or NaN where there is none")
    return torch.tensor(values)


def encode(values: Sequence[str | None], where: Callable[[int], str]) -> tuple[np.ndarray[Any, Any], tuple[str, ...]]:
    """Class names as numbers in sorted order (numerical order where all names are whole numbers), -1 for blanks.

    Names are compared as text, so that no two classes become one; only the ``.0`` is taken off that tables with gaps give to
    whole numbers.

    Example:
        >>> encode(["b", "", "a", "b"], where=str)
        (array([ 1, -1,  0,  1]), ('a', 'b'))
        >>> encode(["7", "007", "1_0", "10"], where=str)[1]
        ('007', '10', '1_0', '7')
    """
    texts = [None if v is None or v.strip().lower() in BLANK else v.strip() for v in values]
    known = {text for text in texts if text is not None}
    if known and all(_NUMBER.fullmatch(text) for text in known):
        row = next((i for i, text in enumerate(texts) if text is not None and not _WHOLE.fullmatch(text)), None)
        if row is not None:
            raise _no_class(where(row), texts[row])
    named = {text: text.partition(".")[0] if _WHOLE.fullmatch(text) else text for text in known}
    for row, text in enumerate(texts):
        if text is not None and text != named[text] and named[text] in known:
            raise ValueError(
                f"{where(row)} is {text}, and another is {named[text]}: the same number, written differently; write it one way"
            )
    whole = all(_INTEGER.fullmatch(name) for name in named.values())
    classes = tuple(sorted(set(named.values()), key=(lambda name: (int(name), name)) if whole else None))
    place = {name: i for i, name in enumerate(classes)}
    return np.array([-1 if text is None else place[named[text]] for text in texts], dtype=np.int64), classes


def as_text(value: Any, where: str = "the label") -> str:
    """A label out of an array as text: whole floats without their point, NaN as nothing.

    Example:
        >>> [as_text(value) for value in (2.0, float("nan"), 9007199254740993, "b")]
        ['2', '', '9007199254740993', 'b']
    """
    if isinstance(value, float):
        return "" if np.isnan(value) else str(int(value)) if value.is_integer() else str(value)
    try:
        return value.decode("utf-8") if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError:
        raise ValueError(
            f"{where} {value!r} holds bytes that are not UTF-8; save it as text, or encode it so"
        ) from None


def blank_notes(texts: Sequence[str]) -> tuple[str, ...]:
    """A remark where words were read as the absence of a label: somebody may have meant a class."""
    return tuple(f"{count} × {word!r} read as no label" for word, count in blank_words(texts).items())


def blank_words(texts: Sequence[str]) -> dict[str, int]:
    """Words that were read as the absence of a label, and how often each occurs.

    Example:
        >>> blank_words(["none", "", "mild", "none", "NA"])
        {'NA': 1, 'none': 2}
    """
    words = [text.strip() for text in texts if text.strip().lower() in BLANK - {"", "-1", "-1.0", "nan"}]
    return {word: words.count(word) for word in sorted(set(words))}


_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]+(\.0*)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")


def _no_class(culprit: str, value: Any) -> DataError:
    return DataError(
        culprit.removesuffix(": the label"),
        f"{value} is not a class: labels are whole numbers or names",
        f"numbers to predict are named with {mention('target_columns')}",
    )
