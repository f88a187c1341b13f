"""Trials as flat rows, and files of them for other programs: CSV, Parquet, JSON."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unspool.files import write_whole
from unspool.study.store import Row
from unspool.text import printable
from unspool.train import DataRecord, TrainConfig
from unspool.train.loss import SHARES

if TYPE_CHECKING:
    from unspool.study.results.trial_table import TrialTable

#: What a result is called in a flat row. A config has ``epochs`` too, so those that were run have another name.
RESULTS = {
    "epoch": "epoch", "epochs_run": "epochs", "train_loss": "train_loss", "valid_loss": "valid_loss",
    "valid_score": "valid_score", "test_score": "test_score", "ending": "ending", "seconds": "seconds",
}  # fmt: skip

#: What else a row of the store has.
AROUND = ("key", "number", "fingerprint", "status", "message", "finished_at")

#: Words of a trial that are no settings of its model.
TRIAL = ("model", "data", *TrainConfig.schema, "seed", "normalise_rows", "preset", "code")

ENDINGS = (".csv", ".parquet", ".json", ".jsonl")

#: How formulas begin, in full width too; some programs drop a tab or a line break before them.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def settings_of(row: Row) -> dict[str, Any]:
    """Everything that decides a trial under flat names, with values that can be compared.

    Settings of the model keep their own names (``dropout``), unless a word of the config or the result has that name already
    (``settings.lr``). Decay by group is one number where all decayed groups agree.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> flat = settings_of(example_table().rows[0])
        >>> flat["model"], flat["dropout"], flat["weight_decay"], flat["seed"]
        ('GCN', 0.2, 0.0005, 0)
    """
    told = row.trial
    flat: dict[str, Any] = {"model": told["model"], "data": row.data.name}
    for name, value in told["settings"].items():
        taken = name in TRIAL or name in RESULTS or name in AROUND
        flat[f"settings.{name}" if taken else name] = _held(value)
    flat |= {name: _held(value) for name, value in told["config"].items() if name != "weight_decay"}
    flat["weight_decay"] = decay_shown(told["config"]["weight_decay"])
    return flat | {name: told[name] for name in ("seed", "normalise_rows", "preset")}


def distinguishing_columns(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The settings of rows that are looked at together: what differs looks different.

    Two datasets of one name are told apart by their fingerprints, decays of different groups by their words, and settings of a model whose
    code was changed meanwhile by the marks of its code.
    """
    flat = [settings_of(row) for row in rows]
    words = [decay_words(row.trial["config"]["weight_decay"]) for row in rows]
    marks: dict[str, set[tuple[str, str]]] = {}
    meant: dict[tuple[Any, Any], set[str]] = {}
    for row, one, word in zip(rows, flat, words, strict=True):
        marks.setdefault(row.data.name, set()).add((row.data.fingerprint, row.data.score))
        meant.setdefault((one["model"], one["weight_decay"]), set()).add(word)
    for row, one, word in zip(rows, flat, words, strict=True):
        if len(marks[row.data.name]) > 1:
            one["data"] = f"{row.data.name} {_different(row.data, marks[row.data.name])}"
        # Trap: decay 0.1 of the first layer and decay 0.1 of all layers are shown as the same number.
        if len(meant[one["model"], one["weight_decay"]]) > 1:
            one["weight_decay"] = word
    codes: dict[Any, set[str]] = {}
    for row, one in zip(rows, flat, strict=True):
        codes.setdefault(_but_for_seed(one), set()).add(row.trial.get("code", ""))
    for row, one, alike in zip(rows, flat, [_but_for_seed(one) for one in flat], strict=True):
        if len(codes[alike]) > 1:
            one["code"] = row.trial.get("code", "")
    return flat


def _but_for_seed(one: Mapping[str, Any]) -> frozenset[tuple[str, Any]]:
    return frozenset((name, value) for name, value in one.items() if name not in ("seed", "preset"))


