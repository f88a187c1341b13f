r"""The layers behind free hop coefficients: the form that GPRGNN, JKNet and UGDGNN train.

Every polynomial that is 1 at frequency zero is K gradient layers (:mod:`unspool.unrolling.division`, docs/errata.md, 2), in many ways.
Among them a reading that is convex and stable is preferred (:mod:`unspool.unrolling.convex`), then one with small numbers.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.objective.channel import Map
from unspool.ops.polynomial import Basis
from unspool.unrolling.convex import convex_steps
from unspool.unrolling.division import Array, divide, horner, tails, unrolled
from unspool.unrolling.read_back import Layer, ReadBack, read_layer, show
from unspool.unrolling.symmetric import fitted_steps, symmetric_steps

#: Above this relative error a reading is not handed out.
_TRUSTED = 1e-6
#: Gauss-Newton for symmetric matrices is for few channels.
_MOST_CHANNELS = 4
#: The same a₀ at every division, in the hope that it is a convex reading; 0 is the paper's.
_SAME_POINT = (0.0, 0.3, -0.3, 0.6, -0.6, 0.9, -0.9)

Steps = tuple[Array, Array]


def read_back_hops(hops: Tensor, *, basis: Basis = Basis.POWERS, symmetric: bool = False) -> ReadBack:
    r"""Find gradient layers that give these hop coefficients, Σₖ Aᵏ X cₖ.

    With r = 0 every unrolled network leaves signals of graph frequency zero alone, so Σ cₖ = I; the sum S of free coefficients is therefore
    factored into p_pos first. What is left is always K layers, if the coefficients are numbers or diagonals: c(a) = 1 + (a − 1) g(a), and
    a layer H ← (1 − α − β) H + β A H + α X under η = 1/2 is

    .. math:: g \leftarrow \beta + (1 - \alpha - \beta + \beta a)\, g .

    Matrices are read as far as division goes: as long as each quotient is invertible at some point, or by a fit. There are many readings. One
    in which all α, β ≥ 0 and all steps are within 2/L is preferred (``found.convex``); where the note says that none was found, there may
    still be one.

    Args:
        hops: shape (K+1,), (K+1, features) or (K+1, features, features).
        basis: whether they belong to powers of A or to Chebyshev polynomials.
        symmetric: of matrices, accept symmetric ones alone (each layer is then a gradient step), or say how near they came.

    Example:
        >>> import torch
        >>> layers = read_back_hops(torch.tensor([0.1, 0.09, 0.81], dtype=torch.float64)).layers
        >>> [round(layer.alpha, 6) for layer in layers]
        [0.1, 0.1]
        >>> found = read_back_hops(torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64))
        >>> found.hops(), found.convex
        (tensor([ 1.,  1., -1.], dtype=torch.float64), False)
    """
    given = hops.detach().to("cpu", torch.float64).numpy()
    _check(given)
    total = given.sum(axis=0)  # at a = 1, where all powers and all Chebyshev polynomials are 1
    response = _right_divide(_response(given, basis), total)
    c = unit = _right_divide(_powers(given, basis), total)
    if c.ndim == 3:
        keep, hop, note = _matrices(unit, symmetric)
    elif c.ndim == 2:
        keep, hop, note = _channels(unit)
    else:
        keep, hop, note = _numbers(unit)
    error = _error(keep, hop, unit, response)
    if not error <= _TRUSTED:
        raise IncompatibleError(
            f"the layers that were found give these hop coefficients only to a relative error of {error:.1g}, for "
            "they cancel; read fewer hops, or a network whose coefficients are of one size"
        )
    factor = _map(total)
    shown = show(factor) if total.ndim or show(factor) != "1" else f"{float(total):.9g}"  # nearly one is not one
    notes = [note]
    if not _is_one(total):
        notes = [f"after factoring the sum S = {shown} of the hop coefficients into the decoder (p_pos)", note]
    return ReadBack(_layers(keep, hop), factor, "; ".join(n for n in notes if n), error)


def _check(c: Array) -> None:
    if c.ndim == 3 and c.shape[1] != c.shape[2]:
        raise IncompatibleError(
            f"hop coefficients of shape {c.shape[1:]} change the width, which no gradient step does; factor the change into the decoder (p_pos)"
        )
    if c.shape[0] < 2:
        raise IncompatibleError(
            "a single hop coefficient is a map on channels and not a layer: there is nothing to read back"
        )
    if not np.isfinite(c).all():
        raise IncompatibleError("some hop coefficients are not finite numbers, so there is nothing to read back")
    total = c.sum(axis=0)
    smallest = np.linalg.svd(total, compute_uv=False)[-1] if c.ndim == 3 else np.abs(total).min()
    if smallest <= 1e-10 * np.abs(c).max():
        # Of numbers the sum is the whole response at frequency zero; of matrices only some directions are lost.
        lost = (
            "erases signals of frequency zero (a pure high-pass)"
            if c.ndim == 1
            else "erases some signals of frequency zero"
        )
        raise IncompatibleError(
            f"the hop coefficients sum to a singular map, a network that {lost}; no gradient network does that"
        )


# -- numbers and diagonals ----------------------------------------------------------------------------------------------

_NOT_CONVEX = "no such problem with all α, β ≥ 0 and all steps within 2/L was found"


def _numbers(c: Array) -> tuple[Array, Array, str]:
    found = convex_steps(tails(c))
    if found is not None and _error(*found, c, _response(c, Basis.POWERS)) <= 1e-9:
        return *found, ""
    return *_small(c), _NOT_CONVEX


def _channels(c: Array) -> tuple[Array, Array, str]:
    """Every channel is a network of its own."""
    read = [_numbers(one) for one in c.T]
    missed = sum(bool(note) for *_, note in read)
    keep, hop = (np.stack([one[i] for one in read], axis=1) for i in (0, 1))  # type: ignore[misc]
    return keep, hop, f"{_NOT_CONVEX} for {missed} of {len(read)} channels" if missed else ""


def _small(c: Array) -> Steps:
    """The reading with the smallest numbers that was found: the paper's, if it is no worse."""
    divided, paper = divide(tails(c)), horner(tails(c))
    assert divided is not None  # a polynomial that is not zero has a point where it is not zero
    return paper if _largest(paper) <= _largest(divided) else divided


