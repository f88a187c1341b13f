"""What looks wrong in data: values with fields, and the sentence that is made of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from unspool.errors import DataError, Worded, mention


class Severity(Enum):
    """How bad a finding is: ``ERROR`` stops training, ``WARNING`` makes its result doubtful, ``NOTE`` is good to know."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Kind(Enum):
    """What was found, the most important first."""

    UNREADABLE = "unreadable"
    REPEATED_IDS = "repeated ids"
    UNKNOWN_ENDS = "edges to nodes without a row"
    RARE_CLASS = "class with too few examples"
    NO_ANSWER = "nothing to predict"
    BLANK_WORD = "word that is read as no label"
    LEAK = "column that gives the label away"
    TEXT = "column of text"
    BROKEN_NUMBERS = "numbers with other cells among them"
    MISSING = "missing values"
    ID = "column that numbers the nodes"
    SHARED_ROWS = "test nodes with features of training nodes"
    UNBALANCED = "unbalanced classes"
    UNTRAINED_CLASS = "class without training nodes"
    ONE_WAY = "edges in one direction"
    ISOLATED = "nodes without edges"
    NOT_ALIKE = "neighbours that are not alike"
    SCALES = "features of different size"
    CONSTANT = "constant column"
    GUESSED_LABEL = "label taken by its name"
    UNUSED = "columns of edges that are not used"
    REPEATED_EDGES = "repeated edges"
    LOOPS = "self-loops"
    UNLABELLED = "nodes without a label"


_ERRORS = (Kind.UNREADABLE, Kind.REPEATED_IDS, Kind.UNKNOWN_ENDS, Kind.RARE_CLASS)
_NOTES = (Kind.GUESSED_LABEL, Kind.UNUSED, Kind.REPEATED_EDGES, Kind.LOOPS, Kind.UNLABELLED, Kind.CONSTANT)


@dataclass(frozen=True)
class Finding:
    """One thing that looks wrong.

    Attributes:
        kind: what it is.
        about: the column, class or file that it is about.
        count: how many cells, nodes or edges.
        of: of how many.
        share: a share or a ratio, where one tells more.
        examples: some of them, as they stand in the file.
        said: the sentence of the reader, for ``UNREADABLE``.

    Example:
        >>> finding = Finding(Kind.CONSTANT, about="version", examples=("1",))
        >>> print(finding.severity.value, finding)
        note column 'version' is 1 everywhere, so nothing can be learnt from it; leave it out with drop_columns=version
    """

    kind: Kind
    about: str = ""
    count: int = 0
    of: int = 0
    share: float = 0.0
    examples: tuple[str, ...] = ()
    said: Worded | str = ""

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return Severity.ERROR if self.kind in _ERRORS else Severity.NOTE if self.kind in _NOTES else Severity.WARNING

    def problem(self) -> Worded:
        """The same as an error would say it: by names of arguments in Python, as options on the command line."""
        if isinstance(self.said, Worded):
            return self.said
        return DataError("", _WORDS[self.kind](self))

    def __str__(self) -> str:
        return str(self.problem())


def are_categories(values: int, rows: int) -> bool:
    """Whether so many different texts in so many rows sort the rows, and do not name them.

    Example:
        >>> are_categories(3, 100), are_categories(100, 100)
        (True, False)
    """
    return values <= 50 and 2 * values <= rows


def by_importance(findings: list[Finding]) -> tuple[Finding, ...]:
    """Errors, then warnings, then notes; inside each in the order of :class:`Kind`."""
    kinds, severities = list(Kind), list(Severity)
    return tuple(sorted(findings, key=lambda one: (severities.index(one.severity), kinds.index(one.kind))))


def _some(finding: Finding) -> str:
    shown = ", ".join(repr(one if len(one) <= 40 else f"{one[:39]}…") for one in finding.examples[:3])
    return f" ({shown}{', ...' if finding.count > 3 or len(finding.examples) > 3 else ''})" if shown else ""


def _drop(finding: Finding) -> str:
    return mention("drop_columns", finding.about)


def _text(finding: Finding) -> str:
    if not are_categories(finding.count, finding.of):
        return f"column {finding.about!r} is text with {finding.count} values in {finding.of} rows{_some(finding)}; leave it out with {_drop(finding)}"
    ways = f"give each a column with {mention('one_hot', finding.about)}, or leave it out with {_drop(finding)}"
    return f"column {finding.about!r} is text with {finding.count} categories{_some(finding)}; {ways}"


