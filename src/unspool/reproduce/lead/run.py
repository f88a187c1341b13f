"""Running the parts in order: search, freeze, finals, ablation."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import unspool
from unspool import datasets as data_sets
from unspool.device import device_for
from unspool.errors import DataError, mention
from unspool.reproduce.lead.ablation import variants
from unspool.reproduce.lead.finals import ALONE, AVERAGED, WHOLE, append, evaluate, read
from unspool.reproduce.lead.labelled import CountedLoader, LabelledLoader, balanced
from unspool.reproduce.lead.mass import class_masses
from unspool.reproduce.lead.plan import Plan
from unspool.reproduce.lead.search import Choice, read_choices, search, write_choice
from unspool.reproduce.lead.space import Space
from unspool.study import Store
from unspool.train import Trial

#: Seeds of the search under which a network finds the masses of the classes.
MASS_SEEDS = 8

#: What can be run, in this order; without any of them the table alone is printed.
PARTS = ("search", "finals", "ablation")


@dataclass(frozen=True)
class LeadRun:
    """Where and how.

    Processes that run different data sets may share ``out``.

    Attributes:
        out: the folder of ``choices/``, ``finals.csv``, ``DATASET.db`` (every trial of the search) and ``predictions/`` (of the final networks).
        plan: what is searched; ``lead.toml`` when omitted.
        root: of raw data; ``UNSPOOL_DATA`` when omitted.
        device: a GPU where there is one when omitted.
        commit: which state of the project this is; asked of git when omitted.
        seconds: for the search of one data set, all entries together; no end when omitted.
        final_seconds: the same for final evaluations and ablation.
        say: is told a line now and then.
        watch: is told how trials are getting on.
    """

    out: Path
    plan: Plan = field(default_factory=Plan.read)
    root: Path | None = None
    device: str | None = None
    commit: str | None = None
    seconds: float | None = None
    final_seconds: float | None = None
    say: Callable[[str], None] = lambda _: None
    watch: Callable[[Any], None] | None = None

    @property
    def choices(self) -> Path:
        """The folder of the choices."""
        return self.out / "choices"

    @property
    def finals(self) -> Path:
        """The file of the final evaluations."""
        return self.out / "finals.csv"

    def run(self, names: Sequence[str] = (), parts: Sequence[str] = PARTS, entries: Sequence[str] = ()) -> None:
        """Run parts on data sets; what was chosen or evaluated before under the same space stays as it is."""
        if not parts:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        commit = self.commit if self.commit is not None else commit_of(Path(unspool.__file__).parent)
        for name in names if names else self.plan.datasets:
            data = data_sets.load(name, self.root)
            with Store(self.out / f"{name}.db") as store:
                one = _OneSet(self, name, entries if entries else self.plan.entries, commit, data, store)
                if "search" in parts:
                    one.search()
                if "finals" in parts or "ablation" in parts:
                    one.evaluate(parts)


@dataclass(frozen=True)
class _OneSet:
    """The work on one data set."""

    job: LeadRun
    name: str
    entries: Sequence[str]
    commit: str
    data: data_sets.Dataset
    store: Store

    def search(self) -> None:
        """Choose a setting for each entry that has none."""
        job, held = self.job, self._choices()
        spaces = [Space.of(entry, self.name, job.plan) for entry in self.entries if entry not in held]
        if not spaces:
            return
        loader = self._labelled(spaces[-1])
        for chosen in search(spaces, loader, self.store, job.watch, job.seconds, self.commit, job.say):
            write_choice(chosen, job.choices)
            told = f"{chosen.settings} settings, {chosen.trials} trials, held-out nodes over {chosen.seeds} seeds"
            job.say(f"{self.name}, {chosen.entry}: {told}")
            for valid, trial in zip(chosen.valid_scores, chosen.made(), strict=True):
                job.say(f"  {100 * valid:.2f}  {told_of(trial)}")

    def _labelled(self, space: Space) -> LabelledLoader:
        """The labelled nodes; where as many of each class were taken, they count at the masses that the first setting of the plain entry finds."""
        device, job = device_for(self.job.device), self.job
        loader = LabelledLoader(self.data, device)
        split = self.data.split
        if split is None or not balanced(split, loader.first.target.cpu()):
            return loader
        mass = class_masses(loader, space.rounds()[0][0], space.seeds[:MASS_SEEDS])
        job.say(f"{self.name}: classes have the masses {', '.join(f'{share:.3f}' for share in mass)}")
        return LabelledLoader(self.data, device, mass)

    def evaluate(self, parts: Sequence[str]) -> None:
        """Final evaluations of all entries, then ours without its parts, until time is up."""
        job, held = self.job, self._choices()
        lost = next((entry for entry in self.entries if entry not in held), None)
        if lost is not None:
            raise DataError(
                str(job.choices), f"no choice for {lost} on {self.name} under this space", "run the part search first"
            )
        wanted = [(held[entry], self._finals(held[entry])) for entry in self.entries if "finals" in parts]
        ours = job.plan.entries[0]
        if "ablation" in parts and ours in self.entries:
            wanted += [
                (held[ours], {name: [one]}) for name, one in variants(held[ours].made()[0]).items() if name != WHOLE
            ]
        began = time.monotonic()
        for chosen, one in wanted:
            left = None if job.final_seconds is None else job.final_seconds - (time.monotonic() - began)
            known = {row.place for row in read(job.finals)}
            if all((chosen.space, self.name, chosen.entry, variant) in known for variant in one):
                continue
            if left is not None and left <= 0:
                job.say(f"{self.name}, {chosen.entry}, {', '.join(one)}: no time was left; run the same command again")
                continue
            loader = CountedLoader(self.data, device_for(job.device), chosen.mass)
            folder = job.out / "predictions" / self.name
            made = evaluate(chosen, one, loader, self.commit, job.plan.final_seeds, folder, job.watch, left)
            for row in append(job.finals, made):
                told = f"{row.mean:.2f} ± {row.std:.2f} over {row.seeds} seeds, {row.split}"
                job.say(f"{row.dataset}, {row.entry}, {row.variant}: {told}")

    def _finals(self, chosen: Choice) -> dict[str, list[Trial]]:
        """The choice as its entry is evaluated, and the other of one and several."""
        members, many = chosen.made(), self.job.plan.averaged(chosen.entry)
        if len(members) == 1:
            return {WHOLE: members}
        return {WHOLE: members, ALONE: members[:1]} if many > 1 else {WHOLE: members[:1], AVERAGED: members}

    def _choices(self) -> dict[str, Choice]:
        found = read_choices(self.job.choices, self.job.plan.digest) if self.job.choices.is_dir() else []
        return {one.entry: one for one in found if one.dataset == self.name}


def told_of(trial: Trial) -> str:
    """A setting in one line.

    Example:
        >>> import unspool as us
        >>> told_of(Trial(us.models.StableGNN, {"depth": 3}, us.train.TrainConfig(upper="ce + consistency under drop_nodes(0.5)")))
        'CE(Y, pʳ)  +  ‖pʳ − p̄‖²   (...); depth 3; lr 0.01, decay 0.0005, lowest validation loss'
    """
    settings = ", ".join(f"{name} {trial.shown(name)}" for name in trial.settings)
    config = trial.config
    return f"{config.upper}; {settings}; lr {config.lr:g}, decay {config.weight_decay}, {config.monitor.value}"


def commit_of(folder: Path) -> str:
    """The commit that a folder of the project is at, with ``-dirty`` where files in it have been changed since.

    Example:
        >>> import tempfile
        >>> commit_of(Path(tempfile.mkdtemp()))
        Traceback (most recent call last):
            ...
        unspool.errors.DataError: ... final evaluations name the commit they are made with, and this is no git repository of the project; ...
    """
    # Trap: an installed package may lie inside somebody else's repository, which does not track it.
    asked = (
        ["ls-files", "--error-unmatch", "."],
        ["rev-parse", "--short=12", "HEAD"],
        ["status", "--porcelain", "--untracked-files=no", "."],
    )
    with suppress(OSError, subprocess.CalledProcessError):
        _, commit, changed = (
            subprocess.run(["git", "-C", str(folder), *one], capture_output=True, text=True, check=True).stdout.strip()
            for one in asked
        )
        return f"{commit}-dirty" if changed else commit
    raise DataError(
        str(folder),
        "final evaluations name the commit they are made with, and this is no git repository of the project",
        f"say it with {mention('commit')}",
    )
