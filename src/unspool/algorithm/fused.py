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
from unspool.ops.dropout import Mask
from unspool.ops.hop_blend import hop_blend
from unspool.ops.mapped_hop import fits, mapped_hop


@dataclass(frozen=True, eq=False)
class OneMap:
    r"""The part :math:`(s\,S H + g X)\,T` of a step with one matrix T and numbers s and g; all of it where nothing of H is kept."""

    hop: Form
    give: Form
    metric: Coefficient

    def weight(self, h: Tensor, given: Given) -> Tensor | None:
        """T, where one kernel does the step and what follows it."""
        weight = given[self.metric]
        taken = isinstance(weight, Tensor) and fits(given.graph.require_laplacian(), h, given.x, weight)
        return weight if taken else None  # type: ignore[return-value]

    def layer(
        self, h: Tensor, given: Given, weight: Tensor, relu: bool = False, drop: Mask | None = None
    ) -> tuple[Tensor, Tensor]:
        """The step from h with the matrix T, what follows it, and X again for the next one."""
        hop: Any = self.hop.at(given)
        give: Any = self.give.at(given)
        return mapped_hop(given.graph.require_laplacian(), h, given.x, weight, hop, give, relu, drop)

    def plain(self, h: Tensor, given: Given) -> Tensor:
        """The step from h, with one map of channels."""
        hop: Any = self.hop.at(given)
        give: Any = self.give.at(given)
        moved = hop_blend(given.graph.require_laplacian(), h, given.x, hop=hop, give=give)
        return channel.apply(moved, given[self.metric])

    def settled_like(self, other: OneMap | None) -> OneMap | None:
        """The same with 0 and 1 where another one has them."""
        if other is None:
            return None
        return OneMap(_settled(self.hop, other.hop), _settled(self.give, other.give), self.metric)


@dataclass(frozen=True, eq=False)
class FusedStep:
    """The three maps of a step, the number r when R = r Q, and the step with one matrix where there is one."""

    h: Form
    sh: Form
    x: Form
    ratio: float | None
    one: OneMap | None = None

    def __call__(self, h: Tensor, given: Given) -> Tensor:
        """One step from h."""
        if self._numbers and kernels.one_pass(h, given.x):
            maps: list[Any] = [1.0 if form.one else form.at(given) for form in (self.h, self.sh, self.x)]
            return hop_blend(given.graph.require_laplacian(), h, given.x, *maps)
        if self.h.zero and self.one is not None:
            if (weight := self.one.weight(h, given)) is not None:
                return self.one.layer(h, given, weight)[0]
            if self.ratio is None and not self.x.zero:  # numbers that are not known yet
                return self.one.plain(h, given)
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
        h, sh, x = (_settled(form, known) for form, known in pairs)
        one = None if self.one is None else self.one.settled_like(other.one)
        return FusedStep(h, sh, x, x.multiple_of(sh), one)

    @property
    def _numbers(self) -> bool:
        """Whether all three maps are numbers, and there is a hop to take."""
        return not self.sh.zero and self.h.number and self.sh.number and self.x.number


def _settled(form: Form, known: Form) -> Form:
    return Form({}) if known.zero else Form({((), None): 1.0}) if known.one else form


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
        sh, x, h = eta * lap, eta * given, 1.0 - eta * (own + lap)
        return FusedStep(h, sh, x, x.multiple_of(sh), _one_map(objective, eta))
    except NotPolynomial:
        return None


def _one_map(objective: Objective, eta: Form) -> OneMap | None:
    """The numbers of a step whose terms of L H and X share one matrix."""
    hop, give, metric = Form({}), Form({}), None
    for term in objective.smooth_terms:
        if isinstance(term, Smoothness | Fidelity):
            own: Coefficient = term.metric
            if not own.matrix or metric not in (None, own):
                return None
            metric, part = own, eta * form_of(term.weight) * 2.0
            hop, give = (hop + part, give) if isinstance(term, Smoothness) else (hop, give + part)
    return None if metric is None or hop.zero else OneMap(hop, give, metric)


def _applied(h: Tensor, form: Form, given: Given) -> Tensor:
    value = form.at(given)
    return h if isinstance(value, float) and value == 1.0 else channel.apply(h, value)
