"""What an estimator is asked to learn: the loss by name, several labels per node, an order of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unspool.datasets.indicator import read_indicator
from unspool.errors import InputError
from unspool.train import TaskKind

Array = np.ndarray[Any, Any]


def read_kind(given: Any, allowed: Sequence[TaskKind]) -> TaskKind | None:
    """The loss that was named, by a :class:`~unspool.train.TaskKind` or its value; None where none was.

    Example:
        >>> read_kind("counts", [TaskKind.NUMBERS, TaskKind.COUNTS])
        <TaskKind.COUNTS: 'counts'>
    """
    found = next((kind for kind in allowed if given is kind or given == kind.value), None)
    if found is None and given is not None:
        raise InputError("loss", given, f"one of {', '.join(kind.value for kind in allowed)}")
    return found


def read_several(y: Any, nodes: int, said: bool) -> Array:
    """Several labels per node as float64 of shape (nodes, labels): 1, 0, or NaN where it is not known.

    Example:
        >>> read_several([[1, 0], [1, 1], [float("nan"), 0]], 3, said=False)[2]
        array([nan,  0.])
    """
    table = read_indicator(y, nodes, said, name="y")[0].double().numpy()
    if np.isnan(table).all():
        raise ValueError("no node has a label, so there is nothing to learn from: give at least one yes and one no")
    return table


def put_in_order(codes: Array, classes: Array, order: Any) -> tuple[Array, Array]:
    """Class numbers and classes from the lowest to the highest.

    Args:
        codes: a number into ``classes`` per node, -1 for none.
        classes: as they are sorted.
        order: as they are to be; None where numbers tell themselves.

    Example:
        >>> put_in_order(np.array([0, 1, -1]), np.array(["high", "low"]), ["low", "high"])
        (array([ 1,  0, -1]), array(['low', 'high'], dtype='<U4'))
    """
    known = classes.tolist()
    if order is None:
        if classes.dtype.kind not in "iufb":
            told = ", ".join(map(str, known))
            raise InputError(
                "class_order", None, f"the classes from the lowest to the highest, as names do not tell: {told}"
            )
        return codes, classes
    wanted = list(order)
    if len(wanted) != len(known) or any(name not in known for name in wanted) or len(set(wanted)) != len(wanted):
        raise InputError("class_order", wanted, f"every class once, and y has {', '.join(map(str, known))}")
    place = np.array([*(wanted.index(name) for name in known), -1])
    return place[codes], classes[[known.index(name) for name in wanted]]
