"""FairGNN: predictions whose means agree between two groups (fair message passing, Jiang et al., 2022)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from unspool.errors import InputError
from unspool.graph import Graph, check_input
from unspool.models import usual_settings as usual
from unspool.models.model import Model
from unspool.nn import Perceptron
from unspool.objective import Fidelity, Objective, Smoothness
from unspool.ops import SparseFeatures, features_of
from unspool.ops.spmm import spmm
from unspool.ops.stored_hops import StoredHops
from unspool.settings import log_uniform, setting


class FairGNN(Model):
    r"""Smoothing that closes the gap between two groups: :math:`\tfrac12\lVert H-X\rVert^2 + \tfrac{\lambda_2}{2}\lVert BH\rVert^2 + \lambda_1\lVert\Delta\,\mathrm{softmax}(H)\rVert_1`.

    Δ takes the mean of one group minus the mean of the other, so the last term is how far their mean predictions lie apart. The group of a node
    is read from one column of the features, ``group``: nodes with a positive value there against all others. Put the sensitive attribute into
    that column; it is refused when one of the groups is empty. The encoder sees the column, too. Views of an upper level
    (:mod:`unspool.train.upper`) that lose nodes or entries of X leave it as it is, so every node stays in its group.

    One layer, with :math:`\gamma = 1/(1+\lambda_2)` and :math:`\beta = 1/(2\gamma)`: :math:`Y = \gamma X + (1-\gamma)AH`,
    :math:`\bar H = Y - \gamma\,\partial_H\langle u, \Delta\,\mathrm{softmax}(H)\rangle`, then u moves to :math:`u + \beta\Delta\,\mathrm{softmax}(\bar H)`,
    cut to ±λ₁, and :math:`H \leftarrow Y - \gamma\,\partial_H\langle u, \Delta\,\mathrm{softmax}(H)\rangle`: ElasticGNN's primal-dual step with the operator
    linearised at the iterate, and so a step on no single convex problem.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.FairGNN(5, 3, lambda1=2.0, lambda2=4.0)
        >>> print(model.objective)
        0.5 ‖H − X‖²  +  2 ‖B H‖²   (and 2 ‖Δ softmax(H)‖₁, linearised at every step)
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
        >>> model(torch.ones(5, 5), us.graph.ring(5))
        Traceback (most recent call last):
            ...
        unspool.errors.InputError: group=0: expected a feature that is positive at some nodes and not at others; ...
    """

    title = "predictions whose means agree between two groups (Jiang et al., 2022)"
    derivation = "K primal-dual steps of size 1/(1 + λ₂) with Δ softmax linearised at each H"

    hidden: int = usual.width()
    depth: int = usual.depth(5, "K, the number of steps")
    lambda1: float = setting(3.0, "λ₁, the weight of the gap between groups", at_least=0, search=log_uniform(0.1, 30.0))
    lambda2: float = setting(3.0, "λ₂, the weight of squared differences", at_least=0, search=log_uniform(0.1, 10.0))
    group: int = setting(0, "the feature whose positive values mark one of the two groups", at_least=0)
    dropout: float = usual.dropout()

    def build(self) -> None:
        """Make the parts."""
        if self.group >= self.in_features:
            raise InputError("group", self.group, f"the number of a feature, from 0 to {self.in_features - 1}")
        encode = Perceptron([self.in_features, self.hidden, self.out_features], self.dropout)
        self.p_pre = WithFeature(encode, self.group)
        self.propagation = FairSteps(self.depth, self.lambda1, self.lambda2)

    @property
    def objective(self) -> Objective:
        """The smooth part, with a note on the other."""
        note = f"and {self.lambda1:g} ‖Δ softmax(H)‖₁, linearised at every step"
        return replace(Fidelity(0.5) + Smoothness(self.lambda2 / 2), note=note)

    @property
    def kept_features(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The group's."""
        return (self.group,)

    def forward(self, x: Any, graph: Any = None, edge_weight: Any = None, rows: Tensor | None = None) -> Tensor:
        """Predictions for every node, or some; refused where one of the groups is empty."""
        if isinstance(x, StoredHops):
            return super().forward(x, graph, edge_weight, rows)
        x = features_of(x)
        if len(x.shape) >= 2 and x.shape[-1] == self.in_features and x.dtype.is_floating_point:
            _check_groups(x, self.group)
        return super().forward(x, graph, edge_weight, rows)


