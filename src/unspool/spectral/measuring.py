"""Measuring the response of networks that are not linear, with white noise on a graph's own modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError
from unspool.graph import Graph
from unspool.spectral.linear_form import evaluating
from unspool.spectral.responses import Response, modes_of
from unspool.unrolling import Unrolled

#: Measuring needs all eigenvectors; above this many nodes that takes minutes.
LARGEST_MEASURED = 3000


@dataclass(frozen=True, eq=False)
class MeasuredResponse(Response):
    r"""Gains measured on one graph at one amplitude. Made by :func:`measure`.

    Attributes:
        frequency: the centre of each bin, shape (bins,).
        gain: :math:`\sqrt{E|\hat y|^2 / E|\hat x|^2}`, shape (bins,).
        coherence: how much of the output's energy the best linear map per frequency explains, in [0, 1]; 1 for linear networks.
        linear: that map, shape (bins, features, out).

    Calling it interpolates the gain.
    """

    frequency: Tensor
    gain: Tensor
    coherence: Tensor
    linear: Tensor
    nodes: int
    probes: int
    amplitude: float

    exact = False

    def __call__(self, frequency: Any) -> Tensor:
        """The gain, linear between bins and constant beyond the first and last."""
        return _interpolated(torch.as_tensor(frequency, dtype=torch.float64), self.frequency, self.gain)

    def describe(self) -> str:
        """Where and how it was measured."""
        return (
            f"measured with {self.probes} draws of white noise of size {self.amplitude:g} on {self.nodes} nodes; "
            f"coherence {float(self.coherence.min()):.2f} to {float(self.coherence.max()):.2f} (1 is linear)"
        )

    def check_graph(self, graph: Graph) -> None:
        """A measured response is no network."""
        raise IncompatibleError(
            "a measured response knows gains, not what the network does to a signal; run the network itself"
        )

    def rows(self, points: int = 9) -> list[dict[str, float]]:
        """Gain and coherence at even frequencies inside the graph's own range."""
        where = torch.linspace(float(self.frequency[0]), float(self.frequency[-1]), points, dtype=torch.float64)
        coherence = _interpolated(where, self.frequency, self.coherence)
        return [
            {"frequency": float(f), "gain": float(g), "coherence": float(c)}
            for f, g, c in zip(where, self(where), coherence, strict=True)
        ]


@torch.no_grad()
def measure(
    network: Any,
    graph: Graph,
    *,
    features: int = 1,
    probes: int | None = None,
    bins: int | None = None,
    amplitude: float = 1.0,
    seed: int = 0,
) -> MeasuredResponse:
    r"""Send white noise through a network and compare its spectrum before and after.

    With :math:`\hat X = U^\top X` and :math:`\hat Y = U^\top f(X)`, pooled over draws, channels and the modes of one bin,

    .. math:: \text{gain} = \sqrt{\frac{\sum|\hat y|^2}{\sum|\hat x|^2}}, \qquad
        \text{coherence} = 1 - \frac{\min_C \sum\lVert\hat y - \hat x C\rVert^2 / (N - f)}{\sum\lVert\hat y\rVert^2 / N},

    where N counts the pooled rows and f the features. A network that is not linear responds differently at another amplitude.

    Args:
        network: any ``f(x, graph)``; modules are put into evaluation mode meanwhile.
        graph: an undirected graph of at most :data:`LARGEST_MEASURED` nodes.
        features: the width that the network expects.
        probes: how many draws; 32, or 4 per feature if that is more.
        bins: how many even bins over [0, 2]; one per distinct frequency when omitted.
        amplitude: the standard deviation of the noise.
        seed: of the noise.

    Example:
        >>> import unspool as us
        >>> soft = us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7) + us.Sparse(0.2), us.ProximalGradient(), depth=10)
        >>> h = measure(soft, us.graph.grid(5, 5))
        >>> h.exact, bool((h.coherence < 1).all())
        (False, True)
    """
    if graph.nodes > LARGEST_MEASURED:
        raise IncompatibleError(
            f"measuring a response needs all eigenvectors, too many on {graph.nodes} nodes (limit {LARGEST_MEASURED}); "
            "measure on a smaller graph or on a sample of this one"
        )
    probes = max(32, 4 * features) if probes is None else probes
    if probes <= features:
        raise ValueError(f"probes={probes}: {features} features need more draws than that to be told apart")
    frequency, modes = modes_of(graph)
    before, after = _spectra(network, graph, modes, features, probes, amplitude, seed)
    cells = _cells(frequency, bins)
    # What lies below is the rounding of the network, not its doing.
    floor = (100 * torch.finfo(_home(network)[0]).eps) ** 2 * max(float(s.square().mean()) for s in (before, after))
    found = [_one(before[:, cell], after[:, cell], floor) for cell in cells]
    centre = torch.stack([frequency[cell].mean() for cell in cells])
    gain, coherence, linear = (torch.stack(list(column)) for column in zip(*found, strict=True))
    return MeasuredResponse(centre, gain, coherence, linear, graph.nodes, probes, amplitude)


