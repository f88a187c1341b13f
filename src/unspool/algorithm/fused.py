r"""A gradient step in lowest terms: :math:`H - \eta\nabla f(H) = H P + S H\,Q + X R`.

Computing the gradient and subtracting it costs three channel maps and two passes that often cancel: the layers of GCN,
GCNII and AirGNN keep nothing of H. Collecting the coefficients first (:mod:`unspool.objective.form`) leaves the layer as
its authors write it, ``(A @ h) @ w``: one channel map instead of three, and nothing that cancels only to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from unspool.objective import Coefficient, Fidelity, Given, Objective, Ridge, Smoothness, channel
from unspool.objective.form import Form, NotPolynomial, form_of
from unspool.ops import kernels
from unspool.ops.hop_blend import hop_blend


@dataclass(frozen=True, eq=False)
class FusedStep:
    """The three maps of a step, and the number r when R = r Q."""

    h: Form
    sh: Form
    x: Form
    ratio: float | None

    def __call__(self, h: Tensor, given: Given) -> Tensor:
        """One step from h."""
        if self._numbers and kernels.fused(h, given.x):
            maps: list[Any] = [1.0 if form.one else form.at(given) for form in (self.h, self.sh, self.x)]
            return hop_blend(given.graph.require_laplacian(), h, given.x, *maps)
        total = None if self.h.zero else channel.apply(h, self.h.at(given))
        if not self.sh.zero:
            give = 0.0 if self.ratio is None else self.ratio
            moved = hop_blend(given.graph.require_laplacian(), h, given.x, give=give)
            part = _applied(moved, self.sh, given)
            total = part if total is None else total + part
        if self.ratio is None and not self.x.zero:
            part = _applied(given.x, self.x, given)
            total = part if total is None else total + part
        return h * 0.0 if total is None else total

    def settled_like(self, other: FusedStep) -> FusedStep:
        """The same step, with 0 and 1 for what another one, of the same terms with numbers filled in, has found to be that."""
        pairs = ((self.h, other.h), (self.sh, other.sh), (self.x, other.x))
        h, sh, x = (Form({}) if known.zero else Form({((), None): 1.0}) if known.one else form for form, known in pairs)
        return FusedStep(h, sh, x, x.multiple_of(sh))

    @property
    def _numbers(self) -> bool:
        """Whether all three maps are numbers, and there is a hop to take."""
        return not self.sh.zero and self.h.number and self.sh.number and self.x.number


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
