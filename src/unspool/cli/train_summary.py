"""The end of ``unspool train``: the score, what stands beside it, and where everything is."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from unspool.cli.terminal import echo
from unspool.cli.train_options import USUAL
from unspool.report.evidence import Evidence
from unspool.report.findings import Topic, findings
from unspool.report.link_sections import LinkNumbers, comparison
from unspool.report.problem import Problem
from unspool.report.score import Score
from unspool.report.score_tables import baseline_name, short_scores
from unspool.report.seeds import read_job
from unspool.report.training_report import first_network
from unspool.train.loss import SHARES

if TYPE_CHECKING:
    from unspool.cli.train import Job

#: What else the summary of two or more classes says.
CLASS_SCORES = ("balanced_accuracy", "macro_f1", "majority", "auc", "average_precision")


def tell_summary(job: Job, by_seed: Mapping[int, float], seconds: float, console: Console) -> None:
    """Write the report, and say what came out, as JSON where that was asked for."""
    options, name, scores = job.options, job.loader.score, [by_seed[seed] for seed in sorted(by_seed)]
    share = name in SHARES
    unit = 100 if share else 1
    mean = unit * statistics.fmean(scores)
    spread = unit * statistics.stdev(scores) if len(scores) > 1 else None
    printed = job.printed()
    report = None if options.no_report else _report(job, printed)
    found = read_job(options.out)
    # Seeds of another job may lie in the same folder.
    held = replace(found, seeds=tuple(seed for seed in found.seeds if seed.name in map(str, by_seed)))
    evidence = Evidence.of(held, Score.of(held, None))
    if options.as_json:
        echo(json.dumps({
            "event": "summary", "score": name, "test_mean": mean / unit, "test_std": None if spread is None else spread / unit,
            "seeds": len(scores), "seconds": seconds, "paper_percent": printed, "report": None if report is None else str(report), **_beside(evidence),
        }))  # fmt: skip
        return
    own = "" if printed is None or job.as_printed() else ", under its own settings"
    paper = f"; the paper prints {printed[0]:.2f} ± {printed[1]:.2f} (ten repetitions{own})" if printed else ""
    if (theirs := job.papers_own()) is not None:
        paper = (
            f"; the paper prints {theirs[0]:.2f} ± {theirs[1]:.2f} for its own model, {USUAL} (unspool train {USUAL})"
        )
    digits = 2 if share else 4
    around = "" if spread is None else f" ± {spread:.{digits}f}"
    console.print(f"\ntest {name} {mean:.{digits}f}{around} over {len(scores)} seed{'s'[: len(scores) > 1]}{paper}")
    for line in (*_link_lines(held), *_evidence_lines(evidence)):
        console.print(line)
    problem = Problem.of(held.first.card, first_network(held, job.trial.model, changed_code=True)).line()
    if problem:
        console.print(problem)
    console.print(f"{seconds:.1f} s; models in {options.out}{'' if report is None else f', report: {report}'}")


def _link_lines(held: Any) -> list[str]:
    """What a job that looks for links says more."""
    found = LinkNumbers.of(held)
    return [] if found is None else comparison(found)


def _beside(found: Evidence) -> dict[str, Any]:
    """The same for programs."""
    means = (
        {one.baseline.value: found.baseline(one.baseline) for one in found.baselines.entries} if found.baselines else {}
    )
    classes = {name: found.class_mean(lambda c, name=name: getattr(c, name)) for name in CLASS_SCORES}
    return {"baselines": means, **{name: value for name, value in classes.items() if value is not None}}


def _evidence_lines(found: Evidence) -> list[str]:
    """What stands beside the score, for people."""
    lines = [beside] if (beside := short_scores(found)) else []
    if found.baselines is not None:
        known = [one for one in found.baselines.entries if one.scores]
        told = [f"{baseline_name(one.baseline, found.kind)} {found.score.range(list(one.scores))}" for one in known]
        lines += [f"beside it: {'; '.join(told)}"] if told else []
    return [*lines, *(f"- {one.text}" for one in findings(found) if one.topic is not Topic.WEAKEST)]


def _report(job: Job, printed: Any) -> Path:
    from unspool import report

    return report.training(
        job.options.out, dataset=job.loader.data, paper=printed, command=job.options.command, model=job.trial.model,
        changed_code=True,  # what counts was trained by this very class, whose values may have changed meanwhile
    )  # fmt: skip
