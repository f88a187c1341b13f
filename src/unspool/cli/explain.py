"""``unspool explain``: which hops and which neighbours drove a prediction, and what the denoiser changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import torch

from unspool import datasets
from unspool.cli.demo import check_drawing, check_writable
from unspool.datasets import Dataset, Split
from unspool.explain import Against, Explanation, Outputs, explain, find_node, plot
from unspool.models.folder import load_trained
from unspool.refusal import Refusal

#: What may have been done to the data before training, by the names that cards use.
TRANSFORMS = ("row_normalised", "largest_component")

#: What a card may say about the files it names, beside their places.
COLUMNS = ("edge_columns", "id_column", "feature_columns", "label_column", "split_column", "target_columns")


def run(
    checkpoint: Path,
    node: str,
    edges: Path | None,
    features: Path | None,
    data: Path | None,
    against: str | None,
    top: int,
    out: Path | None,
    as_json: bool,
    target: str | None = None,
) -> None:
    """Load the model and its data, explain, print, draw."""
    if out is not None:
        check_drawing()
        check_writable(out)
    if features is not None and edges is None:
        raise ValueError("--features needs the graph they belong to: give its edges with --edges too")
    model = load_trained(checkpoint)
    held, notes = find_data(model.card, edges, features, data, checkpoint)
    found = explained(model, held, node, target, against)
    if out is not None:
        plot(found, out, top=top)
    if as_json:
        facts = {"data": held.name, "notes": notes, "picture": None if out is None else str(out)}
        click.echo(json.dumps({**found.record(top), **facts}, ensure_ascii=False))
        return
    for note in notes:
        click.echo(f"note: {note}", err=True)
    click.echo(found.describe(top))
    if out is not None:
        click.echo(f"\npicture: {out}")


def explained(model: Any, held: Dataset, node: str, target: str | None, against: str | None) -> Explanation:
    """Explain one node of a data set, with the names that card and data have."""
    numbers = (model.card.get("task") or {}).get("kind") == "numbers"
    names = None if numbers else class_names(model.card, held, model.out_features)
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    chosen, other = class_of("--target", target, names), class_of("--against", against, names)
    if isinstance(chosen, Against):
        raise ValueError("--target runner-up: the runner-up is what to compare with; give it as --against")
    return explain(
        model,
        held.features if held.features.dtype == like.dtype else held.features.to(like.dtype),
        held.graph.to(like.dtype),
        find_node(node, held.nodes, held.names),
        target=chosen,
        against=other,
        classes=names,
        labels=held.labels if names is not None and bool((held.labels >= 0).any()) else None,
        feature_names=held.feature_names,
        outputs=Outputs.NUMBERS if numbers else Outputs.CLASSES,
    )


# -- data --------------------------------------------------------------------------------------------------------------


def find_data(
    card: Mapping[str, Any], edges: Path | None, features: Path | None, root: Path | None, checkpoint: Path
) -> tuple[Dataset, list[str]]:
    """The data to explain on: files that are given, else what the card names; and remarks for the user."""
    facts = card.get("data") or {}
    steps = _transforms(facts)
    if edges is not None:
        held = datasets.from_files(edges, features)
        return _transformed(held, steps), _files_note(steps)
    source = facts.get("source") or _guessed_source(facts)
    if "dataset" in source:
        held = datasets.load(source["dataset"], root=root)
    elif "edges" in source:
        held = _from_named_files(source)
    else:
        raise Refusal(f"{checkpoint} does not say which data it was trained on; give them with --edges and --features")
    ready = _transformed(held, steps)
    return ready, _hash_note(facts.get("hash"), held, ready)


def _transforms(facts: Mapping[str, Any]) -> tuple[str, ...]:
    named = facts.get("transforms")
    if named is None:  # cards of older folders say it in words only
        named = ["row_normalised"] if "features row-normalised" in facts.get("notes", ()) else []
    for step in named:
        if step not in TRANSFORMS:
            raise Refusal(
                f"the model was trained on data after {step!r}, which this version does not know; update unspool, or apply it "
                "yourself and give --edges and --features"
            )
    return tuple(named)


def _transformed(held: Dataset, steps: Sequence[str]) -> Dataset:
    for step in steps:
        held = getattr(held, step)()
    return held


def _guessed_source(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The data set of that name, where the card gives a name only."""
    known = {entry.name for entry in datasets.catalogue()}
    name = str(facts.get("name", "")).lower()
    return {"dataset": name} if name in known else {}


def _from_named_files(source: Mapping[str, Any]) -> Dataset:
    missing = [
        str(source[key]) for key in ("edges", "features", "labels") if source.get(key) and not _there(source[key])
    ]
    if missing:
        raise FileNotFoundError(
            f"the model was trained on {', '.join(missing)}, which is not here; give the data with --edges and --features"
        )
    columns = {key: source[key] for key in COLUMNS if source.get(key) is not None}
    return datasets.from_files(
        source["edges"], source.get("features"), source.get("labels"), split=_any_split, **columns
    )


def _any_split(held: Dataset) -> Split:
    """Explaining needs no split, and drawing one fails where a class has few labels: three nodes will do."""
    return Split(*(torch.tensor([part]) for part in range(3)), nodes=held.nodes)


def _there(path: Any) -> bool:
    return Path(str(path)).is_file()


def _hash_note(trained_on: str | None, raw: Dataset, ready: Dataset) -> list[str]:
    if trained_on is None or trained_on in (raw.hash, ready.hash):
        return []
    return [
        f"{ready.name} differs from the data the model was trained on ({ready.hash[:8]} instead of {trained_on[:8]}), so this "
        "explains what the model says here, not what it was measured on"
    ]


def _files_note(steps: Sequence[str]) -> list[str]:
    done = ", ".join(step.replace("_", " ") for step in steps)
    return [f"the data were {done}, as in training"] if done else []


# -- names -------------------------------------------------------------------------------------------------------------


def class_names(card: Mapping[str, Any], held: Dataset, outputs: int) -> tuple[str, ...] | None:
    """Names of the classes: the card's, else the data's where they are as many as the model has outputs."""
    for names in ((card.get("data") or {}).get("classes"), held.classes):
        if names and (len(names) == outputs or (outputs == 1 and len(names) == 2)):
            return tuple(str(name) for name in names)
    return None


def class_of(option: str, said: str | None, names: Sequence[str] | None) -> int | Against | None:
    """The class that is meant: by its name, by its number, or the runner-up."""
    if said is None:
        return None
    called = [] if names is None else [name.lower() for name in names]
    if said.lower() in called:
        return called.index(said.lower())
    if said.lower() == "runner-up":
        return Against.RUNNER_UP
    if said.isdecimal():
        return int(said)
    have = "the outputs by number" if names is None else f"the classes {', '.join(names)}"
    words = "runner-up or " if option == "--against" else ""
    raise ValueError(f"{option} {said}: expected {words}one of {have}")
