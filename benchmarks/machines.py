"""A study on several machines whose nodes are killed, against one process: is every row the same, and what does the wire cost?

    python benchmarks/machines.py [--trials 1000] [--nodes 3] [--kills 3] [--epochs 30] [--most 1] [--watched 100000]

The machines are nodes of a Ray cluster on loopback, each with one core, and one more that keeps the file. The same grid of GCN and APPNP is
trained by one process; by the workers of all nodes, left alone; and by workers whose nodes are killed with SIGKILL ``--kills`` times (another
joins each time), and whose owner, the process that keeps the file, is killed once, whereupon the study is run again. With ``--most 1`` every
trial trains by itself, and rows must be equal in every bit but the seconds; in stacks of other widths a CPU rounds in another order.

The wait is what workers spent waiting for an answer from the file, for each trial. The last line is the share of a core that
``unspool study status --watch`` takes on a study of ``--watched`` trials (0: leave it out) into which others write.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from unspool import IncompatibleError, datasets, models, study
from unspool.study import Access, Result, Status, Store, StoreProblem
from unspool.study.machines.crew import train_on_machines
from unspool.study.machines.worker import Waited
from unspool.study.study import StoreTracker
from unspool.train import DataRecord, Ending, TrialLoader


def data() -> Any:
    return datasets.contextual_sbm(nodes=200, classes=3, seed=0)


def space(trials: int, epochs: int) -> study.Space:
    rates, dropouts = [0.005, 0.01, 0.02, 0.05, 0.1], [0.1, 0.2, 0.4, 0.6, 0.8]
    seeds = range(max(trials // 50, 1))
    return study.grid(
        models.GCN, models.APPNP, seed=seeds, lr=rates, dropout=dropouts, hidden=8, depth=2, epochs=epochs
    )


def table(path: Path) -> dict[str, Result]:
    """What came of each trial, but for the time it took."""
    try:
        with Store.open(path, Access.READ) as store:
            done = [row for row in store.rows() if row.result is not None]
    except StoreProblem:
        return {}
    return {row.key: replace(row.result, seconds=0.0) for row in done if row.result is not None}


def done(path: Path) -> int:
    try:
        with Store.open(path, Access.READ) as store:
            return store.tally().of(Status.DONE)
    except StoreProblem:
        return 0


def owner(path: Path) -> list[int]:
    """The process that keeps the file: Ray names it so, and it has the file open."""
    found = list[int]()
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (one / "cmdline").read_bytes().startswith(b"ray::Owner"):
                found += [int(one.name)] * any(
                    os.readlink(link) == str(path.resolve()) for link in (one / "fd").iterdir()
                )
    return found


def on_machines(path: Path, given: argparse.Namespace) -> Waited:
    """Train what is not there yet; what workers waited."""
    trials = space(given.trials, given.epochs).trials("contextual sbm")
    loader = TrialLoader(data())
    with Store(path) as store, study.Ray().connected("cpu") as cluster:
        return train_on_machines(StoreTracker(store, trials, loader.record), loader, cluster, None, most=given.most)


def begin(path: Path, given: argparse.Namespace) -> Any:
    """The study in a process of its own, which says at the end what workers waited, or what went wrong."""
    command = [
        sys.executable,
        __file__,
        "--work",
        str(path),
        "--trials",
        given.trials,
        "--epochs",
        given.epochs,
        "--most",
        given.most,
    ]
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: Any, path: Path) -> tuple[Waited | None, str]:
    """What workers waited, or what went wrong."""
    out, errors = process.communicate()
    if process.returncode == 0:
        seconds, trials = out.split()[-2:]
        return Waited(float(seconds), int(trials)), ""
    return None, errors.strip().splitlines()[-1].replace(str(path), path.name)


def kill(cluster: Any, nodes: list[Any], process: Any, path: Path, trials: int, kills: int) -> list[str]:
    """Kill a node whenever another share of the trials is done, and put a new one in its place; the owner at last."""
    struck = list[str]()
    for turn in range(1, kills + 2):
        while done(path) < trials * turn // (kills + 2):
            if process.poll() is not None:
                return struck
            time.sleep(0.1)
        if turn <= kills:
            cluster.remove_node(nodes.pop(0), allow_graceful=False)
            struck.append("a node")
        else:
            for pid in owner(path):
                os.kill(pid, signal.SIGKILL)
            struck.append("the owner")
        print(f"  killed {struck[-1]} when {done(path)} trials were done", flush=True)
        if turn <= kills:
            nodes.append(cluster.add_node(num_cpus=1))
    return struck


def compare(name: str, found: dict[str, Result], whole: dict[str, Result]) -> bool:
    same = sum(found.get(key) == result for key, result in whole.items())
    print(f"{name}: {same} of {len(whole)} rows equal in every field", flush=True)
    return same == len(whole) == len(found)


def machines(folder: Path, given: argparse.Namespace) -> bool:
    import ray
    from ray.cluster_utils import Cluster

    print(
        f"Ray {ray.__version__}, torch {torch.__version__}, {os.cpu_count()} cores; {given.nodes} nodes of one core on loopback"
    )
    began = time.monotonic()
    study.run(space(given.trials, given.epochs), data(), store=folder / "one.db", device="cpu", most=given.most)
    whole = table(folder / "one.db")
    print(f"one process: {len(whole)} trials in {time.monotonic() - began:.0f} s", flush=True)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(given.nodes)]
    os.environ["RAY_ADDRESS"] = cluster.address
    began = time.monotonic()
    waited, problem = ended(begin(folder / "all.db", given), folder / "all.db")
    if waited is None:
        sys.exit(problem)
    print(
        f"{given.nodes} nodes, left alone: {time.monotonic() - began:.0f} s with their start; workers waited "
        f"{1000 * waited.seconds / waited.trials:.2f} ms a trial for the file",
        flush=True,
    )
    well = compare("left alone", table(folder / "all.db"), whole)
    path = folder / "killed.db"
    process = begin(path, given)
    struck = kill(cluster, nodes, process, path, len(whole), given.kills)
    _, problem = ended(process, path)
    print(f"  {len(table(path))} done, then: {problem}", flush=True)
    ended(begin(path, given), path)
    well &= compare(f"killed ({', '.join(struck)}) and run again", table(path), whole)
    cluster.shutdown()
    return well and len(struck) == given.kills + 1


def watched(folder: Path, trials: int) -> bool:
    """The share of a core that watching takes, over half a minute."""
    path, result = folder / "watched.db", Result(12, 50, 0.1, 0.9, 0.7, 0.71, Ending.ALL_EPOCHS, 0.4)
    store = Store(path)
    keys = store.add(study.grid(models.GCN, seed=range(trials)).trials("cora"), DataRecord("cora", "5e1f"))
    store.finish([(key, result) for key in keys[: trials // 2]])
    command = [sys.executable, "-m", "unspool", "study", "status", str(path), "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as looking:
        assert looking.stdout is not None
        store.finish([(store.claim(keys[trials // 2 :][:64], 1)[0], result)])
        looking.stdout.readline()
        threading.Thread(target=looking.stdout.read, daemon=True).start()
        before, began = cpu(looking.pid), time.monotonic()
        for place in range(trials // 2 + 1, trials):
            store.finish([(key, result) for key in store.claim(keys[place : place + 1], 1)])
            time.sleep(0.02)
            if time.monotonic() - began > 30:
                break
        share = (cpu(looking.pid) - before) / (time.monotonic() - began)
        looking.terminate()
    store.close()
    print(f"watching {trials:,} trials: {100 * share:.1f} % of a core")
    return share < 0.05


def cpu(pid: int) -> float:
    """Seconds of a core that a process has taken."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--most", type=int, default=1)
    parser.add_argument("--watched", type=int, default=100_000)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # on a machine with other work
    torch.set_num_threads(1)
    if given.work is not None:
        try:
            waited = on_machines(given.work, given)
        except IncompatibleError as problem:
            sys.exit(str(problem))
        print(waited.seconds, waited.trials)
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        well = machines(Path(folder), given)
        if given.watched:
            well &= watched(Path(folder), given.watched)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
