"""The command ``unspool train``: data in, trained models and honest numbers out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import click
import torch
from rich.console import Console

from unspool.cli.card import check_card
from unspool.cli.data_notes import column_lines, weight_lines
from unspool.cli.data_options import DataOptions
from unspool.cli.errors import sentence
from unspool.cli.paths import check_folder
from unspool.cli.progress import Screen
from unspool.cli.spread import Spread, check_no_company, started
from unspool.cli.terminal import Terminal
from unspool.cli.train_options import USUAL, TrainOptions, check_trial, loader_of, name_for_presets
from unspool.cli.train_summary import tell_summary
from unspool.device import check_device
from unspool.files import alone_in, no_empty_folder
from unspool.models.pretrained import CARD, read_card
from unspool.parallel import Event, run_workers, worker_count
from unspool.report import machine
from unspool.reproduce import presets
from unspool.theory.printed_tables import printed_accuracy
from unspool.train import Ending, Epoch, LowerLevel, Monitor, TensorBoard, TrainConfig, Trial, TrialLoader, train_trial
from unspool.train.baselines import FILE as BASELINES
from unspool.train.baselines import baselines_key, measure_baselines, read_baselines, write_baselines
from unspool.train.callbacks import check_tensorboard
from unspool.train.run_folder import SNAPSHOT, RunFolder
from unspool.train.spreading import check_spread
from unspool.train.threads import SMALL, threads_for, use_threads

#: Seconds between events of progress.
EVERY = 0.2


@dataclass(frozen=True)
class RunOptions:
    """How the user wants it done."""

    seeds: int
    first_seed: int
    jobs: int | None
    device: str
    out: Path
    resume: bool
    snapshot_every: float
    quiet: bool
    as_json: bool
    no_report: bool
    command: str
    threads: int | None = None
    tensorboard: Path | None = None
    no_baselines: bool = False
    spread: str | None = None


@dataclass(frozen=True, eq=False)
class Job:
    """Everything that is decided before the first seed."""

    trial: Trial
    loader: TrialLoader
    data: DataOptions
    options: RunOptions
    spread: Spread | None = None

    @staticmethod
    def prepare(how: TrainOptions, data: DataOptions, options: RunOptions, spread: Spread | None = None) -> Job:
        """Settle everything, and refuse what cannot be, before any work."""
        if options.tensorboard is not None:
            check_tensorboard()
        trial = how.trial(data)
        loader = loader_of(data, how.loss, options.device)
        model = check_trial(trial, loader)
        if spread is not None:
            check_spread(model, loader.first, trial.config)
        return Job(trial, loader, data, options, spread)

    @cached_property
    def folder(self) -> RunFolder:
        """Where the seeds go."""
        options = self.options
        facts = {"device": options.device, "hardware": machine(options.device), "command": options.command}
        facts |= {} if self.spread is None else {"spread": str(self.spread)}
        return RunFolder(options.out, self.trial, self.loader, facts)

    def printed(self) -> tuple[float, float] | None:
        """What the paper prints for this model on these data; None where it does not."""
        if self.loader.score != "accuracy" or self.data.own:
            return None
        return printed_accuracy(presets.base_model(self.trial.model), name_for_presets(self.data).lower())

    def papers_own(self) -> tuple[float, float] | None:
        """What the paper prints for its own model on these data, where it has none for this one."""
        if self.loader.score != "accuracy" or self.data.own or self.printed() is not None:
            return None
        return printed_accuracy(USUAL, name_for_presets(self.data).lower())

    def as_printed(self) -> bool:
        """Whether settings and training are those of the paper's table."""
        paper = presets.PAPER.trial(self.trial.model, name_for_presets(self.data))
        return dict(self.trial.settings) == dict(paper.settings) and self.trial.config == paper.config

    def train(self, seed: int, tell: Callable[[Event], None]) -> Event:
        """Train one seed and keep it; tells of its progress, and gives the event of its end."""
        watch = Reporter(seed, self.trial.config.epochs, tell)
        options = self.options
        board = options.tensorboard
        callbacks = () if board is None else (TensorBoard(board / f"seed{seed}"),)
        if self.spread is not None:
            self.spread.next_seed(seed)
        run = self.folder.train(
            seed, resume=options.resume, snapshot_every=options.snapshot_every, watch=watch, callbacks=callbacks,
            spread=None if self.spread is None else self.spread.layout,
        )  # fmt: skip
        ended: Event = {
            "event": "seed", **asdict(run.best), "seed": seed, "epochs": len(run.history), "ending": run.ending.name.lower(),
            "seconds": run.seconds, "folder": str(self.folder.place(seed)), "line": str(run),
        }  # fmt: skip
        tell(ended)
        return ended


