"""Files that say one thing in many ways, files that must be refused, and damaged ones: made from a seed, and judged.

``python -m datasets.attacks 2000`` (in tests/) tries as many seeds of each kind and counts what came of them.
"""

import gzip
import sys
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse
import torch

from unspool import datasets
from unspool.ops.features import SparseFeatures

#: Words of Python, numpy or torch, which no sentence of ours has.
RAW = (
    "invalid literal", "could not convert", "not supported between", "unexpected keyword", "has no attribute", "index out of range",
    "NoneType", "must be str", "embedded null", "to unpack", "not subscriptable", "broadcast", "dtype('", "ufunc", "codec can't",
)  # fmt: skip
FINE = (ValueError, TypeError, OSError)


def sentence(problem):
    """Whether an exception is one of ours: a kind that is promised, one line, no words of the machinery."""
    text = str(problem)
    return isinstance(problem, FINE) and len(text) > 10 and "\n" not in text and not any(raw in text for raw in RAW)


@dataclass
class Scene:
    """What the files say."""

    names: list
    edges: list
    weights: list | None
    x: np.ndarray
    columns: list
    labels: list
    draw: np.random.Generator
    done: list = field(default_factory=list)

    def like(self, data):
        """Whether a data set says the same, whatever the order of its nodes."""
        held = list(map(str, range(data.nodes))) if data.names is None else [str(name) for name in data.names]
        if sorted(held) != sorted(self.names):
            return f"nodes {held[:4]}"
        place = [held.index(name) for name in self.names]
        x = data.features.to_dense() if isinstance(data.features, SparseFeatures) else data.features
        if not np.array_equal(x.numpy()[place], self.x.astype(np.float32)):
            return "features"
        if data.feature_names is not None and list(data.feature_names) != self.columns:
            return f"columns {data.feature_names}"
        if [None if k < 0 else data.classes[k] for k in data.labels[place].tolist()] != self.labels:
            return "labels"
        wanted = torch.zeros(len(self.names), len(self.names), dtype=torch.float64)
        for (a, b), w in zip(
            self.edges, [1.0] * len(self.edges) if self.weights is None else self.weights, strict=True
        ):
            wanted[self.names.index(a), self.names.index(b)] += w
        found = torch.zeros_like(wanted)
        index = torch.tensor([self.names.index(held[i]) for i in data.edge_index.flatten().tolist()]).view(2, -1)
        weight = torch.ones(index.shape[1]).double() if data.edge_weight is None else data.edge_weight
        found[index[0], index[1]] = weight
        return None if torch.allclose(found, wanted) else "edges"


