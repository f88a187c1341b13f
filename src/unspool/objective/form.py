r"""Coefficients in lowest terms: sums of monomials, so that what cancels on paper cancels in the computer.

The gradient step behind a GCN layer, :math:`H - \tfrac12(2LHW + 2H(I-W))`, is :math:`A H W` once its coefficients are
collected. A :class:`Form` does the collecting: a sum of number × powers of scalar coefficients × at most one matrix.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from unspool.objective import channel
from unspool.objective.channel import Map
from unspool.objective.coefficient import Coefficient, Combined, Fixed, Leaf
from unspool.objective.term import Given

#: Scalar coefficients with their powers, and the matrix (or diagonal) that follows them, if any.
Monomial = tuple[tuple[tuple[Coefficient, int], ...], Coefficient | None]

_TINY = 1e-14
_COUNT = itertools.count()
_SEEN: WeakKeyDictionary[Coefficient, int] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Form:
    """A sum of monomials.

    Example:
        >>> import unspool as us
        >>> w = us.Relaxed(3, name="W")
        >>> keep = 1 - (form_of(2 * w) + form_of(2 * (1 - w))) * 0.5
        >>> keep.zero
        True
    """

    parts: dict[Monomial, float]

    @property
    def zero(self) -> bool:
        """Whether nothing is left."""
        return not self.parts

    @property
    def number(self) -> bool:
        """Whether no matrix or diagonal is in it."""
        return all(matrix is None for _, matrix in self.parts)

    @property
    def one(self) -> bool:
        """Whether it is 1 and nothing else, to rounding."""
        return self.parts.keys() == {((), None)} and abs(self.parts[(), None] - 1.0) <= _TINY

    def __add__(self, other: Form | float) -> Form:
        parts = dict(self.parts)
        for monomial, factor in _form(other).parts.items():
            parts[monomial] = parts.get(monomial, 0.0) + factor
        scale = max((abs(v) for v in (*self.parts.values(), *_form(other).parts.values())), default=0.0)
        return Form({m: v for m, v in parts.items() if abs(v) > _TINY * scale})

    __radd__ = __add__

    def __neg__(self) -> Form:
        return Form({m: -v for m, v in self.parts.items()})

    def __sub__(self, other: Form | float) -> Form:
        return self + -_form(other)

    def __rsub__(self, other: Form | float) -> Form:
        return _form(other) + -self

    def __mul__(self, other: Form | float) -> Form:
        total = Form({})
        for (a, left), v in self.parts.items():
            for (b, right), w in _form(other).parts.items():
                if left is not None and right is not None:
                    raise NotPolynomial
                total = total + Form({(_powers(a + b), left or right): v * w})
        return total

    def __truediv__(self, other: Form | float) -> Form:
        divisor = _form(other).parts
        if len(divisor) != 1:
            raise NotPolynomial
        (((powers, matrix), factor),) = divisor.items()
        if matrix is not None or factor == 0:
            raise NotPolynomial
        return self * Form({(tuple((c, -p) for c, p in powers), None): 1 / factor})

    def multiple_of(self, other: Form) -> float | None:
        """The number r with self = r · other, if there is one."""
        if self.zero or self.parts.keys() != other.parts.keys():
            return None
        ratios = [v / other.parts[m] for m, v in self.parts.items()]
        return ratios[0] if max(ratios) - min(ratios) <= _TINY * max(map(abs, ratios)) else None

    def at(self, given: Given) -> Map:
        """The value: a number, a diagonal or a matrix."""
        scalars: dict[Coefficient | None, Map] = {}
        for (powers, matrix), factor in self.parts.items():
            value: Map = factor
            for coefficient, power in powers:
                base = given[coefficient]
                value = value * (base if power == 1 else base**power)
            scalars[matrix] = scalars[matrix] + value if matrix in scalars else value
        total: Map = scalars.pop(None, 0.0)
        for matrix, scalar in scalars.items():
            assert matrix is not None
            part = given[matrix]
            if not (isinstance(scalar, float) and scalar == 1.0):
                part = channel.compose(scalar, part)
            total = part if channel.is_zero(total) else channel.add(total, part)
        return total


class NotPolynomial(Exception):
    """The coefficient is no sum of monomials; whoever asked computes with values instead."""


def form_of(coefficient: Coefficient) -> Form:
    """Collect a coefficient into monomials, or raise :class:`NotPolynomial`.

    Example:
        >>> import unspool as us
        >>> a = us.Learnable(0.3, name="α")
        >>> (form_of(1 - a) + form_of(a) - 1.0).zero
        True
    """
    if isinstance(coefficient, Combined):
        left, right = form_of(coefficient.left), form_of(coefficient.right)
        if coefficient.operation == "+":
            return left + right
        if coefficient.operation == "−":
            return left - right
        return left * right if coefficient.operation == "·" else left / right
    if isinstance(coefficient, Fixed) and coefficient.number:
        return _form(float(coefficient.value))
    if isinstance(coefficient, Leaf | Fixed):
        return Form({(((coefficient, 1),), None) if coefficient.number else ((), coefficient): 1.0})
    raise NotPolynomial


def _form(value: Form | float) -> Form:
    if isinstance(value, Form):
        return value
    return Form({((), None): float(value)} if value != 0 else {})


def _powers(factors: tuple[tuple[Coefficient, int], ...]) -> tuple[tuple[Coefficient, int], ...]:
    """Merge equal coefficients, in an order that does not depend on how they were met."""
    merged: dict[Coefficient, int] = {}
    for coefficient, power in factors:
        merged[coefficient] = merged.get(coefficient, 0) + power
    return tuple(sorted(((c, p) for c, p in merged.items() if p), key=lambda cp: _place(cp[0])))


def _place(coefficient: Coefficient) -> int:
    """Where a coefficient stands among all that were multiplied so far: networks built alike multiply in the same order."""
    return _SEEN.setdefault(coefficient, next(_COUNT))
