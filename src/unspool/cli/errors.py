"""What went wrong, in one line for a person who types options."""

from __future__ import annotations

import errno
import re
import shlex
from enum import Enum
from typing import Any

from unspool.cli.commands.options import CONFIG
from unspool.errors import UNSHOWN, InputError, RankLost, Worded
from unspool.importing import broken_package, own_line, told

_MEMORY = re.compile("can't allocate memory|out of memory|not enough memory")
#: Arguments whose options have other names.
_OPTIONS = {
    "header": "--header or --no-header", "directed": "--directed or --undirected", "normalise_rows": "--normalise-rows or --raw-rows",
    "root": "--data", "sample_weight": "--sample-weight-column", "path": "--out", "edge_columns": "--edge-columns",
}  # fmt: skip
#: Choices that sentences of models and of training name in Python's terms, by the settings that take them.
_CHOICES = {
    "Channels": "channels", "Combine": "combine", "HopStart": "start", "IdentityMapping": "identity", "Layers": "layers", "LowerLevel": "lower_level", "Masks": "masks",
    "Mixing": "mixing", "Monitor": "monitor", "Precision": "precision", "Rates": "lr_schedule", "Side": "weights", "Stop": "stop",
}  # fmt: skip
#: What is done in Python, and how it is typed.
_OTHERWISE = {
    "directed=True": "--directed",
    "data.with_split(...)": "--split",
    "download=True": "--download",
    "root= at": "--data at",
}
_CHOICE = re.compile(rf"(?:\b\w+=)?\b({'|'.join(_CHOICES)})\.([A-Z_0-9]+)\b")


def option(argument: str, value: str | None = None) -> str:
    """The option of an argument, with its value where one is given; names in capitals are those of arguments without an option.

    Example:
        >>> option("weight_decay", "0"), option("feature_columns"), option("root"), option("MODEL")
        ('--weight-decay 0', '--feature-column', '--data', 'MODEL')
    """
    name = argument.removesuffix("s") if argument.endswith("_columns") else argument
    found = argument if argument.isupper() else _OPTIONS.get(argument, f"--{name.replace('_', '-')}")
    return found if value is None else f"{found} {shlex.quote(value)}"


def in_options(problem: InputError) -> str:
    """What is wrong with an argument, said of the option that it came from; settings of models come through ``--setting``.

    Example:
        >>> in_options(InputError("weight_decay", -1.0, "a number of at least 0", owner="TrainConfig"))
        '--weight-decay -1.0: expected a number of at least 0'
        >>> in_options(InputError("depth", 0, "a whole number of at least 1", owner="GCN"))
        '--setting depth=0: expected a whole number of at least 1'
    """
    setting = problem.owner not in (None, "TrainConfig")
    shown = "" if problem.value is UNSHOWN else _typed(problem.value)
    if setting:
        given = f"--setting {problem.argument}" + (f"={shown}" if shown else "")
    else:
        given = f"{option(problem.argument)} {shown}".rstrip()
    return f"{given}: {problem.sentence(option)}"


def sentence(problem: BaseException) -> str | None:
    """One line for a person; None where the problem is a fault of the program, whose traceback is wanted.

    Example:
        >>> sentence(ValueError("masks=Masks.EACH_HOP: there are no hops; take Masks.ONCE"))
        '--setting masks=each_hop: there are no hops; take --setting masks=once'
    """
    if isinstance(problem, Worded):
        return _one_line(in_options(problem) if isinstance(problem, InputError) else problem.worded(option))
    if isinstance(problem, RankLost):
        return str(problem)
    if isinstance(problem, MemoryError) or (isinstance(problem, RuntimeError) and _MEMORY.search(str(problem))):
        return (
            "there is not enough memory for this; use less (--setting hidden=..., depth=...), or take a smaller graph"
        )
    if isinstance(problem, OSError) and (line := _of_the_system(problem)) is not None:
        return line
    if (package := broken_package(problem)) is not None:
        return f"the entry_points.txt of the installed package {package} cannot be read; install it again, or remove it"
    return _of_code(problem)


def _of_code(problem: BaseException) -> str | None:
    """What the user's own code raises, what torch and others raise that it calls, and sentences of ours; None of faults of ours."""
    worded = isinstance(problem, ValueError | TypeError | OSError | ImportError) and not isinstance(
        problem, RuntimeError
    )
    if own_line(problem, raised=worded) is not None:
        return _one_line(f"code of yours failed: {told(problem)}")
    # Trap: torch appends the frames of its own stack to some messages.
    return _one_line(str(problem).partition("\nException raised from")[0]) if worded else None


def _one_line(text: str) -> str:
    """The same in one line, with choices as they are typed."""
    typed = _CHOICE.sub(lambda found: _choice(_CHOICES[found[1]], found[2].lower()), text)
    for python, words in _OTHERWISE.items():
        typed = typed.replace(python, words)
    return re.sub(r"\s*\n\s*", " ", typed)


def _choice(name: str, member: str) -> str:
    return option(name, member) if name in CONFIG else f"--setting {name}={member}"


def _typed(value: Any) -> str:
    try:
        return str(value.name).lower() if isinstance(value, Enum) else str(value)
    except Exception:  # such as a whole number of more than 4300 digits
        return f"<{type(value).__name__}>"


def _of_the_system(problem: OSError) -> str | None:
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full ({problem.strerror}): make room, or choose another place with --out; no file is half-written"
    if problem.strerror is not None and problem.filename is not None:
        return f"{problem.filename} cannot be used: {problem.strerror}; check the path, or move it away"
    return None
