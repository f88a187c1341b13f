"""Where experiments are run: one store for all of them, the data that are here, and records of what came out."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch

from unspool import datasets, study
from unspool.datasets import Dataset
from unspool.files import one_at_a_time
from unspool.reproduce import machine
from unspool.reproduce.measured import MEASURED, read_measured
from unspool.reproduce.results import EXPERIMENTS, Record, Search, read_rows, read_searches, write, write_searches
from unspool.reproduce.settings import Place, Scope
from unspool.study import Progress, Row, Status, Store, Trial
from unspool.study.results.export import decay_words
from unspool.train.threads import SMALL

#: Fewer epochs of all trials than this are done before a second process pays.
_WORTHWHILE = 10_000
#: Files of numbers that are not trials, by the experiment that writes them.
_FILES = {"robust": ("damage",), "nonlinearity": ("nonlinearity",), "identity": ("identity",)}
_ELSEWHERE = "give another folder with --out"
#: Seconds between two looks at trials that other processes train.
_WAIT = 1.0

#: Shows how trials are getting on: called with a title, the trials and how many had ended before.
Watching = Callable[[str, Sequence[Trial], int], AbstractContextManager[Callable[[Progress], None] | None]]


@dataclass(frozen=True, eq=False)
class Item:
    """A trial, and under which preset it stands in the results."""

    trial: Trial
    preset: str


@dataclass(frozen=True, eq=False)
class Done:
    """An item with its trial as it was run, and what came of it."""

    item: Item
    record: Record


class Bench:
    """Trains the trials of experiments and keeps what came of them.

    Args:
        place: where and how.
        scope: what is to be run.
        watching: who looks on; nobody when omitted.
        load: reads a dataset by its name; from the data root when omitted.
        say: is told in a line what comes next, where trials are not watched; nobody when omitted.

    Attributes:
        missing: why datasets are not run, by name; ``found``: those that are here.
        trained: how many trials this bench has trained; those that were in the store do not count.
        failed: messages of trials that failed.

    Example:
        >>> import pathlib, tempfile
        >>> from unspool.reproduce.table2 import run_table2
        >>> scope = Scope(seeds=2, epochs=5, models=("SGC",), datasets=("citeseer",))
        >>> with Bench(Place(pathlib.Path(tempfile.mkdtemp())), scope) as bench:
        ...     rows = run_table2(bench, ("paper",))
        >>> [(row.model, row.seed, row.epochs) for row in rows]
        [('SGC', 0, 5), ('SGC', 1, 5)]
    """

    def __init__(
        self,
        place: Place,
        scope: Scope,
        watching: Watching | None = None,
        load: Callable[[str], Dataset] | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.place, self.scope, self.watching = place, scope, watching
        self.say = (lambda _: None) if say is None else say
        place.results.mkdir(parents=True, exist_ok=True)
        self.store = Store(place.store)
        self._load = load
        self._data: dict[str, Dataset] = {}
        self.missing: dict[str, str] = {}
        self.found: set[str] = set()
        self.failed: list[str] = []
        self.trained = 0
        self.searched = False

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *problem: object) -> None:
        self.store.close()

    # -- data ----------------------------------------------------------------------------------------------------------

    def data(self, name: str) -> Dataset | None:
        """A dataset, or None with the reason in ``missing``."""
        if name not in self._data and name not in self.missing:
            try:
                found = datasets.load(name, self.place.root) if self._load is None else self._load(name)
            except (FileNotFoundError, ImportError) as problem:
                self.missing[name] = _reason(name, problem)
                return None
            self.found.add(name)
            # One at a time: the large sets take gigabytes.
            self._data = {name: replace(found, name=name)}
        return self._data.get(name)

    # -- training ------------------------------------------------------------------------------------------------------

    def train(self, experiment: str, data: Dataset, items: Sequence[Item], variant: str = "") -> list[Done]:
        """Train what is not in the store yet, and give the records of all; trials that failed have none.

        Args:
            experiment: whose rows these are.
            data: what is learnt from.
            items: the trials.
            variant: what was done to the data, in words.
        """
        if not items:
            return []
        dataset, items = data.name, [replace(item, trial=self.shortened(item.trial)) for item in items]
        data = replace(data, name=f"{dataset} ({variant})") if variant else data
        provide = study.Provider(data)
        trials = {item.trial.key(provide.mark): item.trial for item in items}
        if not self.place.stored:
            self.store.add(list(trials.values()), provide.name, provide.mark)
            self._train_all(f"{experiment} on {data.name}", trials, data, provide)
        ended = self._ended(provide.name)
        if not self.place.stored and not trials.keys() <= ended.keys():
            ended = self._ended()  # the same trial on the same data under another name
        pairs = [(item, ended.get(item.trial.key(provide.mark))) for item in items]
        self._note_failures(data.name, [row for _, row in pairs if row is not None])
        whole = _whole([(item, row is not None and row.result is not None) for item, row in pairs], self.place.stored)
        made = [(item, row) for item, row in pairs if row is not None and row.result is not None and whole(item)]
        # Trap: the store keeps a trial as it was first described; the same one may leave defaults unsaid there and say them here.
        told = [(item, replace(row, described=item.trial.describe())) for item, row in made]
        return [Done(item, record(experiment, dataset, item.preset, variant, row)) for item, row in told]

    def _train_all(self, title: str, trials: Mapping[str, Trial], data: Dataset, provide: study.Provider) -> None:
        """Train until every trial has ended, here or in another process that works on some of them."""
        ended = self._ended(provide.name)
        left = [trial for key, trial in trials.items() if key not in ended]
        while left:
            with self._look(title, list(trials.values()), len(trials) - len(left)) as watch:
                count = _Counted(watch)
                try:
                    self._run(left, data, count)
                finally:  # what has ended counts, interrupted or not
                    self.trained += count.done
            # Trap: a trial on the same data under another name is in the store, and under this name it never ends.
            ended = self._ended(provide.name if count.done else None)
            left = [trial for key, trial in trials.items() if key not in ended]
            if left:  # others have them; those of a process that dies are free again
                time.sleep(_WAIT)

    def _note_failures(self, name: str, rows: Sequence[Row]) -> None:
        said = (f"{r.described['model']} on {name}: {r.message}" for r in rows if r.status is Status.FAILED)
        self.failed = list(dict.fromkeys([*self.failed, *said]))

    def shortened(self, trial: Trial) -> Trial:
        """A trial with no more epochs than were asked for."""
        longest = self.scope.longest
        if longest is None or trial.plan.epochs <= longest:
            return trial
        return replace(trial, plan=replace(trial.plan, epochs=longest))

    def _ended(self, name: str | None = None) -> dict[str, Row]:
        return {row.key: row for row in self.store.rows(name) if row.status in (Status.DONE, Status.FAILED)}

    def _look(self, title: str, trials: Sequence[Trial], before: int) -> AbstractContextManager[Any]:
        return nullcontext() if self.watching is None else self.watching(title, trials, before)

    def _run(self, left: Sequence[Trial], data: Dataset, watch: Callable[[Progress], None] | None) -> None:
        where = self.place.device
        on_cpu = (not torch.cuda.is_available()) if where is None else torch.device(where).type == "cpu"
        jobs = self._jobs(left, data) if on_cpu else 1
        # Processes claim whole packs: with fewer trials than packs hold, one would take them all.
        most = min(1024, math.ceil(len(left) / jobs))
        study.run(left, data, store=self.store, device=where, jobs=jobs, watch=watch, most=most)

    def _jobs(self, left: Sequence[Trial], data: Dataset) -> int:
        if self.place.jobs is not None:
            return min(self.place.jobs, len(left))
        enough = sum(trial.plan.epochs for trial in left) >= _WORTHWHILE
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        return min(cores, len(left)) if enough and data.nodes <= SMALL else 1

    # -- keeping -------------------------------------------------------------------------------------------------------

    def keep(self, experiment: str, rows: Iterable[Record], searches: Iterable[Search] = ()) -> None:
        """Put cells into the file of an experiment: those that are there already are replaced, others stay."""
        with one_at_a_time(self.place.results):  # other processes may add cells of other sets
            self._merge(experiment, list(rows), list(searches))

    def _merge(self, experiment: str, new: list[Record], found: list[Search]) -> None:
        if not new:
            return
        cells, sought = {_cell(row) for row in new}, {_cell(one) for one in found}
        old = [row for row in read_rows(self.place.results, experiment) if _cell(row) not in cells]
        past = [one for one in read_searches(self.place.results) if one.experiment == experiment]
        write(self.place.results, experiment, [*old, *new])
        write_searches(self.place.results, experiment, [*(s for s in past if _cell(s) not in sought | cells), *found])

    def check(self, experiment: str, networks: Mapping[tuple[str, str], int]) -> None:
        """Refuse, before the work, to put short runs into the place of long ones, and files that cannot be read.

        Args:
            experiment: the one that is to be run.
            networks: epochs of the networks that are there, by dataset and model.
        """
        if self.place.stored:
            return
        names = {kind.__name__ for kind in self.scope.kinds(experiment)}
        how = self.scope.asked(experiment)
        rows = read_rows(self.place.results, experiment) if experiment in EXPERIMENTS else []
        rows = [row for row in rows if row.model in names and row.dataset in how["datasets"]]
        if experiment == "depth":  # other depths stay beside these
            rows = [row for row in rows if row.depth in how["depths"]]
        there = [one for file in _FILES.get(experiment, ()) for one in read_measured(self.place.results, file)]
        there = [one for one in there if one.model in names and one.dataset in how["datasets"]]
        long = [e for (data, model), e in networks.items() if model in names and data in how["datasets"]]
        epochs = max([*(int(row.settings.get("epochs", 0)) for row in (*rows, *there)), *long], default=0)
        seeds = max((row.seed + 1 for row in (*rows, *there)), default=0)
        if self.scope.longest is not None and epochs > self.scope.longest:
            raise ValueError(
                f"{self.place.results} has {experiment} with {epochs} epochs, and a run of {self.scope.longest} would take its place; {_ELSEWHERE}"
            )
        if experiment != "readings" and seeds > how["seeds"]:
            raise ValueError(
                f"{self.place.results} has {experiment} with {seeds} seeds, and a run of {how['seeds']} would take its place; {_ELSEWHERE}"
            )

    def timed(self, experiment: str) -> machine.Timer:
        """Counts seconds and trials of an experiment into ``machine.json``."""
        if experiment not in (*EXPERIMENTS, *MEASURED, "networks"):
            raise ValueError(f"no experiment called {experiment!r}; there are {', '.join(EXPERIMENTS)}")
        return machine.Timer(self, experiment)


class _Counted:
    """Looks on for somebody, and remembers how many trials have ended in this run."""

    def __init__(self, watch: Callable[[Progress], None] | None) -> None:
        self.watch, self.done = watch, 0

    def __call__(self, now: Progress) -> None:
        self.done = max(self.done, now.done)
        if self.watch is not None:
            self.watch(now)


def _whole(pairs: Sequence[tuple[Item, bool]], stored: bool) -> Callable[[Item], bool]:
    """Tells whether nothing is missing beside an item: what is there in part would be compared with what is whole.

    Of a run that has ended, settings lack seeds that failed. Of one that was cut off and is only read, a model lacks settings, and
    a choice among the others would be another choice.
    """

    def group(item: Item) -> tuple[str, str]:
        return (item.trial.name if stored else replace(item.trial, seed=0).key(""), item.preset)

    missing = {group(item) for item, there in pairs if not there}
    return lambda item: group(item) not in missing


def record(experiment: str, dataset: str, preset: str, variant: str, row: Row) -> Record:
    """A finished trial of the store as a row of results.

    Example:
        >>> from unspool.study.results.table import example_table
        >>> row = example_table().rows[0]
        >>> made = record("table2", "cora", "paper", "", row)
        >>> made.model, made.dropout, made.decay, made.settings["rows"]
        ('GCN', 0.2, 'first 0.0005', 'normalised')
    """
    told, plan, result = row.described, dict(row.described["plan"]), row.result
    if result is None:
        raise ValueError(f"trial {row.key} has no result yet; train it first")
    own = dict(told["settings"])
    depth, dropout, rate, decay = own.pop("depth", None), own.pop("dropout", None), plan.pop("rate"), plan.pop("decay")
    rest = {name: plan[name] for name in ("epochs", "select", "stop", "patience", "earliest") if name in plan}
    if plan.get("stop") == "never":
        rest = {name: value for name, value in rest.items() if name not in ("patience", "earliest")}
    settings = {**own, **rest, "rows": "normalised" if told["normalise_rows"] else "as they are"}
    return Record(
        experiment, dataset, variant, told["model"], preset, depth, rate, _decay(decay), dropout, settings,
        told["seed"], result.epoch, result.epochs, result.train_loss, result.valid_loss, result.valid_score,
        result.test_score, result.reason, result.seconds,
    )  # fmt: skip


def _decay(decay: Mapping[str, float] | float) -> float | str:
    """One number where all weights have it, words where only some of them do."""
    return decay_words(decay) if isinstance(decay, Mapping) else decay


def _cell(one: Record | Search) -> tuple[Any, ...]:
    """What is replaced as a whole; where depth is what changes, every depth by itself."""
    depth = one.depth if isinstance(one, Record) and one.experiment == "depth" else None
    return (one.dataset, one.variant, one.model, one.preset, depth)


def _reason(name: str, problem: Exception) -> str:
    """One line without paths, since it is kept beside results; the way out is said by ``unspool datasets NAME``."""
    if name == "arxiv":
        return "ogbn-arxiv not run: features missing"
    if isinstance(problem, ImportError):
        return f"{name} not run: {' '.join(str(problem).split())}"
    return f"{name} not run: {str(problem).partition(';')[0].rpartition(': ')[2]}; `unspool datasets {name}` says where it belongs"
