"""How a named model maps onto the fast kernels: which parameter is which, and where dropout happens."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch
from torch import Tensor, nn

from unspool import models
from unspool.models import Channels, Combine, Layers, Mixing, Side
from unspool.models.convert import power_hops
from unspool.nn import Dropout
from unspool.ops import Basis
from unspool.ops.solve import default_tolerance

#: Signals of all terms are kept; conjugate gradients, which keep none, take over where there would be more.
MOST_TERMS = 256


class Middle(Enum):
    """What stands between the first layer and the loss.

    ``SERIES``: a second layer, then Σ Aᵏ Z cₖ on class channels. ``GATED``: a second layer, then DAGNN's gates.
    ``ROWS``: a second layer, then AirGNN's steps: a hop, and each row is pulled back to where it began. ``CONVOLUTION``: a hop, ReLU,
    the second layer, a hop. ``LINEAR``: hops only. ``JUMPS``: JKNet's sum over hops of hidden channels, then a head. ``DEEP``:
    GCNII's layers, then a head.
    """

    SERIES = "series"
    GATED = "gated"
    ROWS = "rows"
    CONVOLUTION = "convolution"
    LINEAR = "linear"
    JUMPS = "jumps"
    DEEP = "deep"


class Mixer(Enum):
    """Where the hop coefficients come from: fixed numbers, learnt numbers γ, or γ (ζ I + (1 − ζ) W)."""

    FIXED = "fixed"
    NUMBERS = "numbers"
    MATRICES = "matrices"


@dataclass(frozen=True)
class Site:
    """One place where dropout happens: the module's name, its calls per forward pass, and which of them this is."""

    module: str
    calls: int = 1
    place: int = 0


@dataclass(frozen=True)
class Blueprint:
    """What the fast kernels need to know about a model; equal blueprints share a batch.

    Attributes:
        middle, mixer: see the enums.
        width: of the hidden layer (of the output for ``LINEAR``).
        classes: output channels.
        depth: hops; a shallower trial of a series has zeros for its last coefficients.
        first: name of the first layer's weight.
        parts: names of the small parameters by the role they play in the kernels.
        sites: dropout on the input, on the hidden layer, and before the hops.
        each_hop: whether the last of them is called anew for every hop of a series: a trial's depth + 1 calls per forward pass.
        basis: of a series: powers of A, or Chebyshev polynomials where as many terms as single precision can tell are wanted (PPNP).
    """

    middle: Middle
    mixer: Mixer
    width: int
    classes: int
    depth: int
    first: str
    parts: tuple[tuple[str, str], ...]
    sites: tuple[Site | None, Site | None, Site | None]
    each_hop: bool = False
    basis: Basis = Basis.POWERS

    @property
    def shape(self) -> Blueprint:
        """What must agree within a batch: everything, but for depth where zero coefficients can stand for missing hops.

        The terms of an exact solution are no setting by which trials could be sorted, deepest first, so they must agree too.
        """
        series = self.middle in (Middle.SERIES, Middle.JUMPS) and self.basis is Basis.POWERS
        return replace(self, depth=0) if series else self

    def part(self, role: str) -> str | None:
        """The name of the parameter with this role, if the model has one."""
        return dict(self.parts).get(role)


def blueprint(model: nn.Module) -> Blueprint | None:
    """The blueprint of a model, or None where it has settings that the fast kernels do not know.

    Example:
        >>> import unspool as us
        >>> blueprint(us.models.UGDGNN(5, 3, depth=4)).middle
        <Middle.SERIES: 'series'>
        >>> blueprint(us.models.GCN(5, 3, depth=3)) is None
        True
    """
    maker = _MAKERS.get(type(model))
    if maker is None or getattr(model, "solved_exactly", False) or getattr(model, "origin", None) is not None:
        return None
    made = maker(model)
    if made is None or made.classes > 16 or made.width > 256:
        return None
    known = {made.first, *(name for _, name in made.parts)}
    learnt = {name for name, p in model.named_parameters() if p.requires_grad}
    return made if learnt == known else None


