"""The paper's three claims about Table 2: UGDGNN superior or competitive, GPRGNN above APPNP, learnt filters above fixed ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from unspool.reproduce.claims import MIN_PAIRS, Claim, ClaimTest, Topic, Verdict, compare_entries, corrected
from unspool.reproduce.conditions import CLEAN
from unspool.reproduce.entries import choose
from unspool.reproduce.records import Record

#: The paper's own model, and those that it is compared with in Table 2.
OWN = "UGDGNN"
BASELINES = ("GCN", "SGC", "APPNP", "JKNet", "GCNII", "DAGNN", "GPRGNN")
LEARNT = ("JKNet", "GCNII", "GPRGNN", "UGDGNN")
FIXED = ("GCN", "SGC", "APPNP")

#: Each claim with the two sides of its comparisons. One comparison of the paper's main sentence holds where UGDGNN is better by more than
#: the seeds explain.
_CLAIMS = {
    Claim(Topic.SUPERIOR, f"{OWN} is better than another model of Table 2"): [(OWN, other) for other in BASELINES],
    Claim(Topic.GPRGNN_ABOVE_APPNP, "GPRGNN outperforms APPNP"): [("GPRGNN", "APPNP")],
    Claim(Topic.LEARNT_ABOVE_FIXED, "learnt filters outperform fixed ones"): [(a, b) for a in LEARNT for b in FIXED],
}


def accuracy_tests(records: Sequence[Record], preset: str = "paper") -> list[ClaimTest]:
    """The three claims of the paper about Table 2, on the entries of one preset.

    *UGDGNN is superior or competitive on all data sets*: UGDGNN against each of the seven other models of the table;
    :func:`superiority` puts these together set by set. *GPRGNN outperforms APPNP* in every column, and *learnt filters outperform fixed
    ones*: each of JKNet, GCNII, GPRGNN and UGDGNN against each of GCN, SGC and APPNP.

    Example:
        >>> accuracy_tests([])
        []
    """
    mine = [one for one in records if one.preset == preset and one.condition == CLEAN]
    found = {(entry.first.dataset, entry.first.model): entry for entry in choose(mine)}
    where = list(dict.fromkeys(dataset for dataset, _ in found))
    tests: list[ClaimTest] = []
    for claim, sides in _CLAIMS.items():
        there = [(d, a, b) for d in where for a, b in sides if (d, a) in found and (d, b) in found]
        tests += corrected([one for d, a, b in there for one in compare_entries(claim, found[d, a], found[d, b])])
    return tests


class Outcome(Enum):
    """What the main sentence comes to on one dataset.

    *Superior*: better than every other model, each by more than the seeds explain. *Competitive*: worse than none of them by more than
    the seeds explain, which is the weakest meaning that the word can have. It fails where another model is better by more than that.
    """

    SUPERIOR = "superior"
    COMPETITIVE = "competitive"
    FAILS = "fails"
    OPEN = "undecided"


@dataclass(frozen=True)
class Superiority:
    """The main sentence of the paper on one dataset.

    Attributes:
        dataset: where.
        better, worse: the models that UGDGNN is better and worse than; ``even``: those where the seeds explain the difference.
        few: whether some comparison has fewer pairs than decide anything.

    Example:
        >>> Superiority("cora", ("GCN", "SGC"), ("GCNII",), ()).outcome.value
        'fails'
    """

    dataset: str
    better: tuple[str, ...]
    worse: tuple[str, ...]
    even: tuple[str, ...]
    few: bool = False

    @property
    def outcome(self) -> Outcome:
        """``OPEN`` where the seeds are too few for any of the others."""
        if self.worse:
            return Outcome.FAILS
        return Outcome.OPEN if self.few else Outcome.COMPETITIVE if self.even else Outcome.SUPERIOR


def superiority(tests: Iterable[ClaimTest]) -> list[Superiority]:
    """The main sentence of the paper, dataset by dataset.

    Example:
        >>> superiority([])
        []
    """
    found: dict[str, list[ClaimTest]] = {}
    for test in _main(tests):
        found.setdefault(test.dataset, []).append(test)
    made: list[Superiority] = []
    for name, mine in found.items():
        sides = [tuple(t.comparison.b.model for t in mine if t.verdict is verdict) for verdict in Verdict]
        made.append(Superiority(name, sides[0], sides[1], sides[2], any(t.comparison.n < MIN_PAIRS for t in mine)))
    return made


@dataclass(frozen=True)
class WinCount:
    """How many comparisons of the main sentence UGDGNN wins and loses, with and without the correction for their number.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> score = {"UGDGNN": 0.83, "GCN": 0.80, "SGC": 0.85}
        >>> made = [example_record(s, model=m, test_score=v + 0.001 * (s * len(m) % 4)) for m, v in score.items() for s in range(6)]
        >>> print(WinCount.of(accuracy_tests(made)))
        of 2 comparisons UGDGNN is better in 1 and worse in 1 (p < 0.05 after Holm's correction; 1 and 1 without it)
    """

    every: int
    better: int
    worse: int
    better_uncorrected: int
    worse_uncorrected: int

    @staticmethod
    def of(tests: Iterable[ClaimTest]) -> WinCount:
        """Count the comparisons of the main sentence among some tests."""
        mine = _main(tests)
        after = [one.verdict for one in mine]
        before = [corrected([one])[0].verdict for one in mine]
        counts = [verdicts.count(v) for verdicts in (after, before) for v in (Verdict.HOLDS, Verdict.FAILS)]
        return WinCount(len(mine), *counts)

    def __str__(self) -> str:
        return (
            f"of {self.every} comparisons {OWN} is better in {self.better} and worse in {self.worse} "
            f"(p < 0.05 after Holm's correction; {self.better_uncorrected} and {self.worse_uncorrected} without it)"
        )


def _main(tests: Iterable[ClaimTest]) -> list[ClaimTest]:
    return [test for test in tests if test.claim.topic is Topic.SUPERIOR]
