"""What comes first: how much of the paper was reproduced, and which of its claims hold."""

from __future__ import annotations

from collections.abc import Sequence

from unspool.report import Block, Cell, Folded, Paragraph, Rows, Table, text_columns
from unspool.reproduce.all_claims import Subject, all_claims
from unspool.reproduce.claims import Verdict
from unspool.reproduce.records import Results
from unspool.reproduce.sections.claim_blocks import main_sentence, verdict_table
from unspool.reproduce.summary import Tally, entries_of
from unspool.reproduce.table2 import TABLE2_PRESETS


def overview_blocks(results: Results) -> list[Block]:
    """How many cells of Table 2 are met under each preset, and how often each claim holds; nothing where nothing was run.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> [block.caption for block in overview_blocks(Results([example_record(seed) for seed in range(5)]))]
        ['Cells of Table 2 within one printed standard deviation of the printed mean, or above']
    """
    return [*_tallies(results), *_claims(all_claims(results))]


def claims_blocks(results: Results) -> list[Block]:
    """Every claim that the results say something about, subject by subject.

    Example:
        >>> claims_blocks(Results([]))[0].markdown()
        "The results in this folder say nothing about the paper's claims."
    """
    subjects = all_claims(results)
    if not subjects:
        return [Paragraph(["The results in this folder say nothing about the paper's claims."])]
    return [block for one in subjects for block in (verdict_table(one.tests, one.title), *main_sentence(one.tests))]


def _tallies(results: Results) -> list[Block]:
    rows: Rows = []
    for preset in TABLE2_PRESETS:
        entries = entries_of(results.of("table2"), preset)
        if entries:
            found = Tally.of(entries, preset)
            rows.append([preset, Cell(f"{found.met} of {found.printed}", float(found.met)), found.absent])
    caption = "Cells of Table 2 within one printed standard deviation of the printed mean, or above"
    return [Table(caption, [*text_columns("preset"), "met", *text_columns("run")], rows)] if rows else []


def _claims(subjects: Sequence[Subject]) -> list[Block]:
    """One row for each subject, and every claim behind a fold."""
    if not subjects:
        return []
    rows: Rows = []
    for subject in subjects:
        verdicts = [test.verdict for test in subject.tests]
        counts = [len(verdicts), *(verdicts.count(verdict) for verdict in Verdict)]
        rows.append([subject.title, *map(Cell.count, counts)])
    caption = "The paper's claims, tested: pairs of equal seeds, p < 0.05 after Holm's correction"
    table = Table(caption, [*text_columns("about"), "comparisons", *(verdict.value for verdict in Verdict)], rows)
    every = [verdict_table(subject.tests, subject.title) for subject in subjects]
    return [table, Folded("Every claim, and how often it holds", every)]
