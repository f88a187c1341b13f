"""Why a stack broke, in words about the trial."""

from __future__ import annotations

from unspool.train.conduct import Unstackable

#: What torch says under ``vmap``, and what it means for a module.
_MEANINGS = {
    "data-dependent control flow": "its forward looks at values",
    ".item()": "its forward looks at values",
    "dynamic shape": "its forward looks at values: how much it computes depends on them",
    "data pointer": "its forward looks at values",
    "aten::equal": "its forward looks at values",
    "allclose": "its forward looks at values",
    "random operation": "its forward draws from torch's generator, and not as us.nn.Dropout does from a key of its own",
    "accessing `data`": "its forward writes into parameters through .data",
}


def why_broken(problem: BaseException) -> str:
    """Why the stack of a trial broke: in words where they are known, else what was raised.

    Example:
        >>> why_broken(RuntimeError("vmap: called random operation while in randomness error mode"))
        "its forward draws from torch's generator, and not as us.nn.Dropout does from a key of its own"
        >>> why_broken(KeyError("age"))
        "its batch broke (KeyError: 'age')"
    """
    said = " ".join(str(problem).split())
    if isinstance(problem, Unstackable):
        return said
    if isinstance(problem, RuntimeError):
        for sign, meaning in _MEANINGS.items():
            if sign in said:
                return meaning
    return f"its batch broke ({type(problem).__name__}: {said[:200]})"
