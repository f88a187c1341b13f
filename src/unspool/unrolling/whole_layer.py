"""Layers that are one op: a step with one matrix, the ReLU that follows it, and the dropout before the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from unspool.algorithm import Problem, ProximalGradient
from unspool.algorithm.algorithm import Algorithm
from unspool.objective import NonNegative
from unspool.ops.dropout import Mask


def run_layers(
    algorithm: Algorithm, problem: Callable[[int, Tensor], Problem], state: Any, layers: range, x: Tensor, between: nn.Module | None
) -> Any:  # fmt: skip
    """The state after some layers of a rule.

    Args:
        algorithm: the rule.
        problem: the problem of a layer on an input.
        state: before the first of them.
        layers: their numbers.
        x: the input.
        between: the module that perturbs the iterate before each layer.
    """
    dropped = False  # whether the layer before ended in the dropout of this one
    for k in layers:
        if between is not None and not dropped:
            state = (between(state[0]), *state[1:])
        here, last = problem(k, x), k == layers[-1]
        found = whole_layer(algorithm, here, state, None if last else between)
        dropped = found is not None and not last
        state, x = (algorithm.update(state, here), x) if found is None else found
    return state


def whole_layer(
    algorithm: Algorithm, problem: Problem, state: Any, between: nn.Module | None
) -> tuple[tuple[Tensor, ...], Tensor] | None:
    """The state after one layer and the dropout before the next, and X for that one; None where the rule takes its own steps.

    A proximal gradient step of one matrix under H ≥ 0 is ReLU((s S H + g X) T). Each such layer hands X on to the next, so
    that the gradient of X is added up on the way back.

    Args:
        algorithm: the rule.
        problem: of this layer.
        state: before it.
        between: the module that comes before the next layer, if any does.
    """
    step = problem.fused
    if step is None or step.one is None or not step.h.zero or type(algorithm) is not ProximalGradient:
        return None
    only = [type(term) for term in problem.objective.proximable_terms] == [NonNegative]
    if not only or problem.given.graph.scale != 1.0 or not _known(between):
        return None
    # Trap: the call of a dropout is counted, so it is asked for only when the layer is sure to be taken.
    weight = step.one.weight(state[0], problem.given)
    if weight is None:
        return None
    drop: Mask | None = None if between is None else between.draw()  # type: ignore[operator]
    h, x = step.one.layer(state[0], problem.given, weight, True, drop)
    return (h,), x


def _known(between: nn.Module | None) -> bool:
    """Whether a module is dropout that says what it would do, and nobody looks at it."""
    if between is None:
        return True
    watched = between._forward_hooks or between._forward_pre_hooks  # pyright: ignore[reportPrivateUsage]
    return "draw" in vars(type(between)) and not watched
