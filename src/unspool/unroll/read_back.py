"""Reading a trained network: which denoising problem does each layer solve?

A gradient layer H ← H − (H a + L H b − X a) only shows the products a = 2ηα·Tα and b = 2ηβ·Tβ; η, α and T cannot be told
apart. Under the convention η = 1/2 they are α Tα and β Tβ themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.algorithm import Algorithm, GradientDescent, Problem, ProximalGradient
from unspool.objective import QuadraticTerm, channel
from unspool.objective.channel import Map
from unspool.refusal import Refusal

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


@dataclass(frozen=True, eq=False)
class ReadBack:
    """The layers of a trained network, first to last, and the map S that had to be factored out of it (1 if none).

    Printing gives a table.
    """

    layers: tuple[Layer, ...]
    factor: Map = 1.0
    note: str = ""

    def __str__(self) -> str:
        head = "layer    2ηα·Tα     2ηβ·Tβ      2ηρ·T    T psd    asymmetry   curvature × η     stable   descends"
        lines = [head]
        for k, layer in enumerate(self.layers, start=1):
            psd = f"{_tick(layer.fidelity_psd)}/{_tick(layer.smoothness_psd)}"
            span = f"[{layer.extremes[0]:.3g}, {layer.extremes[1]:.3g}]"
            lines.append(
                f"{k:>5}   {_show(layer.fidelity):>8}   {_show(layer.smoothness):>8}   {_show(layer.ridge):>8}   {psd:>6}   "
                f"{layer.asymmetry:>9.2g}   {span:>15}   {_tick(layer.stable):>6}   {_tick(layer.descends):>8}"
            )
        lines.append(
            "under η = 1/2 the first three columns are α·Tα, β·Tβ and ρ·T; matrices are shown by their eigenvalues"
        )
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)


def read_back_layers(algorithm: Algorithm, problems: list[Problem]) -> ReadBack:
    """Read the layers of a network that was unrolled from an objective."""
    if not isinstance(algorithm, GradientDescent | ProximalGradient):
        raise Refusal(
            f"the layers of {algorithm.name} mix several iterates, so no single step can be read back; use GradientDescent or ProximalGradient"
        )
    for term in problems[0].objective.smooth_terms:
        if not isinstance(term, QuadraticTerm):
            raise Refusal(
                f"{term.name} is not a quadratic of the graph's Laplacian, so its part of a layer cannot be read back"
            )
    layers: list[Layer] = []
    for problem in problems:
        step = algorithm.step_size(problem)
        stencil = problem.objective.stencil(problem.given)
        own, b, x = (channel.compose(step, t) for t in (stencil.own, stencil.laplacian, stencil.given))
        a = channel.negative(x)
        layers.append(read_layer(a, b, channel.add(own, x), problem.given.graph.scale))
    return ReadBack(tuple(layers), note=_prox_note(problems[0]))


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


def read_back_hops(hops: Tensor) -> ReadBack:
    r"""Recover the layers of a network given by free hop coefficients, Σₖ Aᵏ X cₖ.

    With r = 0 every unrolled network leaves signals of graph frequency zero alone, so Σ cₖ = I; the sum S of free coefficients is therefore
    factored into p_pos first. Then H ← A H (I − T⁽ᵏ⁾) + X T⁽ᵏ⁾ (η = 1/2, α = β, Tα = I − Tβ = T) holds with

    .. math:: T^{(K-i)} = c_i S^{-1} \bigl(I - \textstyle\sum_{m<i} c_m S^{-1}\bigr)^{-1},

    wherever the partial sums stay away from I (docs/errata.md, 1 and 2).

    Args:
        hops: shape (K+1,), (K+1, features) or (K+1, features, features).

    Example:
        >>> import torch
        >>> layers = read_back_hops(torch.tensor([0.1, 0.09, 0.81], dtype=torch.float64)).layers
        >>> [round(layer.alpha, 6) for layer in layers]
        [0.1, 0.1]
        >>> read_back_hops(torch.tensor([1.0, 1.0, -1.0]))
        Traceback (most recent call last):
            ...
        unspool.refusal.Refusal: no gradient layers with η = 1/2 give these hop coefficients: after hop 0 the partial sum is already singular to the total, so the remaining hops cannot be reached
    """
    c = hops.detach().to("cpu", torch.float64)
    if c.ndim == 3 and c.shape[1] != c.shape[2]:
        raise Refusal(
            f"hop coefficients of shape {tuple(c.shape[1:])} change the width, which no gradient step does; factor the change into p_pos"
        )
    if c.shape[0] < 2:
        raise Refusal("a single hop coefficient is a map on channels, no layer: there is nothing to read back")
    total = c.sum(0)
    if not _invertible(total, c):
        # Of numbers the sum is the whole response at frequency zero; of matrices only some directions are lost.
        lost = (
            "erases signals of frequency zero (a pure high-pass)"
            if c.ndim == 1
            else "erases some signals of frequency zero"
        )
        raise Refusal(
            f"the hop coefficients sum to a singular map, a network that {lost}; no gradient network does that"
        )
    c = _right_divide(c, total)
    remaining = _identity_like(total)
    layers: list[Layer] = []
    for i in range(c.shape[0] - 1):
        if not _invertible(remaining, c):
            if bool((c[i:].abs() < 1e-12).all()):
                t = torch.zeros_like(total)
            else:
                raise Refusal(
                    f"no gradient layers with η = 1/2 give these hop coefficients: after hop {i - 1} the partial sum is already "
                    "singular to the total, so the remaining hops cannot be reached"
                )
        else:
            t = _right_divide(c[i][None], remaining)[0]
        layers.append(read_layer(_plain(t), channel.add(1.0, channel.negative(_plain(t)))))
        remaining = remaining - c[i]
    factor = _plain(total)
    note = "" if _is_one(factor) else f"after factoring the sum S = {_show(factor)} of the hop coefficients into p_pos"
    return ReadBack(tuple(reversed(layers)), factor, note)


# -- small algebra on numbers, diagonals and matrices as float64 tensors ------------------------------------------------


def _identity_like(t: Tensor) -> Tensor:
    return torch.eye(t.shape[0], dtype=t.dtype) if t.ndim == 2 else torch.ones_like(t)


def _right_divide(c: Tensor, t: Tensor) -> Tensor:
    return c @ torch.linalg.inv(t) if t.ndim == 2 else c / t


def _invertible(t: Tensor, scale: Tensor) -> bool:
    size = float(scale.abs().max())
    smallest = float(torch.linalg.svdvals(t)[-1]) if t.ndim == 2 else float(t.abs().min())
    return smallest > 1e-10 * max(size, 1e-300)


def _plain(t: Tensor) -> Map:
    return float(t) if t.ndim == 0 else t


def _is_one(t: Map) -> bool:
    if not isinstance(t, Tensor):
        return abs(t - 1) < 1e-9
    return bool(torch.allclose(t, _identity_like(t), atol=1e-9))


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


def _show(t: Map) -> str:
    if channel.rank(t) == 0:
        return f"{float(t) + 0.0:.4g}"
    low, high = (float(v) for v in channel.eigenvalue_range(t))
    return f"{low:.2g}..{high:.2g}"


def _prox_note(problem: Problem) -> str:
    names = ", ".join(t.name for t in problem.objective.proximable_terms)
    return f"each step is followed by the proximal operator of {names}" if names else ""
