"""The commands ``unspool study ...``: many trials trained, looked at and compared."""

from unspool.cli.study.commands import study

__all__ = ["study"]
