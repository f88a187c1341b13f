"""The paper's claims on the page: paired tests on our own trials, counted and listed."""

from __future__ import annotations

from collections.abc import Sequence

from unspool.report import Block, Column, Folded, Mark, Paragraph, Table, Tone
from unspool.report import Cell as Shown
from unspool.reproduce.after import AFTER
from unspool.reproduce.claims import LEAST, Answer, Verdict, counted, standings, told_in_all
from unspool.reproduce.page_cells import NAMES, called, place, signed

_TONES = {Verdict.HOLDS: Tone.BETTER, Verdict.FAILS: Tone.WORSE, Verdict.OPEN: Tone.NEAR}


def answers_blocks(answers: Sequence[Answer], name: str, what: str = "mean test accuracy") -> list[Block]:
    """A line for each claim, and every comparison behind a fold; nothing without answers.

    Args:
        answers: to any number of claims.
        name: what the comparisons are about, for the line that opens them.
        what: whose difference is tested.

    Example:
        >>> answers_blocks([], "depth")
        []
    """
    if not answers:
        return []
    margins = {answer.sentence: answer.margin for answer in answers}
    lines: list[Block] = [
        _counted(str(c.sentence), c.holds, c.fails, c.open, margins[c.sentence]) for c in counted(answers)
    ]
    return [
        *lines,
        *_main(answers),
        Folded(f"The paired tests behind this: {name}", [comparisons(answers, name, what)]),
    ]


def _main(answers: Sequence[Answer]) -> list[Block]:
    """The paper's main sentence, data set by data set; nothing where its comparisons are not among the answers."""
    found = standings(answers)
    if not found:
        return []
    tones = {"superior": Tone.BETTER, "fails": Tone.WORSE}
    heads = [
        Column(n, numbers=False)
        for n in ("dataset", "the sentence", "better than", "worse than", "cannot be told from")
    ]
    rows: list[list[str | Shown]] = [
        [
            called(one.dataset),
            Shown(one.word, tone=tones.get(one.word, Tone.NEAR)),
            *(", ".join(names) if names else "none" for names in (one.better, one.worse, one.even)),
        ]
        for one in sorted(found, key=lambda one: place(one.dataset, tuple(NAMES)))
    ]
    words = (
        f"“UGDGNN is superior or competitive on all data sets”: {told_in_all(answers)}. Superior: better than every other model of the table; "
        "competitive: worse than none of them, which is the weakest meaning that the word can have; otherwise the sentence fails."
    )
    return [Paragraph([words]), Table("UGDGNN against the other models of Table 2, set by set", heads, rows)]


def comparisons(answers: Sequence[Answer], name: str, what: str = "mean test accuracy") -> Table:
    """One row for each comparison, with its interval and corrected p-value."""
    words = ("claim", "dataset", "first", "second")
    heads = [*(Column(n, numbers=False) for n in words), "difference", "95 % interval", "p (Holm)", "pairs"]
    points = any(answer.times == 100 for answer in answers)
    caption = f"Paired tests, {name}: difference of {what}{' in points' if points else ''}, first less second"
    return Table(caption, [*heads, Column("the claim", numbers=False)], [_row(answer) for answer in answers])


def _counted(sentence: str, holds: int, fails: int, unsure: int, margin: float | None) -> Paragraph:
    every = holds + fails + unsure
    tone = Tone.BETTER if holds == every else Tone.WORSE if fails else Tone.NEAR
    told = f"holds in {holds} of {every} comparisons, fails in {fails}, cannot be told in {unsure}"
    rule = "paired by seed, p < 0.05 after Holm's correction"
    if margin is not None:
        rule = f"paired by seed; it holds where the whole 95 % interval of what is gained lies below {100 * margin:g} points"
    return Paragraph([f"“{sentence}”: ", Mark(told, tone), f" ({rule})."])


def _row(answer: Answer) -> list[str | Shown]:
    found = answer.comparison
    p = found.p_value if found.corrected is None else found.corrected
    data, _, variant = answer.dataset.partition(" ")
    times = answer.times
    low, high = (signed(times * v) for v in (found.low, found.high))
    points = [
        Shown(signed(times * found.difference), times * found.difference),
        Shown(f"{low} to {high}", times * found.low),
    ]
    if AFTER in answer.sentence:  # which the claim says already
        variant = variant.replace(f" {AFTER}", "")
    where = " ".join(filter(None, (called(data), variant)))
    numbers = [*points, Shown("< 0.0001" if p < 1e-4 else f"{p:.2g}", p), Shown(str(found.n), float(found.n))]
    told = "too few pairs" if found.n < LEAST else answer.verdict.value
    return [answer.sentence, where, *found.names, *numbers, Shown(told, tone=_TONES[answer.verdict])]
