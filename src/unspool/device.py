"""Where tensors live: the device that is taken when nobody says, and one sentence where it cannot be used."""

from __future__ import annotations

import torch

from unspool.errors import InputError


def device_for(asked: torch.device | str | None = None) -> str:
    """The device that was asked for; when nothing was said a GPU (CUDA) where there is one, else the CPU.

    ``unspool train``, studies, ``predict`` and the estimators all ask here, and the commands print the answer. Numbers of a GPU and
    of a CPU agree to rounding, not bit for bit.

    Example:
        >>> device_for("cpu"), device_for(None) in ("cpu", "cuda")
        ('cpu', True)
    """
    if asked is not None:
        return str(asked)
    return "cuda" if torch.cuda.is_available() else "cpu"


def check_device(device: torch.device | str) -> None:
    """Raise one sentence when a device does not exist or cannot be used here.

    Example:
        >>> check_device("abacus")
        Traceback (most recent call last):
            ...
        unspool.errors.InputError: device='abacus': expected a device that can be used here; take 'cpu', or a torch that supports it
    """
    try:
        torch.empty(0, device=device)
        usable = torch.device(device).type != "meta"  # which holds no numbers
    except (AssertionError, RuntimeError, NotImplementedError):
        usable = False
    if not usable:
        raise InputError(
            "device", str(device), "a device that can be used here", "take 'cpu', or a torch that supports it"
        )
