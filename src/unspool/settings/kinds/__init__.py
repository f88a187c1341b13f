"""What values a setting takes: how they are checked, typed on a command line, stored in files and shown to people."""

from unspool.settings.kinds.compound import Anything, Instance, Listed, Nullable
from unspool.settings.kinds.kind import Kind, Mismatch
from unspool.settings.kinds.single import Flag, Member, Real, Text, Whole
from unspool.settings.kinds.told import kind_named, kind_of

__all__ = [
    "Anything", "Flag", "Instance", "Kind", "Listed", "Member", "Mismatch", "Nullable", "Real", "Text", "Whole", "kind_named", "kind_of",
]  # fmt: skip
