"""A second variable: the weights of the edges, learnt together with the signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.errors import InputError
from unspool.graph import Graph, Normalisation
from unspool.objective import channel
from unspool.objective.channel import Map
from unspool.objective.coefficient import Fixed, as_coefficient
from unspool.objective.edge_penalty import FrozenEdges
from unspool.objective.term import Given, SmoothTerm

_ONE, _ZERO = Fixed(1.0), Fixed(0.0)


@dataclass(frozen=True, eq=False)
class LearntEdges(SmoothTerm):
    r"""Neighbours agree on a graph that may be changed: :math:`\min_{S \ge 0}\ \beta \operatorname{tr} H^\top L_S H + \gamma\lVert S - W\rVert^2 + \mu\lVert S\rVert_1`.

    S has the edges of the graph, each counted once, with weights :math:`s_e` in the place of its own :math:`w_e` (degrees stay those of
    the graph). A row of B holds :math:`\sqrt{w_e}`, so :math:`\operatorname{tr} H^\top L_S H = \sum_e (s_e/w_e)\lVert (BH)_e\rVert^2`, and every edge has its own
    minimum where the derivative :math:`\beta\lVert (BH)_e\rVert^2/w_e + 2\gamma(s_e - w_e) + \mu` vanishes, or at 0:

    .. math:: s_e = \max\Bigl(0,\ w_e - \frac{\beta\lVert (BH)_e\rVert^2/w_e + \mu}{2\gamma}\Bigr)

    Edges whose ends differ much, or that are weak, are cut. As a function of H alone, which is what :meth:`value` gives, this is a
    robust penalty: for w = 1 and μ = 0 it is βΣ cap(‖(BH)ₑ‖², 2γ/β) up to a factor. :class:`~unspool.algorithm.BlockCoordinate` keeps S as
    a variable of its own.

    Args:
        weight: β, a number or coefficient, not negative.
        stay: γ, positive: how much the graph is trusted.
        sparse: μ, not negative.

    Example:
        >>> import torch, unspool as us
        >>> term = us.LearntEdges(1.0, stay=0.5, sparse=0.1)
        >>> print(us.Fidelity(1.0) + term)
        ‖H − X‖²  +  min_S Σₑ sₑ ‖(B H)ₑ‖²/wₑ + 0.5 (sₑ − wₑ)² + 0.1 sₑ
        >>> h = torch.tensor([[0.0], [0.5], [9.0]])
        >>> graph = us.graph.path(3, normalise=us.Normalisation.NONE)
        >>> term.edges(h, us.Given(h, graph))
        tensor([0.6500, 0.0000])
    """

    weight: Any = _ONE
    stay: Any = _ONE
    sparse: Any = _ZERO
    uses_input = False

    def __post_init__(self) -> None:
        for name in ("weight", "stay", "sparse"):
            object.__setattr__(self, name, as_coefficient(getattr(self, name)))
            if not getattr(self, name).number:
                raise TypeError(f"{name} of LearntEdges is not a single number")
        if isinstance(self.stay, Fixed) and not float(self.stay.value) > 0:
            raise InputError("stay", self.stay, "a number above 0")

    def edges(self, h: Tensor, given: Given) -> Tensor:
        """The weights S that are best for h, of shape (..., edges), in the order of :func:`unspool.graph.edge_list`."""
        return self._best(_squared(h, given), given)

    def joint(self, h: Tensor, s: Tensor, given: Given) -> Tensor:
        """The term as a function of H and S both."""
        return self._joint(_squared(h, given), s, given)

    def value(self, h: Tensor, given: Given) -> Tensor:
        """The term at the S that is best for h."""
        squared = _squared(h, given)
        return self._joint(squared, self._best(squared, given), given)

    def gradient(self, h: Tensor, given: Given) -> Tensor:
        """2β Bᵀ diag(s/w) B H: at the best S nothing else depends on H."""
        return self.at_edges(self.edges(h, given), given).gradient(h, given)

    def at_edges(self, s: Tensor, given: Given) -> FrozenEdges:
        """The quadratic in H that is left at some S."""
        return FrozenEdges(s / edge_weights(given.graph).to(s), self.weight)

    def majoriser(self, h: Tensor, given: Given) -> FrozenEdges:
        """The quadratic that touches the term at h (up to a constant)."""
        return self.at_edges(self.edges(h, given), given)

    def lipschitz(self, given: Given) -> Map:
        """4 β λmax(L): twice that of β‖BH‖², because the curvature along an edge falls to −4β before it is cut."""
        return 8 * given.graph.scale * channel.spectral_norm(given[self.weight])

    def diagonal(self, h: Tensor, given: Given) -> Map:
        """That of the quadratic that touches the term at h."""
        return self.majoriser(h, given).diagonal(h, given)

    def is_convex(self, given: Given) -> bool:
        """It is not: an edge that is cut costs no more."""
        return False

    def scaled(self, factor: Any) -> LearntEdges:
        """All three weights times a number or coefficient."""
        by = as_coefficient(factor)
        return LearntEdges(by * self.weight, by * self.stay, by * self.sparse)

    def formula(self) -> str:
        """min_S Σₑ β sₑ ‖(B H)ₑ‖²/wₑ + γ (sₑ − wₑ)² + μ sₑ."""
        lead, stay = ("" if str(c) == "1" else f"{c.factor} " for c in (self.weight, self.stay))
        rest = "" if str(self.sparse) == "0" else f" + {self.sparse.factor} sₑ"
        return f"min_S Σₑ {lead}sₑ ‖(B H)ₑ‖²/wₑ + {stay}(sₑ − wₑ)²{rest}"

    def _best(self, squared: Tensor, given: Given) -> Tensor:
        pull = given[self.weight] * squared + given[self.sparse]
        return torch.relu(edge_weights(given.graph).to(squared) - pull / (2 * given[self.stay]))

    def _joint(self, squared: Tensor, s: Tensor, given: Given) -> Tensor:
        away = (s - edge_weights(given.graph).to(s)).square() * given[self.stay]
        return (s * squared * given[self.weight] + away + s * given[self.sparse]).sum(-1)


def edge_weights(graph: Graph) -> Tensor:
    """The weights w of the edges before normalisation, in the order of the rows of B.

    Example:
        >>> import unspool as us
        >>> edge_weights(us.graph.path(3)).numpy().round(3)
        array([1., 1.], dtype=float32)
    """
    squared = graph.squared_incidence  # rows w/dᵢ and w/dⱼ
    degree = graph.degree.to(squared.forward.val)
    ends = torch.ones_like(degree) if graph.normalisation is Normalisation.NONE else degree
    return (squared @ ends[:, None])[:, 0] / 2


def _squared(h: Tensor, given: Given) -> Tensor:
    """‖(B H)ₑ‖²/wₑ: the squared difference of the two ends, each over the root of its degree."""
    return (given.graph.incidence() @ h).square().sum(-1) / edge_weights(given.graph).to(h)


__all__ = ["LearntEdges", "edge_weights"]
