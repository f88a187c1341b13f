"""Every claim of the paper that can be tested, with the comparisons that answer it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unspool.reproduce.accuracy_claims import accuracy_tests
from unspool.reproduce.attacked import attacked_tests
from unspool.reproduce.claims import ClaimTest
from unspool.reproduce.damage import damage_tests
from unspool.reproduce.depth import depth_tests, smoothing_tests
from unspool.reproduce.heterophily_claims import heterophily_tests
from unspool.reproduce.identity import identity_tests
from unspool.reproduce.nonlinearity import nonlinearity_tests
from unspool.reproduce.records import Measurement, Record, Results
from unspool.reproduce.robust import robust_tests
from unspool.reproduce.signals import signal_tests


@dataclass(frozen=True)
class Subject:
    """What some claims are about, the experiment that tests them, and the tests."""

    title: str
    experiment: str
    tests: tuple[ClaimTest, ...]


def all_claims(results: Results) -> list[Subject]:
    """Every claim that the results at hand say something about.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> made = [example_record(s, model=m, test_score=0.8 + 0.001 * s) for m in ("GPRGNN", "APPNP") for s in range(6)]
        >>> [(subject.title, len(subject.tests)) for subject in all_claims(Results(made))]
        [('Table 2, preset paper', 2)]
    """
    made = [
        Subject(f"Table 2, preset {preset}", name, tuple(accuracy_tests(results.of(name), preset)))
        for name in ("table2", "grid")
        for preset in dict.fromkeys(one.preset for one in results.of(name))
    ]
    made += [Subject(title, name, tuple(tests(results.of(name)))) for title, name, tests in _OF_TRIALS]
    for title, name, file, tests in _OF_MEASUREMENTS:
        made.append(Subject(title, name, tuple(tests(results.measured(file)))))
    return [subject for subject in made if subject.tests]


def _depth_of_all(records: Sequence[Record]) -> list[ClaimTest]:
    models = dict.fromkeys(one.model for one in records)
    return [test for model in models for test in depth_tests(records, model)]


_OF_TRIALS: tuple[tuple[str, str, Callable[[Sequence[Record]], list[ClaimTest]]], ...] = (
    ("depth", "depth", _depth_of_all),
    ("GCN and GCNII at depth", "depth", smoothing_tests),
    ("robustness: features damaged in front of the encoder", "robust", robust_tests),
    ("robustness: attacked edges", "attacked", attacked_tests),
    ("heterophily: learnt signs", "heterophily", heterophily_tests),
)
_OF_MEASUREMENTS: tuple[tuple[str, str, str, Callable[[Sequence[Measurement]], list[ClaimTest]]], ...] = (
    ("robustness: outliers in raw signals", "robust", "signals", signal_tests),
    ("robustness: outliers behind the encoder, and random edges", "robust", "damage", damage_tests),
    ("nonlinearity", "nonlinearity", "nonlinearity", nonlinearity_tests),
    ("the identity outside W", "identity", "identity", identity_tests),
)
