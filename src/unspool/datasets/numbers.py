"""Names of nodes that are whole numbers, kept as numbers: a text for every end of an edge would take a hundred times the memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

Array = np.ndarray[Any, Any]


class Numbers(Sequence[str]):
    """A sequence of names that reads as texts and holds int64.

    Example:
        >>> names = Numbers(np.array([3, 10, 3]))
        >>> names[1], list(names[1:]), "10" in names, len(names)
        ('10', ['10', '3'], True, 3)
    """

    def __init__(self, values: Array) -> None:
        self.values = values.astype(np.int64, copy=False)

    def __len__(self) -> int:
        return self.values.size

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Numbers: ...
    def __getitem__(self, index: int | slice) -> str | Numbers:
        return Numbers(self.values[index]) if isinstance(index, slice) else str(self.values[index])

    def __iter__(self) -> Iterator[str]:
        for start in range(0, self.values.size, 1 << 16):
            yield from map(str, self.values[start : start + (1 << 16)].tolist())

    def __contains__(self, name: object) -> bool:
        try:
            number = int(str(name))
            return str(number) == name and bool((self.values == number).any())
        except (ValueError, OverflowError):
            return False


def names_in_order(*ends: Sequence[str]) -> tuple[str, ...] | None:
    """The different names among numbered ends, from the smallest number on; None where other words are needed for that.

    Example:
        >>> names_in_order(Numbers(np.array([10, 2])), Numbers(np.array([2, 7])))
        ('2', '7', '10')
    """
    values = [side.values for side in ends if isinstance(side, Numbers)]
    if len(values) < len(ends) or any(side.size and int(side.min()) < 0 for side in values):
        return None
    return tuple(map(str, np.unique(np.concatenate([np.unique(side) for side in values])).tolist()))


def numbered_places(names: Sequence[str], place: Mapping[str, int]) -> Array | None:
    """Where numbered nodes stand, looked up once per node; None where one has no place, or where names are texts.

    Example:
        >>> numbered_places(Numbers(np.array([7, 7, 5])), {"5": 0, "7": 1}).tolist()
        [1, 1, 0]
    """
    if not isinstance(names, Numbers):
        return None
    different, back = np.unique(names.values, return_inverse=True)
    found = [place.get(str(number), -1) for number in different.tolist()]
    return None if -1 in found else np.array(found, dtype=np.int64)[back]
