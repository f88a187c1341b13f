"""The parts of a study's report behind the summary, each folded: settings, tests, what matters, trials, failures, commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unspool.report import (
    Block,
    Cell,
    Code,
    Figure,
    Notes,
    Paragraph,
    Rows,
    Section,
    Shown,
    Table,
    Tone,
    counted,
    signed,
    text_columns,
)
from unspool.report.text import plain
from unspool.study.report.figures import choice_panels, importance_panel, order_panel, parallel_figure
from unspool.study.report.findings import LEVEL, Findings
from unspool.study.results.best import Best
from unspool.study.results.commands import model_command, train_command
from unspool.study.results.exporting import shown, spread
from unspool.study.results.importances import Importance
from unspool.study.results.trial_table import TrialTable
from unspool.train.loss import SHARES

#: So many settings are listed.
LISTED = 50

FLOOR = (
    "Chance: what the setting would explain if it changed nothing. Its values are dealt out anew at random, on a full grid among trials that have all "
    "else in common, and 95 % of the resulting shares lie below this number. A share that is not above it says nothing."
)


def sections_of(found: Findings, name: str, file: Path | None) -> list[Section]:
    """Everything about one dataset; ``name`` tells its pictures from those of others, ``file`` is that of the study."""
    made = [
        _folded("Best settings", _settings(found), _settings_gist(found)),
        _folded("Is the lead real?", _tests(found), _tests_gist(found)),
        _folded("Which settings matter", _matters(found, name), _matters_gist(found)),
        _folded("All settings at once", _parallel(found, name)),
        _folded("Scores over trials", [Figure([order_panel(f"{name}-order", found)], "A dot for each trial.")]),
        _folded("Trials that failed or diverged", _failures(found), _failures_gist(found)),
        _folded("Commands that repeat the best trials", _commands(found, file)),
    ]
    return [section for section in made if section.blocks]


def settings_table(caption: str, groups: Sequence[Best]) -> Table:
    """One row for each setting: what tells it from the others, and its numbers.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> settings_table("Best", example_table().leaders(1)).texts
        [('1', 'UGDGNN', '0.5', '82.57 ± 0.15 %', '82.68 ± 0.10 %', '3')]
    """
    names = [k for k in groups[0].varied if any(k in best.settings for best in groups)]
    noted = ["note"] if any(best.note for best in groups) else []
    columns = ["rank", *text_columns(*names), "validation", "test", "seeds", *text_columns(*noted)]
    rows: Rows = []
    for place, best in enumerate(groups, 1):
        numbers = [
            Cell(spread(x.mean, x.std, best.score), x.mean if x.finite else None) for x in (best.valid, best.test)
        ]
        settings = [shown(best.settings.get(k)) for k in names]
        rows.append([Cell.count(place), *settings, *numbers, Cell.count(best.n), *([best.note] if noted else [])])
    return Table(caption, columns, rows)


def _folded(heading: str, blocks: Sequence[Block], gist: str = "") -> Section:
    return Section(heading, blocks, gist, Shown.FOLDED)


def _settings(found: Findings) -> list[Block]:
    words = "Mean ± standard deviation over seeds, ordered by validation; test scores are reported, and play no part in the order."
    blocks: list[Block] = [Paragraph([words])]
    if len(found.models) > 1:
        blocks.append(settings_table("The best settings of each model", found.models))
    many = len(found.leaders)
    caption = f"The {LISTED} best of {many} settings" if many > LISTED else f"All {many} settings"
    blocks.append(settings_table(caption, found.leaders[:LISTED]))
    return [*blocks, Paragraph(["Everything else is the same in all of them: " + _common(found)])]


def _settings_gist(found: Findings) -> str:
    models = len(found.models)
    return f"{counted(len(found.leaders), 'setting')}" + (f" of {models} models" if models > 1 else "")


def _common(found: Findings) -> str:
    """The settings of the best model that do not vary, in words."""
    hidden = ("model", "data", "seed", "preset", *found.best.varied)
    return plain({name: shown(value) for name, value in found.best.settings.items() if name not in hidden})


def _tests(found: Findings) -> list[Block]:
    if len(found.leaders) < 2:
        return []
    if not found.rivals:
        words = "Nothing was tested: a paired test needs two test scores on the same seeds."
        return [Paragraph([words])]
    times, unit = (100, " in points") if found.best.score in SHARES else (1, "")
    rows: Rows = []
    for one in found.rivals:
        p = one.p_value if one.corrected is None else one.corrected
        better, worse = p < LEVEL and one.difference > 0, p < LEVEL and one.difference < 0
        tone = Tone.BETTER if better else Tone.WORSE if worse else Tone.NEAR
        words = "better" if better else "worse" if worse else "cannot be told apart"
        interval = Cell(f"{signed(times * one.low)} to {signed(times * one.high)}", one.low)
        numbers = [Cell.signed(times * one.difference), interval, _p(one.p_value), _p(p), Cell.count(one.n)]
        rank = Cell.count(1 + found.leaders.index(one.b))
        rows.append([rank, *numbers, Cell(words, tone=tone), _name(one.b, found)])
    caption = f"The best settings against the next ones on test {found.best.score}: paired t-tests over equal seeds"
    columns = ["against rank", f"difference{unit}", "95 % interval", "p", "p (Holm)", "pairs"]
    table = Table(caption, [*columns, *text_columns("the best is", "settings that follow")], rows)
    words = "Verdicts go by p (Holm): the p-value after Holm's correction for making several tests; below 0.05 counts as real."
    return [Paragraph([words]), table]


def _tests_gist(found: Findings) -> str:
    real = sum(one.corrected is not None and one.corrected < LEVEL and one.difference > 0 for one in found.rivals)
    return f"better than {real} of the next {len(found.rivals)}" if found.rivals else ""


def _matters(found: Findings, name: str) -> list[Block]:
    if found.importance is None:
        return [Paragraph([f"Not known: {found.silence}."])]
    words = f"{found.importance.method.value[:1].upper()}{found.importance.method.value[1:]}. {FLOOR}"
    bars = Figure([importance_panel(f"{name}-importance", found.importance)], "What each setting explains.")
    caption = "The validation score against each setting: a dot is one combination of settings."
    choices = Figure(choice_panels(f"{name}-choice", found), caption)
    notes = [Notes([found.importance.note])] if found.importance.note else []
    return [Paragraph([words]), importance_table(found.importance), bars, choices, *notes]


def _matters_gist(found: Findings) -> str:
    if found.importance is None:
        return ""
    above = [name for name in found.importance.shares if name not in found.importance.noise]
    return f"above chance: {', '.join(above)}" if above else "none explains more than chance"


def importance_table(found: Importance) -> Table:
    """Shares and floors.

    Example:
        >>> from unspool.study.results.importances import importance
        >>> from unspool.study.results.trial_table import example_table
        >>> importance_table(importance(example_table())).texts[0]
        ('dropout', '52', '28', 'yes')
    """
    rows: Rows = []
    for name, share in found.bars():
        floor = found.floors.get(name)
        above = Cell("–") if floor is None else Cell("no", tone=Tone.NEAR) if name in found.noise else Cell("yes")
        chance = Cell("–") if floor is None else Cell.number(100 * floor, 0)
        rows.append([name, Cell.number(100 * share, 0), chance, above])
    columns = [*text_columns("setting"), "explains (%)", "chance gives up to (%)", *text_columns("more than chance")]
    return Table(f"What explains the {found.target.value} of {found.count} settings", columns, rows)


def _parallel(found: Findings, name: str) -> list[Block]:
    figure = parallel_figure(f"{name}-parallel", found)
    return [] if figure is None else [figure]


def _failures(found: Findings) -> list[Block]:
    blocks: list[Block] = []
    told: dict[str, list[str]] = {}
    for row in found.failed:
        told.setdefault(row.message if row.message is not None else "no message", []).append(str(row.number))
    if told:
        rows: Rows = [[words, Cell.count(len(which)), ", ".join(which[:20])] for words, which in told.items()]
        columns = [*text_columns("what went wrong"), "times", *text_columns("trials")]
        blocks.append(Table("Failed trials", columns, rows))
    if found.diverged:
        part = TrialTable.of(found.diverged)
        caption = "Settings with trials whose loss became infinite or not a number"
        blocks.append(settings_table(caption, part.groups()))
    return blocks


def _failures_gist(found: Findings) -> str:
    return f"{len(found.failed)} failed, {len(found.diverged)} diverged"


def _commands(found: Findings, file: Path | None) -> list[Block]:
    blocks: list[Block] = []
    for best in found.models:
        row = next((row for row in found.table.rows if row.number in best.numbers and row not in found.diverged), None)
        if row is None:
            continue
        seed = f"{_name(best, found)}, seed {row.trial['seed']} (trial {row.number})"
        out = f"out/trial{row.number}"
        known = (
            [] if file is None else [(f"{seed}: train again, check, write the network", model_command(file, row, out))]
        )
        again = train_command(row, out)
        known += [] if again is None else [(f"{seed}: train without the study", again)]
        for words, command in known:
            blocks += [Paragraph([f"{words}:"]), Code(command)]
    return blocks


def _name(best: Best, found: Findings) -> str:
    several = len(found.models) > 1 or not best.label
    return ", ".join(part for part in (best.model if several else "", best.label) if part)


def _p(value: float) -> Cell:
    return Cell("< 0.0001" if value < 1e-4 else f"{value:.2g}", value)