def fixed_hops(model: nn.Module) -> Tensor:
    """The numbers c₀ ... c_K of a model whose hops are not learnt, in double precision."""
    if isinstance(model, models.MLP):
        return torch.ones(1, dtype=torch.float64)
    if isinstance(model, models.PPNP):
        return minimiser_terms(model.settings["teleport"], torch.finfo(next(model.parameters()).dtype).eps)
    return power_hops(model).detach().double().cpu()


def minimiser_terms(teleport: float, exact: float) -> Tensor:
    r"""Chebyshev coefficients of the minimiser :math:`\gamma / (1 - (1-\gamma) a)`, as many as leave out less than ``exact``.

    They fall like :math:`r^k` with :math:`r = (1 - \sqrt{1-q^2}) / q`, q = 1 − γ: as fast as conjugate gradients converge, with no
    number that must be looked at on the way. The count is a multiple of eight, so that similar trials share a batch.

    Example:
        >>> terms = minimiser_terms(0.1, 1e-7)
        >>> len(terms) - 1, round(float(terms.sum()), 6)  # at a = 1 every polynomial is 1, and so is the minimiser
        (40, 1.0)
    """
    ratio, first = _falling(teleport)
    terms = first * ratio ** torch.arange(last_term(teleport, exact) + 1, dtype=torch.float64)
    terms[0] /= 2
    return terms


def last_term(teleport: float, exact: float) -> int:
    """The number K of the last of these coefficients.

    Example:
        >>> last_term(0.1, 1e-7), last_term(1.0, 1e-7), last_term(1e-4, 1e-7)
        (40, 0, 1192)
    """
    ratio, first = _falling(teleport)
    if ratio == 0:
        return 0
    # What is left out after the term K: first · ratio^(K + 1) / (1 − ratio).
    last = math.log(exact / 2 * (1 - ratio) / first) / math.log(ratio)
    return max(8, 8 * math.ceil(last / 8))


def _falling(teleport: float) -> tuple[float, float]:
    """How fast the coefficients fall, and twice the first of them."""
    root = math.sqrt(teleport * (2 - teleport))  # √(1 − q²) without cancellation
    return (1 - teleport) / (1 + root), 2 * teleport / root


def dropout_at(model: nn.Module, site: Site | None) -> Dropout | None:
    """The dropout module of a site."""
    return None if site is None else model.get_submodule(site.module)  # type: ignore[return-value]


_INPUT, _HIDDEN, _AFTER = Site("p_pre.dropout", 2, 0), Site("p_pre.dropout", 2, 1), Site("p_pre.after")


def _perceptron(model: Any, middle: Middle, mixer: Mixer, depth: int, more: dict[str, str]) -> Blueprint | None:
    layers = model.p_pre.layers
    if len(layers) != 2 or model.p_pre.norms is not None:
        return None
    parts = {"w2": "p_pre.layers.1.weight", **more}
    if layers[0].bias is not None:
        parts["b1"], parts["b2"] = "p_pre.layers.0.bias", "p_pre.layers.1.bias"
    width, classes = layers[1].weight.shape
    return Blueprint(
        middle, mixer, int(width), int(classes), depth, "p_pre.layers.0.weight", tuple(sorted(parts.items())),
        (_INPUT, _HIDDEN, _AFTER), model.p_pre.held,
    )  # fmt: skip


def _ugdgnn(model: Any) -> Blueprint | None:
    how = model.settings
    plain = (
        how["channels"] is Channels.CLASSES and how["mixing"] is Mixing.TIED and how["layers"] is Layers.REDUCED
        and how["basis"] is Basis.POWERS
    )  # fmt: skip
    more = {"gamma": "propagation.gamma", "zeta": "propagation.zeta", "weight": "propagation.weight"}
    return _perceptron(model, Middle.SERIES, Mixer.MATRICES, how["depth"], more) if plain else None


def _gprgnn(model: Any) -> Blueprint | None:
    return _perceptron(
        model, Middle.SERIES, Mixer.NUMBERS, model.settings["depth"], {"gamma": "propagation.coefficients"}
    )


