"""The paper's statements as executable certificates.

>>> from unspool import theory
>>> certificates = theory.verify(trials=1)
>>> all(c.as_stated for c in certificates)
True
"""

from __future__ import annotations

from collections.abc import Callable

from unspool.theory import (
    errata,
    expressive,
    later_edges,
    later_filters,
    later_labels,
    layers,
    noise,
    printed,
    propositions,
    robustness,
    smoothing,
    theorems,
)
from unspool.theory.activations import POTENTIALS, advantage
from unspool.theory.certificate import Certificate, Claim, Evidence, Verdict

#: Every claim, in the order of the paper, then errata, then the models of later papers.
CLAIMS: tuple[Claim, ...] = (
    theorems.CLAIMS
    + noise.CLAIMS
    + propositions.CLAIMS
    + robustness.CLAIMS
    + expressive.CLAIMS
    + layers.CLAIMS
    + errata.CLAIMS
    + smoothing.CLAIMS
    + printed.CLAIMS
    + later_edges.CLAIMS
    + later_filters.CLAIMS
    + later_labels.CLAIMS
)


def verify(seed: int = 0, trials: int = 3, watch: Callable[[Certificate], None] | None = None) -> list[Certificate]:
    """Test every claim at random sizes and parameters in float64.

    Args:
        seed: of the random settings.
        trials: random settings per claim.
        watch: called with each certificate as it is found.

    Example:
        >>> from unspool import theory
        >>> print(theory.verify(trials=1)[0])
        Section 2: BᵀB = I − A: holds when A is symmetrically normalised, with self-loops (error ..., gap ...)
    """
    found: list[Certificate] = []
    for claim in CLAIMS:
        certificate = claim.certify(seed, trials)
        found.append(certificate)
        if watch is not None:
            watch(certificate)
    return found


__all__ = ["CLAIMS", "POTENTIALS", "Certificate", "Claim", "Evidence", "Verdict", "advantage", "verify"]
