"""Where the data of a command come from: a named set, or files of the user's own."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unspool.cli.errors import option
from unspool.cli.paths import look_here
from unspool.cli.terminal import echo
from unspool.errors import InputError
from unspool.text import plain_number

#: What is said of files of the user's own, and of nothing else.
OF_FILES = (
    "features", "labels", "id_column", "label_column", "target_columns", "feature_columns", "drop_columns", "one_hot", "weight_column",
    "split_column", "directed", "header", "name", "label_columns", "class_order", "sample_weight_column", "edge_columns",
)  # fmt: skip


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
    drop_columns: tuple[str, ...] = ()
    one_hot: tuple[str, ...] = ()
    weight_column: str | None = None
    name: str | None = None
    download: bool = False
    label_columns: tuple[str, ...] = ()
    class_order: tuple[str, ...] = ()
    sample_weight_column: str | None = None
    class_weight: tuple[str, ...] = ()
    edge_columns: tuple[str, ...] = ()
    hops: Path | None = None

    @staticmethod
    def taken_from(options: dict[str, Any]) -> DataOptions:
        """Take the data options out of all options."""
        found = {name: options.pop(name) for name in DataOptions.__dataclass_fields__ if name in options}
        if len(labels := found.pop("label_columns", ())) == 1:
            found["label_column"], labels = labels[0], ()
        for listed in ("class_order", "edge_columns"):
            if (text := found.pop(listed, None)) is not None:
                found[listed] = tuple(name.strip() for name in text.split(","))
        return DataOptions(**found, label_columns=labels)

    @property
    def own(self) -> bool:
        """Whether the data are the user's own: files, or hops that were written."""
        return self.edges is not None or self.hops is not None

    def load(
        self,
        default: str | None = None,
        split_or_none: bool = False,
        categories: Mapping[str, Sequence[str]] | None = None,
    ) -> Any:
        """The data set; ``split_or_none`` for those who can do without a split where none can be drawn, ``categories`` where a model
        knows those of some columns."""
        from unspool import datasets

        self.check()
        if self.hops is not None:
            found = self._stored(split_or_none)
        elif not self.own:
            name = self.dataset if self.dataset is not None else default
            if name is None:
                raise ValueError("which data? Give --dataset NAME, or --edges FILE (and --features FILE)")
            look_here(self.dataset or "")
            with places_are_said(name, self.data, self.download):
                found = datasets.load(name, root=self.data, download=self.download)
        else:
            found = self._files(_drawn_or_none if split_or_none and self.split_column is None else None, categories)
        return found if self.split is None else found.with_split(datasets.splits.by_name(found, self.split))

    def check(self) -> None:
        """Refuse options that contradict each other, or hang in the air."""
        if self.hops is not None:
            self._check_hops()
        if self.own and self.dataset is not None:
            raise ValueError("--dataset names a set and --edges your own files; give one of them")
        if self.split is not None and self.split_column is not None:
            raise ValueError("--split and --split-column both say which nodes train; give one of them")
        if self.hops is not None:
            return
        if self.own:
            if self.download:
                raise ValueError("--download fetches a data set, and --edges names files of your own; give one of them")
            return
        for name in OF_FILES:
            if getattr(self, name) not in (None, ()):
                raise ValueError(f"{option(name)} belongs to your own files; name the graph with --edges")

    def _check_hops(self) -> None:
        """Refuse other sources beside hops, which hold all that training needs."""
        for name in ("edges", "dataset", "download", *OF_FILES):
            if name != "name" and getattr(self, name) not in (None, (), False):
                raise ValueError(
                    f"--hops names a folder that holds features, labels and split, and {option(name)} speaks of other data; leave one out"
                )

    def _stored(self, split_or_none: bool) -> Any:
        from unspool import hops

        found = hops.dataset(self.hops)
        if not split_or_none and found.targets is None and not found.classes:
            raise ValueError(
                f"{self.hops} was written without labels, so nothing can be learnt from it; write hops again with --labels and --split"
            )
        if found.split is None and self.split is None and not split_or_none:
            raise ValueError(
                f"{self.hops} was written without a split; write it with --labels and --split, or give --split here"
            )
        return found if self.name is None else replace(found, name=self.name)

    def _files(self, split: Any, categories: Mapping[str, Sequence[str]] | None = None) -> Any:
        from unspool import datasets

        assert self.edges is not None
        with direction_is_noted():
            return datasets.from_files(
                self.edges, self.features, self.labels, **self.columns(categories), directed=self.directed, header=self.header,
                split=split, name=self.name,
            )  # fmt: skip

    def columns(self, categories: Mapping[str, Sequence[str]] | None = None) -> dict[str, Any]:
        """What columns are, as :func:`~unspool.datasets.from_files` takes it."""
        known = {} if categories is None else dict(categories)
        return {
            "id_column": self.id_column, "label_column": self.label_column, "split_column": self.split_column, "weight_column": self.weight_column,
            "feature_columns": list(self.feature_columns) if self.feature_columns else None, "drop_columns": self.drop_columns,
            "target_columns": list(self.target_columns) if self.target_columns else None,
            "one_hot": {**dict.fromkeys(self.one_hot), **known}, "sample_weight_column": self.sample_weight_column,
            "label_columns": list(self.label_columns) if self.label_columns else None,
            "class_order": list(self.class_order) if self.class_order else None,
            "edge_columns": list(self.edge_columns) if self.edge_columns else None,
        }  # fmt: skip

    def words(self) -> list[str]:
        """The same as it is typed.

        Example:
            >>> DataOptions(edges=Path("e.csv"), one_hot=("a", "b"), directed=True).words()
            ['--edges', 'e.csv', '--directed', '--one-hot', 'a', '--one-hot', 'b']
        """
        found = list[str]()
        flags = {"header": ("--header", "--no-header"), "directed": ("--directed", "--undirected")}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if name in flags and value is not None:
                found.append(flags[name][0] if value else flags[name][1])
            elif name == "download":
                found += ["--download"] if value else []
            elif name in ("class_order", "edge_columns"):
                found += [option(name), ",".join(value)] if value else []
            else:
                many = value if isinstance(value, tuple) else () if value is None else (value,)
                found += [word for one in many for word in (option(name), str(one))]
        return found

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
        for name in ("edges", "features", "labels", "hops"):
            if name in plain:
                plain[name] = Path(plain[name])
        return DataOptions(**plain)

    def record(self, default: str | None = None) -> dict[str, Any]:
        """The same in plain values, for a model's card."""
        if not self.own:
            found: dict[str, Any] = {"dataset": self.dataset if self.dataset is not None else default}
            said = {"split": self.split, "class_weight": self.class_weight}
            return {**found, **{name: _plain(value) for name, value in said.items() if value}}
        held = {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if name not in ("dataset", "data", "download")
        }
        return {name: _plain(value) for name, value in held.items() if value or value is False}


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    return [*value] if isinstance(value, tuple) else str(value)


@contextmanager
def places_are_said(name: str, data: Path | None, download: bool) -> Generator[None]:
    """Say where files were fetched to, and where a processed copy was put: not into the folder with raw data, which may be anybody's."""
    from unspool.datasets.named_sets import cached_copy
    from unspool.datasets.places import data_root

    kept = cached_copy(name)
    before = kept.stat().st_mtime_ns if kept is not None and kept.is_file() else None
    yield
    if kept is not None and download:
        echo(f"note: fetched files go to {data_root(data)}; --data or UNSPOOL_DATA names another place", err=True)
    if kept is not None and kept.is_file() and kept.stat().st_mtime_ns != before:
        echo(
            f"note: a processed copy, which loads faster, is kept as {kept}; XDG_CACHE_HOME names another place",
            err=True,
        )


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
