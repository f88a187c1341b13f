"""One model as another: the hop coefficients of a trained network, and putting parts into a new model."""

from __future__ import annotations

from typing import Any, TypeVar

from torch import Tensor, nn

from unspool.errors import IncompatibleError
from unspool.models.model import Model, Origin
from unspool.ops import Basis
from unspool.spectral import PolynomialBasis, convert
from unspool.spectral.linear_form import Hops, read

#: Settings of the encoder, which goes over as it is.
_ENCODER = ("hidden", "dropout", "propagation_dropout", "masks", "bias")

M = TypeVar("M", bound=Model)


def power_hops(model: Any) -> Tensor:
    """The coefficients c₀ ... c_K with propagation(X) = Σ Aᵏ X cₖ, in float64; refused for networks that are no polynomial."""
    if not isinstance(model, Model):
        name = model.__name__ + ", a class," if isinstance(model, type) else type(model).__name__
        raise TypeError(f"{name} is not a model to take weights from; give a trained one such as models.APPNP(...)")
    found = read(model.propagation)
    if not isinstance(found, Hops):
        raise IncompatibleError(
            f"{type(model).__name__} cannot be written with hop coefficients: its propagation is not a polynomial of the graph; "
            "SGC, APPNP, GPRGNN, UGDGNN and the linear-sum JKNet can"
        )
    if found.basis is Basis.CHEBYSHEV:
        return convert(found.coefficients, PolynomialBasis.CHEBYSHEV, PolynomialBasis.HOPS)
    return found.coefficients


def number_hops(model: Any) -> Tensor:
    """The same, where every coefficient is a single number."""
    hops = power_hops(model)
    if hops.ndim > 1:
        raise IncompatibleError(
            f"the hop coefficients of this {type(model).__name__} are matrices, which a filter with numbers cannot hold; use UGDGNN.from_model"
        )
    return hops


def adopt(made: M, p_pre: nn.Module, propagation: nn.Module, p_pos: nn.Module, source: Model) -> M:
    """Put trained parts into a model and remember where they came from."""
    made.p_pre, made.propagation, made.p_pos = p_pre, propagation, p_pos
    kept = {name: source.settings[name] for name in _ENCODER if name in source.settings and name in made.settings}
    if kept.get("propagation_dropout", 0.0) is None:  # GPRGNN: that of dropout
        kept["propagation_dropout"] = kept["dropout"]
    vars(made)["settings"].update(kept)
    # Trap: a module kept as an attribute would be a part of the model, with its parameters.
    made.origin = Origin(type(source), source.in_features, source.out_features, dict(source.settings), source.origin)
    return made.train(source.training)
