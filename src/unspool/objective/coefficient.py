"""Coefficients: numbers and matrices of an objective or an algorithm, *with their sharing*.

A coefficient is an expression over leaves. Two places that mention the same leaf share one parameter, whatever
arithmetic stands between: ``1 - alpha`` is the same parameter as ``alpha``. Coefficients own no tensors that train;
the unrolled network does, and hands each layer's values to :meth:`Coefficient.evaluate`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.objective import channel
from unspool.objective.channel import Map

#: Raw parameter values by leaf: what a layer of a network hands to the objective.
Values = Mapping["Leaf", Tensor]


class Coefficient(ABC):
    """A number, diagonal or matrix in a formula; supports ``+ - * /`` with numbers and other coefficients.

    Example:
        >>> import unspool as us
        >>> alpha = us.Learnable(0.1, per_layer=True, within=(0, 1), name="α")
        >>> print(1 - alpha, 2 * (1 - alpha))
        1 − αₖ 2 (1 − αₖ)
    """

    @abstractmethod
    def evaluate(self, values: Values) -> Map:
        """The value, given the raw parameters of its leaves."""

    @property
    @abstractmethod
    def leaves(self) -> tuple[Leaf, ...]:
        """The learnable leaves it mentions, each once, in order of appearance."""

    @property
    def symmetric(self) -> bool:
        """Whether the value is a symmetric map by construction (numbers and diagonals are)."""
        return True

    @property
    def matrix(self) -> bool:
        """Whether the value is a matrix rather than a number or a diagonal."""
        return False

    @property
    def number(self) -> bool:
        """Whether the value is a single number rather than a diagonal or a matrix."""
        return False

    @property
    def per_layer(self) -> bool:
        """Whether any leaf differs from layer to layer."""
        return any(leaf.per_layer for leaf in self.leaves)

    @property
    def factor(self) -> str:
        """The formula, in brackets where it would be misread as a factor."""
        return str(self)

    def __getattr__(self, name: str) -> Any:
        hint = "; inside a term, its value is given[...], such as given[self.weight]" if hasattr(Tensor, name) else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def __add__(self, other: Any) -> Coefficient:
        return Combined("+", self, as_coefficient(other))

    def __radd__(self, other: Any) -> Coefficient:
        return Combined("+", as_coefficient(other), self)

    def __sub__(self, other: Any) -> Coefficient:
        return Combined("−", self, as_coefficient(other))

    def __rsub__(self, other: Any) -> Coefficient:
        return Combined("−", as_coefficient(other), self)

    def __mul__(self, other: Any) -> Any:
        scales = hasattr(type(other), "formula")  # a term or an objective, which is scaled from either side
        return NotImplemented if scales else Combined("·", self, as_coefficient(other))

    def __rmul__(self, other: Any) -> Coefficient:
        return Combined("·", as_coefficient(other), self)

    def __truediv__(self, other: Any) -> Coefficient:
        return Combined("/", self, as_coefficient(other))

    def __rtruediv__(self, other: Any) -> Coefficient:
        return Combined("/", as_coefficient(other), self)

    def __neg__(self) -> Coefficient:
        return Combined("·", Fixed(-1.0), self)


@dataclass(frozen=True, eq=False)
class Fixed(Coefficient):
    """A value that never trains: a number, a 1-d tensor (diagonal) or a 2-d tensor (matrix).

    Example:
        >>> import unspool as us
        >>> us.Fixed(0.5).evaluate({})
        0.5
    """

    value: float | Tensor
    name: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.value, Tensor) and self.value.requires_grad:
            raise TypeError(
                "a coefficient is a tensor that requires gradients, which a fixed value would lose; use Learnable(tensor)"
            )
        if channel.strange(self.value) is not None:
            raise ValueError(f"a coefficient is {channel.strange(self.value)}: coefficients must be finite numbers")
        if isinstance(self.value, Tensor):  # fixed means fixed, whatever becomes of the caller's tensor
            object.__setattr__(self, "value", self.value.clone())

    def evaluate(self, values: Values) -> Map:
        """The value itself."""
        return self.value

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """None."""
        return ()

    @property
    def symmetric(self) -> bool:
        """Whether the tensor equals its transpose."""
        return not self.matrix or bool(torch.equal(self.value, self.value.mT))  # type: ignore[union-attr]

    @property
    def matrix(self) -> bool:
        """Whether it is a 2-d tensor."""
        return channel.rank(self.value) == 2

    @property
    def number(self) -> bool:
        """Whether it is a number or a 0-d tensor."""
        return channel.rank(self.value) == 0

    def __str__(self) -> str:
        if self.name is None and self.number:
            return f"{float(self.value):.4g}".replace("-", "−")
        return "T" if self.name is None else self.name

    def __repr__(self) -> str:
        return f"Fixed(tensor{tuple(self.value.shape)})" if isinstance(self.value, Tensor) else f"Fixed({self.value})"


class Leaf(Coefficient):
    """A learnable coefficient: it says where training starts and how a raw parameter becomes a value.

    Identity is sharing: the same object is the same parameter.
    """

    def __init__(self, name: str | None, per_layer: bool) -> None:
        self.name = name
        self._per_layer = per_layer

    @abstractmethod
    def start(self) -> Tensor:
        """The raw parameter of one layer before training."""

    def start_layers(self, depth: int) -> Tensor:
        """The raw parameter of a whole network: of all layers where each has its own."""
        raw = self.start()
        return raw.expand(depth, *raw.shape).clone() if self.per_layer else raw

    @property
    def learnt(self) -> bool:
        """Whether it trains."""
        return True

    @abstractmethod
    def value_of(self, raw: Tensor) -> Tensor:
        """The value that a raw parameter stands for."""

    @property
    def letter(self) -> str:
        """The symbol used when no name is given."""
        return "θ"

    def evaluate(self, values: Values) -> Map:
        """The value at the given raw parameters."""
        raw = values.get(self)
        if raw is None:
            raise IncompatibleError(f"no part of the network keeps the coefficient {self}; make it an attribute of one")
        return self.value_of(raw)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Itself."""
        return (self,)

    @property
    def per_layer(self) -> bool:
        """Whether each layer has its own."""
        return self._per_layer

    def __str__(self) -> str:
        return (self.name or self.letter) + ("ₖ" if self.per_layer else "")


