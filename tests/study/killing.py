"""Run by test_processes.py in a process of its own: whole studies that are killed again and again, and go on.

Forks after torch is loaded, so that a child lives within milliseconds. Prints what happened as JSON.
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
from unspool import datasets
from unspool.study import Access, Status, Store

torch.set_num_threads(1)
MODELS = (us.models.GCN, us.models.UGDGNN, us.models.APPNP)


def data():
    return datasets.contextual_sbm(nodes=60, classes=2, seed=0)


def space():
    """24 trials of three kinds and two lengths."""
    return us.study.grid(*MODELS, seed=range(2), hidden=8, depth=2, dropout=[0.2, 0.5], epochs=[10, 40])


class Telling(Store):
    """Writes down the key of every trial that it was told the end of."""

    def __init__(self, path, said):
        super().__init__(path)
        self._said = os.open(said, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def finish(self, pairs):
        super().finish(pairs)
        os.write(self._said, "".join(f"{key}\n" for key, _ in pairs).encode())


def work(path, said, most):
    us.study.run(space(), data(), store=Telling(path, said), device="cpu", most=most)


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


def told(said):
    return said.read_text().split() if said.exists() else []


def table(path):
    """Key by key: what must be the same to the bit, and what rounding may move in batches of other widths."""
    with Store.open(path, Access.READ) as store:
        done = {row.key: row.result for row in store.rows() if row.status is Status.DONE}
    return {
        key: [[r.epoch, r.epochs, r.valid_score, r.test_score, r.ending.name], [r.train_loss, r.valid_loss]]
        for key, r in sorted(done.items())
    }


def ended_before(pid, moment, enough):
    """Wait for a moment, or until enough was told; whether the child ended by itself meanwhile."""
    while time.monotonic() < moment and not enough():
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        time.sleep(0.002)
    return bool(os.waitpid(pid, os.WNOHANG)[0])


def killed_once(path, said, most, rng):
    """One more process on the study, killed at some moment; whether it was still at work then."""
    pid, before = child(work, path, said, most), len(told(said))
    if rng.random() < 0.5:  # at any time
        moment, more = time.monotonic() + rng.uniform(0.02, 0.4), 10**9
    else:  # soon after it has finished something, so that there is progress on slow machines too
        moment, more = time.monotonic() + 20, rng.randint(1, 3)
    if ended_before(pid, moment, lambda: len(told(said)) >= before + more):
        return False
    time.sleep(rng.uniform(0, 0.02))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return True


def killed(folder, most, seed, wanted):
    """Studies that are killed until they are through, as many as it takes for all kills."""
    rng, kills, amid, studies = random.Random(seed), 0, 0, []
    while kills < wanted:
        path, said = folder / f"{most}-{len(studies)}.db", folder / f"{most}-{len(studies)}.txt"
        while kills < wanted and killed_once(path, said, most, rng):
            kills += 1
            amid += 0 < len(told(said)) < len(space())
        well = ended_well(child(work, path, said, most))
        studies.append({"well": well, "told": told(said), "table": table(path)})
    return {"kills": kills, "amid": amid, "studies": studies}


def whole(folder, most):
    path, said = folder / f"whole{most}.db", folder / f"whole{most}.txt"
    well = ended_well(child(work, path, said, most))
    return {"well": well, "told": told(said), "table": table(path)}


def together(folder):
    """Two processes on one file."""
    path, saids = folder / "two.db", [folder / f"two{i}.txt" for i in range(2)]
    well = ended_well(*[child(work, path, said, 3) for said in saids])
    return {"well": well, "told": [told(said) for said in saids], "table": table(path)}


def crew_work(path):
    us.study.run(space(), data(), store=path, device="cpu", jobs=2, most=3)


def crew(folder):
    """Two jobs, killed with their parent when something is done; then the rest."""
    path = folder / "crew.db"
    pid = child(crew_work, path)
    amid = not ended_before(pid, time.monotonic() + 60, lambda: path.exists() and done(path))
    if amid:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return {"amid": amid, "well": ended_well(child(crew_work, path)), "table": table(path)}


def done(path):
    try:
        with Store.open(path, Access.READ) as store:
            return store.counts()[Status.DONE]
    except us.study.StoreProblem:
        return 0  # it is just being made


def main():
    folder, kills = Path(sys.argv[1]), int(sys.argv[2])  # kills of each kind
    print(json.dumps({
        "alone": whole(folder, 1), "batched": whole(folder, 1024),
        "killed alone": killed(folder, 1, seed=0, wanted=kills),
        "killed batched": killed(folder, 1024, seed=1, wanted=kills), "together": together(folder), "crew": crew(folder),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
