"""Scores as people read them: shares in per cent, others as they are; ours beside the paper's."""

from __future__ import annotations

from dataclasses import dataclass

from unspool.report.page import Paragraph
from unspool.report.seeds import Job, mean_and_spread
from unspool.report.text import Mark, Tone, counted, number, shown
from unspool.train.loss import SHARES


@dataclass(frozen=True)
class Score:
    """The name of a score, and whether it is printed in per cent.

    Example:
        >>> Score("accuracy", percent=True).shown(0.7043), Score("R²", percent=False).shown(0.7043)
        ('70.43', '0.7043')
    """

    name: str
    percent: bool

    @staticmethod
    def of(job: Job, paper: tuple[float, float | None] | None) -> Score:
        """The score of a job; papers print accuracies, so that is what a card without a task is compared in."""
        name = job.first.part("task").get("score")
        if not isinstance(name, str) or not name:
            return Score("score" if paper is None else "accuracy", percent=paper is not None)
        return Score(name, percent=name in SHARES)

    @property
    def unit(self) -> str:
        """What follows the number."""
        return " %" if self.percent else ""

    @property
    def heading(self) -> str:
        """The name with its unit, over a column."""
        return f"{self.name} (%)" if self.percent else self.name

    def scaled(self, value: float) -> float:
        """The number as it is printed."""
        return 100 * value if self.percent else value

    def shown(self, value: float | None) -> str:
        """The number with the digits that it deserves, without its unit."""
        found = number(value)
        return shown(None if found is None else self.scaled(found), 2 if self.percent else 4)

    def range(self, values: list[float]) -> str:
        """Mean ± standard deviation."""
        found = mean_and_spread(values)
        if found is None:
            return shown(None)
        mean, spread = found
        return self.shown(mean) + (f" ± {self.shown(spread)}" if spread is not None else "")


def headline(job: Job, score: Score) -> list[Paragraph]:
    """The result in large letters, and what it is."""
    test, valid = job.values("test_score"), job.values("valid_score")
    values, which = (test, "test") if test else (valid, "validation")
    if not values:
        return [Paragraph(["No score is recorded in the cards of this job."])]
    spread = "" if len(values) == 1 else "mean ± standard deviation over "
    kind = f"{which} {score.name}, {spread}{counted(len(values), 'seed')}"
    lines = [Paragraph([score.range(values) + score.unit], "headline"), Paragraph([kind + "."])]
    return lines if test else [*lines, Paragraph(["The job has no test score."])]


def beside_paper(job: Job, score: Score, paper: tuple[float, float | None] | None) -> list[Paragraph]:
    """How the result stands to the paper's; nothing where one of them is not known."""
    test = job.values("test_score")
    return [Paragraph(against(score.scaled(sum(test) / len(test)), paper, score))] if test and paper is not None else []


def against(ours: float, paper: tuple[float, float | None], score: Score) -> list[str | Mark]:
    """Ours beside the paper's number: a signed difference in words, and in a colour.

    Example:
        >>> pieces = against(70.4, (71.1, 0.5), Score("accuracy", percent=True))
        >>> "".join(p if isinstance(p, str) else p.text for p in pieces)
        'The paper prints 71.10 ± 0.50 %: ours is −0.70 points, below it by more than its standard deviation.'
    """
    mean, spread = paper
    digits = 2 if score.percent else 4
    # Rounded as printed, so that the three numbers on the page agree with each other.
    gap = round(round(ours, digits) - round(mean, digits), digits) + 0.0
    sign = "+" if gap > 0 else "−" if gap < 0 else "±"
    size = f"{sign}{abs(gap):.{digits}f}{' points' if score.percent else ''}"
    printed = shown(mean, digits) + ("" if spread is None else f" ± {shown(spread, digits)}")
    side = "above" if gap > 0 else "below"
    if gap == 0:
        tone, words = Tone.NEAR, "the same"
    elif spread is not None and abs(gap) <= spread:
        tone, words = Tone.NEAR, f"{side} it, within its standard deviation"
    else:
        tone = Tone.BETTER if gap > 0 else Tone.WORSE
        words = f"{side} it" + ("" if spread is None else " by more than its standard deviation")
    return [f"The paper prints {printed}{score.unit}: ours is ", Mark(f"{size}, {words}", tone), "."]


def check_paper(paper: object, score: Score | None = None) -> tuple[float, float | None] | None:
    """The paper's (mean, standard deviation) as it was meant, or one sentence.

    Example:
        >>> check_paper((71.1, 0.5)), check_paper((71.1, None)), check_paper(None)
        ((71.1, 0.5), (71.1, None), None)
    """
    if paper is None:
        return None
    pair = paper if isinstance(paper, tuple | list) and len(paper) == 2 else (None, None)
    mean, spread = number(pair[0]), number(pair[1])
    if mean is None or (pair[1] is not None and (spread is None or spread < 0)):
        raise ValueError(f"paper={paper!r}: expected (mean, standard deviation) as printed, such as (71.1, 0.5)")
    if score is not None and score.percent and 0 < mean <= 1:
        raise ValueError(f"paper={paper!r}: {score.name} is compared in per cent; give (71.1, 0.5), not (0.711, 0.005)")
    if score is not None and score.name == "R²" and mean > 1:
        raise ValueError(f"paper={paper!r}: {score.name} is at most 1; give it as it is, not in per cent")
    return mean, spread
