"""Every process has some rows of the matrix, and asks before each hop for the signals of neighbours that others have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.ops import matrix_hops, recurrence
from unspool.ops.kernels import step_for
from unspool.ops.operator import Csr
from unspool.ops.ranks import Ranks
from unspool.ops.spread_operator import SpreadOperator


@dataclass(frozen=True, eq=False)
class Halo:
    """Own rows of a matrix, over own nodes and the foreign ones that they see (the halo).

    Attributes:
        entries: the rows; columns are own nodes first, then the halo, process by process.
        ranks: the processes.
        give: own nodes that others see, process by process.
        given, taken: how many nodes go to each process, and come from each.
    """

    entries: Csr
    ranks: Ranks
    give: Tensor
    given: tuple[int, ...]
    taken: tuple[int, ...]

    def step(
        self, csr: Any, y: Tensor, out: Tensor, scale: float, base: Tensor | None, weight: Tensor | None, lagged: Tensor | None
    ) -> None:  # fmt: skip
        """``out = scale * M y + weight * base - lagged``, with the rows of ``y`` that others have."""
        step_for(y)(self.entries, self.widened(y), out, scale, base, weight, lagged)

    def widened(self, y: Tensor) -> Tensor:
        """Own rows of a signal, and below them those of the halo."""
        width = y.shape[1]
        sent = y.index_select(0, self.give).reshape(-1)
        got = self.ranks.exchange(sent, [n * width for n in self.given], [n * width for n in self.taken])
        return torch.cat([y, got.view(-1, width)])


class RowOperator(SpreadOperator):
    r"""A matrix of which every process has some rows, and signals cut alike.

    A hop brings in the signals of the halo: of all processes together :math:`h c` numbers a hop, for h nodes that some process
    sees and does not have, each counted once for each that sees it.

    Args:
        halo, turned: the rows of M and of its transpose; the same object where M is symmetric.
        ranks: the processes.
        rows: how many rows each has.
    """

    def __init__(self, halo: Halo, turned: Halo, ranks: Ranks, rows: tuple[int, ...]) -> None:
        super().__init__(ranks, rows, halo.entries.val.dtype, halo.entries.val.device)
        vars(self).update(halo=halo, turned=turned)

    halo: Halo
    turned: Halo

    @property
    def symmetric(self) -> bool:
        """Whether the matrix equals its transpose."""
        return self.halo is self.turned

    @property
    def T(self) -> RowOperator:  # noqa: N802
        """The transpose."""
        return RowOperator(self.turned, self.halo, self.ranks, self.owned)

    def product(self, x: Tensor, turned: bool) -> Tensor:  # noqa: D102
        return recurrence.product(self._of(turned).entries, self._of(turned).widened(x))

    def series(self, x: Tensor, hops: Tensor, chebyshev: bool, turned: bool) -> tuple[Tensor, Tensor]:  # noqa: D102
        return recurrence.series(self._of(turned), x[:, None], hops[:, None], chebyshev)[:, 0], x

    def sweep(self, g: Tensor, seen: Tensor, hops: Tensor, chebyshev: bool, want_dx: bool) -> tuple[Tensor, Tensor]:  # noqa: D102
        dx, dhops = recurrence.sweep(self.turned, g[:, None], seen[:, None], hops[:, None], chebyshev, want_dx)
        return (dx[:, 0] if want_dx else dx), dhops[:, 0]

    def walk(self, x: Tensor, depth: int, chebyshev: bool, turned: bool) -> Tensor:  # noqa: D102
        return matrix_hops.walk(self._of(turned), x[:, None], depth + 1, chebyshev)[:, 0]

    def gather(self, pages: Tensor, chebyshev: bool, turned: bool) -> Tensor:  # noqa: D102
        return matrix_hops.clenshaw(self._of(turned), pages[:, None].contiguous(), chebyshev)[:, 0]

    def _of(self, turned: bool) -> Halo:
        return self.turned if turned else self.halo
