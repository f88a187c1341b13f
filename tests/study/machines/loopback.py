"""Run by test_crew.py in a process of its own: studies on a cluster of four nodes on this machine, one of which keeps the file.

Prints what happened as JSON.
"""

import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

import unspool as us
from unspool import datasets
from unspool.study import Access, Status, Store, StoreProblem
from unspool.study.machines import crew
from unspool.train import TrialLoader


def data():
    return datasets.contextual_sbm(nodes=60, classes=2, seed=0)


def space(epochs=(10, 60)):
    """24 trials of three kinds and two lengths."""
    return us.study.grid(
        us.models.GCN, us.models.UGDGNN, us.models.APPNP, seed=range(2), hidden=8, depth=2, dropout=[0.2, 0.5], epochs=list(epochs)
    )  # fmt: skip


def told(rows):
    """What came of each trial, but for the time it took."""
    return {row.key: repr(replace(row.result, seconds=0.0)) for row in rows if row.status is Status.DONE}


def done(path):
    try:
        with Store.open(path, Access.READ) as store:
            return store.counts()[Status.DONE]
    except StoreProblem:
        return 0  # it is just being made


def when_some_are_done(path, act):
    """Do something in a thread when four trials are done; what it gives, and whether some were not done then."""
    found = {}

    def look():
        while done(path) < 4:
            time.sleep(0.02)
        found["did"], found["amid"] = act(), done(path) < len(space())

    threading.Thread(target=look, daemon=True).start()
    return found


def run(path, **options):
    return us.study.run(space(), data(), store=path, machines=us.study.Ray(), most=2, **{"device": "cpu", **options})


def said(call):
    """The sentence of what a call raises."""
    try:
        call()
    except (us.IncompatibleError, KeyboardInterrupt) as problem:
        return f"{type(problem).__name__}: {problem}"
    return "nothing"


def owners():
    """The processes that keep a file."""
    titles = {int(one.parent.name): one.read_bytes() for one in Path("/proc").glob("[0-9]*/cmdline") if one.exists()}
    return [pid for pid, title in titles.items() if title.startswith(b"ray::Owner")]


def undisturbed(folder):
    seen = []
    found = run(folder / "whole.db", watch=seen.append)
    return {
        "table": told(found.rows),
        "last": [seen[-1].done, seen[-1].total, seen[-1].running],
        "best": seen[-1].best[0],
    }


def node_killed(folder, cluster, node):
    path = folder / "node.db"
    what = when_some_are_done(path, lambda: cluster.remove_node(node, allow_graceful=False))
    return {"table": told(run(path).rows), "amid": what["amid"]}


def interrupted(folder):
    path = folder / "interrupted.db"
    what = when_some_are_done(path, lambda: os.kill(os.getpid(), signal.SIGINT))
    sentence = said(lambda: run(path))
    with Store.open(path, Access.READ) as store:
        left, workers = store.counts()[Status.WAITING], store.workers()
    return {"said": sentence, "left": left, "workers": workers, "amid": what["amid"], "table": told(run(path).rows)}


def owner_killed(folder):
    path = folder / "owner.db"
    what = when_some_are_done(path, lambda: [os.kill(pid, signal.SIGKILL) for pid in owners()])
    sentence = said(lambda: run(path))
    return {"said": sentence, "killed": len(what["did"]), "amid": what["amid"], "table": told(run(path).rows)}


def other_versions(folder):
    real = crew.versions
    crew.versions = lambda: {**real(), "unspool": "0.0.1"}
    try:
        return said(lambda: run(folder / "versions.db"))
    finally:
        crew.versions = real


class Noting(TrialLoader):
    """Notes which process trains with which GPU."""

    folder = ""

    def prepare(self, trial):
        (Path(self.folder) / f"{os.getpid()}-{os.environ.get('CUDA_VISIBLE_DEVICES')}").touch()
        return super().prepare(trial)


def gpus(folder):
    """Two GPUs that one node has declared and nobody has: a worker for each, told to train on the CPU."""
    loader = Noting(data())
    loader.folder = str(folder)
    machines = us.study.Ray(gpus=1)
    found = us.study.run(space(), loader, store=folder / "gpus.db", machines=machines, device="cpu", most=2)
    return {"table": told(found.rows), "workers": sorted(one.name.split("-") for one in folder.glob("[0-9]*-*"))}


def main():
    folder = Path(sys.argv[1])
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=2, num_gpus=2)]
    os.environ["RAY_ADDRESS"] = cluster.address
    alone = us.study.run(space(), data(), device="cpu")
    (folder / "gpu").mkdir()
    with us.study.Ray().connected("cpu") as found:
        told_of = [str(found), found.workers(100), found.device]
        print(json.dumps({
            "alone": told(alone.rows), "cluster": told_of, "undisturbed": undisturbed(folder), "gpus": gpus(folder / "gpu"),
            "no gpu": said(lambda: run(folder / "gpu.db", device=None)), "versions": other_versions(folder), "interrupted": interrupted(folder), "owner": owner_killed(folder),
            "node": node_killed(folder, cluster, nodes[0]), "locks": [one.name for one in folder.glob("*.lock")],
            "connected": ray.is_initialized(),
        }))  # fmt: skip
    cluster.shutdown()


if __name__ == "__main__":
    main()