def _different(data: DataRecord, others: set[tuple[str, str]]) -> str:
    """In what data of one name differ: their fingerprints, or what is scored."""
    if len({fingerprint for fingerprint, _ in others}) == 1:
        return data.score
    return data.fingerprint[:6] if len({one[:6] for one, _ in others}) > 1 else data.fingerprint.rpartition("-")[2]


def decay_shown(decay: Mapping[str, float] | float) -> float | str:
    """The one number of all decayed groups, or the groups in words.

    Example:
        >>> decay_shown({"first": 0.1, "linear": 0.1, "hops": 0.0}), decay_shown({"first": 0.1, "gate": 0.2})
        (0.1, 'first 0.1, gate 0.2')
    """
    if not isinstance(decay, Mapping):
        return decay
    different = {value for value in decay.values() if value}
    return decay_words(decay) if len(different) > 1 else different.pop() if different else 0.0


def decay_words(decay: Mapping[str, float] | float) -> str:
    """Which groups are decayed, in words that differ where the decay does.

    Example:
        >>> decay_words({"first": 0.1, "hops": 0.0}), decay_words(0.1)
        ('first 0.1', 'all 0.1')
    """
    groups = decay if isinstance(decay, Mapping) else {"all": decay}
    # repr, not :g, which would write 0.1234567 and 0.1234568 alike.
    return ", ".join(f"{name} {value!r}" for name, value in sorted(groups.items()) if value) or "none"


def results_of(row: Row) -> dict[str, Any]:
    """The result under flat names, ``None`` throughout where there is none yet."""
    if row.result is None:
        return dict.fromkeys(RESULTS)
    held = {flat: getattr(row.result, own) for flat, own in RESULTS.items()}
    return held | {"ending": row.result.ending.name.lower()}


def shown(value: Any) -> str:
    """A setting as people write it.

    Example:
        >>> shown(0.0005), shown(None), shown((64, 32)), shown(10)
        ('0.0005', '–', '64 32', '10')
    """
    if value is None:
        return "–"
    if isinstance(value, tuple):
        return " ".join(shown(v) for v in value)
    return f"{value:.4g}" if isinstance(value, float) else printable(str(value))


def spread(mean: float, std: float, score: str) -> str:
    """Mean ± standard deviation, accuracies in per cent.

    Example:
        >>> spread(0.812, 0.004, "accuracy"), spread(0.5, float("nan"), "R²")
        ('81.20 ± 0.40 %', '0.5000')
    """
    if math.isnan(mean):
        return "–"
    share = score in SHARES
    numbers = [f"{100 * v:.2f}" if share else f"{v:.4f}" for v in (mean, std) if not math.isnan(v)]
    return " ± ".join(numbers) + (" %" if share else "")


def order(value: Any) -> tuple[int, float, str]:
    """Sorts settings of any kind: nothing, then numbers, then words.

    Example:
        >>> sorted([10, "b", None, 2.5, "a"], key=order)
        [None, 2.5, 10, 'a', 'b']
    """
    if value is None:
        return (0, 0.0, "")
    return (1, float(value), "") if isinstance(value, int | float) else (2, 0.0, str(value))