class Learnable(Leaf):
    r"""A learnable number (or one number per channel or edge), tied over layers or one per layer, in a range or free.

    Inside ``within=(low, high)`` the raw parameter passes through a sigmoid, with one open end through a softplus, so
    any optimiser step keeps the value in range.

    Args:
        initial: where training starts: a number, or a tensor of numbers.
        per_layer: one parameter per layer instead of one for all.
        within: open interval (low, high); either end may be None.
        name: how it is printed and what its parameter is called.

    Example:
        >>> import unspool as us
        >>> us.Learnable(1.0, within=(0, 1))
        Traceback (most recent call last):
            ...
        ValueError: the coefficient θ starts at 1, which is not strictly inside (0, 1)
    """

    def __init__(
        self,
        initial: float | Tensor,
        *,
        per_layer: bool = False,
        within: tuple[float | None, float | None] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name, per_layer)
        self.initial = torch.as_tensor(initial, dtype=torch.float64).detach().clone()
        self.within = within
        if not bool(torch.isfinite(self.initial).all()):
            raise ValueError(f"the coefficient {self} starts at {float(self.initial.flatten()[0])}: it must be finite")
        low, high = within if within is not None else (None, None)
        inside = (low is None or bool((self.initial > low).all())) and (
            high is None or bool((self.initial < high).all())
        )
        if not inside:
            at = f"{float(self.initial.flatten()[0]):g}"
            raise ValueError(f"the coefficient {self} starts at {at}, which is not strictly inside ({low}, {high})")

    def start(self) -> Tensor:
        """The inverse of the range's squashing, at the initial value."""
        low, high = self.within if self.within is not None else (None, None)
        v = self.initial
        if low is not None and high is not None:
            return torch.logit((v - low) / (high - low))
        if low is not None:
            return _softplus_inverse(v - low)
        if high is not None:
            return _softplus_inverse(high - v)
        return v.clone()

    def value_of(self, raw: Tensor) -> Tensor:
        """The raw parameter, squashed into the range."""
        low, high = self.within if self.within is not None else (None, None)
        if low is not None and high is not None:
            return low + (high - low) * torch.sigmoid(raw)
        if low is not None:
            return low + torch.nn.functional.softplus(raw)
        if high is not None:
            return high - torch.nn.functional.softplus(raw)
        return raw

    @property
    def matrix(self) -> bool:
        """Whether it was started from a 2-d tensor."""
        return self.initial.ndim == 2

    @property
    def number(self) -> bool:
        """Whether it was started from a number."""
        return self.initial.ndim == 0

    @property
    def symmetric(self) -> bool:
        """Numbers and diagonals are; a free matrix is not."""
        return not self.matrix

    def __repr__(self) -> str:
        return f"Learnable({self})"


