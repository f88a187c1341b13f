"""One study, many machines: Ray's workers claim and train, and one actor keeps the file."""

from unspool.study.machines.cluster import Ray

__all__ = ["Ray"]
