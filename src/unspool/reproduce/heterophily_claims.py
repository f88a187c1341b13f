"""Later models on graphs whose neighbours differ, beside the paper's: not a sentence of the paper, but of this library's documentation."""

from __future__ import annotations

from collections.abc import Sequence

from unspool.models import PAPER_MODELS
from unspool.reproduce.claims import Claim, ClaimTest, Topic, compare_entries, corrected
from unspool.reproduce.entries import Entry, choose
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.records import Record

#: The models of the paper: which of them stands for all on a set is chosen by validation.
OLDER = frozenset(kind.__name__ for kind in PAPER_MODELS)


def heterophily_tests(records: Sequence[Record]) -> list[ClaimTest]:
    """Whether models with learnt signs are better than those with learnt hops, and than the best of the paper's models; Holm over the sets.

    Where the splits explain the difference the verdict is open, and the two are level.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> score = {"SignedGNN": 0.90, "GPRGNN": 0.80, "UGDGNN": 0.80, "GCN": 0.70}
        >>> records = [
        ...     example_record(s, experiment="heterophily", dataset="texas", preset="default", model=m, valid_score=v, test_score=v + 0.001 * (s * len(m) % 7))
        ...     for m, v in score.items() for s in range(6)
        ... ]
        >>> [(test.claim.text, test.verdict.value) for test in heterophily_tests(records)]
        [('SignedGNN is better than GPRGNN', 'holds'), ('SignedGNN is better than UGDGNN', 'holds'), ('SignedGNN is better than the best older model', 'holds')]
    """
    how = read_experiment("heterophily")
    found = {(entry.first.dataset, entry.first.model): entry for entry in choose(records)}
    datasets = list(dict.fromkeys(dataset for dataset, _ in found))
    tests: list[ClaimTest] = []
    for new in how["signed"]:
        own = {data: found[data, new] for data in datasets if (data, new) in found}
        for old in how["against"]:
            claim = Claim(Topic.SIGNS_HELP, f"{new} is better than {old}")
            sides = [(entry, found[data, old]) for data, entry in own.items() if (data, old) in found]
            tests += corrected([test for a, b in sides for test in compare_entries(claim, a, b)])
        claim = Claim(Topic.SIGNS_ABOVE_ALL, f"{new} is better than the best older model")
        best = {data: _best_older([e for (name, _), e in found.items() if name == data]) for data in own}
        sides = [(own[data], entry) for data, entry in best.items() if entry is not None]
        tests += corrected([test for a, b in sides for test in compare_entries(claim, a, b)])
    return tests


def _best_older(entries: Sequence[Entry]) -> Entry | None:
    """Of the paper's models on one set the one that validation prefers."""
    older = [entry for entry in entries if entry.first.model in OLDER]
    return max(older, key=lambda entry: entry.valid.mean, default=None)