class WithFeature(nn.Module):
    """An encoder that hands on one raw feature in a last channel of its own.

    Example:
        >>> import torch
        >>> WithFeature(torch.nn.Linear(2, 3), 1)(torch.tensor([[0.0, 7.0]]))[:, -1]
        tensor([7.], grad_fn=...)
    """

    def __init__(self, encode: nn.Module, feature: int) -> None:
        super().__init__()
        self.encode, self.feature = encode, feature

    def forward(self, x: Tensor | SparseFeatures) -> Tensor:
        """The code of x, and the feature beside it."""
        code = self.encode(x)
        return torch.cat([code, _column(x, self.feature).to(code.dtype)], dim=-1)


class FairSteps(nn.Module):
    """K steps of fair message passing on all channels but the last, whose positive values mark one of the two groups.

    Example:
        >>> import torch, unspool as us
        >>> x = torch.tensor([[1.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
        >>> for strength in (0.0, 10.0):
        ...     h = FairSteps(50, lambda1=strength, lambda2=0.1)(x, us.graph.path(4)).softmax(-1)
        ...     print(f"{(h[:2].mean(0) - h[2:].mean(0)).abs().max():.2f}")
        0.45
        0.00
    """

    def __init__(self, depth: int, lambda1: float, lambda2: float) -> None:
        super().__init__()
        self.depth, self.lambda1, self.lambda2 = depth, lambda1, lambda2

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """H after K steps."""
        check_input(x, graph)
        x, between = x[..., :-1], difference(x[..., -1:] > 0, x.dtype)
        gamma = 1 / (1 + self.lambda2)
        h, u = x, x.new_zeros(*x.shape[:-2], 1, x.shape[-1])
        for _ in range(self.depth):
            smooth = gamma * x + (1 - gamma) * spmm(graph, h)
            ahead = smooth - gamma * slope(h, between, u)
            gap = (between * ahead.softmax(-1)).sum(-2, keepdim=True)
            u = (u + gap / (2 * gamma)).clamp(-self.lambda1, self.lambda1)
            h = smooth - gamma * slope(h, between, u)
        return h


def difference(first: Tensor, dtype: torch.dtype) -> Tensor:
    """Δ as a column: 1/n₁ in the first group, −1/n₀ in the other; zero where one of them is empty.

    Example:
        >>> import torch
        >>> difference(torch.tensor([[True], [False], [False]]), torch.float32).flatten()
        tensor([ 1.0000, -0.5000, -0.5000])
    """
    counts = [part.sum(-2, keepdim=True).double() for part in (first, ~first)]  # bfloat16 cannot count beyond 256
    both = (counts[0] > 0) & (counts[1] > 0)
    row = first.double() / counts[0].clamp_min(1) - (~first).double() / counts[1].clamp_min(1)
    return (row * both).to(dtype)


def slope(h: Tensor, between: Tensor, u: Tensor) -> Tensor:
    """∂⟨u, Δ softmax(H)⟩ / ∂H: with P = softmax(H) and G = Δᵀu, row by row P ⊙ (G − ⟨P, G⟩).

    Example:
        >>> import torch
        >>> h, between, u = torch.zeros(2, 2), torch.tensor([[1.0], [-1.0]]), torch.tensor([[1.0, 0.0]])
        >>> slope(h, between, u)
        tensor([[ 0.2500, -0.2500],
                [-0.2500,  0.2500]])
    """
    p, g = h.softmax(-1), between * u
    return p * (g - (p * g).sum(-1, keepdim=True))


def _column(x: Tensor | SparseFeatures, feature: int) -> Tensor:
    if not isinstance(x, SparseFeatures):
        return x[..., feature : feature + 1]
    pick = torch.zeros(x.shape[-1], 1, dtype=x.dtype, device=x.device)
    pick[feature] = 1
    return x @ pick


def _check_groups(x: Tensor | SparseFeatures, feature: int) -> None:
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return
    first = _column(x, feature) > 0
    try:
        told = bool((first.any(-2) & ~first.all(-2)).all())
    except RuntimeError:  # stacked inputs cannot be looked into
        return
    if not told:
        raise InputError(
            "group",
            feature,
            "a feature that is positive at some nodes and not at others",
            "put the sensitive attribute into a column of the features and give its number",
        )
