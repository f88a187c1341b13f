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

#: What the settings of a preset are, in words.
_SETTINGS = {
    "paper": "the settings that the paper prints (preset paper)",
    "official": "those of each model's authors (preset official)",
    "tuned": "settings that we searched ourselves, on validation (preset tuned)",
}


def overview_blocks(results: Results) -> list[Block]:
    """How many cells of Table 2 are met under each preset, and how often each claim holds; nothing where nothing was run.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> for block in overview_blocks(Results([example_record(seed) for seed in range(5)])):
        ...     print(block.markdown())
        1 of 1
        cells of the paper's Table 2 that were run lie within one printed standard deviation of the printed mean, or above, with the settings that the
        paper prints (preset paper). The paper prints 56; 1 were run; ArXiv's 8 need features that are not at hand; 47 were not run.
    """
    return [*_headline(results), *_claims(all_claims(results))]


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


def _headline(results: Results) -> list[Block]:
    """The first preset in large letters, the others in a sentence."""
    found = {
        preset: Tally.of(entries, preset)
        for preset in TABLE2_PRESETS
        if (entries := entries_of(results.of("table2"), preset))
    }
    if not found:
        return []
    (name, first), *others = found.items()
    words = (
        "cells of the paper's Table 2 that were run lie within one printed standard deviation of the printed mean, or above, with "
        f"{_SETTINGS[name]}. The paper prints {first.printed}; {first.absent}."
    )
    more = [f"With {_SETTINGS[preset]}: {tally.met} of {tally.run}." for preset, tally in others]
    return [Paragraph([f"{first.met} of {first.run}"], "headline"), Paragraph([" ".join([words, *more])])]


def _claims(subjects: Sequence[Subject]) -> list[Block]:
    """One row for each subject, and every claim behind a fold."""
    if not subjects:
        return []
    rows: Rows = []
    for subject in subjects:
        verdicts = [test.verdict for test in subject.tests]
        counts = [len(verdicts), *(verdicts.count(verdict) for verdict in Verdict)]
        rows.append([subject.title, *map(Cell.count, counts)])
    caption = (
        "The paper's claims, tested on our own trials: pairs of equal seeds, p < 0.05 after Holm's correction for many tests; undecided: "
        "the seeds explain the difference"
    )
    table = Table(caption, [*text_columns("about"), "comparisons", *(verdict.value for verdict in Verdict)], rows)
    every = [verdict_table(subject.tests, subject.title) for subject in subjects]
    return [table, Folded("Every claim, and how often it holds", every)]
