"""What every named model is: the bilevel network p_pos(propagation(p_pre(X)))."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError, InputError
from unspool.graph import Graph, ring
from unspool.graph.from_edge_index import graph_of
from unspool.models.decoding import decoded
from unspool.models.graph_first import from_stored_hops
from unspool.models.masks import masked_hops
from unspool.nn.flatten import Densify
from unspool.objective import Objective
from unspool.ops import SparseFeatures, features_of
from unspool.ops.stored_hops import StoredHops
from unspool.settings import Declared
from unspool.settings.kinds import Mismatch, Whole
from unspool.settings.schema import check_unchanged, positional
from unspool.spectral.linear_form import width_of
from unspool.unrolling import Implicit, Unrolled, unroll

#: What training, studies and estimators call their own arguments: a setting of such a name would mean something else to them.
RESERVED = frozenset({
    "lr", "weight_decay", "epochs", "monitor", "stop", "patience", "min_epochs", "optimiser", "precision", "lower_level",  # of training
    "lr_schedule", "lr_epochs", "clip", "upper", "batch_size",
    "seed", "preset", "count", "draw", "model",  # of studies
    "valid_share", "normalise_rows", "device", "features", "graph", "directed", "callbacks", "warm_start", "loss",
    "class_weight", "class_order",  # of estimators
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class Origin:
    """How the model was built that another took its parts from; its weights are not kept."""

    kind: type[Model]
    in_features: int
    out_features: int
    settings: Mapping[str, Any]
    origin: Origin | str | None


class _Parts:
    """What a model is made of; annotated here, as annotations in a class with settings would count as some."""

    in_features: int
    out_features: int
    p_pre: Any
    propagation: Any
    p_pos: Any
    #: What the model is called in full, and where it comes from.
    title: str = ""
    #: How the paper derives the model, and under which condition.
    derivation: str = ""
    #: Whether the layers look at the graph's own B, and so run where BᵀB exists only, on D − A where nothing is normalised.
    keeps_laplacian: bool = False
    #: Columns of X that say what a node is, such as its group: views of an upper level leave them as they are.
    kept_features: tuple[int, ...] = ()
    #: Where the parts came from: the model they were taken from, ``"filter"``, or None.
    origin: Origin | str | None = None
    #: Whether :meth:`Model.solve_exactly` put the exact minimiser in the place of the K steps.
    solved_exactly: bool = False
    #: What is known about a model that was loaded from a folder: data, classes, preset, metrics.
    card: Mapping[str, Any] = MappingProxyType({})


class Model(_Parts, Declared, nn.Module):
    r"""A node model in the form of the bilevel problem, eq. (3) of the paper.

    .. math:: \hat Y = p_{pos}(\bar X), \qquad \bar X \approx \arg\min_H L(H;\, p_{pre}(\tilde X))

    ``p_pre`` encodes the raw features, ``propagation`` takes K steps on a denoising problem (``objective``), ``p_pos``
    decodes. Every model is built from ``(in_features, out_features)`` alone, and called as ``model(x, graph)`` or
    ``model(x, edge_index, edge_weight=None)``; ``x`` may be sparse.

    A model of your own declares its settings (:func:`unspool.setting`) and writes :meth:`build`, which makes the parts; there is no
    ``__init__`` to write. Whatever a named model has, it has too: checked settings, the command line, studies, files.

    Propagation runs on A as the graph has it. On undirected graphs with symmetric normalisation (the default) its layers
    are steps on ``objective``; on directed graphs they are the same formulas with I − A in the place of BᵀB.

    Attributes:
        settings: all settings with which the model can be built again.
        schema: what is declared about them.
        derivation: how the paper derives the model, and under which condition.
        kept_features: numbers of the columns of X that views of an upper level leave as they are, as they say what a node is.
        card: what is known about a model that was loaded from a folder.

    Example:
        >>> import torch, unspool as us
        >>> class Calm(us.models.Model):
        ...     pull: float = us.setting(0.1, "how strongly a node keeps its own signal", above=0, at_most=1)
        ...
        ...     def build(self):
        ...         self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        ...         problem = us.Fidelity(self.pull) + us.Smoothness(1 - self.pull)
        ...         self.propagation = us.unroll(problem, us.GradientDescent(step=0.5), depth=4)
        >>> Calm(5, 2)(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 2])
    """

    if TYPE_CHECKING:  # the two arguments that every model takes by position
        in_features: int = positional(kw_only=False)
        out_features: int = positional(kw_only=False)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _check_constructor(cls)
        taken = [name for name in cls.schema if name in RESERVED]
        if taken:
            raise TypeError(
                f"{cls.__name__}.{taken[0]} cannot be a setting: training, studies and estimators have something else of that name; "
                "choose another"
            )
        place = inspect.Parameter.POSITIONAL_OR_KEYWORD
        widths = [inspect.Parameter(name, place, annotation="int") for name in ("in_features", "out_features")]
        cls.__signature__ = inspect.Signature([*widths, *cls.schema.parameters()])

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Refuse a class whose constructor was replaced after it was made, as ``@dataclass`` does."""
        _check_constructor(cls)
        return super().__new__(cls)

    def __init__(self, in_features: int, out_features: int, **settings: Any) -> None:
        check_unchanged(type(self))
        nn.Module.__init__(self)
        self.in_features, self.out_features = (
            _check_whole(name, width) for name, width in (("in_features", in_features), ("out_features", out_features))
        )
        self.settings = self.schema.complete(settings)
        self.build()
        parts = vars(self)["_modules"]
        if "propagation" not in parts:
            raise TypeError(
                f"{type(self).__name__}.build sets no propagation; write self.propagation = us.unroll(objective, algorithm, depth)"
            )
        self.p_pre = parts.get("p_pre", Densify())
        self.p_pos = parts.get("p_pos", nn.Identity())

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.schema:
            self.schema[name].__set__(self, value)
        super().__setattr__(name, value)

    def build(self) -> None:
        """Make the parts from the settings: ``self.propagation``, and ``self.p_pre`` and ``self.p_pos`` where there is more than X."""
        raise TypeError(
            f"{type(self).__name__} has no build(self), which makes self.p_pre, self.propagation, self.p_pos; write one"
        )

    @property
    def objective(self) -> Objective:
        """The denoising problem that the propagation solves; prints as maths."""
        return self.propagation.objective

    def forward(self, x: Any, graph: Any = None, edge_weight: Any = None, rows: Tensor | None = None) -> Tensor:
        """Predictions for every node.

        Args:
            x: features, shape (nodes, in_features): a tensor, a torch sparse tensor or :class:`~unspool.nn.SparseFeatures`; or
                :class:`~unspool.hops.StoredHops`, where the model propagates first.
            graph: a :class:`~unspool.Graph`, or an ``edge_index`` of shape (2, edges), which is normalised with self-loops as
                GCN does (once per tensor). Stored hops need none.
            edge_weight: one non-negative weight per edge, with an ``edge_index``.
            rows: the nodes whose predictions are wanted, each once; all of them by default.

        Returns:
            A tensor of shape (nodes, out_features), or (rows, out_features).
        """
        if isinstance(x, StoredHops):
            return self._checked(from_stored_hops(self, x, graph, rows))
        x = features_of(x)
        check_features(x)
        graph = graph_of(graph, x.shape[-2], edge_weight, x.dtype)
        graph = graph if self.keeps_laplacian else graph.with_general_laplacian()
        _check_fits(x, graph)
        z = self.p_pre(x) if isinstance(x, Tensor) else self._encoded(x)
        if getattr(self.p_pre, "held", False) and not self.p_pre.after.idle:
            output = self.p_pos(masked_hops(self.propagation, self.p_pre.after, z, graph))
            return self._checked(output if rows is None else output.index_select(-2, rows))
        seen = {"features": x} if getattr(self.propagation, "needs_features", False) else {}
        return self._checked(decoded(self.propagation, self.p_pos, z, graph, rows, seen))

    def _encoded(self, x: SparseFeatures) -> Tensor:
        """The encoder on sparse features, which layers of torch do not take."""
        try:
            return self.p_pre(x)
        except TypeError as problem:
            if SparseFeatures.__name__ not in str(problem):
                raise
            raise IncompatibleError(
                f"the features are sparse, and p_pre of {type(self).__name__} has a layer that takes dense ones alone; begin it with "
                "us.nn.Linear in place of torch.nn.Linear, or give x.to_dense()"
            ) from problem

    def _checked(self, output: Tensor) -> Tensor:
        """What comes out has the width that was asked for: classes that do not exist would be trained and predicted."""
        if output.shape[-1] != self.out_features:
            raise IncompatibleError(
                f"{type(self).__name__} gives {output.shape[-1]} numbers for each node, and out_features is {self.out_features}; let "
                "build(self) make parts that end with self.out_features channels"
            )
        return output

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
            where = next(self.parameters(), torch.zeros(0))
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


def _check_constructor(kind: type[Model]) -> None:
    if any("__init__" in vars(one) for one in kind.__mro__[: kind.__mro__.index(Model)] if issubclass(one, Model)):
        raise TypeError(
            f"{kind.__name__} writes an __init__: declare its settings as attributes, such as depth: int = us.setting(10, ...), and "
            "make the parts in build(self)"
        )


def _check_whole(name: str, value: Any) -> int:
    try:
        return Whole(1).accept(value)
    except Mismatch:
        raise InputError(name, value, Whole(1).expected) from None


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
