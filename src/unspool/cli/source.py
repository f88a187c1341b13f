"""Where the data of a command come from: a named set, or files of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
    click.option("--split-column", help="A column that says train, valid or test."),
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
    split: str | None = None

    @staticmethod
    def taken_from(options: dict[str, Any]) -> Source:
        """Take the data options out of all options."""
        return Source(**{name: options.pop(name) for name in Source.__dataclass_fields__ if name in options})

    @property
    def own(self) -> bool:
        """Whether the data are the user's own files."""
        return self.edges is not None

    def load(self, default: str | None = None) -> Any:
        """The data set."""
        from unspool import datasets

        if self.own and self.dataset is not None:
            raise ValueError("--dataset names a set and --edges your own files; give one of them")
        if not self.own:
            for name in ("features", "labels", "label_column", "target_columns"):
                if getattr(self, name):
                    option = name.replace("_", "-").removesuffix("s" if name == "target_columns" else "")
                    raise ValueError(f"--{option} belongs to your own files; name the graph with --edges")
            name = self.dataset if self.dataset is not None else default
            if name is None:
                raise ValueError("which data? Give --dataset NAME, or --edges FILE (and --features FILE)")
            found = datasets.load(name, root=self.data)
        else:
            found = self._files()
        if self.split is None:
            return found
        text = self.split
        return found.with_split(lambda data: datasets.splits.by_name(data, text))

    def _files(self) -> Any:
        from unspool import datasets

        assert self.edges is not None
        columns = list(self.feature_columns) if self.feature_columns else None
        return datasets.from_files(
            self.edges, self.features, self.labels, id_column=self.id_column, feature_columns=columns,
            label_column=self.label_column, split_column=self.split_column,
            target_columns=list(self.target_columns) if self.target_columns else None,
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
            return {"dataset": self.dataset if self.dataset is not None else default}
        held = {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("dataset", "data", "split")
        }
        return {name: [*value] if isinstance(value, tuple) else str(value) for name, value in held.items() if value}


def data_of(card: Mapping[str, Any], source: Source) -> Any:
    """The data to look at with a trained model, as the model was trained to see them.

    What the user names wins; else the set that the model was trained on. Columns are found by the names they had in
    training, and features are transformed as they were then.
    """
    known: Mapping[str, Any] = card.get("data", {})
    if source.own:
        columns = tuple(known.get("features") or ())
        usable = source.features is not None and source.features.suffix.lower() not in (".npy", ".npz")
        if columns and not source.feature_columns and usable:
            source = replace(source, feature_columns=columns)
        found = source.load()
    else:
        trained: Mapping[str, Any] = known.get("source", {})
        if source.dataset is None and "edges" in trained:
            found = Source.from_record(trained).load()
        else:
            found = source.load(trained.get("dataset"))
    for name in known.get("transforms", ()):
        if name != "row_normalised":
            raise ValueError(f"the model was trained on features that were {name!r}, which this version does not know")
        found = found.row_normalised()
    return found
