"""Coefficients that a module computes from what is given: the features and the graph."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError
from unspool.graph import Graph
from unspool.objective.coefficient import INITIAL, Leaf, Values


class Computed(Leaf):
    """A coefficient that a module computes from X and the graph, once in every forward pass: learnt edges, gates, attention.

    The network owns the module: its parameters are in the state dict, train with the rest, and stack in studies. The value
    does not depend on H, so a problem stays what it is: a quadratic term with computed weights is still quadratic.

    Args:
        module: called as ``module(x, graph)``; returns one number for each edge (..., edges), node (..., nodes, 1) or entry,
            as the term asks for; leading dimensions are those of x.
        name: how it is printed and what its parameters are called.

    Example:
        >>> import torch, unspool as us
        >>> signs = us.Computed(us.nn.EdgeScore(3), name="w(X)")
        >>> net = us.unroll(us.Fidelity(0.5) + us.EdgeSmoothness(signs, 0.25), us.GradientDescent(step=0.5), depth=2)
        >>> net
        Unrolled(
          0.5 ‖H − X‖²  +  0.25 Σₑ w(X)ₑ ‖(B H)ₑ‖²
          2 × GradientDescent, from Input(), adjoint Stored()
          learns w(X) (EdgeScore, 97)
        )
        >>> net(torch.eye(3), us.graph.path(3)).shape
        torch.Size([3, 3])
    """

    def __init__(self, module: nn.Module, *, name: str | None = None) -> None:
        super().__init__(name, per_layer=False)
        if not isinstance(module, nn.Module):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"Computed({module!r}): expected a torch.nn.Module that is called with (x, graph)")
        self.module = module

    def start(self) -> Tensor:
        """Nothing is known before there is an input; terms that are looked at without one see a single 1."""
        return torch.ones(())

    def value_of(self, raw: Tensor) -> Tensor:
        """What the module has computed."""
        return raw

    @property
    def learnt(self) -> bool:
        """Whether the module has parameters that train."""
        return any(p.requires_grad for p in self.module.parameters())

    @property
    def letter(self) -> str:
        """w."""
        return "w"

    def __repr__(self) -> str:
        return f"Computed({type(self.module).__name__}, {self})"


class FeatureComputed(Computed):
    """A coefficient that a module computes from the features in front of the encoder, where :class:`Computed` sees what the encoder made of them.

    What the data say by themselves cannot be trained away: an edge between two nodes that have nothing in common stays one. A
    :class:`~unspool.models.Model` hands its features on by itself; a network alone is called as ``net(x, graph, features=...)``.

    Args:
        module: called as ``module(features, graph)``, with a tensor or sparse features.
        name: how it is printed.

    Example:
        >>> import torch, unspool as us
        >>> trust = us.FeatureComputed(us.nn.EdgeTrust(us.Capped(2.0)), name="w(features)")
        >>> net = us.unroll(us.Fidelity(1.0) + us.EdgeSmoothness(trust, 4.0), us.Jacobi(), depth=3)
        >>> net(torch.eye(3), us.graph.path(3), features=torch.rand(3, 8)).shape
        torch.Size([3, 3])
        >>> net(torch.eye(3), us.graph.path(3))
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: w(features) is computed from features that the network was not given; call net(x, graph, features=...)
    """

    def __repr__(self) -> str:
        return f"FeatureComputed({type(self.module).__name__}, {self})"


@torch.no_grad()
def values_at(leaves: Iterable[Leaf], x: Tensor, graph: Graph, values: Values = INITIAL) -> Values:
    """Values without a network: those given, or what leaves start with; computed ones are computed here, in the dtype of X.

    Example:
        >>> import torch, unspool as us
        >>> score = us.Computed(us.nn.EdgeScore(2))
        >>> values_at([score], torch.eye(2), us.graph.path(2))[score].shape
        torch.Size([1])
    """
    leaves = tuple(leaves)
    computed = [leaf for leaf in leaves if isinstance(leaf, Computed)]
    if not computed or values is not INITIAL:
        return values
    made: dict[Leaf, Tensor] = {leaf: values[leaf] for leaf in leaves}
    for leaf in computed:
        if isinstance(leaf, FeatureComputed):
            raise IncompatibleError(
                f"{leaf} is computed from features that are not known here; unroll a network and call net(x, graph, features=...)"
            )
        made[leaf] = copy.deepcopy(leaf.module).to(x)(x, graph)
    return made


__all__ = ["Computed", "FeatureComputed", "values_at"]
