"""Where the energy of a signal goes along the depth of a network: over-smoothing, seen band by band."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from unspool.graph import Graph, check_input, smoother_of
from unspool.ops import Basis, Operator
from unspool.ops.spmm import spmm
from unspool.spectral.linear_form import Hops, evaluating, graph_for, propagation_of, read
from unspool.spectral.responses import modes_of
from unspool.unrolling import FixedPoint, Implicit, Unrolled

#: Band edges used when none are given: fine where over-smoothing happens, coarse above.
BANDS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0)

#: Up to this many nodes band energies come from all eigenvectors.
LARGEST_EXACT = 1000


class Follow(Enum):
    """What is followed along the hops of a network given by hop coefficients.

    ``OUTPUT``: the running output Σ_{j≤k} pⱼ(A) X cⱼ, which ends at the network's own. ``HOPS``: pₖ(A) X alone, what the
    k-th coefficient has to work with.
    """

    OUTPUT = "running output"
    HOPS = "hops"


@dataclass(frozen=True, eq=False)
class Energy:
    """Energies along depth 0 ... K. Made by :func:`energy`.

    Attributes:
        total: ‖H‖², shape (K+1,).
        dirichlet: tr(Hᵀ L H) / ‖H‖², shape (K+1,), zero where H is.
        bands: the part of the total in each frequency band, shape (K+1, bands); rows sum to ``total``.
        input: ‖X‖², to compare with.
        edges: the bands' edges in [0, 2].
        exact: whether bands come from eigenvectors, or from smooth band filters whose edges are soft.
        followed: what was followed.
    """

    total: Tensor
    dirichlet: Tensor
    bands: Tensor
    input: float
    edges: tuple[float, ...]
    exact: bool
    followed: str

    @property
    def shares(self) -> Tensor:
        """The bands as shares of the total at the same depth (zero where there is no energy left)."""
        return torch.where(self.total[:, None] > 0, self.bands / self.total[:, None], torch.zeros_like(self.bands))

    @property
    def names(self) -> list[str]:
        """The bands in words."""
        return [f"{a:g} to {b:g}" for a, b in pairwise(self.edges)]

    def __str__(self) -> str:
        heads = ["energy", "Dirichlet", *self.names]
        width = [max(len(h), 10) for h in heads]
        how = "" if self.exact else ", soft edges"
        lines = [
            f"energy of the {self.followed}; the last {len(self.names)} columns split it by frequency band{how}",
            "depth   " + "   ".join(h.rjust(w) for h, w in zip(heads, width, strict=True)),
        ]
        for k in range(self.total.numel()):
            numbers = [self.total[k], self.dirichlet[k], *self.bands[k]]
            cells = [f"{float(v):.4g}".rjust(w) for v, w in zip(numbers, width, strict=True)]
            lines.append(f"{k:>5}   " + "   ".join(cells))
        return "\n".join(lines)


def dirichlet_energy(h: Tensor, graph: Graph) -> Tensor:
    r"""How much a signal varies along edges: :math:`\operatorname{tr}(H^\top L H) = \lVert B H\rVert^2`.

    Args:
        h: signals of shape (..., nodes, features).
        graph: an undirected graph.

    Returns:
        Shape (...).

    Example:
        >>> import torch, unspool as us
        >>> dirichlet_energy(torch.tensor([[1.0], [-1.0]]), us.graph.path(2, loops=0))
        tensor(4.)
    """
    check_input(h, graph)
    return (h * graph.laplacian_times(h)).sum((-2, -1))


def dirichlet(h: Tensor, graph: Graph) -> Tensor:
    r"""The mean frequency of a signal, :math:`\operatorname{tr}(H^\top L H) / \lVert H\rVert^2`.

    The Rayleigh quotient of L: between 0 (smooth) and the largest frequency, unchanged by scaling. Over-smoothing drives it to
    0. The zero signal has no frequency; it is given 0.

    Args:
        h: signals of shape (..., nodes, features).
        graph: an undirected graph.

    Returns:
        Shape (...).

    Example:
        >>> import torch, unspool as us
        >>> dirichlet(torch.tensor([[5.0], [-5.0]]), us.graph.path(2, loops=0))
        tensor(2.)
    """
    above, below = dirichlet_energy(h, graph), h.square().sum((-2, -1))
    return torch.where(
        below > 0, above / torch.where(below > 0, below, torch.ones_like(below)), torch.zeros_like(below)
    )


@torch.no_grad()
def energy(
    network: Any,
    x: Tensor,
    graph: Graph,
    bands: Sequence[float] = BANDS,
    *,
    follow: Follow = Follow.OUTPUT,
    degree: int = 128,
) -> Energy:
    r"""Total, Dirichlet and band energies of a signal on its way through a network.

    The band [a, b) of H holds :math:`\sum_{a \le \lambda_i < b} \lVert u_i^\top H\rVert^2`. Up to :data:`LARGEST_EXACT` nodes it
    is computed from eigenvectors. On larger graphs it is :math:`\langle H, \phi(S) H\rangle` with the Chebyshev series φ of
    the band, damped by Jackson's kernel: never negative, summing to the total exactly, with edges soft by about
    π / ``degree``. Leading dimensions of x are summed over.

    What is followed depends on the network:

    * an unrolled network: its iterates H⁽⁰⁾ ... H⁽ᴷ⁾ (input and minimiser, if it jumps there);
    * a network given by hop coefficients: what ``follow`` says;
    * several tensors, for example ``net.trace(x, graph).iterates``: these;
    * any other module: its input and its output.

    Args:
        network: a network, a model (its ``propagation`` is looked at) or a sequence of tensors.
        x: the input, of shape (..., nodes, features); the width is that of the propagation.
        graph: an undirected graph.
        bands: edges that rise from 0 to 2, in units of ``graph.scale``.
        follow: for hop coefficients, the running output or the hops themselves.
        degree: of the band filters on large graphs.

    Example:
        >>> import torch, unspool as us
        >>> net = us.unroll(us.Smoothness(1.0), us.GradientDescent(step=0.5), depth=64)
        >>> x = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
        >>> e = energy(net, x, us.graph.grid(4, 4), bands=(0, 0.25, 2))
        >>> e.shares[[0, 64]].numpy().round(3)  # only the lowest band is left
        array([[0.202, 0.798],
               [1.   , 0.   ]])
    """
    edges = _checked(bands)
    graph = graph if isinstance(network, Sequence) else graph_for(network, graph)
    check_input(x, graph)
    iterates, followed = _iterates(network, x, graph, follow)
    where = graph.to("cpu").to(torch.float64)
    split = _ByModes(where, edges) if graph.nodes <= LARGEST_EXACT else _ByFilters(where, edges, degree)
    total, mean, parts = [], [], []
    for h in iterates:
        flat = h.detach().to("cpu", torch.float64)
        flat = flat.movedim(-2, 0).reshape(graph.nodes, -1)
        total.append(flat.square().sum())
        mean.append(dirichlet(flat, where))
        parts.append(split(flat))
    exact = isinstance(split, _ByModes)
    given = float(x.detach().to("cpu", torch.float64).square().sum())
    return Energy(torch.stack(total), torch.stack(mean), torch.stack(parts), given, edges, exact, followed)


# -- inside ------------------------------------------------------------------------------------------------------------


def _checked(bands: Sequence[float]) -> tuple[float, ...]:
    edges = tuple(float(b) for b in bands)
    rising = all(a < b for a, b in pairwise(edges))
    if len(edges) < 2 or edges[0] != 0 or edges[-1] != 2 or not rising:
        raise ValueError(f"bands={edges}: expected rising edges from 0 to 2, so that the bands sum to the total")
    return edges


def _iterates(network: Any, x: Tensor, graph: Graph, follow: Follow) -> tuple[Iterable[Tensor], str]:
    if isinstance(network, Sequence):
        return network, "given signals"
    network = propagation_of(network)
    if isinstance(network, Unrolled):
        return _steps(network, x, graph), "iterates"
    found = read(network)
    if isinstance(found, Hops):
        operator = graph.operator if found.scale is None else graph.require_laplacian()
        walk = _walk(operator, x, found.coefficients.shape[0], found.basis)
        if follow is Follow.HOPS:
            return walk, "hops pₖ(A) X"
        return _running(walk, found.coefficients.to(x)), "running output over the hops"
    with evaluating(network):
        if callable(getattr(network, "layers", None)):  # GCN's convolutions give their layers one by one
            return [x, *network.layers(x, graph)], "layers"
        return [x, network(x, graph)], "input and output"


def _steps(net: Unrolled, x: Tensor, graph: Graph) -> Iterable[Tensor]:
    if isinstance(net.adjoint, Implicit | FixedPoint):
        yield x
        yield net(x, graph)
        return
    state = net.algorithm.init(net.start.tensor(x), net.problem(x, graph, 1))
    yield state[0]
    for k in range(1, net.depth + 1):
        if net.between is not None:
            with evaluating(net):
                state = (net.between(state[0]), *state[1:])
        state = net.algorithm.update(state, net.problem(x, graph, k))
        yield state[0]


def _walk(operator: Operator, x: Tensor, count: int, basis: Basis) -> Iterable[Tensor]:
    before, now = x, x
    for k in range(count):
        if k:
            ahead = spmm(operator, now)
            before, now = now, (2 * ahead - before if basis is Basis.CHEBYSHEV and k > 1 else ahead)
        yield now


def _running(walk: Iterable[Tensor], hops: Tensor) -> Iterable[Tensor]:
    total: Tensor | None = None
    for now, c in zip(walk, hops, strict=True):
        part = now @ c if c.ndim == 2 else now * c
        total = part if total is None else total + part
        yield total


class _ByModes:
    """Exactly: every mode belongs to one band."""

    def __init__(self, graph: Graph, edges: tuple[float, ...]) -> None:
        frequency, self.modes = modes_of(graph)
        # An eigenvalue that is an edge but for rounding belongs above it.
        inner = torch.tensor(edges[1:-1], dtype=torch.float64) - 1e-9
        band = torch.bucketize(frequency, inner, right=True)
        self.member = torch.nn.functional.one_hot(band, len(edges) - 1).to(torch.float64)

    def __call__(self, h: Tensor) -> Tensor:
        return (self.modes.T @ h).square().sum(1) @ self.member


class _ByFilters:
    """By moments ⟨H, T_m(S) H⟩ against the damped Chebyshev series of each band."""

    def __init__(self, graph: Graph, edges: tuple[float, ...], degree: int) -> None:
        self.smoother = smoother_of(graph)
        order = torch.arange(degree + 1, dtype=torch.float64)
        angle = torch.arccos(1 - torch.tensor(edges, dtype=torch.float64))
        # ∫ cos(mθ) dθ over the band; m = 0 is the band's width in the angle.
        wave = torch.sin(order[1:, None] * angle) / order[1:, None]
        series = torch.cat([angle.diff()[None], 2 * wave.diff(dim=1)]) / torch.pi
        n = degree + 2
        turn = torch.tensor(torch.pi / n, dtype=torch.float64)
        jackson = ((n - order) * torch.cos(turn * order) + torch.sin(turn * order) / torch.tan(turn)) / n
        self.series = series * jackson[:, None]

    def __call__(self, h: Tensor) -> Tensor:
        return self._moments(h, self.series.shape[0]) @ self.series

    def _moments(self, h: Tensor, count: int) -> Tensor:
        """T_{2m} = 2 T_m² − 1 and T_{2m+1} = 2 T_m T_{m+1} − T₁ give two moments for each product."""
        before, now = h, spmm(self.smoother, h)
        first = [float(h.square().sum()), float((h * now).sum())]
        found = list(first)
        while len(found) < count:
            found.append(2 * float(now.square().sum()) - first[0])
            before, now = now, 2 * spmm(self.smoother, now) - before
            found.append(2 * float((before * now).sum()) - first[1])
        return torch.tensor(found[:count], dtype=torch.float64)