class Reporter:
    """Turns epochs into events, not more than some a second."""

    def __init__(self, seed: int, epochs: int, tell: Callable[[Event], None]) -> None:
        self.seed, self.epochs, self.tell = seed, epochs, tell
        self.began = self.told = time.monotonic()
        self.first: int | None = None

    def __call__(self, now: Epoch, best: Epoch) -> None:
        """After each epoch."""
        moment = time.monotonic()
        if self.first is None:
            self.first = now.epoch - 1
        if moment - self.told < EVERY and now.epoch < self.epochs:
            return
        self.told = moment
        speed = (now.epoch - self.first) / max(moment - self.began, 1e-9)
        self.tell({
            "event": "progress", "seed": self.seed, "epoch": now.epoch, "of": self.epochs, "epochs_per_second": speed,
            "train_loss": now.train_loss, "valid_loss": now.valid_loss, "valid_score": now.valid_score,
            "best_epoch": best.epoch, "best_valid_score": best.valid_score, "seconds_left": (self.epochs - now.epoch) / speed,
        })  # fmt: skip


def run(how: TrainOptions, data: DataOptions, options: RunOptions) -> None:
    """Train the model for every seed, print and keep the results."""
    console = Terminal(quiet=options.as_json or options.quiet, soft_wrap=True)
    check_device(options.device)
    if options.spread is None:
        check_no_company()
        _run_into(how, data, options, console)
        return
    with started(options.spread, options.device, options.jobs) as (spread, device):
        options = replace(options, device=device, jobs=1)
        if spread.leads:
            _run_into(how, data, options, console, spread)
        else:
            _follow(Job.prepare(how, data, options, spread))


def _follow(job: Job) -> None:
    """What the processes do that do not lead: train what they are told, and write nothing."""
    spread, ending = job.spread, None
    assert spread is not None
    while (seed := spread.next_seed()) is not None:
        with use_threads(job.options.threads):
            _, run = train_trial(job.trial.with_seed(seed), job.loader, spread=spread.layout)
        ending = run.ending
    if ending is Ending.INTERRUPTED:
        raise click.exceptions.Exit(130)


def _run_into(
    how: TrainOptions, data: DataOptions, options: RunOptions, console: Console, spread: Spread | None = None
) -> None:  # fmt: skip
    with no_empty_folder(options.out):
        check_folder(options.out)
        _run_alone(how, data, options, console, spread)


def _run_alone(
    how: TrainOptions, data: DataOptions, options: RunOptions, console: Console, spread: Spread | None
) -> None:  # fmt: skip
    with alone_in(options.out) as locked:
        if not locked:
            console.print(f"note: {options.out} lies on a file system without locks; let no other run write into it")
        _run(Job.prepare(how, data, options, spread), (how, data, options), console)


def _run(job: Job, typed: tuple[TrainOptions, DataOptions, RunOptions], console: Console) -> None:
    options = job.options
    console.print("\n".join([*_lines(job), f"on {options.device}{_threads(job)}", *_processes(job)]))
    began, scores = time.monotonic(), dict[int, float]()
    wanted = list(range(options.first_seed, options.first_seed + options.seeds))
    for seed in wanted if options.resume else ():
        if (score := _finished(job, seed)) is not None:
            scores[seed] = score
            console.print(f"seed {seed}: finished before, test {score:.4f}")
    left, endings = [seed for seed in wanted if seed not in scores], list[str]()
    with Screen(console, options.as_json) as screen:
        for event in _events(job, typed, left, screen.show):
            scores[event["seed"]] = event["test_score"]
            endings.append(event["ending"])
    if job.spread is not None:
        job.spread.next_seed(None)
    interrupted = _is_interrupted(endings) or len(scores) < len(wanted)
    if not interrupted:
        interrupted = not _baselines(job, wanted, console)
    if interrupted:
        console.print("interrupted: the best epochs so far are kept; --resume continues")
    if scores:
        tell_summary(job, scores, time.monotonic() - began, console)
    if interrupted:
        raise click.exceptions.Exit(130)


