"""Composite terms g(K H): a penalty with a proximal operator, on what a linear operator makes of H."""

from __future__ import annotations

import functools
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unspool.errors import IncompatibleError, InputError
from unspool.objective.channel import Map
from unspool.objective.coefficient import Coefficient, Fixed, as_coefficient
from unspool.objective.formula import leading
from unspool.objective.kind import Kind
from unspool.objective.operator import GroupDifference, Incidence, LaplacianPower, LinearOperator, bent
from unspool.objective.term import Given, Term
from unspool.ops.dual_step import Cut, dual_step
from unspool.ops.prox import ball, box, row_shrink, soft_threshold

_ONE = Fixed(1.0)
#: Products with KᵀK to see whether a bound on it holds.
_PRODUCTS = 10


class CompositeTerm(Term):
    r"""A term g(K H) whose g has a proximal operator and whose K is a :class:`~unspool.objective.LinearOperator`.

    Write ``operator``, ``outer_value`` and ``outer_prox``; the term's value follows. Algorithms that keep dual variables
    (:class:`~unspool.algorithm.PrimalDual`, :class:`~unspool.algorithm.ADMM`) handle such terms.
    """

    kind: ClassVar[Any] = Kind.COMPOSITE
    uses_input = False

    #: The operator K.
    operator: Any

    @abstractmethod
    def outer_value(self, z: Tensor, given: Given) -> Tensor:
        """g(Z), summed over rows and channels: shape (...) for z of shape (..., rows, features)."""

    @abstractmethod
    def outer_prox(self, z: Tensor, step: Map, given: Given) -> Tensor:
        """argmin_y g(y) + ‖y − z‖² / (2 step)."""

    def value(self, h: Tensor, given: Given) -> Tensor:
        """g(K H)."""
        return self.outer_value(self.operator(h, given.graph), given)

    def dual_prox(self, z: Tensor, step: Map, given: Given) -> Tensor:
        """The proximal operator of step times the convex conjugate g*, by Moreau's identity."""
        return z - step * self.outer_prox(z / step, 1.0 / step, given)

    def dual_step(self, z: Tensor, step: Map, ahead: Tensor, given: Given) -> tuple[Tensor, Tensor]:
        """A proximal step of g* from Z + step · K H, and Kᵀ of where it leads."""
        moved = self.dual_prox(z + step * self.operator(ahead, given.graph), step, given)
        return moved, self.operator.adjoint(moved, given.graph)


def _radius(term: Any) -> Coefficient:
    """The weight λ of a norm: dual variables are cut to a ball of this radius, so it is a number of at least 0."""
    weight = as_coefficient(term.weight)
    if not weight.number:
        raise TypeError(f"the weight of {term.name} is not a single number")
    if not weight.leaves and float(weight.evaluate({})) < 0:
        raise InputError("weight", float(weight.evaluate({})), "a number or coefficient of at least 0", owner=term.name)
    return weight


@dataclass(frozen=True, eq=False)
class _FewRows(CompositeTerm):
    """λ‖K H‖₂,₁ or λ‖K H‖₁, whatever K is."""

    weight: Any = _ONE
    rows: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", _radius(self))

    def outer_value(self, z: Tensor, given: Given) -> Tensor:
        """λ ‖Z‖₂,₁ or λ ‖Z‖₁."""
        size = torch.linalg.vector_norm(z, dim=-1) if self.rows else z.abs().sum(-1)
        return size.sum(-1) * given[self.weight]

    def outer_prox(self, z: Tensor, step: Map, given: Given) -> Tensor:
        """Rows or entries shrunk by step · λ."""
        threshold = step * given[self.weight]
        return row_shrink(z, threshold) if self.rows else soft_threshold(z, threshold)

    def dual_prox(self, z: Tensor, step: Map, given: Given) -> Tensor:
        """Rows or entries cut to the length λ: g* is the indicator of a ball."""
        radius = given[self.weight]
        return ball(z, radius) if self.rows else box(z, -radius, radius)

    def dual_step(self, z: Tensor, step: Map, ahead: Tensor, given: Given) -> tuple[Tensor, Tensor]:
        """The same; differences across edges are made and cut in one pass."""
        if type(self.operator) is not Incidence or type(self).dual_prox is not _FewRows.dual_prox:
            return super().dual_step(z, step, ahead, given)
        bend = functools.partial(bent, graph=given.graph, power=self.operator.power)
        cut = Cut.ROWS if self.rows else Cut.ENTRIES
        moved, pull = dual_step(given.graph.incidence(), z, bend(ahead), step, given[self.weight], cut)
        return moved, bend(pull)

    def formula(self) -> str:
        """λ ‖K H‖₂,₁."""
        return f"{leading(self.weight)}‖{self.operator} H‖{'₂,₁' if self.rows else '₁'}"


