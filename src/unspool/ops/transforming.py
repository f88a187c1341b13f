"""Whether torch.func transforms what runs now."""

from __future__ import annotations

import torch


def transforming() -> bool:
    """Whether torch.func differentiates or maps around us: tensors are stand-ins then, and hooks and other gradients do not go with them.

    Example:
        >>> import torch
        >>> seen = []
        >>> _ = torch.func.vmap(lambda x: (seen.append(transforming()), x)[1])(torch.zeros(2))
        >>> transforming(), seen
        (False, [True])
    """
    return torch._C._functorch.peek_interpreter_stack() is not None  # pyright: ignore
