"""Products with A that need less than A: of an unweighted graph the places of entries and one number a node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unspool.errors import IncompatibleError, mention
from unspool.graph.compress import blocks
from unspool.graph.graph import Graph
from unspool.graph.normalise import Normalisation, block_values, factor_of
from unspool.graph.row_pieces import RowPieces
from unspool.ops.pattern import Pattern

HALF = (torch.bfloat16, torch.float16)


def pattern_of(graph: Graph) -> Pattern | None:
    """A as a pattern with a number for every row and column; None where the graph has weights, or an A that was put in its place.

    Example:
        >>> import unspool as us
        >>> pattern = pattern_of(us.graph.star(5))
        >>> pattern.left is pattern.right, pattern.left
        (True, tensor([0.4472, 0.7071, 0.7071, 0.7071, 0.7071]))
    """
    rows = graph.adjacency.forward
    if rows.beside is not None or not _is_its_own(graph):
        return None
    factor = factor_of(graph.degree, graph.normalisation).to(graph.device, graph.dtype)
    left = None if graph.normalisation is Normalisation.NONE else factor
    right = left if graph.normalisation is Normalisation.SYMMETRIC else None
    return Pattern.of(rows.crow, rows.col, left, right)


@dataclass(frozen=True)
class Walk:
    """Hops A Y, A² Y, ... one after the other, for which A is never there as a whole.

    Where A = F P F with the same number f for the row and the column of a node, what travels is F Y: since F Aᵏ Y = (F² P)ᵏ F Y, a hop then
    multiplies once for every row, not once for every entry.

    Attributes:
        step: writes the next of what travels into other memory.
        scale: f of every node; None where the signals themselves travel.

    Example:
        >>> import torch, unspool as us
        >>> walk = walk_on(us.graph.ring(3), torch.bfloat16)
        >>> y, out = torch.eye(3, dtype=torch.bfloat16), torch.empty(3, 3, dtype=torch.bfloat16)
        >>> walk.begin(y)
        >>> walk.step(y, out)
        >>> walk.signal(out, slice(0, 1))
        tensor([[0.3340, 0.3340, 0.3340]], dtype=torch.bfloat16)
    """

    step: Callable[[Tensor, Tensor], None]
    scale: Tensor | None = None

    def begin(self, y: Tensor) -> None:
        """Turn a signal into what travels, in its place."""
        if self.scale is not None:
            y.mul_(self.scale[:, None])

    def signal(self, travels: Tensor, rows: Tensor | slice) -> Tensor:
        """The signal at some rows."""
        if self.scale is None:
            return travels[rows]
        scale = self.scale[rows]
        # Nothing comes to a node without neighbours, whose f is 0.
        return (travels[rows] * torch.where(scale > 0, 1 / scale, 0)[:, None]).to(travels.dtype)


def walk_on(graph: Graph, dtype: torch.dtype) -> Walk:
    """How hops of signals of a type are made.

    On the CPU each has the bits of ``graph @ y``. On a GPU, and in half precision everywhere, only the places of entries are read, and sums
    are in float32.

    Args:
        graph: the graph.
        dtype: of the signals: that of the graph, or half precision on a graph without weights.
    """
    pattern = pattern_of(graph) if dtype in HALF or graph.device.type == "cuda" else None
    if pattern is not None and pattern.right is not None:
        return Walk(replace(pattern, left=pattern.right.square(), right=None).times, pattern.right)
    if pattern is not None:
        return Walk(pattern.times)
    if dtype != graph.dtype:
        short = str(dtype).removeprefix("torch.")
        raise IncompatibleError(
            f"signals in {short} go over graphs without weights, of which only the places of entries are read, and this one has weights; "
            f"leave {mention('dtype')} out"
        )
    return Walk(RowPieces(graph).times)


def _is_its_own(graph: Graph) -> bool:
    """Whether the entries of A, where they were made, are those of the weights."""
    made = graph._entries  # pyright: ignore[reportPrivateUsage]
    if made is None:
        return True
    rows, factor = graph.adjacency.forward, factor_of(graph.degree, graph.normalisation).to(graph.device)
    if made.forward.val.numel() != rows.col.numel() or not torch.equal(made.forward.col, rows.col):
        return False
    if not torch.equal(made.forward.crow, rows.crow):
        return False
    return all(
        torch.equal(
            block_values(rows, block, factor, graph.normalisation).to(graph.dtype),
            made.forward.val[block.start : block.stop],
        )
        for block in blocks(rows.crow)
    )
