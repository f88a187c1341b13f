"""Running the parts in order: search, freeze, finals, ablation."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import unspool
from unspool import datasets as data_sets
from unspool.device import device_for
from unspool.errors import DataError, mention
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.lead.ablation import variants
from unspool.reproduce.lead.finals import WHOLE, Final, append, evaluate, read
from unspool.reproduce.lead.search import Choice, read_choices, search, write_choice
from unspool.reproduce.lead.space import Space
from unspool.study import Store
from unspool.train import TrialLoader

#: What can be run, in this order.
PARTS = ("search", "finals", "ablation")


@dataclass(frozen=True)
class LeadRun:
    """Where and how.

    Attributes:
        out: the folder of ``lead/`` (choices), ``finals.csv`` and ``lead-DATASET.db`` (every trial).
        root: of raw data; ``UNSPOOL_DATA`` when omitted.
        device: a GPU where there is one when omitted.
        commit: which state of the project this is; asked of git when omitted.
        say: is told a line now and then.
        watch: is told how trials are getting on.
    """

    out: Path
    root: Path | None = None
    device: str | None = None
    commit: str | None = None
    say: Callable[[str], None] = lambda _: None
    watch: Callable[[Any], None] | None = None

    @property
    def choices(self) -> Path:
        """The folder of the choices."""
        return self.out / "lead"

    @property
    def finals(self) -> Path:
        """The file of the final evaluations."""
        return self.out / "finals.csv"

    def run(self, names: Sequence[str] = (), parts: Sequence[str] = PARTS, entries: Sequence[str] = ()) -> None:
        """Run parts on data sets; what was chosen or evaluated before under the same space stays as it is."""
        how = read_experiment("lead")
        self.out.mkdir(parents=True, exist_ok=True)
        for name in names if names else how["datasets"]:
            loader = TrialLoader(data_sets.load(name, self.root), device_for(self.device))
            with Store(self.out / f"lead-{name}.db") as store:
                for entry in entries if entries else how["entries"]:
                    self._one(entry, name, loader, store, parts)

    def _one(self, entry: str, name: str, loader: TrialLoader, store: Store, parts: Sequence[str]) -> None:
        chosen = self._choice(entry, name)
        if chosen is None and "search" in parts:
            chosen = search(Space.of(entry, name), loader, store, self.watch)
            write_choice(chosen, self.choices)
            told = f"{chosen.settings} settings, {chosen.trials} trials, validation {100 * chosen.valid_score:.2f}"
            self.say(f"{name}, {entry}: {told}")
        if "finals" not in parts and "ablation" not in parts:
            return
        if chosen is None:
            raise DataError(
                str(self.choices), f"no choice for {entry} on {name} under this space", "run the part search first"
            )
        for row in append(self.finals, self._evaluated(chosen, parts, loader, store)):
            self.say(
                f"{row.dataset}, {row.entry}, {row.variant}: {row.mean:.2f} ± {row.std:.2f} over {row.seeds} seeds, {row.split}"
            )

    def _evaluated(self, chosen: Choice, parts: Sequence[str], loader: TrialLoader, store: Store) -> list[Final]:
        """What was asked for and has not been evaluated before."""
        every = {WHOLE: chosen.made()}
        if "ablation" in parts and chosen.entry == "StableGNN":
            every = variants(chosen.made())
        known = {one.place for one in read(self.finals)}
        wanted = {
            variant: trial
            for variant, trial in every.items()
            if ("finals" in parts or variant != WHOLE)
            and (chosen.space, chosen.dataset, chosen.entry, variant) not in known
        }
        return evaluate(chosen, wanted, loader, self._commit(), store, self.watch) if wanted else []

    def _choice(self, entry: str, name: str) -> Choice | None:
        found = read_choices(self.choices) if self.choices.is_dir() else []
        return next((one for one in found if (one.entry, one.dataset) == (entry, name)), None)

    def _commit(self) -> str:
        if self.commit is not None:
            return self.commit
        return commit_of(Path(unspool.__file__).parent)


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
