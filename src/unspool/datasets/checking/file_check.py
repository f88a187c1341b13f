"""Files of your own, looked through: everything that can be found at once, and not only the first thing."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unspool.datasets import splits
from unspool.datasets.checking.dataset_check import DataCheck, check
from unspool.datasets.checking.finding import Finding, Kind, Severity, by_importance
from unspool.datasets.checking.table_columns import (
    ColumnFacts,
    ColumnKind,
    Role,
    columns_in,
    feature_findings,
    is_encodable,
)
from unspool.datasets.dataset import Dataset
from unspool.datasets.edge_files import EdgeFile, read_edges
from unspool.datasets.files import check_dropped, find_labels, from_files, join, node_names
from unspool.datasets.headings import LABELS, headed, id_place
from unspool.datasets.labels import blank_words
from unspool.datasets.node_files import Columns, find_targets, read_features
from unspool.datasets.one_hot import wanted
from unspool.datasets.own import Splitting
from unspool.datasets.places import Place
from unspool.datasets.split import Split
from unspool.datasets.tables import PARQUET, TEXT, Table, suffix
from unspool.errors import DataError, Worded, mention
from unspool.graph import EdgeDirectionWarning

#: What reading a file may raise.
_PROBLEMS = (ValueError, TypeError, OSError, ImportError)


@dataclass(frozen=True)
class FileFacts:
    """A file that was read: what it was read as, its rows, and its columns where they have names."""

    role: str
    path: str
    rows: int
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class FileCheck:
    """What files hold, what looks wrong in them, and what to do about it.

    Attributes:
        files: the files that could be read.
        columns: every column of the tables.
        data: what the data set holds that the files make, under the advice below; None where they make none.
        findings: what looks wrong, the most important first.
        drop_columns: the columns to leave out: those that were named, and those that are better left out.
        one_hot: the same of columns of categories.
        label_column: the label, as it was named or by its name.
        nodes: some of the nodes' names.
    """

    files: tuple[FileFacts, ...]
    columns: tuple[ColumnFacts, ...]
    data: DataCheck | None
    findings: tuple[Finding, ...]
    drop_columns: tuple[str, ...]
    one_hot: tuple[str, ...]
    label_column: str | None
    nodes: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether the advice can be trained on: there are no errors."""
        return self.data is not None and all(one.severity is not Severity.ERROR for one in self.findings)


@dataclass
class _Look:
    """What is gathered on the way."""

    columns: Columns
    way_is_said: bool
    findings: list[Finding] = field(default_factory=list[Finding])
    files: list[FileFacts] = field(default_factory=list[FileFacts])
    facts: list[ColumnFacts] = field(default_factory=list[ColumnFacts])

    def problem(self, problem: Exception) -> None:
        """Keep the sentence of a reader."""
        said = problem if isinstance(problem, Worded) else str(problem)
        self.findings.append(Finding(Kind.UNREADABLE, said=said))

    def change(self, drop: Sequence[str] = (), one_hot: Sequence[str] = ()) -> None:
        """Take columns out, or apart; what was asked for before stays."""
        old = {} if self.columns.one_hot is None else dict(self.columns.one_hot)
        taken = {name: known for name, known in old.items() if name not in drop}
        self.columns = replace(
            self.columns,
            drop=tuple(dict.fromkeys((*self.columns.drop, *drop))),
            one_hot={**taken, **dict.fromkeys(one_hot)},
            features=None if self.columns.features is None else [f for f in self.columns.features if f not in drop],
        )


def check_files(
    edges: Place,
    features: Place | None = None,
    labels: Place | None = None,
    *,
    edge_columns: Sequence[str] | None = None,
    weight_column: str | None = None,
    id_column: str | None = None,
    feature_columns: Sequence[str] | None = None,
    drop_columns: Sequence[str] = (),
    one_hot: Any = (),
    label_column: str | None = None,
    split_column: str | None = None,
    target_columns: Sequence[str] | None = None,
    label_columns: Sequence[str] | None = None,
    sample_weight_column: str | None = None,
    class_order: Sequence[str] | None = None,
    directed: bool | None = None,
    header: bool | None = None,
    split: Splitting = None,
    name: str | None = None,
) -> FileCheck:
    """Look files through before they are trained on; arguments are those of :func:`~unspool.datasets.from_files`.

    Text, gaps and columns that give the answer away do not end it: they are left out or taken apart, and the result says so.

    Example:
        >>> import tempfile, pathlib
        >>> place = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (place / "e.csv").write_text("source,target\\n" + "".join(f"{i},{(i + 1) % 9}\\n" for i in range(9)))
        >>> _ = (place / "x.csv").write_text("age,plan,label\\n" + "".join(f"{i * i},{'ab'[i % 2]},{i % 3 % 2}\\n" for i in range(9)))
        >>> found = check_files(place / "e.csv", place / "x.csv")
        >>> found.one_hot, found.label_column, found.ready
        (('plan',), 'label', True)
        >>> [finding.kind.name for finding in found.findings]
        ['TEXT', 'ONE_WAY', 'GUESSED_LABEL']
    """
    columns = Columns(
        id_column, feature_columns, label_column, split_column, target_columns, header, label_columns, sample_weight_column,
        tuple(drop_columns), wanted(one_hot),
    )  # fmt: skip
    look = _Look(columns, way_is_said=directed is not None)
    if suffix(Path(edges)) == ".pt":
        how = {"weight_column": weight_column, "directed": directed, "split": split, "name": name}
        return _checked_whole(look, Path(edges), {**how, "labels": labels, "features": features})
    held = _edges(look, Path(edges), edge_columns, weight_column)
    sound = _tables(look, features, labels)
    if held is None or not sound:
        return _result(look, None, None)
    called = Path(edges).name.split(".")[0] if name is None else name
    chosen = split if split is not None or split_column is not None else _drawn

    def made() -> Dataset | None:
        return _joined(look, held, (features, labels, Path(edges)), called, directed, chosen, class_order)

    return _advised(look, made)


