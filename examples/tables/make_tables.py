"""Three small sets of tables as people have them: customers and their calls, papers and citations, sensors and distances.

    python make_tables.py FOLDER

writes ``customers.csv``, ``calls.csv``, ``papers.csv``, ``citations.csv``, ``sensors.csv`` and ``roads.csv``, the same files every time. They
have what real tables have: columns of text, edges that run one way and repeat, unbalanced classes, labels and measurements that are missing.
"""

import csv
import sys
from pathlib import Path

import numpy as np


def write(file, header, rows):
    with Path(file).open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows([header, *rows])


def near(random, place, nearest):
    """For each node its nearest ones, and one of them a little farther off."""
    apart = ((place[:, None] - place) ** 2).sum(-1)
    order = np.argsort(apart + np.eye(len(place)) * 1e9, axis=1)
    picked = [(i, j) for i in range(len(place)) for j in order[i, :nearest]]
    return [pair for pair in picked if random.random() < 0.8]


def customers(folder, count=1200):
    """Who leaves, and who phones whom: people who phone each other leave together."""
    random = np.random.default_rng(1)
    circle = random.normal(size=(count, 2))
    unrest = np.sin(2 * circle[:, 0]) + np.cos(2 * circle[:, 1])
    months, fee = random.integers(1, 72, count), random.choice([9.9, 19.9, 49.9], count, p=[0.5, 0.35, 0.15])
    support = random.poisson(np.exp(0.4 * unrest))
    churn = unrest + 0.4 * support - 0.02 * months + 0.8 * random.normal(size=count) > 1.3
    plan = np.array(["basic", "plus", "business"])[np.searchsorted([10, 20, 50], fee)]
    region = random.choice(["north", "south", "east", "west"], count)
    answer = np.where(random.random(count) < 0.1, "", np.where(churn, "left", "stayed"))
    write(
        Path(folder, "customers.csv"),
        ["customer", "plan", "region", "months", "fee", "support_calls", "status"],
        zip((f"C{i:05d}" for i in range(count)), plan, region, months, fee, support, answer, strict=True),
    )
    calls = near(random, circle, 5) + [tuple(random.integers(0, count, 2)) for _ in range(300)]
    write(
        Path(folder, "calls.csv"),
        ["caller", "callee", "calls", "minutes"],
        [
            (f"C{i:05d}", f"C{j:05d}", random.poisson(4) + 1, round(random.exponential(6), 1))
            for i, j in calls
            if i != j
        ],
    )


def papers(folder, count=1000, words=120):
    """Papers with the words of their abstracts and a topic; citations run from the newer to the older."""
    random = np.random.default_rng(2)
    topics = np.array(["graphs", "vision", "language", "robots", "theory"])
    topic = random.integers(0, 5, count)
    liked = random.random((5, words)) < 0.12
    seen = random.random((count, words)) < 0.03 + 0.09 * liked[topic]
    year = random.integers(2005, 2026, count)
    shown = np.where(random.random(count) < 0.15, "", topics[topic])
    write(
        Path(folder, "papers.csv"),
        ["paper", "title", "year", *(f"word_{w}" for w in range(words)), "topic"],
        [(f"p{i}", f"On {topics[topic[i]]}, part {i}", year[i], *seen[i].astype(int), shown[i]) for i in range(count)],
    )
    cited = []
    for i in range(count):
        older = np.flatnonzero(year < year[i])
        same = older[topic[older] == topic[i]]
        for pool, how_many in ((same, 3), (older, 1)):
            cited += [(f"p{i}", f"p{j}") for j in random.choice(pool, min(how_many, len(pool)), replace=False)]
    write(Path(folder, "citations.csv"), ["citing", "cited"], cited)


def sensors(folder, count=400):
    """Temperatures at sensors along roads; every fifth is missing, and a few instruments are off."""
    random = np.random.default_rng(3)
    place = random.random((count, 2))
    height = 400 * (1 + np.sin(5 * place[:, 0]) * np.cos(4 * place[:, 1]))
    warmth = 18 - 0.0065 * height + 3 * np.sin(3 * place[:, 1]) + 0.4 * random.normal(size=count)
    warmth[random.choice(count, 6, replace=False)] += 15
    shown = [round(float(t), 2) if random.random() > 0.2 else "" for t in warmth]
    write(
        Path(folder, "sensors.csv"),
        ["sensor", "east", "north", "height_km", "temperature"],
        [(f"s{i}", *place[i].round(4), round(float(height[i]) / 1000, 4), shown[i]) for i in range(count)],
    )
    roads = {tuple(sorted(pair)) for pair in near(random, place, 5)}
    write(
        Path(folder, "roads.csv"),
        ["from", "to", "closeness"],
        [
            (f"s{i}", f"s{j}", round(float(np.exp(-20 * np.linalg.norm(place[i] - place[j]))), 4))
            for i, j in sorted(roads)
        ],
    )


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "tables")
    target.mkdir(parents=True, exist_ok=True)
    for make in (customers, papers, sensors):
        make(target)
    print(*sorted(str(file) for file in target.glob("*.csv")), sep="\n")
