"""What can be wrong with what somebody asks for, as values with fields; sentences are made of them at the edge."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any


class _Unshown:
    def __repr__(self) -> str:
        return "unshown"

    def __reduce__(self) -> str:  # the same object in every process
        return "UNSHOWN"


#: For arguments whose value is not worth showing.
UNSHOWN: Any = _Unshown()
#: Signs of private use around the name of an argument that a sentence mentions.
_OPEN, _BETWEEN, _CLOSE = "\ue000", "\ue001", "\ue002"
_MENTIONED = re.compile(f"{_OPEN}(\\w+)(?:{_BETWEEN}([^{_CLOSE}]*))?{_CLOSE}")
#: How an argument that a sentence mentions is called, given its name and perhaps its value.
Called = Callable[[str, str | None], str]


class Worded(ValueError):
    """A problem whose sentence mentions arguments: by their names in Python, as options on the command line."""

    def worded(self, called: Called) -> str:
        """The sentence.

        Args:
            called: how an argument that is mentioned is called here, with its value where one is mentioned too.
        """
        raise NotImplementedError

    def __str__(self) -> str:
        return self.worded(lambda name, value: f"{name}={'...' if value is None else value}")


class IncompatibleError(Worded):
    """A well-formed request that mathematics does not allow, said in one sentence with the way out.

    Wrong shapes, dtypes and numbers raise ``ValueError`` or ``TypeError`` as everywhere; an ``IncompatibleError`` means that
    each part is fine and the combination is not: gradient descent on a term without a gradient, an exact
    minimiser of an objective that has none.

    Example:
        >>> import unspool as us
        >>> us.unroll(us.NonNegative() + us.Smoothness(1.0), us.GradientDescent(step=0.5), depth=3)
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: GradientDescent needs a gradient, but NonNegative has none; use ProximalGradient()
    """

    def worded(self, called: Called) -> str:
        """What was said, with arguments as they are called here."""
        return _worded(" ".join(map(str, self.args)), called)


class InputError(Worded, TypeError):
    """An argument that is not what was expected.

    Both a ``ValueError`` and a ``TypeError``, as whoever calls may be ready for either.

    Args:
        argument: its name in Python; the command line shows the option of that name.
        value: what was given; ``UNSHOWN`` where showing it would not help.
        expected: what would have been right, as in "expected ...".
        hint: the way out, where the expectation does not say it all.
        owner: the class whose setting it is, where it is one.

    Other arguments that ``expected`` and ``hint`` speak of are mentioned with :func:`mention`.

    Example:
        >>> raise InputError("depth", 0, "a whole number of at least 1")
        Traceback (most recent call last):
            ...
        unspool.errors.InputError: depth=0: expected a whole number of at least 1
    """

    def __init__(
        self, argument: str, value: Any, expected: str, hint: str | None = None, *, owner: str | None = None
    ) -> None:
        super().__init__(argument, value, expected, hint)
        self.argument, self.value, self.expected, self.hint, self.owner = argument, value, expected, hint, owner

    def worded(self, called: Called) -> str:
        """The argument, what was expected of it, and the way out."""
        given = self.argument if self.value is UNSHOWN else f"{self.argument}={_looks(self.value)}"
        return f"{given}: {self.sentence(called)}"

    def sentence(self, called: Called) -> str:
        """The same without the argument itself."""
        return _worded(f"expected {self.expected}" + ("" if self.hint is None else f"; {self.hint}"), called)


class DataError(Worded):
    """Something in the user's data that cannot be right.

    Args:
        where: the file, with the line or column; the data set; or "".
        problem: what is wrong there.
        hint: the way out.

    Example:
        >>> raise DataError("y.csv", "which of the columns a, b is the label?", f"name it with {mention('label_column')}")
        Traceback (most recent call last):
            ...
        unspool.errors.DataError: y.csv: which of the columns a, b is the label?; name it with label_column=...
    """

    def __init__(self, where: str, problem: str, hint: str | None = None) -> None:
        super().__init__(where, problem, hint)
        self.where, self.problem, self.hint = where, problem, hint

    def worded(self, called: Called) -> str:
        """Where, what, and the way out."""
        place = f"{self.where}: " if self.where else ""
        return _worded(f"{place}{self.problem}" + ("" if self.hint is None else f"; {self.hint}"), called)


class RankLost(RuntimeError):
    """Another process of a job that works on one graph ended, or said nothing for long; nothing is wrong here."""


def _looks(value: Any) -> str:
    """A value as Python writes it; some cannot be written, such as whole numbers of more than 4300 digits."""
    try:
        return repr(value)
    except Exception:  # whatever a class of the user's raises: this is the message of another problem
        return f"<{type(value).__name__}>"


def _worded(text: str, called: Called) -> str:
    return _MENTIONED.sub(lambda found: called(found[1], found[2]), text)


def mention(argument: str, value: Any = None) -> str:
    """An argument inside a sentence of a :class:`Worded` error: ``name=...`` in Python, ``--name`` on the command line.

    With a value it is ``name=value`` in Python, and ``--name value`` on the command line.

    Example:
        >>> print(InputError("labels", "y.csv", "one column of labels", f"name it with {mention('label_column')}"))
        labels='y.csv': expected one column of labels; name it with label_column=...
    """
    return f"{_OPEN}{argument}{'' if value is None else f'{_BETWEEN}{value}'}{_CLOSE}"
