"""``unspool models`` and ``unspool datasets``: what there is."""

from __future__ import annotations

import inspect
import json
from enum import Enum
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from unspool import datasets, models
from unspool.cli.source import said_in_options
from unspool.cli.terminal import Terminal, echo
from unspool.cli.wish import model_called


def show_models(name: str | None, as_json: bool) -> None:
    """All models, or one with its settings."""
    chosen = models.MODELS if name is None else (model_called(name),)
    records = [_model_record(kind) for kind in chosen]
    if as_json:
        for record in records:
            echo(json.dumps(record, ensure_ascii=False))
        return
    console = Terminal()
    if name is None:
        table = Table("model", "minimises", "how")
        for record in records:
            table.add_row(record["model"], record["objective"], record["derivation"])
        console.print(table)
        console.print("unspool models NAME shows its settings and presets")
        return
    _one_model(chosen[0], records[0], console)


def _one_model(kind: type[models.Model], record: dict[str, Any], console: Console) -> None:
    console.print(record["model"], style="bold", end="")
    console.print(f"  {record['about']}\nminimises  {record['objective']}", soft_wrap=True)
    console.print(f"{record['derivation']}\n", soft_wrap=True)
    table = Table("setting", "default", "choices")
    for setting, value in record["settings"].items():
        table.add_row(setting, str(value["default"]), ", ".join(value["choices"]))
    console.print(table)
    searched: set[str] = set()
    presets = Table("preset", "set", "settings", "rate", "decay", "epochs")
    for where in ("cora", "citeseer", "pubmed", "cs", "physics", "photo", "arxiv"):
        for which in ("paper", "official"):
            try:
                how = models.preset(kind, where, which)
            except ValueError:
                continue
            searched |= set(how.search)
            settings = ", ".join(f"{k} {v}" for k, v in how.settings.items())
            presets.add_row(which, where, settings, f"{how.rate:g}", how.decay_words, str(how.epochs))
    console.print(presets)
    if searched:
        console.print(
            f"The paper prints no settings of {kind.__name__}: its rows are where a search over {', '.join(sorted(searched))} "
            "begins, as `unspool reproduce table2` makes it",
            soft_wrap=True,
        )  # fmt: skip


def _choices(kind: type[models.Model], default: Any) -> list[str]:
    """The choices of a setting; hop coefficients of one's own only where there is a setting that takes them."""
    if not isinstance(default, Enum):
        return []
    idle = () if "warm" in inspect.signature(kind).parameters else (models.HopStart.WARM,)
    return [choice.name.lower() for choice in type(default) if choice not in idle]


def _model_record(kind: type[models.Model]) -> dict[str, Any]:
    made = kind(4, 2)
    settings = {
        name: {
            "default": p.default.name.lower() if isinstance(p.default, Enum) else p.default,
            "choices": _choices(kind, p.default),
        }
        for name, p in inspect.signature(kind).parameters.items()
        if name not in ("in_features", "out_features")
    }
    module = inspect.getmodule(kind)
    about = ((module.__doc__ if module else None) or "").split("\n")[0]
    return {
        "model": kind.__name__, "about": about.partition(": ")[2], "objective": str(made.objective), "derivation": made.derivation,
        "settings": settings,
    }  # fmt: skip


def show_datasets(name: str | None, data: Path | None, as_json: bool) -> None:
    """All data sets and where they are, or one with its statistics."""
    if name is not None:
        _one_dataset(name, data, as_json)
        return
    entries = datasets.catalogue(data)
    if as_json:
        for entry in entries:
            echo(json.dumps({"name": entry.name, "about": entry.about, "where": entry.where}))
        return
    table = Table("name", "what it is")
    table.add_column("where", overflow="fold")
    for entry in entries:
        table.add_row(entry.name, entry.about, entry.where)
    console = Terminal()
    console.print(table)
    console.print("unspool datasets NAME counts what is in it; --data DIR or UNSPOOL_DATA says where raw files lie")


def _one_dataset(name: str, data: Path | None, as_json: bool) -> None:
    with said_in_options():
        found = datasets.load(name, root=data)
    count = found.statistics()
    if as_json:
        values = {k: v for k, v in vars(count).items() if isinstance(v, int | float | str)}
        split = None if found.split is None else {"name": found.split.name, "hash": found.split.hash}
        echo(
            json.dumps(
                {"name": found.name, "hash": found.hash, **values, "split": split, "splits": list(found.recorded)}
            )
        )
        return
    echo(f"{found}\n")
    for key, value in vars(count).items():
        if isinstance(value, int | float):
            echo(
                f"{key.replace('_', ' '):24} {value:.4g}"
                if isinstance(value, float)
                else f"{key.replace('_', ' '):24} {value}"
            )
    echo(f"{'classes':24} {', '.join(found.classes)}")
    echo(f"{'splits in the files':24} {', '.join(found.recorded) if found.recorded else 'none'}")
    echo(f"{'content':24} {found.hash}")
