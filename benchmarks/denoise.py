"""Total variation and trend filters: time and objective of ``us.minimise`` beside cvxpy, on the same problem in the same run.

    python benchmarks/denoise.py [nodes ...]

cvxpy (pip install cvxpy) solves with Clarabel, an interior-point method, at its default tolerance;
ours is asked for 1e-7. Both leave the objective right to about 1e-8.
"""

from __future__ import annotations

import sys
import time

import torch

import unspool as us


def scene(nodes: int) -> tuple[us.Graph, torch.Tensor]:
    """A sensor graph with the plain Laplacian, and a noisy signal of four regions."""
    graph, place = us.graph.sensor(nodes, seed=0, normalise=us.Normalisation.NONE, loops=0)
    clean = 2.0 * (place[:, :1] > 0.5) + 1.0 * (place[:, 1:] > 0.6)
    noise = torch.randn(nodes, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return graph.to(torch.float64), clean.double() + 0.4 * noise


def ours(graph: us.Graph, x: torch.Tensor, weight: float, order: int) -> tuple[float, float]:
    """Seconds and objective."""
    objective = us.Fidelity(1.0) + us.EdgeSparse(weight, order=order)
    start = time.perf_counter()
    h = us.minimise(objective, x, graph, tolerance=1e-7)
    return time.perf_counter() - start, float(objective.value(h, x, graph))


def theirs(graph: us.Graph, x: torch.Tensor, weight: float, order: int) -> tuple[float, float]:
    """Seconds and objective of cvxpy."""
    import cvxpy as cp  # pyright: ignore[reportMissingImports]

    k = graph.incidence().to_scipy()
    if order == 2:
        k = k @ graph.laplacian().to_scipy()
    start = time.perf_counter()
    h = cp.Variable(x.shape)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(h - x.numpy()) + weight * cp.sum(cp.abs(k @ h))))
    problem.solve(solver=cp.CLARABEL)
    return time.perf_counter() - start, float(problem.value)


def main() -> None:
    """Print one line for each problem."""
    torch.set_num_threads(1)  # both solvers work in one thread
    print(f"{'nodes':>6} {'problem':<8} {'λ':>5} {'ours (s)':>9} {'cvxpy (s)':>10} {'ratio':>7} {'difference':>11}")
    for nodes in [int(word) for word in sys.argv[1:]] or [500, 2000]:
        graph, x = scene(nodes)
        ours(graph, x, 0.1, 1)  # what is loaded and kept is not timed
        for order, name in ((1, "tv"), (2, "trend")):
            for weight in (0.1, 0.5):
                seconds, value = ours(graph, x, weight, order)
                try:
                    other, wanted = theirs(graph, x, weight, order)
                except ImportError:
                    print(f"{nodes:>6} {name:<8} {weight:>5} {seconds:>9.2f}   (cvxpy is not installed)")
                    continue
                off = abs(value - wanted) / wanted
                print(
                    f"{nodes:>6} {name:<8} {weight:>5} {seconds:>9.2f} {other:>10.2f} {other / seconds:>7.1f} {off:>11.1e}"
                )


if __name__ == "__main__":
    main()
