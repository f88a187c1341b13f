"""The alternating direction method of multipliers, for penalties on linear images of H."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unspool.algorithm.algorithm import Algorithm, Problem, State, require_count, times
from unspool.errors import InputError
from unspool.objective import Fixed, Kind
from unspool.objective.channel import Map
from unspool.objective.coefficient import as_coefficient


@dataclass(frozen=True, eq=False)
class ADMM(Algorithm):
    r"""Minimise f(H) + r(H) + Σ gᵢ(Kᵢ H) with a copy Zᵢ = Kᵢ H for each composite term and a scaled dual variable Uᵢ.

    Linearised ADMM (Parikh and Boyd 2014, Section 4.4.2): the step in H is a proximal gradient step on the augmented
    Lagrangian, or several, and no linear system is solved.

    .. math:: H \leftarrow \operatorname{prox}_{\tau r}\Bigl(H - \tau\bigl(\nabla f(H) + \rho\textstyle\sum_i K_i^\top(K_i H - Z_i + U_i)\bigr)\Bigr),
        \quad Z_i \leftarrow \operatorname{prox}_{g_i/\rho}(K_i H + U_i),\quad U_i \leftarrow U_i + K_i H - Z_i

    with :math:`\tau = 1/(L + \rho\sum_i\lVert K_i\rVert^2)`. It converges for every ρ > 0 where the objective is convex; ρ sets
    how much is put on Z = K H rather than on the objective on the way. Without composite terms it is proximal gradient.

    Args:
        rho: ρ, a positive number or coefficient.
        steps: how many steps in H are taken between two steps in Z and U; many come close to ADMM with an exact H.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Fidelity(0.5) + us.Smoothness(0.5) + us.EdgeSparse(0.3)
        >>> net = us.unroll(objective, us.ADMM(), depth=400)
        >>> x, graph = torch.eye(6), us.graph.ring(6)
        >>> torch.allclose(net(x, graph), us.minimise(objective, x, graph), atol=1e-4)
        True
    """

    handles = (Kind.SMOOTH, Kind.PROXIMABLE, Kind.COMPOSITE)
    keeps_duals = True
    rho: Any = 1.0
    steps: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", as_coefficient(self.rho))
        if not self.rho.number or (isinstance(self.rho, Fixed) and not float(self.rho.value) > 0):
            raise InputError("rho", self.rho, "a positive number, or a coefficient that is one")
        require_count("steps", self.steps)

    def init(self, h: Any, problem: Problem) -> State:
        """The iterate, then Z = K H for every composite term, then U = 0 for each."""
        images = [term.operator(h, problem.given.graph) for term in problem.composite_terms]
        return (h, *images, *(image * 0.0 for image in images))

    def update(self, state: State, problem: Problem) -> State:
        """Steps in H, then one in every Z and U."""
        h, *rest = state
        terms, graph = problem.composite_terms, problem.given.graph
        copies, duals = rest[: len(terms)], rest[len(terms) :]
        rho, step = problem[self.rho], self.step_size(problem)
        for _ in range(self.steps):
            slope = problem.gradient(h)
            for term, z, u in zip(terms, copies, duals, strict=True):
                slope = slope + rho * term.operator.adjoint(term.operator(h, graph) - z + u, graph)
            h = problem.prox(h - times(slope, step), step)
        images = [term.operator(h, graph) + u for term, u in zip(terms, duals, strict=True)]
        copies = [term.outer_prox(v, 1 / rho, problem.given) for term, v in zip(terms, images, strict=True)]
        return (h, *copies, *(v - z for v, z in zip(images, copies, strict=True)))

    def step_size(self, problem: Problem) -> Map:
        """τ, the size of the steps in H."""
        bound = sum(term.operator.squared_norm(problem.given.graph) for term in problem.composite_terms)
        return 1 / (problem.lipschitz() + problem[self.rho] * bound) if bound else super().step_size(problem)
