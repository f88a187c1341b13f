"""Search, final evaluation and ablation of several data sets at once, one process each, where torch, numpy and scipy are all there is.

python experiments/run_lead.py --out DIR --data DIR --commit COMMIT --seconds 480 --final-seconds 240

does what ``unspool reproduce lead`` does with the same options, one data set after another; results of both continue each other. Every process
writes to DIR/lead and its lines to DIR/lead/DATASET.log; at the end the table is printed, and everything is packed into DIR/lead.tar.gz.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path
from typing import IO

from unspool.errors import DataError, InputError
from unspool.reproduce.lead.finals import read
from unspool.reproduce.lead.plan import Plan
from unspool.reproduce.lead.run import PARTS, LeadRun
from unspool.reproduce.lead.table import lines


def main() -> int:
    """Everything, or one data set where ``--one`` names it."""
    given = parser().parse_args()
    sizes = {word: getattr(given, word) for word in ("rounds", "numbers", "epochs", "seeds")}
    plan = Plan.read(given.space, **sizes)
    began, folder = time.monotonic(), given.out / "lead"

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True)

    if given.one:
        times = (given.seconds, given.final_seconds)
        job = LeadRun(folder, plan, given.data, given.device, given.commit, *times, say=say)
        job.run([given.one], listed(given.parts))
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    names = listed(given.datasets) or plan.datasets
    started = [start(name, folder) for name in names]
    ended = [wait(process) for process in started]
    for line in lines(read(folder / "finals.csv"), plan):
        print(line)
    pack(folder)
    failed = [name for name, code in zip(names, ended, strict=True) if code]
    if failed:
        print(f"these failed, and go on when the same command is run again: {', '.join(failed)}")
    return int(bool(failed))


def start(name: str, folder: Path) -> subprocess.Popen[str]:
    """This script once more, for one data set; what it prints goes to the terminal and into a file."""
    command = [sys.executable, "-u", __file__, *sys.argv[1:], "--one", name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    threading.Thread(target=copy, args=(process.stdout, folder / f"{name}.log")).start()
    return process


def wait(process: subprocess.Popen[str]) -> int:
    """For its end, though somebody has asked all of them to stop: what has ended is kept, and packed."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)


def copy(lines: IO[str], path: Path) -> None:
    """Line by line."""
    with path.open("a", encoding="utf-8") as file:
        for line in lines:
            file.write(line)
            file.flush()
            print(line, end="", flush=True)


def pack(folder: Path) -> None:
    """Everything into one file."""
    with tarfile.open(folder.with_suffix(".tar.gz"), "w:gz") as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.name.startswith(".") and path.suffix in (".json", ".csv", ".log", ".db"):
                file.add(path, path.relative_to(folder.parent))


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--space", default="lead", help="the file that is searched: lead or upper_heterophily")
    made.add_argument("--datasets", default="", help="with commas; all of the file when omitted")
    made.add_argument("--parts", default=",".join(PARTS), help="with commas; nothing: the table alone")
    made.add_argument("--out", type=Path, required=True)
    made.add_argument("--data", type=Path, help="folder with raw data")
    made.add_argument("--device")
    made.add_argument("--commit", help="asked of git when omitted")
    for name in ("--seconds", "--final-seconds"):
        made.add_argument(name, type=float)
    for name in ("--rounds", "--numbers", "--epochs", "--seeds"):
        made.add_argument(name, type=int)
    made.add_argument("--one", help=argparse.SUPPRESS)
    return made


def listed(text: str) -> list[str]:
    """Names with commas between them."""
    return [word.strip() for word in text.split(",") if word.strip()]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DataError, InputError) as problem:
        sys.exit(str(problem))
    except KeyboardInterrupt:
        sys.exit("interrupted: what has ended is kept; run the same command again to continue")
