"""The paper's sentences in the terminal: paired tests, and the numbers that are not trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from unspool.cli.study.file import columns, console_for
from unspool.cli.study.screen import echo
from unspool.reproduce import results
from unspool.reproduce.claims import SUPERIOR, Answer, counted, standings, told_in_all
from unspool.reproduce.grids import grids
from unspool.reproduce.measured import Measured, read_measured
from unspool.reproduce.sentences import MEASURED_ANSWERS, all_answers
from unspool.reproduce.settings import Scope

#: Files of numbers that are not trials, by the experiment that writes them; signals are those of no data set.
_FILES = {"robust": ("signals", "damage"), "nonlinearity": ("nonlinearity",), "identity": ("identity",)}


def show_claims(folder: Path, as_json: bool) -> None:
    """Every sentence that the results in a folder say something about."""
    found = all_answers(results.read(folder))
    if as_json:
        for subject in found:
            echo_answers(subject.answers)
        return
    console = console_for()
    console.print("The paper's sentences, tested: pairs of equal seeds, p < 0.05 after Holm's correction", markup=False)
    if not found:
        console.print(f"{folder} holds no results that say anything about them", markup=False)
    for subject in found:
        console.print(f"\n{subject.title}", markup=False)
        for count in counted(subject.answers):
            console.print(f"  {count}", markup=False)
        _main_sentence(subject.answers, console)


def show_measured(folder: Path, experiment: str, scope: Scope, console: Console, as_json: bool) -> bool:
    """Numbers that are not trials, about the models and sets that were asked for; False where there are none."""
    found = [one for file in _FILES.get(experiment, ()) for one in read_measured(folder, file) if _is_asked(one, scope)]
    for file in _FILES.get(experiment, ()):
        mine = [one for one in found if one.experiment == file]
        answers = MEASURED_ANSWERS[file](mine)
        if as_json:
            for one in mine:
                echo({"event": "measured", **asdict(one)})
            echo_answers(answers)
            continue
        for grid in grids(mine, file):
            console.print(f"\n{grid.title}", markup=False)
            table = columns(*grid.words, *grid.heads)
            for row in grid.texts:
                table.add_row(*row)
            console.print(table)
        print_answers(answers, console)
    return bool(found)


def _is_asked(one: Measured, scope: Scope) -> bool:
    if one.experiment == "signals":  # on a graph of its own, without networks
        return True
    names = {kind.__name__ for kind in scope.kinds(one.experiment)}
    return one.model in names and one.dataset in scope.asked(one.experiment)["datasets"]


def print_answers(answers: Sequence[Answer], console: Console) -> None:
    """One line for each comparison, then each claim counted; p-values are corrected for the number of comparisons."""
    if not answers:
        return
    table = columns("claim", "set", "first", "second", "difference", "95 % interval", "p (Holm)", "pairs", "verdict")
    for one in answers:
        c, times = one.comparison, one.times
        p = c.p_value if c.corrected is None else c.corrected
        ends = f"{times * c.low:+.2f} to {times * c.high:+.2f}"
        table.add_row(
            one.sentence, one.dataset, *c.names, f"{times * c.difference:+.2f}", ends, f"{p:.2g}", str(c.n), one.verdict.value
        )  # fmt: skip
    console.print("\npaired tests (the same seeds and splits on both sides):")
    console.print(table)
    for count in counted(answers):
        console.print(str(count), markup=False)
    _main_sentence(answers, console)
    console.print()


def _main_sentence(answers: Sequence[Answer], console: Console) -> None:
    """UGDGNN set by set: superior, competitive, or neither."""
    if any(one.sentence == SUPERIOR for one in answers):
        console.print(
            f"  “UGDGNN is superior or competitive on all data sets”: {told_in_all(answers)}; superior: better than every other model, "
            "competitive: worse than none", markup=False,
        )  # fmt: skip
        for standing in standings(answers):
            console.print(f"    {standing}", markup=False)


def echo_answers(answers: Sequence[Answer]) -> None:
    """The same as JSON lines."""
    for one in answers:
        c = one.comparison
        echo({
            "event": "answer", "sentence": one.sentence, "dataset": one.dataset, "verdict": one.verdict.value, "a": c.a.model,
            "b": c.b.model, "difference": c.difference, "low": c.low, "high": c.high, "p_value": c.p_value,
            "corrected": c.corrected, "pairs": c.n,
        })  # fmt: skip
