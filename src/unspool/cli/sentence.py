"""What went wrong, in one line for a person."""

from __future__ import annotations

import errno
import re

_MEMORY = re.compile("can't allocate memory|out of memory|not enough memory")


def sentence(problem: Exception) -> str | None:
    """One line for a person; None where the problem is a fault of the program, whose traceback is wanted."""
    if isinstance(problem, MemoryError) or (isinstance(problem, RuntimeError) and _MEMORY.search(str(problem))):
        return "the memory is too small for this; ask for less (--set hidden=..., depth=...), or take a smaller graph"
    if isinstance(problem, RuntimeError):
        return None
    if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full ({problem.strerror}): make room, or choose another place with --out; no file is half-written"
    if isinstance(problem, OSError) and problem.strerror is not None and problem.filename is not None:
        return f"{problem.filename} cannot be used: {problem.strerror}; check the path, or move it away"
    # Trap: torch appends the frames of its own stack to some messages.
    return re.sub(r"\s*\n\s*", " ", str(problem).partition("\nException raised from")[0])
