"""When two trials are the same: a mark of all code that decides a number, and of nothing else.

The key of a trial (:meth:`~unspool.train.trial.Trial.key`) is a hash of its data's fingerprint, its model's name, settings, config, seed, and
of the mark that :func:`code_of` gives:

- **our own code** is one number, :data:`NUMERICS`, which we raise when a change of ours changes numbers;
- **the user's code** is everything that the model reaches: its class and its bases, the terms, algorithms, functions and classes that
  their methods name, and the values of the constants that these read, in the same file and in other modules of the user's. Instructions
  count as Python runs them; comments, docstrings, layout, annotations of functions, names of modules and folders do not;
- **what the model is built of**: it is built twice on a stand-in of 4 features and 2 outputs, and all parts are looked at, whatever they were
  made by. Values of tensors count where both builds agree, as those that a file or a formula gives do; the others come from the seed. A model that
  cannot be built on the stand-in is known by its code alone;
- **packages** count by name and version, those that this package stands on (torch, numpy, scipy) and Python's own library by name.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unspool.identity.home import foreign, named
from unspool.identity.walk import digest, look

__all__ = ["NUMERICS", "code_of", "digest", "foreign", "is_other_code", "named", "own_code"]

#: The version of our own numbers. Raise it by one in the commit after which any trial of ours gives other numbers than before, be it
#: kernels, models, losses, splits, or the way training goes: results of before are then kept beside those of after, and never taken for them.
NUMERICS = 4


def code_of(things: Mapping[str, Any], build: Callable[[], nn.Module]) -> str:
    """The mark of all code that decides what a trial computes: one number for ours, and a digest of the user's own, if there is any.

    Args:
        things: by name, what the code is of: the class of the model, objects among its settings, the optimiser.
        build: makes the model on a small stand-in.

    Example:
        >>> import unspool as us
        >>> code_of({"model": us.models.GCN}, lambda: us.models.GCN(4, 2)) == str(NUMERICS)
        True
        >>> Mine = type("Mine", (nn.Linear,), {"__module__": "my_models"})
        >>> mark = code_of({"model": Mine}, lambda: Mine(4, 2))
        >>> Mine.gain = 2.0
        >>> mark.startswith(f"{NUMERICS}."), mark == code_of({"model": Mine}, lambda: Mine(4, 2))
        (True, False)
    """
    seen = [look(thing, name) for name, thing in sorted(things.items())]
    parts = [one.digest for one in seen if one.own]
    if not parts:
        return str(NUMERICS)
    with suppress(_Unbuilt):
        one, other = (_built(build, seed) for seed in (0, 1))
        parts.append(look(one, type(one).__qualname__, _drawn(one, other)).digest)
    return f"{NUMERICS}.{hashlib.sha256('/'.join(parts).encode()).hexdigest()[:16]}"


def own_code(*kinds: type) -> str | None:
    """The mark of the user's own code that classes reach, after the version of Python whose instructions it is; None where there is none.

    It outlives changes of ours, and says nothing about how the classes are used: files of trained models are known by it.

    Example:
        >>> import unspool as us
        >>> Mine = type("Mine", (nn.Linear,), {"__module__": "my_models"})
        >>> mark = own_code(Mine)
        >>> own_code(us.models.GCN), is_other_code(mark, own_code(Mine))
        (None, False)
        >>> Mine.gain = 2.0
        >>> is_other_code(mark, own_code(Mine)), is_other_code("2.7 5e1f", mark)
        (True, False)
    """
    parts = [one.digest for one in (look(kind, kind.__qualname__) for kind in kinds) if one.own]
    digest = hashlib.sha256("/".join(parts).encode()).hexdigest()[:16]
    return f"{sys.version_info.major}.{sys.version_info.minor} {digest}" if parts else None


def is_other_code(one: str | None, other: str | None) -> bool:
    """Whether two marks of :func:`own_code` are of different code; those of two versions of Python cannot be compared."""
    if one is None or other is None or one.partition(" ")[0] != other.partition(" ")[0]:
        return False
    return one != other


class _Unbuilt(Exception):
    """The constructor does not like the stand-in."""


def _built(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    with _generators_as_they_were():
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        try:
            return build()
        except Exception:  # whatever is wrong with the model is told when it is trained
            raise _Unbuilt from None


@contextmanager
def _generators_as_they_were() -> Generator[None]:
    """Asking for a key draws nothing from the generators of the program."""
    own, arrays = random.getstate(), np.random.get_state()  # noqa: NPY002 (the one that constructors may draw from)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(own)
        np.random.set_state(arrays)  # noqa: NPY002


def _drawn(one: nn.Module, other: nn.Module) -> list[Tensor]:
    """Tensors of a model that another seed fills otherwise."""
    pairs = zip(_tensors(one), _tensors(other), strict=False)
    return [a for a, b in pairs if a.shape != b.shape or digest(a.detach(), "") != digest(b.detach(), "")]


def _tensors(model: nn.Module) -> list[Tensor]:
    return [*model.parameters(), *model.buffers()]
