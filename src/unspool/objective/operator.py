"""Linear operators on signals: what a composite term looks at instead of H itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from unspool.errors import InputError
from unspool.graph import Graph


class LinearOperator(ABC):
    """K in a term g(K H): linear in H, with its adjoint and a bound on its norm.

    :func:`unspool.testing.check_operator` checks all three on an operator of one's own.

    Example:
        >>> import torch, unspool as us
        >>> h = torch.tensor([[1.0], [1.0], [3.0]])
        >>> graph = us.graph.path(3, normalise=us.Normalisation.NONE, loops=False)
        >>> us.Incidence()(h, graph).flatten()
        tensor([ 0., -2.])
    """

    @abstractmethod
    def __call__(self, h: Tensor, graph: Graph) -> Tensor:
        """K H, of shape (..., rows, features)."""

    @abstractmethod
    def adjoint(self, z: Tensor, graph: Graph) -> Tensor:
        """Kᵀ Z, of shape (..., nodes, features)."""

    @abstractmethod
    def squared_norm(self, graph: Graph) -> float:
        """An upper bound on ‖K‖², the largest eigenvalue of KᵀK."""

    def __str__(self) -> str:
        return type(self).__name__


@dataclass(frozen=True)
class Incidence(LinearOperator):
    """B: the difference across every edge, as in ‖BH‖².

    Args:
        power: B Lᵖ instead of B; with p = 1 edges are compared in how they bend (trend filtering of order 2).
    """

    power: int = 0

    def __post_init__(self) -> None:
        _check_power(self.power, 0)

    def __call__(self, h: Tensor, graph: Graph) -> Tensor:
        """B Lᵖ H."""
        return graph.incidence() @ bent(h, graph, self.power)

    def adjoint(self, z: Tensor, graph: Graph) -> Tensor:
        """Lᵖ Bᵀ Z."""
        return bent(graph.incidence().T @ z, graph, self.power)

    def squared_norm(self, graph: Graph) -> float:
        """(2 · scale)^(2p+1), since BᵀB = L has frequencies up to 2 · scale."""
        return (2.0 * graph.scale) ** (2 * self.power + 1)

    def __str__(self) -> str:
        return f"B{_letters(self.power)}"


@dataclass(frozen=True)
class LaplacianPower(LinearOperator):
    """Lᵖ: how every node differs from its neighbours.

    Example:
        >>> import torch, unspool as us
        >>> print(us.LaplacianPower(2), us.LaplacianPower().squared_norm(us.graph.ring(5)))
        L² 4.0
    """

    power: int = 1

    def __post_init__(self) -> None:
        _check_power(self.power, 1)

    def __call__(self, h: Tensor, graph: Graph) -> Tensor:
        """Lᵖ H."""
        return bent(h, graph, self.power)

    def adjoint(self, z: Tensor, graph: Graph) -> Tensor:
        """The same: L is symmetric, where it is BᵀB."""
        graph.require_incidence()
        return bent(z, graph, self.power)

    def squared_norm(self, graph: Graph) -> float:
        """(2 · scale)^(2p)."""
        return (2.0 * graph.scale) ** (2 * self.power)

    def __str__(self) -> str:
        return _letters(self.power).strip()


@dataclass(frozen=True, eq=False)
class GroupDifference(LinearOperator):
    """Δ: the mean of one group of nodes minus the mean of the other, one row.

    Args:
        groups: 0 or 1 for every node; nodes of −1 belong to neither group.

    Example:
        >>> import torch, unspool as us
        >>> between = us.GroupDifference(torch.tensor([1, 0, 0]))
        >>> between(torch.tensor([[3.0], [1.0], [2.0]]), us.graph.path(3))
        tensor([[1.5000]])
    """

    groups: Any
    _row: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        groups = torch.as_tensor(self.groups)
        if groups.ndim != 1 or not bool(((groups == 0) | (groups == 1) | (groups == -1)).all()):
            strange = groups.unique()[:6].tolist() if groups.ndim == 1 else f"shape {tuple(groups.shape)}"
            raise InputError("groups", strange, "0, 1 or −1 for every node")
        counts = [int((groups == g).sum()) for g in (0, 1)]
        if min(counts) == 0:
            raise InputError("groups", groups.unique().tolist(), "at least one node in each of the groups 0 and 1")
        row = (groups == 1).double() / counts[1] - (groups == 0).double() / counts[0]
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "_row", row)

    def __call__(self, h: Tensor, graph: Graph) -> Tensor:
        """Δ H, of shape (..., 1, features)."""
        return self._fit(h, graph) @ h

    def adjoint(self, z: Tensor, graph: Graph) -> Tensor:
        """Δᵀ Z."""
        return self._fit(z, graph).mT @ z

    def squared_norm(self, graph: Graph) -> float:
        """1/n₁ + 1/n₀."""
        return float(self._row.square().sum())

    def _fit(self, like: Tensor, graph: Graph) -> Tensor:
        if self._row.numel() != graph.nodes:
            raise InputError("groups", tuple(self._row.shape), f"one group for each of the graph's {graph.nodes} nodes")
        return self._row.to(like)[None, :]

    def __str__(self) -> str:
        return "Δ"


def _check_power(power: Any, least: int) -> None:
    if isinstance(power, bool) or not isinstance(power, int) or power < least:
        raise InputError("power", power, f"a whole number of at least {least}")


def bent(h: Tensor, graph: Graph, power: int) -> Tensor:
    for _ in range(power):
        h = graph.laplacian_times(h)
    return h


def _letters(power: int) -> str:
    return "" if power == 0 else " L" if power == 1 else " L" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(c)] for c in str(power))


__all__ = ["GroupDifference", "Incidence", "LaplacianPower", "LinearOperator"]
