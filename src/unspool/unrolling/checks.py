"""What a network is asked for, checked before it is made."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from unspool.algorithm import Algorithm, Exact
from unspool.algorithm.algorithm import check_fit
from unspool.algorithm.exact import check_minimiser, check_tied
from unspool.errors import IncompatibleError, InputError
from unspool.graph import Graph, check_input
from unspool.objective import Activation, Coefficient, Computed, FeatureComputed, Leaf, Objective, Term
from unspool.objective.ends import ends_of
from unspool.objective.width import check_width
from unspool.ops.transforming import transforming
from unspool.unrolling.adjoint import Adjoint, Implicit, Stored


def seen_by(leaf: Leaf, x: Tensor, features: Any) -> Any:
    """What the module of a computed coefficient looks at: the input, or the features in front of the encoder."""
    if not isinstance(leaf, FeatureComputed):
        return x
    if features is None:
        raise IncompatibleError(
            f"{leaf} is computed from features that the network was not given; call net(x, graph, features=...)"
        )
    if len(features.shape) < 2 or features.shape[-2] != x.shape[-2]:
        raise InputError("features", tuple(features.shape), f"a row for each of the {x.shape[-2]} nodes")
    return features


def computed_value(module: nn.Module, leaf: Leaf, x: Any, graph: Graph) -> Tensor:
    """What the module of a computed coefficient makes of an input."""
    value = module(x, graph)
    if not isinstance(value, Tensor):
        raise TypeError(f"{type(module).__name__} returned {type(value).__name__} for {leaf}: expected a tensor")
    return value


def check_signal(objective: Objective, x: Tensor, graph: Graph) -> None:
    """Refuse a signal that does not fit the graph or the metrics."""
    check_input(x, graph)
    check_width(objective, x)


def fitting(objective: Objective, x: Tensor, computed: dict[Leaf, Tensor]) -> dict[Leaf, Tensor]:
    """What modules made of an input, unless it is a metric on other channels."""
    if computed:  # reading a network back looks at it with a signal of one channel
        check_width(objective, x, computed)
    return computed


def refuse_stacked() -> None:
    """torch's checkpoints cannot be recomputed once a vmap is over, and would fail in the backward pass without a word."""
    if not torch.compiler.is_compiling() and transforming():
        raise IncompatibleError(
            "Checkpointed networks do not go under vmap and other torch.func transforms; use adjoint=Stored()"
        )


def with_between(between: nn.Module | None, adjoint: Adjoint | None) -> Adjoint | None:
    """Perturbed steps are stored: they are no polynomial, and a recomputation would be perturbed anew."""
    if between is None:
        return adjoint
    if not isinstance(adjoint, Stored | None):
        raise IncompatibleError(f"a module between the layers does not go with {adjoint}; use adjoint=Stored()")
    return Stored()


def checked_depth(algorithm: Algorithm, depth: Any) -> int:
    """The number of layers that an algorithm is asked for."""
    if isinstance(algorithm, Exact):
        if depth not in (None, 1):
            raise ValueError(f"Exact reaches the minimiser in one step, so depth={depth} has no meaning; leave it out")
        return 1
    if depth is None:
        raise ValueError(f"unroll needs a depth: how many steps of {algorithm.name} the network takes")
    whole = isinstance(depth, int | float) and not isinstance(depth, bool) and math.isfinite(depth)
    if not whole or int(depth) != depth or depth < 1:
        raise InputError("depth", depth, "a whole number of at least 1")
    return int(depth)


def check_network(algorithm: Algorithm, objective: Objective, depth: int) -> None:
    """Refuse an objective that an algorithm cannot minimise, now or after training has moved its coefficients."""
    check_fit(algorithm, objective)
    pulls = [
        (term.formula(), weight)
        for term in (*objective.proximable_terms, *objective.composite_terms)
        if (weight := _weight_of(term)) is not None
    ]
    for formula, weight in pulls:
        _check_sign(weight, f"the weight {weight} of {formula}", "the term has no proximal operator", depth)
    for rule in (algorithm, getattr(algorithm, "inner", None)):
        for name in ("step", "rho"):
            value = getattr(rule, name, None)
            if pulls and isinstance(value, Coefficient):
                what, why = f"{name}={value} of {type(rule).__name__}", f"{pulls[0][0]} has no proximal step"
                _check_sign(value, what, why, depth)


