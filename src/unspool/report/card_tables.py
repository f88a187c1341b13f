"""What the cards of a job say, as tables: settings, configuration, data, versions, seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unspool.report.hardware import machine
from unspool.report.score import Score
from unspool.report.seeds import Job, Seed
from unspool.report.table import Cell, Column, Table, facts
from unspool.report.text import NONE, Tone, counted, shown
from unspool.report.text import plain as plain_words
from unspool.train import Monitor, TrainConfig

#: Longer lists of names are cut.
NAMES = 40


def settings_table(job: Job) -> Table:
    """How the model was built."""
    first = job.first
    widths = [f"{first.card.get(k)} {k.split('_')[0]}" for k in ("in_features", "out_features") if k in first.card]
    pairs = [("model", str(first.card["model"])), ("features", ", ".join(widths))]
    pairs += [(name, plain_words(value)) for name, value in first.part("settings").items()]
    origin = first.card.get("origin")
    taken = origin.get("model") if isinstance(origin, Mapping) else origin
    return facts("Settings of the model", [*pairs, ("parts taken from", None if taken is None else str(taken))])


def config_table(job: Job) -> Table | None:
    """The preset, the configuration, and which epoch was kept; None where the card does not say."""
    plain = job.first.config
    if plain is None:
        return None
    config = _config(plain)
    if config is None:  # settings of another version, or of nobody
        return facts("How it was trained", [(str(name), plain_words(value)) for name, value in plain.items()])
    pairs = [
        ("preset", _known(job.first.part("trial").get("preset"))),
        ("learning rate", plain_words(config.lr)),
        ("weight decay", plain_words(config.weight_decay)),
        ("epochs at most", str(config.epochs)),
        ("epoch kept", config.monitor.value),
        ("ends early", config.stop_words()),
    ]
    usual = ("lr", "weight_decay", "epochs", "monitor", "stop", "patience", "min_epochs")
    rest = [(name.replace("_", " "), plain_words(value)) for name, value in plain.items() if name not in usual]
    return facts("How it was trained", [*pairs, *rest])


def monitor_of(job: Job) -> Monitor | None:
    """What decided which epoch of a job counts, where its card says so."""
    config = None if job.first.config is None else _config(job.first.config)
    return None if config is None else config.monitor


def _config(plain: Mapping[str, Any]) -> TrainConfig | None:
    """A configuration of a card, its optimiser aside, which files know by name only; None where it is not one."""
    try:
        return TrainConfig.from_plain({name: value for name, value in plain.items() if name != "optimiser"})
    except (ValueError, TypeError):
        return None


def data_table(job: Job, dataset: Any) -> Table | None:
    """What the models were trained on."""
    data = job.first.part("data")
    classes = data.get("classes")
    names = [str(c) for c in classes] if isinstance(classes, Sequence) and not isinstance(classes, str) else []
    listed = ", ".join(names[:NAMES]) + (f" and {len(names) - NAMES} more" if len(names) > NAMES else "")
    pairs = [
        ("data set", _known(data.get("name"))),
        ("size", _size(dataset) or _size_in_card(data)),
        (counted(len(names), "class").replace("classs", "classes"), listed),
        ("targets", _known(data.get("targets"))),
        ("changed by", _known(data.get("transforms"))),
        ("source", _known(data.get("source"))),
        ("hash of the content", _known(data.get("hash"))),
        ("split", _distinct(s.part("data").get("split_name") for s in job.counted)),
        ("hash of the split", _distinct(s.part("data").get("split") for s in job.counted)),
    ]
    made = facts("What it was trained on", pairs)
    return made if made.rows else None


def data_notes(job: Job) -> list[str]:
    """What was done to the data on its way."""
    notes = job.first.part("data").get("notes")
    return [str(n) for n in notes] if isinstance(notes, Sequence) and not isinstance(notes, str) else []


def machine_table(job: Job) -> Table:
    """Versions and hardware; this machine's where the cards do not name theirs."""
    versions = [
        (name, _distinct(s.part("versions").get(name) for s in job.seeds)) for name in job.first.part("versions")
    ]
    told = job.first.part("hardware")
    hardware = [(str(name), plain_words(value)) for name, value in (told if told else machine()).items()]
    hardware += (
        [("device", str(job.first.card["device"]))] if "device" in job.first.card and "device" not in told else []
    )
    times = [v for s in job.seeds if (v := s.metric("seconds")) is not None]
    over = f" over {len(times)} seeds" if len(times) > 1 else ""
    total = f"{shown(sum(times), 1)} s{over}" if times else None
    caption = "Versions and machine" if told else "Versions; this machine"
    return facts(caption, [*versions, *hardware, ("trained for", total)])


def seed_table(job: Job, score: Score) -> Table:
    """One row for each seed, and the means of those that count."""
    heads = [
        "seed",
        "selected epoch",
        "epochs run",
        "validation loss",
        f"validation {score.heading}",
        f"test {score.heading}",
        "seconds",
    ]
    rows = [_seed_row(seed, score, seed in job.counted) for seed in job.seeds]
    loss = Score("loss", percent=False).range(job.values("valid_loss"))
    seconds = [v for s in job.seeds if (v := s.metric("seconds")) is not None]
    which = "mean ± std" if len(job.counted) > 1 else "result"
    scores = [score.range(job.values(name)) for name in ("valid_score", "test_score")]
    spent = f"{shown(sum(seconds), 1)} in all" if seconds else NONE
    foot = [which, "", "", loss, *scores, spent, ""]
    caption = f"{counted(len(job.seeds), 'seed')} of {job.first.card['model']}; losses and scores are those of the selected epoch"
    return Table(caption, [*heads, Column("why it ended", numbers=False)], rows, [foot])


def _seed_row(seed: Seed, score: Score, counts: bool) -> list[str | Cell]:
    epochs = seed.metric("epochs")
    epochs = len(seed.history) if epochs is None and seed.history else epochs
    words = NONE if seed.ending is None else seed.ending.value
    end = words if counts else f"{words} (does not count)"
    whole = [_number(seed.metric("epoch"), 0), _number(epochs, 0), _number(seed.metric("valid_loss"), 4)]
    scores = [Cell(score.shown(v), v) for v in (seed.metric("valid_score"), seed.metric("test_score"))]
    name = float(seed.name) if seed.name.isdecimal() else None
    last = Cell(end, tone=None if counts else Tone.QUIET)
    return [Cell(seed.name, name), *whole, *scores, _number(seed.metric("seconds"), 1), last]


def _number(value: float | None, digits: int) -> Cell:
    return Cell(shown(value, digits), value)


def _known(value: Any) -> str | None:
    return None if value is None or value in ([], {}, "") else plain_words(value)


def _distinct(values: Any) -> str | None:
    found = list(dict.fromkeys(str(v) for v in values if v is not None))
    return ", ".join(found) if found else None


def _size(dataset: Any) -> str | None:
    if not hasattr(dataset, "statistics"):
        return None
    count = dataset.statistics()
    return f"{count.nodes} nodes, {count.edges} edges, {count.features} features"


def _size_in_card(data: Mapping[str, Any]) -> str | None:
    """The same, as training has noted it down."""
    told = data.get("size")
    counts = {name: told.get(name) for name in ("nodes", "edges", "features")} if isinstance(told, Mapping) else {}
    if not counts or not all(type(count) is int for count in counts.values()):
        return None
    return ", ".join(f"{count} {name}" for name, count in counts.items())
