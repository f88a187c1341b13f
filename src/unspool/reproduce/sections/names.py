"""How datasets and models are written, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unspool.report import Tone
from unspool.reproduce.entries import Entry, Standing
from unspool.theory.printed_tables import ACCURACY

#: How datasets are written, in the order of the paper, then those of the heterophilous sets.
DATASET_TITLES = {
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "cs": "CS",
    "physics": "Physics",
    "photo": "Photo",
    "arxiv": "ArXiv",
    "texas": "Texas",
    "wisconsin": "Wisconsin",
    "cornell": "Cornell",
    "actor": "Actor",
    "chameleon": "Chameleon",
    "squirrel": "Squirrel",
    "chameleon_filtered": "Chameleon, filtered",
    "squirrel_filtered": "Squirrel, filtered",
    "cora_metattack": "Cora, attacked",
    "citeseer_metattack": "CiteSeer, attacked",
    "sensor": "Sensors",
}
DATASET_ORDER = tuple(DATASET_TITLES)

#: Models in the order of the paper's Table 2, then those that it leaves out.
MODEL_ORDER = (*ACCURACY, "AirGNN", "PPNP", "MLP")

#: The colour of a standing; the word says the same.
STANDING_TONES = {Standing.ABOVE: Tone.BETTER, Standing.WITHIN: Tone.NEAR, Standing.BELOW: Tone.WORSE}


def order_of(name: str, order: Sequence[str]) -> tuple[int, str]:
    """Where a name stands in a known order; unknown ones come last, by name.

    Example:
        >>> sorted(["Zeta", "SGC", "GCN"], key=lambda name: order_of(name, MODEL_ORDER))
        ['GCN', 'SGC', 'Zeta']
    """
    return (list(order).index(name) if name in order else len(order), name)


def in_order(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Each name once, in a known order.

    Example:
        >>> in_order(["SGC", "GCN", "SGC"], MODEL_ORDER)
        ['GCN', 'SGC']
    """
    return sorted(set(names), key=lambda name: order_of(name, order))


def dataset_title(dataset: str) -> str:
    """How a dataset is written.

    Example:
        >>> dataset_title("citeseer"), dataset_title("mine")
        ('CiteSeer', 'mine')
    """
    return DATASET_TITLES.get(dataset, dataset)


def entry_order(entry: Entry) -> tuple[int | str, ...]:
    """Sorts entries by model, then by dataset."""
    return (*order_of(entry.first.model, MODEL_ORDER), *order_of(entry.first.dataset, DATASET_ORDER))
