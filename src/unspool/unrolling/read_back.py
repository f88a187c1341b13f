"""Reading a trained network: which denoising problem does each layer solve?

A gradient layer H ← H − (H a + L H b − X a) only shows the products a = 2ηα·Tα and b = 2ηβ·Tβ; η, α and T cannot be told
apart. Under the convention η = 1/2 they are α Tα and β Tβ themselves.

Layers come from two sources: :mod:`unspool.unrolling.read_rule` takes them from a network that was unrolled,
:mod:`unspool.unrolling.read_hops` finds some for a network of free hop coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.objective import channel
from unspool.objective.channel import Map

_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Layer:
    """What one layer does, H ← prox(H − (H·own + L H·smooth + X·given)).

    Attributes:
        fidelity: a = 2ηα·Tα (the part of ``own`` that X answers).
        smoothness: b = 2ηβ·Tβ.
        ridge: 2ηρ·T, the part of ``own`` that X does not answer.
        alpha, beta: a and b as single numbers under η = 1/2, where the maps are numbers; else None.
        fidelity_psd, smoothness_psd: whether the symmetric parts of a and b have no negative eigenvalue.
        asymmetry: ‖T − Tᵀ‖/‖T‖ of the worst of the maps; above zero the layer is a relaxation, not a gradient step.
        stable: whether repeating the layer amplifies no graph frequency.
        descends: whether the step can never raise the layer's own objective: T symmetric and η ≤ 2/L.
        extremes: smallest and largest eigenvalue of a + ridge + λ b over the frequencies λ: η times the curvature.
    """

    fidelity: Map
    smoothness: Map
    ridge: Map
    alpha: float | None
    beta: float | None
    fidelity_psd: bool
    smoothness_psd: bool
    asymmetry: float
    stable: bool
    descends: bool
    extremes: tuple[float, float]

    @property
    def convex(self) -> bool:
        """Whether the layer is a gradient step of at most 2/L on a convex problem with weights α, β ≥ 0."""
        return self.fidelity_psd and self.smoothness_psd and self.stable and self.descends


@dataclass(frozen=True, eq=False)
class ReadBack:
    """The layers of a trained network, first to last. Printing gives a table.

    Attributes:
        layers: what each layer does.
        factor: the map S that had to be factored out of free hop coefficients, to follow the layers as p_pos; 1 if none.
        note: what else is to be said about this reading.
        error: how far the network of these layers is from the one that was read: the largest difference of a hop coefficient or
            of the frequency response, relative to the largest of them. 0 for layers that were not searched for.
    """

    layers: tuple[Layer, ...]
    factor: Map = 1.0
    note: str = ""
    error: float = 0.0

    @property
    def convex(self) -> bool:
        """Whether every layer is a gradient step of at most 2/L on a convex problem with weights α, β ≥ 0."""
        return all(layer.convex for layer in self.layers)

    def hops(self) -> Tensor:
        """Unroll the layers again, S last: the hop coefficients Σ Aᵏ X cₖ (where L = I − A, proximal operators left out).

        Example:
            >>> import torch, unspool as us
            >>> us.read_back_hops(torch.tensor([2.0, 2.0, -2.0], dtype=torch.float64)).hops()
            tensor([ 2.,  2., -2.], dtype=torch.float64)
        """
        hops: list[Map] = [1.0]
        for layer in self.layers:
            own = channel.add(layer.fidelity, layer.ridge)
            keep = channel.add(1.0, channel.negative(channel.add(own, layer.smoothness)))
            after: list[Map] = [channel.compose(c, keep) for c in hops] + [0.0]
            for k, c in enumerate(hops):
                after[k + 1] = channel.add(after[k + 1], channel.compose(c, layer.smoothness))
            after[0] = channel.add(after[0], layer.fidelity)
            hops = after
        maps = [torch.as_tensor(channel.compose(c, self.factor), dtype=torch.float64) for c in hops]
        return torch.stack(list(torch.broadcast_tensors(*maps)))

    def __str__(self) -> str:
        head = "layer    2ηα·Tα     2ηβ·Tβ      2ηρ·T    T psd    asymmetry   curvature × η     stable   descends"
        lines = [head]
        for k, layer in enumerate(self.layers, start=1):
            psd = f"{_tick(layer.fidelity_psd)}/{_tick(layer.smoothness_psd)}"
            span = f"[{layer.extremes[0]:.3g}, {layer.extremes[1]:.3g}]"
            lines.append(
                f"{k:>5}   {show(layer.fidelity):>8}   {show(layer.smoothness):>8}   {show(layer.ridge):>8}   {psd:>6}   "
                f"{layer.asymmetry:>9.2g}   {span:>15}   {_tick(layer.stable):>6}   {_tick(layer.descends):>8}"
            )
        lines.append(
            "under η = 1/2 the first three columns are α·Tα, β·Tβ and ρ·T; matrices are shown by their eigenvalues"
        )
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)


def read_layer(a: Map, b: Map, ridge: Map = 0.0, scale: float = 1.0) -> Layer:
    """Describe the layer H ← H − (H (a + ridge) + L H b − X a) for frequencies in [0, 2·scale]."""
    own = channel.add(a, ridge)

    def own_at(frequency: float) -> Map:
        return channel.add(own, channel.compose(frequency, b))

    at_zero, at_top = own_at(0.0), own_at(2.0 * scale)
    low = min(float(channel.eigenvalue_range(at_zero)[0]), float(channel.eigenvalue_range(at_top)[0]))
    high = max(float(channel.eigenvalue_range(at_zero)[1]), float(channel.eigenvalue_range(at_top)[1]))
    skew = max(channel.asymmetry(t) for t in (a, b, ridge))
    growth = max(_radius(channel.add(1.0, channel.negative(own_at(f)))) for f in _frequencies(skew, scale))
    return Layer(
        fidelity=a, smoothness=b, ridge=ridge, alpha=_number(a), beta=_number(b), fidelity_psd=_psd(a), smoothness_psd=_psd(b),
        asymmetry=skew, stable=growth <= 1 + _SLACK, descends=skew <= 1e-6 and high <= 2 + _SLACK, extremes=(low, high),
    )  # fmt: skip


def show(t: Map) -> str:
    """A map in a few characters: a number, or the smallest and largest eigenvalue."""
    if channel.rank(t) == 0:
        return f"{float(t) + 0.0:.4g}"
    low, high = (float(v) for v in channel.eigenvalue_range(t))
    return f"{low:.2g}..{high:.2g}"


def _number(t: Map) -> float | None:
    return float(t) if channel.rank(t) == 0 else None


def _psd(t: Map) -> bool:
    return bool(float(channel.eigenvalue_range(t)[0]) >= -_SLACK)


def _radius(t: Map) -> float:
    """The spectral radius."""
    if channel.rank(t) == 2:
        return float(torch.linalg.eigvals(t).abs().max())  # type: ignore[arg-type]
    return float(channel.spectral_norm(t))


def _frequencies(skew: float, scale: float) -> list[float]:
    """Where to look for amplification: the two ends suffice for symmetric maps, free ones are sampled."""
    count = 2 if skew == 0 else 33
    return [2.0 * scale * i / (count - 1) for i in range(count)]


def _tick(yes: bool) -> str:
    return "yes" if yes else "no"
