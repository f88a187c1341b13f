"""Denoising problems by name: what the signal is like decides what is minimised.

Every problem is α · fidelity + (1 − α) · penalty, with one weight α in (0, 1). Fidelity looks at observed entries alone, so
missing ones are filled in by the penalty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unspool.errors import DataError, InputError
from unspool.graph import Graph
from unspool.objective import (
    EdgeSparse,
    Fidelity,
    Given,
    Incidence,
    LaplacianSparse,
    NodeFidelity,
    Objective,
    RowSparseFidelity,
    Smoothness,
    Term,
)
from unspool.objective.channel import Map
from unspool.ops.prox import row_shrink

#: Candidates of a rule that tries them: so many, over so many powers of ten.
_MANY, _DECADES = 17, 4.0
#: What is left of a signal below this share of its size is rounding: it is constant, and any weight will do.
_CONSTANT = 1e-9
#: The candidates of larger graphs are placed by the size of the signal alone.
LARGEST_FACTORISED = 20_000
#: Weights nearer to 1 (or to 0) than this leave too few digits to the other term.
_NEARLY_ONE = 1 - 1e-13
#: Differences across edges of this share of the values are rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class DenoisingProblem(ABC):
    """A fidelity and a penalty, with one weight between them."""

    name: ClassVar[str]
    #: Whether it is meant for white noise alone, so that rules may reason about that.
    white_noise: ClassVar[bool] = True

    @abstractmethod
    def fidelity(self, weight: float, seen: Tensor | None) -> Term:
        """α times the distance from X, at the entries that are ``seen``; at all of them for None."""

    @abstractmethod
    def penalty(self, weight: float) -> Term:
        """What else is asked of H, with the weight 1 − α."""

    @abstractmethod
    def unit(self, x: Tensor, graph: Graph) -> float:
        """The largest (1 − α)/α that is worth trying on a complete signal."""

    def objective(self, weight: float, seen: Tensor | None = None) -> Objective:
        """The problem for a weight α."""
        made = self.fidelity(weight, seen)
        return made + self.penalty(1 - weight) if weight < 1 else Objective((made,))

    def error(self, offset: Tensor) -> Tensor:
        """The error of predicted entries, measured as the fidelity measures it: squares."""
        return offset.square().sum()

    def candidates(self, x: Tensor, graph: Graph) -> Tensor:
        """Weights to try on a complete signal, the smoothest result last."""
        unit = 1.0 if _constant(x, graph) else self.unit(x, graph)
        weights = 1 / (1 + unit * torch.logspace(-_DECADES, 0, _MANY, dtype=torch.float64))
        weights = weights[(weights < _NEARLY_ONE) & (weights > 1 - _NEARLY_ONE)]
        if weights.numel() == 0:
            raise DataError(
                "", f"the values of the signal are of the size {_size(x):.1g}, so no weight in (0, 1) balances {self.penalty(1.0).formula()}",
                "multiply them by a number that brings them near 1",
            )  # fmt: skip
        return weights


class _Squares(DenoisingProblem):
    def fidelity(self, weight: float, seen: Tensor | None) -> Term:
        """α‖H − X‖²."""
        return Fidelity(weight) if seen is None else NodeFidelity(seen, weight)


@dataclass(frozen=True)
class Smooth(_Squares):
    """Signals that change slowly: α‖H − X‖² + (1 − α)‖BH‖²."""

    name = "smooth"

    def penalty(self, weight: float) -> Term:
        """(1 − α)‖BH‖²."""
        return Smoothness(weight)

    def unit(self, x: Tensor, graph: Graph) -> float:
        """A thousand over the largest frequency."""
        return 1e3 / graph.scale


@dataclass(frozen=True)
class TotalVariation(_Squares):
    """Signals that are constant on regions and jump between them: α‖H − X‖² + (1 − α)‖BH‖₂,₁."""

    name = "tv"

    def penalty(self, weight: float) -> Term:
        """(1 − α)‖BH‖₂,₁."""
        return EdgeSparse(weight)

    def unit(self, x: Tensor, graph: Graph) -> float:
        """About where only constants are left: the multipliers of ‖H − X‖² at a constant H, on a typical edge."""
        return _typical(self.penalty(1.0), x, graph)


@dataclass(frozen=True)
class Slopes(_Squares):
    """Signals with straight slopes and few bends: α‖H − X‖² + (1 − α)‖LH‖₂,₁, trend filtering of order 1."""

    name = "slopes"

    def penalty(self, weight: float) -> Term:
        """(1 − α)‖LH‖₂,₁."""
        return LaplacianSparse(weight)

    def unit(self, x: Tensor, graph: Graph) -> float:
        """A thirtieth of where only constants are left, as for trend."""
        return _typical(self.penalty(1.0), x, graph) / 30


@dataclass(frozen=True)
class Trend(_Squares):
    """Signals with slopes and curves that change now and then: α‖H − X‖² + (1 − α)‖BLH‖₂,₁, trend filtering of order 2."""

    name = "trend"

    def penalty(self, weight: float) -> Term:
        """(1 − α)‖BLH‖₂,₁."""
        return EdgeSparse(weight, order=2)

    def unit(self, x: Tensor, graph: Graph) -> float:
        """A thirtieth of that: long before only constants are left, nothing changes but the longest waves."""
        return _typical(self.penalty(1.0), x, graph) / 30


@dataclass(frozen=True)
class Robust(DenoisingProblem):
    """Smooth signals of which a few nodes are far off: α‖H − X‖₂,₁ + (1 − α)‖BH‖²."""

    name = "robust"
    white_noise = False

    def fidelity(self, weight: float, seen: Tensor | None) -> Term:
        """α‖H − X‖₂,₁."""
        return RowSparseFidelity(weight) if seen is None else SeenRowSparseFidelity(weight, seen)

    def penalty(self, weight: float) -> Term:
        """(1 − α)‖BH‖²."""
        return Smoothness(weight)

    def unit(self, x: Tensor, graph: Graph) -> float:
        """A thousand times what begins to move a typical node: 2 (1 − α)‖(LX)ᵢ‖ = α."""
        rough = torch.linalg.vector_norm(graph.laplacian_times(x), dim=-1)
        told = rough[rough > _CONSTANT * _size(x)]
        return 1e3 / (2 * (float(told.median()) if told.numel() else _size(x)))

    def error(self, offset: Tensor) -> Tensor:
        """Lengths of rows: a held-out outlier counts by its distance, not by its square."""
        return torch.linalg.vector_norm(offset, dim=-1).sum()


@dataclass(frozen=True, eq=False)
class SeenRowSparseFidelity(RowSparseFidelity):
    """ρ Σᵢ ‖sᵢ ⊙ (hᵢ − xᵢ)‖: rows may leave their input, and entries that are not seen cost nothing.

    Example:
        >>> import torch, unspool as us
        >>> term = SeenRowSparseFidelity(1.0, torch.tensor([[True, False]]))
        >>> x, far = torch.zeros(1, 2), torch.tensor([[3.0, 9.0]])
        >>> graph = us.graph.path(1)
        >>> float(term.value(far, us.Given(x, graph))), term.prox(far, 1.0, us.Given(x, graph)).numpy().round(4).tolist()
        (3.0, [[2.0, 9.0]])
    """

    seen: Any = None

    def value(self, h: Tensor, given: Given) -> Tensor:
        """ρ Σᵢ ‖sᵢ ⊙ (hᵢ − xᵢ)‖."""
        return torch.linalg.vector_norm((h - given.x) * self.seen, dim=-1).sum(-1) * given[self.weight]

    def prox(self, v: Tensor, step: Map, given: Given) -> Tensor:
        """Shrink seen parts of rows towards the input."""
        return row_shrink(v, self.radius(step, given), torch.where(self.seen, given.x, v))

    def formula(self) -> str:
        """ρ ‖C ⊙ (H − X)‖₂,₁."""
        return super().formula().replace("H − X", "C ⊙ (H − X)")


#: The problems by name.
PROBLEMS: dict[str, DenoisingProblem] = {p.name: p for p in (Smooth(), TotalVariation(), Slopes(), Trend(), Robust())}


def read_problem(given: Any) -> DenoisingProblem:
    """A problem from its name, or as it is.

    Example:
        >>> print(read_problem("tv").objective(0.5))
        0.5 ‖H − X‖²  +  0.5 ‖B H‖₂,₁
    """
    if isinstance(given, DenoisingProblem):
        return given
    if not isinstance(given, str) or given not in PROBLEMS:
        raise InputError("problem", given, f"one of {', '.join(PROBLEMS)}")
    return PROBLEMS[given]


def _size(x: Tensor) -> float:
    """The root mean square of a signal; 1 where it is zero."""
    return float(x.square().mean().sqrt()) or 1.0


def _constant(x: Tensor, graph: Graph) -> bool:
    """Whether neighbours have the same values, up to rounding: then every weight gives the same result."""
    return bool(graph.laplacian_times(x).abs().max() <= _ROUNDING * graph.scale * x.abs().max())


def _typical(term: Any, x: Tensor, graph: Graph) -> float:
    """A large length of a row of M with KᵀM = 2(X − mean), up to constants, for K = B Lᵖ or Lᵖ: beyond it little but constants is left."""
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    size, x = _size(x), x - x.mean(0)
    if bool((x.abs() <= _CONSTANT * size).all()):
        return size
    if graph.nodes > LARGEST_FACTORISED:
        return 100 * float(x.square().mean().sqrt()) / graph.scale**term.operator.power
    lap: Any = graph.laplacian().to_scipy()
    k: Any = (
        graph.incidence().to_scipy() if isinstance(term.operator, Incidence) else eye_array(graph.nodes, format="csr")
    )
    for _ in range(term.operator.power):
        k = k @ lap
    square = k.T @ k
    ridge = 1e-9 * float(square.diagonal().mean())
    found = splu((square + ridge * eye_array(graph.nodes)).tocsc(), "MMD_AT_PLUS_A").solve(2 * x.numpy())
    length = torch.linalg.vector_norm(torch.from_numpy(k @ found), dim=-1)
    return max(float(length.max()), _CONSTANT * size)


__all__ = [
    "PROBLEMS", "DenoisingProblem", "Robust", "SeenRowSparseFidelity", "Slopes", "Smooth", "TotalVariation", "Trend", "read_problem",
]  # fmt: skip
