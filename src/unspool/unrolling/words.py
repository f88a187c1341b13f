"""An unrolled network in words, and with its formula for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unspool.notebook import facts
from unspool.unrolling.adjoint import Polynomial

if TYPE_CHECKING:
    from unspool.unrolling.unrolled import Unrolled


def steps_of(net: Unrolled) -> str:
    """How many steps of what, from where, and how gradients are made.

    Example:
        >>> import unspool as us
        >>> steps_of(us.unroll(us.Fidelity(0.5) + us.Smoothness(0.5), us.GradientDescent(step=0.5), depth=4))
        '4 × GradientDescent, from Input(), adjoint Polynomial(POWERS)'
    """
    basis = net.adjoint.basis if isinstance(net.adjoint, Polynomial) else None
    how = str(net.adjoint) if basis is None else f"Polynomial({basis.name})"
    return f"{net.depth} × {net.algorithm.name}, from {net.start}, adjoint {how}"


def learns(net: Unrolled) -> str:
    """What is trained, with the numbers of parameters.

    Example:
        >>> import unspool as us
        >>> learns(us.unroll(us.Fidelity(0.5) + us.Smoothness(0.5), us.GradientDescent(step=0.5), depth=4))
        'nothing'
    """
    parts = [f"{name} ({p.numel()})" for name, p in net.coefficients.items() if p.requires_grad]
    for name, module in net.computed.items():
        parts.append(f"{name} ({type(module).__name__}, {sum(p.numel() for p in module.parameters())})")
    return ", ".join(parts) or "nothing"


def html_of_network(net: Unrolled) -> str:
    """The objective as a formula, and a table for notebooks.

    Example:
        >>> import unspool as us
        >>> "<math" in html_of_network(us.unroll(us.Fidelity(0.5) + us.Smoothness(0.5), us.GradientDescent(step=0.5), depth=4))
        True
    """
    return net.objective.html() + facts("Unrolled network", [("steps", steps_of(net)), ("learns", learns(net))])