def _weight_of(term: Term) -> Coefficient | None:
    """The weight of a term that has a proximal operator as long as it is not negative; nothing is known of what a module will compute."""
    weight = getattr(term, "weight", None)
    judges_itself = type(term).is_convex not in (Term.is_convex, Activation.is_convex)
    if (
        judges_itself
        or not isinstance(weight, Coefficient)
        or any(isinstance(leaf, Computed) for leaf in weight.leaves)
    ):
        return None
    return weight


def _check_sign(value: Coefficient, what: str, why: str, depth: int) -> None:
    """Refuse a coefficient that may fall below 0, by more than rounding."""
    lowest = ends_of(value, depth)[0]
    if lowest >= -1e-12:
        return
    learnt = [leaf for leaf in value.leaves if leaf.learnt]
    if not learnt:
        number = f"{lowest:.4g}".replace("-", "−", 1)
        raise IncompatibleError(f"{what} falls to {number}, where {why}; keep it at 0 or above")
    way = f"give {' and '.join(map(str, learnt))} a range that rules it out, by within=(low, high)"
    if isinstance(value, Leaf):
        way = "declare it with within=(0, None)"
    raise IncompatibleError(f"{what} may train below 0, where {why}; {way}")


def check_exact(algorithm: Exact, adjoint: Adjoint | None) -> None:
    """Refuse steps and adjoints that a jump to the minimiser does not have."""
    if type(algorithm).update is not Exact.update:
        raise IncompatibleError(
            f"{algorithm.name} writes an update of its own, but Exact jumps to the minimiser without steps; inherit from Algorithm"
        )
    if adjoint is not None and not isinstance(adjoint, Implicit):
        raise IncompatibleError(
            f"Exact has no steps to differentiate, so {adjoint} does not fit; use adjoint=Implicit()"
        )


def check_implicit(objective: Objective, algorithm: Algorithm, leaves: tuple[Leaf, ...]) -> None:
    """Refuse a network that cannot go to its minimiser."""
    check_minimiser(objective)
    if isinstance(algorithm, Exact):
        check_tied(leaves, "Exact reaches one minimiser", "tie it")
    else:
        check_tied(leaves, "Implicit differentiates one minimiser", "tie it or use another adjoint")


def names_of(leaves: tuple[Leaf, ...]) -> dict[Leaf, str]:
    """A name for every coefficient, each its own."""
    names: dict[Leaf, str] = {}
    for leaf in leaves:
        name = leaf.name or leaf.letter
        if name in names.values() and leaf.name is not None:
            raise ValueError(
                f"two different coefficients are both named {name}: give each its own name, or use one object for both"
            )
        base, count = name, 2
        while name in names.values():
            name, count = f"{base}{count}", count + 1
        if "." in name:
            raise ValueError(f"the coefficient name {name!r} holds a dot, which parameters cannot; rename it")
        names[leaf] = name
    return names


def values_by_layer(raw: dict[Leaf, Tensor], depth: int) -> list[dict[Leaf, Tensor]]:
    """The raw parameters of each layer, cut apart at once: the gradient of one layer's share alone is as large as that of all."""
    each = {leaf: value.unbind(0) if leaf.per_layer else (value,) * depth for leaf, value in raw.items()}
    return [{leaf: parts[k] for leaf, parts in each.items()} for k in range(depth)]


def layers_of(leaf: Leaf, raw: Tensor) -> Tensor:
    """The values that a parameter stands for, with a first dimension of layers where each layer has its own."""
    return torch.stack([leaf.value_of(one) for one in raw]) if leaf.per_layer else leaf.value_of(raw)
