"""Terms that ask for agreement: of the views with each other, of a node with its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.ops.spmm import spmm
from unspool.settings.kinds import Kind, Nullable, Real
from unspool.train.upper.seen import At, Seen, has_classes, plain_loss, sharpen
from unspool.train.upper.term import VIEWS, Term, accepted, shown


@dataclass(frozen=True)
class Consistency(Term):
    r"""What the network says shall be the same in every view: stability of the solution under perturbations of its data.

    .. math:: \frac1R\sum_r \operatorname{mean}_i \lVert p^r_i - \mathrm{sharpen}_T(\bar p_i)\rVert^2, \qquad \mathrm{sharpen}_T(p) \propto p^{1/T}

    over all nodes, labelled or not; no gradient goes through p̄, the mean of the views (Feng et al., 2020, GRAND). Where numbers are learnt,
    p is the output itself, and there is nothing to sharpen.

    Args:
        views: R, how many passes with masks of their own a step has.
        temperature: T; the mean as it is when omitted.
        confidence: nodes whose largest p̄ is below it do not count (GRAND+).

    Example:
        >>> print(2.5 * Consistency(views=4, temperature=0.5))
        2.5 ‖pʳ − sharpen(p̄, 0.5)‖²   (mean over nodes and 4 views r)
    """

    name: ClassVar[str] = "consistency"
    numbers: ClassVar[dict[str, Kind]] = {"temperature": Nullable(Real(0, None, True)), "confidence": Real(0, 1)}
    classes_only: ClassVar[bool] = False

    views: int = 2
    temperature: float | None = None
    confidence: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "views", accepted(self, "views", VIEWS))

    @property
    def least_views(self) -> int:
        """R."""
        return self.views

    def value(self, seen: Seen, at: At) -> Tensor:
        """The mean squared distance to the sharpened mean."""
        if not has_classes(seen.loss):
            return (seen.p - seen.mean).square().sum(-1).mean()
        target = sharpen(seen.mean, at["temperature"])
        sure = (seen.mean.amax(-1) >= at["confidence"]).to(target.dtype)
        each = (seen.p - target).square().sum(-1).mean(0)
        return (sure * each).sum() / sure.sum().clamp_min(1)

    def check(self, task: Any) -> None:
        """Only probabilities are sharpened, and sure."""
        if not has_classes(task.loss) and (self.temperature is not None or self.confidence > 0):
            raise IncompatibleError(
                f"consistency with a temperature or a confidence is for classes, and {type(plain_loss(task.loss)).__name__} learns none; write "
                f"consistency(views={self.views})"
            )

    def formula(self) -> str:
        """‖pʳ − sharpen(p̄, T)‖²."""
        target = "p̄" if self.temperature is None else f"sharpen(p̄, {shown(self.temperature)})"
        where = f" [max p̄ ≥ {shown(self.confidence)}]" if self.confidence > 0 else ""
        return f"‖pʳ − {target}‖²{where}"


@dataclass(frozen=True)
class Neighbours(Term):
    r"""A node shall say what its neighbours say: :math:`\frac1R\sum_r\operatorname{mean}_i \lVert p^r_i - \mathrm{sharpen}_T((A\bar p)_i)\rVert^2`.

    A p̄ is brought to sum 1 at every node, and no gradient goes through it. For graphs whose neighbours are mostly of one class.

    Args:
        temperature: T; 1 leaves A p̄ as it is.

    Example:
        >>> print(Neighbours(temperature=0.5))
        ‖pʳ − sharpen(A p̄, 0.5)‖²
    """

    name: ClassVar[str] = "neighbours"
    numbers: ClassVar[dict[str, Kind]] = {"temperature": Real(0, None, True)}

    temperature: float = 1.0

    def value(self, seen: Seen, at: At) -> Tensor:
        """The mean squared distance to the neighbours' mean."""
        told = spmm(seen.graph, seen.mean.flatten(1)).view(seen.mean.shape)
        whole = told.sum(-1, keepdim=True)
        told = torch.where(whole > 0, told / whole.clamp_min(1e-12), seen.mean)  # of a node without neighbours, its own
        return (seen.p - sharpen(told, at["temperature"])).square().sum(-1).mean()

    def formula(self) -> str:
        """‖pʳ − A p̄‖²."""
        return f"‖pʳ − {'A p̄' if self.temperature == 1 else f'sharpen(A p̄, {shown(self.temperature)})'}‖²"
