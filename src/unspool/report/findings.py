"""What the numbers of a job say, and what to do next: each finding with its numbers as fields, and as a sentence."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from enum import Enum

from unspool.report.evidence import Evidence
from unspool.report.text import Tone, counted, shown
from unspool.train import Ending
from unspool.train.baselines import Baseline

#: From which share on the most common class is remarked: half, or this many times its fair share.
HALF, FAIR = 0.5, 1.3
#: Differences of scores that are not shares, or of unknown test sets, need at least this much.
LEAST = 0.02
#: Fewer test nodes are called few.
FEW = 100
#: Temperatures within this factor of 1 change nothing to speak of.
NEAR_ONE = 1.05
#: How much of its recall a class has to lack to be named.
BEHIND = 0.1


class Topic(Enum):
    """What a finding is about."""

    UNBALANCED = "unbalanced classes"
    GRAPH = "what the graph adds"
    FEATURES = "what the features add"
    CONSTANT = "no better than one answer for all"
    CALIBRATION = "whether probabilities can be trusted"
    WEAKEST = "the weakest class"
    NEXT = "what to do next"


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing.

    Attributes:
        topic: what it is about.
        text: the sentence.
        tone: whether it is good or bad news.
        gap: the difference that it speaks of, as a share or as the score has it.
    """

    topic: Topic
    text: str
    tone: Tone = Tone.NEAR
    gap: float | None = None


@dataclass(frozen=True)
class Comparison:
    """A job's mean score beside a baseline's.

    Attributes:
        ours, theirs: mean test scores.
        chance: how large a difference chance alone easily makes, from the number of test nodes and the spread over seeds.
    """

    ours: float
    theirs: float
    chance: float

    @property
    def gap(self) -> float:
        """How much ours is above."""
        return self.ours - self.theirs

    @property
    def tone(self) -> Tone:
        """Better or worse by more than chance, or near."""
        if abs(self.gap) <= self.chance:
            return Tone.NEAR
        return Tone.BETTER if self.gap > 0 else Tone.WORSE


def compare(found: Evidence, which: Baseline) -> Comparison | None:
    """A job beside a baseline; None where one of them has no score."""
    ours, theirs = found.test, found.baseline(which)
    held = None if found.baselines is None else found.baselines.of(which)
    if ours is None or theirs is None or held is None:
        return None
    seeds = 0.0
    scores = found.job.values("test_score")
    if len(scores) > 1 and len(held.scores) > 1:
        seeds = 2 * math.sqrt(
            statistics.variance(scores) / len(scores) + statistics.variance(held.scores) / len(held.scores)
        )
    items = _deciding(found) if found.score.percent else None
    if items is None:
        return Comparison(ours, theirs, max(seeds, LEAST))
    unsure = sum(max(p * (1 - p), 0.0) for p in (ours, theirs))
    return Comparison(ours, theirs, max(seeds, 2 * math.sqrt(unsure / items)))


