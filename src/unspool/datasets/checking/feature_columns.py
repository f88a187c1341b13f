"""Columns of features that are not what they seem: constant, numbers of nodes, or the answer in disguise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from torch import Tensor

from unspool.datasets.checking.finding import Finding, Kind
from unspool.datasets.features import to_numpy
from unspool.datasets.one_hot import category_name

if TYPE_CHECKING:
    from unspool.datasets.dataset import Dataset

Array = np.ndarray[Any, Any]

#: So many cells are looked at; of wider tables the first columns.
MOST_CELLS = 200_000_000
#: Fewer nodes than this may fit anything by chance.
FEWEST = 20
_NUMBERING = re.compile(r"(^|[ _\-])(id|ids|index|idx|key|nr|no|number)$|^unnamed", re.IGNORECASE)


def column_findings(data: Dataset) -> list[Finding]:
    """What is wrong with single columns, by their names in the file.

    Example:
        >>> import torch
        >>> from unspool import datasets
        >>> team = torch.arange(30) % 2
        >>> x = torch.stack([torch.rand(30), 7.0 * team, torch.ones(30)], dim=1)
        >>> data = datasets.from_tensors([[0], [1]], x, team, feature_names=["age", "code", "one"], directed=False)
        >>> [(found.kind.name, found.about) for found in column_findings(data)]
        [('LEAK', 'code'), ('CONSTANT', 'one')]
    """
    origin = {category_name(column, one): column for column, held in data.categories.items() for one in held}
    names = data.feature_names
    answers = _answers(data)
    found = dict[tuple[Kind, str], Finding]()
    for place, values in enumerate(_columns(to_numpy(data.features))):
        name = str(place) if names is None else names[place]
        for finding in _of_column(name, values, answers, plain=name not in origin):
            about = origin.get(name, name)
            found.setdefault(
                (finding.kind, about), Finding(finding.kind, about, finding.count, finding.of, 0.0, finding.examples)
            )
    return [*found.values(), *scale_findings(data)]


def determines(values: Array, classes: Array) -> bool:
    """Whether values tell the class of all nodes: each value has one class, or each class an interval of its own.

    Example:
        >>> import numpy as np
        >>> classes = np.arange(40) % 2
        >>> determines(classes * 3.0, classes), determines(np.arange(40.0), classes)
        (True, False)
    """
    sizes = np.bincount(classes)
    sizes = sizes[sizes > 0]
    if classes.size < FEWEST or sizes.size < 2 or sizes.min() < 3:
        return False
    order = np.lexsort((classes, values))
    v, c = values[order], classes[order]
    new = np.flatnonzero(np.concatenate([[True], v[1:] != v[:-1]]))
    pure = np.minimum.reduceat(c, new) == np.maximum.reduceat(c, new)
    if not pure.all():
        return False
    few = new.size <= max(2 * sizes.size, classes.size // 4)
    return bool(few or 1 + int((c[1:] != c[:-1]).sum()) == sizes.size)


def _of_column(name: str, values: Array, answers: tuple[Array, Array] | None, plain: bool) -> Iterator[Finding]:
    if values.size and (values == values[0]).all():
        if values.size > 1 and plain:
            yield Finding(Kind.CONSTANT, name, examples=(f"{values[0]:g}",))
        return
    if answers is not None:
        known, aims = answers
        held = values[known]
        is_leak = determines(held, aims) if aims.dtype.kind == "i" else _follows(held, aims)
        if is_leak:
            yield Finding(Kind.LEAK, name, int(aims.size), values.size)
            return
    if plain and values.size >= FEWEST and _numbers_nodes(name, values):
        yield Finding(Kind.ID, name, values.size, values.size)


def _follows(values: Array, aims: Array) -> bool:
    """Whether numbers to predict are a column times a number, plus another."""
    if values.size < FEWEST or values.std() == 0 or aims.std() == 0:
        return False
    return abs(float(np.corrcoef(values, aims)[0, 1])) > 0.9999


def _numbers_nodes(name: str, values: Array) -> bool:
    whole = np.array_equal(values, np.floor(values))
    if not whole or np.unique(values).size < values.size:
        return False
    return bool(_NUMBERING.search(name)) or float(values.max() - values.min()) + 1 == values.size


def _answers(data: Dataset) -> tuple[Array, Array] | None:
    """The nodes whose answer is known, and the answers: classes, or the first number to predict."""
    if data.targets is not None:
        values = data.targets[:, 0].cpu().double().numpy()
        known = np.isfinite(values)
        return known, values[known]
    labels = data.labels.cpu().numpy()
    known = labels >= 0
    return (known, labels[known].astype(np.int64)) if known.any() else None


def _columns(features: Any) -> Iterator[Array]:
    rows, columns = features.shape
    many = min(columns, max(1, MOST_CELLS // max(rows, 1)))
    held = features if isinstance(features, np.ndarray) else scipy.sparse.csc_array(features)
    for place in range(many):
        if isinstance(held, np.ndarray):
            yield held[:, place].astype(np.float64)
            continue
        dense, (a, b) = np.zeros(rows), held.indptr[place : place + 2]
        dense[held.indices[a:b]] = held.data[a:b]
        yield dense


def scale_findings(data: Dataset) -> list[Finding]:
    """A remark where features are far apart in size: in how much they vary, or in how large they are where they are not zero.

    Years vary little, and are a thousand times as large as words of 0 and 1: nothing is learnt from the words beside them.

    Example:
        >>> from unspool import datasets
        >>> rows = [[2001.0, 0.0], [2003.0, 1.0], [2002.0, 1.0]]
        >>> data = datasets.from_tensors([[0], [1]], rows, feature_names=["year", "word"], directed=False)
        >>> [(found.about, found.examples, round(found.share)) for found in scale_findings(data)]
        [('year', ('word',), 2002)]
    """
    names = data.feature_names
    if names is None or data.features.shape[0] == 0:
        return []
    columns = list(_columns(to_numpy(data.features)))
    spread = np.array([column.std() for column in columns])
    size = np.array([np.sqrt(np.square(column).sum() / max(np.count_nonzero(column), 1)) for column in columns])
    moving = np.flatnonzero(spread > 0)
    if moving.size < 2:
        return []
    # Trap: rare words of 0 and 1 vary little and are what they should be, so the spread is for tables that are dense.
    measures = (spread, size) if isinstance(data.features, Tensor) else (size,)
    ratio, wide, thin = max(
        (float(m[moving].max() / m[moving].min()), int(moving[m[moving].argmax()]), int(moving[m[moving].argmin()])) for m in measures
    )  # fmt: skip
    return [Finding(Kind.SCALES, names[wide], share=ratio, examples=(names[thin],))] if ratio > 100 else []
