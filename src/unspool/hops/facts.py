"""What is known of stored nodes beside their hops: labels or numbers, splits, names. It is all that training needs."""

from __future__ import annotations

import io
import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.datasets import Dataset, Split
from unspool.datasets.arrays import Damaged, load_arrays
from unspool.datasets.indicator import is_indicator, read_indicator
from unspool.datasets.labels import read_label_numbers, read_targets
from unspool.datasets.no_edges import NoEdges
from unspool.datasets.split import PARTS, DrawRule
from unspool.errors import DataError, mention
from unspool.ops.stored_hops import StoredHops

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class NodeFacts:
    """Labels, splits and names of nodes, as a data set has them.

    Attributes: as those of :class:`~unspool.datasets.Dataset`.

    Example:
        >>> facts = NodeFacts.read(nodes=6, labels=[0, 1, 0, 1, 0, 1], split=Split([0, 1], [2, 3], [4, 5], nodes=6))
        >>> facts.at(torch.tensor([5, 0, 1, 2, 3, 4])).split.test
        tensor([0, 5])
    """

    labels: Tensor
    classes: tuple[str, ...] = ()
    targets: Tensor | None = None
    split: Split | None = None
    recorded: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    names: tuple[Hashable, ...] | None = None
    sample_weight: Tensor | None = None
    name: str = "stored hops"
    notes: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    ordered: bool = False

    @staticmethod
    def of(data: Dataset) -> NodeFacts:
        """Those of a data set."""
        return NodeFacts(**{name: getattr(data, name) for name in NodeFacts.__dataclass_fields__})

    @staticmethod
    def read(nodes: int, labels: Any = None, split: Any = None, name: str = "stored hops") -> NodeFacts:
        """From arrays over all nodes of a graph.

        Args:
            nodes: how many there are.
            labels: whole numbers or names are classes (-1 for none), several columns of 1 and 0 labels, fractions numbers to predict.
            split: a :class:`~unspool.datasets.Split`, or a mapping with ids or masks of ``train``, ``valid`` and ``test``.
            name: what the data are called.
        """
        numbers, classes, targets = torch.full((nodes,), -1), (), None
        if is_indicator(labels):
            targets, classes = read_indicator(labels, nodes)
        elif labels is not None:
            values = np.asarray(labels.detach().cpu() if isinstance(labels, Tensor) else labels)
            fractions = values.dtype.kind == "f" and bool((np.isfinite(values) & (values != np.floor(values))).any())
            if fractions:
                targets = read_targets(values, nodes)
            else:
                numbers, classes = read_label_numbers(values, nodes)
        parts = split if split is None or isinstance(split, Split) else _split(split, nodes)
        if parts is not None and parts.nodes != nodes:
            raise DataError("the split", f"it is one of {parts.nodes} nodes, and the graph has {nodes}")
        return NodeFacts(numbers, classes, targets, parts, name=name)

    def at(self, nodes: Tensor) -> NodeFacts:
        """Those of some nodes, in their order; a split that names another node is refused."""
        recorded = {name: codes[nodes] for name, codes in self.recorded.items()}
        return replace(
            self,
            labels=self.labels[nodes],
            targets=None if self.targets is None else self.targets[nodes],
            split=None if self.split is None else _split_at(self.split, nodes),
            recorded={name: codes for name, codes in recorded.items() if set(codes.tolist()) >= {1, 2, 3}},
            names=None if self.names is None else tuple(self.names[i] for i in nodes.tolist()),
            sample_weight=None if self.sample_weight is None else self.sample_weight[nodes],
        )

    def dataset(self, features: StoredHops) -> Dataset:
        """The data set with stored hops as its features; it has no graph. Nodes without names are called as the graph numbers them."""
        held = {name: getattr(self, name) for name in NodeFacts.__dataclass_fields__}
        if self.names is None and features.nodes is not None:
            held["names"] = tuple(features.nodes.tolist())
        edges: Any = NoEdges()
        return Dataset(edge_index=edges, features=features, **held)

    def packed(self) -> bytes:
        """As the content of an ``.npz`` file without pickled objects."""
        arrays: dict[str, Array] = {"labels": self.labels.numpy()}
        for name in ("targets", "sample_weight"):
            if (value := getattr(self, name)) is not None:
                arrays[name] = value.numpy()
        if self.split is not None:
            arrays["split"] = self.split.codes().numpy()
        if self.recorded:
            arrays["recorded"] = np.stack([codes.numpy() for codes in self.recorded.values()])
        split = self.split
        meta = {
            "classes": self.classes, "recorded": list(self.recorded), "name": self.name, "notes": self.notes, "ordered": self.ordered,
            "names": None if self.names is None else [str(name) for name in self.names], "feature_names": self.feature_names,
            "categories": {column: list(known) for column, known in self.categories.items()},
            "split": None if split is None else [split.name, split.seed, None if split.rule is None else [split.rule.kind, split.rule.sizes]],
        }  # fmt: skip
        arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
        held = io.BytesIO()
        np.savez(held, **arrays)  # pyright: ignore[reportArgumentType]
        return held.getvalue()

    @staticmethod
    def unpacked(file: Path) -> NodeFacts:
        """Back from that."""
        try:
            arrays = load_arrays(file)
            meta = json.loads(arrays["meta"].tobytes().decode())
            codes = arrays.get("recorded", ())
            tensors = {name: torch.from_numpy(arrays[name]) for name in ("targets", "sample_weight") if name in arrays}
            return NodeFacts(
                torch.from_numpy(arrays["labels"]), tuple(meta["classes"]), split=_unpacked_split(arrays, meta["split"]), name=str(meta["name"]),
                recorded={name: torch.from_numpy(row.copy()) for name, row in zip(meta["recorded"], codes, strict=True)},
                names=None if meta["names"] is None else tuple(meta["names"]), notes=tuple(meta["notes"]), ordered=bool(meta["ordered"]),
                feature_names=None if meta["feature_names"] is None else tuple(meta["feature_names"]),
                categories={column: tuple(known) for column, known in meta["categories"].items()}, **tensors,
            )  # fmt: skip
        except (Damaged, ValueError, KeyError, TypeError, AttributeError) as problem:
            raise DataError(
                str(file), f"it cannot be understood ({type(problem).__name__})", "write them again with unspool hops"
            ) from None


