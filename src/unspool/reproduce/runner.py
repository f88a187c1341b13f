"""Where experiments are run: one store for all of them, the data that are here, and records of what came out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from unspool import datasets, study
from unspool.datasets import Dataset
from unspool.device import device_for
from unspool.files import one_at_a_time
from unspool.parallel import worker_count
from unspool.report import counted
from unspool.reproduce.conditions import CLEAN, Condition
from unspool.reproduce.machine import Timer
from unspool.reproduce.options import RunOptions, Workspace
from unspool.reproduce.records import EXPERIMENTS, Record, Search
from unspool.reproduce.results import read_measurements, read_records, read_searches, write, write_searches
from unspool.study import Progress, Row, Status, Store
from unspool.train import Ending, Result, Task, Trial, TrialLoader, train_trial
from unspool.train.threads import SMALL

#: Files of single numbers, by the experiment that writes them.
_FILES = {"robust": ("damage",), "nonlinearity": ("nonlinearity",), "identity": ("identity",)}
_ELSEWHERE = "give another folder with --out"
#: Seconds between two looks at trials that other processes train, and between two lines about how training is getting on.
_WAIT, LINE_EVERY = 1.0, 15.0

#: Shows how trials are getting on: called with a title, the trials and how many had ended before.
Watching = Callable[[str, Sequence[Trial], int], AbstractContextManager[Callable[[Progress], None] | None]]


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A trial with the network that it made, with the weights of its selected epoch."""

    trial: Trial
    model: Any
    task: Task
    result: Result


