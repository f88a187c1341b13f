r"""A gradient step in lowest terms: :math:`H - \eta\nabla f(H) = H P + S H\,Q + X R`.

Computing the gradient and subtracting it costs three channel maps and two passes that often cancel: the layers of GCN,
GCNII and AirGNN keep nothing of H. Collecting the coefficients first (:mod:`unspool.objective.form`) leaves the layer as
its authors write it, ``(A @ h) @ w``: one channel map instead of three, and nothing that cancels only to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.objective import Coefficient, Fidelity, Given, Objective, Ridge, Smoothness, channel
from unspool.objective.form import Form, NotPolynomial, form_of
from unspool.ops.spmm import spmm


@dataclass(frozen=True, eq=False)
class FusedStep:
    """The three maps of a step, and the number r when R = r Q."""

    h: Form
    sh: Form
    x: Form
    ratio: float | None

    def __call__(self, h: Tensor, given: Given) -> Tensor:
        """One step from h."""
        total = None if self.h.zero else channel.apply(h, self.h.at(given))
        if not self.sh.zero:
            moved = spmm(given.graph.require_laplacian(), h)
            if self.ratio is not None:
                moved = torch.add(moved, given.x, alpha=self.ratio)
            part = _applied(moved, self.sh, given)
            total = part if total is None else total + part
        if self.ratio is None and not self.x.zero:
            part = _applied(given.x, self.x, given)
            total = part if total is None else total + part
        return h * 0.0 if total is None else total


def fused_step(objective: Objective, step: object) -> FusedStep | None:
    """Collect the step on an objective of the three plain quadratic terms; None where that cannot be done.

    Example:
        >>> import unspool as us
        >>> w = us.Relaxed(3, name="W")
        >>> step = fused_step(us.Smoothness(1.0, metric=w) + us.Ridge(1.0, metric=1 - w), us.Fixed(0.5))
        >>> step.h.zero, step.x.zero
        (True, True)
    """
    if not isinstance(step, Coefficient):
        return None
    try:
        eta = form_of(step)
        own = lap = given = Form({})
        for term in objective.smooth_terms:
            if type(term) not in (Fidelity, Smoothness, Ridge):
                return None
            part = form_of(term.weight) * form_of(term.metric) * 2.0  # type: ignore[attr-defined]
            own = own + part if not isinstance(term, Smoothness) else own
            lap = lap + part if isinstance(term, Smoothness) else lap
            given = given + part if isinstance(term, Fidelity) else given
        sh, x = eta * lap, eta * given
        return FusedStep(1.0 - eta * (own + lap), sh, x, x.multiple_of(sh))
    except NotPolynomial:
        return None


def _applied(h: Tensor, form: Form, given: Given) -> Tensor:
    value = form.at(given)
    return h if isinstance(value, float) and value == 1.0 else channel.apply(h, value)
