"""Hops on the disk: Aᵏ X written once, slab by slab, and read row by row in training; no graph and no whole matrix in memory.

>>> import tempfile, torch, unspool as us
>>> from unspool import datasets
>>> data, place = datasets.contextual_sbm(nodes=60, classes=2, seed=0), tempfile.mkdtemp() + "/hops"
>>> us.hops.write(data.graph, data.features, depth=3, out=place, facts=us.hops.NodeFacts.of(data))
StoredHops(rows=60, features=16, depth=3, float32, cpu)
>>> stored = us.hops.dataset(place)
>>> stored.split == data.split, torch.equal(us.hops.open(place).take(torch.tensor([7]))[0, 1], (data.graph @ data.features)[7])
(True, True)
"""

from __future__ import annotations

from typing import Any

from unspool.datasets import Dataset
from unspool.hops.columns import Columns
from unspool.hops.facts import NodeFacts
from unspool.hops.folder import FACTS, read_folder
from unspool.hops.writing import write
from unspool.ops.stored_hops import StoredHops
from unspool.sealed_folder import file_of

__all__ = ["Columns", "NodeFacts", "StoredHops", "dataset", "open", "write"]


def open(folder: Any, *, check: bool = True) -> StoredHops:  # noqa: A001 - us.hops.open, as us.Graph.open
    """Open hops that were written, as features of which rows are read when they are asked for.

    Args:
        folder: where.
        check: whether to compare checksums, which reads everything once.

    Example:
        >>> import tempfile, torch, unspool as us
        >>> place = tempfile.mkdtemp() + "/hops"
        >>> _ = us.hops.write(us.graph.ring(5), torch.eye(5), depth=1, out=place)
        >>> us.hops.open(place).depth
        1
    """
    return read_folder(folder, check)


def dataset(folder: Any, *, check: bool = True) -> Dataset:
    """Hops that were written with labels and a split, as a data set to train on; it has no graph.

    Args:
        folder, check: as in :func:`open`.

    Example:
        >>> import tempfile, torch, unspool as us
        >>> place, facts = tempfile.mkdtemp() + "/hops", us.hops.NodeFacts.read(5, labels=[0, 1, 0, 1, 1])
        >>> _ = us.hops.write(us.graph.ring(5), torch.eye(5), depth=1, out=place, facts=facts)
        >>> us.hops.dataset(place).classes
        ('0', '1')
    """
    stored = read_folder(folder, check)
    file = file_of(stored.file.parent, FACTS)
    facts = NodeFacts.unpacked(file) if file.is_file() else NodeFacts.read(int(stored.shape[0]))
    return facts.dataset(stored)
