"""A in pieces of rows, whose entries are made when their turn comes: products with a graph whose A is never there as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torch import Tensor

from unspool.graph.compress import blocks
from unspool.graph.graph import Graph
from unspool.graph.normalise import block_values, factor_of
from unspool.ops.kernels import step_for
from unspool.ops.operator import Csr, compressed


class RowPiece(NamedTuple):
    """Some whole rows of A, ``first`` up to ``last``."""

    first: int
    last: int
    entries: Csr


class RowPieces:
    """The rows of A in pieces of some 2¹⁸ entries (of one row, where it has more), with the bits of ``graph.operator``.

    What it keeps is one float64 a node; pieces are made anew each time they are gone through.

    Args:
        graph: the graph; where A was made already, its entries are taken.

    Example:
        >>> import torch, unspool as us
        >>> pieces = RowPieces(us.graph.ring(5))
        >>> [(piece.first, piece.last, piece.entries.val.numel()) for piece in pieces]
        [(0, 5, 15)]
    """

    def __init__(self, graph: Graph) -> None:
        made = graph._entries  # pyright: ignore[reportPrivateUsage]
        self._graph, self._values = graph, None if made is None else made.forward.val
        self._rows = graph.adjacency.forward if made is None else made.forward
        self._factor = factor_of(graph.degree, graph.normalisation).to(graph.device)

    def __iter__(self) -> Iterator[RowPiece]:
        graph, rows = self._graph, self._rows
        for block in blocks(rows.crow):
            if self._values is None:
                values = block_values(graph.adjacency.forward, block, self._factor, graph.normalisation).to(graph.dtype)
            else:
                values = self._values[block.start : block.stop]
            crow = (rows.crow[block.first : block.last + 1] - block.start).to(rows.col.dtype)
            entries = compressed(crow, rows.col[block.start : block.stop], values)
            yield RowPiece(block.first, block.last, entries)

    def times(self, y: Tensor, out: Tensor) -> None:
        """A Y into other memory, with the bits of ``graph @ y``.

        Example:
            >>> import torch, unspool as us
            >>> graph, y, out = us.graph.ring(5), torch.eye(5), torch.empty(5, 5)
            >>> RowPieces(graph).times(y, out)
            >>> torch.equal(out, graph @ y)
            True
        """
        for first, last, entries in self:
            step_for(y)(entries, y, out[first:last], 1.0, None, None, None)
