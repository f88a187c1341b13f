"""Anderson's method for loops that end at a fixed point: the last few steps, combined so that what is left of them is smallest."""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor

#: How many changes are remembered.
MEMORY = 10
#: A ridge on the normal equations, as a share of their trace; they are made in float64.
_RIDGE = 1e-13


class Mixing:
    r"""Where a fixed-point iteration goes next, from the steps that it has seen (Anderson 1965).

    With the residual :math:`F = T(s) - s` and the last changes Δs, ΔF, the next point is
    :math:`s + F - \sum_j \gamma_j(\Delta s_j + \Delta F_j)` with the γ that make :math:`\lVert F - \sum_j \gamma_j \Delta F_j\rVert`
    smallest. Numbers only; :class:`~unspool.algorithm.Anderson` is the rule whose steps are differentiated.

    Args:
        memory: how many changes are remembered; 0 for plain steps.

    Example:
        >>> import torch
        >>> rates = torch.tensor([0.9, 0.99], dtype=torch.float64)
        >>> s, mixing = torch.ones(2, dtype=torch.float64), Mixing()
        >>> for _ in range(4):  # T(s) = rates · s, whose fixed point is 0
        ...     s = mixing.ahead(s, rates * s)
        >>> bool(s.abs().max() < 1e-6)
        True
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self._moves: deque[Tensor] = deque(maxlen=memory)
        self._changes: deque[Tensor] = deque(maxlen=memory)
        self._last: tuple[Tensor, Tensor] | None = None

    @property
    def used(self) -> bool:
        """Whether the last point was more than a plain step."""
        return len(self._moves) > 0

    def ahead(self, at: Tensor, image: Tensor) -> Tensor:
        """The next point after ``at``, of which T makes ``image``."""
        left = image - at
        if self._last is not None:
            self._moves.append(at - self._last[0])
            self._changes.append(left - self._last[1])
        self._last = (at, left)
        if not self._moves:
            return image
        changes = torch.stack([c.flatten() for c in self._changes])
        wide = changes.double()
        gram, right = wide @ wide.T, wide @ left.flatten().double()
        ridge = _RIDGE * gram.diagonal().sum() + torch.finfo(torch.float64).tiny
        gamma = torch.linalg.solve(gram + ridge * torch.eye(len(gram), dtype=gram.dtype, device=gram.device), right)
        moved = torch.stack([m.flatten() for m in self._moves]) + changes
        return image - (gamma.to(moved.dtype) @ moved).view(at.shape)
