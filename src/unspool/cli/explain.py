"""``unspool explain``: which hops and which neighbours drove a prediction, and what the denoiser changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from unspool.cli.data_options import DataOptions
from unspool.cli.demo import check_drawing, check_writable
from unspool.cli.link_predict import check_direction
from unspool.cli.predict import check_fits, load_checked
from unspool.cli.terminal import echo
from unspool.cli.train_options import optional_model
from unspool.cli.training_data import training_data
from unspool.datasets import Dataset
from unspool.errors import UNSHOWN, InputError, mention
from unspool.explain import (
    Against,
    Explanation,
    Outputs,
    PairExplanation,
    explain,
    explain_pair,
    find_node,
    plot,
    plot_pair,
)
from unspool.models.pretrained import find_folder
from unspool.train import TaskKind


def run(
    checkpoint: Path,
    node: str,
    data: DataOptions,
    model: str | None,
    target: str | None,
    against: str | None,
    top: int,
    out: Path | None,
    as_json: bool,
    other: str | None = None,
    changed_code: bool = False,
) -> None:
    """Load the model and its data, explain, print, draw."""
    if out is not None:
        check_drawing()
        check_writable(out)
    network = load_checked(find_folder(checkpoint), optional_model(model), changed_code)
    held, notes = training_data(network.card, data, checkpoint)
    check_fits(network, held, checkpoint)
    notes += _units(network.card)
    found = _explained(network, held, node, other, target, against)
    if out is not None:
        if isinstance(found, Explanation):
            plot(found, out, top=top)
        else:
            plot_pair(found, out, top=top)
    if as_json:
        facts = {"data": held.name, "notes": notes, "picture": None if out is None else str(out)}
        echo(json.dumps({**found.record(top), **facts}, ensure_ascii=False))
        return
    for note in notes:
        echo(f"note: {note}", err=True)
    echo(found.describe(top))
    if out is not None:
        echo(f"\npicture: {out}")


def _explained(
    model: Any, held: Dataset, node: str, other: str | None, target: str | None, against: str | None
) -> Explanation | PairExplanation:
    """A node, or for a model of links a pair; what does not belong to it is refused."""
    if (model.card.get("task") or {}).get("kind") != "links":
        if other is not None:
            hint = f"train one with {mention('loss', 'links')}, or leave it out"
            raise InputError("other", other, "a model that was trained on links, and this one was not", hint)
        return explained(model, held, node, target, against)
    if other is None:
        hint = f"unspool predict with {mention('top', 10)} names some that are probable"
        raise InputError("other", UNSHOWN, "the other node of the pair, as the model was trained on links", hint)
    for name, said in (("target", target), ("against", against)):
        if said is not None:
            raise InputError(name, said, "nothing for a model of links, which has no classes", "leave it out")
    check_direction(held)
    x, graph = _for_weights(model, held)
    ends = [find_node(one, held.nodes, held.names) for one in (node, other)]
    if ends[0] == ends[1]:
        raise InputError("other", other, f"another node than {mention('node')}", "a node is not linked with itself")
    return explain_pair(model, x, graph, *ends)


def _for_weights(model: Any, held: Dataset) -> tuple[Any, Any]:
    """Features and graph in the type of the model's weights."""
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    same = held.features.dtype == like.dtype
    return held.features if same else held.features.to(like.dtype), held.graph.to(like.dtype)


def explained(model: Any, held: Dataset, node: str, target: str | None, against: str | None) -> Explanation:
    """Explain one node of a data set, with the names that card and data have."""
    kind = TaskKind((model.card.get("task") or {}).get("kind", "classes"))
    classes = kind in (TaskKind.CLASSES, TaskKind.BINARY)
    named = classes or kind is TaskKind.MULTILABEL
    names = class_names(model.card, held, model.card["out_features"]) if named else None
    called = names if named else (model.card.get("data") or {}).get("targets")
    x, graph = _for_weights(model, held)
    chosen, other = class_of("--target", target, called or None), class_of("--against", against, names)
    if isinstance(chosen, Against):
        raise ValueError("--target runner-up: the runner-up is what to compare with; give it as --against")
    return explain(
        model,
        x,
        graph,
        find_node(node, held.nodes, held.names),
        target=chosen,
        against=other,
        classes=names,
        labels=held.labels if classes and names is not None and bool((held.labels >= 0).any()) else None,
        feature_names=held.feature_names,
        outputs=Outputs.CLASSES if classes else Outputs.NUMBERS,
    )


def _units(card: Mapping[str, Any]) -> list[str]:
    """How to read the outputs of a model whose targets were standardised, or that speaks of odds."""
    task = card.get("task") or {}
    if task.get("kind") == "ordinal":
        return ["output 0 is the log-odds of lying above the lowest class; every further one moves the next threshold"]
    if "scale" not in task or "centre" not in task:
        return []
    names = (card.get("data") or {}).get("targets") or [f"output {k}" for k in range(len(task["scale"]))]
    if task.get("kind") == "counts":
        expected = ", ".join(f"{n} = {s:.6g} × exp(output)" for n, s in zip(names, task["scale"], strict=False))
        return [f"outputs are logarithms of expected counts: {expected}"]
    told = (f"{n} = {c:.6g} + {s:.6g} × output" for n, c, s in zip(names, task["centre"], task["scale"], strict=False))
    return [f"outputs are in units of the training targets: {', '.join(told)}"]


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
