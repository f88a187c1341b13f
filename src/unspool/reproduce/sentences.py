"""The paper's sentences that can be tested, each with the comparisons that answer it: for the terminal and the page alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unspool.reproduce.attacked import attacked_answers
from unspool.reproduce.claims import Answer, accuracy_answers
from unspool.reproduce.damage import damage_answers
from unspool.reproduce.depth import depth_answers, smoothing_answers
from unspool.reproduce.identity import identity_answers
from unspool.reproduce.measured import Measured
from unspool.reproduce.nonlinearity import nonlinearity_answers
from unspool.reproduce.results import Results
from unspool.reproduce.robust import robust_answers
from unspool.reproduce.signals import signal_answers

#: Answers from numbers that are not trials, by experiment.
MEASURED_ANSWERS: dict[str, Callable[[Sequence[Measured]], list[Answer]]] = {
    "signals": signal_answers,
    "damage": damage_answers,
    "nonlinearity": nonlinearity_answers,
    "identity": identity_answers,
}


@dataclass(frozen=True)
class Subject:
    """What some sentences are about, and the answers to them."""

    title: str
    answers: tuple[Answer, ...]


def all_answers(results: Results, presets: Sequence[str] = ("paper", "official", "tuned")) -> list[Subject]:
    """Every sentence that the results at hand say something about.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> rows = [example_record(s, model=m, test_score=0.8 + 0.001 * s) for m in ("GPRGNN", "APPNP") for s in range(6)]
        >>> [(subject.title, len(subject.answers)) for subject in all_answers(Results(rows))]
        [('Table 2, preset paper', 2)]
    """
    deep, named = results.of("depth"), "depth"
    models = dict.fromkeys(row.model for row in deep)
    made = [Subject(f"Table 2, preset {p}", tuple(accuracy_answers(results.of("table2"), p))) for p in presets]
    made.append(Subject(named, tuple(answer for model in models for answer in depth_answers(deep, model))))
    made.append(Subject("GCN and GCNII at depth", tuple(smoothing_answers(deep))))
    titles = {
        "signals": "robustness: outliers in raw signals",
        "damage": "robustness: outliers behind the encoder, and random edges",
        "nonlinearity": "nonlinearity",
        "identity": "the identity outside W",
    }
    made += [Subject(titles[name], tuple(answers(results.measured))) for name, answers in MEASURED_ANSWERS.items()]
    made.append(
        Subject("robustness: features damaged in front of the encoder", tuple(robust_answers(results.of("robust"))))
    )
    made.append(Subject("robustness: attacked edges", tuple(attacked_answers(results.of("attacked")))))
    return [subject for subject in made if subject.answers]
