"""The paper's claims about accuracy, answered with paired tests: the same seeds, and so the same splits, make pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from unspool.refusal import Refusal
from unspool.reproduce.cells import Cell, choose
from unspool.reproduce.results import Record
from unspool.study import Comparison, Table, compare
from unspool.study.results.compare import holm

#: A difference counts where luck of the seeds explains it with less than this probability.
LEVEL = 0.05
#: Fewer pairs than this decide nothing: the interval of two or three differences is far too narrow.
LEAST = 5
LEARNT = ("JKNet", "GCNII", "GPRGNN", "UGDGNN")
FIXED = ("GCN", "SGC", "APPNP")


class Verdict(Enum):
    """What the pairs say: ``OPEN`` where the seeds explain the difference, or are too few."""

    HOLDS = "holds"
    FAILS = "fails"
    OPEN = "cannot be told"


@dataclass(frozen=True)
class Answer:
    """One claim on one dataset.

    Attributes:
        sentence: the claim.
        dataset: where; with the variant of the data, if there is one.
        comparison: the two cells; ``corrected`` in it after all answers to the claim are known.
        verdict: what it says about the claim.
        margin: None for claims that the first side is better; a number for claims that it is not better by more than that.
    """

    sentence: str
    dataset: str
    comparison: Comparison
    verdict: Verdict
    margin: float | None = None

    def __str__(self) -> str:
        return f"{self.sentence}: {self.verdict.value}: {self.comparison}"


def compare_cells(sentence: str, a: Cell, b: Cell, margin: float | None = None) -> list[Answer]:
    """One answer to a claim; none where fewer than two seeds make pairs.

    Args:
        sentence: the claim.
        a, b: the cells that are compared.
        margin: None for claims that a is better. For claims that a is not better, the share that would not matter: they hold where the
            whole interval lies below it, and fail where a is better by more than the seeds explain. A difference that merely
            cannot be seen proves nothing.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> high = [example_record(seed, model="GPRGNN", test_score=0.9 + 0.001 * seed) for seed in range(6)]
        >>> low = [example_record(seed, model="APPNP", test_score=0.8 - 0.001 * seed**2) for seed in range(6)]
        >>> compare_cells("GPRGNN beats APPNP", choose(high)[0], choose(low)[0])[0].verdict
        <Verdict.HOLDS: 'holds'>
    """
    try:
        found = compare(Table(()), a.group, b.group)
    except Refusal:
        return []
    where = " ".join(part for part in (a.first.dataset, f"({a.first.variant})" * bool(a.first.variant)) if part)
    return [_judged(Answer(sentence, where, found, Verdict.OPEN, margin))]


def corrected(answers: Sequence[Answer]) -> list[Answer]:
    """The answers to one claim with p-values corrected for making so many comparisons (Holm's method)."""
    values = holm([answer.comparison.p_value for answer in answers])
    pairs = zip(answers, values, strict=True)
    return [_judged(replace(a, comparison=replace(a.comparison, corrected=p))) for a, p in pairs]


def _judged(answer: Answer) -> Answer:
    found, p = answer.comparison, answer.comparison.corrected
    sure = (found.p_value if p is None else p) < LEVEL
    above = found.difference > 0
    if found.n < LEAST:
        verdict = Verdict.OPEN
    elif answer.margin is None:
        verdict = Verdict.OPEN if not sure else Verdict.HOLDS if above else Verdict.FAILS
    elif found.high <= answer.margin:
        verdict = Verdict.HOLDS
    else:
        verdict = Verdict.FAILS if sure and above else Verdict.OPEN
    return replace(answer, verdict=verdict)


def accuracy_answers(rows: Sequence[Record], preset: str = "paper") -> list[Answer]:
    """The two claims of the paper about Table 2, on the cells of one preset.

    *GPRGNN outperforms APPNP* in every column, and *learnt filters outperform fixed ones*: each of JKNet, GCNII, GPRGNN and
    UGDGNN against each of GCN, SGC and APPNP.

    Example:
        >>> accuracy_answers([])
        []
    """
    mine = [row for row in rows if row.preset == preset and not row.variant]
    found = {(cell.first.dataset, cell.first.model): cell for cell in choose(mine)}
    where = list(dict.fromkeys(dataset for dataset, _ in found))
    pairs = {
        "GPRGNN outperforms APPNP": [("GPRGNN", "APPNP")],
        "learnt filters outperform fixed ones": [(a, b) for a in LEARNT for b in FIXED],
    }
    answers: list[Answer] = []
    for sentence, sides in pairs.items():
        given = [(d, a, b) for d in where for a, b in sides if (d, a) in found and (d, b) in found]
        answers += corrected([one for d, a, b in given for one in compare_cells(sentence, found[d, a], found[d, b])])
    return answers


@dataclass(frozen=True)
class Count:
    """How often a claim holds, fails, and cannot be told.

    Example:
        >>> print(Count("depth helps", 3, 1, 2))
        depth helps: holds in 3 of 6 comparisons, fails in 1, cannot be told in 2
    """

    sentence: str
    holds: int
    fails: int
    open: int

    def __str__(self) -> str:
        every = self.holds + self.fails + self.open
        return (
            f"{self.sentence}: holds in {self.holds} of {every} comparisons, fails in {self.fails}, "
            f"cannot be told in {self.open}"
        )


def counted(answers: Iterable[Answer]) -> list[Count]:
    """The answers to each claim, counted."""
    held: dict[str, list[Verdict]] = {}
    for answer in answers:
        held.setdefault(answer.sentence, []).append(answer.verdict)
    return [
        Count(sentence, *(verdicts.count(v) for v in (Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN)))
        for sentence, verdicts in held.items()
    ]
