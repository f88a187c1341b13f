"""Laws of algorithms and of the networks made from them."""

from __future__ import annotations

import copy
import itertools

import torch
from torch import Tensor

from unspool.algorithm import Algorithm, Exact, GradientDescent, Problem, ProximalGradient, State, minimise
from unspool.algorithm.algorithm import check_fit, handled_kinds, initial_state
from unspool.errors import IncompatibleError
from unspool.graph import Graph, permuted
from unspool.objective import (
    EdgeSparse,
    Fidelity,
    Given,
    Kind,
    Learnable,
    NonNegative,
    Objective,
    Smoothness,
    Sparse,
    Symmetric,
    as_objective,
)
from unspool.ops.convergence import solve_reports
from unspool.testing.laws import random_signal, relative, require, small_graph
from unspool.unrolling import Checkpointed, FixedPoint, From, Implicit, Polynomial, Stored, Unrolled, unroll


def check_algorithm(algorithm: Algorithm, objective: Objective | None = None, steps: int = 3000, seed: int = 0) -> None:
    """Check that an algorithm keeps its laws on strictly convex objectives.

    * it takes every kind of term into account that it ``handles``, and refuses the others;
    * running long enough arrives at the exact minimiser, which is a fixed point (of rules without dual variables);
    * plain and proximal gradient steps never raise the objective (momentum methods may, so they are not asked);
    * the network lowered to a polynomial equals the one that takes steps, where the objective is quadratic.

    A rule that says it is ``random`` is asked for less: the same seed gives the same steps, and the mean of the second half of its
    iterates comes within a tenth of the minimiser.

    Args:
        algorithm: the algorithm, shipped or one's own.
        objective: what it is tried on; by default 0.3 ‖H − X‖² + 0.7 ‖B H‖², and the same with 0.2 ‖H‖₁ for rules that handle
            proximable terms.
        steps: how many steps it may take to arrive.
        seed: of the random input.

    Raises:
        LawBroken: with the law and the size of the violation.

    Example:
        >>> import unspool as us
        >>> us.testing.check_algorithm(us.Accelerated())
    """
    if objective is None:
        objective = as_objective(Fidelity(0.3) + Smoothness(0.7))
        if Kind.PROXIMABLE in handled_kinds(algorithm):
            check_algorithm(algorithm, objective + Sparse(0.2), steps, seed)
        if Kind.COMPOSITE in handled_kinds(algorithm):
            check_algorithm(algorithm, objective + EdgeSparse(0.2), steps, seed)
            if Kind.PROXIMABLE in handled_kinds(algorithm):
                check_algorithm(algorithm, objective + EdgeSparse(0.2) + NonNegative(), steps, seed)
    check_fit(algorithm, objective)
    graph = small_graph()
    generator = torch.Generator().manual_seed(seed)
    x = random_signal(graph, 3, generator)
    with torch.no_grad():
        target = _reference(objective, x, graph)
        if algorithm.random:
            _check_mean(algorithm, objective, x, graph, target, steps, seed)
        elif not algorithm.keeps_duals:
            stayed = _run(algorithm, objective, x, graph, target, 5)[-1]
            gap = relative(stayed, target)
            require(gap < 1e-6, f"{algorithm.name} leaves the exact minimiser by {gap:.1e}: it is not a fixed point")
        path = [] if algorithm.random else _run(algorithm, objective, x, graph, x, steps)
        gap = relative(path[-1], target) if path else 0.0
        require(gap < 1e-5, f"{algorithm.name} is {gap:.1e} away from the minimiser after {steps} steps")
        if path and isinstance(algorithm, GradientDescent | ProximalGradient):
            _check_descent(algorithm, objective, path[:50], x, graph)
    if isinstance(algorithm, Exact):
        return
    if objective.quadratic and not objective.proximable_terms:
        check_unrolled(unroll(objective, algorithm, depth=6), graph=graph, seed=seed)


