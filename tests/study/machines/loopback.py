"""Run by test_crew.py in a process of its own: studies on a cluster of four nodes on this machine, one of which keeps the file.

Prints what happened as JSON.
"""

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

import unspool as us
from unspool import datasets
from unspool.cli.main import cli
from unspool.study import Access, Status, Store, StoreProblem
from unspool.train import TrialLoader


def data():
    return datasets.contextual_sbm(nodes=60, classes=2, seed=0)


def space():
    """24 trials of three kinds and two lengths."""
    return us.study.grid(
        us.models.GCN, us.models.UGDGNN, us.models.APPNP, seed=range(2), hidden=8, depth=2, dropout=[0.2, 0.5], epochs=[10, 60]
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


def when_more_are_done(path, many, strike):
    """Do something in a thread when so many trials are done; whether others were not."""
    found = {}

    def look():
        while done(path) < many:
            time.sleep(0.02)
        strike()
        found["amid"] = done(path) < len(space())

    threading.Thread(target=look, daemon=True).start()
    return found


def run(path):
    # Trials by themselves: in stacks of another width a CPU rounds in another order.
    return us.study.run(space(), data(), store=path, machines=us.study.Ray(), device="cpu", most=1)


def said(call):
    """The sentence of what a call raises."""
    try:
        call()
    except (us.IncompatibleError, KeyboardInterrupt) as problem:
        return f"{type(problem).__name__}: {problem}"
    return "nothing"


def owners(path):
    """The process that keeps the file: Ray names it so, and it has the file open."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (one / "cmdline").read_bytes().startswith(b"ray::Owner"):
                found += [int(one.name)] * any(os.readlink(link) == str(path) for link in (one / "fd").iterdir())
    return found


def disturbed(folder, cluster, node):
    """One study: interrupted by Ctrl-C, then its owner is killed, then a node; each time when more trials are done than before."""
    path, found = folder / "study.db", {}
    blows = {
        "interrupted": lambda: os.kill(os.getpid(), signal.SIGINT),
        "owner": lambda: [os.kill(pid, signal.SIGKILL) for pid in owners(path)],
        "node": lambda: cluster.remove_node(node, allow_graceful=False),
    }
    for name, strike in blows.items():
        before = done(path)
        struck = when_more_are_done(path, before + 4, strike)
        sentence = said(lambda: run(path))
        with Store.open(path, Access.READ) as store:
            held, rows = store.workers(), store.rows()
        found[name] = {**struck, "said": sentence, "held": held, "done": len(told(rows))}
    return {**found, "table": told(rows)}


class Noting(TrialLoader):
    """Notes which process trains with which GPU."""

    folder = ""

    def prepare(self, trial):
        (Path(self.folder) / f"{os.getpid()}-{os.environ.get('CUDA_VISIBLE_DEVICES')}").touch()
        return super().prepare(trial)


def gpus(folder):
    """Two GPUs that one node has declared and nobody has: a worker for each, told to train on the CPU; nobody disturbs them."""
    loader, seen = Noting(data()), []
    loader.folder = str(folder)
    found = us.study.run(
        space(),
        loader,
        store=folder / "gpus.db",
        machines=us.study.Ray(gpus=1),
        device="cpu",
        most=1,
        watch=seen.append,
    )
    last = [seen[-1].done, seen[-1].total, seen[-1].running, seen[-1].best[0]]
    return {
        "table": told(found.rows),
        "last": last,
        "workers": sorted(one.name.split("-") for one in folder.glob("[0-9]*-*")),
    }


def on_the_command_line(folder):
    """What ``unspool study run --machines`` says, and what is in the file."""
    words = [
        "study",
        "run",
        "MLP",
        "--dataset",
        "contextual_sbm",
        "--seeds",
        "4",
        "--epochs",
        "5",
        "--hidden",
        "4",
        "--machines",
        "auto",
        "--device",
        "cpu",
        "--json",
    ]
    result = CliRunner().invoke(cli, [*words, "--out", str(folder / "cli.db")], catch_exceptions=False)
    return {
        "code": result.exit_code,
        "said": [json.loads(line) for line in result.stdout.splitlines()],
        "done": done(folder / "cli.db"),
    }


def main():
    from ray.cluster_utils import Cluster

    folder = Path(sys.argv[1]).resolve()
    (folder / "gpu").mkdir()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    node = cluster.add_node(num_cpus=1)
    cluster.add_node(num_cpus=2, num_gpus=2)
    os.environ["RAY_ADDRESS"] = cluster.address
    alone = us.study.run(space(), data(), device="cpu", most=1)
    with us.study.Ray().connected("cpu") as found:
        print(json.dumps({
            "alone": told(alone.rows), "cluster": [str(found), found.workers(100)], "gpus": gpus(folder / "gpu"),
            "cli": on_the_command_line(folder), "disturbed": disturbed(folder, cluster, node), "locks": [one.name for one in folder.rglob("*.lock")],
        }))  # fmt: skip
    cluster.shutdown()


if __name__ == "__main__":
    main()
