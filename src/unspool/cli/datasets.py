"""``unspool datasets``: what there is, where it would come from, and what is in it."""

from __future__ import annotations

import json
from pathlib import Path

from rich.table import Table

from unspool import datasets
from unspool.cli.data_options import places_are_said
from unspool.cli.paths import look_here
from unspool.cli.terminal import Terminal, echo
from unspool.datasets.places import cache_folder
from unspool.errors import InputError


def run(name: str | None, data: Path | None, download: bool, as_json: bool) -> None:
    """All data sets and where they are, or one with its statistics."""
    if name is not None:
        _one_dataset(name, data, download, as_json)
        return
    if download:
        raise ValueError("--download fetches one data set; name it: unspool datasets NAME --download")
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
    console.print(
        "unspool datasets NAME counts what is in it; --data DIR or UNSPOOL_DATA says where raw files lie; --download fetches one"
    )
    console.print(f"processed copies, which load faster, are kept in {cache_folder()}")


def _one_dataset(name: str, data: Path | None, download: bool, as_json: bool) -> None:
    look_here(name)
    try:
        with places_are_said(name, data, download):
            found = datasets.load(name, root=data, download=download)
    except InputError as problem:
        argument = "NAME" if problem.argument == "dataset" else problem.argument
        raise InputError(argument, problem.value, problem.expected, problem.hint) from None
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
