"""What experiments found, as JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from unspool.cli.study.screen import echo
from unspool.datasets.statistics import Row
from unspool.reproduce import choose
from unspool.reproduce.all_claims import all_claims
from unspool.reproduce.claims import ClaimTest
from unspool.reproduce.csv_rows import to_plain
from unspool.reproduce.entries import BY, Entry
from unspool.reproduce.interpretations import explain_misses
from unspool.reproduce.networks import Network
from unspool.reproduce.records import Results
from unspool.reproduce.sections.networks import ends
from unspool.reproduce.summary import causes_for
from unspool.theory import Certificate

#: Files of single numbers, by the experiment that writes them.
_MEASURED = {"robust": ("signals", "damage"), "nonlinearity": ("nonlinearity",), "identity": ("identity",)}


def echo_results(experiment: str, results: Results) -> None:
    """The numbers, entries, claims and searches of one experiment."""
    for file in _MEASURED.get(experiment, ()):
        for one in results.measured(file):
            echo({"event": "measured", **to_plain(one)})
    for entry in _entries(experiment, results):
        causes = [str(cause) for cause in causes_for(entry)] if entry.met is False else []
        echo({"event": "cell", **_plain_entry(entry), "causes": causes})
    for subject in all_claims(results):
        if subject.experiment == experiment:
            echo_tests(subject.tests)
    for one in results.searches:
        if one.experiment == experiment:
            echo({"event": "search", **to_plain(one)})


def echo_tests(tests: Iterable[ClaimTest]) -> None:
    """Every comparison of some claims."""
    for test in tests:
        found = test.comparison
        names = ("difference", "low", "high", "p_value", "corrected")
        echo(
            {
                "event": "claim",
                "topic": test.claim.topic.name.lower(),
                "claim": test.claim.text,
                "dataset": test.dataset,
                **({} if test.condition is None else to_plain(test.condition)),
                "verdict": test.verdict.name.lower(),
                "a": found.a.model,
                "b": found.b.model,
                **{name: getattr(found, name) for name in names},
                "pairs": found.n,
            }
        )


def echo_networks(networks: Sequence[Network]) -> None:
    """The mean response of each network at the lowest, the middle and the highest frequency."""
    for one in networks:
        gains = ends(one)
        if gains is not None:
            at = dict(zip(("at_0", "at_1", "at_2"), gains, strict=True))
            echo({"event": "response", "dataset": one.dataset, "model": one.model, **at})


def echo_sizes(rows: Iterable[Row]) -> None:
    """Table 3."""
    for row in rows:
        echo({"event": "dataset", **asdict(row)})


def echo_certificates(certificates: Iterable[Certificate]) -> None:
    """The paper's statements, tested."""
    for one in certificates:
        echo({"event": "certificate", **to_plain(one)})


def _entries(experiment: str, results: Results) -> list[Entry]:
    if experiment == "interpretations":
        return [entry for one in explain_misses(results) for entry in one.tried]
    return choose(results.of(experiment), (*BY, "depth"))


def _plain_entry(entry: Entry) -> dict[str, Any]:
    first, standing = entry.first, entry.standing
    same = ("experiment", "dataset", "model", "preset", "interpretation", "depth")
    return {
        **{name: getattr(first, name) for name in same},
        **to_plain(first.condition),
        "mean": entry.mean,
        "std": 100 * entry.test.std,
        "validation": 100 * entry.valid.mean,
        "seeds": len(entry.records),
        "printed": entry.printed,
        "difference": entry.difference,
        "standing": None if standing is None else standing.name.lower(),
    }