class ExperimentRunner:
    """Trains the trials of experiments and keeps what came of them.

    Args:
        workspace: where and how.
        options: what is to be run.
        watching: who looks on; nobody when omitted.
        load: reads a dataset by its name; from the data root when omitted.
        say: is told in a line what comes next, where trials are not watched; nobody when omitted.

    Attributes:
        missing: why datasets are not run, by name; ``found``: those that are here.
        trained: how many trials this runner has trained; those that were in the store do not count.
        failed: messages of trials that failed.

    Example:
        >>> import pathlib, tempfile
        >>> from unspool.reproduce.table2 import run_table2
        >>> options = RunOptions(seeds=2, epochs=5, models=("SGC",), datasets=("citeseer",))
        >>> with ExperimentRunner(Workspace(pathlib.Path(tempfile.mkdtemp())), options) as runner:
        ...     records = run_table2(runner, ("paper",))
        >>> [(record.model, record.seed, record.result.epochs) for record in records]
        [('SGC', 0, 5), ('SGC', 1, 5)]
    """

    def __init__(
        self,
        workspace: Workspace,
        options: RunOptions,
        watching: Watching | None = None,
        load: Callable[[str], Dataset] | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.workspace, self.options, self.watching = workspace, options, watching
        self.say = (lambda _: None) if say is None else say
        workspace.results.mkdir(parents=True, exist_ok=True)
        self.store = Store(workspace.store)
        self._load = load
        self._data: dict[str, Dataset] = {}
        self.missing: dict[str, str] = {}
        self.found: set[str] = set()
        self.failed: list[str] = []
        self.trained = 0
        self.searched = False

    def __enter__(self) -> ExperimentRunner:
        return self

    def __exit__(self, *problem: object) -> None:
        self.store.close()

    # -- data ----------------------------------------------------------------------------------------------------------

    def dataset(self, name: str) -> Dataset | None:
        """A dataset, or None with the reason in ``missing``."""
        if name not in self._data and name not in self.missing:
            try:
                found = datasets.load(name, self.workspace.root) if self._load is None else self._load(name)
            except (FileNotFoundError, ImportError) as problem:
                self.missing[name] = _reason(name, problem)
                return None
            self.found.add(name)
            # One at a time: the large sets take gigabytes.
            self._data = {name: replace(found, name=name)}
        return self._data.get(name)

    def datasets(self, names: Iterable[str]) -> Iterator[Dataset]:
        """Those of some datasets that are here, one after the other."""
        for name in names:
            data = self.dataset(name)
            if data is not None:
                yield data

    def loader(self, data: Dataset) -> TrialLoader:
        """The data where trials are trained: on the device that was asked for, or the one that every command takes."""
        return TrialLoader(data, device_for(self.workspace.device))

    # -- training ------------------------------------------------------------------------------------------------------

    def train(
        self, experiment: str, data: Dataset, trials: Sequence[Trial], condition: Condition = CLEAN
    ) -> dict[Trial, Record]:
        """Train what is not in the store yet, and give all trials as they were run with their records; those that failed have none.

        Args:
            experiment: whose records these are.
            data: what is learnt from.
            trials: under the preset that each says.
            condition: what was done to the data.
        """
        if not trials:
            return {}
        dataset, trials = data.name, [self.shortened(trial) for trial in trials]
        named = data if condition == CLEAN else replace(data, name=f"{dataset} ({condition})")
        loader = self.loader(named)
        keys = {trial: trial.key(loader.fingerprint) for trial in trials}
        if not self.workspace.stored:
            by_key = {key: trial for trial, key in keys.items()}
            self.store.add(list(by_key.values()), loader.record)
            self._train_all(f"{experiment} on {named.name}", by_key, loader)
        ended = self._ended(loader.name)
        if not self.workspace.stored and not set(keys.values()) <= ended.keys():
            ended = self._ended()  # the same trial on the same data under another name
        rows = {trial: ended[key] for trial, key in keys.items() if key in ended}
        self._note_failures(named.name, list(rows.values()))
        results = {trial: row.result for trial, row in rows.items() if row.result is not None}
        whole = _whole(trials, results, self.workspace.stored)
        # Trap: the store keeps a trial as it was first described, and the same one may leave defaults unsaid there and say them here.
        return {
            trial: Record.of(experiment, dataset, trial, result, condition)
            for trial, result in results.items()
            if whole(trial)
        }

    def _train_all(self, title: str, trials: Mapping[str, Trial], loader: TrialLoader) -> None:
        """Train until every trial has ended, here or in another process that works on some of them."""
        ended = self._ended(loader.name)
        left = [trial for key, trial in trials.items() if key not in ended]
        while left:
            with self._look(title, list(trials.values()), len(trials) - len(left)) as watch:
                count = _Counter(watch)
                try:
                    self._run(left, loader, count)
                finally:  # what has ended counts, interrupted or not
                    self.trained += count.done
            # Trap: a trial on the same data under another name is in the store, and under this name it never ends.
            ended = self._ended(loader.name if count.done else None)
            left = [trial for key, trial in trials.items() if key not in ended]
            if left:  # others have them; those of a process that dies are free again
                time.sleep(_WAIT)

    def _run(self, left: Sequence[Trial], loader: TrialLoader, watch: Callable[[Progress], None]) -> None:
        on_cpu = loader.device.type == "cpu"
        epochs = sum(trial.config.epochs for trial in left)
        small = on_cpu and loader.data.nodes <= SMALL
        jobs = worker_count(self.workspace.jobs, len(left), epochs, small) if on_cpu else 1
        study.run(left, loader, store=self.store, jobs=jobs, watch=watch)

    def train_networks(self, loader: TrialLoader, trials: Sequence[Trial]) -> list[TrainedNetwork]:
        """Train trials one by one for their weights, telling how far it is; one that fails is told about and left out."""
        made: list[TrainedNetwork] = []
        began = said_at = time.monotonic()
        for count, trial in enumerate(map(self.shortened, trials)):
            if count and time.monotonic() - said_at > LINE_EVERY:
                said_at = time.monotonic()
                left = (said_at - began) / count * (len(trials) - count)
                self.say(f"  {count} of {counted(len(trials), 'network')}, about {left:.0f} s left")
            try:
                model, run = train_trial(trial, loader)
            except Exception as problem:  # as in a study, what fails by itself leaves the others alone
                self._note(f"{trial.name} on {loader.data.name}: {type(problem).__name__}: {problem}")
                continue
            if run.ending is Ending.INTERRUPTED:  # a part of a training is not a result
                raise KeyboardInterrupt
            self.trained += 1
            task = loader.task(trial.seed, trial.normalise_rows)
            made.append(TrainedNetwork(trial, model.eval(), task, run.result))
        return made

    def _note_failures(self, name: str, rows: Sequence[Row]) -> None:
        for row in rows:
            if row.status is Status.FAILED:
                self._note(f"{row.trial['model']} on {name}: {row.message}")

    def _note(self, failure: str) -> None:
        self.failed = list(dict.fromkeys([*self.failed, failure]))

    def shortened(self, trial: Trial) -> Trial:
        """A trial with no more epochs than were asked for."""
        most = self.options.max_epochs
        if most is None or trial.config.epochs <= most:
            return trial
        return replace(trial, config=trial.config.replace(epochs=most))

    def _ended(self, name: str | None = None) -> dict[str, Row]:
        return {row.key: row for row in self.store.rows(name) if row.status in (Status.DONE, Status.FAILED)}

    def _look(self, title: str, trials: Sequence[Trial], before: int) -> AbstractContextManager[Any]:
        return nullcontext() if self.watching is None else self.watching(title, trials, before)

    # -- keeping -------------------------------------------------------------------------------------------------------

    def keep(self, experiment: str, records: Iterable[Record], searches: Iterable[Search] = ()) -> None:
        """Put entries into the file of an experiment: those that are there already are replaced, others stay."""
        with one_at_a_time(self.workspace.results):  # other processes may add entries of other sets
            self._merge(experiment, list(records), list(searches))

    def _merge(self, experiment: str, new: list[Record], found: list[Search]) -> None:
        if not new:
            return
        folder = self.workspace.results
        entries = {_place(record) for record in new}
        settled = [one for one in new if one.condition == CLEAN and experiment != "depth"]
        sought = {(one.dataset, one.model, one.preset) for one in (*found, *settled)}
        old = [record for record in read_records(folder, experiment) if _place(record) not in entries]
        past = [one for one in read_searches(folder) if one.experiment == experiment]
        write(folder, experiment, [*old, *new])
        write_searches(folder, experiment, [*(s for s in past if (s.dataset, s.model, s.preset) not in sought), *found])

    def check(self, experiment: str, networks: Mapping[tuple[str, str], int]) -> None:
        """Refuse, before the work, to put short runs into the place of long ones, and files that cannot be read.

        Args:
            experiment: the one that is to be run.
            networks: epochs of the networks that are there, by dataset and model.
        """
        if self.workspace.stored:
            return
        names = {kind.__name__ for kind in self.options.model_classes(experiment)}
        how, folder = self.options.experiment(experiment), self.workspace.results
        there: list[Any] = read_records(folder, experiment) if experiment in EXPERIMENTS else []
        if experiment == "depth":  # other depths stay
            there = [record for record in there if record.depth in how["depths"]]
        there += [one for file in _FILES.get(experiment, ()) for one in read_measurements(folder, file)]
        there = [one for one in there if one.model in names and one.dataset in how["datasets"]]
        long = [e for (data, model), e in networks.items() if model in names and data in how["datasets"]]
        epochs = max([*(int(one.settings.get("epochs", 0)) for one in there), *long], default=0)
        seeds = max((one.seed + 1 for one in there), default=0)
        most = self.options.max_epochs
        if most is not None and epochs > most:
            self._refuse(experiment, f"{epochs} epochs", most)
        if experiment != "interpretations" and seeds > how["seeds"]:
            self._refuse(experiment, f"{seeds} seeds", how["seeds"])

    def _refuse(self, experiment: str, there: str, here: int) -> None:
        folder = self.workspace.results
        raise ValueError(
            f"{folder} has {experiment} with {there}, and a run of {here} would take its place; {_ELSEWHERE}"
        )

    def timed(self, experiment: str) -> Timer:
        """Counts seconds and trials of an experiment into ``machine.json``."""
        return Timer(self, experiment)


class _Counter:
    """Looks on for somebody, and remembers how many trials have ended in this run."""

    def __init__(self, watch: Callable[[Progress], None] | None) -> None:
        self.watch, self.done = watch, 0

    def __call__(self, now: Progress) -> None:
        self.done = max(self.done, now.done)
        if self.watch is not None:
            self.watch(now)


def _whole(trials: Sequence[Trial], results: Mapping[Trial, Result], stored: bool) -> Callable[[Trial], bool]:
    """Tells whether nothing is missing next to a trial: what is there in part would be compared with what is whole.

    Of a run that has ended, settings lack seeds that failed. Of one that was cut off and is only read, a model lacks settings, and
    a choice among the others would be another choice.
    """

    def group(trial: Trial) -> tuple[str, str]:
        return (trial.name if stored else trial.with_seed(0).key(""), trial.preset)

    missing = {group(trial) for trial in trials if trial not in results}
    return lambda trial: group(trial) not in missing


def _place(one: Record) -> tuple[Any, ...]:
    """What is replaced as a whole; where depth is what changes, every depth by itself."""
    depth = one.depth if one.experiment == "depth" else None
    return (one.dataset, one.condition, one.model, one.preset, one.interpretation, depth)


def _reason(name: str, problem: Exception) -> str:
    """One line without paths, since it is kept with the results."""
    if isinstance(problem, ImportError):
        return f"{name} not run: {' '.join(str(problem).split())}"
    return f"{name} not run: its files are not here; `unspool datasets {name}` says where they belong"
