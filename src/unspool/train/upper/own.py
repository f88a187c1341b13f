"""A term of one's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from unspool.errors import InputError
from unspool.train.upper.seen import At, Seen
from unspool.train.upper.term import VIEWS, Term, accepted


@dataclass(frozen=True)
class OwnTerm(Term):
    """Any function of what the network says in every view, of the labels, and of the graph.

    It is called as ``function(outputs, labels, graph)``: outputs of shape (views, nodes, outputs), as the network says them and not as
    probabilities; labels of all nodes, of which only those of training nodes are told (others are -1, or NaN where they are numbers). It
    gives a tensor with one number. Written without a look at values it runs in packs and CUDA graphs.

    Args:
        function: the function.
        symbol: how it is printed; the function's own name when omitted.
        views: how many views a step must have.

    Example:
        >>> def calm(outputs, labels, graph):
        ...     return graph.laplacian_times(outputs.mean(0)).square().mean()
        >>> print(0.1 * OwnTerm(calm))
        0.1 calm(hʳ, Y, A)   (mean over nodes)
    """

    name: ClassVar[str] = "own"
    classes_only: ClassVar[bool] = False

    function: Callable[[Tensor, Tensor, Any], Tensor]
    symbol: str | None = None
    views: int = 1

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError("function", self.function, "a function of outputs, labels and graph")
        object.__setattr__(self, "views", accepted(self, "views", VIEWS))

    @property
    def least_views(self) -> int:
        """As it was said."""
        return self.views

    def value(self, seen: Seen, at: At) -> Tensor:
        """What the function gives."""
        del at
        found: Any = self.function(seen.outputs, seen.known, seen.graph)
        if not isinstance(found, Tensor) or found.numel() != 1:
            what = (
                f"a tensor of shape {tuple(found.shape)}" if isinstance(found, Tensor) else f"a {type(found).__name__}"
            )
            raise TypeError(
                f"the term {self._named()} is {what}: expected a tensor with one number; take its mean or sum"
            )
        return found.reshape(())

    @property
    def objects(self) -> tuple[Any, ...]:
        """The function."""
        return (self.function,)

    def text(self) -> str:
        """By its name, which files cannot read."""
        return f"own({self._named()})"

    def formula(self) -> str:
        """name(hʳ, Y, A)."""
        return f"{self._named()}(hʳ, Y, A)"

    def _named(self) -> str:
        if self.symbol is not None:
            return self.symbol
        return str(getattr(self.function, "__name__", type(self.function).__name__))