def _unpacked_split(arrays: Mapping[str, Array], said: Any) -> Split | None:
    if said is None:
        return None
    name, seed, rule = said
    found = Split.from_codes(arrays["split"], name=name)
    return replace(found, seed=seed, rule=None if rule is None else DrawRule(rule[0], tuple(rule[1])))


def _split(given: Mapping[str, Any], nodes: int) -> Split:
    """A split from ids or masks by the names of its parts."""
    called = {"train": ("train", "train_idx", "train_mask"), "valid": ("valid", "val", "validation", "valid_idx", "val_mask"), "test": ("test", "test_idx", "test_mask")}  # fmt: skip
    parts: list[Any] = []
    for part in PARTS:
        name = next((name for name in called[part] if name in given), None)
        if name is None:
            raise DataError("the split", f"it has no part {part}, and holds {', '.join(given) or 'nothing'}")
        ids = np.asarray(given[name])
        if ids.dtype == bool and ids.shape != (nodes,):
            raise DataError(
                "the split",
                f"the mask {name} has shape {ids.shape}, and there are {nodes} nodes",
                "write ids, or a mask over all",
            )
        parts.append(np.flatnonzero(ids) if ids.dtype == bool else ids)
    return Split(*map(torch.as_tensor, parts), nodes=nodes, name="from the file")


def _split_at(split: Split, nodes: Tensor) -> Split:
    place = torch.full((split.nodes,), -1, dtype=torch.int64)
    place[nodes] = torch.arange(nodes.numel())
    parts = [place[getattr(split, part)] for part in PARTS]
    for part, rows in zip(PARTS, parts, strict=True):
        lost = torch.nonzero(rows < 0).flatten()
        if lost.numel():
            raise DataError(
                "the split",
                f"its {part} nodes hold node {int(getattr(split, part)[lost[0]])}, which is not among those to be stored",
                f"add it to {mention('nodes')}, or leave them out to store all",
            )
    return Split(*parts, nodes=nodes.numel(), name=split.name)
