"""One training step of every model against the same model in PyTorch Geometric's layers, in one run.

    python benchmarks/models.py --data DIR [--device cuda] [--graphs cora arxiv] [--json FILE]

DIR holds ``Planetoid/`` and ``ogbn_arxiv_nofeat/``. A step is forward, cross-entropy on the training nodes, backward and Adam,
in float32 with dropout 0.5, hidden width 64 and each model's default depth. Both sides start from the same weights, and their
predictions are compared before anything is timed. On Cora ours reads the bag-of-words as sparse; on the ogbn-arxiv graph
features are 128 random numbers per node, because the official ones are not part of the data. PyG's layers get the graph once
(``cached=True``, or weights normalised beforehand). SGC appears twice. PyG's cached layer keeps AᴷX and has no graph in its step;
ours does the same with dense features, while with sparse ones X W first and then K hops of a few channels is less work. The second row
is not cached on either side. Both sides use torch's fused Adam. PyG has no PPNP layer, so its side iterates APPNP to our solver's tolerance. On a GPU our whole step is one
CUDA graph (checked against the same step without); PyG's side runs as its users run it.

The limit aimed at: on the CPU the bytes gathered by the hops plus the dense layers; on the GPU the same, without launches.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

import unspool as us

warnings.filterwarnings("ignore")

NAMES = ("SGC", "SGC, not cached", "PPNP", "APPNP", "JKNet", "GPRGNN", "GCN", "GCNII", "AirGNN", "DAGNN", "UGDGNN")


def cora(data: Path) -> dict[str, object]:
    from torch_geometric.datasets import Planetoid

    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(data / "Planetoid" / "Cora" / "raw", Path(folder) / "Cora" / "raw")
        found = Planetoid(folder, "Cora")[0]
    x = found.x / found.x.sum(1, keepdim=True).clamp_min(1)
    train = found.train_mask.nonzero().flatten()
    return {
        "name": "Cora",
        "x": x,
        "index": found.edge_index,
        "y": found.y,
        "train": train,
        "valid": found.val_mask.nonzero().flatten(),
        "test": found.test_mask.nonzero().flatten(),
        "classes": 7,
        "sparse": True,
    }


def arxiv(data: Path) -> dict[str, object]:
    file = data / "ogbn_arxiv_nofeat" / "ogbn_arxiv_nofeat.npz"
    arrays = np.load(file)
    row = np.repeat(np.arange(len(arrays["indptr"]) - 1), np.diff(arrays["indptr"]))
    index = torch.from_numpy(np.stack([row, arrays["indices"]]).astype(np.int64))
    index = torch.unique(torch.cat([index, index.flip(0)], 1), dim=1)
    x = torch.randn(len(arrays["indptr"]) - 1, 128, generator=torch.Generator().manual_seed(0))
    y = torch.from_numpy(arrays["y"].astype(np.int64)).flatten()
    train = torch.from_numpy(arrays["train_idx"].astype(np.int64)).flatten()
    return {"name": "ogbn-arxiv", "x": x, "index": index, "y": y, "train": train, "classes": 40, "sparse": False}


def build(name: str, inputs: int, classes: int, depth: int | None = None) -> us.models.Model:
    torch.manual_seed(0)
    kind = getattr(us.models, name.split(",", 1)[0])
    if name == "SGC":
        return kind(inputs, classes, weights=us.models.Side.PRE)
    how = {} if name.startswith("SGC") else {"dropout": 0.5}
    return kind(inputs, classes, **how, **({} if depth is None else {"depth": depth}))


class Ours:
    """One training step of our model; SGC with everything that does not change computed once, as PyG's cached layer does."""

    def __init__(
        self, name: str, model: us.models.Model, case: dict[str, object], graph: us.Graph, device: str
    ) -> None:
        self.model = model.train()
        self.x = us.nn.SparseFeatures.from_tensor(case["x"]).to(device) if case["sparse"] else case["x"].to(device)
        self.graph, self.y, self.train = graph, case["y"].to(device)[case["train"].to(device)], case["train"].to(device)
        self.call = lambda: self.model(self.x, self.graph)
        if name == "SGC" and not case["sparse"]:
            with torch.no_grad():
                still = model.propagation(case["x"].to(device), graph)
            self.call = lambda: self.model.p_pos(self.model.p_pre(still))
        capturable = device == "cuda"
        groups = [p for p in model.parameters() if p.requires_grad]
        self.adam = torch.optim.Adam(groups, lr=0.01, weight_decay=5e-4, capturable=capturable, fused=True)

    def step(self) -> torch.Tensor:
        self.adam.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(self.call().index_select(0, self.train), self.y)
        loss.backward()
        self.adam.step()
        return loss.detach()


class Theirs:
    """One training step of the same model in PyG's layers."""

    def __init__(
        self, name: str, model: us.models.Model, case: dict[str, object], graph: us.Graph, device: str
    ) -> None:
        from pyg_peers import PEERS

        self.model = PEERS[name](model).to(device).train()
        csr = graph.operator.forward
        edges = torch.stack([csr.col.long(), graph.operator.rows()])
        self.inputs = (case["x"].to(device), case["index"].to(device), edges, csr.val)
        self.y, self.train = case["y"].to(device)[case["train"].to(device)], case["train"].to(device)
        self.adam = torch.optim.Adam(self.model.parameters(), lr=0.01, weight_decay=5e-4, fused=True)

    def step(self) -> torch.Tensor:
        self.adam.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(self.model(*self.inputs).index_select(0, self.train), self.y)
        loss.backward()
        self.adam.step()
        return loss.detach()


