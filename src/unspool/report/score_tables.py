"""Tables of what lies behind a score: baselines, all scores, class by class, and which class is taken for which."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from unspool.evaluate import ClassScores
from unspool.report.evidence import Evidence
from unspool.report.score import Score
from unspool.report.seeds import mean_and_spread
from unspool.report.table import Cell, Column, Heat, Table, facts
from unspool.report.text import NONE, Tone, counted, shown
from unspool.train.baselines import Baseline, BaselineScore

#: Confusion matrices of more classes are not shown: the table of classes says more.
WIDEST = 20


def baseline_name(which: Baseline, kind: str) -> str:
    """A baseline as people call it.

    Example:
        >>> baseline_name(Baseline.CONSTANT, "numbers"), baseline_name(Baseline.GRAPH, "classes")
        ('always the mean of the training nodes', 'label propagation (the graph alone)')
    """
    if which is Baseline.FEATURES:
        return "MLP (the features alone)"
    if which is Baseline.GRAPH:
        return "label propagation (the graph alone)"
    constant = {"classes": "always the most common class", "numbers": "always the mean of the training nodes"}
    return constant.get(kind, "the same answer for all")


def baseline_table(found: Evidence) -> Table | None:
    """The model beside simpler ones; None where nothing was measured."""
    held = found.baselines
    if held is None:
        return None
    ours = found.job.values("test_score")
    rows = [_score_row(f"{found.job.first.card.get('model')} (this model)", ours, found.score)]
    rows += [_baseline_row(one, found) for one in held.entries]
    seeds = f", {counted(len(held.seeds), 'seed')}" if len(held.seeds) > 1 else ""
    caption = f"Beside it, on the same split{'s' if len(held.seeds) > 1 else ''}{seeds}"
    columns = [Column("model", numbers=False), f"test {found.score.heading}"]
    return Table(caption, columns, rows)


def _score_row(name: str, values: list[float], score: Score) -> list[str | Cell]:
    found = mean_and_spread(values)
    return [name, Cell(score.range(values), None if found is None else found[0])]


def _baseline_row(one: BaselineScore, found: Evidence) -> list[str | Cell]:
    name = baseline_name(one.baseline, found.kind)
    if one.skipped is not None:
        return [name, Cell(f"{NONE}\n{one.skipped.value}", None, Tone.QUIET)]
    return _score_row(name, list(one.scores), found.score)


#: Scores of classes: name, whether in per cent, and where it is found.
_OF_CLASSES: tuple[tuple[str, Callable[[ClassScores], float | None]], ...] = (
    ("accuracy", lambda c: c.accuracy),
    ("share of the most common class", lambda c: c.majority),
    ("balanced accuracy (mean recall)", lambda c: c.balanced_accuracy),
    ("macro-F1", lambda c: c.macro_f1),
    ("AUC", lambda c: c.auc),
    ("average precision", lambda c: c.average_precision),
)


def score_table(found: Evidence) -> Table | None:
    """Every score of the test nodes, mean ± standard deviation over seeds."""
    share, plain = Score("", percent=True), Score("", percent=False)
    pairs: list[tuple[str, str | None]] = []
    for name, read in _OF_CLASSES:
        values = [v for c in found.classes if (v := read(c)) is not None]
        pairs.append((name, f"{share.range(values)} %" if values else None))
    for name, label in (("log_loss", "log-loss"), ("brier", "Brier score"), ("ece", "expected calibration error")):
        values = [getattr(e.raw, name) for e in found.evaluations if e.raw is not None]
        mild = [getattr(e.calibrated, name) for e in found.evaluations if e.calibrated is not None]
        after = f", calibrated {plain.range(mild)}" if mild else ""
        pairs.append((label, f"{plain.range(values)}{after}" if values else None))
    pairs += _number_pairs(found, plain)
    made = facts(f"Scores of {counted(found.test_items, 'test node')}" if found.test_items else "Scores", pairs)
    return made if made.rows else None


def _number_pairs(found: Evidence, plain: Score) -> list[tuple[str, str | None]]:
    pairs: list[tuple[str, str | None]] = []
    names = _targets(found)
    for k, target in enumerate(names):
        of = f" of {target}" if len(names) > 1 else ""
        columns = [n[k] for n in found.numbers]
        for label, read in _OF_NUMBERS:
            values = [v for c in columns if (v := read(c)) is not None]
            pairs.append((f"{label}{of}", plain.range(values) if values else None))
    return pairs


_OF_NUMBERS: tuple[tuple[str, Callable[[Any], float | None]], ...] = (
    ("RMSE", lambda n: n.rmse),
    ("RMSE of always the training mean", lambda n: n.mean_rmse),
    ("mean absolute error", lambda n: n.mae),
    ("R²", lambda n: n.r2),
    ("mean of predicted − true", lambda n: n.bias),
)


def _targets(found: Evidence) -> list[str]:
    many = len(found.numbers[0]) if found.numbers else 0
    told = found.job.first.part("data").get("targets")
    names = [str(name) for name in told] if isinstance(told, list) else []
    return names if len(names) == many else [str(k) for k in range(many)]


def class_table(found: Evidence) -> Table | None:
    """Precision, recall and F1 of every class, with how many nodes it has."""
    if not found.classes:
        return None
    rows: list[list[str | Cell]] = []
    for k, name in enumerate(found.names):
        learnt = [e.train_support[k] for e in found.evaluations if e.train_support]
        counts = [
            Cell.count(round(sum(v) / len(v))) if v else Cell(NONE)
            for v in (learnt, [c.support[k] for c in found.classes])
        ]
        scores = [_mean_cell([getattr(c, part)[k] for c in found.classes]) for part in ("precision", "recall", "f1")]
        rows.append([name, *counts, *scores])
    heads = [Column("class", numbers=False), "training nodes", "test nodes", "precision (%)", "recall (%)", "F1 (%)"]
    over = f", means over {len(found.classes)} seeds" if len(found.classes) > 1 else ""
    return Table(
        f"Class by class{over}: precision is the share of right answers among those who got the class, recall among those who have it",
        heads,
        rows,
    )


def _mean_cell(values: list[float | None]) -> Cell:
    known = [v for v in values if v is not None]
    return Cell.number(100 * sum(known) / len(known), 1) if known else Cell(NONE)


def confusion_table(found: Evidence) -> Table | None:
    """Which class is taken for which, each row in shades of its own sum."""
    matrices = [c.confusion for c in found.classes if c.confusion is not None]
    many = len(found.names)
    if not matrices or many > WIDEST:
        return None
    total = [[sum(m[i][j] for m in matrices) for j in range(many)] for i in range(many)]
    rows: list[list[str | Cell]] = []
    for i, row in enumerate(total):
        whole = max(sum(row), 1)
        tones = [Tone.BETTER if i == j else Tone.WORSE for j in range(many)]
        rows.append(
            [
                found.names[i],
                *(Heat(f"{n:,}", float(n), t, math.sqrt(n / whole)) for n, t in zip(row, tones, strict=True)),
            ]
        )
    over = f", summed over {len(matrices)} seeds" if len(matrices) > 1 else ""
    caption = f"True class (rows), predicted class (columns){over}"
    return Table(caption, [Column("true class", numbers=False), *found.names], rows)


def short_scores(found: Evidence) -> str:
    """The most telling scores in half a sentence, for a heading or a terminal.

    Balanced accuracy and macro-F1 for classes, AUC for two, RMSE beside that of the training mean for numbers.
    """
    told: list[str] = []
    for name, read in (
        ("balanced accuracy", lambda c: c.balanced_accuracy),
        ("macro-F1", lambda c: c.macro_f1),
        ("AUC", lambda c: c.auc),
    ):
        value = found.class_mean(read)
        if value is not None and name != found.score.name:
            told.append(f"{name} {shown(100 * value, 2)}")
    if found.numbers:
        first = [n[0] for n in found.numbers]
        ours, theirs = (sum(getattr(n, part) for n in first) / len(first) for part in ("rmse", "mean_rmse"))
        told.append(f"RMSE {ours:.4g} (always the training mean: {theirs:.4g})")
    return ", ".join(told)
