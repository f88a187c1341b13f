"""Speed and memory of ``propagate`` against PyTorch Geometric's APPNP layer, in one run on one graph.

    python benchmarks/propagate.py --data DIR            # DIR holds ogbn_arxiv_nofeat/ogbn_arxiv_nofeat.npz
    python benchmarks/propagate.py --device cuda

What is timed: forward and backward (the gradient of the input) of K propagation hops on the symmetrised, normalised graph with
self-loops, float32. Every contender gets the same graph, already normalised (PyG: ``cached=True`` resp. a normalised CSR
matrix), and is checked against the others before it is timed. Without the data a random graph of the same size stands in, and
the table says so.

The limit aimed at: each hop must gather one row of features per stored entry, so bytes gathered = 2 K · entries · features · 4;
the table prints that rate next to the machine's own copy bandwidth, measured in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch

import unspool as us

warnings.filterwarnings("ignore")
ALPHA = 0.1


def load(data: str | None, device: str) -> tuple[us.Graph, str]:
    file = Path(data or os.environ.get("UNSPOOL_DATA", "")) / "ogbn_arxiv_nofeat" / "ogbn_arxiv_nofeat.npz"
    if file.is_file():
        arrays = np.load(file)
        row = np.repeat(np.arange(len(arrays["indptr"]) - 1), np.diff(arrays["indptr"]))
        index, nodes, name = np.stack([row, arrays["indices"]]), len(arrays["indptr"]) - 1, "ogbn-arxiv"
    else:
        nodes, name = 169_343, "random graph of ogbn-arxiv's size (pass --data for the real one)"
        index = np.random.default_rng(0).integers(0, nodes, (2, 1_166_243))
    return us.Graph.from_edges(torch.from_numpy(index.astype(np.int64)), nodes=nodes, directed=False).to(device), name


def hops_of_appnp(depth: int) -> torch.Tensor:
    powers = (1 - ALPHA) ** torch.arange(depth + 1, dtype=torch.float64)
    return torch.cat([ALPHA * powers[:-1], powers[-1:]]).float()


def contenders(graph: us.Graph, depth: int) -> dict[str, object]:
    """Functions of x that all compute the same K hops."""
    csr = graph.operator.forward
    hops = hops_of_appnp(depth).to(graph.device)
    ours = {"unspool": lambda x: us.propagate(graph, x, hops)}
    matrix = torch.sparse_csr_tensor(csr.crow.long(), csr.col.long(), csr.val, (graph.nodes, graph.nodes))

    def loop(x: torch.Tensor) -> torch.Tensor:
        h = x
        for _ in range(depth):
            h = (1 - ALPHA) * (matrix @ h) + ALPHA * x
        return h

    ours["plain torch loop, CSR"] = loop
    try:
        from torch_geometric.nn import APPNP
    except ImportError:
        print("torch_geometric is not installed: its rows are left out")
        return ours
    row, col = graph.operator.rows(), csr.col.long()
    index = torch.stack([col, row])
    with_edges = APPNP(depth, ALPHA, cached=True, normalize=False)
    with_matrix = APPNP(depth, ALPHA, cached=True, normalize=False)
    ours["PyG APPNP, edge_index"] = lambda x: with_edges(x, index, csr.val)
    ours["PyG APPNP, CSR"] = lambda x: with_matrix(x, matrix)
    return ours


def both_ways(f: object, x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(f(x), x, g)[0]


def seconds(action: object, device: str, repeat: int) -> float:
    """Median of ``repeat`` timings after one warm-up (none on the CPU, where callers have run it before)."""
    times = []
    for attempt in range(repeat + (device == "cuda")):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        action()
        if device == "cuda":
            torch.cuda.synchronize()
        if attempt or device == "cpu":
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def copy_bandwidth(device: str) -> float:
    """Bytes per second read plus written by a large copy."""
    a = torch.rand(64 * 2**20 if device == "cpu" else 512 * 2**20, device=device)
    b = torch.empty_like(a)
    return 2 * a.numel() * 4 / seconds(lambda: b.copy_(a), device, 10)


def speed(graph: us.Graph, name: str, features: int, depth: int, device: str, repeat: int) -> dict[str, object]:
    generator = torch.Generator(device=device).manual_seed(0)
    x = torch.randn(graph.nodes, features, device=device, generator=generator, requires_grad=True)
    g = torch.randn(graph.nodes, features, device=device, generator=generator)
    copy = copy_bandwidth(device)
    entries = graph.operator.forward.val.numel()
    gathered = 2 * depth * entries * features * 4
    print(
        f"\n{name}: {graph.nodes} nodes, {entries} stored entries; {features} features, K = {depth}, forward and backward, float32"
    )
    print(f"{_machine(device)}; copy bandwidth {copy / 1e9:.1f} GB/s (read + written)\n")
    print(f"{'':26} {'seconds':>9} {'gathered GB/s':>14} {'of copy':>8} {'ours is faster by':>18}")
    reference, everyone = None, contenders(graph, depth)
    for label, f in everyone.items():
        result = both_ways(f, x, g)
        reference = result if reference is None else reference
        error = float((result - reference).norm() / reference.norm())
        assert error < 1e-4, f"{label} computes something else: relative error {error:.1e}"
    samples: dict[str, list[float]] = {label: [] for label in everyone}
    for _ in range(repeat):  # in turns, so that a busy neighbour slows everyone alike
        for label, f in everyone.items():
            samples[label].append(seconds(lambda f=f: both_ways(f, x, g), device, 1 if device == "cpu" else 10))
    times = {label: statistics.median(found) for label, found in samples.items()}
    for label, taken in times.items():
        rate = gathered / taken
        print(f"{label:26} {taken:9.4f} {rate / 1e9:14.1f} {rate / copy:8.0%} {taken / times['unspool']:17.1f}x")
    return {
        "graph": name,
        "features": features,
        "depth": depth,
        "device": _machine(device),
        "copy_GBps": copy / 1e9,
        "seconds": times,
    }


def learnt(graph: us.Graph, depth: int) -> dict[str, object]:
    """Functions of (x, c) that compute Σ cₖ Aᵏ X with learnable c: what GPRGNN trains."""
    csr = graph.operator.forward

    def loop(x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        matrix = torch.sparse_csr_tensor(csr.crow, csr.col, csr.val, (graph.nodes, graph.nodes))
        h, total = x, c[0] * x
        for k in range(1, depth + 1):
            h = matrix @ h
            total = total + c[k] * h
        return total

    def pyg(x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        from torch_geometric.nn import APPNP

        hop = APPNP(1, 0.0, normalize=False)
        index = torch.stack([csr.col.long(), graph.operator.rows()])
        h, total = x, c[0] * x
        for k in range(1, depth + 1):
            h = hop(h, index, csr.val)
            total = total + c[k] * h
        return total

    return {
        "unspool": lambda x, c: us.propagate(graph, x, c),
        "plain torch loop, CSR": loop,
        "PyG loop, edge_index": pyg,
    }


def peak_bytes(graph: us.Graph, label: str, depth: int, features: int, device: str) -> int:
    """Peak memory of one forward and backward pass beyond graph, x, c and g."""
    x = torch.randn(graph.nodes, features, device=device, requires_grad=True)
    g = torch.randn(graph.nodes, features, device=device)
    c = hops_of_appnp(depth).to(device).requires_grad_()
    f = learnt(graph, depth)[label]
    torch.autograd.grad(f(x, c), (x, c), g)  # what stays after a first pass is no matter of depth
    if device == "cuda":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        torch.autograd.grad(f(x, c), (x, c), g)
        return torch.cuda.max_memory_allocated() - before
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as watched:
        torch.autograd.grad(f(x, c), (x, c), g)
    events = [e for e in watched.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def memory(arguments: argparse.Namespace) -> None:
    print(
        f"\npeak memory of forward and backward with learnable coefficients, beyond graph, input and gradient; {arguments.features} features"
    )
    for label in ("unspool", "plain torch loop, CSR", "PyG loop, edge_index"):
        sizes = []
        for depth in (4, 64):
            command = [
                sys.executable,
                __file__,
                "--peak",
                label,
                "--hops",
                str(depth),
                "--features",
                str(arguments.features),
                "--device",
                arguments.device,
            ]
            command += ["--data", arguments.data] if arguments.data else []
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            sizes.append(int(done.stdout.split()[-1]) if done.returncode == 0 else 0)
        if not all(sizes):
            print(f"{label:26} did not run")
            continue
        print(
            f"{label:26} K = 4: {sizes[0] / 1e6:8.1f} MB   K = 64: {sizes[1] / 1e6:8.1f} MB   ({sizes[1] / sizes[0] - 1:+.1%})"
        )


def _machine(device: str) -> str:
    if device == "cuda":
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    return f"{torch.get_num_threads()} CPU threads, torch {torch.__version__}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with ogbn_arxiv_nofeat/ (or set UNSPOOL_DATA)")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--hops", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", help="also write the numbers here")
    parser.add_argument("--no-memory", action="store_true", help="skip the memory table")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    graph, name = load(arguments.data, arguments.device)
    if arguments.peak:
        print(peak_bytes(graph, arguments.peak, arguments.hops, arguments.features, arguments.device))
        return
    result = speed(graph, name, arguments.features, arguments.hops, arguments.device, arguments.repeat)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(result, indent=1))
    if not arguments.no_memory:
        memory(arguments)


if __name__ == "__main__":
    main()