@dataclass(frozen=True, eq=False)
class Combined(Coefficient):
    """Two coefficients joined by an operation."""

    operation: str
    left: Coefficient
    right: Coefficient

    def __post_init__(self) -> None:
        if self.operation == "/" and self.right.matrix:
            raise TypeError(f"cannot divide by the matrix {self.right}; give its inverse as a metric of its own")

    def evaluate(self, values: Values) -> Map:
        """The operation on the two values, numbers counting as multiples of the identity."""
        a, b = self.left.evaluate(values), self.right.evaluate(values)
        if self.operation == "+":
            return channel.add(a, b)
        if self.operation == "−":
            return channel.add(a, channel.negative(b))
        return channel.compose(a, b) if self.operation == "·" else a / b

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Those of both sides, each once."""
        return tuple(dict.fromkeys(self.left.leaves + self.right.leaves))

    @property
    def symmetric(self) -> bool:
        """Sums and multiples of symmetric maps are symmetric; other products with a matrix need not be."""
        commute = self.operation in "+−" or self.left.number or self.right.number or not self.matrix
        return commute and self.left.symmetric and self.right.symmetric

    @property
    def matrix(self) -> bool:
        """Whether either side is a matrix."""
        return self.left.matrix or self.right.matrix

    @property
    def number(self) -> bool:
        """Whether both sides are numbers."""
        return self.left.number and self.right.number

    @property
    def factor(self) -> str:
        """Sums, quotients and what begins with a sign in brackets."""
        return f"({self})" if self.operation in "+−/" or str(self).startswith("−") else str(self)

    def __str__(self) -> str:
        if self.operation in "+−":
            left = _identity_times(self.left) if self.right.matrix and self.left.number else str(self.left)
            right = self.right.factor if self.operation == "−" else str(self.right)
            right = _identity_times(self.right) if self.left.matrix and self.right.number else right
            return f"{left} {self.operation} {right}"
        joint = "/" if self.operation == "/" else " "
        if self.operation == "·" and self.left.factor[-1].isdigit() and self.right.factor[0].isdigit():
            joint = "·"
        if self.operation == "/" and isinstance(self.right, Combined):
            return f"{self.left.factor}/({self.right})"
        return f"{self.left.factor}{joint}{self.right.factor}" if str(self.left) != "−1" else f"−{self.right.factor}"

    def __repr__(self) -> str:
        return f"Combined({self})"


def _identity_times(number: Coefficient) -> str:
    """A number that is added to a matrix: t means t·I."""
    return "I" if str(number) == "1" else f"{number.factor} I"


class _Initial(Mapping["Leaf", Tensor]):
    """Every leaf at the start of training."""

    def __getitem__(self, leaf: Leaf) -> Tensor:
        return leaf.start()

    def __hash__(self) -> int:
        return id(self)

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


INITIAL: Values = _Initial()


def as_coefficient(value: Any) -> Coefficient:
    """Numbers, tensors, arrays and lists of numbers become :class:`Fixed`; True and False count as 1 and 0; coefficients stay what they are."""
    if isinstance(value, Coefficient):
        return value
    if isinstance(value, list | tuple | np.ndarray | Tensor):
        value = channel.tensor_of(value)
        return Fixed(value if value.ndim or value.requires_grad else float(value))
    try:
        return Fixed(float(value))
    except (TypeError, ValueError):
        raise TypeError(f"{value!r} is not a coefficient: give a number, a tensor or a Learnable") from None


def _softplus_inverse(value: Tensor) -> Tensor:
    return value + torch.log(-torch.expm1(-value))