def _tables(look: _Look, features: Place | None, labels: Place | None) -> bool:
    """All columns of the tables; whether a data set can be made of them."""
    x = None if features is None else _table(look, Path(features), "features")
    y = None if labels is None else _table(look, Path(labels), "labels")
    if labels is None and x is not None:
        _guess_label(look, x)
    try:
        if x is not None:
            _columns(look, x, features=True, answers=labels is None)
        if y is not None:
            _columns(look, y, features=False, answers=False)
    except _PROBLEMS as problem:
        look.problem(problem)
        return False
    read = (features is None or x is not None) and (labels is None or y is not None)
    return read and all(finding.kind is not Kind.REPEATED_IDS for finding in look.findings)


def _edges(look: _Look, path: Path, columns: Sequence[str] | None, weight: str | None) -> EdgeFile | None:
    try:
        held = read_edges(path, columns, weight)
    except _PROBLEMS as problem:
        look.problem(problem)
        return None
    look.files.append(FileFacts("edges", str(path), len(held.sources)))
    look.way_is_said |= held.undirected
    pairs = Counter(zip(held.sources, held.targets, strict=True))
    again = sum(count - 1 for count in pairs.values())
    if again:
        look.findings.append(Finding(Kind.REPEATED_EDGES, path.name, again, len(held.sources)))
    unused = tuple(column for column in held.unused if column not in look.columns.drop)
    if unused:
        look.findings.append(Finding(Kind.UNUSED, path.name, len(unused), examples=unused))
    return held


def _table(look: _Look, path: Path, role: str) -> Table | None:
    """The table of a file; None where there is a problem, and an empty one for arrays, which have no columns to look at."""
    columns = look.columns
    kind = suffix(path)
    if kind not in TEXT and kind not in PARQUET:
        look.files.append(FileFacts(role, str(path), 0))
        return Table(path, (), (), None)
    asked = (columns.id, *columns.answers, *(columns.features or ()), *(columns.one_hot or ()), *columns.drop)
    try:
        table = headed(path, asked, labels=role == "labels", header=columns.header)
    except _PROBLEMS as problem:
        look.problem(problem)
        return None
    look.files.append(FileFacts(role, str(path), table.rows, () if table.header is None else table.header))
    return table


def _guess_label(look: _Look, table: Table) -> None:
    """Take the one column that is called as labels are, where nobody has said what to predict."""
    columns = look.columns
    if columns.label is not None or columns.targets or columns.labels or table.header is None:
        return
    taken = {*columns.drop, *(columns.one_hot or ()), *(columns.features or ())}
    called = [name for name in table.header if name.lower() in LABELS and name not in taken]
    if len(called) == 1:
        look.columns = replace(columns, label=called[0])
        look.findings.append(Finding(Kind.GUESSED_LABEL, called[0]))


def _columns(look: _Look, table: Table, features: bool, answers: bool) -> None:
    """All columns of a table, and what keeps features from being such."""
    facts = columns_in(table, look.columns, features)
    look.facts += facts
    place = id_place(table, look.columns.id) if table.header is not None else None
    if place is not None:
        twice = {node: n for node, n in Counter(table.texts(place)).items() if n > 1}
        if twice:
            count = sum(twice.values()) - len(twice)
            look.findings.append(
                Finding(Kind.REPEATED_IDS, table.path.name, count, table.rows, examples=tuple(twice)[:4])
            )
    label = look.columns.label
    if label is not None and label in (table.header or ()):
        words = blank_words(table.texts(table.find(label)))
        look.findings += [Finding(Kind.BLANK_WORD, label, n, table.rows, examples=(word,)) for word, n in words.items()]
    if not features:
        return
    known = table.texts(table.find(label)) if answers and label is not None and label in (table.header or ()) else None
    found = [finding for one in facts if (finding := feature_findings(one, table, known)) is not None]
    look.findings += found
    if table.header is not None:
        encode = [finding.about for finding in found if is_encodable(finding)]
        look.change([finding.about for finding in found if finding.about not in encode], encode)


