"""Anderson acceleration of any rule with a single iterate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.algorithm.algorithm import Algorithm, Problem, State, handled_kinds, require_count, require_tensor
from unspool.errors import IncompatibleError, InputError
from unspool.objective import Objective
from unspool.ops.solve import default_tolerance

#: Rounding of a step, in multiples of the machine's precision.
_ROUNDING = 10.0


@dataclass(frozen=True, eq=False)
class Anderson(Algorithm):
    r"""Steps of a rule T, combined with the last few so that what is left of them is smallest (Anderson 1965).

    With the residual :math:`F = T(H) - H` and the last m changes ΔH, ΔF of iterates and residuals,

    .. math:: H \leftarrow H + F - \textstyle\sum_j \gamma_j(\Delta H_j + \Delta F_j),\qquad
        \gamma = \arg\min \lVert F - \textstyle\sum_j \gamma_j \Delta F_j\rVert^2 + \epsilon\lVert\gamma\rVert^2

    for every signal by itself. ε is a small share of Σ‖ΔF‖², so that γ and its gradients stay finite where the changes vanish;
    the first step has none and is plain. Where T stays from the start there are none either, and gradients are those of plain
    steps. On quadratic objectives gradient steps become about as fast as conjugate gradients. The fixed points are those of T;
    between them the objective may rise, and constraints may be left.

    Args:
        inner: T, a rule whose state is one iterate, such as ``ProximalGradient()`` or ``Jacobi()``.
        memory: m, how many changes are remembered.
        ridge: ε as that share; 1e-10 in float64 and 1e-6 otherwise when omitted.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Fidelity(0.02) + us.Smoothness(0.98)
        >>> x, graph = torch.eye(12), us.graph.ring(12)
        >>> rules = us.GradientDescent(), us.Anderson(us.GradientDescent())
        >>> plain, fast = (us.unroll(objective, rule, depth=20).trace(x, graph) for rule in rules)
        >>> fast.distance[-1] < plain.distance[-1] / 100
        True
    """

    inner: Any
    memory: int = 3
    ridge: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Algorithm):
            raise InputError("inner", self.inner, "an algorithm, such as us.GradientDescent()")
        require_count("memory", self.memory)
        if self.ridge is not None and not self.ridge > 0:
            raise InputError("ridge", self.ridge, "a number above 0")

    @property
    def handles(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the inner rule handles."""
        return handled_kinds(self.inner)

    @property
    def random(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the inner rule is."""
        return self.inner.random

    def check(self, objective: Objective) -> None:
        """What the inner rule refuses."""
        self.inner.check(objective)

    def step_size(self, problem: Problem) -> Any:
        """The inner rule's."""
        return self.inner.step_size(problem)

    def init(self, h: Any, problem: Problem) -> State:
        """The iterate; the last iterate and residual; m changes of each, none so far; 0 until there was a step."""
        require_tensor(h)
        if len(kept := self.inner.init(h, problem)) != 1:
            raise IncompatibleError(
                f"{self.name} combines steps of a rule with a single iterate, but {self.inner.name} keeps {len(kept)} parts in its state; "
                "use GradientDescent(), ProximalGradient() or Jacobi() inside"
            )
        none = torch.zeros((self.memory, *h.shape), dtype=h.dtype, device=h.device)
        return (h, h, torch.zeros_like(h), none, none, h.new_zeros(()))

    def update(self, state: State, problem: Problem) -> State:
        """The combined step."""
        h, last, last_left, moves, changes, seen = state
        left = self.inner.update((h,), problem)[0] - h
        moves = torch.cat([((h - last) * seen)[None], moves[:-1]])
        changes = torch.cat([((left - last_left) * seen)[None], changes[:-1]])
        gamma = self._combination(h, left, changes)
        ahead = h + left - ((moves + changes) * gamma).sum(0)
        return (ahead, h, left, moves, changes, torch.ones_like(seen))

    def _combination(self, h: Tensor, left: Tensor, changes: Tensor) -> Tensor:
        """γ, of shape (m, ..., 1, 1): the normal equations of every signal, m × m."""
        rows = changes.flatten(-2).movedim(0, -2)  # (..., m, nodes · features)
        gram, right = rows @ rows.mT, rows @ left.flatten(-2)[..., None]
        share = default_tolerance(left.dtype) if self.ridge is None else self.ridge
        trace, limits = gram.diagonal(dim1=-2, dim2=-1).sum(-1), torch.finfo(left.dtype)
        # Changes that are nothing but rounding of H count for nothing.
        ridge = share * trace + (_ROUNDING * limits.eps) ** 2 * h.square().sum((-2, -1)) + limits.tiny
        eye = torch.eye(self.memory, dtype=left.dtype, device=left.device)
        gamma = torch.linalg.solve(gram + ridge[..., None, None] * eye, right)
        return gamma.movedim(-2, 0)[..., None]