def _baselines(job: Job, seeds: list[int], console: Console) -> bool:
    """Measure what simpler models reach, unless it is known; False where someone asked to stop."""
    out, held = job.options.out, read_baselines(job.options.out)
    if held is not None and held.key == baselines_key(job.trial, job.loader, seeds):
        return True
    if held is not None:
        (out / BASELINES).unlink()  # of another job
    if job.options.no_baselines:
        return True
    console.print("measuring baselines: the features alone, the graph alone")
    try:
        with use_threads(job.options.threads):
            found = measure_baselines(job.trial, job.loader, seeds)
    except KeyboardInterrupt:
        found = None
    if found is not None:
        write_baselines(out, found)
    return found is not None


def _finished(job: Job, seed: int) -> float | None:
    """The test score of a seed that was finished before, after a look at its card: it may come from anywhere."""
    place = job.folder.place(seed)
    if (place / CARD).is_file() and not (place / SNAPSHOT).is_file():
        check_card(read_card(place), place, job.loader.outputs)
    return job.folder.finished(seed)


def _is_interrupted(endings: list[str]) -> bool:
    return Ending.INTERRUPTED.name.lower() in endings


def _events(
    job: Job, typed: tuple[TrainOptions, DataOptions, RunOptions], seeds: list[int], show: Callable[[Event], None]
) -> Iterator[Event]:
    """Train the seeds, one after another or several at once; what ends comes out, everything is shown."""
    options = typed[2]
    small = options.device == "cpu" and job.loader.data.nodes <= SMALL
    jobs = worker_count(options.jobs, len(seeds), len(seeds) * job.trial.config.epochs, small)
    if jobs == 1:
        for seed in seeds:
            with use_threads(options.threads):
                ended = job.train(seed, show)
            yield ended
            if _is_interrupted([ended["ending"]]):
                return
        return
    for event in run_workers(_work, (*typed, jobs), seeds, jobs, sentence):
        show(event)
        if event["event"] == "seed":
            yield event


def _work(
    typed: tuple[TrainOptions, DataOptions, RunOptions, int], seeds: list[int], tell: Callable[[Event], None]
) -> None:
    """What one of several processes does."""
    how, data, options, jobs = typed
    job = Job.prepare(how, data, options)
    torch.set_num_threads(max(torch.get_num_threads() // jobs, 1))  # on large graphs; small ones take one
    with use_threads(options.threads):
        for seed in seeds:
            if _is_interrupted([job.train(seed, tell)["ending"]]):
                return


def _threads(job: Job) -> str:
    """How many threads a seed has, where that is a number to speak of."""
    if job.options.device != "cpu":
        return ""
    with use_threads(job.options.threads):
        count = threads_for(job.loader.data.nodes)
    return f", {count} thread{'s'[: count > 1]} for each seed"


def _processes(job: Job) -> list[str]:
    return [] if job.spread is None else [f"one graph, spread by {job.spread}"]


def _lines(job: Job) -> list[str]:
    """What a person reads before the training begins."""
    trial, config = job.trial, job.trial.config
    settings = ", ".join(f"{name} {trial.shown(name)}" for name in trial.settings)
    exact = ", solved exactly" if config.lower_level is LowerLevel.EXACT else ""
    told, usual = config.to_plain(), TrainConfig().to_plain()
    exact += "".join(f", {name} {told[name]}" for name in ("optimiser", "precision") if told[name] != usual[name])
    decay = config.schema["weight_decay"].shown(config.weight_decay)
    kept = "the last one" if config.monitor is Monitor.LAST_EPOCH else f"the one with the {config.monitor.value}"
    return [
        f"{job.loader.data}",
        *column_lines(job.loader.data),
        *weight_lines(job.loader),
        *(["rows of features are scaled to sum 1"] if trial.normalise_rows else []),
        f"{trial.name}, preset {trial.preset}: {settings or 'its defaults'}, learning rate {config.lr:g}, weight decay {decay}{exact}",
        *([] if config.upper is None else [f"makes small  {config.upper}"]),
        f"up to {config.epochs} epochs, of which {kept} is kept; ends early: {config.stop_words()}",
    ]
