"""TrustGNN: edges are believed as far as the features of their ends agree."""

from __future__ import annotations

from unspool.algorithm import Jacobi
from unspool.models import usual_settings as usual
from unspool.models.model import Model
from unspool.models.twirls import Robust, robust_penalty
from unspool.nn import EdgeTrust, Perceptron
from unspool.objective import EdgeSmoothness, FeatureComputed, Fidelity
from unspool.settings import log_uniform, setting, uniform
from unspool.unrolling import unroll


class TrustGNN(Model):
    r"""Smoothing along edges whose ends look alike: :math:`\lVert H-X\rVert^2 + \lambda\sum_e w_e\lVert (BH)_e\rVert^2`, for graphs with wrong edges.

    The weight :math:`w_e = \rho'(\lVert \hat x_i-\hat x_j\rVert^2)` of an edge is what a robust penalty gives to the difference of the *features as they came*, at length
    one. :class:`TWIRLS` looks at the iterate H instead, and there an edge that was let go of comes back: smoothing brings the two ends together,
    whether they belong together or not. The problem is quadratic, so it has one minimiser. One layer is a Jacobi step,
    :math:`h_i \leftarrow (\lambda\sum_j w_{ij}a_{ij}h_j + x_i)/(\lambda\sum_j w_{ij}/d_i + 1)`: a node whose edges are not believed keeps its own prediction.
    With a large threshold all edges count alike. Rows with few entries say little about an edge: with ``smoothings`` their neighbourhoods are
    compared, see :class:`~unspool.nn.EdgeTrust`. Needs an undirected graph.

    Example:
        >>> import torch, unspool as us
        >>> model = us.models.TrustGNN(5, 3, smoothness=4.0)
        >>> print(model.objective)
        ‖H − X‖²  +  4 Σₑ wₑ ‖(B H)ₑ‖²
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "edges are believed as far as the features of their ends agree"
    derivation = "K Jacobi steps; edge weights are those of a robust penalty at the features as they came"
    keeps_laplacian = True

    hidden: int = usual.width()
    depth: int = usual.depth(10, "K, the number of steps")
    smoothness: float = setting(
        9.0, "λ, the weight of differences across edges", above=0, search=log_uniform(1.0, 50.0)
    )
    penalty: Robust = setting(Robust.CAPPED, "ρ, how differences of features are judged")
    threshold: float = setting(
        2.0, "τ, the squared distance of features at which trust ends", above=0, search=uniform(1.0, 4.0)
    )
    smoothings: int = setting(0, "how often features are smoothed before they are compared across edges", at_least=0)
    dropout: float = usual.dropout()

    def build(self) -> None:
        """Make the parts."""
        self.p_pre = Perceptron([self.in_features, self.hidden, self.out_features], self.dropout)
        trust = FeatureComputed(EdgeTrust(robust_penalty(self.penalty, self.threshold), self.smoothings), name="w")
        objective = Fidelity(1.0) + EdgeSmoothness(trust, self.smoothness)
        self.propagation = unroll(objective, Jacobi(), self.depth)
