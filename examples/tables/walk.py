"""From raw tables to a decision, three times: check, train, report, predict, explain, export.

    python walk.py [FOLDER]

Makes the tables of ``make_tables.py`` in FOLDER, prints every command before it runs, and how long each took. Nothing here is Python: a person
types the same commands.
"""

import shlex
import subprocess
import sys
import time
from pathlib import Path

import make_tables

CUSTOMERS = "--edges calls.csv --edge-columns caller,callee --features customers.csv --id-column customer --label-column status --one-hot plan --one-hot region --weight-column calls"
PAPERS = "--edges citations.csv --features papers.csv --id-column paper --label-column topic --drop-column title --drop-column year"
SENSORS = (
    "--edges roads.csv --features sensors.csv --id-column sensor --target-column temperature --weight-column closeness"
)

WALKS = {
    "customers who may leave": [
        "data check --edges calls.csv --edge-columns caller,callee --features customers.csv --id-column customer --label-column status",
        f"train APPNP {CUSTOMERS} --class-weight balanced --name 'phone customers' --seeds 3 --out churn",
        "predict churn --only unlabelled --out who_may_leave.csv",
        "explain churn/seed0 --node C00003 --out why.png",
        "export churn/seed0 --format numpy --out churn_model.py",
    ],
    "papers and their topics": [
        "data check --edges citations.csv --features papers.csv --id-column paper --label-column topic",
        f"train GPRGNN {PAPERS} --name papers --seeds 3 --out topics",
        "predict topics --only unlabelled --out topics.csv",
        "explain topics/seed0 --node p7 --out why_topic.png",
        "export topics/seed0 --out topics.pt2",
    ],
    "sensors with gaps": [
        "data check --edges roads.csv --features sensors.csv --id-column sensor --target-column temperature",
        f"train APPNP {SENSORS} --name sensors --seeds 3 --out sensors",
        "predict sensors --only unlabelled --out temperatures.csv",
        "explain sensors/seed0 --node s0 --out why_warm.png",
        "export sensors/seed0 --format numpy --out sensors_model.py",
        "denoise --edges roads.csv --features sensors.csv --id-column sensor --feature-column temperature --problem robust --fill --out filled.csv",
    ],
}


def walk(folder):
    """Run all walks in a folder; the seconds that each took."""
    for make in (make_tables.customers, make_tables.papers, make_tables.sensors):
        make(folder)
    seconds = {}
    for name, commands in WALKS.items():
        print(f"\n=== {name} ===")
        began = time.perf_counter()
        for command in commands:
            print(f"\n$ unspool {command}", flush=True)
            subprocess.run([sys.executable, "-m", "unspool", *shlex.split(command)], cwd=folder, check=True)
        seconds[name] = time.perf_counter() - began
    return seconds


if __name__ == "__main__":
    place = Path(sys.argv[1] if len(sys.argv) > 1 else "out/tables").resolve()
    place.mkdir(parents=True, exist_ok=True)
    for walked, took in walk(place).items():
        print(f"{walked}: {took:.0f} s")
    print(f"tables, models, reports and predictions are in {place}")
