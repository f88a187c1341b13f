"""Commands to type that repeat a trial of a study."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unspool.datasets.registry import is_registered
from unspool.errors import InputError
from unspool.models import registry
from unspool.settings import REQUIRED, Schema, Setting, schema_of
from unspool.study.store import Row
from unspool.train import TrainConfig

#: How an option says no, where it is not ``--no-`` before its name.
_NO = {"directed": "--undirected"}


def model_command(file: Path, row: Row, out: str) -> str:
    """The command that trains a trial of a file again, checks the result, and writes the network.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> model_command(Path("out/study.db"), example_table().rows[3], "out/best")
        'unspool study model out/study.db 3 --out out/best'
    """
    words = ["unspool", "study", "model", str(file), str(row.number)]
    name = str(row.trial["model"])
    if name not in registry.shipped() and name not in {entry.value for entry in registry.registered().values()}:
        words += ["--model", name]
    return shlex.join([*words, *data_words(row), "--out", out])


def data_words(row: Row) -> list[str]:
    """The options that name the data of a trial, where a file must not: a function of the user's, with its split."""
    source = {} if row.data.source is None else row.data.source
    name = str(source.get("dataset", ""))
    if ":" not in name or is_registered(name):
        return []
    return ["--dataset", name, *(["--split", str(source["split"])] if source.get("split") else [])]


def train_command(row: Row, out: str) -> str | None:
    """The command that trains the same trial without the file of the study; None where nobody said where the data are, or where a setting is an
    object that cannot be typed.

    Settings of shipped models that are their defaults are left out; of a class of the user's, which a file must not import, none are.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> from unspool.train import DataRecord
        >>> from dataclasses import replace
        >>> row = example_table().rows[4]
        >>> print(train_command(replace(row, data=DataRecord("people", "", source={"edges": "e.csv", "header": False})), "out/best"))
        unspool train GCN --edges e.csv --no-header --loss classes --weight-decay 'first=0.0005;hops=0.0' --epochs 200 --normalise-rows --first-seed 1 --out out/best
        >>> train_command(row, "out/best") is None  # nobody said where the data are
        True
    """
    if row.data.source is None:
        return None
    name, trial = str(row.trial["model"]), row.trial
    known = registry.shipped().get(name)
    settings = _options(trial["settings"], None if known is None else schema_of(known))
    config = _options(trial["config"], TrainConfig.schema)
    if settings is None or config is None:
        return None
    if "patience" in config:  # which alone would mean that training shall stop early
        config["stop"] = str(trial["config"]["stop"])
    words = ["unspool", "train", name, *source_words(row.data.source), "--loss", row.data.kind]
    if "edges" not in row.data.source:  # on the paper's sets its settings would come first
        words += ["--preset", "default"]
    short = ("dropout", "depth", "hidden")
    for option, text in settings.items():
        words += [f"--{option}", text] if option in short else ["--setting", f"{option}={text}"]
    for option, text in config.items():
        words += [f"--{option.replace('_', '-')}", text]
    words += ["--normalise-rows"] if trial["normalise_rows"] else []
    words += ["--first-seed", str(trial["seed"])] if trial["seed"] else []
    return shlex.join([*words, "--out", out])


def source_words(source: Mapping[str, Any]) -> list[str]:
    """Where data came from, as options.

    Example:
        >>> source_words({"edges": "e.csv", "target_columns": ["a", "b"], "directed": False})
        ['--edges', 'e.csv', '--target-column', 'a', '--target-column', 'b', '--undirected']
    """
    words: list[str] = []
    for name, value in source.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(option if value else _NO.get(name, f"--no-{option[2:]}"))
        elif name in ("class_order", "edge_columns"):
            words += [option, ",".join(map(str, value))]
        elif isinstance(value, list | tuple):
            words += [part for one in value for part in (option.removesuffix("s"), str(one))]
        else:
            words += [option, str(value)]
    return words


def _options(values: Mapping[str, Any], schema: Schema | None) -> dict[str, str] | None:
    """Plain values as they are typed, those that differ from the defaults; None where one cannot be typed."""
    found: dict[str, str] = {}
    for name, value in values.items():
        if schema is not None and name not in schema:
            return None  # a file may say anything
        setting = None if schema is None else schema[name]
        if setting is not None and setting.default is not REQUIRED and setting.to_plain(setting.default) == value:
            continue
        text = _typed(value)
        if text is None or (setting is not None and not _means(setting, text, value)):
            return None
        found[name] = text
    return found


def _means(setting: Setting, text: str, plain: Any) -> bool:
    """Whether what is typed comes back as the stored value."""
    try:
        return setting.to_plain(setting.parse(text)) == plain
    except InputError:
        return False


def _typed(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        parts = [_typed(one) for one in value]
        return None if None in parts else "/".join(str(part) for part in parts)
    if isinstance(value, Mapping):
        inner = ";".join(f"{name}={one!r}" for name, one in value.items() if name != "type")
        kind = str(value["type"]).lower() if "type" in value else None
        return None if "object" in value else inner if kind is None else kind + (f"({inner})" if inner else "")
    return repr(value) if isinstance(value, int | float) else str(value)
