"""Memory of training a deep network that is no polynomial: every step stored, or every n-th kept and the rest computed again.

    python benchmarks/depth_memory.py [--depth 64] [--side 100] [--channels 64] [--every 8]

Robust smoothing (``EdgePenalty`` with the penalty ``Log``) by ``Jacobi`` steps on a square grid, float32, one forward and one backward
pass. Each case runs in a process of its own. "Saved" is what autograd keeps for the backward pass, counted by hooks on saved tensors, each
storage once; checkpoints keep their iterates beside autograd, so for them it is their iterates, computed, and what as many stored layers save. "Peak" is the peak
of the process's resident memory, less what it was after the same network with one layer. It is measured in a run in which the allocator gives
every tensor back at once (``MALLOC_MMAP_THRESHOLD_``, Linux), because what it keeps for later hides what is needed; time is measured without that.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time

import torch

import unspool as us


class Saved:
    """Bytes of what is saved for a backward pass, each storage once, and their peak."""

    def __init__(self) -> None:
        self.kept: dict[int, int] = {}

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        self.kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    @property
    def megabytes(self) -> float:
        return sum(self.kept.values()) / 1e6


def saved_by(adjoint: us.Stored | us.Checkpointed, depth: int, x: torch.Tensor, graph: us.Graph) -> float:
    """Megabytes that are kept at the same time: all steps, or the kept iterates and the steps between two of them."""
    if isinstance(adjoint, us.Stored):
        saved = Saved()
        given = x.clone().requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda t: t):
            out = network(adjoint, depth)(given, graph)
        del out
        return saved.megabytes
    iterates = -(-depth // adjoint.every) * x.numel() * x.element_size() / 1e6
    return iterates + saved_by(us.Stored(), min(adjoint.every, depth), x, graph)


def network(adjoint: us.Stored | us.Checkpointed, depth: int) -> us.Unrolled:
    weight = us.Learnable(1.0, within=(0, None), name="β")
    return us.unroll(us.Fidelity(1.0) + us.EdgePenalty(us.Log(0.5), weight), us.Jacobi(), depth, adjoint=adjoint)


def run(adjoint: us.Stored | us.Checkpointed, depth: int, x: torch.Tensor, graph: us.Graph) -> tuple[float, float]:
    """Seconds of one forward and backward pass, and a number to compare gradients by."""
    net, given = network(adjoint, depth), x.clone().requires_grad_()
    began = time.perf_counter()
    net(given, graph).square().mean().backward()
    slope = given.grad
    assert slope is not None
    return time.perf_counter() - began, float(slope.norm())


def peak() -> float:
    """Megabytes of resident memory at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def one_case(arguments: argparse.Namespace) -> None:
    """Megabytes saved and at the peak, seconds, and the norm of the gradient, on one line."""
    adjoint = us.Stored() if arguments.case == "stored" else us.Checkpointed(arguments.every)
    graph = us.graph.grid(arguments.side, arguments.side)
    x = torch.randn(graph.nodes, arguments.channels, generator=torch.Generator().manual_seed(0))
    run(adjoint, 1, x, graph)
    before = peak()
    seconds, slope = run(adjoint, arguments.depth, x, graph)
    above = peak() - before
    print(saved_by(adjoint, arguments.depth, x, graph), above, seconds, slope)


def asked(case: str, **environment: str) -> list[float]:
    """What a process of its own finds for one case."""
    command = [sys.executable, __file__, *sys.argv[1:], "--case", case]
    found = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    return [float(number) for number in found.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=64)
    parser.add_argument("--side", type=int, default=100)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("--case", choices=["stored", "checkpointed"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        one_case(arguments)
        return
    print(
        f"{us.graph.grid(arguments.side, arguments.side)}, {arguments.channels} channels, depth {arguments.depth}, torch {torch.__version__}\n"
    )
    print(f"{'':24} {'saved (MB)':>12} {'peak (MB)':>12} {'seconds':>9}   norm of the gradient", flush=True)
    for case in ("stored", "checkpointed"):
        saved, above, _, slope = asked(case, MALLOC_MMAP_THRESHOLD_="65536")
        seconds = asked(case)[2]
        print(f"{case:24} {saved:>12,.0f} {above:>12,.0f} {seconds:>9.2f}   {slope:.6e}", flush=True)


if __name__ == "__main__":
    main()