def _appnp(model: Any) -> Blueprint | None:
    return _perceptron(model, Middle.SERIES, Mixer.FIXED, model.settings["depth"], {})


def _ppnp(model: Any) -> Blueprint | None:
    dtype = next(model.parameters()).dtype
    # A solution that is asked for in less than full precision is another one.
    loose = model.settings["tolerance"] is not None and model.settings["tolerance"] > default_tolerance(dtype)
    terms = last_term(model.settings["teleport"], torch.finfo(dtype).eps)
    if loose or terms > MOST_TERMS:
        return None
    made = _perceptron(model, Middle.SERIES, Mixer.FIXED, terms, {})
    return None if made is None else replace(made, basis=Basis.CHEBYSHEV)


def _airgnn(model: Any) -> Blueprint | None:
    if model.settings["adjoint"] is not None:
        return None
    return _perceptron(model, Middle.ROWS, Mixer.FIXED, model.settings["depth"], {})


def _mlp(model: Any) -> Blueprint | None:
    return _perceptron(model, Middle.SERIES, Mixer.FIXED, 0, {})


def _dagnn(model: Any) -> Blueprint | None:
    gate = {"gate": "propagation.gate.weight", "gate_bias": "propagation.gate.bias"}
    return _perceptron(model, Middle.GATED, Mixer.FIXED, model.settings["depth"], gate)


def _gcn(model: Any) -> Blueprint | None:
    how = model.settings
    if how["depth"] != 2 or how["batch_norm"]:
        return None
    parts = {"w2": "propagation.weights.0"}
    if how["bias"]:
        parts.update(b1="propagation.biases.0", last="propagation.biases.1")
    weight = model.propagation.weights[0]
    return Blueprint(
        Middle.CONVOLUTION, Mixer.FIXED, int(weight.shape[0]), int(weight.shape[1]), 2, "p_pre.layers.0.weight",
        tuple(sorted(parts.items())), (Site("p_pre.dropout"), Site("propagation.dropout"), None),
    )  # fmt: skip


def _sgc(model: Any) -> Blueprint | None:
    if model.settings["weights"] is not Side.PRE:
        return None
    parts = (("last", "p_pos.bias"),) if model.settings["bias"] else ()
    classes = model.out_features
    return Blueprint(
        Middle.LINEAR, Mixer.FIXED, classes, classes, model.settings["depth"], "p_pre.weight", parts, (None, None, None)
    )


def _hidden(model: Any, middle: Middle, depth: int, hops: str, between: Site) -> Blueprint | None:
    width = int(model.settings["hidden"])
    if width not in (16, 32, 64, 128):
        return None
    parts = {"b1": "p_pre.layers.0.bias", "hops": hops, "head": "p_pos.1.weight", "last": "p_pos.1.bias"}
    sites = (Site("p_pre.dropout"), between, Site("p_pos.0"))
    return Blueprint(
        middle,
        Mixer.FIXED,
        width,
        model.out_features,
        depth,
        "p_pre.layers.0.weight",
        tuple(sorted(parts.items())),
        sites,
    )


def _jknet(model: Any) -> Blueprint | None:
    if model.settings["combine"] is not Combine.SUM or model.settings["channels"] is Channels.CLASSES:
        return None
    return _hidden(model, Middle.JUMPS, model.settings["depth"], "propagation.coefficients", Site("p_pre.after"))


def _gcnii(model: Any) -> Blueprint | None:
    depth = model.settings["depth"]
    if model.settings["hidden"] > 64:  # a layer's matrices do not fit into the shared memory of a multiprocessor
        return None
    return _hidden(model, Middle.DEEP, depth, "propagation.coefficients.W", Site("propagation.between", depth))


_MAKERS: dict[type[Any], Callable[[Any], Blueprint | None]] = {
    models.UGDGNN: _ugdgnn, models.GPRGNN: _gprgnn, models.APPNP: _appnp, models.MLP: _mlp, models.DAGNN: _dagnn,
    models.GCN: _gcn, models.SGC: _sgc, models.JKNet: _jknet, models.GCNII: _gcnii, models.PPNP: _ppnp, models.AirGNN: _airgnn,
}  # fmt: skip
