"""The paper's claims about accuracy, answered with paired tests: the same seeds, and so the same splits, make pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from unspool.errors import IncompatibleError
from unspool.reproduce.cells import Cell, choose
from unspool.reproduce.results import Record
from unspool.study import Best, Comparison, Sample, Table, compare
from unspool.study.results.compare import holm

#: A difference counts where luck of the seeds explains it with less than this probability.
LEVEL = 0.05
#: Fewer pairs than this decide nothing: the interval of two or three differences is far too narrow.
LEAST = 5
#: The paper's own model, and those that it is compared with in Table 2.
OWN = "UGDGNN"
BASELINES = ("GCN", "SGC", "APPNP", "JKNet", "GCNII", "DAGNN", "GPRGNN")
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
        lower: whether less is better, as for errors and norms.
        times: what the numbers are multiplied by where they are shown: 100 for shares, which become points.
    """

    sentence: str
    dataset: str
    comparison: Comparison
    verdict: Verdict
    margin: float | None = None
    lower: bool = False
    times: float = 100.0

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
    except IncompatibleError:
        return []
    where = " ".join(part for part in (a.first.dataset, f"({a.first.variant})" * bool(a.first.variant)) if part)
    return [_judged(Answer(sentence, where, found, Verdict.OPEN, margin))]


def compare_values(
    sentence: str, where: str, a: tuple[str, Mapping[int, float]], b: tuple[str, Mapping[int, float]], *, lower: bool = False, times: float = 100.0,
) -> list[Answer]:  # fmt: skip
    """One answer to a claim about numbers that are not trials; none where fewer than two seeds make pairs.

    Args:
        sentence: the claim, that a is better.
        where: on which data.
        a, b: a name, and a number for each seed.
        lower: whether less is better.
        times: what the numbers are multiplied by where they are shown.

    Example:
        >>> few = {seed: 0.1 + 0.001 * seed for seed in range(6)}
        >>> many = {seed: 0.5 - 0.001 * seed**2 for seed in range(6)}
        >>> compare_values("rows err less", "sensor", ("rows", few), ("squares", many), lower=True)[0].verdict
        <Verdict.HOLDS: 'holds'>
    """
    try:
        found = compare(Table(()), _group(where, *a), _group(where, *b))
    except IncompatibleError:
        return []
    return [_judged(Answer(sentence, where, found, Verdict.OPEN, None, lower, times))]


def _group(where: str, name: str, values: Mapping[int, float]) -> Best:
    seeds, sample = tuple((seed,) for seed in sorted(values)), Sample(tuple(values[seed] for seed in sorted(values)))
    return Best({"model": name, "data": where}, ("seed",), seeds, sample, sample, sample)


def corrected(answers: Sequence[Answer]) -> list[Answer]:
    """The answers to one claim with p-values corrected for making so many comparisons (Holm's method)."""
    values = holm([answer.comparison.p_value for answer in answers])
    pairs = zip(answers, values, strict=True)
    return [_judged(replace(a, comparison=replace(a.comparison, corrected=p))) for a, p in pairs]


def _judged(answer: Answer) -> Answer:
    found, p = answer.comparison, answer.comparison.corrected
    sure = (found.p_value if p is None else p) < LEVEL
    above = found.difference < 0 if answer.lower else found.difference > 0
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
    """The three claims of the paper about Table 2, on the cells of one preset.

    *UGDGNN is superior or competitive on all data sets*: UGDGNN against each of the seven other models of the table; :func:`standings`
    puts these together set by set. *GPRGNN outperforms APPNP* in every column, and *learnt filters outperform fixed ones*: each of JKNet,
    GCNII, GPRGNN and UGDGNN against each of GCN, SGC and APPNP.

    Example:
        >>> accuracy_answers([])
        []
    """
    mine = [row for row in rows if row.preset == preset and not row.variant]
    found = {(cell.first.dataset, cell.first.model): cell for cell in choose(mine)}
    where = list(dict.fromkeys(dataset for dataset, _ in found))
    pairs = {
        SUPERIOR: [(OWN, other) for other in BASELINES],
        "GPRGNN outperforms APPNP": [("GPRGNN", "APPNP")],
        "learnt filters outperform fixed ones": [(a, b) for a in LEARNT for b in FIXED],
    }
    answers: list[Answer] = []
    for sentence, sides in pairs.items():
        given = [(d, a, b) for d in where for a, b in sides if (d, a) in found and (d, b) in found]
        answers += corrected([one for d, a, b in given for one in compare_cells(sentence, found[d, a], found[d, b])])
    return answers


