"""What a study says about one dataset: the best settings, whether their lead is real, what matters, what to try next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unspool.errors import IncompatibleError
from unspool.study.report.advice import SEEDS, Advice, Diverged, Failed, Idle, MoreSeeds, Tied, Unfinished, edges
from unspool.study.results.best import Best, Measure
from unspool.study.results.comparison import Comparison, compare, holm
from unspool.study.results.importances import Importance, importance
from unspool.study.results.trial_table import TrialTable
from unspool.study.store import Row, Status
from unspool.train import Ending

#: The best settings are tested against so many others.
RIVALS = 9
#: p-values below this are taken for a real difference.
LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything that the report says about one dataset.

    Attributes:
        table: its trials.
        by: what settings are chosen by.
        leaders: all settings, the best first.
        rivals: paired tests of the best against the next ones on test data, p-values corrected for their number (Holm).
        models: the best settings of each model, the best first.
        importance: how much each setting explains; None with ``silence``, the reason, where that cannot be said.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> found = Findings.of(example_table(seeds=6))
        >>> found.best.model, found.runner_up.label, found.lead_is_real
        ('UGDGNN', 'dropout 0.8', True)
        >>> [str(one) for one in found.advice()]
        []
    """

    table: TrialTable
    by: Measure
    leaders: tuple[Best, ...]
    rivals: tuple[Comparison, ...]
    models: tuple[Best, ...]
    importance: Importance | None
    silence: str = ""

    @staticmethod
    def of(table: TrialTable, by: Measure = Measure.VALID_SCORE) -> Findings:
        """Ask the trials of one dataset, at least one of them finished."""
        leaders = table.leaders(max(1, len(table.rows)), by=by)
        models = sorted(table.best_each("model", by=by), key=lambda best: best.rank(by))
        try:
            matters, silence = importance(table, by), ""
        except IncompatibleError as problem:
            matters, silence = None, str(problem)
        return Findings(table, by, leaders, _tests(table, leaders), tuple(models), matters, silence)

    @property
    def best(self) -> Best:
        """The settings that validation prefers."""
        return self.leaders[0]

    @property
    def runner_up(self) -> Best | None:
        """The next settings; None where there is one setting alone."""
        return self.leaders[1] if len(self.leaders) > 1 else None

    @property
    def lead(self) -> Comparison | None:
        """The best against the runner-up, by itself; None where no two seeds have a test score in both."""
        return self.rivals[0] if self.rivals and self.rivals[0].b is self.runner_up else None

    @property
    def lead_is_real(self) -> bool | None:
        """Whether the best settings are better than the runner-up on test data, too; None where that was not tested."""
        return None if self.lead is None else self.lead.p_value < LEVEL and self.lead.difference > 0

    @property
    def failed(self) -> list[Row]:
        """Trials that failed."""
        return [row for row in self.table.rows if row.status is Status.FAILED]

    @property
    def diverged(self) -> list[Row]:
        """Trials whose losses became infinite."""
        return [row for row in self.table.rows if row.result is not None and row.result.ending is Ending.DIVERGED]

    @property
    def waiting(self) -> int:
        """How many trials have not ended."""
        return sum(row.status in (Status.WAITING, Status.RUNNING) for row in self.table.rows)

    def advice(self) -> list[Advice]:
        """What to try next, the most urgent first."""
        found: list[Advice] = [Unfinished(self.waiting)] if self.waiting else []
        found += [Failed(len(self.failed))] if self.failed else []
        if self.diverged:
            rates = [float(row.trial["config"]["lr"]) for row in self.diverged]
            fine = [float(row.trial["config"]["lr"]) for row in self.table.rows if row not in self.diverged]
            found.append(Diverged(len(rates), min(rates) if fine and max(fine) < min(rates) else None))
        found += [MoreSeeds(self.best.n)] if self.best.n < SEEDS else []
        idle = () if self.importance is None else self.importance.noise
        found += edges(self.best, self.leaders, idle)
        tied = sum(not (one.corrected is not None and one.corrected < LEVEL) for one in self.rivals)
        found += [Tied(tied)] if tied and self.best.n >= SEEDS else []
        return [*found, *([Idle(idle)] if idle and self.best.n >= SEEDS else [])]


def _tests(table: TrialTable, leaders: Sequence[Best]) -> tuple[Comparison, ...]:
    """The best against those that follow; those without two common seeds are left out."""
    found: list[Comparison] = []
    for other in leaders[1 : 1 + RIVALS]:
        try:
            found.append(compare(table, leaders[0], other))
        except IncompatibleError:
            continue
    corrected = holm([one.p_value for one in found])
    return tuple(replace(one, corrected=p) for one, p in zip(found, corrected, strict=True))
