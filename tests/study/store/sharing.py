"""Run by test_store.py in a process of its own: children that share one study, are killed at work, and leave children.

Forks, so that torch is loaded once. Prints what happened as JSON.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

import unspool as us
from unspool.study.search.space import grid
from unspool.study.store import Status, Store
from unspool.train import DataRecord, Ending, Result

torch.set_num_threads(1)
TRIALS = grid(us.models.GCN, seed=range(100), lr=[0.01, 0.05]).trials("cora")
RESULT = Result(12, 50, 0.1, 0.9, 0.7, 0.71, Ending.ALL_EPOCHS, 0.4)
CORA = DataRecord("cora", "5e1f")


def child(work, *given):
    """Let a child work, and leave without a word to the interpreter."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work(*given)
        os._exit(0)
    except BaseException as problem:
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr, flush=True)
        os._exit(1)


def ended_well(*pids):
    return all(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 for pid in pids)


def crew_member(path, out, given=None):
    """Make the study if nobody has, then take trials three at a time until there are none."""
    store = Store(path) if given is None else given
    keys, mine = store.add(TRIALS, CORA), []
    while got := store.claim(keys, 3):
        mine += got
        store.finish([(key, RESULT) for key in got])
    store.close()
    out.write_text(json.dumps(mine))


def shared(folder, given=None):
    """Four processes at one study; ``given`` is a store that was opened, and used, before they were forked."""
    outs = [folder / f"{given is None}{i}.json" for i in range(4)]
    well = ended_well(*[child(crew_member, folder / "shared.db", out, given) for out in outs])
    return well, [json.loads(out.read_text()) for out in outs]


def doomed(path, said):
    """Claim ten, finish two, have a child, and never end."""
    store = Store(path)
    keys = store.add(TRIALS[:10], CORA)
    store.finish([(key, RESULT) for key in store.claim(keys, 10)[:2]])
    heir = child(time.sleep, 60)
    said.write_text(str(heir))
    time.sleep(60)


def telling(path, out, begun):
    """Finish trials one by one, and tell of each when the store says that it is safe."""
    store, file = Store(path), os.open(out, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    keys = [trial.key("5e1f") for trial in TRIALS]
    begun.write_text("yes")
    while got := store.claim(keys, 2):
        for key in got:
            store.finish([(key, RESULT)])
            os.write(file, f"{key}\n".encode())


def killed_often(folder, kills):
    """Whether all that was told is there, each time that a process was killed at some moment."""
    path, out, rng = folder / "often.db", folder / "told", random.Random(0)
    with Store(path) as store:
        store.add(TRIALS, CORA)
    kept = []
    for k in range(kills):
        pid = child(telling, path, out, folder / f"begun{k}")
        if k % 3:  # some die while they open the file
            wait_for(folder / f"begun{k}")
        time.sleep(rng.uniform(0.01, 0.06))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with Store(path) as store:
            done = {row.key for row in store.rows() if row.status is Status.DONE}
            kept.append(set(out.read_text().split() if out.exists() else []) <= done)
    return {"kept": kept, "done": len(done), "held": store_is_free(path)}


def store_is_free(path):
    with Store(path) as store:
        return store.counts()[Status.RUNNING]


def wait_for(file):
    while not (file.exists() and file.read_text()):
        time.sleep(0.01)
    return file.read_text()


def killed(folder):
    path, said = folder / "killed.db", folder / "said"
    pid = child(doomed, path, said)
    heir = int(wait_for(said))
    with Store(path) as store:
        keys = [row.key for row in store.rows()]
        before = store.claim(keys, 10), store.counts()[Status.RUNNING]
        os.kill(pid, signal.SIGSTOP)  # asleep is not dead
        asleep = store.claim(keys, 10)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        seen = store.counts()[Status.WAITING]
        after = store.claim(keys, 10), store.counts()[Status.DONE]
        locks = len(list(folder.glob("killed.db-*.lock")))
    os.kill(heir, signal.SIGKILL)
    return {"before": before, "asleep": asleep, "seen": seen, "after": after, "locks": locks, "keys": keys}


def main():
    folder = Path(sys.argv[1])
    together = shared(folder)
    (folder / "shared.db").unlink()
    with Store(folder / "shared.db") as opened:
        opened.claim(opened.add(TRIALS[:5], CORA), 5)
        forked = shared(folder, opened)
        kept = opened.counts()[Status.RUNNING]
    often = killed_often(folder, 12)
    print(json.dumps({"together": together, "forked": forked, "kept": kept, "killed": killed(folder), "often": often}))


if __name__ == "__main__":
    main()
