"""Where the data of a command come from: a named set, or files of the user's own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

#: Options that say which data; each of the commands takes them all.
_OPTIONS = (
    click.option("--dataset", help="Name of a set (unspool datasets lists them); citeseer is built in."),
    click.option("--data", type=click.Path(path_type=Path), help="Folder with raw data, else UNSPOOL_DATA."),
    click.option("--edges", type=click.Path(path_type=Path), help="Your own graph: CSV, TSV, Parquet, .npz, .npy or GraphML."),
    click.option("--features", type=click.Path(path_type=Path), help="Your nodes' features: CSV, TSV, Parquet, .npy, .npz."),
    click.option("--labels", type=click.Path(path_type=Path), help="Your nodes' classes or numbers: CSV, TSV, Parquet, .npy."),
    click.option("--id-column", help="The column with the nodes' names, if it is not called id, node or name."),
    click.option("--label-column", help="The column with the classes; without --labels, one of --features."),
    click.option("--target-column", "target_columns", multiple=True, help="A column of numbers to predict; may be repeated."),
    click.option("--feature-column", "feature_columns", multiple=True, help="A column to use; all others when omitted."),
    click.option(
        "--directed/--undirected", default=None,
        help="Whether edges keep their direction; every edge runs both ways, and that is said, when omitted.",
    ),
    click.option("--split-column", help="A column that says train, valid or test."),
    click.option("--header/--no-header", default=None, help="Whether the first line of --features and --labels names columns; seen when omitted."),
    click.option("--split", help="public, per-class:20/30, random:0.6/0.2/0.2, fold-3, ...; the set's own when omitted."),
)  # fmt: skip


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which data; they arrive as keyword arguments of the same names."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class Source:
    """What the user said about the data."""

    dataset: str | None = None
    data: Path | None = None
    edges: Path | None = None
    features: Path | None = None
    labels: Path | None = None
    id_column: str | None = None
    label_column: str | None = None
    target_columns: tuple[str, ...] = ()
    feature_columns: tuple[str, ...] = ()
    split_column: str | None = None
    header: bool | None = None
    split: str | None = None
    directed: bool | None = None

    @staticmethod
    def taken_from(options: dict[str, Any]) -> Source:
        """Take the data options out of all options."""
        return Source(**{name: options.pop(name) for name in Source.__dataclass_fields__ if name in options})

    @property
    def own(self) -> bool:
        """Whether the data are the user's own files."""
        return self.edges is not None

    def load(self, default: str | None = None, split_or_none: bool = False) -> Any:
        """The data set; ``split_or_none`` for those who can do without a split where none can be drawn."""
        from unspool import datasets

        self.check()
        if not self.own:
            name = self.dataset if self.dataset is not None else default
            if name is None:
                raise ValueError("which data? Give --dataset NAME, or --edges FILE (and --features FILE)")
            with said_in_options():
                found = datasets.load(name, root=self.data)
        else:
            found = self._files(_drawn_or_none if split_or_none and self.split_column is None else None)
        return found if self.split is None else found.with_split(datasets.splits.by_name(found, self.split))

    def check(self) -> None:
        """Refuse options that contradict each other, or hang in the air."""
        if self.own and self.dataset is not None:
            raise ValueError("--dataset names a set and --edges your own files; give one of them")
        if self.split is not None and self.split_column is not None:
            raise ValueError("--split and --split-column both say which nodes train; give one of them")
        if self.own:
            return
        files = (
            "features",
            "labels",
            "id_column",
            "label_column",
            "target_columns",
            "feature_columns",
            "split_column",
            "directed",
            "header",
        )
        for name in files:
            if getattr(self, name) not in (None, ()):
                raise ValueError(f"--{_option(name)} belongs to your own files; name the graph with --edges")

    def _files(self, split: Any) -> Any:
        from unspool import datasets

        assert self.edges is not None
        columns = list(self.feature_columns) if self.feature_columns else None
        with said_in_options(), noted():
            return datasets.from_files(
                self.edges, self.features, self.labels, id_column=self.id_column, feature_columns=columns,
                label_column=self.label_column, split_column=self.split_column, directed=self.directed, header=self.header,
                target_columns=list(self.target_columns) if self.target_columns else None, split=split,
            )  # fmt: skip

    @staticmethod
    def from_record(held: Mapping[str, Any]) -> Source:
        """Back from plain values."""
        plain: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in held.items()
        }
        for name in ("edges", "features", "labels"):
            if name in plain:
                plain[name] = Path(plain[name])
        return Source(**plain)

    def record(self, default: str | None = None) -> dict[str, Any]:
        """The same in plain values, for a model's card."""
        if not self.own:
            found: dict[str, Any] = {"dataset": self.dataset if self.dataset is not None else default}
            return found if self.split is None else {**found, "split": self.split}
        held = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("dataset", "data")}
        return {name: _plain(value) for name, value in held.items() if value or value is False}


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    return [*value] if isinstance(value, tuple) else str(value)


def _option(name: str) -> str:
    """The option of an argument."""
    return name.replace("_", "-").removesuffix("s" if name.endswith("_columns") else "")


#: Ways out that the library names in Python, and their names here.
_HERE = {
    r"header=True or header=False": "--header or --no-header",
    r"name (its columns|them) with edge_columns=\([^)]*\)": r"call \1 source, target and weight",
    r"give numbers to NodeRegressor": "name the column with --target-column",
    r"for classes use label_column": "for classes use --label-column",
    r"Your own data: datasets\.from_files, from_tensors": "Your own files: --edges FILE",
    r"\broot=": "--data",
    r"\bdirected=True": "--directed",
    r"Against\.RUNNER_UP": "runner-up",
    r"leave target and against out": "leave --target and --against out",
    r"no weight to choose; give a number": "no weight to choose; give one with --weight",
    r"a number in \(0, 1\], SURE\(\) or GCV\(\)": "a number between 0 and 1",
}
_ARGUMENT = re.compile(
    r"\b(features|labels|split|id_column|(?:label|split)_column|(?:feature|target)_columns|target|against|noise|weight|rate|decay)"
    r"=(\.{3}|(?=[\w'\[({+-]))?"
)


@contextmanager
def noted() -> Generator[None]:
    """Which way edges run stands in the notes of the data set, which commands print: no warning beside them."""
    from unspool.graph import EdgeDirectionWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdgeDirectionWarning)
        yield


@contextmanager
def said_in_options() -> Generator[None]:
    """What the library refuses in terms of its arguments is refused in terms of options.

    Example:
        >>> with said_in_options():
        ...     raise ValueError("y.csv has the columns a, b: which is the label? Name it with label_column=...")
        Traceback (most recent call last):
            ...
        ValueError: y.csv has the columns a, b: which is the label? Name it with --label-column
    """
    try:
        yield
    except (FileNotFoundError, TypeError, ValueError) as problem:
        text = str(problem)
        for python, here in _HERE.items():
            text = re.sub(python, here, text)
        text = _ARGUMENT.sub(lambda found: f"--{_option(found[1])}{' ' if found[2] == '' else ''}", text)
        if text == str(problem):
            raise
        kinds = (FileNotFoundError, TypeError)
        raise next((kind for kind in kinds if isinstance(problem, kind)), ValueError)(text) from problem


def _drawn_or_none(data: Any) -> Any:
    """The usual split; none where a class has too few examples."""
    from unspool.datasets import splits

    try:
        return splits.random(data.strata, seed=0)
    except ValueError:
        return None