# -- inside ------------------------------------------------------------------------------------------------------------


def _spectra(
    network: Any, graph: Graph, modes: Tensor, features: int, probes: int, amplitude: float, seed: int
) -> tuple[Tensor, Tensor]:
    """X̂ and Ŷ, each of shape (probes, nodes, channels)."""
    dtype, device = _home(network)
    where = graph.to(device).to(dtype)
    generator = torch.Generator().manual_seed(seed)
    before, after = [], []
    with evaluating(network):
        for _ in range(probes):
            x = amplitude * torch.randn(graph.nodes, features, dtype=torch.float64, generator=generator)
            y = network(x.to(device, dtype), where)
            if not isinstance(y, Tensor) or y.ndim != 2 or y.shape[0] != graph.nodes:
                raise TypeError(f"{type(network).__name__} must map (nodes, features) to (nodes, channels)")
            before.append(modes.T @ x)
            after.append(modes.T @ y.detach().to("cpu", torch.float64))
    return torch.stack(before), torch.stack(after)


def _home(network: Any) -> tuple[torch.dtype, torch.device]:
    """Where and in which dtype a network computes: unrolled ones follow their input, modules and what they compute their parameters."""
    if isinstance(network, nn.Module):
        for parameter in network.parameters():
            if parameter.is_floating_point():
                follows = isinstance(network, Unrolled) and not network.computed
                dtype = torch.float64 if follows else parameter.dtype
                return dtype, parameter.device
    return torch.float64, torch.device("cpu")


def _cells(frequency: Tensor, bins: int | None) -> list[Tensor]:
    """Positions of the modes in each bin that holds any."""
    if bins is None:
        # Equal eigenvalues leave their modes undetermined, so they are pooled.
        label = torch.cat([torch.zeros(1), (frequency.diff() > 1e-8).double().cumsum(0)])
    else:
        label = (frequency / 2 * bins).floor().clamp(0, bins - 1)
    return [torch.nonzero(label == value).flatten() for value in label.unique()]


def _one(before: Tensor, after: Tensor, floor: float) -> tuple[Tensor, Tensor, Tensor]:
    """Gain, coherence and best linear map of one bin; spectra have shape (probes, modes, channels)."""
    x, y = before.reshape(-1, before.shape[-1]), after.reshape(-1, after.shape[-1])
    power, total = x.square().mean(), y.square().mean()
    linear = torch.linalg.lstsq(x, y).solution
    rows = x.shape[0]
    rest = (y - x @ linear).square().mean() * rows / (rows - x.shape[1])
    coherence = (1 - rest / total).clamp(0, 1) if float(rest) > floor else torch.ones_like(total)
    # Energies are summed over channels, so that a map to fewer channels loses what it drops.
    gain = (total * y.shape[1] / (power * x.shape[1])).sqrt()
    return gain, coherence, linear


def _interpolated(where: Tensor, known: Tensor, value: Tensor) -> Tensor:
    if known.numel() == 1:
        return value.expand(where.shape).clone()
    right = torch.searchsorted(known, where.contiguous()).clamp(1, known.numel() - 1)
    left = right - 1
    share = ((where - known[left]) / (known[right] - known[left])).clamp(0, 1)
    return value[left] + share * (value[right] - value[left])
