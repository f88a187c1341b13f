"""The columns of a table as they stand in the file: what they hold, and what they are for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from unspool.datasets.checking.feature_columns import FEWEST, determines
from unspool.datasets.checking.finding import Finding, Kind, are_categories
from unspool.datasets.features import LARGEST
from unspool.datasets.headings import id_place
from unspool.datasets.labels import BLANK
from unspool.datasets.node_files import Columns, label_place
from unspool.datasets.tables import Table, is_number

#: Texts that stand for a missing value.
GAPS = BLANK - {"-1", "-1.0"}
#: A column with this share of numbers is meant to hold numbers.
MOSTLY = 0.8


class ColumnKind(Enum):
    """What a column holds."""

    WHOLE = "whole numbers"
    NUMBERS = "numbers"
    TEXT = "text"
    EMPTY = "nothing"


class Role(Enum):
    """What a column is for."""

    ID = "names of the nodes"
    LABEL = "label"
    TARGET = "number to predict"
    SPLIT = "split"
    SAMPLE_WEIGHT = "how much a node counts"
    FEATURE = "feature"
    ONE_HOT = "categories, one feature each"
    DROPPED = "left out"
    UNUSED = "not used"


@dataclass(frozen=True)
class ColumnFacts:
    """One column of a file.

    Attributes:
        file: the name of the file.
        name: of the column; its number from 1 where it has none.
        kind: what it holds.
        role: what it is for.
        missing: cells without a value.
        distinct: different values.
        examples: the first of them.
        strays: cells that are not numbers, or none that float32 has.
    """

    file: str
    name: str
    kind: ColumnKind
    role: Role
    missing: int
    distinct: int
    examples: tuple[str, ...]
    strays: int = 0


def columns_in(table: Table, columns: Columns, features: bool) -> list[ColumnFacts]:
    """All columns of a table; ``features`` where it holds them, and not labels alone.

    Example:
        >>> from pathlib import Path
        >>> table = Table(Path("x.csv"), ("id", "age", "plan"), (("a", "b"), ("3", ""), ("pro", "basic")), (2, 3))
        >>> [(c.name, c.kind.name, c.role.name, c.missing) for c in columns_in(table, Columns(), features=True)]
        [('id', 'TEXT', 'ID', 0), ('age', 'WHOLE', 'FEATURE', 1), ('plan', 'TEXT', 'FEATURE', 0)]
    """
    place = id_place(table, columns.id)
    label = None if features or columns.targets or columns.labels else _label(table, columns)
    found = list[ColumnFacts]()
    for column in range(len(table.columns)):
        name = str(column + 1) if table.header is None else table.header[column]
        role = Role.ID if column == place else Role.LABEL if column == label else _role(name, columns, features)
        found.append(_facts(table, column, name, role))
    return found


def _label(table: Table, columns: Columns) -> int | None:
    """Which column of a table of labels is the label; None where that is not clear, which its reader says."""
    try:
        return label_place(table, columns)
    except ValueError:
        return None


def _role(name: str, columns: Columns, features: bool) -> Role:
    named = {
        Role.LABEL: (columns.label, *(columns.labels or ())),
        Role.SAMPLE_WEIGHT: (columns.weight,),
        Role.SPLIT: (columns.split,),
        Role.TARGET: columns.targets or (),
        Role.DROPPED: columns.drop,
        Role.ONE_HOT: columns.one_hot or (),
    }
    said = next((role for role, columns_of in named.items() if name in columns_of), None)
    if said is not None:
        return said
    chosen = columns.features is None or name in columns.features
    return Role.FEATURE if features and chosen else Role.UNUSED


def _facts(table: Table, column: int, name: str, role: Role) -> ColumnFacts:
    cells = table.columns[column]
    flags = isinstance(cells, np.ndarray) and cells.dtype.kind == "b"  # of Parquet, which reads as 0 and 1
    texts = [str(int(flag)) for flag in cells] if flags else table.texts(column)
    held = [text for text in texts if text.lower() not in GAPS]
    values = dict.fromkeys(held)
    words = [text for text in values if not is_number(text)]
    strays = [text for text in values if not is_number(text) or not abs(float(text)) <= LARGEST]
    if not held:
        kind = ColumnKind.EMPTY
    elif words:
        kind = ColumnKind.TEXT
    else:
        kind = ColumnKind.WHOLE if all(float(text).is_integer() for text in values) else ColumnKind.NUMBERS
    examples = tuple((strays if strays and len(strays) < len(values) else list(values))[:5])
    stray = set(strays)
    many = sum(text in stray for text in held) if stray else 0
    return ColumnFacts(table.path.name, name, kind, role, len(texts) - len(held), len(values), examples, many)


def feature_findings(facts: ColumnFacts, table: Table, answers: list[str] | None) -> Finding | None:
    """What keeps a column from being a feature as it is; ``answers`` are the labels by row, where they are known."""
    if facts.role not in (Role.FEATURE, Role.ONE_HOT):
        return None
    if facts.kind is ColumnKind.TEXT:
        return _of_text(facts, table, answers)
    if facts.strays and facts.role is Role.FEATURE:
        return Finding(Kind.BROKEN_NUMBERS, facts.name, facts.strays, table.rows, examples=facts.examples)
    gaps = facts.missing and (facts.role is Role.FEATURE or facts.kind is ColumnKind.EMPTY)
    return Finding(Kind.MISSING, facts.name, facts.missing, table.rows) if gaps else None


def _of_text(facts: ColumnFacts, table: Table, answers: list[str] | None) -> Finding | None:
    rows = table.rows
    if answers is not None and table.header is not None and _tells(table, facts.name, answers):
        return Finding(Kind.LEAK, facts.name, sum(answer.lower() not in GAPS for answer in answers), rows)
    if facts.role is Role.ONE_HOT:
        return None
    if facts.strays < (1 - MOSTLY) * (rows - facts.missing):
        return Finding(Kind.BROKEN_NUMBERS, facts.name, facts.strays, rows, examples=facts.examples)
    return Finding(Kind.TEXT, facts.name, facts.distinct, rows, examples=facts.examples)


def is_encodable(finding: Finding) -> bool:
    """Whether a column of text is worth a feature for each category."""
    return finding.kind is Kind.TEXT and are_categories(finding.count, finding.of)


def _tells(table: Table, name: str, answers: list[str]) -> bool:
    """Whether a column of text tells the answer of every row."""
    texts = table.texts(table.find(name))
    pairs = [(text, answer) for text, answer in zip(texts, answers, strict=True) if answer.lower() not in GAPS]
    if len(pairs) < FEWEST:
        return False
    place = {text: i for i, text in enumerate(dict.fromkeys(text for text, _ in pairs))}
    number = {answer: i for i, answer in enumerate(dict.fromkeys(answer for _, answer in pairs))}
    if len(place) > len(pairs) // 4 or len(number) > len(pairs) // 4:
        return False
    return determines(np.array([place[text] for text, _ in pairs], float), np.array([number[a] for _, a in pairs]))
