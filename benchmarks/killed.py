"""A study on real data that is killed again and again, against one that is left alone: is the table the same?

    python benchmarks/killed.py [--times 30] [--dataset citeseer] [--device cuda] [--trials 60] [--epochs 60] [--most 4] [--seed 0]

Both train the same grid of UGDGNN (hidden width 64, five hops; rates, dropouts and seeds vary) from a file, ``--most`` trials at once.
One of them is killed with SIGKILL at random moments and started again each time; if it is through before ``--times`` kills, another
begins on a new file. After the last kill it runs to its end, and every table is compared with the one of the study that was left
alone: the same trials, none trained again after it was done, the same losses to 1e-4, and scores that differ by no more than a node
or two. Batches that begin anew have other widths, so sums are rounded in another order.

On the CPU the processes are forked after torch is loaded, and are killed after 0.2 to 6 s. CUDA does not survive a fork, so there
each is a new Python, killed after half to 1.1 times what the study takes by itself; more trials or epochs keep it busy for longer than
its start takes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from unspool import datasets, models, study
from unspool.study import Access, Result, Row, Status, Store, StoreProblem

#: Relative, on losses.
TOLERANCE = 1e-4
#: Nodes that may sit so close to the border that rounding moves them.
BORDER = 2
#: Seconds after which a process is killed, at least and at most.
LIVES = (0.2, 6.0)
#: The same on a GPU, as shares of the time of the study that was left alone: half of it is start and kernels.
SHARES = (0.5, 1.1)


@dataclass(frozen=True)
class Job:
    """One grid on one dataset."""

    dataset: str
    device: str
    trials: int
    epochs: int
    most: int

    def space(self) -> study.Space:
        seeds = range(-(-self.trials // 12))
        rates, dropouts = [0.005, 0.01, 0.02], [0.2, 0.4, 0.6, 0.8]
        return study.grid(models.UGDGNN, seed=seeds, lr=rates, dropout=dropouts, hidden=64, depth=5, epochs=self.epochs)

    def __call__(self, path: Path) -> None:
        torch.set_num_threads(1)
        study.run(self.space(), self.dataset, store=path, device=self.device, most=self.most)

    def start(self, path: Path) -> Any:
        kind = "spawn" if self.device.startswith("cuda") else "fork"
        process = multiprocessing.get_context(kind).Process(target=self, args=(path,))
        process.start()
        return process


def rows(path: Path) -> dict[str, Row]:
    """The finished trials by key; none while the file is being made."""
    try:
        with Store.open(path, Access.READ) as store:
            return {row.key: row for row in store.rows() if row.status is Status.DONE}
    except StoreProblem:
        return {}


def finished(job: Job, path: Path) -> float:
    """Run to the end; the seconds it took."""
    began = time.monotonic()
    process = job.start(path)
    process.join()
    if process.exitcode:
        sys.exit(f"a run that nobody killed ended with code {process.exitcode}")
    return time.monotonic() - began


@dataclass
class Killed:
    """What happened to one study that was killed."""

    kills: int = 0
    amid: int = 0  # kills that found some trials done and others not
    lost: int = 0  # results that were there before a kill and not, or not the same, after it


def kill_often(job: Job, path: Path, times: int, draw: random.Random, seconds: float) -> Killed:
    """Start and kill, until that was done often enough or the study, which takes so many seconds by itself, is through."""
    what, before = Killed(), dict[str, Row]()
    low, high = LIVES if job.device == "cpu" else (share * seconds for share in SHARES)
    while what.kills < times:
        process = job.start(path)
        process.join(draw.uniform(low, high))
        if process.exitcode is not None:
            if process.exitcode:
                sys.exit(f"a run ended by itself with code {process.exitcode}")
            break
        process.kill()
        process.join()
        now = rows(path)
        what.kills += 1
        what.amid += 0 < len(now) < len(job.space())
        what.lost += sum(now.get(key) != row for key, row in before.items())
        before = now
        print(f"  kill {what.kills}: {len(now)} of {len(job.space())} trials done", flush=True)
    return what


def furthest(one: dict[str, Result], other: dict[str, Result]) -> tuple[float, float, int]:
    """The largest relative difference of losses, of scores, and how many trials selected another epoch."""
    losses = max(abs(one[k].valid_loss / other[k].valid_loss - 1) for k in one)
    scores = max(
        max(abs(one[k].valid_score - other[k].valid_score), abs(one[k].test_score - other[k].test_score)) for k in one
    )
    return losses, scores, sum(one[k].epoch != other[k].epoch for k in one)


def compare(path: Path, whole: dict[str, Result], nodes: int) -> tuple[str, bool]:
    found = {key: row.result for key, row in rows(path).items() if row.result is not None}
    if found.keys() != whole.keys():
        return f"{len(found)} trials, and not the same ones", False
    losses, scores, epochs = furthest(found, whole)
    same = losses <= TOLERANCE and scores <= (BORDER + 0.5) / nodes
    return f"{len(found):6}  {losses:15.1e}  {scores:16.4f}  {epochs:12}", same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--dataset", default="citeseer")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--most", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    job = Job(given.dataset, given.device, given.trials, given.epochs, given.most)
    split, draw = datasets.load(given.dataset).split, random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        alone = finished(job, Path(folder) / "whole.db")
        whole = {key: row.result for key, row in rows(Path(folder) / "whole.db").items() if row.result is not None}
        print(
            f"{given.dataset} on {given.device}: {len(whole)} trials of {given.epochs} epochs in {alone:.1f} s, left alone"
        )
        lines, well, left = list[str](), True, given.times
        while left > 0:
            path = Path(folder) / f"killed{len(lines)}.db"
            what = kill_often(job, path, left, draw, alone)
            left -= what.kills
            seconds = finished(job, path)
            line, same = compare(path, whole, min(len(split.valid), len(split.test)))
            lines.append(
                f"{len(lines) + 1:5}  {what.kills:5}  {what.amid:4}  {what.lost:4}  {seconds:9.1f}  {line}  {'yes' if same else 'NO'}"
            )
            well = well and same and not what.lost
    print("study  kills  amid  lost  last run s  trials  valid loss, rel.  scores, at most  other epochs  same")
    print("\n".join(lines))
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
