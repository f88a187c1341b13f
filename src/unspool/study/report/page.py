"""The page: for each dataset the result, whether the lead is real and what to try next; then folded sections."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import unspool
from unspool.errors import IncompatibleError, InputError
from unspool.files import write_whole
from unspool.report import Block, Heading, Mark, Notes, Page, Paragraph, Section, Tone, counted
from unspool.study.report.findings import Findings
from unspool.study.report.sections import sections_of
from unspool.study.results.best import Best, Measure
from unspool.study.results.exporting import spread
from unspool.study.results.trial_table import TrialTable
from unspool.train.loss import SHARES


def write_report(
    table: TrialTable,
    out: str | os.PathLike[str],
    *,
    by: Measure = Measure.VALID_SCORE,
    file: str | os.PathLike[str] | None = None,
    markdown: str | os.PathLike[str] | None = None,
) -> Path:
    """Write the report of a study as one HTML file that needs nothing else.

    On top stand the best settings with their scores, a paired test against the runner-up, and what to try next. Settings are chosen by
    validation alone; test scores are reported. Behind folds: all settings, tests, importances with what chance gives, pictures, failures,
    and commands that repeat the best trials.

    Args:
        table: the trials, such as ``Study.table``.
        out: the page, a ``.html`` file.
        by: what settings are chosen by.
        file: of the study, for the commands on the page.
        markdown: a file for the same words and tables as Markdown.

    Returns:
        The page.

    Example:
        >>> import pathlib, tempfile
        >>> from unspool.study.results.trial_table import example_table
        >>> write_report(example_table(), pathlib.Path(tempfile.mkdtemp()) / "study.html").name
        'study.html'
    """
    place = Path(out)
    if place.suffix.lower() not in (".html", ".htm"):
        raise InputError("out", str(out), "a file that ends in .html")
    page = report_page(table, by, None if file is None else Path(file))
    texts = [(place, page.html()), *([] if markdown is None else [(Path(markdown), page.markdown())])]
    for path, text in texts:
        write_whole(path, lambda held, text=text: held.write(text.encode()))
    return place


def report_page(table: TrialTable, by: Measure = Measure.VALID_SCORE, file: Path | None = None) -> Page:
    """The page as a value.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> page = report_page(example_table(seeds=6))
        >>> page.title, [section.heading for section in page.sections][:2]
        ('Study on cora', ['Best settings', 'Is the lead real?'])
    """
    if not len(table):
        raise IncompatibleError("no trial has finished yet, so there is nothing to report; run the study first")
    names = list(dict.fromkeys(best.data for best in table.groups()))
    every = [Findings.of(table.filter(data=name), by) for name in names]
    lead: list[Block] = [Paragraph([_size(table)], "quiet")]
    sections: list[Section] = []
    for place, found in enumerate(every):
        lead += [*([Heading(names[place])] if len(names) > 1 else []), *summary_blocks(found)]
        own = sections_of(found, f"set{place}", file)
        sections += own if len(names) < 2 else _titled(own, names[place])
    foot = f"Written by unspool {unspool.__version__}."
    return Page(f"Study on {', '.join(names)}", lead, sections, foot)


def summary_blocks(found: Findings) -> list[Block]:
    """The result in large letters, what it is, whether the lead is real, and what to try next.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> for block in summary_blocks(Findings.of(example_table(seeds=6)))[:2]:
        ...     print(block.markdown())
        82.72 ± 0.14 %
        Test accuracy of the best settings, UGDGNN, dropout 0.5: mean ± standard deviation over 6 seeds. Validation: 82.63 ± 0.16 %. Chosen ...
    """
    best = found.best
    sample, which = (best.test, "Test") if best.test.finite else (best.valid, "Validation")
    seeds = counted(best.n, "seed")
    what = f"mean ± standard deviation over {seeds}" if best.n > 1 else seeds
    also = f" Validation: {spread(best.valid.mean, best.valid.std, best.score)}." if which == "Test" else ""
    many = counted(len(found.leaders), "setting")
    chosen = f" Chosen by the {found.by.value} among {many}; test scores played no part in the choice."
    note = f" Note: {best.note}." if best.note else ""
    blocks: list[Block] = [
        Paragraph([spread(sample.mean, sample.std, best.score)], "headline"),
        Paragraph([f"{which} {best.score} of the best settings, {_settings(best)}: {what}.{also}{chosen}{note}"]),
        *_lead(found),
    ]
    steps = [str(one) for one in found.advice()]
    if steps:
        return [*blocks, Paragraph(["What to try next:"]), Notes(steps)]
    return [*blocks, Paragraph(["Nothing speaks for another search: no best value lies at the end of those tried."])]


def _lead(found: Findings) -> list[Block]:
    """Whether the best settings are better than the runner-up, in a sentence."""
    second, test = found.runner_up, found.lead
    if second is None:
        return [Paragraph(["There is one setting alone, so nothing was compared."])]
    if test is None:
        return [
            Paragraph(
                [f"Whether it is better than the runner-up, {_settings(second)}, cannot be tested with so few seeds."]
            )
        ]
    times, unit = (100, " points") if found.best.score in SHARES else (1, "")
    gap = f"{times * test.difference:+.2f}{unit}".replace("-", "−")
    p = "p < 0.0001" if test.p_value < 1e-4 else f"p = {test.p_value:.2g}"
    if found.lead_is_real:
        verdict = Mark("The lead is real", Tone.BETTER)
    elif test.p_value < 0.05:
        verdict = Mark("On test data the runner-up is better", Tone.WORSE)
    else:
        verdict = Mark("The lead is not more than chance", Tone.NEAR)
    rest = f": {gap} on test data against the runner-up, {_settings(second)} ({counted(test.n, 'seed')}, paired t-test, {p})."
    return [Paragraph([verdict, rest])]


def _settings(best: Best) -> str:
    return ", ".join(part for part in (best.model, best.label) if part)


def _size(table: TrialTable) -> str:
    ended = (
        f"{len(table):,} of {len(table.rows):,} trials finished"
        if len(table) < len(table.rows)
        else counted(len(table), "trial")
    )
    models = list(dict.fromkeys(best.model for best in table.groups()))
    named = ", ".join(models[:6]) + (f" and {len(models) - 6} more" if len(models) > 6 else "")
    return f"{ended}: {counted(len(table.groups()), 'setting')} of {named}."


def _titled(sections: Iterable[Section], data: str) -> list[Section]:
    return [
        replace(section, heading=f"{data}: {section.heading[:1].lower()}{section.heading[1:]}") for section in sections
    ]
