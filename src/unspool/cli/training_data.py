"""The data to look at with a trained model, as the model was trained to see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unspool import datasets
from unspool.cli.card import check_card
from unspool.cli.data_options import DataOptions
from unspool.datasets import Dataset
from unspool.datasets.as_trained import normalisation_of, transforms_of
from unspool.datasets.one_hot import columns_of
from unspool.datasets.registry import is_registered
from unspool.errors import IncompatibleError, InputError
from unspool.graph import Normalisation
from unspool.ops.stored_hops import StoredHops


def training_data(card: Mapping[str, Any], source: DataOptions, checkpoint: Path) -> tuple[Dataset, list[str]]:
    """The data that the user names, else those the model was trained on; and remarks for the user.

    Columns are found by the names they had in training, and features are transformed as they were then. A card may come from
    anywhere: files that it names are taken only if they hold what the model was trained on, and are not quoted otherwise.
    """
    check_card(card, checkpoint)
    facts: Mapping[str, Any] = card.get("data") or {}
    found, notes = _found(facts, source, checkpoint)
    _check_normalisation(facts, found, checkpoint)
    return found, notes


def _found(facts: Mapping[str, Any], source: DataOptions, checkpoint: Path) -> tuple[Dataset, list[str]]:
    steps = transforms_of(facts)
    source.check()
    if source.hops is not None:
        return _transformed(source.load(split_or_none=True), steps), _files_note(steps)
    if source.own:
        known = facts.get("categories") or {}
        given = _with_columns(source, facts, source.features).load(split_or_none=True, categories=known)
        return _transformed(given, steps), [*given.notes, *_files_note(steps)]
    trained = facts.get("source") or _guessed_source(facts)
    if source.dataset is None and ":" in str(trained.get("dataset", "")) and not is_registered(trained["dataset"]):
        raise IncompatibleError(
            f"the model was trained on {trained['dataset']}, which is not imported just because a file names it; name it with --dataset"
        )
    if source.dataset is not None or "dataset" in trained:
        split = trained.get("split") if source.split is None and source.dataset is None else source.split
        held = replace(source, split=split).load(trained.get("dataset"), split_or_none=True)
    elif "edges" in trained or "hops" in trained:
        return _files_of_training(trained, source, facts.get("hash"), steps), []
    else:
        raise IncompatibleError(
            f"{checkpoint} does not say which data it was trained on; give them with --edges and --features"
        )
    ready = _transformed(held, steps)
    return ready, _hash_note(facts.get("hash"), held, ready)


def _check_normalisation(facts: Mapping[str, Any], found: Dataset, checkpoint: Path) -> None:
    """Refuse another A than that of the training: graphs of data sets are normalised symmetrically, and hops as somebody chose."""
    here = (
        found.features.graph["normalisation"]
        if isinstance(found.features, StoredHops)
        else Normalisation.SYMMETRIC.value
    )
    trained = normalisation_of(facts)
    if trained not in (None, here):
        raise IncompatibleError(
            f"{checkpoint} was trained with A normalised as {trained}, and here it is {here}; give hops that were "
            f"written with --normalise {trained}"
        )


def _files_of_training(
    trained: Mapping[str, Any], source: DataOptions, known: str | None, steps: Sequence[str]
) -> Dataset:
    """The files that a card names, if they hold what the model was trained on."""
    check_there(trained)
    try:
        held = _as_trained(DataOptions.from_record(trained))
        ready = _transformed(held, steps)
    except (ValueError, TypeError, OSError, ImportError):
        held = ready = None
    if held is None or ready is None or known not in (held.hash, ready.hash):
        raise ValueError(
            f"{', '.join(files_of(trained))}: not what the model was trained on, or not readable; give the data with "
            f"{'--hops' if trained.get('hops') else '--edges and --features'} to use them as they are"
        )
    if source.split is None:
        return ready
    return _transformed(held.with_split(datasets.splits.by_name(held, source.split)), steps)


def _as_trained(source: DataOptions) -> Dataset:
    """The files of the training; a split that can no longer be drawn from them is done without."""
    if source.split is None:
        return source.load(split_or_none=True)
    held = replace(source, split=None).load(split_or_none=True)
    try:
        return held.with_split(datasets.splits.by_name(held, source.split))
    except ValueError:
        return held


def columns_in_training(source: DataOptions, card: Mapping[str, Any], table: Path) -> DataOptions:
    """What columns another table of features, and edges beside it, have: those of the training, unless something else is said."""
    return _with_columns(source, card.get("data") or {}, table)


def _with_columns(source: DataOptions, facts: Mapping[str, Any], table: Path | None) -> DataOptions:
    """Take the columns that the model was trained on, wherever they stand in a table, and let edges run as they did then."""
    trained = facts.get("source") or {}
    named = trained.get("id_column")
    if source.id_column is None and named is not None:
        source = replace(source, id_column=named)
    if source.directed is None:
        source = replace(source, directed=trained.get("directed"))
    if source.header is None:
        source = replace(source, header=trained.get("header"))
    if not source.edge_columns:
        source = replace(source, edge_columns=tuple(trained.get("edge_columns") or ()))
    if source.weight_column is None:
        source = replace(source, weight_column=trained.get("weight_column"))
    if source.edges is not None and source.edges.suffix.lower() == ".pt" and not source.drop_columns:
        source = replace(source, drop_columns=tuple(trained.get("drop_columns") or ()))
    columns = columns_of(facts.get("features") or (), facts.get("categories") or {})
    return (
        replace(source, feature_columns=_in_order(source.feature_columns, columns)) if _named(source, table) else source
    )


def _named(source: DataOptions, table: Path | None) -> bool:
    """Whether features have names where they are read: the columns of a table, the attributes of GraphML."""
    if table is None:
        return source.edges is not None and source.edges.suffix.lower() == ".graphml"
    return table.suffix.lower() not in (".npy", ".npz")


def _in_order(given: tuple[str, ...], trained: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of the training, in its order, which is that of the weights; columns that are called otherwise now keep their place."""
    if not given or set(given) == set(trained):
        return given if len(given) != len(set(given)) else trained
    moved = next((name for i, name in enumerate(given) if name in trained and trained[i : i + 1] != (name,)), None)
    if moved is not None:
        raise InputError(
            "feature_columns", moved, "the columns in the order of the training", f"it was {', '.join(trained)}"
        )
    return given