def _reference(objective: Objective, x: Tensor, graph: Graph) -> Tensor:
    with solve_reports() as reports:
        target = minimise(objective, x, graph, tolerance=1e-12)
    if any(report.residual > 1e-8 for report in reports):
        raise IncompatibleError(
            f"the minimiser of {objective} is not known well enough to judge an algorithm by ({reports[0]}); "
            "try it on an objective with more weight on Fidelity"
        )
    return target


def check_unrolled(net: Unrolled, features: int = 3, graph: Graph | None = None, seed: int = 0) -> None:
    """Check that an unrolled network keeps its laws.

    * lowered, stored and checkpointed networks agree, in value and in the gradient of input and parameters;
    * permuting the nodes permutes the output;
    * a stack of signals equals the single signals;
    * a stack of trials equals the single trials (unless it is checkpointed);
    * its state dict makes a round trip.

    Networks of a ``random`` rule are compared under the same seed, and not asked about permutations and stacks, which draw
    other numbers.

    Raises:
        LawBroken: with the law and the size of the violation.

    Example:
        >>> import unspool as us
        >>> alpha = us.Learnable(0.2, per_layer=True, within=(0, 1), name="α")
        >>> us.testing.check_unrolled(us.unroll(us.Fidelity(alpha) + us.Smoothness(1 - alpha), us.Chebyshev(), depth=7))
    """
    graph = small_graph() if graph is None else graph
    generator = torch.Generator().manual_seed(seed)
    x = random_signal(graph, features, generator).requires_grad_()
    net = copy.deepcopy(net).double()
    _check_adjoints(net, x, graph, seed)
    if not net.algorithm.random:
        _check_permutation(net, x.detach(), graph, generator)
        if not isinstance(net.adjoint, Implicit | FixedPoint):  # a solver stops by the whole stack
            _check_stack(net, x.detach(), graph, generator)
        if not isinstance(net.adjoint, Checkpointed):
            _check_trials(net, x.detach(), graph, generator)
    twin = copy.deepcopy(net)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.add_(1.0)
    twin.load_state_dict(net.state_dict())
    same = torch.equal(_seeded(twin, x, graph, seed), _seeded(net, x, graph, seed))
    require(same, "the state dict does not carry the whole network")


def _seeded(net: Unrolled, x: Tensor, graph: Graph, seed: int) -> Tensor:
    """The output from a known state of the generator, which is put back."""
    if not net.algorithm.random:
        return net(x, graph)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return net(x, graph)


def example_network(depth: int = 5, features: int = 3) -> Unrolled:
    """A network with every kind of sharing: tied, per layer, ranges and a symmetric metric, for laws and docs."""
    alpha = Learnable(0.2, per_layer=True, within=(0, 1), name="α")
    metric = Symmetric(features, per_layer=True, psd=True, name="T")
    step = Learnable(0.3, within=(0, None), name="η")
    return unroll(Fidelity(alpha, metric=metric) + Smoothness(1 - alpha), GradientDescent(step=step), depth=depth)


def _run(
    algorithm: Algorithm, objective: Objective, x: Tensor, graph: Graph, start: Tensor, steps: int
) -> list[Tensor]:
    state: State = initial_state(algorithm, start, Problem(objective, Given(x, graph)))
    path = [start]
    for k in range(1, steps + 1):
        plain = Problem(objective, Given(x, graph), k)
        step = None if isinstance(algorithm, Exact) else algorithm.step_size(plain)
        state = algorithm.update(state, Problem(objective, Given(x, graph, step=step), k))
        path.append(state[0].clone())
        if k > 3 and relative(path[-1], path[-2]) < 1e-14:
            break
    return path


