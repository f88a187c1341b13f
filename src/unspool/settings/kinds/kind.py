"""What every kind of values does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Mismatch(Exception):
    """A value that is not of the kind; whoever knows the name of the setting says so, with what the mismatch says of a way out."""


class Kind(ABC):
    """A kind of values.

    Example:
        >>> from unspool.settings.kinds import Whole
        >>> Whole(low=1).parse("12"), Whole(low=1).expected
        (12, 'a whole number of at least 1')
    """

    @property
    @abstractmethod
    def expected(self) -> str:
        """What fits, in words."""

    @property
    def typed(self) -> str:
        """What fits where it is typed, in words."""
        return self.expected

    @abstractmethod
    def accept(self, value: Any) -> Any:
        """The value as it is kept, or :class:`Mismatch`."""

    @abstractmethod
    def parse(self, text: str) -> Any:
        """The value that was typed, or :class:`Mismatch`."""

    def to_plain(self, value: Any) -> Any:
        """The value as something that JSON can hold."""
        return value

    def from_plain(self, plain: Any) -> Any:
        """Back from that."""
        return self.accept(plain)

    def shown(self, value: Any) -> str:
        """The value for people, as it would be typed."""
        return str(self.to_plain(value))
