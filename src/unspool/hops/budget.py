"""How many columns go through the graph together within a budget of memory."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

from unspool.errors import DataError, InputError, mention
from unspool.graph import Graph
from unspool.graph.compress import BLOCK

#: What is needed whatever the graph: pieces of it, of the features and of the file.
LEAST = 96 << 20
#: What a row of very many entries takes for each of them while its values are made.
PER_ENTRY = 48
#: The fewest columns that are worth a walk over the graph: a line of the cache.
LINE = 64


def slabs_of(
    graph: Graph, features: int, chosen: int, memory: int, dtype: torch.dtype | None = None
) -> list[tuple[int, int]]:
    """Columns in slabs, each as wide as the budget allows; refused with the budget that is enough.

    Two signals of a slab are in memory, beside the row starts, degrees and factors of the graph. Its columns are a map of the file and
    come and go.

    Args:
        graph: the graph.
        features: how many columns there are.
        chosen: at how many nodes hops are kept.
        memory: in bytes.
        dtype: of the signals; that of the graph when omitted.

    Example:
        >>> import unspool as us
        >>> slabs_of(us.graph.ring(1000), 100, 1000, memory=LEAST + 400_000)
        [(0, 32), (32, 64), (64, 96), (96, 100)]
    """
    nodes, size = graph.nodes, torch.empty(0, dtype=graph.dtype if dtype is None else dtype).element_size()
    crow = graph.adjacency.forward.crow
    longest = int(crow.diff().max()) if nodes else 0
    fixed = LEAST + nodes * (crow.element_size() + 16) + 8 * chosen + PER_ENTRY * max(longest - BLOCK, 0)
    each, line = 2 * nodes * size, LINE // size
    fewest = min(features, line)
    width = (memory - fixed) // each
    if width < fewest:
        enough = (fixed + fewest * each) / 2**30 + 0.0005
        way = f"{(fixed + features * each) / 2**30:.3g}GB would take all columns at once" if fewest < features else None
        raise InputError("memory", f"{memory / 2**30:.3g}GB", f"at least {enough:.3f}GB for this graph of {nodes} nodes", way)  # fmt: skip
    width = features if width >= features else width // line * line
    return [(first, min(first + width, features)) for first in range(0, features, width)]


def check_space(place: Path, size: int, there: int) -> None:
    """Refuse before the work where the disk has no room for it: the slabs, and the file that they are put together in.

    Args:
        place: the folder.
        size: of the file.
        there: what earlier work has written already.
    """
    free, needed = shutil.disk_usage(place).free, 2 * size - there
    if free < needed:
        raise DataError(
            str(place),
            f"its disk has {free / 2**30:.3g} GB free, and this takes {needed / 2**30:.3g} GB, half of it until it is done",
            f"make room, choose another place with {mention('path')}, or write fewer nodes ({mention('nodes')}) or hops ({mention('depth')})",
        )
