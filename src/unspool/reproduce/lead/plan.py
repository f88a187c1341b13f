"""What is searched and evaluated, and how much of it: a file under ``experiments``, whole or cut down for a short run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from unspool.errors import DataError, InputError
from unspool.reproduce.experiment_files import read_experiment


@dataclass(frozen=True)
class Plan:
    """One file of a search, with its name.

    Attributes:
        name: of the file, without its ending.
        digest: of the file, to the letter, and of what was cut; finals name it, so that those of one space are never taken for those of another.
        how: what the file says.

    Example:
        >>> whole, short = Plan.read("lead"), Plan.read("lead", rounds=1, epochs=5, seeds=2)
        >>> len(whole.final_seeds), len(short.final_seeds), short.rounds("cora"), whole.digest == short.digest
        (10, 2, 1, False)
    """

    name: str
    digest: str
    how: Mapping[str, Any]

    @staticmethod
    def read(
        name: str = "lead",
        *,
        rounds: int | None = None,
        numbers: int | None = None,
        epochs: int | None = None,
        seeds: int | None = None,
    ) -> Plan:
        """The file, or less of it.

        Args:
            name: ``lead``, or another file with the same tables.
            rounds: structures that are drawn for each entry, at most.
            numbers: settings of each structure, at most.
            epochs: of every trial, at most.
            seeds: of the last stage of the search and of the final evaluations, at most.
        """
        how, text = read_experiment(name), _text(name)
        finals, begins = _finals(how), how["search_seed"]
        many = max(max(budget["last"], *(seeds for seeds, _ in budget["stages"])) for budget in how["budget"].values())
        if begins < finals.stop and finals.start < begins + many:
            raise DataError(
                f"{name}.toml",
                f"the search has the seeds {begins} to {begins + many - 1}, and some of them are final ones",
                f"begin it at {finals.stop}",
            )
        for dataset, budget in how["budget"].items():
            if len(how["shares"]) != len(budget["stages"]) + 1:
                raise DataError(
                    f"{name}.toml",
                    f"{dataset} has {len(budget['stages']) + 1} stages, and there are {len(how['shares'])} shares of the time",
                    "write one share for each stage, the last one among them",
                )
        cut = {"rounds": rounds, "numbers": numbers, "epochs": epochs, "seeds": seeds}
        for word, value in cut.items():
            if value is not None and value < 1:
                raise InputError(word, value, "a whole number of at least 1")
        said = {word: value for word, value in cut.items() if value is not None}
        for word in said.keys() & {"epochs"}:
            how["epochs"] = min(how["epochs"], said[word])
        if seeds is not None:
            how["final_seeds"] = min(how["final_seeds"], seeds)
        for budget in how["budget"].values():
            budget["structures"] = min(budget["structures"], said.get("rounds", budget["structures"]))
            budget["numbers"] = min(budget["numbers"], said.get("numbers", budget["numbers"]))
            most = said.get("seeds", budget["last"])
            budget["last"] = min(budget["last"], most)
            budget["stages"] = [[min(many, most), best] for many, best in budget["stages"]]
        digest = hashlib.sha256(text + repr(sorted(said.items())).encode() * bool(said)).hexdigest()[:12]
        return Plan(name, digest, how)

    @property
    def datasets(self) -> list[str]:
        """Their names."""
        return list(self.how["datasets"])

    @property
    def entries(self) -> list[str]:
        """What is compared; the first is ours."""
        return list(self.how["entries"])

    @property
    def final_seeds(self) -> range:
        """Those of the final evaluations."""
        return _finals(self.how)

    @property
    def members(self) -> int:
        """How many settings a search chooses."""
        return max(self.averaged(entry) for entry in self.entries)

    def averaged(self, entry: str) -> int:
        """Of how many of them the answers are averaged in the evaluation of an entry; 1: the best alone is evaluated."""
        return int(self.how.get("averaged", {}).get(entry, 1))

    def rounds(self, dataset: str) -> int:
        """How many structures each entry has on a data set."""
        return int(self.how["budget"][dataset]["structures"])


def _finals(how: Mapping[str, Any]) -> range:
    first = how.get("final_seed", 0)
    return range(first, first + how["final_seeds"])


def _text(name: str) -> bytes:
    return (resources.files("unspool.reproduce") / "experiments" / f"{name}.toml").read_bytes()