@dataclass(frozen=True, eq=False)
class EdgeSparse(_FewRows):
    r"""Few edges with a jump: :math:`\lambda\lVert BH\rVert_{2,1} = \lambda\sum_e \lVert (BH)_e\rVert`, total variation on the graph.

    Signals become constant on regions with sharp borders, where ‖BH‖² would blur them.

    Args:
        weight: λ, a number or coefficient of at least 0.
        rows: whether an edge jumps in all channels together (‖BH‖₂,₁) or in each alone (‖BH‖₁).
        order: 1 for jumps; 2 for changes of how the signal bends, ‖B L H‖, and so on. Straight lines with bends ask for :class:`LaplacianSparse`.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Fidelity(0.5) + us.EdgeSparse(0.2)
        >>> print(objective, "and", us.EdgeSparse(1.0, rows=False, order=2))
        0.5 ‖H − X‖²  +  0.2 ‖B H‖₂,₁ and ‖B L H‖₁
        >>> x = torch.tensor([[0.0], [0.1], [5.1], [5.0]])
        >>> graph = us.graph.path(4, normalise=us.Normalisation.NONE, loops=False)
        >>> us.minimise(objective, x, graph).flatten().numpy().round(2)
        array([0.15, 0.15, 4.95, 4.95], dtype=float32)
    """

    order: Any = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.order, bool) or not isinstance(self.order, int) or self.order < 1:
            raise InputError("order", self.order, "a whole number of at least 1")

    @property
    def operator(self) -> LinearOperator:
        """B L^(order − 1)."""
        return Incidence(self.order - 1)


@dataclass(frozen=True, eq=False)
class LaplacianSparse(_FewRows):
    r"""Few nodes that differ from their neighbours: :math:`\lambda\lVert L^p H\rVert_{2,1} = \lambda\sum_i \lVert (L^p H)_i\rVert`.

    Signals become harmonic, the mean of their neighbours, at all but a few nodes: straight lines with bends on a path. With
    :class:`EdgeSparse`, whose orders 1, 2, ... look at B, B L, ..., it makes the family B, L, B L, L², ... of graph trend filtering (Wang,
    Sharpnack, Smola and Tibshirani 2016).

    Args:
        weight: λ, a number or coefficient of at least 0.
        rows: whether a node differs in all channels together (‖LᵖH‖₂,₁) or in each alone (‖LᵖH‖₁).
        power: p, at least 1.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Fidelity(0.5) + us.LaplacianSparse(0.3)
        >>> print(objective, "and", us.LaplacianSparse(1.0, rows=False, power=2))
        0.5 ‖H − X‖²  +  0.3 ‖L H‖₂,₁ and ‖L² H‖₁
        >>> x = torch.tensor([[0.0], [1.1], [1.9], [3.0], [2.1], [0.9]])
        >>> ring = us.graph.ring(6, normalise=us.Normalisation.NONE, loops=False)
        >>> h = us.minimise(objective, x, ring)
        >>> ring.laplacian_times(h).flatten().numpy().round(2) + 0.0  # two bends are left
        array([-1.56,  0.  ,  0.  ,  1.56,  0.  ,  0.  ], dtype=float32)
    """

    power: Any = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "operator", LaplacianPower(self.power))


