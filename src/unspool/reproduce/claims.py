"""The paper's claims, answered with paired tests: the same seeds, and so the same splits, make pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from unspool.errors import IncompatibleError
from unspool.reproduce.conditions import CLEAN, Condition
from unspool.reproduce.entries import Entry
from unspool.study import Best, Comparison, Sample, TrialTable, compare
from unspool.study.results.comparison import holm

#: A difference counts where luck of the seeds explains it with less than this probability.
LEVEL = 0.05
#: Fewer pairs than this decide nothing: the interval of two or three differences is far too narrow.
MIN_PAIRS = 5


class Verdict(Enum):
    """What the pairs say: ``OPEN`` where the seeds explain the difference, or are too few."""

    HOLDS = "holds"
    FAILS = "fails"
    OPEN = "undecided"


class Topic(Enum):
    """What a claim is about."""

    SUPERIOR = auto()
    GPRGNN_ABOVE_APPNP = auto()
    LEARNT_ABOVE_FIXED = auto()
    DEPTH_HELPS = auto()
    FEW_LAYERS_SUFFICE = auto()
    GCN_DEGRADES = auto()
    GCNII_DOES_NOT_DEGRADE = auto()
    GCNII_ABOVE_GCN_WHEN_DEEP = auto()
    LOSES_LESS = auto()
    ERRS_LESS = auto()
    NONLINEARITY_HURTS = auto()
    DEPTH_COSTS_MORE = auto()
    SMALL_WEIGHTS = auto()
    SMALL_HOPS = auto()
    SMALL_GAP = auto()
    GENERALISES = auto()
    SIGNS_HELP = auto()
    SIGNS_ABOVE_ALL = auto()


@dataclass(frozen=True)
class Claim:
    """A sentence about two sides, the first of which is said to be better.

    Attributes:
        topic: what it is about.
        text: the sentence.
        margin: None for claims that the first side is better. For claims that it is not better, the share that would not matter: they
            hold where the whole interval lies below it, and fail where it is better by more than the seeds explain. A
            difference that merely cannot be seen proves nothing.
        lower: whether less is better, as for errors and norms.
        scale: what the numbers are multiplied by where they are shown: 100 for shares, which become points.
    """

    topic: Topic
    text: str
    margin: float | None = None
    lower: bool = False
    scale: float = 100.0


@dataclass(frozen=True)
class ClaimTest:
    """One claim on one dataset.

    Attributes:
        claim: what is tested.
        dataset: where; ``condition``: what was varied there, where something was.
        comparison: the two sides; ``corrected`` in it after all tests of the claim are known.
        verdict: what it says about the claim.
    """

    claim: Claim
    dataset: str
    condition: Condition | None
    comparison: Comparison
    verdict: Verdict = Verdict.OPEN

    def __str__(self) -> str:
        return f"{self.claim.text}: {self.verdict.value}: {self.comparison}"


def compare_entries(claim: Claim, a: Entry, b: Entry) -> list[ClaimTest]:
    """One test of a claim; none where fewer than two seeds make pairs.

    Example:
        >>> from unspool.reproduce.entries import choose
        >>> from unspool.reproduce.records import example_record
        >>> high = [example_record(seed, model="GPRGNN", test_score=0.9 + 0.001 * seed) for seed in range(6)]
        >>> low = [example_record(seed, model="APPNP", test_score=0.8 - 0.001 * seed**2) for seed in range(6)]
        >>> claim = Claim(Topic.GPRGNN_ABOVE_APPNP, "GPRGNN outperforms APPNP")
        >>> compare_entries(claim, choose(high)[0], choose(low)[0])[0].verdict
        <Verdict.HOLDS: 'holds'>
    """
    condition = a.first.condition
    return _tested(claim, a.first.dataset, None if condition == CLEAN else condition, a.group, b.group)


def compare_values(
    claim: Claim,
    dataset: str,
    condition: Condition | None,
    a: tuple[str, Mapping[int, float]],
    b: tuple[str, Mapping[int, float]],
) -> list[ClaimTest]:
    """One test of a claim about numbers that are not scores of trials; none where fewer than two seeds make pairs.

    Args:
        claim: that a is better.
        dataset, condition: where.
        a, b: a name, and a number for each seed.

    Example:
        >>> few = {seed: 0.1 + 0.001 * seed for seed in range(6)}
        >>> many = {seed: 0.5 - 0.001 * seed**2 for seed in range(6)}
        >>> claim = Claim(Topic.ERRS_LESS, "rows err less", lower=True)
        >>> compare_values(claim, "sensor", None, ("rows", few), ("squares", many))[0].verdict
        <Verdict.HOLDS: 'holds'>
    """
    return _tested(claim, dataset, condition, _group(dataset, *a), _group(dataset, *b))


def _group(dataset: str, name: str, values: Mapping[int, float]) -> Best:
    seeds, sample = tuple((seed,) for seed in sorted(values)), Sample(tuple(values[seed] for seed in sorted(values)))
    return Best({"model": name, "data": dataset}, ("seed",), seeds, sample, sample, sample)


def _tested(claim: Claim, dataset: str, condition: Condition | None, a: Best, b: Best) -> list[ClaimTest]:
    try:
        found = compare(TrialTable(()), a, b)
    except IncompatibleError:
        return []
    return [_judged(ClaimTest(claim, dataset, condition, found))]


def corrected(tests: Sequence[ClaimTest]) -> list[ClaimTest]:
    """The tests of one claim with p-values corrected for making so many comparisons (Holm's method)."""
    values = holm([one.comparison.p_value for one in tests])
    pairs = zip(tests, values, strict=True)
    return [_judged(replace(one, comparison=replace(one.comparison, corrected=p))) for one, p in pairs]


def _judged(test: ClaimTest) -> ClaimTest:
    found, p, claim = test.comparison, test.comparison.corrected, test.claim
    sure = (found.p_value if p is None else p) < LEVEL
    better = found.difference < 0 if claim.lower else found.difference > 0
    if found.n < MIN_PAIRS:
        verdict = Verdict.OPEN
    elif claim.margin is None:
        verdict = Verdict.OPEN if not sure else Verdict.HOLDS if better else Verdict.FAILS
    elif found.high <= claim.margin:
        verdict = Verdict.HOLDS
    else:
        verdict = Verdict.FAILS if sure and better else Verdict.OPEN
    return replace(test, verdict=verdict)


@dataclass(frozen=True)
class Count:
    """How often a claim holds, fails, and is undecided."""

    claim: Claim
    holds: int
    fails: int
    open: int

    @property
    def every(self) -> int:
        """How many comparisons there are."""
        return self.holds + self.fails + self.open


def count_verdicts(tests: Iterable[ClaimTest]) -> list[Count]:
    """The tests of each claim, counted.

    Example:
        >>> count_verdicts([])
        []
    """
    held: dict[Claim, list[Verdict]] = {}
    for one in tests:
        held.setdefault(one.claim, []).append(one.verdict)
    return [Count(claim, *(verdicts.count(v) for v in Verdict)) for claim, verdicts in held.items()]
