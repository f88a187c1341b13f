"""Table 1 of the paper: the problem behind each model, as our own objects print it, with the certificates that test it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unspool import models, theory
from unspool.theory import Certificate

#: The rows of Table 1 that are named otherwise in the certificates.
_ALSO = {"PPNP": ("Proposition 4",), "APPNP": ("Proposition 4",)}


@dataclass(frozen=True)
class Line:
    """One row: a model, its problem, how it is minimised, and what became of the paper's statements about it.

    Attributes:
        model: its name.
        objective: the problem, printed by the model's own objective.
        reading: how the layers minimise it, and under which condition.
        certificates: the statements about this model.

    Example:
        >>> from unspool import theory
        >>> line = table1([claim.certify(trials=1) for claim in theory.CLAIMS if "APPNP" in claim.name])[2]
        >>> line.model, line.objective, line.certificates[0].verdict.value
        ('APPNP', '0.1 ‖H − X‖²  +  0.9 ‖B H‖²', 'holds')
    """

    model: str
    objective: str
    reading: str
    certificates: tuple[Certificate, ...]

    @property
    def as_stated(self) -> bool:
        """Whether all its certificates end as documented."""
        return all(certificate.as_stated for certificate in self.certificates)


def table1(certificates: Sequence[Certificate]) -> list[Line]:
    """The rows of Table 1 in the order of the paper; DAGNN and MLP, which it does not have, come last.

    Args:
        certificates: from :func:`unspool.theory.verify`.

    Example:
        >>> [line.model for line in table1([])]
        ['SGC', 'PPNP', 'APPNP', 'JKNet', 'GPRGNN', 'GCN', 'GCNII', 'AirGNN', 'UGDGNN', 'DAGNN', 'MLP']
    """
    last = ("DAGNN", "MLP")
    kinds = sorted(models.MODELS, key=lambda kind: kind.__name__ in last)
    lines: list[Line] = []
    for kind in kinds:
        made = kind(4, 2)
        mine = tuple(c for c in certificates if _is_about(c, kind.__name__))
        lines.append(Line(kind.__name__, str(made.objective), made.derivation, mine))
    return lines


def certified(trials: int = 3, seed: int = 0) -> tuple[list[Line], list[Certificate]]:
    """Table 1 with fresh certificates, and all certificates of the paper.

    Takes seconds; ``table1(theory.verify(...))`` does the same.
    """
    found = theory.verify(seed, trials)
    return table1(found), found


def _is_about(certificate: Certificate, model: str) -> bool:
    """Propositions name their model after a comma."""
    place, _, about = certificate.name.partition(", ")
    if not place.startswith("Proposition"):
        return False
    if about:
        return about.split(";")[0].strip() == model
    return place in _ALSO.get(model, ())
