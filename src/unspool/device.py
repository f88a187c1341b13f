"""Where tensors live: the device that is taken when nobody says, and one sentence where it cannot be used."""

from __future__ import annotations

import torch

from unspool.errors import Called, InputError, Worded


class DeviceLost(Worded):
    """A device that has stopped working for this process, as a GPU does after an access outside its memory.

    Args:
        device: which one.
        problem: what it said.

    Example:
        >>> raise DeviceLost("cuda:0", "CUDA error: an illegal memory access was encountered")
        Traceback (most recent call last):
            ...
        unspool.device.DeviceLost: cuda:0 has stopped working for this process (CUDA error: an illegal memory access was encountered); what had
        ended is kept, so run the same again; if programs share the GPU by MPS, a fault in one of them ends them all
    """

    def __init__(self, device: str, problem: str) -> None:
        super().__init__(device, problem)
        self.device, self.problem = device, problem

    def worded(self, called: Called) -> str:
        """What it said, in one line, and the way out."""
        del called
        said = self.problem.partition("\n")[0].strip()
        return (
            f"{self.device} has stopped working for this process ({said}); what had ended is kept, so run the same again; "
            "if programs share the GPU by MPS, a fault in one of them ends them all"
        )


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
