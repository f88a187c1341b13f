"""What it costs to make a graph from a list of edges: against SciPy for the same matrix, and how it grows.

    python benchmarks/build.py                        # 5 M edges beside SciPy, and the growth at 1 and 4 M edges
    python benchmarks/build.py --edges 50             # 50 M edges: needs 4 GB of memory
    python benchmarks/build.py --growth 1 4 16 64     # the table of the documentation
    python benchmarks/build.py --device cuda --edges 250

Every figure comes from a process of its own: CPU seconds and the peak of memory above what was there when the list was. The random graph
has a few nodes of many neighbours (R-MAT-like), 24 edges a node, listed once each.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

MILLION = 1_000_000


def edges(count: int, device: str) -> torch.Tensor:
    """A list of random edges, drawn towards small node ids, whose ids are then shuffled; the same for every contender."""
    nodes = max(count // 24, 2)
    random = np.random.default_rng(0)
    name = random.permutation(nodes)
    index = torch.empty(2, count, dtype=torch.int64)
    for side in index:
        for piece in side.split(1 << 22):
            piece.copy_(torch.from_numpy(name[(random.random(piece.numel()) ** 3 * nodes).astype(np.int64)]))
    return index.to(device)


def ours(index: torch.Tensor, nodes: int) -> dict[str, float]:
    import unspool as us

    start, cpu = time.perf_counter(), time.process_time()
    graph = us.Graph.from_edges(index, nodes, directed=False)
    if index.is_cuda:
        torch.cuda.synchronize()
    made = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - start}
    w = graph.adjacency
    bytes_kept = sum(t.numel() * t.element_size() for t in (*w.forward[:2], graph.degree))
    cpu = time.process_time()
    entries = graph.operator.forward.val
    check = float(entries[:1000].double().sum())
    return made | {
        "entries": w.entries, "bytes": bytes_kept / w.entries, "values": time.process_time() - cpu, "check": check,
    }  # fmt: skip


def scipys(index: torch.Tensor, nodes: int) -> dict[str, float]:
    import scipy.sparse

    source, target = index.numpy()
    cpu = time.process_time()
    ones = np.ones(2 * source.size, dtype=np.float32)
    ends = (np.concatenate([source, target]), np.concatenate([target, source]))
    w = scipy.sparse.coo_array((ones, ends), shape=(nodes, nodes)).tocsr()
    w.setdiag(1.0)
    w.data[:] = 1.0
    root = scipy.sparse.diags_array(1.0 / np.sqrt(w.sum(axis=1)), dtype=np.float64)
    a = (root @ w @ root).astype(np.float32).tocsr()
    made = {"cpu": time.process_time() - cpu, "entries": a.nnz}
    a.sort_indices()
    return made | {"check": float(a.data[:1000].astype(np.float64).sum())}


def peak() -> float:
    """The largest memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def here() -> float:
    """The memory of this process now, in GB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**30


def measure(who: str, count: int, device: str) -> None:
    """One contender, once; prints its figures."""
    torch.set_num_threads(1)
    import scipy.sparse  # noqa: F401 - so that nobody pays for the import

    import unspool as us

    us.graph.ring(5).operator  # noqa: B018
    index = edges(count, device)
    before = here()
    found = (ours if who == "ours" else scipys)(index, max(count // 24, 2))
    print(json.dumps(found | {"peak": peak() - before, "before": before}))


def run(who: str, count: int, device: str = "cpu") -> dict[str, float]:
    command = [sys.executable, __file__, "--one", who, "--edges", str(count / MILLION), "--device", device]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--edges", type=float, default=5, help="millions of edges")
    asked.add_argument(
        "--growth", type=float, nargs="*", default=[1, 4], help="millions of edges for the table of growth"
    )
    asked.add_argument("--device", default="cpu")
    asked.add_argument("--one", help=argparse.SUPPRESS)
    asked.add_argument("--alone", action="store_true", help="without SciPy")
    given = asked.parse_args()
    count = int(given.edges * MILLION)
    if given.one:
        measure(given.one, count, given.device)
        return
    print(f"torch {torch.__version__}, numpy {np.__version__}, {given.device}, one thread\n")
    mine = run("ours", count, given.device)
    print(f"{given.edges:g} M edges, {mine['entries']:,} entries: {mine['cpu']:.2f} CPU s ({mine['wall']:.2f} s), "
          f"peak {mine['peak']:.2f} GB above the list, {mine['bytes']:.2f} B an entry kept; A at first use {mine['values']:.2f} CPU s")  # fmt: skip
    if given.device == "cpu" and not given.alone:
        peer = run("scipy", count)
        assert peer["entries"] == mine["entries"], "SciPy has made another matrix"
        assert abs(peer["check"] - mine["check"]) < 1e-5 * abs(peer["check"]), "SciPy has made other entries"
        total = mine["cpu"] + mine["values"]
        print(f"SciPy, the same matrix: {peer['cpu']:.2f} CPU s, peak {peer['peak']:.2f} GB; ours takes {total / peer['cpu']:.2f} of its time "
              "(entries of A included)")  # fmt: skip
    print("\n| M edges | CPU s | ns an edge | peak GB above the list | B an edge |\n|---|---|---|---|---|")
    for millions in given.growth if given.device == "cpu" else []:
        one = run("ours", int(millions * MILLION))
        per = 1e9 * one["cpu"] / (millions * MILLION), one["peak"] * 2**30 / (millions * MILLION)
        print(f"| {millions:g} | {one['cpu']:.2f} | {per[0]:.0f} | {one['peak']:.2f} | {per[1]:.0f} |")


if __name__ == "__main__":
    main()
