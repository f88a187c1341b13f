"""One GPU and graphs of a hundred million nodes: each part is a command of its own, and prints the machine, seconds and peaks of memory.

    python benchmarks/giant.py build      # 250 M undirected edges made a graph on the GPU; at a small size the graph of the CPU and of SciPy
    python benchmarks/giant.py kernel     # one hop of the graph below, with 4 to 16 neighbours in flight
    python benchmarks/giant.py papers     # papers100M's shape: made, propagated, written, trained on
    python benchmarks/giant.py products   # ogbn-products' shape: one epoch of UGDGNN beside PyG
    python benchmarks/giant.py papers --scale 0.001 --device cpu

``--scale`` shrinks nodes and edges alike. A part that takes longer than ``--limit`` seconds ends there and says in which phase. Graphs are
random: node i of n is drawn with a chance of 1/√i, so degrees follow a power law and the largest is some 300,000 at full size; ids are then
shuffled, so that no order of the nodes helps the cache, as it would in the real ones. Host memory is the peak of the whole process so far,
GPU memory that of the phase.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import platform
import resource
import signal
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

import unspool as us

#: Nodes, listed edges (each once), training, validation and test nodes, classes of ogbn-papers100M; with what draws repeat.
PAPERS = {
    "nodes": 111_059_956,
    "edges": 1_570_000_000,
    "train": 1_207_179,
    "valid": 125_265,
    "test": 214_338,
    "classes": 172,
}
PRODUCTS = {"nodes": 2_449_029, "edges": 62_500_000, "train": 196_615}
PUBLISHED = """Published for ogbn-papers100M itself (from the papers; not measured here): SAR 3.8 s an epoch, full batch, on 128 machines;
DistGNN-MB 2 s an epoch, sampled mini-batches, on 32 nodes; GraphBolt 190 s an epoch from disk on one A10G; preprocessing with 256 to 400 GB.
What differs: they train GraphSAGE or the like, whose every step passes through the graph; here the graph is passed through once, and an epoch
is one of a network on stored hops. The graph here is random and has no order that a cache or a partition could use; its labels and features
are made up, so accuracies say nothing. Theirs is several machines, this is one GPU."""


class Watch:
    """Phases with their seconds and memory, and an end where they take too long together.

    Args:
        device: where work is done.
        limit: seconds after which the phase that runs is ended.
    """

    def __init__(self, device: torch.device, limit: int) -> None:
        self.device, self.phase, self.seconds = device, "the start", dict[str, float]()
        signal.signal(signal.SIGALRM, self._end)
        signal.alarm(limit)

    def _end(self, *_: Any) -> None:
        print(f"stopped in {self.phase!r}: --limit is over", flush=True)
        os._exit(3)

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    @contextlib.contextmanager
    def __call__(self, phase: str) -> Generator[None]:
        self.phase = phase
        self.wait()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        began = time.perf_counter()
        yield
        self.wait()
        self.seconds[phase] = time.perf_counter() - began
        gpu = f", GPU peak {torch.cuda.max_memory_allocated() / 2**30:.1f} GB" if self.device.type == "cuda" else ""
        host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{phase:52} {self.seconds[phase]:9.3f} s, host peak {host:.1f} GB{gpu}", flush=True)


def free(device: torch.device) -> None:
    """Give back what nobody holds."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def power_law(nodes: int, edges: int, device: torch.device, seed: int = 0) -> Tensor:
    """A random list of edges, int32 of shape (2, edges), each listed in one direction."""
    chance = torch.Generator(device).manual_seed(seed)
    name = torch.randperm(nodes, generator=chance, device=device).int()
    index = torch.empty(2, edges, dtype=torch.int32, device=device)
    for side in index:
        for part in side.split(1 << 27):
            place = torch.rand(part.numel(), dtype=torch.float64, generator=chance, device=device).square_().mul_(nodes)
            part.copy_(name[place.long().clamp_(max=nodes - 1)])
    return index