def _transformed(held: Dataset, steps: Sequence[str]) -> Dataset:
    for step in steps:
        held = getattr(held, step)()
    return held


def _guessed_source(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The data set of that name, where the card gives a name only."""
    known = {entry.name for entry in datasets.catalogue()}
    name = str(facts.get("name", "")).lower()
    return {"dataset": name} if name in known else {}


def check_there(source: Mapping[str, Any]) -> None:
    """Refuse files that are not here, or not files."""
    # Files of the system itself (/proc) seem empty, and may never end.
    missing = [
        path for path in files_of(source)
        if not Path(path).is_dir() and (not Path(path).is_file() or not Path(path).stat().st_size or path == source.get("hops"))
    ]  # fmt: skip
    if missing:
        way = "--hops" if source.get("hops") else "--edges and --features"
        raise FileNotFoundError(
            f"the model was trained on {', '.join(missing)}, which is not here; give the data with {way}"
        )


def files_of(source: Mapping[str, Any]) -> list[str]:
    """The files that a record of the source of data names."""
    return [str(source[key]) for key in ("edges", "features", "labels", "hops") if source.get(key)]


def _hash_note(trained_on: str | None, raw: Dataset, ready: Dataset) -> list[str]:
    if trained_on is None or trained_on in (raw.hash, ready.hash):
        return []
    return [
        f"{ready.name} differs from the data the model was trained on ({ready.hash[:8]} instead of {trained_on[:8]}), so this "
        "is what the model says here, not what it was measured on"
    ]


def _files_note(steps: Sequence[str]) -> list[str]:
    done = ", ".join(step.replace("_", " ") for step in steps)
    return [f"the data were {done}, as in training"] if done else []
