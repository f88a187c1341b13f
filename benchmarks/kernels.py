"""Time of every kernel of a stack; used by trials.py."""

from __future__ import annotations

import torch
from torch.profiler import ProfilerActivity, profile

from unspool.study.batch.stacked_batch import StackedBatch

EPOCHS = 2
#: Kernels that take less of an epoch of one trial are added up in one line.
SHOWN = 0.02


def kernel_table(batch: StackedBatch) -> None:
    """Print one line per name of a kernel: µs and launches of a trial and epoch. The batch is not captured any more."""
    batch._replay, batch._willing, batch._ready = None, False, False  # kernels of a captured epoch carry no names
    batch.run_epochs(1)
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        batch.run_epochs(EPOCHS)
        torch.cuda.synchronize()
    rows = sorted(seen.key_averages(), key=lambda e: -e.self_device_time_total)
    scale = 1 / EPOCHS / batch.slots
    whole, left = sum(e.self_device_time_total for e in rows) * scale, 0.0
    print(f"    {whole:8.2f} µs in {sum(e.count for e in rows) / EPOCHS:.0f} launches an epoch")
    for event in rows:
        each = event.self_device_time_total * scale
        if each < SHOWN:
            left += each
            continue
        print(f"    {each:8.2f} µs {each / whole:5.0%} {event.count / EPOCHS:7.1f}x  {event.key[:90]}")
    print(f"    {left:8.2f} µs {left / whole:5.0%} others", flush=True)