def quietly(index: Tensor, nodes: int) -> us.Graph:
    """The graph of a list with repeats, without a word about them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return us.Graph.from_edges(index, nodes, directed=False)


def described(graph: us.Graph) -> str:
    w = graph.adjacency
    kept = sum(t.numel() * t.element_size() for t in (*w.forward[:2], graph.degree))
    return f"{graph.nodes:,} nodes, {w.entries:,} entries ({kept / w.entries:.2f} B each), largest degree {int(graph.degree.max()) - 1:,}"


# -- build ---------------------------------------------------------------------------------------------------------------


def build(watch: Watch, scale: float) -> None:
    """A list of 250 M undirected edges on the device, made a graph there."""
    device, small = watch.device, power_law(100_000, 2_000_000, watch.device)
    with watch("2 M edges, first use of the device"):
        there = quietly(small, 100_000)
    same(there, small.cpu())
    edges = int(250e6 * scale)
    with watch(f"drawing {edges:,} edges"):
        index = power_law(edges // 24, edges, device).long()
    for _ in range(2):
        free(device)
        with watch(f"Graph.from_edges of {edges:,} edges on the {device.type}"):
            graph = quietly(index, edges // 24)
    print(described(graph))


def same(there: us.Graph, index: Tensor) -> None:
    """Refuse a graph that is not that of the CPU, or whose A is not SciPy's."""
    import numpy as np
    import scipy.sparse

    nodes, here = there.nodes, quietly(index.cpu(), there.nodes)
    assert there.notes == here.notes
    assert all(
        torch.equal(a.cpu(), b) for a, b in zip(there.adjacency.forward[:2], here.adjacency.forward[:2], strict=True)
    )
    assert torch.equal(there.degree, here.degree)
    source, target = index.numpy()
    ends = (np.concatenate([source, target]), np.concatenate([target, source]))
    w = scipy.sparse.coo_array((np.ones(ends[0].size), ends), shape=(nodes, nodes)).tocsr()
    w.setdiag(1.0)
    w.data[:] = 1.0
    root = scipy.sparse.diags_array(1.0 / np.sqrt(w.sum(axis=1)))
    a = (root @ w @ root).tocsr()
    a.sort_indices()
    gap = abs(there.to_scipy().astype(float) - a).max()
    assert gap < 1e-6
    print(f"the graph of 2 M edges is that of the CPU in every bit, and its A is SciPy's to {gap:.1e}")


# -- papers --------------------------------------------------------------------------------------------------------------


class MadeFeatures(us.hops.Columns):
    """Features of every node, made column by column where they are needed: the centre of its class, and noise."""

    def __init__(self, kind: Tensor, classes: int, features: int) -> None:
        chance = torch.Generator(kind.device).manual_seed(1)
        self.kind, self.centre = kind, torch.randn(classes, features, generator=chance, device=kind.device) / 4
        self.shape, self.mark = (kind.numel(), features), ["made", kind.numel(), classes, features]

    def read(self, first: int, out: Tensor) -> None:
        for column in range(out.shape[1]):
            chance = torch.Generator(out.device).manual_seed(1000 + first + column)
            noise = torch.randn(out.shape[0], generator=chance, device=out.device)
            out[:, column] = noise.add_(self.centre[self.kind, first + column])


def papers_graph(watch: Watch, scale: float) -> us.Graph:
    nodes, edges = (int(PAPERS[name] * scale) for name in ("nodes", "edges"))
    with watch(f"drawing {edges:,} edges"):
        index = power_law(nodes, edges, watch.device)
    free(watch.device)
    with watch("Graph.from_edges"):
        graph = quietly(index, nodes)
    print(described(graph))
    assert graph.adjacency.entries >= 3.2e9 * scale, "fewer entries than papers100M has"
    return graph


def signals(graph: us.Graph, features: us.hops.Columns) -> tuple[Tensor, Tensor]:
    """Features in half precision with a known eigenvector as their first column, and room for a product."""
    y, out = (torch.empty(features.shape, dtype=torch.bfloat16, device=graph.device) for _ in range(2))
    features.read(0, y)
    y[:, 0] = graph.degree.sqrt().to(y.device)
    return y, out


def made_features(graph: us.Graph) -> MadeFeatures:
    chance = torch.Generator(graph.device).manual_seed(2)
    kind = torch.randint(PAPERS["classes"], (graph.nodes,), generator=chance, device=graph.device)
    return MadeFeatures(kind, PAPERS["classes"], 128)