def check_same(ours: Ours, theirs: Theirs, name: str) -> None:
    ours.model.eval(), theirs.model.eval()
    with torch.no_grad():
        a, b = ours.call(), theirs.model(*theirs.inputs)
    error = float((a - b).norm() / b.norm())
    assert error < 1e-3, f"{name}: the two sides compute different things, relative error {error:.1e}"
    ours.model.train(), theirs.model.train()


def captured(ours: Ours, name: str) -> object:
    """Our step as one CUDA graph, after checking that it trains exactly as the step it was captured from."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            ours.step()
    torch.cuda.current_stream().wait_stream(side)
    start = copy.deepcopy(ours.model.state_dict())
    memory = copy.deepcopy(ours.adam.state_dict())
    plain = [float(ours.step()) for _ in range(3)]
    graph = torch.cuda.CUDAGraph()
    ours.adam.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = ours.step()
    ours.model.load_state_dict(start)
    _restore(ours.adam, memory)
    replayed = []
    for _ in range(3):
        graph.replay()
        replayed.append(float(loss))
    worst = max(abs(a - b) / abs(b) for a, b in zip(replayed, plain, strict=True))
    assert worst < 1e-3, f"{name}: the CUDA graph trains differently, losses {replayed} against {plain}"
    return graph.replay


def _restore(adam: torch.optim.Adam, memory: dict[str, object]) -> None:
    """Copy moments back in place: a CUDA graph remembers addresses."""
    for place, state in memory["state"].items():
        parameter = [p for g in adam.param_groups for p in g["params"]][place]
        for key, value in state.items():
            adam.state[parameter][key].copy_(value)


def seconds(action: object, device: str, times: int) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(times):
        action()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / times


def compare(case: dict[str, object], names: list[str], device: str, rounds: int) -> list[dict[str, object]]:
    graph = us.Graph.from_edges(case["index"], nodes=case["x"].shape[0]).to(device)
    print(f"\n{case['name']}: {graph}\n{_machine(device)}; one training step, float32\n")
    print(
        f"{'':18} {'ours, ms':>10} {'PyG, ms':>10} {'faster by':>10}"
        + (f" {'without graph, ms':>18}" if device == "cuda" else "")
    )
    rows = []
    for name in names:
        model = build(name, case["x"].shape[1], case["classes"]).to(device)
        theirs = Theirs(name, model, case, graph, device)
        ours = Ours(name, model, case, graph, device)
        check_same(ours, theirs, name)
        fast = captured(ours, name) if device == "cuda" else ours.step
        ours.step(), theirs.step(), fast()
        slow = device == "cpu" and case["name"] != "Cora"
        times = 1 if slow else 10 if device == "cpu" else 50
        samples: dict[str, list[float]] = {"ours": [], "theirs": [], "eager": []}
        for _ in range(rounds):  # in turns, so that a busy neighbour slows both alike
            samples["ours"].append(seconds(fast, device, times))
            samples["theirs"].append(seconds(theirs.step, device, max(times // 5, 1)))
            if device == "cuda":
                samples["eager"].append(seconds(ours.step, device, times // 5))
        found = {side: 1e3 * statistics.median(s) for side, s in samples.items() if s}
        ratio = found["theirs"] / found["ours"]
        tail = f" {found['eager']:18.3f}" if "eager" in found else ""
        print(f"{name:18} {found['ours']:10.3f} {found['theirs']:10.3f} {ratio:9.1f}x{tail}", flush=True)
        rows.append({"graph": case["name"], "model": name, "device": _machine(device), "ratio": ratio, **found})
    return rows


def peak(depth: int, device: str, data: Path) -> int:
    """Peak memory of one step of UGDGNN on the ogbn-arxiv graph, in bytes."""
    case = arxiv(data)
    graph = us.Graph.from_edges(case["index"], nodes=case["x"].shape[0]).to(device)
    ours = Ours("UGDGNN", build("UGDGNN", 128, 40, depth).to(device), case, graph, device)
    ours.step()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        ours.step()
        return torch.cuda.max_memory_allocated()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as watched:
        ours.step()
    held = most = 0
    for event in sorted(
        (e for e in watched.profiler.kineto_results.events() if e.name() == "[memory]"), key=lambda e: e.start_ns()
    ):
        held += event.nbytes()
        most = max(most, held)
    return most


def memory(arguments: argparse.Namespace) -> list[int]:
    sizes = []
    for depth in (4, 64):
        command = [
            sys.executable,
            __file__,
            "--peak",
            str(depth),
            "--device",
            arguments.device,
            "--data",
            str(arguments.data),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        sizes.append(int(done.stdout.split()[-1]))
    print(
        f"\npeak memory of one UGDGNN step on ogbn-arxiv: depth 4 {sizes[0] / 1e6:.1f} MB, depth 64 {sizes[1] / 1e6:.1f} MB "
        f"({sizes[1] / sizes[0] - 1:+.1%})"
    )
    return sizes


def _machine(device: str) -> str:
    if device == "cuda":
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    return f"{torch.get_num_threads()} CPU threads, torch {torch.__version__}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("UNSPOOL_DATA", ".")), help="or set UNSPOOL_DATA"
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--graphs", nargs="+", default=["cora", "arxiv"], choices=["cora", "arxiv"])
    parser.add_argument("--models", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak:
        print(peak(arguments.peak, arguments.device, arguments.data))
        return
    rows = []
    for name in arguments.graphs:
        case = {"cora": cora, "arxiv": arxiv}[name](arguments.data)
        rows += compare(case, arguments.models, arguments.device, arguments.rounds)
    sizes = [] if arguments.no_memory else memory(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps({"steps": rows, "peak_bytes": sizes}, indent=1))


if __name__ == "__main__":
    main()
