r"""Bounded influence: what the paper means by the robustness of AirGNN, as a statement that can be wrong.

The paper says of ‖H − X‖₂,₁ that *the robustness of AirGNN against abnormal node features can be readily established by investigating its
corresponding GSD problem*. Made precise: let one row of X grow without end, and look at the minimiser of ‖H − X‖₂,₁ + β‖BH‖².

**It stays bounded**, as long as no node outweighs all others. At the minimiser 2βLH = −G with every row of G in the unit ball, so the part
of H that is orthogonal to the null vector u of L is at most R = √n / (2βλ₂), λ₂ the second smallest eigenvalue of L. Write H = P + u cᵀ.
The objective is at most its value at H = 0, hence Σ_{j≠i} ‖hⱼ‖ ≤ ‖hᵢ‖ + 2 Σ_{j≠i} ‖xⱼ‖ whatever the length of xᵢ, and

.. math:: \lVert c\rVert \;\le\; \frac{\sqrt n R + 2\sum_{j\ne i}\lVert x_j\rVert}{\sum_{j\ne i} u_j - u_i},
          \qquad \lVert H\rVert \le R + \lVert c\rVert .

The condition is Σ_{j≠i} uⱼ > uᵢ, where uⱼ is the square root of the degree of node j: one node of a large connected graph never outweighs
the rest, and where it does (a heavy self-loop), the minimiser follows its row to infinity. With ‖H − X‖² the minimiser is linear in X, and
follows a growing row in proportion, on every graph.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from unspool.algorithm import ProximalGradient
from unspool.graph import Graph
from unspool.objective import Fidelity, Objective, RowSparseFidelity, Smoothness
from unspool.theory.certificate import Claim, Evidence, Verdict
from unspool.theory.setting import Random, graph, normal, number, whole
from unspool.unrolling import unroll

#: How long the row becomes.
LENGTHS = tuple(10.0**k for k in range(1, 7))


#: Forces are of size one: rows of G lie in the unit ball. Rounding of a row of length 1e6 is 1e-10.
STILL = 1e-8
#: Steps before a minimiser is given up.
MOST = 20_000


def _bounded(random: Random) -> Evidence:
    g, x, node, beta = _setting(random)
    limit = bound(g, x, node, beta)
    sizes = [float(row_minimiser(g, grown(x, node, length), beta).norm()) for length in LENGTHS]
    # A node that outweighs all others takes the minimiser with it: how far, over the length of its row.
    long = LENGTHS[2]
    follows = float(row_minimiser(heavy(g.nodes), grown(x, 0, long), beta).norm()) / long
    return Evidence(
        max(0.0, *(size / limit - 1 for size in sizes)),
        follows,
        "no node outweighs all others: √dᵢ < Σ √dⱼ over j ≠ i",
        "a node with a heavy self-loop: the minimiser follows its row",
    )


def _saturates(random: Random) -> Evidence:
    g, x, node, beta = _setting(random)
    found = [row_minimiser(g, grown(x, node, length), beta) for length in LENGTHS]
    moved = [float((b - a).norm() / a.norm()) for a, b in itertools.pairwise(found)]
    # All that is left of a long row is the direction in which it lies from its h, and that turns by 1 / length.
    return Evidence(max(0.0, moved[-1] - 1e-3))


def _proportional(random: Random) -> Evidence:
    g, x, node, beta = _setting(random)
    inverse = torch.linalg.inv((1 + beta) * torch.eye(g.nodes, dtype=x.dtype) - beta * g.to_dense())
    rest = inverse @ grown(x, node, 0.0)
    forces: list[float] = []
    slopes: list[Tensor] = []
    for length in LENGTHS:
        seen = grown(x, node, length)
        h = inverse @ seen
        forces.append(float(square_problem(beta).gradient(h, seen, g).norm()) / length)
        slopes.append((h - rest) / length)
    uneven = max(float((slope - slopes[0]).norm() / slopes[0].norm()) for slope in slopes)
    return Evidence(max(uneven, *forces) if float(slopes[0].norm()) > STILL else float("inf"))


def _setting(random: Random) -> tuple[Graph, Tensor, int, float]:
    g = graph(random)
    x = normal(random, g.nodes, whole(random, 2, 4))
    return g, x, whole(random, 0, g.nodes - 1), number(random, 0.3, 2.0)


def heavy(nodes: int) -> Graph:
    """A ring whose first node has a self-loop so heavy that it outweighs all others.

    Example:
        >>> weights = heavy(5).to_dense().diagonal()
        >>> bool(weights[0] > 0.99)
        True
    """
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    index = torch.cat([ring, torch.tensor([[0], [0]])], dim=1)
    weights = torch.ones(nodes + 1, dtype=torch.float64)
    weights[-1] = 10.0 * nodes**2
    return Graph.from_edges(index, nodes=nodes, weights=weights, directed=False).to(torch.float64)


def grown(x: Tensor, node: int, length: float) -> Tensor:
    """X with the row of one node as long as is said, in the direction that it has.

    Example:
        >>> grown(torch.tensor([[3.0, 4.0], [1.0, 0.0]]), 0, 10.0)
        tensor([[6., 8.],
                [1., 0.]])
    """
    made = x.clone()
    made[node] *= length / float(x[node].norm())
    return made


def bound(g: Graph, x: Tensor, node: int, beta: float) -> float:
    """How large the minimiser can be, however long the row of one node is; infinite where the node outweighs all others.

    Example:
        >>> import unspool as us
        >>> ring = us.graph.ring(6).to(torch.float64)
        >>> x = torch.ones(6, 1, dtype=torch.float64)
        >>> bound(ring, x, 0, 1.0) < 100, bound(heavy(6), x, 0, 1.0)
        (True, inf)
    """
    values, vectors = torch.linalg.eigh(torch.eye(g.nodes, dtype=x.dtype) - g.to_dense())
    weights = vectors[:, 0].abs()
    others = float(weights.sum() - 2 * weights[node])
    if others <= 0:
        return float("inf")
    radius = g.nodes**0.5 / (2 * beta * float(values[1]))
    rest = float(x.norm(dim=1).sum() - x[node].norm())
    return radius + (g.nodes**0.5 * radius + 2 * rest) / others


def row_problem(beta: float) -> Objective:
    """‖H − X‖₂,₁ + β‖BH‖²."""
    return RowSparseFidelity(1.0) + Smoothness(beta)


def square_problem(beta: float) -> Objective:
    """‖H − X‖² + β‖BH‖²."""
    return Fidelity(1.0) + Smoothness(beta)


def row_minimiser(g: Graph, x: Tensor, beta: float) -> Tensor:
    """The minimiser of ‖H − X‖₂,₁ + β‖BH‖²: accelerated proximal steps from H = 0 until no force is left.

    From H = 0, not from X: a row that begins 1e6 away comes nearer by a fixed distance at each step, since the force of a row is a unit
    vector however far it is.

    Example:
        >>> import unspool as us
        >>> ring = us.graph.ring(5).to(torch.float64)
        >>> x = torch.ones(5, 1, dtype=torch.float64)
        >>> x[2] = 1e6
        >>> row_minimiser(ring, x, 1.0).flatten().numpy().round(3)
        array([1. , 1. , 1.75, 1. , 1. ])
    """
    step = 1 / (4 * beta)  # L has no eigenvalue above 2
    problem = unroll(row_problem(beta), ProximalGradient(step=step), 1).problem(x, g, 1)
    h = before = torch.zeros_like(x)
    t = 1.0
    for _ in range(MOST):
        ahead = (1 + (1 + 4 * t * t) ** 0.5) / 2
        y = h + (h - before) * ((t - 1) / ahead)
        new = problem.prox(y - problem.gradient(y) * step, step).detach()
        t = 1.0 if float(((y - new) * (new - h)).sum()) > 0 else ahead  # the momentum points uphill
        before, h = h, new
        if float((new - y).norm()) / step < STILL:
            return h
    raise ArithmeticError(f"the minimiser of {row_problem(beta)} was not reached in {MOST} steps")


#: What the paper's sentence on robustness comes to.
CLAIMS: tuple[Claim, ...] = (
    Claim(
        "Section 3, AirGNN: bounded influence",
        "one row of X, however long, moves the minimiser of ‖H−X‖₂,₁ + β‖BH‖² by a bounded amount",
        Verdict.HOLDS_WHEN,
        _bounded,
    ),
    Claim(
        "Section 3, AirGNN: saturation",
        "as one row grows from 10 to 10⁶, the minimiser of ‖H−X‖₂,₁ + β‖BH‖² comes to rest",
        Verdict.HOLDS,
        _saturates,
    ),
    Claim(
        "Section 3, squared fidelity: unbounded influence",
        "with ‖H−X‖² the minimiser moves in proportion to the length of the row",
        Verdict.HOLDS,
        _proportional,
    ),
)
