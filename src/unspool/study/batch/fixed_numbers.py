"""Fixed numbers of propagations that are not linear as tensors, so that trials with different ones share a stack."""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from unspool.algorithm import GradientDescent, Jacobi, PrimalDual, ProximalGradient
from unspool.models import Model
from unspool.objective import (
    Coefficient,
    EdgePenalty,
    EdgeSmoothness,
    EdgeSparse,
    Fidelity,
    Fixed,
    Leaf,
    NonNegative,
    Objective,
    Ridge,
    RowSparseFidelity,
    Schedule,
    Smoothness,
)
from unspool.objective.coefficient import Combined
from unspool.objective.edge_penalty import Penalty
from unspool.unrolling import Stored, Unrolled

#: Parts whose numbers enter as factors and thresholds alone: nothing is decided by looking at them.
_TERMS = (
    Fidelity, Smoothness, Ridge, NonNegative, EdgeSmoothness, EdgeSparse, EdgePenalty, RowSparseFidelity,
)  # fmt: skip
_RULES = (GradientDescent, ProximalGradient, PrimalDual, Jacobi)
#: Fields of penalties that are thresholds; powers decide which formula is used.
_THRESHOLDS = ("scale", "smoothing")


class Held(Leaf):
    """A number that never trains, kept as a tensor beside the parameters.

    Example:
        >>> Held(0.5).start(), Held(0.5).learnt
        (tensor(0.5000, dtype=torch.float64), False)
    """

    def __init__(self, number: float) -> None:
        super().__init__(None, False)
        # Kept in a tensor that the network takes over: what is written out of two networks must not differ in it.
        self._number: float | None = number

    def start(self) -> Tensor:
        """The number."""
        assert self._number is not None
        return torch.tensor(self._number, dtype=torch.float64)

    def forget(self) -> None:
        """Leave the number to the network."""
        self._number = None

    @property
    def learnt(self) -> bool:
        """Never."""
        return False

    @property
    def number(self) -> bool:
        """Always."""
        return True

    def value_of(self, raw: Tensor) -> Tensor:
        """As it is."""
        return raw

    @property
    def letter(self) -> str:
        """The name of its place in the state."""
        return "fixed"


class HeldSchedule(Schedule):
    """A schedule whose numbers the network has taken over.

    Example:
        >>> held = HeldSchedule(lambda k: 1 / k, name="θ")
        >>> held.start_layers(2)
        tensor([1.0000, 0.5000], dtype=torch.float64)
    """

    def forget(self) -> None:
        """Leave the numbers to the network."""
        self.rule = _taken_over


def _taken_over(layer: int) -> NoReturn:
    raise RuntimeError(f"the number of layer {layer} lies in the network, which was built before")


def with_fixed_numbers(model: nn.Module) -> nn.Module:
    """The same model with the numbers of its stored propagation as tensors; any other model as it is.

    The model that was given keeps its own propagation; the weights are shared.

    Example:
        >>> import torch, unspool as us
        >>> x, graph = torch.eye(5), us.graph.ring(5)
        >>> elastic = us.models.ElasticGNN(5, 3, lambda1=0.3).eval()
        >>> torch.allclose(with_fixed_numbers(elastic)(x, graph), elastic(x, graph), atol=1e-6)
        True
        >>> [name for name, _ in with_fixed_numbers(elastic).propagation.named_parameters()]
        ['coefficients.fixed', 'coefficients.fixed2', 'coefficients.fixed3', 'coefficients.fixed4']
    """
    net: Any = getattr(model, "propagation", None)
    if not (isinstance(model, Model) and type(net) is Unrolled and isinstance(net.adjoint, Stored)):
        return model
    if type(net.algorithm) not in _RULES or any(type(term) not in _TERMS for term in net.objective.terms):
        return model
    made = copy.copy(model)
    # Trap: a shallow copy of a module shares its dictionary of parts.
    made.__dict__["_modules"] = dict(model.__dict__["_modules"])
    made.propagation = _held(net, next(model.parameters(), None))
    return made.train(model.training)


def _held(net: Unrolled, like: Tensor | None) -> Unrolled:
    metrics: dict[Coefficient, Coefficient] = {}
    terms = tuple(_with_held(term, metrics) for term in net.objective.terms)
    made = Unrolled(
        Objective(terms), _with_held(net.algorithm, metrics), net.depth, net.start, net.adjoint, net.between
    )
    if (step := vars(made)["_fused"]) is not None:
        # A step of 1/(2w) on w ‖B H‖² keeps nothing of H, which is seen in the numbers and in no tensor that holds them.
        vars(made)["_fused"] = step.settled_like(vars(net)["_fused"])
    for name, parameter in net.coefficients.items():
        made.coefficients[name] = parameter
    for leaf in made.leaves:
        if isinstance(leaf, Held | HeldSchedule):
            leaf.forget()
    return made if like is None else made.to(like.device)


def _with_held(part: Any, metrics: dict[Coefficient, Coefficient]) -> Any:
    """A copy of a term, rule or penalty whose numbers are held; ``metrics``: those seen so far, because terms share them."""
    found: dict[str, Any] = {}
    for field in fields(part):
        value: Any = getattr(part, field.name)
        if isinstance(part, Penalty) and field.name in _THRESHOLDS:
            found[field.name] = Held(float(value))
        elif isinstance(value, Penalty):
            found[field.name] = _with_held(value, metrics)
        elif field.name == "metric":
            found[field.name] = _metric(value, metrics)
        elif isinstance(value, Fixed) and value.number:
            found[field.name] = Held(float(value.value))
    made = copy.copy(part)
    for name, value in found.items():
        object.__setattr__(made, name, value)
    return made


def _metric(metric: Coefficient, metrics: dict[Coefficient, Coefficient], within: bool = False) -> Coefficient:
    """A metric whose factors are held: 0 and 1 stay, because what cancels does so by them."""
    if metric not in metrics:
        made = metric
        if isinstance(metric, Combined):
            made = Combined(metric.operation, *(_metric(side, metrics, True) for side in (metric.left, metric.right)))
        elif type(metric) is Schedule:
            made = HeldSchedule(metric.rule, metric.name)
        elif within and isinstance(metric, Fixed) and metric.number and float(metric.value) not in (-1.0, 0.0, 1.0):
            made = Held(float(metric.value))
        metrics[metric] = made
    return metrics[metric]
