"""The GPU kernels of fast batches in Triton's interpreter, against the same mathematics in plain torch. Run by test_kernels.py.

Prints one line per case: its name and the largest relative difference of the numbers of three epochs.
"""

from __future__ import annotations

import contextlib
import os
import sys

import numpy as np
import torch

from study.batch.kernel.kernel_cases import kind_of, members_of, task_of
from unspool import Graph, datasets, models, train
from unspool.ops.operator import HUB, hub_pieces
from unspool.study.batch.kernel import KernelBatch, kernel_batch, plain

#: (model, hidden width, classes): widths that are no powers of two, as many classes as there may be, two classes.
ODD = [
    ("UGDGNN", 20, 2), ("GPRGNN", 48, 9), ("DAGNN", 100, 16), ("GCN", 24, 16), ("SGC", 0, 9), ("JKNet", 32, 5),
    ("AirGNN", 20, 2), ("AirGNN", 48, 9), ("PPNP", 20, 2), ("PPNP", 24, 16), ("UGDGNN-each", 24, 16), ("GPRGNN-each", 20, 2), ("APPNP-each", 48, 9),
]  # fmt: skip


def odd(name: str, hidden: int, classes: int) -> list[train.PreparedTrial]:
    data = datasets.contextual_sbm(nodes=40 * classes, classes=classes, seed=1)
    x = data.features * (data.features > 0.5)
    x[:, 0] = 1.0  # in every node: a long row, cut into pieces
    split = datasets.splits.per_class(data.labels, train=3, valid=3, seed=0)
    task = train.Task(x, data.graph, data.labels, split.train, split.valid, split.test)
    settings = {} if name == "SGC" else {"hidden": hidden, "dropout": 0.4}
    if name.endswith("-each"):
        settings |= {"masks": models.Masks.EACH_HOP, "propagation_dropout": 0.6}
    trials = [
        train.Trial(kind_of(name), settings, train.TrainConfig(lr=0.02, weight_decay=1e-3), seed) for seed in (0, 1)
    ]
    return [train.PreparedTrial(t, t.build(x.shape[1], classes), task) for t in trials]


def difference(members: list[train.PreparedTrial], kernels: object) -> float:
    want = KernelBatch(members).run_epochs(3)
    kept, kernel_batch._steps = kernel_batch._steps, lambda device: kernels
    try:
        found = KernelBatch(members).run_epochs(3)
    finally:
        kernel_batch._steps = kept
    return float(np.nanmax(np.abs(found - want) / np.maximum(np.abs(want), 1e-2)))


def in_place() -> float:
    """2 A y + base − out, written into out, through the sparse product itself; a star's centre is cut into pieces."""
    from unspool.ops.kernels import cuda as sparse

    torch.cuda.device = lambda device: contextlib.nullcontext()  # there is none
    leaves = torch.arange(1, HUB + 40)
    graph = Graph.from_edges(torch.stack([torch.zeros_like(leaves), leaves]), directed=False)
    csr = graph.operator.forward
    csr = csr._replace(hubs=hub_pieces(csr.crow))  # which are made on a GPU alone
    assert csr.hubs.shape[0] > 1
    y, base, out = torch.randn(3, graph.nodes, 8, generator=torch.Generator().manual_seed(0))
    want = 2 * (graph @ y) + base - out
    sparse.step(csr, y, out, 2.0, base, None, out, neighbours=2)
    return float((out - want).abs().max() / want.abs().max())


def main() -> None:
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
    from unspool.study.batch.kernel import cuda

    torch.set_num_threads(1)
    cuda.hop = plain.hop  # the sparse product is older than batches, and held by tests of its own
    cuda.PRECISION = "ieee"
    if "PPNP" in sys.argv[1:]:
        print("in place", in_place(), flush=True)
    for name in sys.argv[1:]:
        print(name, difference(members_of(name, task_of()), cuda), flush=True)
    for case in ODD:
        if not sys.argv[1:] or case[0] in sys.argv[1:]:
            print(*case, difference(odd(*case), cuda), flush=True)


if __name__ == "__main__":
    main()
