"""Time and bytes of every kernel of a fast batch; used by trials.py."""

from __future__ import annotations

import torch
from torch.profiler import ProfilerActivity, profile

from unspool.study.batch.kernel import KernelBatch
from unspool.study.batch.kernel.blueprints import Middle

EPOCHS = 5


def kernel_table(batch: KernelBatch) -> None:
    """Print one line per kernel: µs a trial-epoch, must-move bytes and their share of the copy bandwidth, gathered bytes a second."""
    peak = copy_bandwidth()
    batch._graph, batch._calls = None, -(10**9)  # kernels of a graph carry no names
    batch.run_epochs(1)
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        batch.run_epochs(EPOCHS)
        torch.cuda.synchronize()
    bytes_of = counted(batch)
    print(
        f"    {'kernel':20} {'µs':>8} {'must move':>11} {'of copy':>8} {'gathered':>12}   (a trial-epoch; copy {peak / 1e12:.2f} TB/s)"
    )
    for event in sorted(seen.key_averages(), key=lambda e: -e.self_device_time_total):
        each = event.self_device_time_total / EPOCHS / batch.slots
        if each < 0.02:
            continue
        name = {"_rows": "hops", "_hubs": "hops of hubs"}.get(event.key, event.key[:20])
        moved, gathered = bytes_of.get(event.key, (0.0, 0.0))
        share = f"{moved / each * 1e6 / peak:8.0%} " if moved else f"{'':9}"
        rate = f"{gathered / each / 1e6:8.2f} TB/s" if gathered else ""
        print(f"    {name:20} {each:8.2f} {moved / 1e6:8.2f} MB {share}{rate}")


def copy_bandwidth() -> float:
    """Bytes a second of a large copy, read and written."""
    source = torch.empty(2**30, device="cuda").normal_()
    target = torch.empty_like(source)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    target.copy_(source)
    begin.record()
    for _ in range(5):
        target.copy_(source)
    end.record()
    torch.cuda.synchronize()
    return 5 * 2 * source.numel() * 4 / (begin.elapsed_time(end) / 1e3)


def counted(batch: KernelBatch) -> dict[str, tuple[float, float]]:
    """(bytes that must move, bytes gathered) of one trial-epoch, by kernel; all numbers have four bytes."""
    s, config = batch.state, batch.config
    n, f, h, c, k = s.nodes, s.features, s.width, s.channels, s.hops
    entries, edges = s.shared.x.values.numel(), s.shared.forward.col.numel()
    kept = float((1 / s.scale[0]).mean())
    weights = 4 * f * h
    z, hidden = 4 * n * 2 * c, 4 * n * h
    series = config.middle is Middle.SERIES
    found = {
        "first_perceptron": (weights + hidden + z + (k * z if series else 0), 4 * entries * h),
        "first_plain": (weights + 4 * n * s.nets * (h if s.nets == 2 else c), 4 * entries * h),
        "first_hidden": (weights + 3 * hidden, 4 * entries * h),
        "first_backward": (6 * weights + hidden, 4 * kept * entries * h),
        "channels_backward": (2 * hidden + (k * z / 2 if series else z / 2), 0.0),
        "series_backward": ((k + 1) * z / 2, 0.0),
        "middle": (3 * hidden + z, 0.0),
        "layer_forward": (config.depth * 7 * hidden, 0.0),
        "layer_backward": (config.depth * 6 * hidden, 0.0),
        "gates": ((k + 1) * z, 0.0),
        "small_adam": (4 * s.layout.size * 7, 0.0),
        "masks": (4 * 2 * entries / 32, 0.0),
    }  # fmt: skip
    wide, narrow = 4 * edges * h, 4 * edges * c
    hops = {
        Middle.SERIES: (config.depth * (3 * z + z), config.depth * 3 * narrow),
        Middle.GATED: (config.depth * (2 * z + 1.5 * z), config.depth * 3 * narrow),
        Middle.CONVOLUTION: (6 * hidden + 3 * z, 3 * wide + 3 * narrow),
        Middle.LINEAR: (config.depth * 2 * z, config.depth * 2 * narrow),
        Middle.JUMPS: (config.depth * (4 * hidden + 1.5 * z), config.depth * (2 * wide + narrow)),
        Middle.DEEP: (config.depth * 6 * hidden, config.depth * 3 * wide),
    }  # fmt: skip
    found["_rows"] = hops[config.middle]
    return found