def hops(watch: Watch, graph: us.Graph, features: us.hops.Columns, depth: int = 10) -> None:
    """Ten hops of 128 channels in half precision, as ``us.hops.write`` makes them."""
    from unspool.graph.pattern import walk_on

    with watch("128 features of all nodes, made in bfloat16"):
        y, out = signals(graph, features)
    walk, wanted = walk_on(graph, torch.bfloat16), y[:, 0].float()
    walk.begin(y)
    with watch("one hop, first use of the kernel"):
        walk.step(y, out)
    # Five roundings of at most 2⁻⁹ each: of what it is compared with, of what travels before and after, and of what is read.
    gap = float(((walk.signal(out[:, :1], slice(None))[:, 0].float() - wanted).abs() / wanted).max())
    assert gap < 2**-6, f"A D^(1/2) 1 is not D^(1/2) 1: {gap}"
    y, out = out, y
    with watch(f"{depth} hops of 128 bfloat16 channels"):
        for _ in range(depth):
            walk.step(y, out)
            y, out = out, y
    each = watch.seconds[f"{depth} hops of 128 bfloat16 channels"] / depth
    read = graph.adjacency.entries * 128 * 2
    print(f"{each:.3f} s a hop, {read / each / 1e12:.2f} TB/s gathered; A D^(1/2) 1 = D^(1/2) 1 to {gap:.1e}")


def written(
    watch: Watch, graph: us.Graph, features: us.hops.Columns, scale: float, place: Path, depth: int = 10
) -> Any:
    """Hops of the nodes that have labels, in a folder."""
    kind, chance = features.kind.cpu(), torch.Generator().manual_seed(3)  # pyright: ignore[reportAttributeAccessIssue]
    sizes = [max(int(PAPERS[part] * scale), 200) for part in ("train", "valid", "test")]
    chosen = torch.randperm(graph.nodes, generator=chance)[: sum(sizes)]
    parts = [part.sort().values for part in chosen.split(sizes)]
    split = us.datasets.Split(*parts, nodes=graph.nodes, name="drawn")
    names = tuple(f"class {i}" for i in range(PAPERS["classes"]))
    facts = us.hops.NodeFacts(labels=kind, classes=names, split=split, name="papers100M's shape")
    room = 2 * graph.nodes * 128 * 2 + graph.nodes * 32 + (1 << 30)
    with watch(f"us.hops.write at {chosen.numel():,} nodes"):
        us.hops.write(
            graph,
            features,
            depth,
            place / "hops",
            nodes=chosen.sort().values,
            memory=room,
            facts=facts,
            dtype=torch.bfloat16,
        )
    with watch("us.hops.dataset, checksums compared"):
        return us.hops.dataset(place / "hops")


def trained(watch: Watch, data: Any, batch: int, epochs: int = 50) -> None:
    """GPRGNN, graph first, on stored hops that are held in the memory of the device."""
    from dataclasses import replace

    from unspool import train

    with watch("hops into the memory of the device"):
        held = replace(data, features=data.features.held(watch.device))
    config = train.TrainConfig(epochs=epochs, batch_size=batch, lr=0.01)
    trial = train.Trial(us.models.GraphFirstGPRGNN, {"hidden": 256, "depth": 10}, config, seed=0)
    loader = train.TrialLoader(held, device=watch.device)
    name = f"{epochs} epochs of GPRGNN, graph first, batches of {batch:,}"
    with watch(name):
        run = train.train_trial(trial, loader)[1]
    print(f"{watch.seconds[name] / epochs:.3f} s an epoch with evaluation; {run}")


def papers(watch: Watch, scale: float, batch: int) -> None:
    """The whole way: a graph of papers100M's shape, ten hops, hops of labelled nodes, training."""
    graph = papers_graph(watch, scale)
    features = made_features(graph)
    hops(watch, graph, features)
    free(watch.device)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as place:
        data = written(watch, graph, features, scale, Path(place))
        del graph, features
        free(watch.device)
        trained(watch, data, batch)
    print(f"all phases: {sum(watch.seconds.values()):.1f} s\n\n{PUBLISHED}")


def kernel(watch: Watch, scale: float) -> None:
    """One hop with other numbers of neighbours in flight, and without factors of columns."""
    from dataclasses import replace

    from unspool.graph.pattern import pattern_of
    from unspool.ops.kernels import pattern_cuda

    graph = papers_graph(watch, scale)
    y, out = signals(graph, made_features(graph))
    whole = pattern_of(graph)
    assert whole is not None
    for name, pattern in (("both factors", whole), ("no factor of columns", replace(whole, right=None))):
        for neighbours in (4, 8, 16):
            pattern_cuda.product(pattern, y, out, neighbours)
            with watch(f"a hop, {neighbours} neighbours in flight, {name}"):
                pattern_cuda.product(pattern, y, out, neighbours)


