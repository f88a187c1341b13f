"""What a person should know about data before they are trained on."""

from __future__ import annotations

from typing import Any

import torch


def column_lines(data: Any) -> list[str]:
    """Which columns are features, and a remark where their sizes are far apart."""
    names, x = data.feature_names, data.features
    if names is None:
        return []
    shown = ", ".join(names[:12]) + (f", ... ({len(names)})" if len(names) > 12 else "")
    lines = [f"features: {shown}"]
    if not isinstance(x, torch.Tensor):
        return lines
    spread = x.double().std(0)
    moving = spread[spread > 0]
    if moving.numel() > 1 and float(moving.max() / moving.min()) > 100:
        wide, thin = int(spread.argmax()), int(torch.where(spread > 0, spread, torch.inf).argmin())
        lines.append(
            f"note: features differ in size ({names[wide]} varies by {float(spread[wide]):.3g}, {names[thin]} by "
            f"{float(spread[thin]):.3g}), which makes training slow; bring them to one scale first"
        )
    return lines