#: One comparison of the paper's main sentence: it holds where UGDGNN is better by more than the seeds explain.
SUPERIOR = f"{OWN} is better than another model of Table 2"


@dataclass(frozen=True)
class Standing:
    """What the paper's main sentence comes to on one data set.

    *Superior*: better than every other model, each by more than the seeds explain. *Competitive*: worse than none of them by more than
    the seeds explain, which is the weakest meaning that the word can have. The sentence fails where another model is better by more than
    that.

    Attributes:
        dataset: where.
        better, worse: the models that UGDGNN is better and worse than; ``even``: those that it cannot be told from.
        few: whether some comparison has fewer pairs than decide anything.

    Example:
        >>> print(Standing("cora", ("GCN", "SGC"), ("GCNII",), ()))
        cora: fails: better than 2 of 3 (GCN, SGC), worse than 1 (GCNII)
    """

    dataset: str
    better: tuple[str, ...]
    worse: tuple[str, ...]
    even: tuple[str, ...]
    few: bool = False

    @property
    def word(self) -> str:
        """``superior``, ``competitive`` or ``fails``; ``cannot be told`` where the seeds are too few for any of them."""
        if self.worse:
            return "fails"
        return "cannot be told" if self.few else "competitive" if self.even else "superior"

    def __str__(self) -> str:
        every = len(self.better) + len(self.worse) + len(self.even)
        told = [f"better than {len(self.better)} of {every}{_names(self.better)}"]
        told += [f"worse than {len(self.worse)}{_names(self.worse)}"] if self.worse else []
        told += [f"not to be told from {len(self.even)}{_names(self.even)}"] if self.even else []
        return f"{self.dataset}: {self.word}: {', '.join(told)}"


def standings(answers: Iterable[Answer]) -> list[Standing]:
    """The main sentence of the paper, data set by data set, from the answers to :data:`SUPERIOR`.

    Example:
        >>> standings([])
        []
    """
    found: dict[str, list[Answer]] = {}
    for answer in answers:
        if answer.sentence == SUPERIOR:
            found.setdefault(answer.dataset, []).append(answer)
    made: list[Standing] = []
    for name, mine in found.items():
        sides = [
            tuple(one.comparison.b.model for one in mine if one.verdict is verdict)
            for verdict in (Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN)
        ]
        made.append(Standing(name, sides[0], sides[1], sides[2], any(one.comparison.n < LEAST for one in mine)))
    return made


def told_in_all(answers: Iterable[Answer]) -> str:
    """The comparisons behind the main sentence in one line, with and without the correction for their number.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> score = {"UGDGNN": 0.83, "GCN": 0.80, "SGC": 0.85}
        >>> rows = [example_record(s, model=m, test_score=v + 0.001 * (s * len(m) % 4)) for m, v in score.items() for s in range(6)]
        >>> print(told_in_all(accuracy_answers(rows)))
        of 2 comparisons UGDGNN is better in 1 and worse in 1 (p < 0.05 after Holm's correction; 1 and 1 without it)
    """
    mine = [answer for answer in answers if answer.sentence == SUPERIOR]
    after = [sum(one.verdict is verdict for one in mine) for verdict in (Verdict.HOLDS, Verdict.FAILS)]
    single = [corrected([one])[0].verdict for one in mine]
    before = [single.count(verdict) for verdict in (Verdict.HOLDS, Verdict.FAILS)]
    return (
        f"of {len(mine)} comparisons {OWN} is better in {after[0]} and worse in {after[1]} "
        f"(p < {LEVEL:g} after Holm's correction; {before[0]} and {before[1]} without it)"
    )


def _names(models: Sequence[str]) -> str:
    return f" ({', '.join(models)})" if models else ""


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