def _largest(steps: Steps) -> float:
    return float(np.nan_to_num(np.abs(np.stack(steps)), nan=np.inf).max())


# -- matrices -----------------------------------------------------------------------------------------------------------


def _matrices(c: Array, symmetric: bool) -> tuple[Array, Array, str]:
    diagonal = np.einsum("kii->ki", c)
    if not np.any(c - diagonal[:, :, None] * np.eye(c.shape[1])):
        keep, hop, note = _channels(diagonal)  # matrices in name only
        return keep[:, :, None] * np.eye(c.shape[1]), hop[:, :, None] * np.eye(c.shape[1]), note
    if symmetric:
        return (*_symmetric(c), "symmetric metrics, found by Gauss-Newton: every layer is a gradient step")
    g = tails(c)
    steps = [divide(g, np.array([point])) for point in _SAME_POINT] + [divide(g)]
    sound = [s for s in steps if s is not None and _error(*s, c, _response(c, Basis.POWERS)) <= 1e-9]
    if not sound:
        return (*_fitted(g), "no quotient had an invertible point, so the layers were fitted by Gauss-Newton")
    for keep, hop in sound:
        if _skew(keep) + _skew(hop) <= 1e-6 and all(layer.convex for layer in _layers(keep, hop)):
            return keep, hop, ""
    note = "none of the problems that were tried has symmetric positive metrics and steps within 2/L"
    return *min(sound, key=_largest), note


