"""What the folder of a job says beside its score: evaluations of its seeds, and baselines; read once for page, card and terminal."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from unspool.evaluate import Bin, Calibration, ClassScores, NumberScores, ProbabilityScores, from_plain
from unspool.report.score import Score
from unspool.report.seeds import Job, Seed
from unspool.train.baselines import Baseline, Baselines, read_baselines
from unspool.train.evaluation import Evaluation


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything that findings are drawn from.

    Attributes:
        job: the seeds.
        score: what their scores are.
        seeds: those of the counted seeds that were evaluated.
        evaluations: one for each of them.
        baselines: of the same data; None where there are none.
    """

    job: Job
    score: Score
    seeds: tuple[Seed, ...]
    evaluations: tuple[Evaluation, ...]
    baselines: Baselines | None

    @staticmethod
    def of(job: Job, score: Score) -> Evidence:
        """Read it; what is damaged, or of another job, is left out."""
        pairs = [(seed, found) for seed in job.counted if (found := _evaluation(seed)) is not None]
        same = {str(seed.part("data").get("fingerprint")) for seed in job.counted}
        held = read_baselines(job.folder)
        fits = held is not None and held.score == score.name and {held.data} == same
        return Evidence(job, score, tuple(s for s, _ in pairs), tuple(e for _, e in pairs), held if fits else None)

    # -- what was predicted ----------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """What is predicted, by its name in cards."""
        return str(self.job.first.part("task").get("kind", ""))

    @cached_property
    def names(self) -> list[str]:
        """Names of the classes; their numbers where the card does not name them."""
        told = self.job.first.part("data").get("classes")
        names = [str(name) for name in told] if isinstance(told, Sequence) and not isinstance(told, str) else []
        many = len(self.classes[0].support) if self.classes else len(names)
        return names if len(names) == many else [str(k) for k in range(many)]

    @cached_property
    def classes(self) -> list[ClassScores]:
        """The scores of the classes, seed by seed, where all know the same number of classes."""
        found = [e.classes for e in self.evaluations if e.classes is not None]
        return found if len({len(c.support) for c in found}) == 1 else []

    @cached_property
    def numbers(self) -> list[tuple[NumberScores, ...]]:
        """The scores of the numbers, seed by seed."""
        found = [e.numbers for e in self.evaluations if e.numbers]
        return found if len({len(n) for n in found}) == 1 else []

    @cached_property
    def calibrations(self) -> list[Calibration]:
        """The temperatures, seed by seed, or why there are none."""
        return [e.calibration for e in self.evaluations if e.calibration is not None]

    @property
    def temperatures(self) -> list[float]:
        """Of the seeds that have one."""
        return [c.temperature for c in self.calibrations if c.temperature is not None]

    # -- means over seeds ------------------------------------------------------------------------------------------

    def mean(self, read: Callable[[Evaluation], float | None]) -> float | None:
        """The mean of a number over the seeds that have it."""
        found = [v for e in self.evaluations if (v := read(e)) is not None]
        return statistics.fmean(found) if found else None

    def class_mean(self, read: Callable[[ClassScores], float | None]) -> float | None:
        """The same of a number of the classes."""
        return self.mean(lambda e: None if e.classes is None else read(e.classes))

    @property
    def test(self) -> float | None:
        """The mean test score."""
        found = self.job.values("test_score")
        return statistics.fmean(found) if found else None

    @property
    def test_items(self) -> int | None:
        """How many test nodes (or pairs) a seed has."""
        found = [e.items for e in self.evaluations if e.items > 0]
        return found[0] if found else None

    def baseline(self, which: Baseline) -> float | None:
        """The mean score of a baseline."""
        return None if self.baselines is None else self.baselines.mean(which)


def pooled(scores: Sequence[ProbabilityScores]) -> tuple[Bin, ...]:
    """The bins of several seeds as if all their nodes were one set.

    Example:
        >>> a = ProbabilityScores(0.0, 0.0, 0.0, (Bin(0.0, 1.0, 1, 0.5, 1.0),))
        >>> b = ProbabilityScores(0.0, 0.0, 0.0, (Bin(0.0, 1.0, 3, 0.9, 0.0),))
        >>> [(p.nodes, round(p.confidence, 2), p.accuracy) for p in pooled([a, b])]
        [(4, 0.8, 0.25)]
    """
    made: list[Bin] = []
    for parts in zip(*(s.bins for s in scores), strict=False):
        nodes = sum(p.nodes for p in parts)
        means = [
            sum(p.nodes * v for p in parts if (v := getattr(p, name)) is not None) / nodes if nodes else None
            for name in ("confidence", "accuracy")
        ]
        made.append(Bin(parts[0].low, parts[0].high, nodes, *means))
    return tuple(made)


def _evaluation(seed: Seed) -> Evaluation | None:
    plain = seed.card.get("evaluation")
    if plain is None:
        return None
    try:
        found = from_plain(Evaluation, plain)
    except (ValueError, RecursionError):
        return None
    return found if _is_whole(found) else None


def _is_whole(found: Evaluation) -> bool:
    """Whether lists that belong together are of one length."""
    one = found.classes
    if one is None:
        return True
    many = len(one.support)
    parts = (one.precision, one.recall, one.f1, *(() if one.confusion is None else (one.confusion, *one.confusion)))
    return many > 0 and all(len(part) == many for part in parts) and len(found.train_support) in (0, many)
