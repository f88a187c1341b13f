"""Where the data of a command come from: a named set, or files of the user's own."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unspool.cli.errors import option
from unspool.cli.paths import look_here
from unspool.errors import InputError
from unspool.text import plain_number


@dataclass(frozen=True)
class DataOptions:
    """What the user said about the data, and about how much of it counts."""

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
    label_columns: tuple[str, ...] = ()
    class_order: tuple[str, ...] = ()
    sample_weight_column: str | None = None
    class_weight: tuple[str, ...] = ()

    @staticmethod
    def taken_from(options: dict[str, Any]) -> DataOptions:
        """Take the data options out of all options."""
        found = {name: options.pop(name) for name in DataOptions.__dataclass_fields__ if name in options}
        if len(labels := found.pop("label_columns", ())) == 1:
            found["label_column"], labels = labels[0], ()
        if (order := found.pop("class_order", None)) is not None:
            found["class_order"] = tuple(name.strip() for name in order.split(","))
        return DataOptions(**found, label_columns=labels)

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
            look_here(self.dataset or "")
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
            "label_columns",
            "class_order",
            "sample_weight_column",
        )
        for name in files:
            if getattr(self, name) not in (None, ()):
                raise ValueError(f"{option(name)} belongs to your own files; name the graph with --edges")

    def _files(self, split: Any) -> Any:
        from unspool import datasets

        assert self.edges is not None
        columns = list(self.feature_columns) if self.feature_columns else None
        with direction_is_noted():
            return datasets.from_files(
                self.edges, self.features, self.labels, id_column=self.id_column, feature_columns=columns,
                label_column=self.label_column, split_column=self.split_column, directed=self.directed, header=self.header,
                target_columns=list(self.target_columns) if self.target_columns else None, split=split,
                label_columns=list(self.label_columns) if self.label_columns else None, sample_weight_column=self.sample_weight_column,
                class_order=list(self.class_order) if self.class_order else None,
            )  # fmt: skip

    def read_class_weight(self) -> Any:
        """What was said about the weights of classes, as :class:`~unspool.train.TrialLoader` takes it.

        Example:
            >>> DataOptions(class_weight=("no=1", "yes=5")).read_class_weight()
            {'no': 1.0, 'yes': 5.0}
        """
        if self.class_weight in ((), ("balanced",)):
            return self.class_weight[0] if self.class_weight else None
        found: dict[str, float] = {}
        for pair in self.class_weight:
            name, sign, text = (part.strip() for part in pair.rpartition("="))
            try:
                weight = float(plain_number(text))
            except ValueError:
                weight = None
            if not sign or not name or weight is None or name in found:
                raise InputError(
                    "class_weight", pair, "balanced alone, or CLASS=WEIGHT once for each class, such as yes=5"
                )
            found[name] = weight
        return found

    @staticmethod
    def from_record(held: Mapping[str, Any]) -> DataOptions:
        """Back from plain values."""
        plain: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in held.items()
        }
        for name in ("edges", "features", "labels"):
            if name in plain:
                plain[name] = Path(plain[name])
        return DataOptions(**plain)

    def record(self, default: str | None = None) -> dict[str, Any]:
        """The same in plain values, for a model's card."""
        if not self.own:
            found: dict[str, Any] = {"dataset": self.dataset if self.dataset is not None else default}
            said = {"split": self.split, "class_weight": self.class_weight}
            return {**found, **{name: _plain(value) for name, value in said.items() if value}}
        held = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("dataset", "data")}
        return {name: _plain(value) for name, value in held.items() if value or value is False}


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    return [*value] if isinstance(value, tuple) else str(value)


@contextmanager
def direction_is_noted() -> Generator[None]:
    """Which way edges run stands in the notes of the data set, which commands print: no warning beside them."""
    from unspool.graph import EdgeDirectionWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdgeDirectionWarning)
        yield


def _drawn_or_none(data: Any) -> Any:
    """The usual split; none where a class has too few examples."""
    from unspool.datasets import splits

    try:
        return splits.random(data.strata, seed=0)
    except ValueError:
        return None
