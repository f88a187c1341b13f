"""How cost grows with the graph: CPU seconds to build it, of a hop and of an epoch, and the peak of memory, as a table and a picture.

    python benchmarks/growth.py                                   # 1 and 4 M edges
    python benchmarks/growth.py --edges 1 4 16 64 --out docs/images/growth.png

Graphs are those of build.py: 24 listed edges a node, drawn towards few nodes, every edge both ways, ids shuffled. A hop is A X with 32 columns,
the median of three; an epoch is one of GPRGNN (K = 4, 32 features, 32 hidden, 8 classes) with full batch, its evaluation included. Every size
has a process of its own with one thread. CPU seconds count, since others may use the machine, but the cache is shared with them all the
same. The peak of memory is above what Python with torch takes; the list of edges (16 bytes each) and the features are in it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from build import MILLION, edges, here, peak

NAMES = {"build": "build, s", "hop": "a hop, s", "epoch": "an epoch, s"}


def measure(count: int) -> dict[str, float]:
    """One size, in this process."""
    import unspool as us
    from unspool import train

    torch.set_num_threads(1)
    us.graph.ring(5) @ torch.ones(5, 1)
    before, nodes = here(), max(count // 24, 2)
    index = edges(count, "cpu")
    began = time.process_time()
    graph = us.Graph.from_edges(index, nodes, directed=False)
    found: dict[str, Any] = {
        "edges": count,
        "entries": graph.adjacency.entries,
        "build": time.process_time() - began,
        "build peak": peak() - before,
    }
    del index
    x = torch.randn(nodes, 32, generator=torch.Generator().manual_seed(0))
    graph @ x[:, :1].contiguous()  # the entries of A
    found["hop"] = statistics.median(seconds(lambda: graph @ x) for _ in range(3))
    chance = torch.Generator().manual_seed(1)
    y = torch.randint(8, (nodes,), generator=chance)
    one, two, three = torch.randperm(nodes, generator=chance).tensor_split(3)
    torch.manual_seed(0)
    model, task = us.models.GPRGNN(32, 8, hidden=32, depth=4), train.Task(x, graph, y, one, two, three)
    found["epoch"] = seconds(lambda: train.fit(model, task, train.TrainConfig(epochs=1)))
    return found | {"peak": peak() - before}


def seconds(work: Any) -> float:
    """CPU seconds of something."""
    began = time.process_time()
    work()
    return time.process_time() - began


def draw(rows: list[dict[str, float]], place: Path) -> None:
    """Seconds and bytes against edges, and what linear growth would be."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    at = [row["edges"] / MILLION for row in rows]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for name, said in NAMES.items():
        (line,) = left.plot(at, [row[name] for row in rows], marker="o", label=said)
        left.plot(at, [rows[0][name] * a / at[0] for a in at], color=line.get_color(), linestyle=":", linewidth=1)
    left.set(
        xscale="log", yscale="log", xlabel="million edges", ylabel="CPU seconds", title="dotted: linear from the first"
    )
    left.legend(frameon=False)
    for name, said in {"build peak": "built", "peak": "trained"}.items():
        right.plot(at, [row[name] * 2**30 / row["edges"] for row in rows], marker="o", label=said)
    right.set(xscale="log", xlabel="million edges", ylabel="bytes an edge", title="peak of memory", ylim=(0, None))
    right.legend(frameon=False)
    for axes in (left, right):
        axes.set_xticks(at, [f"{a:g}" for a in at])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(place, dpi=110)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--edges", type=float, nargs="+", default=[1, 4], help="millions of edges")
    asked.add_argument("--out", type=Path, help="where the picture goes (.png or .svg)")
    asked.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.one:
        print(json.dumps(measure(given.one)))
        return
    print(f"torch {torch.__version__}, one thread, CPU seconds\n")
    print(
        "| M edges | build, s | ns an edge | a hop, s | ns an edge | an epoch, s | ns an edge | peak, GB: built | trained |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    rows = []
    for millions in given.edges:
        command = [sys.executable, __file__, "--one", str(int(millions * MILLION))]
        row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        cells = [f"{row[name]:.3g} | {1e9 * row[name] / row['edges']:.0f}" for name in NAMES]
        print(f"| {millions:g} | {' | '.join(cells)} | {row['build peak']:.2f} | {row['peak']:.2f} |", flush=True)
        rows.append(row)
    if given.out:
        draw(rows, given.out)


if __name__ == "__main__":
    main()
