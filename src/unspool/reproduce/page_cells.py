"""How cells stand on a page: their names, their order, and how ours compares with the paper's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import Enum

from unspool.models.preset_tables import ACCURACY
from unspool.report.text import Tone
from unspool.reproduce.cells import Cell

#: How datasets are written, in the order of the paper, then those of the heterophilous sets.
NAMES = {
    "cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed", "cs": "CS", "physics": "Physics", "photo": "Photo",
    "arxiv": "ArXiv", "texas": "Texas", "wisconsin": "Wisconsin", "cornell": "Cornell", "actor": "Actor",
    "chameleon": "Chameleon", "squirrel": "Squirrel", "chameleon_filtered": "Chameleon, filtered",
    "squirrel_filtered": "Squirrel, filtered", "cora_metattack": "Cora, attacked", "citeseer_metattack": "CiteSeer, attacked",
    "sensor": "Sensors",
}  # fmt: skip

#: Models in the order of the paper's Table 2, then those that it leaves out.
ORDER = (*ACCURACY, "AirGNN", "PPNP", "MLP")


class Standing(Enum):
    """How a mean of ours stands to a printed one, measured in the printed standard deviation."""

    ABOVE = "above"
    WITHIN = "within 1 std"
    BELOW = "below"

    @property
    def tone(self) -> Tone:
        """The colour; the word says the same."""
        return {Standing.ABOVE: Tone.BETTER, Standing.WITHIN: Tone.NEAR, Standing.BELOW: Tone.WORSE}[self]


def gap(cell: Cell) -> float | None:
    """Ours less the paper's (:attr:`Cell.difference`); None where there is none.

    Example:
        >>> from unspool.reproduce.cells import choose
        >>> from unspool.reproduce.results import example_record
        >>> gap(choose([example_record(seed) for seed in range(5)])[0])
        -0.24
    """
    return None if math.isnan(cell.difference) else cell.difference


def standing(cell: Cell) -> Standing | None:
    """Above or below the printed mean by more than the printed standard deviation, or within it.

    Example:
        >>> from unspool.reproduce.cells import choose
        >>> from unspool.reproduce.results import example_record
        >>> standing(choose([example_record(seed) for seed in range(5)])[0])
        <Standing.WITHIN: 'within 1 std'>
    """
    if cell.printed is None or cell.met is None:
        return None
    if not cell.met:
        return Standing.BELOW
    return Standing.ABOVE if cell.difference > cell.printed[1] else Standing.WITHIN


def place(name: str, order: Sequence[str]) -> tuple[int, str]:
    """Where a name stands in a known order; strangers come last, by name.

    Example:
        >>> sorted(["Zeta", "SGC", "GCN"], key=lambda name: place(name, ORDER))
        ['GCN', 'SGC', 'Zeta']
    """
    return (list(order).index(name) if name in order else len(order), name)


def distinct(names: Iterable[str], order: Iterable[str]) -> list[str]:
    """Each name once, in a known order.

    Example:
        >>> distinct(["SGC", "GCN", "SGC"], ORDER)
        ['GCN', 'SGC']
    """
    known = tuple(order)
    return sorted(set(names), key=lambda name: place(name, known))


def called(dataset: str) -> str:
    """How a dataset is written.

    Example:
        >>> called("citeseer"), called("mine")
        ('CiteSeer', 'mine')
    """
    return NAMES.get(dataset, dataset)


def signed(number: float) -> str:
    """A difference with its sign.

    Example:
        >>> signed(0.4), signed(-0.25), signed(0.0)
        ('+0.40', '−0.25', '±0.00')
    """
    return f"{'+' if number > 0 else '−' if number < 0 else '±'}{abs(number):.2f}"