def _joined(
    look: _Look,
    held: EdgeFile,
    files: tuple[Place | None, Place | None, Path],
    name: str,
    directed: bool | None,
    split: Splitting,
    class_order: Sequence[str] | None,
) -> Dataset | None:
    """The data set that the files make; edges to nodes without a row are found, and left out to look at the rest."""
    features, labels, edges = files
    columns = look.columns
    try:
        x = None if features is None else read_features(Path(features), columns, answers=labels is None)
        rows = columns.targets or columns.labels
        y = find_targets(x, labels, columns) if rows else find_labels(held, x, edges, labels, columns)
        check_dropped(columns, held, x, y)
        names, _ = node_names(held, x, y)
        known = set(names)
        ends = list(zip(held.sources, held.targets, strict=True))
        kept = [i for i, pair in enumerate(ends) if known.issuperset(pair)]
        if len(kept) < len(ends):
            strange = tuple(dict.fromkeys(node for pair in ends for node in pair if node not in known))
            look.findings.append(_strangers(look, held, strange, len(ends) - len(kept)))
            held = replace(
                held, sources=[held.sources[i] for i in kept], targets=[held.targets[i] for i in kept],
                weights=None if held.weights is None else held.weights[kept],
            )  # fmt: skip
        with _unwarned():
            return join(held, x, y, columns, split, name, False if held.undirected else directed, class_order)
    except _PROBLEMS as problem:
        look.problem(problem)
        return None


def _strangers(look: _Look, held: EdgeFile, strange: tuple[str, ...], many: int) -> Finding:
    """Edges to nodes without a row; a header that was read as an edge and an id column that was not named are told from it."""
    found = Finding(Kind.UNKNOWN_ENDS, held.file, many, len(held.sources), examples=strange[:4])
    first = (held.sources[0], held.targets[0])
    others = {*held.sources[1:], *held.targets[1:]}
    if held.bare and others.isdisjoint(first) and set(first) <= set(strange):
        text = f"{first[0]!r}, {first[1]!r} are not nodes, and look like a header"
        return replace(found, said=DataError(held.where(0), text, f"name its columns: {mention('edge_columns')}"))
    names = [one.name for one in look.facts if one.kind is ColumnKind.TEXT and set(one.examples) & set(strange)]
    if len(names) == 1 and look.columns.id is None:
        hint = f"column {names[0]!r} holds such names: {mention('id_column', names[0])}"
        return replace(found, said=DataError("", str(found).partition(";")[0], hint))
    return found


def _drawn(data: Dataset) -> Split | None:
    try:
        return splits.random(data.strata, seed=0)
    except ValueError:
        return None


def _checked_whole(look: _Look, path: Path, how: dict[str, Any]) -> FileCheck:
    """A file that is a whole data set."""
    columns = look.columns
    try:
        with _unwarned():
            data = from_files(
                path, **how, drop_columns=columns.drop, id_column=columns.id, feature_columns=columns.features, one_hot=columns.one_hot or {},
                label_column=columns.label, split_column=columns.split, target_columns=columns.targets, header=columns.header,
                label_columns=columns.labels, sample_weight_column=columns.weight,
            )  # fmt: skip
    except _PROBLEMS as problem:
        look.problem(problem)
        return _result(look, None, None)
    look.files.append(FileFacts("edges, features, labels and masks", str(path), data.nodes))
    return _result(look, data, check(data))


@contextmanager
def _unwarned() -> Generator[None]:
    """Which way edges run is one of the findings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdgeDirectionWarning)
        yield


def _advised(look: _Look, made: Callable[[], Dataset | None]) -> FileCheck:
    """Leave out what gives the answer away, numbers the nodes or never changes, as long as a feature is left."""
    before = list(look.findings)
    data = made()
    if data is None:
        return _result(look, None, None)
    names = tuple(look.columns.targets or look.columns.labels or ())
    found = check(data, names)
    raw = {column.name for column in look.facts if column.role in (Role.FEATURE, Role.ONE_HOT)} - set(look.columns.drop)
    bad = [f for f in found.findings if f.kind in (Kind.LEAK, Kind.ID, Kind.CONSTANT) and f.about in raw]
    if not bad or data.feature_names is None or len(raw) == len({one.about for one in bad}):
        return _result(look, data, found)
    look.findings = [*before, *bad]
    look.change([one.about for one in bad])
    data = made()
    return _result(look, data, None if data is None else check(data, names))


def _result(look: _Look, data: Dataset | None, found: DataCheck | None) -> FileCheck:
    findings = [*look.findings, *(() if found is None else found.findings)]
    findings = [one for one in findings if one.kind is not Kind.ONE_WAY or not look.way_is_said]
    if any(one.kind is Kind.NO_ANSWER for one in findings):
        few = tuple(
            c.name
            for c in look.facts
            if c.kind is not ColumnKind.NUMBERS and 2 <= c.distinct <= 20 and c.role is not Role.ID
        )
        findings = [replace(one, examples=few[:8]) if one.kind is Kind.NO_ANSWER else one for one in findings]
    names = () if data is None else tuple(map(str, (data.names or tuple(range(data.nodes)))[:4]))
    columns = look.columns
    return FileCheck(
        tuple(look.files), tuple(look.facts), found, by_importance(findings), tuple(columns.drop), tuple(columns.one_hot or ()), columns.label, names
    )  # fmt: skip
