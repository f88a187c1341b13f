"""TWIRLS: iterative reweighting as attention (Yang et al., 2021)."""

from __future__ import annotations

from enum import Enum

from unspool.algorithm import Jacobi
from unspool.models import usual_settings as usual
from unspool.models.model import Model
from unspool.nn import Perceptron
from unspool.objective import Capped, EdgePenalty, Fidelity, Log, Power
from unspool.objective.edge_penalty import Penalty
from unspool.settings import log_uniform, setting, uniform
from unspool.unrolling import unroll


class Robust(Enum):
    """How a large difference across an edge is forgiven.

    ``LOG``: weight 1/(1 + s/τ) for a squared length s. ``CAPPED``: max(0, 1 − s/τ), cut from τ on. ``NORM``: ½(s + τ²)^(−½), that of ‖·‖.
    """

    LOG = "log"
    CAPPED = "capped"
    NORM = "norm"


class TWIRLS(Model):
    r"""Smoothing that lets go of edges whose ends differ: :math:`\lVert H-X\rVert^2 + \lambda\sum_e \rho(\lVert (BH)_e\rVert^2)`.

    One layer is a Jacobi step of size a on the quadratic that touches ρ at H. On a graph that is not normalised,
    :math:`H \leftarrow (1-a)H + a(\lambda D_\Gamma + I)^{-1}(\lambda(\Gamma\circ A)H + X)` with :math:`\Gamma_e = \rho'(\lVert (BH)_e\rVert^2)`, as
    its authors write it. Models are given normalised graphs by default, and then the same derivation holds with
    :math:`w_{ij}/\sqrt{d_id_j}` for :math:`a_{ij}` and :math:`D_\Gamma` the diagonal of :math:`B^\top\Gamma B`. For the authors' layer give
    ``Graph.from_edges(..., normalise=Normalisation.NONE)``. :func:`unspool.explain.edge_weights` shows Γ. Needs an undirected graph.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.TWIRLS(5, 3, smoothness=2.0, threshold=0.5)
        >>> print(model.objective)
        ‖H − X‖²  +  2 Σₑ 0.5 log(1 + ‖(B H)ₑ‖²/0.5)
        >>> model(torch.eye(5), us.graph.ring(5, normalise=us.Normalisation.NONE)).shape
        torch.Size([5, 3])
    """

    title = "iterative reweighting as attention (Yang et al., 2021)"
    derivation = "K Jacobi steps of size a on the quadratic that touches ρ at H"
    keeps_laplacian = True

    hidden: int = usual.width()
    depth: int = usual.depth(8, "K, the number of steps")
    smoothness: float = setting(
        4.0, "λ, the weight of differences across edges", above=0, search=log_uniform(0.5, 20.0)
    )
    penalty: Robust = setting(Robust.LOG, "ρ, how large differences are forgiven")
    threshold: float = setting(
        1.0, "τ, the squared length at which forgiving sets in", above=0, search=log_uniform(0.01, 10.0)
    )
    step: float = setting(1.0, "a, the share of a full step", above=0, at_most=1, search=uniform(0.3, 1.0))
    dropout: float = usual.dropout()

    def build(self) -> None:
        """Make the parts."""
        self.p_pre = Perceptron([self.in_features, self.hidden, self.out_features], self.dropout)
        objective = Fidelity(1.0) + EdgePenalty(robust_penalty(self.penalty, self.threshold), self.smoothness)
        self.propagation = unroll(objective, Jacobi(step=self.step), self.depth)


def robust_penalty(kind: Robust, threshold: float) -> Penalty:
    """ρ of a kind, with its threshold."""
    if kind is Robust.NORM:
        return Power(1.0, threshold)
    return Log(threshold) if kind is Robust.LOG else Capped(threshold)
