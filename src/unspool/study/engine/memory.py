"""How many trials train at once: as many as are fast and fit into memory."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from unspool.models import MODELS
from unspool.nn.flatten import Densify
from unspool.study.batch import TrialBatch
from unspool.train import PreparedTrial
from unspool.train.epochs import WARM_UP
from unspool.train.threads import SMALL

#: Slots on the CPU, and nodes of all of them together. More gain nothing: the price of vmap is spread thin by then, and what
#: an epoch touches has left the cache (measured on Cora, 2,708 nodes, and PubMed, 19,717, with one thread).
CPU_SLOTS, CPU_NODES = 16, 2**16
#: The share of the free memory that a batch may fill.
SHARE = 0.8
#: Pairs of sizes whose memory is compared on a GPU. The first compiles the kernels that large batches use; the second is for
#: graphs of which thirty-two trials do not fit.
_TRIED = ((16, 32), (2, 6))
#: A bound on the memory of a trial: so many numbers for each node, channel and layer, and for each weight.
_NUMBERS = 16
#: Layers of a model that has no depth: PPNP solves a system, with as many steps as it needs.
_DEPTHLESS = 64


def slots_for(member: PreparedTrial, open_batch: Callable[[Sequence[PreparedTrial]], TrialBatch], wanted: int) -> int:
    """How many trials like this one should train at once, at most ``wanted``.

    Memory is measured, not computed: small batches of the same trial run for a few epochs, and the difference of their peaks is
    what a slot takes. Where even these do not fit, the answer is 1.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> from unspool.study.batch.stacked_batch import StackedBatch
        >>> from unspool.train import Trial
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> trial = Trial(us.models.MLP, {"hidden": 8})
        >>> slots_for(PreparedTrial(trial, trial.build(data.features.shape[1], 2), train.Task.of(data)), StackedBatch, 3)
        3
    """
    try:
        return _measured(member, open_batch, wanted)
    except (torch.OutOfMemoryError, MemoryError):
        return 1


def _measured(member: PreparedTrial, open_batch: Callable[[Sequence[PreparedTrial]], TrialBatch], wanted: int) -> int:
    device = member.task.target.device
    if device.type != "cuda":
        wanted = min(wanted, CPU_SLOTS, max(CPU_NODES // max(member.task.nodes, 1), 2))
        return (
            wanted
            if member.task.nodes <= SMALL
            else _fitting(wanted, 2, 3, _resident_peak(member, open_batch), _available())
        )
    if wanted <= _TRIED[0][1]:
        return wanted
    free = torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if surely_fits(member, wanted, free):
        return wanted  # opening three small batches to hear it takes longer than many small trials
    for low, high in _TRIED[:-1]:
        with contextlib.suppress(torch.OutOfMemoryError):
            return _fitting(wanted, low, high, _cuda_peaks(member, open_batch, low, high), free)
    low, high = _TRIED[-1]
    return _fitting(wanted, low, high, _cuda_peaks(member, open_batch, low, high), free)


def fits_another_batch(device: torch.device) -> bool:
    """Whether another batch may train beside those that do: on a GPU of whose memory more than half is free.

    On a CPU the other cores have processes of their own.

    Example:
        >>> fits_another_batch(torch.device("cpu"))
        False
    """
    if device.type != "cuda":
        return False
    free, total = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device) > total / 2


def settle(device: torch.device) -> bool:
    """Wait for whatever a batch that broke has under way, before its memory is given to others.

    Gives whether the device still works: after a fault on a GPU, an access outside its memory say, nothing does in this process any more.

    Example:
        >>> settle(torch.device("cpu"))
        True
    """
    # The first wait may say what the broken batch has left behind; the second says how the device is.
    return device.type != "cuda" or _waits(device) or _waits(device)


def _waits(device: torch.device) -> bool:
    try:
        torch.cuda.synchronize(device)
    except RuntimeError:
        return False
    return True


def surely_fits(member: PreparedTrial, many: int, free: float) -> bool:
    """Whether trials of a named model take so little that measuring can be left out: a bound far above what they take fits twice.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> from unspool.train import Trial
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> trial = Trial(us.models.GPRGNN, {"hidden": 8, "depth": 2})
        >>> member = PreparedTrial(trial, trial.build(data.features.shape[1], 2), train.Task.of(data))
        >>> surely_fits(member, 100, free=1e9), surely_fits(member, 100, free=1e6)
        (True, False)
    """
    model: Any = member.model
    if type(model) not in MODELS or "hidden" not in model.settings:
        return False
    how, x = model.settings, member.task.x
    width = max(int(how["hidden"]), int(model.out_features))
    # Masks of sparse features are words of bits; where the features themselves are denoised, every view has all of them.
    entries = x.numel() if isinstance(x, torch.Tensor) and not x.is_sparse else 0
    if isinstance(getattr(model, "p_pre", None), Densify):
        upper = member.trial.config.upper
        entries = member.task.nodes * int(x.shape[-1]) * (1 if upper is None else upper.views)
    layers = int(how.get("depth", _DEPTHLESS)) + 4
    weights = sum(p.numel() for p in model.parameters())
    bound = 4 * _NUMBERS * (member.task.nodes * width * layers + weights + entries)
    return many * bound <= free / 2


def _cuda_peaks(
    member: PreparedTrial, open_batch: Callable[[Sequence[PreparedTrial]], TrialBatch], low: int, high: int
) -> tuple[float, float]:
    _cuda_peak(member, open_batch, 1)  # what all batches share is made once, and would count for the first alone
    return _cuda_peak(member, open_batch, low), _cuda_peak(member, open_batch, high)


def _fitting(wanted: int, low: int, high: int, peaks: Sequence[float] | None, free: float | None) -> int:
    """The number of slots whose memory, on the line through two measurements, is below a share of what is free."""
    if peaks is None or free is None or peaks[1] <= peaks[0]:
        return wanted
    each = (peaks[1] - peaks[0]) / (high - low)
    return max(1, min(wanted, int(low + (SHARE * free - peaks[0]) / each)))


def _cuda_peak(member: PreparedTrial, open_batch: Callable[[Sequence[PreparedTrial]], TrialBatch], count: int) -> float:
    device = member.task.target.device
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    try:
        batch = open_batch([member] * count)
        batch.run_epochs(WARM_UP + 2)  # the capture has its own memory
        return float(torch.cuda.max_memory_allocated(device) - before)
    finally:
        settle(device)
        batch = None
        gc.collect()
        torch.cuda.empty_cache()


def _resident_peak(
    member: PreparedTrial, open_batch: Callable[[Sequence[PreparedTrial]], TrialBatch]
) -> tuple[float, float] | None:
    """Peaks of two and of three slots on the CPU, where the system tells them (Linux)."""
    found: list[float] = []
    for count in (2, 3):
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
            before = _status("VmRSS")
            open_batch([member] * count).run_epochs(1)
            peak = _status("VmHWM")
            if before is not None and peak is not None:
                found.append(peak - before)
        gc.collect()
    return (found[0], found[1]) if len(found) == 2 else None


def _available() -> float | None:
    return _kilobytes(Path("/proc/meminfo"), "MemAvailable")


def _status(name: str) -> float | None:
    return _kilobytes(Path("/proc/self/status"), name)


def _kilobytes(path: Path, name: str) -> float | None:
    """A line such as ``VmRSS:   1234 kB``, in bytes."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in path.read_text().splitlines():
            if line.startswith(f"{name}:"):
                return float(line.split()[1]) * 1024
    return None
