"""Ops on the CPU in Triton's interpreter, against their formulas in double precision. Run by test_interpreted.py.

Prints one line per quantity: case, name and the relative error.
"""

from __future__ import annotations

import os
import sys

os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported

import torch

from ops.kernels.quantities import CASES, Quantities, kernels_on
from unspool.ops import stacked_features


def batches(told: list[str]) -> Quantities:
    """Three epochs of stacks in the order of a GPU, against the same stacks without kernels."""
    from study.batch.stack_cases import CASES, members_of, task_of
    from unspool.study.batch.stacked_batch import StackedBatch

    class Riding(StackedBatch):
        rides_on = frozenset({"cpu"})

    for name in CASES:
        if name.endswith("-each") or (told and name not in told):
            continue
        members = members_of(name, task_of())
        wanted = StackedBatch(members).run_epochs(3)
        with kernels_on("cpu"):
            found = Riding(members).run_epochs(3)
        off = abs(found[..., :2] - wanted[..., :2]) / abs(wanted[..., :2])
        yield f"batch-{name} 0", float(off.max())


if __name__ == "__main__":
    torch.set_num_threads(1)
    stacked_features.PACKED = False
    name, *told = sys.argv[1:]
    for label, found in batches(told) if name == "batches" else CASES[name]("cpu"):
        print(label, found, flush=True)
