"""Errors worth a look: the most confident mistakes with their reasons, and the numbers that are furthest off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from unspool.datasets import Dataset
from unspool.errors import IncompatibleError
from unspool.explain import Explanation, explain
from unspool.models.pretrained import load_pretrained
from unspool.ops.stored_hops import StoredHops
from unspool.report.evidence import Evidence
from unspool.report.page import Block, Code, Notes, Paragraph
from unspool.report.seeds import Seed
from unspool.report.table import Cell, Column, Table
from unspool.report.text import counted, shown, signed
from unspool.train.evaluation import Mistake

#: How many mistakes are explained, and with how many other nodes each.
EXPLAINED, OTHERS = 3, 3
#: Graphs with more stored entries are not explained: the report should not take longer than the training.
LARGEST = 2_000_000


def error_blocks(found: Evidence, dataset: Any, model: type[nn.Module] | None, changed_code: bool) -> list[Block]:
    """The errors of the first seed that has any."""
    for seed, one in zip(found.seeds, found.evaluations, strict=True):
        if one.mistakes:
            return _mistakes(found, seed, one.mistakes, dataset, model, changed_code)
        if one.misses:
            rows: list[list[str | Cell]] = [
                [m.name, Cell(f"{m.truth:.6g}", m.truth), Cell(f"{m.predicted:.6g}", m.predicted), Cell(f"{m.predicted - m.truth:+.4g}".replace("-", "−"), m.predicted - m.truth)]
                for m in one.misses
            ]  # fmt: skip
            heads = [Column("node", numbers=False), "true", "predicted", "predicted − true"]
            return [Table(f"The test nodes of seed {seed.name} that are furthest off", heads, rows), _more(seed)]
    return []


def _mistakes(
    found: Evidence, seed: Seed, mistakes: Sequence[Mistake], dataset: Any, model: type[nn.Module] | None, changed: bool
) -> list[Block]:
    rows: list[list[str | Cell]] = [
        [m.name, Cell(m.truth), Cell(m.predicted), Cell.number(100 * m.probability, 1)] for m in mistakes
    ]
    heads = [
        *(Column(name, numbers=False) for name in ("node", "true class", "predicted class")),
        "its probability (%)",
    ]
    caption = f"The {counted(len(mistakes), 'mistake')} of seed {seed.name} that it is most sure of; a wrong label in the data looks just like this"
    told = _reasons(found, seed, mistakes, dataset, model, changed)
    reasons: list[Block] = [Paragraph(["Why it says so, from the weights and the graph:"]), Notes(told)] if told else []
    return [Table(caption, heads, rows), *reasons, _more(seed)]


def _more(seed: Seed) -> Code:
    name = seed.place.name
    return Code(
        f"unspool explain {name if name.startswith('seed') else 'FOLDER'} --node NAME    # in the folder of the job: hops, neighbours, features"
    )


def _reasons(
    found: Evidence, seed: Seed, mistakes: Sequence[Mistake], dataset: Any, kind: type[nn.Module] | None, changed: bool
) -> list[str]:
    """One sentence for each of the first mistakes; none where the data or the model are not at hand."""
    data = _as_trained(dataset, seed)
    if data is None or isinstance(data.features, StoredHops) or data.graph.operator.forward.col.numel() > LARGEST:
        return []
    told: list[str] = []
    try:
        network = load_pretrained(seed.place, model=kind, changed_code=changed)
        like = next((p for p in network.parameters() if p.is_floating_point()), torch.empty(0))
        x, graph = data.features.to(like.dtype), data.graph.to(like.dtype)
        for one in mistakes[:EXPLAINED]:
            places = [found.names.index(name) for name in (one.predicted, one.truth)]
            against = None if seed.card.get("out_features") == 1 else places[1]
            why = explain(
                network, x, graph, one.node, target=None if against is None else places[0], against=against,
                classes=found.names, labels=data.labels,
            )  # fmt: skip
            told.append(_reason(one, why))
    except (OSError, ValueError, TypeError, RuntimeError, IncompatibleError):
        return told  # a model of one's own may not be one that can be explained
    return told


def _reason(one: Mistake, why: Explanation) -> str:
    parts = why.parts
    lead = f"{one.predicted} leads {one.truth}" if why.score.against is not None else f"the output for {one.predicted}"
    words = (
        f"Node {one.name}, {one.predicted} instead of {one.truth}: {lead} by {shown(why.score.value, 2)}, of which its own features give "
        f"{signed(parts.own)} and other nodes {signed(parts.neighbours)}"
    )
    largest = [p for p in why.largest() if why.split.total[p] * why.score.value > 0][:OTHERS]
    named = [_other(why, p) for p in largest]
    return words + (f", most of all {'; '.join(named)}." if named else ".")


def _other(why: Explanation, place: int) -> str:
    node, far = int(why.split.nodes[place]), int(why.distance[place])
    known = -1 if why.labels is None else int(why.labels[place])
    kind = f"{why.class_of(known)}, " if known >= 0 and why.class_of(known) else ""
    away = f"{counted(far, 'edge')} away, " if far > 0 else ""
    return f"{why.name_of(node)} ({kind}{away}{signed(float(why.split.total[place]))})"


def _as_trained(dataset: Any, seed: Seed) -> Dataset | None:
    """The data as the model saw them, where they are those of its card."""
    if not isinstance(dataset, Dataset) or seed.part("data").get("hash") != dataset.hash:
        return None
    steps = seed.part("data").get("transforms")
    if steps not in ([], ["row_normalised"]):
        return None
    return dataset.row_normalised() if steps else dataset
