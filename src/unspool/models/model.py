"""What every named model is: the bilevel network p_pos(propagation(p_pre(X)))."""

from __future__ import annotations

import inspect
import numbers
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError
from unspool.graph import Graph, ring
from unspool.graph.from_edge_index import graph_of
from unspool.models.masks import masked_hops
from unspool.objective import Objective
from unspool.ops.features import SparseFeatures, features_of
from unspool.spectral.linear_form import width_of
from unspool.unrolling import Implicit, Unrolled, unroll

#: More layers than this would run for minutes without a sign of life, and say nothing that the minimiser does not.
DEEPEST = 10_000


@dataclass(frozen=True, eq=False)
class Origin:
    """How the model was built that another took its parts from; its weights are not kept."""

    kind: type[Model]
    in_features: int
    out_features: int
    settings: Mapping[str, Any]
    origin: Origin | str | None


class Model(nn.Module):
    r"""A node model in the form of the bilevel problem, eq. (3) of the paper.

    .. math:: \hat Y = p_{pos}(\bar X), \qquad \bar X \approx \arg\min_H L(H;\, p_{pre}(\tilde X))

    ``p_pre`` encodes the raw features, ``propagation`` takes K steps on a denoising problem (``objective``), ``p_pos``
    decodes. Every model is built from ``(in_features, out_features)`` alone, and called as ``model(x, graph)`` or
    ``model(x, edge_index, edge_weight=None)``; ``x`` may be sparse.

    Propagation runs on A as the graph has it. On undirected graphs with symmetric normalisation (the default) its layers
    are steps on ``objective``; on directed graphs they are the same formulas with I − A in the place of BᵀB.

    Attributes:
        settings: the keyword arguments with which the model can be built again.
        derivation: how the paper reads the model, and under which condition.
    """

    p_pre: Any
    propagation: Any
    p_pos: Any
    derivation: str = ""
    #: Settings that the constructor of this very class gained after results were first stored; see ``study.Trial.key``.
    gained: ClassVar[tuple[str, ...]] = ()
    #: Where the parts came from: the model they were taken from, ``"filter"``, or None.
    origin: Origin | str | None = None
    #: Whether :meth:`solve_exactly` put the exact minimiser in the place of the K steps.
    solved_exactly: bool = False
    #: What is known about a model that was loaded from a folder: data, classes, preset, metrics.
    card: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, in_features: int, out_features: int, **settings: Any) -> None:
        super().__init__()
        for name in ("in_features", "out_features", "hidden", "depth"):
            check_whole(name, {"in_features": in_features, "out_features": out_features, **settings}.get(name, 1))
        if settings.get("depth", 1) > DEEPEST:
            raise ValueError(
                f"depth={settings['depth']}: a model takes at most {DEEPEST} layers, which take seconds even on a small graph; "
                "solve the problem exactly instead (PPNP, or APPNP with --adjoint implicit)"
            )
        _check_choices(type(self), settings)
        self.in_features, self.out_features, self.settings = in_features, out_features, settings

    @property
    def objective(self) -> Objective:
        """The denoising problem that the propagation solves; prints as maths."""
        return self.propagation.objective

    def forward(self, x: Any, graph: Any, edge_weight: Any = None) -> Tensor:
        """Predictions for every node.

        Args:
            x: features, shape (nodes, in_features): a tensor, a torch sparse tensor or :class:`~unspool.nn.SparseFeatures`.
            graph: a :class:`~unspool.Graph`, or an ``edge_index`` of shape (2, edges), which is normalised with self-loops as
                GCN does (once per tensor).
            edge_weight: one non-negative weight per edge, with an ``edge_index``.

        Returns:
            A tensor of shape (nodes, out_features).
        """
        x = features_of(x)
        check_features(x)
        graph = graph_of(graph, x.shape[-2], edge_weight, x.dtype).with_general_laplacian()
        _check_fits(x, graph)
        z = self.p_pre(x)
        if getattr(self.p_pre, "held", False) and not self.p_pre.after.idle:
            return self.p_pos(masked_hops(self.propagation, self.p_pre.after, z, graph))
        return self.p_pos(self.propagation(z, graph))

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The trainable parameters by role, for decay that goes where a preset says.

        ``first``: the first layer of the encoder; ``linear``: all other layers of encoder and decoder; ``convolution``: weight
        matrices of the propagation; ``hops``: its numbers (γ, ζ, ξ, step sizes); ``gate``: DAGNN's.
        """
        groups: dict[str, list[nn.Parameter]] = {}
        first = next((n for n, p in self.p_pre.named_parameters() if p.ndim == 2), "")
        parent = first.rpartition(".")[0]
        layer = f"p_pre.{parent}." if parent else "p_pre."
        for name, parameter in self.named_parameters():
            if not parameter.requires_grad:
                continue
            if name.startswith("propagation."):
                role = getattr(self.propagation, "role", "hops" if parameter.ndim < 2 else "convolution")
            else:
                role = "first" if first and name.startswith(layer) else "linear"
            groups.setdefault(role, []).append(parameter)
        return groups

    def solve_exactly(self) -> Model:
        """Solve the denoising problem exactly instead of taking K steps, and train through its optimality condition.

        The other lower level of the bilevel problem: gradients are those of the minimiser itself, and memory is that of one
        step. Changes this model and returns it. Refused where there is no single problem with a minimiser: coefficients that
        differ from layer to layer, no fidelity term, no objective at all.

        Example:
            >>> import torch, unspool as us
            >>> x, graph = torch.eye(5), us.graph.ring(5)
            >>> appnp = us.models.APPNP(5, 3, depth=200).eval()
            >>> steps = appnp(x, graph)
            >>> torch.allclose(appnp.solve_exactly()(x, graph), steps, atol=1e-5)
            True
            >>> us.models.GPRGNN(5, 3).solve_exactly()
            Traceback (most recent call last):
                ...
            unspool.errors.IncompatibleError: GPRGNN cannot be solved exactly: its layers do not share one problem with a minimiser; ...
        """
        name, net = type(self).__name__, self.propagation
        if getattr(self.p_pre, "held", False):
            raise IncompatibleError(
                f"{name} cannot be solved exactly: a minimiser has no hops that masks could differ on; build it with masks=Masks.ONCE"
            )
        if not isinstance(net, Unrolled) or net.between is not None or any(leaf.per_layer for leaf in net.leaves):
            raise IncompatibleError(
                f"{name} cannot be solved exactly: its layers do not share one problem with a minimiser; take APPNP or PPNP, "
                "or keep the unrolled steps"
            )
        if isinstance(net.adjoint, Implicit):
            return self
        try:
            made = unroll(net.objective, net.algorithm, net.depth, net.start, Implicit(), net.between)
            where = next(self.parameters())
            made(
                torch.zeros(3, width_of(self), dtype=where.dtype, device=where.device).requires_grad_(),
                ring(3).to(where.device).to(where.dtype),
            )
        except IncompatibleError as problem:
            raise IncompatibleError(f"{name} cannot be solved exactly: {problem}") from None
        made.load_state_dict(net.state_dict())
        self.propagation, self.solved_exactly = made.to(where.device, where.dtype), True
        return self

    def extra_repr(self) -> str:
        """The denoising problem."""
        return f"{self.in_features} → {self.out_features}, minimises {self.objective}"


def check_whole(name: str, value: Any) -> None:
    """Raise one sentence when a count is no whole number of at least 1."""
    try:
        fine = operator.index(value) >= 1 and not isinstance(value, bool)
    except TypeError:
        fine = False
    if not fine:
        raise ValueError(f"{name}={value!r}: expected a whole number of at least 1")


def check_share(name: str, value: Any, positive: bool = False, below: bool = False) -> None:
    """Raise one sentence when a share does not lie in [0, 1]."""
    fine = isinstance(value, numbers.Real | Tensor) and 0 <= float(value) <= 1
    if not fine or (positive and value == 0) or (below and value == 1):
        raise ValueError(
            f"{name}={value!r}: expected a number in {'(' if positive else '['}0, 1{')' if below else ']'}"
        )


def _check_choices(model: type[Model], settings: dict[str, Any]) -> None:
    """Raise one sentence when a setting is not one of the choices that its default belongs to."""
    for name, parameter in inspect.signature(model.__init__).parameters.items():
        kind = type(parameter.default)
        if issubclass(kind, Enum) and not isinstance(settings.get(name, parameter.default), kind):
            known = ", ".join(f"{kind.__name__}.{choice.name}" for choice in kind)
            raise TypeError(f"{name}={settings[name]!r}: expected one of {known}")


def check_features(x: Tensor | SparseFeatures) -> None:
    """Raise one sentence when the features are no matrix of finite numbers."""
    if not x.dtype.is_floating_point:
        raise TypeError(f"x holds {str(x.dtype).removeprefix('torch.')}: features are floating-point; call x.float()")
    if len(x.shape) < 2:
        raise ValueError(f"x has shape {tuple(x.shape)}: expected (nodes, features); use x[:, None] for a single one")
    if x.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_finite(x)


def _check_fits(x: Tensor | SparseFeatures, graph: Graph) -> None:
    if x.shape[-2] != graph.nodes:
        raise ValueError(f"x has {x.shape[-2]} rows, but the graph has {graph.nodes} nodes")
    if x.device != graph.device:
        raise ValueError(f"x is on {x.device}, the graph on {graph.device}: call graph.to({str(x.device)!r})")
    half = x.dtype in (torch.bfloat16, torch.float16) and graph.dtype == torch.float32
    if x.dtype != graph.dtype and not half:
        name = str(x.dtype).removeprefix("torch.")
        raise TypeError(
            f"x is {name}, the graph {str(graph.dtype).removeprefix('torch.')}: call graph.to(torch.{name})"
        )


def _check_finite(x: Tensor | SparseFeatures) -> None:
    values = x.values if isinstance(x, SparseFeatures) else x.detach()
    try:
        if bool(torch.isfinite(values.sum())) or bool(torch.isfinite(values).all()):
            return
    except RuntimeError:  # stacked trials cannot be looked into
        return
    place = int(torch.nonzero(~torch.isfinite(values.flatten()))[0])
    if isinstance(x, SparseFeatures):
        node, feature = int(x.rows[place]), int(x.operator.forward.col[place])
    else:
        node, feature = place // x.shape[-1] % x.shape[-2], place % x.shape[-1]
    raise ValueError(
        f"x is {float(values.flatten()[place])} at node {node}, feature {feature}: features must be finite; fill or drop it"
    )
