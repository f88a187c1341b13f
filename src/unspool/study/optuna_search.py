"""Optuna asks, we train: many of its trials at once, through the same batches and the same store as any study.

*Batches and samplers.* Settings of one batch are chosen without knowing each other's scores. Random, quasi-random, NSGA-II
and CMA-ES (with batches of their population size), TPE with ``constant_liar=True`` and GP (both by themselves from Optuna 5)
spread them; TPE without it may ask for nearly the same setting 32 times. Smaller batches learn more per trial, larger ones
train more trials a second. Pruners are not asked: all trials of a batch run together to their end, as their plans have it.

*Going on.* With a seeded sampler and a ``store`` on disk, running the same script again asks for the same settings and
finds their results there, so only what is missing is trained. An Optuna study that is on disk itself goes on from
its own trials; those that a killed process left unfinished are not taken up again.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from unspool.datasets import Dataset
from unspool.errors import IncompatibleError, InputError
from unspool.settings import Range
from unspool.study.engine.progress import Progress
from unspool.study.evaluation import Outcome, evaluated, several
from unspool.study.results.best import Measure, measure
from unspool.study.search.space import Space, declared_search, grid
from unspool.study.store import Store
from unspool.study.study import Study
from unspool.train import Trial, TrialLoader

if TYPE_CHECKING:
    import optuna

#: After so many trials that failed, and none that did not, something is wrong with all of them.
ENOUGH = 10


def optimise(
    study: optuna.Study,
    suggest: Callable[[optuna.Trial], Space | Sequence[Trial]],
    dataset: Dataset | str | TrialLoader,
    *,
    trials: int = 200,
    batch: int = 32,
    seeds: Iterable[int] | None = None,
    by: Measure = Measure.VALID_SCORE,
    store: Store | str | os.PathLike[str] | None = None,
    device: torch.device | str | None = None,
    jobs: int = 1,
    watch: Callable[[Progress], None] | None = None,
    most: int = 1024,
    loss: Any = None,
) -> Study:
    """Search with an Optuna study, training a whole batch of its trials at once.

    The sampler is asked for a batch of settings; all of them are trained together under all seeds; and it is told the mean
    validation score of each. A setting under which training diverges is told as pruned, which TPE takes for a bad one; one
    that cannot be built or trained is told as failed. Each Optuna trial keeps ``test_score``, ``test_std``, ``test_scores``,
    ``valid_scores``, ``seeds`` and ``epochs`` (the selected ones) or ``failure`` among its user attributes.

    Args:
        study: made by ``optuna.create_study(direction="maximize")``, or ``"minimize"`` for losses.
        suggest: from an Optuna trial to a space of one setting, such as
            ``grid(models.GCN, seed=range(3), dropout=trial.suggest_float("dropout", 0, 0.9))``. May raise ``optuna.TrialPruned``.
        dataset: a name such as ``"cora"``, a dataset with a split, or a :class:`~unspool.train.TrialLoader`.
        trials: how many the study is to have in the end; those that it has already count.
        batch: how many are asked for at once.
        seeds: take the place of the seeds of the spaces.
        by: what is told.
        store, device, jobs, watch, most, loss: as for :func:`~unspool.study.run`; ``watch`` sees one batch at a time. With more than one job, each batch
            starts its processes anew, which takes some seconds.

    Returns:
        The trials of this search as a study of ours, for its table, comparisons and importances. Optuna's is changed in place.

    Example:
        >>> import optuna, unspool as us
        >>> from unspool import datasets
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> def suggest(trial):
        ...     return us.study.grid(us.models.GCN, hidden=8, epochs=10, dropout=trial.suggest_float("dropout", 0.1, 0.9))
        >>> search = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
        >>> found = optimise(search, suggest, data, trials=4, batch=4, seeds=range(2))
        >>> len(search.trials), len(found.table), sorted(search.best_params)
        (4, 8, ['dropout'])
    """
    search = _Search(study, suggest, measure(by))
    _check_numbers(trials, batch)
    options = {"device": device, "jobs": jobs, "watch": watch, "most": most, "loss": loss}
    wanted = several(seeds)
    kept = None if store is None and jobs > 1 else Study(store if isinstance(store, Store) else Store(store), keys=())
    while not search.over and (count := min(batch, trials - search.done)) > 0:
        try:
            asked = search.ask(count)
            outcomes, kept = evaluated([space for _, space in asked], dataset, wanted, kept, options)
            search.tell([(trial, outcome) for (trial, _), outcome in zip(asked, outcomes, strict=True)])
        finally:
            search.give_up()
        search.check_worth(last=search.done >= trials)
    return Study(Store(None)) if kept is None else kept


def suggest(model: type[nn.Module], *, seed: Any = range(1), preset: Any = None, **said: Any) -> Callable[[Any], Space]:
    """What :func:`optimise` asks for: a model searched where its settings and training say that searches look.

    Args:
        model: the class.
        seed, preset: as in :func:`~unspool.study.grid`.
        said: by name, a value that stays, or a range (:func:`~unspool.study.uniform` and the like) in the place of the declared one.

    Example:
        >>> import optuna, unspool as us
        >>> search = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        >>> space = suggest(us.models.SGC, depth=2, epochs=10)(search.ask())
        >>> sorted(search.trials[0].params), len(space)
        (['lr', 'weight_decay'], 1)
    """
    spans: dict[str, Any] = {**declared_search(model), **said}

    def ask(trial: Any) -> Space:
        drawn = {name: span.suggest(trial, name) if isinstance(span, Range) else span for name, span in spans.items()}
        return grid(model, seed=seed, preset=preset, **drawn)

    return ask


def _check_numbers(trials: int, batch: int) -> None:
    if trials < 1:
        raise ValueError(f"trials={trials}: expected at least one")
    if batch < 1:
        raise ValueError(f"batch={batch}: at least one trial is asked for at a time")


class _Search:
    """An Optuna study while it is asked and told.

    Attributes:
        over: whether the sampler has nothing more to ask.
    """

    def __init__(self, study: Any, suggest: Callable[[Any], Any], by: Measure) -> None:
        self.optuna = _optuna()
        self.state = self.optuna.trial.TrialState
        if not isinstance(study, self.optuna.Study):
            raise TypeError(f"{type(study).__name__} is not an Optuna study; make one with optuna.create_study()")
        self.study, self.suggest, self.by = study, suggest, by
        self._check_direction()
        self.over = False
        self._open: list[Any] = []
        self._failed: list[str] = []
        self._reported = 0

    @property
    def done(self) -> int:
        """Trials with a value, pruned ones, and those that failed here; not what failed or was cut off in earlier runs."""
        ended = self.study.get_trials(deepcopy=False, states=(self.state.COMPLETE, self.state.PRUNED))
        return len(ended) + len(self._failed)

    def ask(self, count: int) -> list[tuple[Any, Any]]:
        """New trials with their spaces; those that ``suggest`` prunes, or has no right values for, are told at once."""
        asked: list[tuple[Any, Any]] = []
        for _ in range(count):
            trial = self.study.ask()
            self._open.append(trial)
            try:
                asked.append((trial, self.suggest(trial)))
            except self.optuna.TrialPruned:
                self._close(trial, state=self.state.PRUNED)
            except InputError as problem:  # a value that does not fit its setting
                self._fail(trial, f"{type(problem).__name__}: {problem}")
        return asked

    def tell(self, pairs: Sequence[tuple[Any, Outcome]]) -> None:
        """What came of each."""
        for trial, outcome in pairs:
            for name, value in _attributes(outcome).items():
                trial.set_user_attr(name, value)
            if outcome.failures:
                self._fail(trial, outcome.failures[0])
            elif outcome.diverged:
                self._close(trial, state=self.state.PRUNED)
            else:
                self._close(trial, outcome.value(self.by))

    def give_up(self) -> None:
        """Trials that were asked for and not told, because something raised, have failed."""
        for trial in list(self._open):
            self._close(trial, state=self.state.FAIL)

    def check_worth(self, last: bool) -> None:
        """Stop if nothing but failures came."""
        if self._failed and len(self._failed) == self._reported and (last or self._reported >= ENOUGH):
            raise IncompatibleError(
                f"all {self._reported} trials so far failed, the first with {self._failed[0]}; see to it and run again"
            )

    def _fail(self, trial: Any, why: str) -> None:
        trial.set_user_attr("failure", why)
        self._failed.append(why)
        self._close(trial, state=self.state.FAIL)

    def _close(self, trial: Any, *value: float, state: Any = None) -> None:
        self._open.remove(trial)
        self._reported += 1
        try:
            self.study.tell(trial, *value, state=state)
        except RuntimeError as problem:
            # Trap: samplers that go through a list call study.stop() at its end, which is allowed in optimize() only.
            # What was told is kept.
            if "Study.stop" not in str(problem):
                raise
            self.over = True

    def _check_direction(self) -> None:
        directions = self.study.directions
        if len(directions) != 1:
            raise IncompatibleError(
                f"the study has {len(directions)} directions, and one number is reported; use evaluate() with ask and tell"
            )
        score = self.by is Measure.VALID_SCORE
        if (directions[0] is self.optuna.study.StudyDirection.MAXIMIZE) == score:
            return
        what, wrong, right, other = (
            ("scores are maximised", "minimises", "maximize", Measure.VALID_LOSS)
            if score
            else ("losses are minimised", "maximises", "minimize", Measure.VALID_SCORE)
        )
        raise IncompatibleError(
            f"validation {what}, but the study {wrong}: make it with direction={right!r}, or give by={other}"
        )


def _attributes(outcome: Outcome) -> dict[str, Any]:
    """What an Optuna trial keeps for people; plain values, which any of Optuna's storages takes."""
    told: dict[str, Any] = {
        "seeds": list(outcome.seeds), "epochs": [r.epoch for r in outcome.results],
        "valid_scores": list(outcome.valid.values), "test_scores": list(outcome.test.values),
        "test_score": outcome.test.mean, "test_std": outcome.test.std,
    }  # fmt: skip
    if outcome.diverged and not outcome.failures:
        told["failure"] = "diverged"
    return told


def _optuna() -> Any:
    try:
        return importlib.import_module("optuna")
    except ImportError:
        raise IncompatibleError(
            "optimise() needs Optuna: pip install 'unspool[optuna]', or search with grid() and random()"
        ) from None
