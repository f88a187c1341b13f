"""SignedGNN: edges that learn whether their ends should agree or differ."""

from __future__ import annotations

from torch import nn

from unspool.algorithm import GradientDescent
from unspool.models import usual_settings as usual
from unspool.models.model import Model
from unspool.nn import Dropout, EdgeScore, Linear, Perceptron
from unspool.objective import Computed, EdgeSmoothness, Fidelity
from unspool.settings import setting, uniform
from unspool.unrolling import unroll


class SignedGNN(Model):
    r"""Hidden features are smoothed along some edges and sharpened along others: :math:`\alpha\lVert H-X\rVert^2 + \sum_e w_e\lVert (BH)_e\rVert^2`.

    The weight :math:`w_e = \tanh s(x_i, x_j)` of an edge is computed from the encoded features of its ends, symmetrically, once for all layers:
    positive weights pull the ends together, negative ones push them apart, which a graph of unlike neighbours (heterophily) asks for.
    One layer is a gradient step, :math:`H \leftarrow H - 2\eta B^\top\mathrm{diag}(w)BH - 2\eta\alpha(H-X)`. Where many weights are negative the
    problem has no minimiser, and K steps are what it means. Needs an undirected, normalised graph.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.SignedGNN(5, 3, alpha=0.5)
        >>> print(model.objective)
        0.5 ‖H − X‖²  +  Σₑ wₑ ‖(B H)ₑ‖²
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "edges that learn whether their ends should agree or differ"
    derivation = "K gradient steps with one learnt signed weight for each edge (the sentence after eq. (2), erratum 7)"

    hidden: int = usual.width("width of the features that travel")
    depth: int = usual.depth(4, "K, the number of steps")
    alpha: float = setting(0.5, "α, how strongly a node keeps its own features", at_least=0, search=uniform(0.1, 1.0))
    step: float = setting(0.25, "η, the step size", above=0, search=uniform(0.1, 0.5))
    dropout: float = usual.dropout(meaning="rate on the inputs of the first and the last layer")

    def build(self) -> None:
        """Make the parts."""
        self.p_pre = Perceptron([self.in_features, self.hidden], self.dropout, open_end=False)
        signs = Computed(EdgeScore(self.hidden), name="w")
        objective = Fidelity(self.alpha) + EdgeSmoothness(signs)
        self.propagation = unroll(objective, GradientDescent(step=self.step), self.depth)
        self.p_pos = nn.Sequential(Dropout(self.dropout), Linear(self.hidden, self.out_features))
