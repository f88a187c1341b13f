"""The frequency response of a network: what it does to each graph frequency, exactly or as measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.graph import Graph, frequencies_and_modes, smoother_of
from unspool.objective import Stencil
from unspool.objective.channel import Map, rank
from unspool.ops import Basis
from unspool.spectral.basis import PolynomialBasis, evaluate
from unspool.spectral.linear_form import Hops, Minimiser, graph_for, propagation_of, read, width_of


class Response(ABC):
    r"""A function h of the graph frequency λ: signals of frequency λ leave the network as :math:`\hat X h(\lambda)`.

    Calling it gives h: numbers of shape (...) for λ of shape (...), diagonals (..., features) or matrices
    (..., features, out), in float64. Frequencies are measured in units of ``graph.scale`` and so lie in [0, 2] on every
    graph; under symmetric normalisation the scale is 1 and they are the eigenvalues of L. Made by :func:`response`.

    Example:
        >>> import unspool as us
        >>> h = response(us.unroll(us.Smoothness(1.0), us.GradientDescent(step=0.5), depth=2))
        >>> h([0.0, 0.5, 1.0, 2.0])
        tensor([1.0000, 0.2500, 0.0000, 1.0000], dtype=torch.float64)
        >>> h.degree, h.exact
        (2, True)
    """

    #: Whether h holds on every graph and signal, or was measured on one.
    exact: bool = True

    @abstractmethod
    def __call__(self, frequency: Any) -> Tensor:
        """h at the frequencies."""

    @abstractmethod
    def describe(self) -> str:
        """One line that says what kind of function it is."""

    @property
    def hops(self) -> Tensor | None:
        """The hop coefficients, where h is a polynomial."""
        return None

    @property
    def basis(self) -> Basis | None:
        """The polynomials that the hop coefficients multiply."""
        return None

    @property
    def degree(self) -> int | None:
        """The degree, where h is a polynomial."""
        return None if self.hops is None else self.hops.shape[0] - 1

    def gains(self, frequency: Any) -> Tensor:
        """By how much each direction is amplified: |h| for numbers and diagonals, falling singular values for matrices.

        Example:
            >>> import torch, unspool as us
            >>> net = us.HopNetwork(torch.tensor([[[0.0, 2.0], [1.0, 0.0]]]))
            >>> response(net).gains(0.3)
            tensor([2., 1.], dtype=torch.float64)
        """
        value = self(frequency)
        extra = value.ndim - torch.as_tensor(frequency).ndim
        return torch.linalg.svdvals(value) if extra == 2 else value.abs()

    def apply(self, x: Tensor, graph: Graph) -> Tensor:
        r"""Filter a signal in the frequency domain, :math:`U h(\Lambda) U^\top X`: the network again, by another road.

        Needs all eigenvectors, so small graphs only; the network itself is the fast way. The result is float64.

        Example:
            >>> import torch, unspool as us
            >>> graph, x = us.graph.ring(6).to(torch.float64), torch.eye(6, dtype=torch.float64)
            >>> net = us.unroll(us.Fidelity(0.2) + us.Smoothness(0.8), us.GradientDescent(step=0.5), depth=8)
            >>> torch.allclose(response(net).apply(x, graph), net(x, graph))
            True
        """
        self.check_graph(graph)
        frequency, modes = modes_of(graph)
        spectrum, h = modes.T @ x.detach().to("cpu", torch.float64), self(frequency)
        if h.ndim == 3:
            return modes @ torch.einsum("...nf,nfg->...ng", spectrum, h)
        return modes @ (spectrum * (h[:, None] if h.ndim == 1 else h))

    @abstractmethod
    def check_graph(self, graph: Graph) -> None:
        """Refuse graphs on which h does not describe the network."""

    def rows(self, points: int = 9) -> list[dict[str, float]]:
        """The table that printing shows, as records."""
        where = torch.linspace(0, 2, points, dtype=torch.float64)
        value = self(where)
        if value.ndim == 1:
            return [{"frequency": float(f), "response": float(v)} for f, v in zip(where, value, strict=True)]
        return [_spread(float(f), g) for f, g in zip(where, self.gains(where), strict=True)]

    def __str__(self) -> str:
        return "\n".join([self.describe(), *_table(self.rows())])


@dataclass(frozen=True, eq=False)
class PolynomialResponse(Response):
    r"""The response of hop coefficients, :math:`h(\lambda) = \sum_k c_k p_k(1 - \lambda)`.

    ``scale`` is that of the graph the coefficients were read on, or None if they fit every graph whose A is symmetric.

    Example:
        >>> import torch, unspool as us
        >>> PolynomialResponse(torch.tensor([0.5, 0.5]), us.Basis.POWERS)(2.0)
        tensor(0., dtype=torch.float64)
    """

    coefficients: Tensor
    polynomials: Basis
    scale: float | None = None

    @property
    def hops(self) -> Tensor:
        """The coefficients c₀ ... c_K."""
        return self.coefficients

    @property
    def basis(self) -> Basis:
        """Powers of A, or Chebyshev polynomials of A."""
        return self.polynomials

    def __call__(self, frequency: Any) -> Tensor:
        """Σ cₖ pₖ(1 − λ)."""
        return evaluate(self.hops, self.basis, frequency)

    def describe(self) -> str:
        """Degree, basis and kind."""
        kind = {1: "numbers", 2: "diagonals", 3: "matrices"}[self.hops.ndim]
        return f"degree {self.hops.shape[0] - 1} in {PolynomialBasis.of(self.basis).value}; coefficients are {kind}"

    def check_graph(self, graph: Graph) -> None:
        """A must be the smoother, or the scale the one that the coefficients were read at."""
        smoother_of(graph)
        if self.scale is None and graph.smoother is not graph.operator:
            raise IncompatibleError(
                "hop coefficients multiply powers of A, which without normalisation is not a function of L; "
                "build the graph with Normalisation.SYMMETRIC"
            )
        if self.scale is not None and abs(self.scale - graph.scale) > 1e-12 * graph.scale:
            raise _other_scale(self.scale, graph)


@dataclass(frozen=True, eq=False)
class MinimiserResponse(Response):
    r"""The response of an exact minimiser, :math:`h(\lambda) = -R\,(P + \lambda Q)^{-1}`.

    P, Q and R are the objective's stencil, whose gradient is H P + L H Q + X R. For α‖H−X‖² + (1−α)‖BH‖² (PPNP) this is
    α / (α + (1−α)λ).

    Example:
        >>> import unspool as us
        >>> h = response(us.unroll(us.Fidelity(0.2) + us.Smoothness(0.8), us.Exact()))
        >>> h([0.0, 1.0])
        tensor([1.0000, 0.2000], dtype=torch.float64)
    """

    stencil: Stencil
    scale: float

    def __call__(self, frequency: Any) -> Tensor:
        """−R (P + λQ)⁻¹."""
        where = torch.as_tensor(frequency, dtype=torch.float64) * self.scale
        maps = _alike(*self.stencil.maps)
        at = where.reshape((*where.shape, *[1] * maps[0].ndim))
        count = len(self.stencil.of_h)
        bend, given = (
            sum((t * at**p for p, t in enumerate(part)), torch.zeros_like(at)) for part in (maps[:count], maps[count:])
        )
        if maps[0].ndim < 2:
            return -given / bend
        return torch.linalg.solve(bend, -given.expand_as(bend), left=False)

    def describe(self) -> str:
        """The formula and its kind."""
        kind = ("numbers", "diagonals", "matrices")[_alike(*self.stencil.of_h)[0].ndim]
        return f"exact minimiser, −R (P + λQ)⁻¹; P, Q and R are {kind}"

    def check_graph(self, graph: Graph) -> None:
        """The scale must be the one that the stencil was read at."""
        smoother_of(graph)
        if abs(self.scale - graph.scale) > 1e-12 * graph.scale:
            raise _other_scale(self.scale, graph)


def response(
    network: Any,
    graph: Graph | None = None,
    *,
    features: int | None = None,
    probes: int | None = None,
    bins: int | None = None,
    amplitude: float = 1.0,
    seed: int = 0,
) -> Response:
    r"""What a network does to each graph frequency.

    * A polynomial of the graph (every linear unrolled network, :class:`~unspool.HopNetwork`, anything with ``hops``):
      :math:`h(\lambda) = \sum_k c_k p_k(1-\lambda)`, exactly.
    * The exact minimiser of a quadratic objective (``Exact()`` or ``Implicit()``): :math:`-R(P+\lambda Q)^{-1}`, exactly.
    * Everything else: measured with white noise on a graph, by :func:`~unspool.spectral.measure`.

    Args:
        network: a network, or a model, whose ``propagation`` is then looked at.
        graph: where to measure; linear networks need it only if the graph is not normalised.
        features: the width of the noise, for networks that are measured; what a model's encoder puts out when omitted, else 1.
        probes: how many draws of noise; see :func:`~unspool.spectral.measure`, also for ``bins`` and ``amplitude``.
        bins: how many frequency bins to pool into; one per distinct frequency when omitted.
        amplitude: the standard deviation of the noise.
        seed: of the noise.

    Example:
        >>> import unspool as us
        >>> net = us.unroll(us.Fidelity(0.1) + us.Smoothness(0.9), us.GradientDescent(step=0.5), depth=10)
        >>> print(response(net))
        degree 10 in powers of A; coefficients are numbers
             λ   response
          0.00     1.0000
          0.25     0.3213
          0.50     0.1821
          0.75     0.1290
          1.00     0.1000
          1.25     0.0816
          1.50     0.0693
          1.75     0.0782
          2.00     0.3830
    """
    if graph is not None:
        graph = graph_for(network, graph)
    found = read(network, graph)
    if isinstance(found, Hops):
        h: Response = PolynomialResponse(found.coefficients, found.basis, found.scale)
    elif isinstance(found, Minimiser):
        h = MinimiserResponse(found.stencil, found.scale)
    else:
        from unspool.spectral.measuring import measure

        if graph is None:
            raise IncompatibleError(
                f"{found.reason}, so its response can only be measured on a graph; give one with graph="
            )
        width = width_of(network) if features is None else features
        inner = propagation_of(network)
        return measure(inner, graph, features=width, probes=probes, bins=bins, amplitude=amplitude, seed=seed)
    if graph is not None:
        h.check_graph(graph)
    return h


def modes_of(graph: Graph) -> tuple[Tensor, Tensor]:
    """Frequencies in units of the scale, kept within [0, 2], and orthonormal modes (float64)."""
    smoother_of(graph)
    frequency, modes = frequencies_and_modes(graph)
    return (frequency / graph.scale).clamp(0, 2), modes


# -- inside ------------------------------------------------------------------------------------------------------------


def _alike(*maps: Map) -> list[Tensor]:
    """Maps on channels as tensors of one rank."""
    tensors = [torch.as_tensor(m, dtype=torch.float64) for m in maps]
    most = max(rank(t) for t in tensors)
    if most == 0:
        return tensors
    features = max(t.shape[-1] for t in tensors if t.ndim)
    if most == 1:
        return [t.expand(features) for t in tensors]
    return [t if t.ndim == 2 else torch.diag(t.expand(features)) for t in tensors]


def _other_scale(scale: float, graph: Graph) -> IncompatibleError:
    return IncompatibleError(
        f"this response was read at scale {scale:g}, but the graph has scale {graph.scale:g}; read it with response(network, graph)"
    )


def _spread(frequency: float, gains: Tensor) -> dict[str, float]:
    low, middle, high = (float(v) for v in (gains.min(), gains.median(), gains.max()))
    return {"frequency": frequency, "smallest gain": low, "median gain": middle, "largest gain": high}


def _table(rows: list[dict[str, float]]) -> list[str]:
    names = list(rows[0])
    width = [6] + [max(len(n), 8) for n in names[1:]]
    heads = ["λ", *names[1:]]
    lines = ["   ".join(h.rjust(w) for h, w in zip(heads, width, strict=True))]
    for row in rows:
        cells = [f"{row[names[0]]:.2f}"] + [f"{row[n] + 0.0:.4f}" for n in names[1:]]
        lines.append("   ".join(c.rjust(w) for c, w in zip(cells, width, strict=True)))
    return lines