def scene(seed):
    """Ten to twenty nodes with odd names, edges in both directions, features and classes."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(10, 21))
    kinds = [
        [f"n{i}" for i in range(n)], [str(i) for i in range(n)], [str(7 * i + 3) for i in range(n)], [f"Ünïcode {i}" for i in range(n)],
        [f"#tag{i}" if i % 2 else f"w{i}" for i in range(n)], [f"0{i}" for i in range(n)], [f"{i}_{i}" for i in range(n)],
    ]  # fmt: skip
    names = kinds[draw.integers(len(kinds))]
    names = [names[i] for i in draw.permutation(n)]
    pairs = {(int(a), int(b)) for a, b in draw.integers(n, size=(3 * n, 2)) if a < b}
    weights = {pair: float(draw.integers(1, 9)) / 4 for pair in pairs} if draw.random() < 0.4 else None
    both = [(a, b) for a, b in sorted(pairs)] + [(b, a) for a, b in sorted(pairs)]
    edges = [(names[a], names[b]) for a, b in both]
    x = np.round(draw.standard_normal((n, int(draw.integers(2, 5)))), 3)
    columns = [["age", "size", "α", "x y"], ["a", "b", "c", "d"], ["t1", "T1", "t_1", "1t"]][draw.integers(3)][
        : x.shape[1]
    ]
    classes = [["red", "blue"], ["007", "7"], ["1_0", "10"], ["0", "1"], [str(2**53), str(2**53 + 1)]][draw.integers(5)]
    labels = [classes[i % 2] if i < 8 or draw.random() < 0.8 else None for i in range(n)]
    told = None if weights is None else [weights[min(p), max(p)] for p in both]
    return Scene(names, edges, told, x, columns, labels, draw)


def one_of(s, *choices):
    return choices[s.draw.integers(len(choices))]


def cell(s, value, separator):
    text = "" if value is None else str(value)
    return f'"{text}"' if separator in text or (text and separator != " " and s.draw.random() < 0.1) else text


def text_of(s, rows, separator, blanks=True):
    end = one_of(s, "\n", "\n", "\r\n")
    lines = [separator.join(cell(s, value, separator) for value in row) for row in rows]
    if blanks and len(rows[0]) > 1 and s.draw.random() < 0.3:
        lines.insert(int(s.draw.integers(1, len(lines))), "")
    return (one_of(s, "", "", "\ufeff") + end.join(lines) + one_of(s, end, "", end + end)).encode()


def write_table(s, place, stem, rows):
    ending = one_of(s, "csv", "csv", "tsv", "csv.gz", "parquet")
    path = place / f"{stem}.{ending}"
    if ending == "parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(
            pyarrow.table({str(name): [row[c] for row in rows[1:]] for c, name in enumerate(rows[0])}), path
        )
        return path
    data = text_of(s, rows, "\t" if ending == "tsv" else ",")
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    return path


def tables(s):
    """The rows of the three tables; nodes in another order in each."""
    head = one_of(s, ["source", "target", "weight"], ["src", "dst", "w"], ["From", "To", "Weight"])
    edges = [
        [a, b] if s.weights is None else [a, b, w] for (a, b), w in zip(s.edges, s.weights or s.edges, strict=True)
    ]
    edges = [edges[i] for i in s.draw.permutation(len(edges))]
    order, other = s.draw.permutation(len(s.names)), s.draw.permutation(len(s.names))
    people = [[one_of(s, "id", "node", "Name"), *s.columns], *([s.names[i], *s.x[i].tolist()] for i in order)]
    teams = [["id", one_of(s, "label", "team", "class")], *([s.names[i], s.labels[i]] for i in other)]
    return [head[: len(edges[0])], *edges], people, teams


def faithful(seed, place):
    """The same scene, written in one of many ways: it must be read as it is."""
    s = scene(seed)
    edges, people, teams = tables(s)
    e = write_table(s, place, "e", edges)
    if s.draw.random() < 0.3:
        spot = int(s.draw.integers(1, len(people[0]) + 1))
        wide = [
            [*row[:spot], answer, *row[spot:]]
            for row, answer in zip(people, ["team", *(s.labels[s.names.index(r[0])] for r in people[1:])], strict=True)
        ]
        data = datasets.from_files(e, write_table(s, place, "x", wide), label_column="team")
    else:
        data = datasets.from_files(e, write_table(s, place, "x", people), write_table(s, place, "y", teams))
    return s.like(data)


def arrays(seed, place):
    """The same from arrays, by number."""
    s = scene(seed)
    n = len(s.names)
    index = np.array([[s.names.index(a), s.names.index(b)] for a, b in s.edges]).T
    s.names, s.edges = list(map(str, range(n))), [(str(a), str(b)) for a, b in index.T]
    kind = one_of(s, "npz", "npy", "csr", "csc", "coo", "txt")
    if kind in ("npy", "txt") and s.weights is not None:
        kind = "npz"
    if kind == "npz":
        np.savez(
            place / "e.npz",
            edge_index=index.astype(one_of(s, np.int32, np.int64, np.uint16)),
            **({} if s.weights is None else {"edge_weight": s.weights}),
        )
    elif kind == "npy":
        np.save(place / "e.npy", index)
    elif kind == "txt":
        (place / "e.txt").write_text(
            "# made by hand\n" * int(s.draw.integers(3)) + "".join(f"{a}  {b}\n" for a, b in index.T)
        )
    else:
        matrix = scipy.sparse.coo_array(
            (np.ones(index.shape[1]) if s.weights is None else s.weights, (index[1], index[0])), shape=(n, n)
        )
        scipy.sparse.save_npz(place / "e.npz", matrix.asformat(kind))
    if s.draw.random() < 0.5:
        np.save(place / "x.npy", s.x.astype(one_of(s, np.float32, np.float64)))
    else:
        scipy.sparse.save_npz(place / "x.npz", scipy.sparse.csr_array(s.x).asformat(one_of(s, "csr", "csc", "coo")))
    np.save(place / "y.npy", np.array(["" if label is None else label for label in s.labels]))
    e, x = (next(place.glob(f"{stem}.*")) for stem in "ex")
    return s.like(datasets.from_files(e, x, place / "y.npy"))


def xml_data(key, value):
    return f'<data key="{key}">{value}</data>'


def graphml(seed, place):
    """The same as GraphML."""
    s = scene(seed)
    nodes = ""
    for name, row, label in zip(s.names, s.x.tolist(), s.labels, strict=True):
        held = "".join(f'<data key="k{c}">{v}</data>' for c, v in enumerate(row))
        nodes += f'<node id="{name}">{held}{"" if label is None else xml_data("team", label)}</node>'
    weights = [None] * len(s.edges) if s.weights is None else s.weights
    edges = ""
    for (a, b), w in zip(s.edges, weights, strict=True):
        edges += f'<edge source="{a}" target="{b}">{"" if w is None else xml_data("w", w)}</edge>'
    keys = "".join(f'<key id="k{c}" for="node" attr.name="{name}"/>' for c, name in enumerate(s.columns))
    space = one_of(s, "", " xmlns='http://graphml.graphdrawing.org/xmlns'")
    body = f"<graphml{space}>{keys}<key id='w' attr.name='weight'/><graph edgedefault='directed'>{nodes}{edges}</graph></graphml>"
    (place / "g.graphml").write_text(body, encoding="utf-8")
    return s.like(
        datasets.from_files(place / "g.graphml", feature_columns=s.columns, label_column="team", directed=True)
    )


def spoil(s, edges, people, teams):
    """One mistake that cannot be read rightly; gives its name."""
    row = int(s.draw.integers(1, len(people)))
    line = int(s.draw.integers(1, len(edges)))
    col = int(s.draw.integers(1, len(people[0])))

    def unknown():
        edges[line][s.draw.integers(2)] = one_of(s, "nobody", "", "-1", "1.5", "n1 ", "#").strip()

    def number():
        people[row][col] = one_of(
            s, "", "tall", "nan", "inf", "-inf", "1_0", "1,5", "0x1", "1e999", "--1", "1 2", "1e39", "#", "?", "None"
        )

    def repeated():
        people.append(list(people[row]))

    def torn():
        people[row] = people[row][:-1] if s.draw.random() < 0.5 else [*people[row], "1"]

    def named_twice():
        people[0][col] = people[0][1 + (col % (len(people[0]) - 1))]

    def weight():
        edges[0] = ["source", "target", "weight"]
        for i, e in enumerate(edges[1:], start=1):
            edges[i] = [e[0], e[1], 1.0]
        edges[line][2] = one_of(s, "-1", "nan", "inf", "heavy", "", "1_0")

    def stranger():
        teams.append([one_of(s, "nobody", "", "#"), "red"])

    def twice():
        teams.append([teams[1][0], teams[1][1]])

    def counted():
        people[0] = list(range(len(people[0])))

    def unnamed():
        people[0][col] = ""

    def commented():
        people[row][0] = f"# {people[row][0]}"

    wrong = one_of(
        s, unknown, number, number, repeated, torn, named_twice, weight, stranger, twice, counted, unnamed, commented
    )
    wrong()
    return wrong.__name__


def refused(seed, place):
    """One mistake in plain text: it must be refused in a sentence."""
    s = scene(seed)
    edges, people, teams = tables(s)
    what = spoil(s, edges, people, teams)
    for stem, rows in (("e", edges), ("x", people), ("y", teams)):
        separator = "," if what in ("torn", "counted") else one_of(s, ",", "\t")
        (place / f"{stem}.{'csv' if separator == ',' else 'tsv'}").write_bytes(
            text_of(s, rows, separator, blanks=False)
        )
    e, x, y = (next(place.glob(f"{stem}.*")) for stem in "exy")
    try:
        datasets.from_files(e, x, y)
    except FINE as problem:
        return None if sentence(problem) else f"{what}: {type(problem).__name__}: {problem}"
    return f"{what}: read"


def damaged(seed, place):
    """Flipped, lost, doubled and random bytes in any file: the sentence, or some data; nothing else."""
    s = scene(seed)
    edges, people, teams = tables(s)
    kind = one_of(s, "table", "table", "arrays", "graphml")
    paths = []
    if kind == "table":
        paths = [
            write_table(s, place, "e", edges),
            write_table(s, place, "x", people),
            write_table(s, place, "y", teams),
        ]
    else:
        (arrays if kind == "arrays" else graphml)(seed, place)
        paths = [next(place.glob("[eg].*")), *place.glob("x.*"), *place.glob("y.*")]
    file = paths[s.draw.integers(len(paths))]
    data = bytearray(file.read_bytes())
    for _ in range(int(s.draw.integers(1, 6))):
        spot = int(s.draw.integers(len(data)))
        how = s.draw.integers(4)
        if how == 0:
            data[spot] ^= 1 << int(s.draw.integers(8))
        elif how == 1:
            del data[spot : spot + int(s.draw.integers(1, 40))]
        elif how == 2:
            data[spot:spot] = data[spot : spot + int(s.draw.integers(1, 40))]
        else:
            data[spot:spot] = s.draw.bytes(int(s.draw.integers(1, 8)))
        data = data if data else bytearray(b"x")
    file.write_bytes(bytes(data))
    try:
        datasets.from_files(*paths)
    except FINE as problem:
        return None if sentence(problem) else f"{file.name}: {type(problem).__name__}: {problem}"
    return None


KINDS = {"faithful": faithful, "arrays": arrays, "graphml": graphml, "refused": refused, "damaged": damaged}


def judge(kind, seed, place):
    """None where all is well; else what went wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # damage may leave edges that run one way
        return KINDS[kind](seed, place)


def main(many):
    """Count the outcomes."""
    for kind in KINDS:
        found = Counter()
        for seed in range(many):
            with tempfile.TemporaryDirectory() as place:
                try:
                    said = judge(kind, seed, Path(place))
                except Exception as problem:
                    said = f"{type(problem).__name__}: {problem}"
            found["fine" if said is None else "wrong"] += 1
            if said is not None:
                print(kind, seed, said[:300])
        print(kind, dict(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))
