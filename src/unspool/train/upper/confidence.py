"""Terms that ask for an answer: low entropy, and the network's own sure answers as labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from unspool.settings.kinds import Kind, Real
from unspool.train.upper.seen import At, Seen
from unspool.train.upper.term import Term, shown


@dataclass(frozen=True)
class Entropy(Term):
    r"""The network shall be sure: :math:`-\frac1R\sum_r\operatorname{mean}_i \sum_c p^r_{ic}\log p^r_{ic}` over all nodes.

    Example:
        >>> print(0.1 * Entropy())
        0.1 (−⟨pʳ, log pʳ⟩)   (mean over nodes)
    """

    name: ClassVar[str] = "entropy"

    def value(self, seen: Seen, at: At) -> Tensor:
        """The mean entropy."""
        del at
        return -(seen.p * seen.log_p).sum(-1).mean()

    def formula(self) -> str:
        """−⟨pʳ, log pʳ⟩."""
        return "(−⟨pʳ, log pʳ⟩)"


@dataclass(frozen=True)
class PseudoLabels(Term):
    r"""Sure answers are labels: cross-entropy against the class that p̄ names at nodes without a label, where :math:`\max\bar p_i` reaches a bound.

    The mean is over all nodes without a label, so that few sure ones count little. Give it time: ``WarmUp(100) * PseudoLabels()``.

    Args:
        confidence: the bound.

    Example:
        >>> print(0.5 * PseudoLabels(confidence=0.8))
        0.5 CE(class of p̄, pʳ) [max p̄ ≥ 0.8]   (mean over nodes)
    """

    name: ClassVar[str] = "pseudo_labels"
    numbers: ClassVar[dict[str, Kind]] = {"confidence": Real(0, 1)}

    confidence: float = 0.9

    def value(self, seen: Seen, at: At) -> Tensor:
        """The mean cross-entropy against the class of p̄."""
        largest, named = seen.mean.max(-1)
        each = -seen.log_p.gather(-1, named[None, ..., None].expand(*seen.log_p.shape[:-1], 1))[..., 0].mean(0)
        open_ = seen.unlabelled.view(-1, *(1,) * (each.ndim - 1)).expand_as(each)
        counted = (largest >= at["confidence"]).to(each.dtype) * open_
        return (counted * each).sum() / open_.sum().clamp_min(1)

    def formula(self) -> str:
        """CE against the class of p̄."""
        return f"CE(class of p̄, pʳ) [max p̄ ≥ {shown(self.confidence)}]"
