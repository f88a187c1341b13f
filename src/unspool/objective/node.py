"""Terms that look at nodes one by one, or at all of them together: weights of nodes, missing entries, labels, the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.errors import InputError
from unspool.graph.subgraph import read_nodes
from unspool.objective import channel
from unspool.objective.channel import Map, largest_size
from unspool.objective.coefficient import Fixed, as_coefficient
from unspool.objective.quadratic import squared_norm
from unspool.objective.term import Given, SmoothTerm

_ONE = Fixed(1.0)


@dataclass(frozen=True, eq=False)
class NodeFidelity(SmoothTerm):
    r"""Stay close to the input, at some nodes or entries more than at others: :math:`\alpha\sum_{ij} c_{ij}(h_{ij} - x_{ij})^2`.

    A zero weight is a missing value, which the other terms fill in from its neighbours.

    Args:
        nodes: c, of shape (nodes,), (nodes, 1) or (nodes, features): a tensor, array or list, ``Learnable(tensor)`` or
            ``Computed(module)``; True and False count as 1 and 0. For a stack of signals the last two may have its leading dimensions before them.
        weight: α, a number or coefficient.
        target: Y in the place of X, of the shape of X: labels, say.

    Example:
        >>> import torch, unspool as us
        >>> seen = torch.tensor([True, False, True])
        >>> objective = us.NodeFidelity(seen) + us.Smoothness(0.001)
        >>> print(objective)
        ‖C ⊙ (H − X)‖²  +  0.001 ‖B H‖²
        >>> graph = us.graph.path(3, normalise=us.Normalisation.NONE)
        >>> us.minimise(objective, torch.tensor([[1.0], [99.0], [3.0]]), graph).flatten().numpy().round(2)
        array([1., 2., 3.], dtype=float32)
    """

    nodes: Any
    weight: Any = _ONE
    target: Any = None
    affine_gradient = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", as_coefficient(self.nodes))
        object.__setattr__(self, "weight", as_coefficient(self.weight))
        if not self.weight.number:
            raise TypeError(
                "the weight of NodeFidelity is not a single number; weights of nodes are its first argument"
            )
        if self.target is not None:
            target = torch.as_tensor(self.target).detach().clone()
            if not bool(torch.isfinite(target).all()):
                raise InputError("target", "NaN or inf", "finite numbers; where one is missing, any with a weight of 0")
            object.__setattr__(self, "target", target)

    def entry_weights(self, given: Given) -> Tensor:
        """α c, of shape (nodes, 1) or (nodes, features)."""
        c, (*stack, nodes, features) = given[self.nodes], given.x.shape
        shape = tuple(c.shape) if isinstance(c, Tensor) else "a number"
        if isinstance(c, Tensor) and shape == (nodes,):
            return c[:, None] * given[self.weight]
        if not isinstance(c, Tensor) or c.shape[-2:] not in ((nodes, 1), (nodes, features)):
            shapes = f"({nodes},) or ({nodes}, 1) or ({nodes}, {features})"
            raise InputError("nodes", shape, f"weights of shape {shapes} for this input")
        if shape[:-2] not in ((), tuple(stack)):
            raise InputError("nodes", shape, f"no leading dimensions but those of the input, {tuple(given.x.shape)}")
        return c * given[self.weight]

    def _offset(self, h: Tensor, given: Given) -> Tensor:
        if self.target is None:
            return h - given.x
        if tuple(self.target.shape) != tuple(given.x.shape[-2:]):
            raise InputError("target", tuple(self.target.shape), f"the shape of X, {tuple(given.x.shape[-2:])}")
        return h - self.target.to(h)

    def value(self, h: Tensor, given: Given) -> Tensor:
        """α Σ c (h − x)²."""
        return (self._offset(h, given).square() * self.entry_weights(given)).sum((-2, -1))

    def gradient(self, h: Tensor, given: Given) -> Tensor:
        """2α c ⊙ (H − X)."""
        return 2 * self._offset(h, given) * self.entry_weights(given)

    def lipschitz(self, given: Given) -> Map:
        """2 max |α c|."""
        return 2 * largest_size(self.entry_weights(given), own=2)

    def diagonal(self, h: Tensor, given: Given) -> Map:
        """2α c: the Hessian is this diagonal."""
        return 2 * self.entry_weights(given)

    def is_convex(self, given: Given) -> bool:
        """Whether no weight is negative."""
        return bool((self.entry_weights(given) >= 0).all())

    def formula(self) -> str:
        """α ‖C ⊙ (H − X)‖², where C holds the roots of the weights."""
        return squared_norm(f"C ⊙ (H − {'X' if self.target is None else 'Y'})", self.weight, _ONE)


def labels(labels: Any, nodes: Any, classes: int, weight: Any = 1.0) -> NodeFidelity:
    """Known labels as a term, μ‖S (H − Y)‖²: Y one-hot, S the nodes whose labels may be used.

    Args:
        labels: a class for every node; what stands at other nodes than ``nodes`` is not looked at.
        nodes: numbers of the nodes whose labels may be used (training nodes), each once, or a mask over all nodes.
        classes: how many classes there are: the width of H.
        weight: μ.

    Example:
        >>> import torch, unspool as us
        >>> known = us.objective.labels(torch.tensor([1, 0, 0]), torch.tensor([0, 2]), classes=2)
        >>> graph = us.graph.path(3)
        >>> h = us.minimise(known + us.Smoothness(1.0) + us.Ridge(0.01), torch.zeros(3, 2), graph)
        >>> h.argmax(-1)[[0, 2]]
        tensor([1, 0])
    """
    labels = torch.as_tensor(labels)
    if labels.ndim != 1 or labels.is_floating_point() or labels.dtype == torch.bool:
        kind = str(labels.dtype).removeprefix("torch.")
        raise InputError("labels", f"{kind} of shape {tuple(labels.shape)}", "the number of a class for every node")
    nodes = read_nodes(nodes, labels.numel())
    known = labels.cpu().long()[nodes]
    if bool(((known < 0) | (known >= classes)).any()):
        raise InputError(
            "labels", [int(known.min()), int(known.max())], f"classes from 0 to {classes - 1} at the known nodes"
        )
    target = torch.zeros(labels.numel(), classes)
    target[nodes, known] = 1.0
    seen = torch.zeros(labels.numel())
    seen[nodes] = 1.0
    return NodeFidelity(seen, weight, target)


@dataclass(frozen=True, eq=False)
class Spread(SmoothTerm):
    r"""Distance from the mean of all nodes: :math:`\delta\sum_i\lVert h_i - \bar h\rVert^2`, at O(nodes · features).

    With δ < 0 every node is pushed away from all others. It is the smoothness of the complete graph,
    :math:`\tfrac{1}{2n}\sum_{ij}\lVert h_i-h_j\rVert^2`: on a graph that is not normalised, ``Spread(-r) + Smoothness(r/n)``
    repels just the nodes that are not neighbours (the complement graph).

    Args:
        weight: δ, a number or coefficient; negative weights repel.

    Example:
        >>> import torch, unspool as us
        >>> term = us.Spread(1.0)
        >>> x = torch.tensor([[1.0], [3.0]])
        >>> print(term, "=", float(term.value(x, us.Given(x, us.graph.path(2)))))
        ‖H − 1 h̄ᵀ‖² = 2.0
    """

    weight: Any = _ONE
    affine_gradient = True
    uses_input = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_coefficient(self.weight))
        if not self.weight.number:
            raise TypeError("the weight of Spread is not a single number")

    def value(self, h: Tensor, given: Given) -> Tensor:
        """δ Σ ‖hᵢ − h̄‖²."""
        return (h - h.mean(-2, keepdim=True)).square().sum((-2, -1)) * given[self.weight]

    def gradient(self, h: Tensor, given: Given) -> Tensor:
        """2δ (H − 1 h̄ᵀ)."""
        return 2 * (h - h.mean(-2, keepdim=True)) * given[self.weight]

    def lipschitz(self, given: Given) -> Map:
        """2 |δ|."""
        return 2 * channel.spectral_norm(given[self.weight])

    def formula(self) -> str:
        """δ ‖H − 1 h̄ᵀ‖²."""
        return squared_norm("H − 1 h̄ᵀ", self.weight, _ONE)


__all__ = ["NodeFidelity", "Spread", "labels"]
