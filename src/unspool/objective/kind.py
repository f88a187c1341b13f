"""Kinds of terms: what a term offers to those who minimise, and so which algorithms can use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from unspool.errors import IncompatibleError


@dataclass(frozen=True)
class Kind:
    """How a term takes part in a minimisation. Every term of an objective is exactly one kind.

    A class of terms states its kind as the class attribute ``kind``; an algorithm states the kinds that it ``handles`` and
    refuses the others. The kinds of the package are ``Kind.SMOOTH`` (a gradient) and ``Kind.PROXIMABLE`` (a proximal
    operator) and ``Kind.COMPOSITE`` (a proximal operator behind a linear one); a kind of one's own is another instance.

    Args:
        name: how it is called in messages.
        offers: the methods that such a term has besides ``value``.

    Example:
        >>> import unspool as us
        >>> (us.Fidelity(0.5) + us.NonNegative()).kinds
        (Kind.SMOOTH, Kind.PROXIMABLE)
    """

    name: str
    offers: tuple[str, ...] = ()

    SMOOTH: ClassVar[Kind]
    PROXIMABLE: ClassVar[Kind]
    COMPOSITE: ClassVar[Kind]

    def __repr__(self) -> str:
        return f"Kind.{self.name.upper()}"


Kind.SMOOTH = Kind("smooth", ("gradient", "lipschitz"))
Kind.PROXIMABLE = Kind("proximable", ("prox",))
Kind.COMPOSITE = Kind("composite", ("outer_value", "outer_prox", "dual_prox", "dual_step"))


def kind_of(term: Any) -> Kind:
    """The one kind of a term, or a refusal that says what is missing.

    Example:
        >>> import unspool as us
        >>> us.objective.kind_of(us.Sparse(0.1))
        Kind.PROXIMABLE
    """
    # Whatever else a user's class calls ``kind`` (a field, say) is not a statement about this.
    stated = (vars(cls).get("kind") for cls in type(term).__mro__)
    kinds = list(dict.fromkeys(kind for kind in stated if isinstance(kind, Kind)))
    if not kinds:
        raise IncompatibleError(
            f"{term.name} is neither smooth nor proximable, so no algorithm could use it; inherit from SmoothTerm and give it "
            "a gradient, from StencilTerm and give it a stencil, from ProximableTerm and give it a proximal operator, or from CompositeTerm"
        )
    if len(kinds) > 1:
        raise IncompatibleError(
            f"{term.name} is both {' and '.join(kind.name for kind in kinds)}, so it would be counted twice; "
            "let it inherit from one class of terms only"
        )
    for method in kinds[0].offers:
        if not callable(getattr(term, method, None)):
            raise IncompatibleError(
                f"{term.name} says that it is {kinds[0].name}, but has no method {method}; write one"
            )
    return kinds[0]
