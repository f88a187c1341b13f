"""The command ``unspool explore``."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any

from unspool import explore
from unspool.cli.data_options import DataOptions
from unspool.cli.terminal import echo
from unspool.errors import InputError


def run(source: DataOptions, out: Path, no_open: bool) -> None:
    """Write the page, say where it is, and open it."""
    graph, signal, title = _own(source)
    if out.parent != Path():
        out.parent.mkdir(parents=True, exist_ok=True)
    file = explore.write_page(out, graph, signal, title=title)
    echo(f"the explorer is {file}" + ("" if graph is None else f", with {title} ({graph.nodes} nodes) first"))
    if not no_open and not webbrowser.open(file.resolve().as_uri()):
        echo("no browser could be opened here; open the file yourself")


def _own(source: DataOptions) -> tuple[Any, Any, str]:
    if not source.own and source.dataset is None:
        source.check()
        return None, None, ""
    found = source.load(split_or_none=True)
    for note in found.notes if source.own else ():
        echo(f"note: {note}", err=True)
    if source.features is None:
        return found.graph, None, found.name
    x = found.features.to_dense() if hasattr(found.features, "to_dense") else found.features
    if x.shape[1] != 1:
        names = "" if found.feature_names is None else f": {', '.join(found.feature_names[:8])}"
        raise InputError("signal_column", f"{x.shape[1]} columns", f"the name of one of them{names}")
    return found.graph, x[:, 0], found.name
