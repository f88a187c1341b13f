"""A study on real data that is killed again and again, against one that is left alone: is the table the same?

    python benchmarks/killed.py [--times 30] [--dataset citeseer] [--device cuda] [--beside 8] [--trials 60] [--epochs 60] [--most 4] [--seed 0]

Both train the same grid of UGDGNN (hidden width 64, five hops; rates, dropouts and seeds vary) from a file, ``--most`` trials at once.
One of them is killed with SIGKILL at random moments and started again each time; if it is through before ``--times`` kills amid work,
another begins on a new file. Four kills in five strike amid work: after the process has finished a trial of its own and before the last one is
done. The others strike while it starts. After the last kill it runs to its end, and every table is compared with the one of the study that
was left alone: the same trials, none trained again after it was done, the same losses to 1e-4, and scores that differ by no more than
a node or two. Batches that begin anew have other widths, so sums are rounded in another order.

On the CPU the processes are forked after torch is loaded. CUDA does not survive a fork, so there each is a new Python, which takes seconds
to start: ``--beside`` studies, each with a file of its own, are killed at the same time and share the kills among them.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import random
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
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
#: How long after its first trial a process is killed, at most, as a share of the time that all trials take.
SHARE = 0.4
#: The share of kills that strike while a process starts.
EARLY = 0.2
#: Seconds between two looks at a file.
LOOK = 0.05


@dataclass(frozen=True)
class Job:
    """One grid on one dataset."""

    dataset: str
    device: str
    trials: int
    epochs: int
    most: int
    beside: int

    def space(self) -> study.Space:
        seeds = range(-(-self.trials // 12))
        rates, dropouts = [0.005, 0.01, 0.02], [0.2, 0.4, 0.6, 0.8]
        return study.grid(models.UGDGNN, seed=seeds, lr=rates, dropout=dropouts, hidden=64, depth=5, epochs=self.epochs)

    def __call__(self, path: Path) -> None:
        torch.set_num_threads(1)
        study.run(self.space(), self.dataset, store=path, device=self.device, most=self.most)

    def start(self, path: Path) -> Any:
        # Trap: CUDA does not survive a fork, and a fork from a thread inherits the locks of the others.
        kind = "spawn" if self.beside > 1 or self.device.startswith("cuda") else "fork"
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


def finished(job: Job, path: Path) -> tuple[float, float]:
    """Run to the end; the seconds until the first trial of this run was done, and from then on."""
    began, before = time.monotonic(), len(rows(path))
    process = job.start(path)
    worked = work_begins(process, path, before, began + 3600) - began
    process.join()
    if process.exitcode:
        sys.exit(f"a run that nobody killed ended with code {process.exitcode}")
    return worked, time.monotonic() - began - worked


def work_begins(process: Any, path: Path, before: int, until: float) -> float:
    """Wait until a run has finished a trial of its own, or is over, or it is so late; the time."""
    while process.exitcode is None and time.monotonic() < until and len(rows(path)) <= before:
        process.join(LOOK)
    return time.monotonic()


@dataclass
class Killed:
    """What happened to one study that was killed."""

    kills: int = 0
    amid: int = 0  # kills of a process that had finished a trial of its own, and others were not done
    lost: int = 0  # results that were there before a kill and not, or not the same, after it


def kill_often(job: Job, path: Path, times: int, draw: random.Random, start: float, work: float) -> Killed:
    """Start and kill, until that was done often enough amid work or the study is through; it takes so many seconds by itself."""
    what, before = Killed(), dict[str, Row]()
    while what.amid < times:
        process, began = job.start(path), time.monotonic()
        early = draw.random() < EARLY
        late = began + draw.uniform(0, start) if early else began + 3600
        work_begins(process, path, len(before), late)
        process.join(0 if early else draw.uniform(0, SHARE * work))
        if process.exitcode is not None:
            if process.exitcode:
                sys.exit(f"a run ended by itself with code {process.exitcode}")
            break
        process.kill()
        process.join()
        now = rows(path)
        what.kills += 1
        what.amid += len(before) < len(now) < len(job.space())
        what.lost += sum(now.get(key) != row for key, row in before.items())
        before = now
        print(f"  {path.stem}, kill {what.kills}: {len(now)} of {len(job.space())} trials done", flush=True)
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


def one_after_another(job: Job, folder: Path, name: int, times: int, seed: int, alone: tuple[float, float]) -> Any:
    """Studies that are killed until there were so many kills amid work: path, what happened, seconds of the last run."""
    draw, found = random.Random(seed), list[tuple[Path, Killed, float]]()
    while times > 0:
        path = folder / f"killed{name}-{len(found)}.db"
        what = kill_often(job, path, times, draw, *alone)
        times -= what.amid
        found.append((path, what, sum(finished(job, path))))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=30, help="kills amid work")
    parser.add_argument("--dataset", default="citeseer")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--beside", type=int, help="studies at the same time; 8 on a GPU, 1 on a CPU when omitted")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--most", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    beside = min(given.beside or (8 if given.device.startswith("cuda") else 1), given.times)
    job = Job(given.dataset, given.device, given.trials, given.epochs, given.most, beside)
    split = datasets.load(given.dataset).split
    with tempfile.TemporaryDirectory() as folder:
        alone = finished(job, Path(folder) / "whole.db")
        whole = {key: row.result for key, row in rows(Path(folder) / "whole.db").items() if row.result is not None}
        print(
            f"{given.dataset} on {given.device}: {len(whole)} trials of {given.epochs} epochs, left alone: "
            f"{alone[0]:.1f} s until the first was done, then {alone[1]:.1f} s"
        )
        shares = [given.times // beside + (k < given.times % beside) for k in range(beside)]
        given_each = [(job, Path(folder), k, share, given.seed + k, alone) for k, share in enumerate(shares)]
        if beside == 1:
            found = [one_after_another(*given_each[0])]
        else:
            with ThreadPoolExecutor(beside) as crew:
                found = list(crew.map(lambda each: one_after_another(*each), given_each))
        lines, well, kills = list[str](), True, [0, 0]
        for path, what, seconds in itertools.chain.from_iterable(found):
            line, same = compare(path, whole, min(len(split.valid), len(split.test)))
            lines.append(
                f"{len(lines) + 1:5}  {what.kills:5}  {what.amid:4}  {what.lost:4}  {seconds:9.1f}  {line}  {'yes' if same else 'NO'}"
            )
            well, kills = well and same and not what.lost, [kills[0] + what.kills, kills[1] + what.amid]
    print("study  kills  amid  lost  last run s  trials  valid loss, rel.  scores, at most  other epochs  same")
    print("\n".join(lines))
    print(f"{kills[0]} kills, {kills[1]} amid work: {'the same tables' if well else 'NOT the same'}")
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