def _symmetric(c: Array) -> Steps:
    depth, features = len(c) - 1, c.shape[1]
    numbers, wanted = (2 * depth - 1) * features * (features + 1) // 2, depth * features**2
    count = f"{depth} layers on {features} channels have {numbers} numbers for {wanted} coefficients"
    if features > _MOST_CHANNELS:
        raise IncompatibleError(
            f"symmetric metrics are looked for on at most {_MOST_CHANNELS} channels, not {features} ({count}); read "
            "without symmetric=True, and see by Layer.asymmetry how far each layer is from a gradient step"
        )
    keep, hop, error = symmetric_steps(tails(c), tries=12 if features < _MOST_CHANNELS else 6)
    if error > 1e-9:
        raise IncompatibleError(
            f"no symmetric metrics were found that give these hop coefficients: the nearest are off by {error:.1g} of the largest "
            f"coefficient ({count}); read without symmetric=True"
        )
    return keep, hop


def _fitted(g: Array) -> Steps:
    keep, hop, error = fitted_steps(g)
    if error > 1e-9:
        raise IncompatibleError(
            "these matrices could not be read back: dividing leaves a quotient that is singular at every point, and the nearest layers "
            f"that were fitted are off by {error:.1g} of the largest coefficient; the polynomial is still valid as it is"
        )
    return keep, hop


# -- small algebra ------------------------------------------------------------------------------------------------------


def _powers(c: Array, basis: Basis) -> Array:
    return c if basis is Basis.POWERS else np.apply_along_axis(_cheb_to_powers, 0, c)


def _cheb_to_powers(c: Array) -> Array:
    from numpy.polynomial import chebyshev  # 16 ms that whoever reads nothing back need not wait for

    found = np.zeros_like(c)
    powers = chebyshev.cheb2poly(c)
    found[: len(powers)] = powers  # cheb2poly leaves out zeros at the end
    return found


def _right_divide(c: Array, t: Array) -> Array:
    return c @ np.linalg.inv(t) if c.ndim == 3 else c / t


def _is_one(t: Array) -> bool:
    return bool(np.allclose(t, np.eye(len(t)) if t.ndim == 2 else 1.0, rtol=0, atol=1e-9))


def _map(t: Array) -> Map:
    return float(t) if t.ndim == 0 else torch.from_numpy(np.ascontiguousarray(t))


def _layers(keep: Array, hop: Array) -> tuple[Layer, ...]:
    one = np.eye(hop.shape[1]) if hop.ndim == 3 else 1.0
    return tuple(read_layer(_map(np.asarray(one - p - q)), _map(np.asarray(q))) for p, q in zip(keep, hop, strict=True))


def _skew(m: Array) -> float:
    return float(np.abs(m - m.swapaxes(1, 2)).max())


def _points(hops: int) -> Array:
    return np.cos(np.linspace(0.0, np.pi, 4 * hops))


def _response(c: Array, basis: Basis) -> Array:
    """c(a) on [−1, 1]."""
    from numpy.polynomial import chebyshev, polynomial

    vander = chebyshev.chebvander if basis is Basis.CHEBYSHEV else polynomial.polyvander
    return np.tensordot(vander(_points(len(c)), len(c) - 1), c, 1)


def _error(keep: Array, hop: Array, c: Array, response: Array) -> float:
    """The largest difference of a hop coefficient, or of the response, relative to the largest of them."""
    by_hop = np.abs(unrolled(keep, hop) - c).max() / np.abs(c).max()
    at = _points(len(c)).reshape(-1, *(1,) * (hop.ndim - 1))
    one = np.eye(hop.shape[1]) if hop.ndim == 3 else np.ones(hop.shape[1:])
    h = np.broadcast_to(one, response.shape)
    for p, q in zip(keep, hop, strict=True):
        step = p + at * q
        h = (h @ step if hop.ndim == 3 else h * step) + (one - p - q)
    by_frequency = np.abs(h - response).max() / np.abs(response).max()
    return float(max(by_hop, by_frequency))
