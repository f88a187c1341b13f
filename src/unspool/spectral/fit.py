"""Fitting hop coefficients to a wanted frequency response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.graph import Graph, spectral_density
from unspool.ops import Basis, propagate
from unspool.spectral.basis import PolynomialBasis, chebyshev_nodes, condition, convert, evaluate, polynomials
from unspool.spectral.responses import PolynomialResponse, Response

#: Powers of A are offered where they lose at most two digits, so that float32 keeps five.
WORST_CONDITION = 100.0

#: Weight of frequencies that the graph does not have: enough to keep the polynomial tame there.
QUIET = 1e-3


@dataclass(frozen=True, eq=False)
class Fit:
    """Hop coefficients that follow a wanted response, and how well they do. Made by :func:`fit_filter`.

    Attributes:
        hops: the coefficients c₀ ... c_K (float64), ready for :func:`~unspool.propagate` with ``basis``.
        basis: powers of A where these are well conditioned, else Chebyshev polynomials.
        reason: why this basis.
        max_error: the largest deviation on [0, 2].
        rms_error: the root mean square deviation on [0, 2].
        graph_error: the same weighted with the graph's own density of frequencies, if one was given.
        target: the name of what was fitted.
    """

    hops: Tensor
    basis: Basis
    reason: str
    max_error: float
    rms_error: float
    graph_error: float | None
    target: str

    @property
    def degree(self) -> int:
        """How many hops the filter reaches."""
        return self.hops.shape[0] - 1

    @property
    def response(self) -> Response:
        """The fitted filter as a function of the frequency."""
        return PolynomialResponse(self.hops, self.basis, None)

    def apply(self, x: Tensor, graph: Graph) -> Tensor:
        """The fitted filter as an operator: ``degree`` sparse products.

        Example:
            >>> import torch, unspool as us
            >>> from unspool.spectral import fit_filter, low_pass
            >>> smooth = fit_filter(low_pass(0.5), 10).apply(torch.eye(9), us.graph.ring(9))
            >>> smooth.shape
            torch.Size([9, 9])
        """
        return propagate(graph.require_laplacian(), x, self.hops.to(x), self.basis)

    def __str__(self) -> str:
        near = "" if self.graph_error is None else f", rms {self.graph_error:.2g} over the graph's frequencies"
        return (
            f"{self.target} with {self.degree} hops: error at most {self.max_error:.2g}, rms {self.rms_error:.2g}{near}; "
            f"in {PolynomialBasis.of(self.basis).value} ({self.reason})"
        )


def fit_filter(h: Callable[[Tensor], Tensor], degree: int, graph: Graph | None = None) -> Fit:
    r"""Find the polynomial of the graph that follows a wanted response best in the mean square.

    .. math:: \min_c \int_0^2 \Bigl(h(\lambda) - \sum_{k=0}^K c_k T_k(1-\lambda)\Bigr)^2 w(\lambda)\,d\lambda

    Without a graph, w is Chebyshev's weight :math:`1/\sqrt{\lambda(2-\lambda)}`, under which the best polynomial is the
    truncated Chebyshev series, within a factor that grows like log K of the smallest possible maximum error. With a graph, w is
    the density of its frequencies, so that hops are not spent on frequencies that do not occur.

    Args:
        h: a callable that maps a float64 tensor of frequencies (m,) to responses (m,), (m, features) or (m, features, out).
        degree: the number of hops K.
        graph: whose frequencies count; of any size.

    Example:
        >>> from unspool.spectral import band_pass
        >>> print(fit_filter(band_pass(0.5, 1.0), 20))
        band_pass(0.5, 1) with 20 hops: error at most 0.0013, rms 0.00063; in Chebyshev polynomials of A (powers of A would cancel, condition 2.8e+04)
    """
    if int(degree) != degree or degree < 0:
        raise ValueError(f"degree={degree}: expected a whole number of at least 0")
    where = chebyshev_nodes(max(1024, 16 * (degree + 1)))
    wanted = _wanted(h, where)
    design = polynomials(where, degree, PolynomialBasis.CHEBYSHEV)
    density = None if graph is None else _density(graph, where)
    if density is None:
        # At these nodes the polynomials are orthogonal, so least squares is one product.
        chebyshev = 2 * torch.tensordot(design.T, wanted, dims=1) / where.numel()
        chebyshev[0] /= 2
    else:
        root = (density + QUIET * density.mean()).sqrt()
        right = (wanted.reshape(where.numel(), -1)) * root[:, None]
        chebyshev = torch.linalg.lstsq(design * root[:, None], right).solution.reshape(degree + 1, *wanted.shape[1:])
    hops, basis, reason = _choose(chebyshev)
    even = torch.linspace(0, 2, 2001, dtype=torch.float64)
    miss = (evaluate(chebyshev, PolynomialBasis.CHEBYSHEV, even) - _wanted(h, even)).abs()
    near = None
    if density is not None:
        gap = (evaluate(chebyshev, PolynomialBasis.CHEBYSHEV, where) - wanted).square().reshape(where.numel(), -1)
        near = float(((gap.mean(1) * density).sum() / density.sum()).sqrt())
    return Fit(hops, basis, reason, float(miss.max()), float(miss.square().mean().sqrt()), near, _name(h))


# -- inside ------------------------------------------------------------------------------------------------------------


def _wanted(h: Callable[[Tensor], Tensor], where: Tensor) -> Tensor:
    value = torch.as_tensor(h(where)).detach().to("cpu", torch.float64)
    if value.ndim not in (1, 2, 3) or value.shape[0] != where.numel():
        raise ValueError(
            f"the target gave shape {tuple(value.shape)} for {where.numel()} frequencies: expected one response for each"
        )
    if not bool(torch.isfinite(value).all()):
        raise ValueError("the target is not finite everywhere on [0, 2]")
    return value


def _density(graph: Graph, where: Tensor) -> Tensor:
    """The share of the graph's frequencies near each Chebyshev node."""
    found = spectral_density(graph, points=where.numel())
    angle = torch.arccos((1 - found.frequency / graph.scale).clamp(-1, 1))
    return found.value * torch.sin(angle)  # per node: nodes are even in the angle


def _choose(chebyshev: Tensor) -> tuple[Tensor, Basis, str]:
    powers = _powers(chebyshev)
    if powers is None:
        return chebyshev, Basis.CHEBYSHEV, "powers of A would cancel beyond float64"
    size = condition(powers, PolynomialBasis.HOPS)
    if size > WORST_CONDITION:
        return chebyshev, Basis.CHEBYSHEV, f"powers of A would cancel, condition {size:.2g}"
    return powers, Basis.POWERS, f"well conditioned, {size:.2g}"


def _powers(chebyshev: Tensor) -> Tensor | None:
    from unspool.errors import IncompatibleError

    try:
        return convert(chebyshev, PolynomialBasis.CHEBYSHEV, PolynomialBasis.HOPS)
    except IncompatibleError:
        return None


def _name(h: Callable[[Tensor], Tensor]) -> str:
    from unspool.spectral.targets import Target

    return h.name if isinstance(h, Target) else getattr(h, "__name__", type(h).__name__).replace("<lambda>", "h")
