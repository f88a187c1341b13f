"""What values a setting takes: how they are checked, typed on a command line, stored in files and shown to people."""

from unspool.settings.kinds.compound import Anything, Instance, Listed, Nullable
from unspool.settings.kinds.infer import kind_named, kind_of
from unspool.settings.kinds.kind import Kind, Mismatch
from unspool.settings.kinds.single import EnumMember, Flag, Real, Text, Whole

__all__ = [
    "Anything",
    "EnumMember",
    "Flag",
    "Instance",
    "Kind",
    "Listed",
    "Mismatch",
    "Nullable",
    "Real",
    "Text",
    "Whole",
    "kind_named",
    "kind_of",
]
