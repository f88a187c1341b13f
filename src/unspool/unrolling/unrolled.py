"""The unrolled network: K steps of an algorithm on an objective, as a torch module."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

import torch
import torch.utils.checkpoint
from torch import Tensor, nn

from unspool.algorithm import Algorithm, Exact, GradientDescent, PrimalDual, Problem, ProximalGradient
from unspool.algorithm.algorithm import initial_state, shipped
from unspool.algorithm.exact import check_tied
from unspool.algorithm.fixed_point import fixed_point
from unspool.algorithm.fused import fused_step
from unspool.algorithm.solvers import Effort
from unspool.errors import IncompatibleError
from unspool.graph import Graph, check_output, ring
from unspool.objective import Computed, FeatureComputed, Fidelity, Given, Objective, Ridge, Smoothness, Term
from unspool.objective.belongings import check_owned
from unspool.objective.coefficient import Leaf
from unspool.objective.objective import as_objective
from unspool.ops.polynomial import Basis, propagate
from unspool.unrolling.adjoint import (
    Adjoint,
    Checkpointed,
    FixedPoint,
    Implicit,
    Polynomial,
    Stored,
    implicit_minimiser,
)
from unspool.unrolling.attempt import Attempt, first_values, try_lowering
from unspool.unrolling.checks import (
    check_exact,
    check_implicit,
    check_network,
    check_signal,
    checked_depth,
    computed_value,
    fitting,
    layers_of,
    names_of,
    refuse_stacked,
    seen_by,
    values_by_layer,
    with_between,
)
from unspool.unrolling.lower import LinearProblem, lower, lower_again
from unspool.unrolling.read_back import ReadBack
from unspool.unrolling.read_rule import read_back_layers
from unspool.unrolling.start import From, Input, Start, Zero
from unspool.unrolling.strangers import can_look, check_strangers, somebodys_own
from unspool.unrolling.trace import Trace, trace
from unspool.unrolling.whole_layer import run_layers
from unspool.unrolling.words import html_of_network, learns, steps_of

#: Networks that were looked through for tensors they do not own. Not kept by them: a trial is known by what its network holds.
_LOOKED: WeakSet[Unrolled] = WeakSet()


def unroll(
    objective: Objective | Term,
    algorithm: Any,
    depth: int | None = None,
    start: Any = None,
    adjoint: Any = None,
    between: nn.Module | None = None,
) -> Unrolled:
    """Turn K steps of an algorithm on an objective into a trainable network.

    Args:
        objective: what the layers minimise; its learnable coefficients become the network's parameters.
        algorithm: the update rule of one layer.
        depth: number of layers K (1 when the algorithm is :class:`~unspool.algorithm.Exact`).
        start: H⁽⁰⁾: ``Input()`` (the default), ``Zero()`` or a tensor.
        adjoint: how gradients flow: ``Polynomial()`` wherever the network is linear, else ``Stored()``; or
            ``Checkpointed(every=)``, ``Implicit()``, which returns the exact minimiser, or ``FixedPoint()``, which repeats the
            rule until it comes to rest.
        between: a module that perturbs the iterate before each layer (dropout in training); steps are then stored.

    Returns:
        A module; ``net(x, graph)`` maps (..., nodes, features) to the same shape.

    Example:
        >>> import torch, unspool as us
        >>> alpha = us.Learnable(0.1, per_layer=True, within=(0, 1), name="α")
        >>> net = us.unroll(us.Fidelity(alpha) + us.Smoothness(1 - alpha), us.GradientDescent(step=0.5), depth=10)
        >>> net
        Unrolled(
          αₖ ‖H − X‖²  +  (1 − αₖ) ‖B H‖²
          10 × GradientDescent, from Input(), adjoint Polynomial(POWERS)
          learns α (10)
        )
        >>> net(torch.randn(5, 3), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """
    if not isinstance(algorithm, Algorithm):
        raise TypeError(f"{algorithm!r} is not an algorithm: give an instance, such as GradientDescent(step=0.5)")
    if adjoint is not None and not isinstance(adjoint, Polynomial | Stored | Checkpointed | Implicit | FixedPoint):
        raise TypeError(
            f"adjoint={adjoint!r}: expected Polynomial(), Stored(), Checkpointed(every=), Implicit() or FixedPoint()"
        )
    if isinstance(start, Tensor):
        start = From(start)
    if start is not None and not isinstance(start, Input | Zero | From):
        raise TypeError(f"start={start!r}: expected Input(), Zero() or a tensor")
    return Unrolled(as_objective(objective), algorithm, depth, Input() if start is None else start, adjoint, between)


class Unrolled(nn.Module):
    """K steps of an algorithm on an objective; the only owner of parameters. Made by :func:`unroll`."""

    def __init__(
        self,
        objective: Objective,
        algorithm: Algorithm,
        depth: int | None,
        start: Start,
        adjoint: Adjoint | None,
        between: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.objective, self.algorithm, self.start = objective, algorithm, start
        self.depth = checked_depth(algorithm, depth)
        check_network(algorithm, objective, self.depth)
        for part in (*objective.terms, algorithm):
            check_owned(part.name, part)
        self._fell_back = False  # whether steps are kept although nobody asked for that
        self.adjoint = self._chosen_adjoint(with_between(between, adjoint))
        self.between = between
        # Only rules that take exactly the step they name: another may ask for a part of it.
        whole_steps = type(algorithm) in (GradientDescent, ProximalGradient, PrimalDual)
        self._fused = fused_step(objective, getattr(algorithm, "step", None)) if whole_steps else None
        self._names = names_of(self.leaves)
        self.coefficients = nn.ParameterDict()
        self.computed = nn.ModuleDict(
            {name: leaf.module for leaf, name in self._names.items() if isinstance(leaf, Computed)}
        )
        for leaf, name in self._names.items():
            if isinstance(leaf, Computed):
                continue
            raw = leaf.start_layers(self.depth).to(torch.get_default_dtype())
            self.coefficients[name] = nn.Parameter(raw, requires_grad=leaf.learnt)
        self._constant: dict[Any, dict[str, Tensor]] = {}  # hop coefficients of a network without parameters

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The learnable coefficients of objective and algorithm, each once."""
        return tuple(dict.fromkeys(self.objective.leaves + self.algorithm.leaves))

    @property
    def why_not_linear(self) -> str | None:
        """Why the network keeps its steps although nobody asked for that; None where it does not, or was asked to."""
        # Found anew: a trial is known by what its network holds, which must not be a sentence that may be reworded.
        return self._tried().reason if self._fell_back else None

    def values(self, layer: int) -> dict[Leaf, Tensor]:
        """The raw parameters of layer 1 ... depth, by leaf: what the objective's methods take as ``values=``."""
        if not 1 <= layer <= self.depth:
            raise IndexError(f"layer {layer}: layers are counted from 1 to {self.depth}")
        return {leaf: raw[layer - 1] if leaf.per_layer else raw for leaf, raw in self._raw().items()}

    def _raw(self) -> dict[Leaf, Tensor]:
        return {leaf: self.coefficients[name] for leaf, name in self._names.items() if name in self.coefficients}

    def learnt_values(self) -> dict[str, Tensor]:
        """What the learnable coefficients are now, as they stand in the formula; first by layers where each layer has its own.

        Example:
            >>> import unspool as us
            >>> alpha = us.Learnable(0.25, within=(0, 1), name="α")
            >>> net = us.unroll(us.Fidelity(alpha) + us.Smoothness(1 - alpha), us.GradientDescent(step=0.5), depth=3)
            >>> net.learnt_values()
            {'α': tensor(0.2500)}
        """
        return {self._names[leaf]: layers_of(leaf, raw.detach()) for leaf, raw in self._raw().items()}

    @property
    def needs_features(self) -> bool:
        """Whether a coefficient is computed from features in front of the encoder, which ``forward`` must then be given."""
        return any(isinstance(leaf, FeatureComputed) for leaf in self._names)

    def computed_values(self, x: Tensor, graph: Graph, features: Any = None) -> dict[Leaf, Tensor]:
        """What the modules of computed coefficients make of an input."""
        # Trap: the network's own module, not the leaf's: functional_call and copies put others in its place.
        made = {
            leaf: computed_value(self.computed[name], leaf, seen_by(leaf, x, features), graph)
            for leaf, name in self._names.items()
            if name in self.computed
        }
        return fitting(self.objective, x, made)

    def problem(self, x: Tensor, graph: Graph, layer: int, features: Any = None) -> Problem:
        """Layer k's denoising problem, with everything filled in."""
        return self._filled(x, graph, layer, {**self.values(layer), **self.computed_values(x, graph, features)})

    def _filled(self, x: Tensor, graph: Graph, layer: int, values: dict[Leaf, Tensor]) -> Problem:
        plain = Problem(self.objective, Given(x, graph, values), layer, fused=self._fused)
        if not any(getattr(term, "per_step", False) for term in self.objective.terms):
            return plain  # only a term that stands for φ/η needs to know the step
        step = self.algorithm.step_size(plain)
        return Problem(self.objective, Given(x, graph, values, step), layer, fused=self._fused)

    def forward(self, x: Tensor, graph: Graph, features: Any = None) -> Tensor:
        """H⁽ᴷ⁾ for signals X of shape (..., nodes, features); refused, on the CPU, where it grew beyond all numbers.

        ``features``: what :class:`~unspool.FeatureComputed` coefficients look at; no other network takes any notice of them.
        """
        check_signal(self.objective, x, graph)
        watched = not (torch.compiler.is_compiling() or x.is_inference())
        before = x._version if watched else 0
        self._look_for_strangers(x, graph, features)
        output = check_output(
            self._output(x, graph, features), None if isinstance(self.adjoint, Implicit | FixedPoint) else self.depth
        )
        if watched and x._version != before:
            raise IncompatibleError(
                f"a term of {self.objective} writes into the tensors that it is given, so X is not what it was; "
                "compute without in-place operations"
            )
        return output

    def _look_for_strangers(self, x: Tensor, graph: Graph, features: Any) -> None:
        """Once, at the first call that can see them; networks that go to the minimiser look for themselves."""
        if not can_look() or isinstance(self.adjoint, Implicit) or self in _LOOKED:
            return
        if somebodys_own(self.algorithm, self.objective.terms):
            values = {**self.values(1), **self.computed_values(x, graph, features)}
            values = {leaf: raw.detach() for leaf, raw in values.items()}
            problem = self._filled(x.detach(), graph, 1, values)
            check_strangers(self.algorithm, problem, self.start.tensor(x).detach())
        _LOOKED.add(self)

    def _output(self, x: Tensor, graph: Graph, features: Any) -> Tensor:
        if isinstance(self.adjoint, Polynomial):
            return self._run_polynomial(x, graph)
        start = self.start.tensor(x)
        if isinstance(self.adjoint, Implicit):
            who = "Exact" if isinstance(self.algorithm, Exact) else "Implicit"
            return implicit_minimiser(self.problem(x, graph, 1, features), start, self.adjoint, who)
        if isinstance(self.adjoint, FixedPoint):
            effort = Effort.of(self.adjoint.tolerance, self.adjoint.limit, x.dtype)
            return fixed_point(self.algorithm, self.problem(x, graph, 1, features), start, effort)
        # Trap: a recomputation must see the parameters of this call, which functional_call takes back afterwards.
        computed = self.computed_values(x, graph, features)
        values = [{**own, **computed} for own in values_by_layer(self._raw(), self.depth)]
        state = initial_state(self.algorithm, start, self._filled(x, graph, 1, values[0]))
        if isinstance(self.adjoint, Checkpointed) and torch.is_grad_enabled():
            refuse_stacked()
            for first in range(1, self.depth + 1, self.adjoint.every):
                layers = range(first, min(first + self.adjoint.every, self.depth + 1))
                state = torch.utils.checkpoint.checkpoint(
                    self._run_layers, state, layers, x, graph, values, use_reentrant=False
                )
        else:
            state = self._run_layers(state, range(1, self.depth + 1), x, graph, values)
        return state[0]

    def hops(self, graph: Graph, like: Tensor | None = None) -> Tensor:
        """The hop coefficients c₀ ... c_K of a linear network started at its input, H⁽ᴷ⁾ = Σₖ pₖ(S) X cₖ.

        S is ``graph.smoother``: A itself under symmetric normalisation; p are the powers, or the Chebyshev polynomials for
        methods with momentum (``net.adjoint.basis``).

        Numbers have shape (K+1,), diagonals (K+1, features), matrices (K+1, features, features). ``like`` lends its
        dtype and device; the graph does by default.
        """
        parts = self._lowered(graph.degree.to(graph.device, graph.dtype) if like is None else like, graph)
        if "start" in parts:
            raise IncompatibleError(
                "this network starts at a tensor of its own, so two polynomials describe it; read net.lowered(graph)"
            )
        return parts["x"]

    def lowered(self, graph: Graph) -> dict[str, Tensor]:
        """Hop coefficients by source: ``x`` for the input, ``start`` for a start of its own."""
        return self._lowered(graph.degree.to(graph.device, graph.dtype), graph)

    @torch.no_grad()
    def trace(self, x: Tensor, graph: Graph) -> Trace:
        """Run step by step and measure: iterates, objective, gradient norm, distance to the exact minimiser."""
        check_signal(self.objective, x, graph)
        problems = [self.problem(x, graph, k) for k in range(1, self.depth + 1)]
        return trace(self.algorithm, problems, self.start.tensor(x))

    @torch.no_grad()
    def read_back(self, graph: Graph | None = None) -> ReadBack:
        """Which problem each layer solves after training: see :class:`~unspool.unrolling.read_back.ReadBack`."""
        if isinstance(self.adjoint, Implicit | FixedPoint):
            raise IncompatibleError(
                f"this network goes to the minimiser of {self.objective} at once, so there are no layers to read back: that is its problem"
            )
        if self.computed:
            raise IncompatibleError(
                f"the input computes {' and '.join(self.computed)}, so every input has a problem of its own: see net.problem(x, graph, 1)"
            )
        where = ring(3).to(torch.float64) if graph is None else graph.to("cpu").to(torch.float64)
        x = torch.zeros(where.nodes, 1, dtype=torch.float64)
        problems = [self.problem(x, where, k) for k in range(1, self.depth + 1)]
        return read_back_layers(self.algorithm, problems)

    _repr_html_ = html_of_network

    def extra_repr(self) -> str:
        """Objective, algorithm, adjoint, parameters."""
        lines = f"{self.objective}\n{steps_of(self)}\nlearns {learns(self)}"
        # A term that is not quadratic is plain to see; that one's own rule is not linear may come as a surprise.
        reason = None if shipped(self.algorithm) else self.why_not_linear
        return lines if reason is None else f"{lines}\n{reason}"

    def __repr__(self) -> str:
        return "Unrolled(\n  " + "\n  ".join(self.extra_repr().split("\n")) + "\n)"

    # -- inside ----------------------------------------------------------------------------------------------------

    def _chosen_adjoint(self, adjoint: Adjoint | None) -> Adjoint:
        if isinstance(self.algorithm, Exact):
            check_exact(self.algorithm, adjoint)
            adjoint = adjoint or Implicit(self.algorithm.tolerance, self.algorithm.limit)
        if isinstance(adjoint, Implicit):
            check_implicit(self.objective, self.algorithm, self.leaves)
            return adjoint
        if isinstance(adjoint, FixedPoint):
            check_tied(self.leaves, "FixedPoint repeats one step", "tie it or use another adjoint")
            return adjoint
        if isinstance(adjoint, Stored | Checkpointed):
            return adjoint
        found = self._tried()
        if found.refusal is None:
            return Polynomial(found.basis if adjoint is None or adjoint.basis is None else adjoint.basis)
        if adjoint is not None:
            raise found.refusal
        self._fell_back = True
        return Stored()

    def _tried(self) -> Attempt:
        values = first_values(self.leaves, self.depth)
        return try_lowering(self.algorithm, self.objective, self.depth, values, self.start)

    def _run_layers(self, state: Any, layers: range, x: Tensor, graph: Graph, values: list[dict[Leaf, Tensor]]) -> Any:
        return run_layers(
            self.algorithm, lambda k, x: self._filled(x, graph, k, values[k - 1]), state, layers, x, self.between
        )

    def _run_polynomial(self, x: Tensor, graph: Graph) -> Tensor:
        parts = self._lowered(x, graph)
        total = None
        for source, hops in parts.items():
            signal = x if source == "x" else self.start.tensor(x)
            # A single hop needs no graph, so an objective without smoothness runs on any.
            operator = graph.operator if hops.shape[0] == 1 else graph.require_laplacian()
            part = propagate(operator, signal, hops, self._basis)
            total = part if total is None else total + part
        return torch.zeros_like(x) if total is None else total

    @property
    def _plain_terms(self) -> bool:
        """Whether hop coefficients depend on nothing but the coefficients: users' stencils may look at x or the graph."""
        return all(type(t) in (Fidelity, Smoothness, Ridge) for t in self.objective.terms)

    @property
    def _basis(self) -> Basis:
        assert isinstance(self.adjoint, Polynomial)
        return self.adjoint.basis or Basis.POWERS

    def _lowered(self, like: Tensor, graph: Graph) -> dict[str, Tensor]:
        if not isinstance(self.adjoint, Polynomial):
            raise IncompatibleError(
                f"this network runs with {self.adjoint}, not as a polynomial; unroll it with adjoint=Polynomial()"
            )
        key = (like.dtype, like.device, graph.scale, self._basis)
        # A user's rule may look at the graph, the input or whatever else, so it is asked each time.
        plain = self._plain_terms and shipped(self.algorithm)
        remember = not self._names and plain and not torch.compiler.is_compiling()
        if remember:
            if key not in self._constant:
                # Trap: tensors made in inference mode could not take part in training later.
                with torch.inference_mode(False), torch.no_grad():
                    self._constant[key] = self._lower(like, graph)
            return self._constant[key]
        return self._lower(like, graph)

    def _lower(self, like: Tensor, graph: Graph) -> dict[str, Tensor]:
        problems = [
            # Trap: torch.compile on torch 2.11 cannot trace defaults of dataclasses, so every field is given.
            LinearProblem(self.objective, Given(like, graph, self.values(k), None), k, None, self._basis)
            for k in range(1, self.depth + 1)
        ]
        return (lower if shipped(self.algorithm) else lower_again)(self.algorithm, problems, self.start).parts


__all__ = ["From", "Input", "Unrolled", "Zero", "unroll"]
