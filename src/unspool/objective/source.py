"""A term that is linear in H: a force that does not depend on where H is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from unspool.objective import channel
from unspool.objective.coefficient import Fixed, as_coefficient
from unspool.objective.formula import leading
from unspool.objective.term import Given, Stencil, StencilTerm

_ONE = Fixed(1.0)


@dataclass(frozen=True, eq=False)
class Source(StencilTerm):
    r"""Lean towards a linear image of the input: :math:`-\alpha\langle H, X M\rangle`, the source of GRAFF.

    For a symmetric M this is what :math:`\tfrac{\alpha}{2}\lVert H-X\rVert_M^2` says about H and X together; here M is any matrix, since a
    linear term has a gradient whatever its slope.

    Args:
        weight: α, a number or coefficient.
        matrix: M on channels, a number, diagonal or matrix; the identity when omitted.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Ridge(0.5) + us.Source(1.0)
        >>> print(objective)
        0.5 ‖H‖²  −  ⟨H, X⟩
        >>> us.minimise(objective, torch.tensor([[3.0]]), us.graph.path(1))
        tensor([[3.]])
    """

    weight: Any = _ONE
    matrix: Any = _ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_coefficient(self.weight))
        object.__setattr__(self, "matrix", as_coefficient(self.matrix))
        if not self.weight.number:
            raise TypeError("the weight of Source is not a single number; give a diagonal or matrix as matrix=")

    def _slope(self, given: Given) -> Any:
        return channel.compose(given[self.weight], given[self.matrix])

    def value(self, h: Tensor, given: Given) -> Tensor:
        """−α ⟨H, X M⟩."""
        return -(channel.apply(given.x, self._slope(given)) * h).sum((-2, -1))

    def stencil(self, given: Given) -> Stencil:
        """−α X M."""
        return Stencil(x=channel.negative(self._slope(given)))

    def is_convex(self, given: Given) -> bool:
        """A linear term is."""
        return True

    def formula(self) -> str:
        """−α ⟨H, X M⟩."""
        lead = leading(self.weight)
        image = "X" if str(self.matrix) == "1" else f"X {self.matrix.factor}"
        return f"−{lead}⟨H, {image}⟩"


__all__ = ["Source"]