def _answer(finding: Finding) -> str:
    known = f": {', '.join(finding.examples)} have few values" if finding.examples else ""
    return f"nothing is named to predict; name classes with {mention('label_column')} or numbers with {mention('target_columns')}{known}"


_WORDS: dict[Kind, Callable[[Finding], str]] = {
    Kind.UNREADABLE: lambda f: str(f.said),
    Kind.REPEATED_IDS: lambda f: f"{f.about}: {f.count} rows repeat the id of another{_some(f)}; keep one row for each node",
    Kind.UNKNOWN_ENDS: lambda f: f"{f.about}: {f.count} of {f.of} edges lead to nodes that have no row{_some(f)}; add these rows, or drop the edges",
    Kind.RARE_CLASS: lambda f: f"{f.count} class{'' if f.count == 1 else 'es'}{_some(f)} with fewer than three examples, too few for train, valid and test; merge it with another, or empty its labels",
    Kind.NO_ANSWER: _answer,
    Kind.BLANK_WORD: lambda f: f"{f.count} of {f.of} cells of {f.about!r} say {f.examples[0]!r}, which is read as no label; if it is a class, give it another name",
    Kind.LEAK: lambda f: f"column {f.about!r} gives the answer away: its value tells it for all {f.count} nodes; if it is not known before the answer is, leave it out with {_drop(f)}",
    Kind.TEXT: _text,
    Kind.BROKEN_NUMBERS: lambda f: f"column {f.about!r} holds numbers, and {f.count} of {f.of} cells that are not, or are too large{_some(f)}; correct them, or leave it out with {_drop(f)}",
    Kind.MISSING: lambda f: f"column {f.about!r} has no value in {f.count} of {f.of} rows; fill them, or leave it out with {_drop(f)}",
    Kind.ID: lambda f: f"column {f.about!r} numbers the nodes ({f.count} rows, as many values), and is read as a feature; leave it out with {_drop(f)}",
    Kind.SHARED_ROWS: lambda f: f"{f.count} of {f.of} test nodes {'has' if f.count == 1 else 'have'} exactly the features of a training node; if they are copies, the test score is too good",
    Kind.UNBALANCED: lambda f: f"{100 * f.share:.0f} % of the labels are {f.about!r}, so always saying so is {100 * f.share:.0f} % accurate; look at balanced accuracy or AUC beside accuracy",
    Kind.UNTRAINED_CLASS: lambda f: f"{f.count} class{'' if f.count == 1 else 'es'}{_some(f)} without a training node in this split, which cannot be learnt",
    Kind.ONE_WAY: lambda f: f"{f.count} of {f.of} edges are listed in one direction only; they run both ways unless you give directed=True",
    Kind.ISOLATED: lambda f: f"{f.count} of {f.of} nodes have no edge, so only their own features speak for them",
    Kind.NOT_ALIKE: lambda f: f"neighbours share their class no more often than by chance ({100 * f.share:.0f} %); models that smooth may lose to an MLP: try GPRGNN or UGDGNN beside it",
    Kind.SCALES: lambda f: f"features differ in size: {f.about!r} is {f.share:.0f} times as large as {f.examples[0]!r}, so training is slow or learns nothing; bring them to one scale (mean 0, deviation 1), or leave it out",
    Kind.CONSTANT: lambda f: f"column {f.about!r} is {f.examples[0]} everywhere, so nothing can be learnt from it; leave it out with {_drop(f)}",
    Kind.GUESSED_LABEL: lambda f: f"column {f.about!r} is taken for the label, by its name; another is named with {mention('label_column')}",
    Kind.UNUSED: lambda f: f"columns of the edges that are not used: {', '.join(f.examples)}; one of them is the weight with {mention('weight_column')}",
    Kind.REPEATED_EDGES: lambda f: f"{f.count} of {f.of} lines repeat an edge; they count once, or their weights are added",
    Kind.LOOPS: lambda f: f"{f.count} of {f.of} edges lead from a node to itself",
    Kind.UNLABELLED: lambda f: f"{f.count} of {f.of} nodes have no label: they are not trained on, and can be predicted",
}  # fmt: skip
