"""The command ``unspool data check``: what was read, what looks wrong, and how to train on it."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

import click

from unspool import datasets
from unspool.cli.data_options import DataOptions
from unspool.cli.errors import sentence
from unspool.cli.terminal import echo
from unspool.cli.train_options import BUILT_IN, loader_of
from unspool.datasets.checking import DataCheck, FileCheck, Finding, Kind, Severity, check, check_files
from unspool.datasets.checking.finding import by_importance
from unspool.datasets.checking.table_columns import ColumnFacts

_HEADS = {Severity.ERROR: "stops training", Severity.WARNING: "looks wrong", Severity.NOTE: "good to know"}


@dataclass(frozen=True, eq=False)
class Checked:
    """Everything that is said: what files and data hold, what looks wrong, and the command, where there is one."""

    files: FileCheck | None
    data: DataCheck | None
    findings: tuple[Finding, ...]
    command: str | None


def run(options: DataOptions, as_json: bool) -> None:
    """Look the data through, and print."""
    found = look(options)
    if as_json:
        echo(json.dumps(_record(found), ensure_ascii=False))
    else:
        for line in _lines(found):
            echo(line)
    if found.command is None:
        raise click.exceptions.Exit(1)


def look(options: DataOptions) -> Checked:
    """Look through the files, or the data set; the command was tried up to the first epoch."""
    options.check()
    if options.hops is not None:
        raise ValueError(
            "--hops names features that have seen their graph, in which nothing can be looked up any more; check the edges and features"
        )
    if not options.own:
        name = options.dataset if options.dataset is not None else BUILT_IN
        data = check(options.load(BUILT_IN))
        return _tried(None, data, data.findings, replace(options, dataset=name))
    assert options.edges is not None
    split = None if options.split is None else lambda d: datasets.splits.by_name(d, options.split or "")
    files = check_files(
        options.edges, options.features, options.labels, **options.columns(), directed=options.directed, header=options.header,
        split=split, name=options.name,
    )  # fmt: skip
    # What is left out is named, so that the rest need not be; but who has named features keeps to that.
    kept = tuple(name for name in options.feature_columns if name not in files.drop_columns)
    drop = files.drop_columns if not kept else tuple(n for n in files.drop_columns if n not in options.feature_columns)
    label = files.label_column if options.labels is None else options.label_column
    advised = replace(options, drop_columns=drop, feature_columns=kept, one_hot=files.one_hot, label_column=label)
    return (
        _tried(files, files.data, files.findings, advised)
        if files.ready
        else Checked(files, files.data, files.findings, None)
    )


def _tried(
    files: FileCheck | None, data: DataCheck | None, findings: Sequence[Finding], options: DataOptions
) -> Checked:
    """The command, if the data can be made ready for training as it says; else the sentence that says why not."""
    links = any(finding.kind is Kind.NO_ANSWER for finding in findings)
    words = ["unspool", "train", *options.words(), *(["--loss", "links"] if links else [])]
    try:
        loader_of(options, "links" if links else None, "cpu")
    except (ValueError, TypeError, OSError) as problem:
        more = Finding(Kind.UNREADABLE, said=sentence(problem) or str(problem))
        return Checked(files, data, by_importance([*findings, more]), None)
    return Checked(files, data, tuple(findings), shlex.join(words))


# -- words -------------------------------------------------------------------------------------------------------------


def _lines(found: Checked) -> list[str]:
    lines = [*_of_files(found.files), *_of_data(found.data)]
    for severity, head in _HEADS.items():
        some = [finding for finding in found.findings if finding.severity is severity]
        if some:
            lines += ["", head, *(f"  {number}. {_said(one)}" for number, one in enumerate(some, start=1))]
    if found.command is None:
        return [*lines, "", "this cannot be trained on yet; correct what stops it, and check again"]
    if not any(finding.severity is not Severity.NOTE for finding in found.findings):
        lines += ["", "nothing looks wrong"]
    return [*lines, "", "to train", f"  {found.command}"]


def _said(finding: Finding) -> str:
    return sentence(finding.problem()) or str(finding)


def _of_files(files: FileCheck | None) -> list[str]:
    if files is None:
        return []
    lines = ["files"]
    for one in files.files:
        wide = f", {len(one.columns)} columns" if one.columns else ""
        lines.append(f"  {one.role}: {one.path}" + (f", {one.rows} rows{wide}" if one.rows else ""))
    for file in dict.fromkeys(column.file for column in files.columns):
        lines += ["", f"columns of {file}", *_table([_column(c, files) for c in files.columns if c.file == file])]
    if files.nodes:
        lines += ["", f"nodes are called {', '.join(files.nodes)}, ..."]
    return lines


def _column(column: ColumnFacts, files: FileCheck) -> list[str]:
    role = column.role.value
    if column.role.name in ("FEATURE", "ONE_HOT"):
        role = (
            "better left out"
            if column.name in files.drop_columns
            else "one feature per category"
            if column.name in files.one_hot
            else role
        )
    gaps = f", {column.missing} missing" if column.missing else ""
    values = f"{column.distinct} value{'s'[: column.distinct != 1]}{gaps}"
    shown = ", ".join(example[:20] for example in column.examples[:3])
    return [column.name[:40], column.kind.value, role, values, shown]


def _of_data(data: DataCheck | None) -> list[str]:
    if data is None:
        return []
    graph = data.graph
    way = "as listed" if graph.directed else "both ways"
    rows = [
        ["nodes", f"{graph.nodes}, of which {graph.isolated} without an edge"],
        ["edges", f"{graph.edges} pairs of nodes{', weighted' if graph.weighted else ''}; {graph.one_way} of {graph.listed} listed in one direction only; they run {way}"],
        ["components", f"{graph.components}, the largest with {graph.largest} nodes"],
        ["features", str(data.features)],
        *_of_labels(data),
    ]  # fmt: skip
    if data.split is not None:
        split = data.split
        rows.append(["split", f"{split.name}: {split.train} train, {split.valid} valid, {split.test} test; {split.shared_rows} test nodes with the features of a training node"])  # fmt: skip
    return ["", data.name, *_table(rows)]


def _of_labels(data: DataCheck) -> list[list[str]]:
    if data.labels is None:
        return [
            [t.name, f"mean {t.mean:.4g}, deviation {t.deviation:.4g}, from {t.low:.4g} to {t.high:.4g}; unknown for {t.missing} nodes"]
            for t in data.targets
        ]  # fmt: skip
    labels = data.labels
    pairs = sorted(zip(labels.counts, labels.classes, strict=True), key=lambda pair: -pair[0])
    shown = ", ".join(f"{name} {count}" for count, name in pairs[:8]) + (", ..." if len(pairs) > 8 else "")
    rows = [
        [
            "classes",
            f"{len(labels.classes)}: {shown}; the largest is {100 * labels.majority:.1f} %; {labels.missing} nodes without a label",
        ]
    ]
    if not math.isnan(labels.homophily):
        rows.append(["homophily", f"{100 * labels.homophily:.1f} % of the edges join nodes of one class; by chance {100 * labels.chance:.1f} %"])  # fmt: skip
    return rows


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells below each other, two spaces apart."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))] if rows else []
    return ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]


# -- plain values ------------------------------------------------------------------------------------------------------


def _record(found: Checked) -> dict[str, Any]:
    files, data = found.files, found.data
    return {
        "ready": found.command is not None,
        "command": found.command,
        "files": [] if files is None else [asdict(one) for one in files.files],
        "columns": [] if files is None else [_plain(asdict(one)) for one in files.columns],
        "data": None if data is None else _plain({k: v for k, v in asdict(data).items() if k != "findings"}),
        "findings": [
            {"severity": f.severity.value, "kind": f.kind.name.lower(), "about": f.about, "count": f.count, "of": f.of, "share": _plain(f.share),
             "examples": list(f.examples), "sentence": _said(f)}
            for f in found.findings
        ],
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """Values that JSON has: names of enums in small letters, None for NaN."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Enum):
        return value.name.lower()
    return None if isinstance(value, float) and not math.isfinite(value) else value