# -- products ------------------------------------------------------------------------------------------------------------


def products(watch: Watch, scale: float) -> None:
    """One epoch of UGDGNN, K = 10, 128 features to 64 channels that travel: forward, loss, backward, Adam; full batch, beside PyG."""
    device = watch.device
    nodes, edges, many = (max(int(PRODUCTS[name] * scale), 100) for name in ("nodes", "edges", "train"))
    graph = quietly(power_law(nodes, edges, device), nodes)
    print(described(graph))
    chance = torch.Generator(device).manual_seed(0)
    x = torch.randn(nodes, 128, generator=chance, device=device)
    rows = torch.randperm(nodes, generator=chance, device=device)[:many]
    y = torch.randint(64, (many,), generator=chance, device=device)
    torch.manual_seed(0)
    model = us.models.UGDGNN(128, 64, hidden=64, depth=10, dropout=0.5).to(device)
    with watch("the entries of A"):
        graph.operator  # noqa: B018
    epochs_of("unspool", watch, model, (x, graph), rows, y)
    peers(watch, model, graph, x, rows, y)


def peers(watch: Watch, model: us.models.Model, graph: us.Graph, x: Tensor, rows: Tensor, y: Tensor) -> None:
    """PyG's LGConv, by lists of edges and by torch's compressed rows."""
    try:
        sys.path.insert(0, str(Path(__file__).parent))
        from pyg_peers import UGDGNNPeer
    except ImportError as problem:
        print(f"PyG is not installed here ({problem})")
        return
    csr = graph.operator.forward
    with torch.no_grad():
        model.eval()
        wanted = model(x, graph)[:1000]
    matrix = torch.sparse_csr_tensor(csr.crow, csr.col, csr.val, size=(graph.nodes, graph.nodes))
    for name, inputs in (("PyG, list of edges", None), ("PyG, compressed rows", (matrix, None))):
        try:
            edges = torch.stack([csr.col.long(), graph.operator.rows()]) if inputs is None else None
            given = (x, None, edges, csr.val) if inputs is None else (x, None, *inputs)
            net = UGDGNNPeer(model).to(x.device).eval()
            with torch.no_grad():
                gap = float((net(*given)[:1000] - wanted).abs().max() / wanted.abs().max())
            assert gap < 1e-3, f"{name} computes something else: {gap}"
            epochs_of(name, watch, net, given, rows, y, 2)
        except torch.OutOfMemoryError:
            print(f"{name}: out of memory on this device")
        except (RuntimeError, NotImplementedError) as problem:
            print(f"{name}: {type(problem).__name__}: {str(problem).splitlines()[0][:150]}")
        net = edges = given = None
        free(x.device)


def epochs_of(name: str, watch: Watch, net: Any, inputs: Any, rows: Tensor, y: Tensor, many: int = 3) -> None:
    """One epoch to warm up, and some that are timed."""
    adam, seconds = torch.optim.Adam(net.parameters(), lr=0.01), []
    net.train()
    for epoch in range(many + 1):
        with watch(f"{name}: epoch {epoch}{' (warms up)' if epoch == 0 else ''}"):
            adam.zero_grad()
            functional.cross_entropy(net(*inputs)[rows], y).backward()
            adam.step()
        seconds.append(list(watch.seconds.values())[-1])
    print(f"{name}: {statistics.median(seconds[1:]):.3f} s an epoch (median of {many})")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("part", choices=["build", "kernel", "papers", "products"])
    asked.add_argument("--scale", type=float, default=1.0, help="share of nodes and edges")
    asked.add_argument("--device", default="cuda")
    asked.add_argument("--limit", type=int, default=240, help="seconds after which a part ends")
    asked.add_argument("--batch", type=int, default=100_000, help="training nodes of a step (papers)")
    given = asked.parse_args()
    device = torch.device(given.device)
    machine = (
        torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    )
    print(
        f"{given.part}, scale {given.scale:g}; {machine}, {os.cpu_count()} cores, torch {torch.__version__}", flush=True
    )
    watch = Watch(device, given.limit)
    if given.part == "papers":
        papers(watch, given.scale, given.batch)
    else:
        {"build": build, "kernel": kernel, "products": products}[given.part](watch, given.scale)


if __name__ == "__main__":
    main()
