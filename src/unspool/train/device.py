"""Where training runs when nobody says: one rule for all doors."""

from __future__ import annotations

import torch


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