def _check_mean(
    algorithm: Algorithm, objective: Objective, x: Tensor, graph: Graph, target: Tensor, steps: int, seed: int
) -> None:
    """What a random rule does is told by its seed, and on average it arrives."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        path = _run(algorithm, objective, x, graph, x, steps)
        torch.manual_seed(seed)
        again = _run(algorithm, objective, x, graph, x, min(steps, 5))
    require(
        all(torch.equal(a, b) for a, b in zip(path, again, strict=False)),
        f"{algorithm.name} takes other steps from the same seed; draw from torch's own generator",
    )
    gap = relative(torch.stack(path[len(path) // 2 :]).mean(0), target)
    require(gap < 0.1, f"the mean iterate of {algorithm.name} is {gap:.1e} away from the minimiser after {steps} steps")


def _check_descent(algorithm: Algorithm, objective: Objective, path: list[Tensor], x: Tensor, graph: Graph) -> None:
    step = algorithm.step_size(Problem(objective, Given(x, graph)))
    values = [float(objective.value(h, x, graph, step=step)) for h in path[1:]]
    for before, after in itertools.pairwise(values):
        require(
            after <= before + 1e-10 * (1 + abs(before)),
            f"{algorithm.name} raised the objective from {before:.8g} to {after:.8g}",
        )


def _check_adjoints(net: Unrolled, x: Tensor, graph: Graph, seed: int) -> None:
    if not isinstance(net.adjoint, Polynomial | Stored | Checkpointed):
        return
    weight = torch.cos(torch.arange(x.numel(), dtype=x.dtype)).view(x.shape)

    def results(adjoint: Polynomial | Stored | Checkpointed) -> tuple[Tensor, ...]:
        other = copy.deepcopy(net)
        other.adjoint = adjoint
        out = _seeded(other, x, graph, seed)
        wanted = [x, *other.parameters()]
        return (out, *torch.autograd.grad((out * weight).sum(), wanted))

    expected = results(Stored())
    others: list[Polynomial | Checkpointed] = [Checkpointed(2)]
    if isinstance(net.adjoint, Polynomial):
        others.append(net.adjoint)
    for adjoint in others:
        for result, reference in zip(results(adjoint), expected, strict=True):
            gap = relative(result, reference)
            require(gap < 1e-9, f"{type(adjoint).__name__} and Stored disagree by {gap:.1e}")


def _check_permutation(net: Unrolled, x: Tensor, graph: Graph, generator: torch.Generator) -> None:
    order = torch.randperm(graph.nodes, generator=generator)
    moved = copy.copy(net)
    if isinstance(net.start, From):  # a start of its own belongs to the nodes, too
        moved.start = From(net.start.value[..., order, :])
    gap = relative(moved(x[order], permuted(graph, order)), net(x, graph)[order])
    require(gap < 1e-9, f"permuting the nodes changes the output by {gap:.1e}")


def _check_stack(net: Unrolled, x: Tensor, graph: Graph, generator: torch.Generator) -> None:
    """Signals in one tensor know nothing of each other."""
    if isinstance(net.start, From):
        return  # a start of its own need not have the shape of a stack
    signals = torch.stack([x, 3 * random_signal(graph, x.shape[-1], generator)])
    with torch.no_grad():
        together = net(signals, graph)
        for i, signal in enumerate(signals):
            gap = relative(together[i], net(signal, graph))
            require(
                gap < 1e-9,
                f"signal {i} of a stack of two differs from the same signal alone by {gap:.1e}; "
                "sum over the last two dimensions, .sum((-2, -1), keepdim=True), not over all",
            )


def _check_trials(net: Unrolled, x: Tensor, graph: Graph, generator: torch.Generator) -> None:
    parameters = {n: p.detach() for n, p in net.named_parameters()}
    if not parameters:
        return
    noise = {n: 0.1 * torch.randn(3, *p.shape, dtype=p.dtype, generator=generator) for n, p in parameters.items()}
    stack = {n: p + noise[n] for n, p in parameters.items()}

    def run(values: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(net, values, (x, graph))

    together = torch.func.vmap(run)(stack)
    for trial in range(3):
        gap = relative(together[trial], run({n: p[trial] for n, p in stack.items()}))
        require(gap < 1e-9, f"trial {trial} of a stack differs from the same trial alone by {gap:.1e}")
