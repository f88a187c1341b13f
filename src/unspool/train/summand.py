"""What can be weighed and added to an upper level: losses, terms, and sums of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unspool.train.upper.sum import Upper


class Summand:
    """Anything that adds up to an :class:`~unspool.train.upper.Upper`.

    Example:
        >>> from unspool.train import CrossEntropy
        >>> from unspool.train.upper import Entropy
        >>> print(CrossEntropy() + 0.1 * Entropy())
        CE(Y, pʳ)  +  0.1 (−⟨pʳ, log pʳ⟩)   (mean over nodes)
    """

    def __add__(self, other: Any) -> Upper:
        from unspool.train.upper.sum import as_upper

        return as_upper(self).plus(other)

    def __mul__(self, factor: Any) -> Upper:
        from unspool.train.upper.sum import as_upper

        return as_upper(self).times(factor)

    __rmul__ = __mul__