def export(what: TrialTable | Iterable[Row], path: str | os.PathLike[str]) -> Path:
    """Write every trial as one flat row, finished or not, whole or not at all.

    ``.csv`` has empty cells where nothing is, and an apostrophe before text that a spreadsheet would take for a formula; ``.parquet`` keeps types; ``.json`` is one list of objects, ``.jsonl`` one
    object per line. Numbers keep all digits. Decay by group has a column for each group beside the common ``weight_decay``.

    Args:
        what: a table, or rows of a store.
        path: the ending says the format.

    Returns:
        Where it was written.

    Example:
        >>> import pathlib, tempfile
        >>> from unspool.study.results.trial_table import example_table
        >>> file = export(example_table(), pathlib.Path(tempfile.mkdtemp()) / "study.csv")
        >>> file.read_text().splitlines()[0][:40]
        'key,number,fingerprint,status,message,fi'
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in ENDINGS:
        raise ValueError(f"{target.name}: studies are written as {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    if kind == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise ValueError("writing Parquet needs pyarrow: pip install 'unspool[parquet]', or choose .csv")
    given: Iterable[Row] = getattr(what, "rows", what)  # pyright: ignore[reportAssignmentType]
    columns = _columns([_whole_row(row) for row in given])
    if kind == ".parquet":
        _write_parquet(target, columns)
    else:
        text = {".csv": _csv, ".json": _json, ".jsonl": _json_lines}[kind](columns)
        write_whole(target, lambda file: file.write(text.encode()))
    return target


# -- rows and columns --------------------------------------------------------------------------------------------------


def _whole_row(row: Row) -> dict[str, Any]:
    around: dict[str, Any] = {
        "key": row.key, "number": row.number, "fingerprint": row.data.fingerprint, "status": row.status.name.lower(),
        "message": row.message, "finished_at": row.finished_at,
    }  # fmt: skip
    decay = row.trial["config"]["weight_decay"]
    groups = {f"weight_decay.{name}": value for name, value in decay.items()} if isinstance(decay, Mapping) else {}
    return around | settings_of(row) | {"code": row.trial.get("code")} | groups | results_of(row)


def _columns(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """One list per name; results come last, and what a row does not have is ``None``."""
    names = dict.fromkeys(name for record in records for name in record if name not in RESULTS)
    if not records:
        names = dict.fromkeys((*AROUND, *TRIAL))
    return {name: [record.get(name) for record in records] for name in (*names, *RESULTS)}


def _held(value: Any) -> Any:
    """A list as a tuple and an object in words, which can be compared and grouped.

    Example:
        >>> _held([1, [2]]), _held({"type": "Checkpointed", "every": 5}), _held({"object": "relu"})
        ((1, (2,)), 'checkpointed(every=5)', 'relu')
    """
    if isinstance(value, Mapping):
        inside = "; ".join(f"{name}={one}" for name, one in value.items() if name != "type")
        kind = str(value.get("type", "")).lower()
        return str(value["object"]) if "object" in value else kind + (f"({inside})" if inside else "")
    return tuple(_held(v) for v in value) if isinstance(value, list | tuple) else value


# -- formats -----------------------------------------------------------------------------------------------------------


def _csv(columns: Mapping[str, Sequence[Any]]) -> str:
    cells = ([_harmless(v) if isinstance(v, str) else _cell(v) for v in values] for values in columns.values())
    rows = [[_harmless(name) for name in columns], *(list(row) for row in zip(*cells, strict=True))]
    # Trap: Python puts no quotes around a carriage return, which other readers take for the end of a row.
    odd = any("\r" in cell for row in rows for cell in row)
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if odd else csv.QUOTE_MINIMAL).writerows(rows)
    return text.getvalue()


def _harmless(text: str) -> str:
    """Text that no spreadsheet takes for a formula; numbers are no text, and keep their signs.

    Example:
        >>> _harmless("=1+1"), _harmless("a=1")
        ("'=1+1", 'a=1')
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, tuple) else str(value)


def _json(columns: Mapping[str, Sequence[Any]]) -> str:
    return "[\n" + ",\n".join(_json_lines(columns).splitlines()) + "\n]\n"


def _json_lines(columns: Mapping[str, Sequence[Any]]) -> str:
    # Trap: Python writes NaN and Infinity, which are no JSON and stop other readers.
    held = [[_finite(v) for v in values] for values in columns.values()]
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in zip(*held, strict=True))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write_parquet(target: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    import pyarrow
    import pyarrow.parquet

    table: Any = pyarrow.table({name: pyarrow.array(_one_type(values)) for name, values in columns.items()})
    write_whole(target, lambda file: pyarrow.parquet.write_table(table, file))


def _one_type(values: Sequence[Any]) -> list[Any]:
    """A column of Parquet has one type: whole numbers among others become floats, any other mixture text."""
    kinds = {type(v) for v in values if v is not None}
    if len(kinds) <= 1 and tuple not in kinds:
        return list(values)
    if kinds == {int, float}:
        return [None if v is None else float(v) for v in values]
    return [None if v is None else _cell(v) for v in values]