@dataclass(frozen=True, eq=False)
class GroupGap(CompositeTerm):
    r"""Two groups of nodes get the same mean: :math:`\lambda\lVert \Delta H\rVert_1`, Δ the difference of the groups' means.

    Args:
        groups: 0 or 1 for every node, −1 for nodes of neither group.
        weight: λ, a number or coefficient of at least 0.

    Example:
        >>> import torch, unspool as us
        >>> fair = us.Fidelity(1.0) + us.GroupGap(torch.tensor([0, 0, 1, 1]), 10.0)
        >>> print(fair)
        ‖H − X‖²  +  10 ‖Δ H‖₁
        >>> us.minimise(fair, torch.tensor([[0.0], [2.0], [4.0], [6.0]]), us.graph.ring(4)).flatten().numpy().round(2)
        array([2., 4., 2., 4.], dtype=float32)
    """

    groups: Any
    weight: Any = _ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", _radius(self))
        object.__setattr__(self, "operator", GroupDifference(self.groups))

    def outer_value(self, z: Tensor, given: Given) -> Tensor:
        """λ ‖Z‖₁."""
        return z.abs().sum((-2, -1)) * given[self.weight]

    def outer_prox(self, z: Tensor, step: Map, given: Given) -> Tensor:
        """Entries shrunk by step · λ."""
        return soft_threshold(z, step * given[self.weight])

    def dual_prox(self, z: Tensor, step: Map, given: Given) -> Tensor:
        """Entries cut to ±λ."""
        return box(z, -given[self.weight], given[self.weight])

    def formula(self) -> str:
        """λ ‖Δ H‖₁."""
        return f"{leading(self.weight)}‖Δ H‖₁"


def check_operator_of(term: CompositeTerm) -> None:
    """Refuse a composite term whose operator is not one."""
    if not isinstance(getattr(term, "operator", None), LinearOperator):
        raise IncompatibleError(
            f"{term.name}.operator is not a LinearOperator; give it one, such as us.Incidence() or your own subclass"
        )


@torch.no_grad()
def check_operator_at(term: CompositeTerm, h: Tensor, given: Given) -> None:
    """Refuse an operator whose adjoint or bound is not that of K, looked at with one random pair and a few products KᵀK."""
    operator, graph, generator = term.operator, given.graph, torch.Generator().manual_seed(0)
    v = torch.randn(h.shape[-2:], dtype=torch.float64, generator=generator).to(h)
    image = operator(v, graph)
    z = torch.randn(image.shape, dtype=torch.float64, generator=generator).to(h)
    one, other = float((image * z).sum()), float((v * operator.adjoint(z, graph)).sum())
    size = float(torch.linalg.vector_norm(image) * torch.linalg.vector_norm(z))
    rounding = 1e3 * torch.finfo(h.dtype).eps
    if not abs(one - other) <= rounding * size + 1e-30:
        raise IncompatibleError(
            f"{type(operator).__name__}.adjoint of {term.name} is not the adjoint of its operator: ⟨K H, Z⟩ is {one:.4g} and ⟨H, Kᵀ Z⟩ {other:.4g}; "
            "testing.check_operator shows it"
        )
    bound = operator.squared_norm(graph)
    for _ in range(_PRODUCTS):
        w = operator.adjoint(operator(v, graph), graph)
        grown = float(torch.linalg.vector_norm(w) / torch.linalg.vector_norm(v).clamp_min(1e-30))
        if grown > bound * (1 + rounding) + 1e-30:
            raise IncompatibleError(
                f"{type(operator).__name__}.squared_norm of {term.name} is {bound:.4g}, but ‖KᵀK‖ is at least {grown:.4g}, so steps would be too long; give an "
                "upper bound"
            )
        v = w / torch.linalg.vector_norm(w).clamp_min(1e-30)


__all__ = ["CompositeTerm", "EdgeSparse", "GroupGap", "LaplacianSparse", "check_operator_at", "check_operator_of"]
