"""The paper's claims: paired tests on our own trials, counted and listed."""

from __future__ import annotations

from collections.abc import Sequence

from unspool.report import Block, Cell, Column, Folded, Paragraph, Rows, Table, Tone, signed, text_columns
from unspool.reproduce.accuracy_claims import Outcome, WinCount, superiority
from unspool.reproduce.claims import MIN_PAIRS, ClaimTest, Verdict, count_verdicts
from unspool.reproduce.sections.names import DATASET_ORDER, dataset_title, order_of

_TONES = {Verdict.HOLDS: Tone.BETTER, Verdict.FAILS: Tone.WORSE, Verdict.OPEN: Tone.NEAR}
_OUTCOMES = {Outcome.SUPERIOR: Tone.BETTER, Outcome.FAILS: Tone.WORSE}


def claim_blocks(tests: Sequence[ClaimTest], name: str, what: str = "mean test accuracy") -> list[Block]:
    """How often each claim holds, and every comparison behind a fold; nothing without tests.

    Args:
        tests: of any number of claims.
        name: what the comparisons are about.
        what: whose difference is tested.

    Example:
        >>> claim_blocks([], "depth")
        []
    """
    if not tests:
        return []
    return [verdict_table(tests, name), *main_sentence(tests), folded_tests(tests, name, what)]


def verdict_table(tests: Sequence[ClaimTest], name: str) -> Table:
    """How often each claim holds, with the largest difference that is told from chance."""
    columns = [*text_columns("claim"), "holds", "fails", "undecided", "largest difference"]
    rows: Rows = []
    for count in count_verdicts(tests):
        claim = count.claim
        sure = [test.comparison for test in tests if test.claim == claim and test.verdict is not Verdict.OPEN]
        most = max((claim.scale * found.difference for found in sure), key=abs, default=None)
        text = claim.text
        if claim.margin is not None:
            text += f"\nholds where the whole 95 % interval of what is gained lies below {100 * claim.margin:g} points"
        tone = Tone.BETTER if count.holds == count.every else Tone.WORSE if count.fails else Tone.NEAR
        holds = Cell(f"{count.holds} of {count.every}", float(count.holds), tone)
        rows.append([text, holds, Cell.count(count.fails), Cell.count(count.open), Cell.signed(most)])
    rule = "paired by seed, p < 0.05 after Holm's correction; differences are first less second"
    return Table(f"The paper's claims, {name}: {rule}", columns, rows)


def folded_tests(tests: Sequence[ClaimTest], name: str, what: str) -> Folded:
    """Every comparison, with its interval and corrected p-value, behind a fold."""
    points = " in points" if any(test.claim.scale == 100 for test in tests) else ""
    columns = [*text_columns("claim", "dataset", "first", "second"), "difference", "95 % interval", "p (Holm)", "pairs"]
    caption = f"Paired tests, {name}: difference of {what}{points}, first less second"
    table = Table(caption, [*columns, Column("the claim", numbers=False)], [_row(test) for test in tests])
    return Folded(f"The paired tests behind this: {name}", [table])


def main_sentence(tests: Sequence[ClaimTest]) -> list[Block]:
    """The paper's main sentence, dataset by dataset; nothing where its comparisons are not among the tests."""
    found = superiority(tests)
    if not found:
        return []
    columns = text_columns("dataset", "the sentence", "better than", "worse than", "undecided against")
    rows: Rows = []
    for one in sorted(found, key=lambda one: order_of(one.dataset, DATASET_ORDER)):
        sides = [", ".join(names) if names else "none" for names in (one.better, one.worse, one.even)]
        outcome = Cell(one.outcome.value, tone=_OUTCOMES.get(one.outcome, Tone.NEAR))
        rows.append([dataset_title(one.dataset), outcome, *sides])
    words = f"“UGDGNN is superior or competitive on all data sets”: {WinCount.of(tests)}."
    caption = "UGDGNN against the other models of Table 2: superior is better than all of them, competitive is worse than none"
    return [Paragraph([words]), Table(caption, columns, rows)]


def _row(test: ClaimTest) -> list[str | Cell]:
    found, scale = test.comparison, test.claim.scale
    p = found.p_value if found.corrected is None else found.corrected
    low, high = (signed(scale * v) for v in (found.low, found.high))
    where = dataset_title(test.dataset) + ("" if test.condition is None else f" ({test.condition})")
    numbers = [
        Cell.signed(scale * found.difference),
        Cell(f"{low} to {high}", scale * found.low),
        Cell("< 0.0001" if p < 1e-4 else f"{p:.2g}", p),
        Cell.count(found.n),
    ]
    verdict = "too few pairs" if found.n < MIN_PAIRS else test.verdict.value
    return [test.claim.text, where, *found.names, *numbers, Cell(verdict, tone=_TONES[test.verdict])]