def _deciding(found: Evidence) -> int | None:
    """How many test items decide a share: for AUC those of the rarer answer."""
    items = found.test_items
    if found.score.name != "AUC" or items is None:
        return items
    return max(min(found.classes[0].support), 1) if found.classes else max(items // 2, 1)


def findings(found: Evidence) -> list[Finding]:
    """All findings of a job but what to do next, the most important first."""
    made = [_constant(found), _graph(found), _features(found), _weakest(found), _calibration(found)]
    return [one for one in made if one is not None]


def next_steps(found: Evidence) -> list[Finding]:
    """What to do next, three steps at most; every one follows from a number."""
    steps: list[str] = []
    graph, features = compare(found, Baseline.FEATURES), compare(found, Baseline.GRAPH)
    constant = compare(found, Baseline.CONSTANT)
    model = str(found.job.first.card.get("model", ""))
    if unbalanced(found) and not _weighted(found) and constant is not None and constant.tone is not Tone.BETTER:
        steps.append(
            "Let rare classes count as much as common ones (--class-weight balanced), and judge by balanced accuracy or AUC."
        )
    graph_alone = graph is not None and features is not None and features.theirs > max(graph.theirs, features.ours)
    if graph is not None and graph.tone is not Tone.BETTER and model != "MLP" and not graph_alone:
        other = (
            ""
            if model == "GPRGNN"
            else ", or a model that also learns from neighbours of another class: unspool train GPRGNN"
        )
        steps.append(
            f"Take the simpler model, unspool train MLP{other}; and check whether the edges say anything about the target."
        )
    if features is not None and features.tone is not Tone.BETTER:
        steps.append(
            "Look at the features: leave out columns that say nothing, and bring the others to one scale (mean 0, deviation 1; for counts of words --normalise-rows)."
        )
    steps += [step for step in (_longer(found), _more_nodes(found), _more_seeds(found)) if step is not None]
    if not steps:
        steps.append(
            f"Search for better settings: unspool study run {model} --random 50 --seeds 3, with the same data options."
        )
    return [Finding(Topic.NEXT, step) for step in steps[:3]]


def unbalanced(found: Evidence) -> float | None:
    """The share of the most common class of the test nodes, where it is large enough to mislead."""
    share = found.class_mean(lambda c: c.majority)
    many = len(found.classes[0].support) if found.classes else 0
    return share if share is not None and many > 1 and share >= max(HALF, FAIR / many) else None


# -- the findings ------------------------------------------------------------------------------------------------------


def _constant(found: Evidence) -> Finding | None:
    share, ours = unbalanced(found), found.class_mean(lambda c: c.accuracy)
    if share is not None and ours is not None:
        beside = [f"its balanced accuracy is {_percent(found.class_mean(lambda c: c.balanced_accuracy))}"]
        area = found.class_mean(lambda c: c.auc)
        beside += [] if area is None else [f"its AUC {_percent(area)}"]
        same = f"{_percent(share)} of the test nodes are one class ({_commonest(found)}), so accuracy {shown(100 * share, 2)} is what always answering that class gives"
        gap = ours - share
        room = 2 * math.sqrt(share * (1 - share) / max(found.test_items or 1, 1))
        tone = Tone.NEAR if gap > room else Tone.WORSE
        told = f"this model has {shown(100 * ours, 2)}; {' and '.join(beside)}"
        return Finding(Topic.UNBALANCED, f"{same}: {told}.", tone, gap)
    compared = compare(found, Baseline.CONSTANT)
    if compared is None or compared.tone is Tone.BETTER:
        return None
    near = compared.tone is Tone.NEAR
    how = "It is not clearly better than" if near else "It is worse than"
    words = f"{how} one answer for all: {_beside(found, compared, 'that')}{', which may be chance' if near else ''}."
    return Finding(Topic.CONSTANT, words, Tone.WORSE, compared.gap)


def _graph(found: Evidence) -> Finding | None:
    compared = compare(found, Baseline.FEATURES)
    return None if compared is None else _verdict(found, compared, Topic.GRAPH, "graph", "an MLP on the features alone")


def _features(found: Evidence) -> Finding | None:
    compared = compare(found, Baseline.GRAPH)
    other = "label propagation on the graph alone"
    return None if compared is None else _verdict(found, compared, Topic.FEATURES, "features", other)


def _verdict(found: Evidence, compared: Comparison, topic: Topic, what: str, other: str) -> Finding:
    many = what.endswith("s")
    words = {
        Tone.BETTER: f"The {what} {'help' if many else 'helps'}",
        Tone.NEAR: f"The {what} {'make' if many else 'makes'} no difference that this test set could show",
        Tone.WORSE: f"The {what} {'do' if many else 'does'} not help here",
    }[compared.tone]
    chance = f"; up to {_size(found, compared.chance)} may be chance" if compared.tone is Tone.NEAR else ""
    return Finding(topic, f"{words}: {_beside(found, compared, other)}{chance}.", compared.tone, compared.gap)


def _beside(found: Evidence, compared: Comparison, other: str) -> str:
    """The difference and the other's score, rounded as they are printed elsewhere."""
    score = found.score
    digits = 2 if score.percent else 4
    gap = round(score.scaled(compared.ours), digits) - round(score.scaled(compared.theirs), digits)
    unit = "points" if score.percent else f"in {score.name}"
    if not round(gap, digits):
        return f"{other} is just as good ({score.shown(compared.theirs)})"
    return (
        f"{shown(abs(gap), digits)} {unit} {'above' if gap > 0 else 'below'} {other} ({score.shown(compared.theirs)})"
    )


def _size(found: Evidence, value: float) -> str:
    return (
        f"{shown(found.score.scaled(value), 1 if found.score.percent else 2)}{' points' if found.score.percent else ''}"
    )


def _weakest(found: Evidence) -> Finding | None:
    if not found.classes:
        return None
    mean = [_mean([c.recall[k] for c in found.classes]) for k in range(len(found.names))]
    known = [(recall, k) for k, recall in enumerate(mean) if recall is not None]
    overall = found.class_mean(lambda c: c.accuracy)
    if not known or overall is None or min(known)[0] > overall - BEHIND:
        return None
    recall, k = min(known)
    nodes = round(statistics.fmean(c.support[k] for c in found.classes))
    words = f"Weakest class: {found.names[k]}, of whose {counted(nodes, 'test node')} {_percent(recall)} are found"
    taken = _taken_for(found, k)
    return Finding(Topic.WEAKEST, words + (f"; it is most often taken for {taken}." if taken else "."), gap=recall)


def _taken_for(found: Evidence, k: int) -> str | None:
    rows = [c.confusion[k] for c in found.classes if c.confusion is not None]
    total = [0 if j == k else sum(row[j] for row in rows) for j in range(len(found.names))] if rows else [0]
    return found.names[total.index(max(total))] if max(total) else None


def _weighted(found: Evidence) -> bool:
    return bool((found.job.first.card.get("task") or {}).get("class_weight"))


def _calibration(found: Evidence) -> Finding | None:
    if not found.calibrations:
        return None
    if _weighted(found):
        # Trap: a temperature cannot shift probabilities, and the error of the most probable class hides that they lie off.
        words = "Classes were weighted in training, so its probabilities are not those of the real shares of the classes: rank nodes by them, and do not read them as risks."
        return Finding(Topic.CALIBRATION, words, Tone.WORSE)
    if not found.temperatures:
        first = found.calibrations[0]
        why = "" if first.reason is None else f": {first.reason.value}"
        return Finding(
            Topic.CALIBRATION, f"Its probabilities are not calibrated{why} ({counted(first.nodes, 'validation node')})."
        )
    warm = statistics.fmean(found.temperatures)
    before, after = (
        found.mean(lambda e, name=name: None if e.calibration is None else getattr(e.calibration, name))
        for name in ("test_before", "test_after")
    )
    if 1 / NEAR_ONE < warm < NEAR_ONE:
        words = f"Its probabilities mean what they say: on test nodes they are off by {_points(before)} on average"
        return Finding(Topic.CALIBRATION, f"{words} (temperature {shown(warm, 2)}).", Tone.BETTER, before)
    how = "It is too sure of itself" if warm > 1 else "It is right more often than it says"
    words = (
        f"{how}: on test nodes its probabilities are off by {_points(before)} on average, and by {_points(after)} as unspool predict writes them, "
        f"calibrated (temperature {shown(warm, 2)}, from {counted(found.calibrations[0].nodes, 'validation node')})"
    )
    return Finding(Topic.CALIBRATION, f"{words}.", Tone.NEAR, before)


# -- the steps ---------------------------------------------------------------------------------------------------------


def _longer(found: Evidence) -> str | None:
    """Where the best epoch is among the last that were allowed, more of them may find a better one."""
    for seed in found.job.counted:
        epoch, epochs = seed.metric("epoch"), seed.metric("epochs")
        if seed.ending is Ending.ALL_EPOCHS and epoch is not None and epochs is not None and epoch > 0.95 * epochs:
            return f"Train longer: the best epoch ({epoch:g}) is among the last of {epochs:g}; --epochs {2 * epochs:g}."
    return None


def _more_nodes(found: Evidence) -> str | None:
    nodes, share = found.test_items, found.test
    if nodes is None or nodes >= FEW or share is None or not found.score.percent:
        return None
    room = 200 * math.sqrt(max(share * (1 - share), 0.0) / nodes)
    return f"Hold more nodes back for the test: with {nodes}, up to {shown(room, 1)} points are chance; or average several splits (--seeds 10)."


def _more_seeds(found: Evidence) -> str | None:
    if len(found.job.counted) > 1:
        return None
    return "Train more seeds to see how much of the result is chance: --seeds 10."


def _commonest(found: Evidence) -> str:
    total = [sum(c.support[k] for c in found.classes) for k in range(len(found.names))]
    return found.names[total.index(max(total))]


def _mean(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return statistics.fmean(known) if known else None


def _percent(share: float | None) -> str:
    return f"{shown(None if share is None else 100 * share, 1)} %"


def _points(share: float | None) -> str:
    return f"{shown(None if share is None else 100 * share, 1)} points"
