"""``unspool models``: what there is, and what each model takes."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.table import Table
from torch import nn

from unspool.cli.terminal import Terminal, echo
from unspool.cli.train_options import model_named
from unspool.models import registry
from unspool.reproduce import OFFICIAL, PAPER
from unspool.settings import REQUIRED, schema_of
from unspool.theory.printed_tables import DATASETS

#: What stands in formulas and derivations.
WORDS = (
    "H: the signal that the layers improve; X: the features after the encoder; B: differences along edges; ι: infinite where the condition fails. "
    "Propositions are those of the paper, errata our corrections to it (docs/errata.md)."
)


def run(name: str | None, as_json: bool) -> None:
    """All models, or one with its settings."""
    chosen = [*registry.shipped().values()] if name is None else [model_named(name, "NAME")]
    records = [_record(kind) for kind in chosen]
    if as_json:
        for record in records:
            echo(json.dumps(record, ensure_ascii=False))
        return
    console = Terminal()
    if name is not None:
        _one(chosen[0], records[0], console)
        return
    table = Table("model", "minimises", "how")
    for record in records:
        table.add_row(record["model"], record["objective"], record["derivation"])
    for other, entry in registry.registered().items():
        table.add_row(other, "", f"of another package: {entry.value}")
    for entry in registry.unnamed():
        table.add_row(entry.value, "", f"of another package; the name that it registers, {entry.name}, is taken")
    console.print(table)
    console.print(WORDS, soft_wrap=True)
    console.print("unspool models NAME shows its settings and presets; NAME may be package.module:Class")


def _one(kind: type[nn.Module], record: dict[str, Any], console: Console) -> None:
    console.print(record["model"], style="bold", end="")
    console.print(f"  {record['title']}", soft_wrap=True)
    if record["objective"]:
        console.print(f"minimises  {record['objective']}\n{record['derivation']}", soft_wrap=True)
        console.print(WORDS, style="dim", soft_wrap=True)
    console.print()
    table = Table("setting", "default", "takes", "what it is")
    for name, one in record["settings"].items():
        table.add_row(name, one["default"], one["takes"], one["meaning"])
    console.print(table)
    _presets(kind, console)


def _presets(kind: type[nn.Module], console: Console) -> None:
    """How the paper and the model's authors run it, if they do."""
    if registry.shipped().get(kind.__name__) is not kind:
        return
    searched: set[str] = set()
    table = Table("preset", "set", "settings", "learning rate", "weight decay", "epochs")
    for data in DATASETS:
        for preset in (PAPER, OFFICIAL):
            try:
                trial = preset.trial(kind, data)
            except ValueError:
                continue
            searched |= set(PAPER.search(kind, data))
            config = trial.config
            settings = ", ".join(f"{name} {trial.shown(name)}" for name in trial.settings)
            decay = config.schema["weight_decay"].shown(config.weight_decay)
            table.add_row(preset.name, data, settings, f"{config.lr:g}", decay, str(config.epochs))
    console.print(table)
    if searched:
        console.print(
            f"The paper prints no settings of {kind.__name__}: its rows are where a search over {', '.join(sorted(searched))} "
            "begins, as `unspool reproduce table2` makes it",
            soft_wrap=True,
        )


def _record(kind: type[nn.Module]) -> dict[str, Any]:
    schema = schema_of(kind)
    made: Any = kind(4, 2) if all(one.default is not REQUIRED for one in schema.values()) else None
    settings = {
        one.name: {"default": one.shown(one.default), "takes": one.typed, "meaning": one.meaning}
        for one in schema.values()
    }
    return {
        "model": registry.name_of(kind),
        "title": str(getattr(kind, "title", "")),
        "objective": str(getattr(made, "objective", "")),
        "derivation": str(getattr(made, "derivation", "")),
        "settings": settings,
    }
