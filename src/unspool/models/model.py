"""What every named model is: the bilevel network p_pos(propagation(p_pre(X)))."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unspool.graph import Graph
from unspool.graph.door import graph_of
from unspool.objective import Objective
from unspool.ops.features import SparseFeatures, features_of


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
        reading: how the paper reads the model, and under which condition.
    """

    p_pre: nn.Module
    propagation: nn.Module
    p_pos: nn.Module
    reading: str = ""
    #: Where the parts came from: the model they were taken from, ``"filter"``, or None.
    origin: Any = None

    def __init__(self, in_features: int, out_features: int, **settings: Any) -> None:
        super().__init__()
        self.in_features, self.out_features, self.settings = in_features, out_features, settings

    @property
    def objective(self) -> Objective:
        """The denoising problem that the propagation solves; prints as maths."""
        return self.propagation.objective  # type: ignore[return-value]

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
        graph = graph_of(graph, x.shape[-2], edge_weight, x.dtype).relaxed()
        check_features(x, graph)
        return self.p_pos(self.propagation(self.p_pre(x), graph))

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

    def extra_repr(self) -> str:
        """The denoising problem."""
        return f"{self.in_features} → {self.out_features}, minimises {self.objective}"


def check_share(name: str, value: float, positive: bool = False, below: bool = False) -> None:
    """Raise one sentence when a share does not lie in [0, 1]."""
    if not 0 <= value <= 1 or (positive and value == 0) or (below and value == 1):
        raise ValueError(f"{name}={value}: expected a number in {'(' if positive else '['}0, 1{')' if below else ']'}")


def check_features(x: Tensor | SparseFeatures, graph: Graph | None) -> None:
    """Raise one sentence when the features do not fit the graph or are not finite."""
    if not x.dtype.is_floating_point:
        raise TypeError(f"x holds {str(x.dtype).removeprefix('torch.')}: features are floating-point; call x.float()")
    if len(x.shape) < 2:
        raise ValueError(f"x has shape {tuple(x.shape)}: expected (nodes, features); use x[:, None] for a single one")
    if graph is not None:
        _check_fits(x, graph)
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
