"""What is found in data, against what was put there."""

import numpy as np
import pytest
import torch

from unspool import datasets
from unspool.datasets.checking import Kind, Severity, check, check_files
from unspool.datasets.checking.measures import graph_facts, label_facts, split_facts
from unspool.datasets.split import Split

NODES = 60


def kinds(found):
    return [finding.kind for finding in found.findings]


def tables(place, edges=None, more=None, drop=(), rows=NODES):
    """A ring of nodes with two honest features and a label that neither gives away; ``more`` columns by name."""
    draw = np.random.default_rng(0)
    held = {
        "id": [f"n{i}" for i in range(rows)],
        "age": draw.integers(20, 60, rows).tolist(),
        "bill": draw.normal(size=rows).round(4).tolist(),
        "label": [("yes", "no")[int(v)] for v in draw.integers(0, 2, rows)],
        **(more or {}),
    }
    held = {name: column for name, column in held.items() if name not in drop}
    lines = [",".join(held), *(",".join(map(str, row)) for row in zip(*held.values(), strict=True))]
    (place / "x.csv").write_text("\n".join(lines) + "\n")
    both = (
        [(f"n{i}", f"n{(i + step) % rows}") for i in range(rows) for step in (1, rows - 1)] if edges is None else edges
    )
    (place / "e.csv").write_text("\n".join(["source,target", *(f"{a},{b}" for a, b in both)]) + "\n")
    return place / "e.csv", place / "x.csv"


def test_nothing_is_found_in_sound_files(tmp_path):
    found = check_files(*tables(tmp_path), label_column="label")
    assert [k for k in kinds(found) if k is not Kind.NOT_ALIKE] == []
    assert found.ready
    assert (found.drop_columns, found.one_hot, found.data.features) == ((), (), 2)


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_the_graph_is_counted_as_networkx_counts_it():
    import networkx

    network = networkx.gnm_random_graph(80, 60, seed=3)
    index = torch.tensor(list(network.edges())).T
    extra = torch.tensor([[5], [5]])
    found = graph_facts(
        datasets.from_tensors(torch.cat([index, index.flip(0)[:, :7], extra], 1), nodes=80, directed=False)
    )
    parts = [len(part) for part in networkx.connected_components(network)]
    assert (found.components, found.largest) == (len(parts), max(parts))
    assert found.isolated == sum(degree == 0 for _, degree in network.degree())
    assert (found.edges, found.listed, found.one_way, found.loops) == (60, 68, 60 - 7, 1)


def test_homophily_and_its_chance_level():
    """The level is what shuffled ends give."""
    data = datasets.contextual_sbm(nodes=400, classes=3, seed=0)
    found = label_facts(data)
    ends = data.labels[datasets.components.distinct_edges(data.edge_index.numpy(), 400)]
    assert found.homophily == pytest.approx(float((ends[0] == ends[1]).double().mean()))
    draw, flat = np.random.default_rng(0), ends.numpy().ravel()
    shuffled = [np.mean(np.equal(*draw.permutation(flat).reshape(2, -1))) for _ in range(300)]
    assert found.chance == pytest.approx(np.mean(shuffled), abs=0.003)
    assert found.counts == tuple(data.labels.bincount().tolist())


def test_rows_shared_by_train_and_test():
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    x[30:34] = x[:4]
    x[34:36] = 0
    x[4:6] = 0  # equal, and telling nothing
    x[36], x[6] = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 3.0])  # equal, perhaps by chance
    split = Split(range(20), range(20, 30), range(30, 40), 40)
    data = datasets.from_tensors([[0], [1]], x, torch.arange(40) % 2, directed=False, split=split)
    assert split_facts(data).shared_rows == 4
    assert Kind.SHARED_ROWS in kinds(check(data))


# -- columns -----------------------------------------------------------------------------------------------------------

YES = np.random.default_rng(0)
YES.integers(20, 60, NODES)
YES.normal(size=NODES)
LABELS = YES.integers(0, 2, NODES)  # as in tables


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([("left", "stays")[v] for v in LABELS], Kind.LEAK),
        ((LABELS * 5.0 + 0.25).tolist(), Kind.LEAK),
        ((LABELS * 5.0 + np.linspace(0.1, 1, NODES)).tolist(), Kind.LEAK),
        ([7] * NODES, Kind.CONSTANT),
        (range(1000, 1000 + NODES), Kind.ID),
        (["a", "b", "c"] * (NODES // 3), Kind.TEXT),
        ([f"word {i}" for i in range(NODES)], Kind.TEXT),
        ([1.5] * 30 + ["?"] + [2.5] * 29, Kind.MISSING),
        ([1.5] * 30 + ["n/a"] + [2.5] * 29, Kind.MISSING),
        ([""] * NODES, Kind.MISSING),
        ([1.5] * 30 + ["12o"] + [2.5] * 29, Kind.BROKEN_NUMBERS),
        ([1.5] * 30 + ["inf"] + [2.5] * 29, Kind.BROKEN_NUMBERS),
        ([1.5] * 30 + ["1e39"] + [2.5] * 29, Kind.BROKEN_NUMBERS),
    ],
    ids=[
        "text leak",
        "few values",
        "interval",
        "constant",
        "id",
        "categories",
        "words",
        "?",
        "n/a",
        "empty",
        "stray",
        "infinite",
        "too large",
    ],
)
def test_a_bad_column_is_found_and_kept_out_of_the_advice(tmp_path, column, kind):
    edges, people = tables(tmp_path, more={"extra": list(column)})
    found = check_files(edges, people, label_column="label")
    (one,) = [finding for finding in found.findings if finding.about == "extra"]
    assert one.kind is kind
    assert found.ready
    encoded = kind is Kind.TEXT and found.one_hot == ("extra",)
    assert encoded or "extra" in found.drop_columns
    how = {
        "drop_columns": found.drop_columns,
        "one_hot": found.one_hot,
        "directed": False,
        "label_column": found.label_column,
    }
    assert datasets.from_files(edges, people, **how).features.shape[1] == found.data.features


def test_honest_columns_are_no_leaks(tmp_path):
    """Numbers that are all different, and few values that go with the label most of the time."""
    almost = [str(v if i else 1 - v) for i, v in enumerate(LABELS)]
    noise = np.random.default_rng(5).normal(size=NODES).tolist()
    found = check_files(*tables(tmp_path, more={"almost": almost, "noise": noise}), label_column="label")
    assert Kind.LEAK not in kinds(found)


def test_numbers_to_predict_that_are_given_away(tmp_path):
    price = np.random.default_rng(1).normal(size=NODES).round(3)
    more = {"price": price.tolist(), "cents": (100 * price + 3).round(1).tolist()}
    found = check_files(*tables(tmp_path, more=more, drop=("label",)), target_columns=["price"])
    assert [f.about for f in found.findings if f.kind is Kind.LEAK] == ["cents"]
    (target,) = found.data.targets
    assert (target.name, target.missing) == ("price", 0)
    assert target.mean == pytest.approx(price.mean(), rel=1e-5)


def test_the_last_feature_stays(tmp_path):
    edges, people = tables(tmp_path, more={"one": [7] * NODES}, drop=("age", "bill"))
    found = check_files(edges, people, label_column="label")
    assert found.drop_columns == ()
    assert found.ready


# -- files -------------------------------------------------------------------------------------------------------------


def test_everything_is_found_at_once(tmp_path):
    """The text, the gap, the edge to nowhere, the repeated edge and the loop: one look."""
    edges = [("n0", "n1"), ("n0", "n1"), ("n2", "n2"), ("n3", "ghost"), ("n4", "n5"), ("spirit", "ghost")]
    more = {"plan": ["pro", "basic"] * (NODES // 2), "gap": ["", *([1.5] * (NODES - 2)), 2.5]}
    found = check_files(*tables(tmp_path, edges, more), label_column="label")
    assert {
        Kind.TEXT,
        Kind.MISSING,
        Kind.UNKNOWN_ENDS,
        Kind.REPEATED_EDGES,
        Kind.LOOPS,
        Kind.ISOLATED,
        Kind.ONE_WAY,
    } <= set(kinds(found))
    ends = next(f for f in found.findings if f.kind is Kind.UNKNOWN_ENDS)
    assert (ends.count, ends.of, ends.examples) == (2, 6, ("ghost", "spirit"))
    assert not found.ready
    assert found.findings[0].severity is Severity.ERROR
    assert found.data.graph.isolated == NODES - 4


def test_words_that_are_read_as_no_label_are_counted(tmp_path):
    """A class that is called none would otherwise vanish without a word."""
    files = tables(tmp_path, more={"illness": ["none" if i % 3 else "flu" for i in range(NODES)]}, drop=("label",))
    found = check_files(*files, label_column="illness")
    (one,) = [f for f in found.findings if f.kind is Kind.BLANK_WORD]
    assert (one.about, one.count, one.of, one.examples) == ("illness", 40, NODES, ("none",))


def test_a_header_that_was_read_as_an_edge_and_ids_that_were_not_named(tmp_path):
    edges, people = tables(tmp_path)
    people.write_text(people.read_text().replace("id,", "person,", 1))
    (one,) = [f for f in check_files(edges, people, label_column="label").findings if f.kind is Kind.UNKNOWN_ENDS]
    assert (one.count, one.of) == (2 * NODES, 2 * NODES)
    assert "id_column=person" in str(one)
    edges.write_text(edges.read_text().replace("source,target", "caller,callee", 1))
    found = check_files(edges, people, label_column="label", id_column="person")
    (one,) = [f for f in found.findings if f.kind is Kind.UNKNOWN_ENDS]
    assert (one.count, one.examples) == (1, ("caller", "callee"))
    assert "edge_columns" in str(one)
    assert check_files(edges, people, label_column="label", id_column="person", edge_columns=["caller", "callee"]).ready


def test_repeated_ids(tmp_path):
    edges, people = tables(tmp_path)
    text = people.read_text()
    people.write_text(text + text.splitlines()[1] + "\n" + text.splitlines()[2] + "\n")
    found = check_files(edges, people, label_column="label")
    (one,) = [f for f in found.findings if f.kind is Kind.REPEATED_IDS]
    assert (one.count, one.examples) == (2, ("n0", "n1"))
    assert not found.ready


def test_classes_that_are_rare_or_common(tmp_path):
    rare = ["odd", "odd", *(["usual"] * 50), *(["other"] * 8)]
    found = check_files(*tables(tmp_path, more={"kind": rare}, drop=("label",)), label_column="kind")
    first, second = found.findings[:2]
    assert (first.kind, first.count, first.examples) == (Kind.RARE_CLASS, 1, ("odd",))
    assert (second.kind, second.about) == (Kind.UNBALANCED, "usual")
    assert not found.ready


def test_a_split_from_the_file(tmp_path):
    part = ["train"] * 20 + ["valid"] * 20 + ["test"] * 20
    kind = ["a"] * 20 + ["a", "b"] * 20
    found = check_files(
        *tables(tmp_path, more={"part": part, "kind": kind}, drop=("label",)), label_column="kind", split_column="part"
    )
    assert (found.data.split.train, found.data.split.valid, found.data.split.test) == (20, 20, 20)
    assert [f.examples for f in found.findings if f.kind is Kind.UNTRAINED_CLASS] == [("b",)]


def test_without_a_label_candidates_are_named(tmp_path):
    found = check_files(*tables(tmp_path, more={"team": ["red", "blue"] * 30}, drop=("label",)))
    (one,) = [f for f in found.findings if f.kind is Kind.NO_ANSWER]
    assert "team" in one.examples
    guessed = check_files(*tables(tmp_path))
    assert guessed.label_column == "label"
    assert Kind.GUESSED_LABEL in kinds(guessed)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("x.csv", b""), ("x.csv", b"id,a\n"), ("x.csv", b"id,a\nn0,1,2\n"), ("x.csv", b"\xff\xfe\x00"), ("x.csv", b"id;a;label\nn0;1;x\n"),
        ("e.csv", b""), ("e.csv", b"source;target\nn0;n1\n"), ("e.csv", b"source,target\nn0,\n"), ("x.csv", b'id,a\n"n0,1\n'),
        ("x.csv", b"id,a,a\nn0,1,2\nn1,2,3\n"), ("x.csv", b"id,label\n" + b"".join(b"n%d,x\n" % i for i in range(NODES))),
        ("x.csv", b"id,a,label\n" + b"".join(b"n%d,%d,x\n" % (i, 10**400 if i else 1) for i in range(NODES))),
    ],
)  # fmt: skip
def test_bad_files_are_findings_and_no_tracebacks(tmp_path, file, content):
    edges, people = tables(tmp_path)
    (tmp_path / file).write_bytes(content)
    found = check_files(edges, people, label_column="label")
    assert not found.ready
    assert all("\n" not in str(finding) for finding in found.findings)


def test_a_column_that_is_not_there_is_a_finding(tmp_path):
    for how in (
        {"id_column": "nope"},
        {"label_column": "nope"},
        {"split_column": "nope", "label_column": "label"},
        {"drop_columns": ["nope"]},
    ):
        found = check_files(*tables(tmp_path), **how)
        assert not found.ready
        assert "nope" in str(found.findings[0])


def test_missing_files_are_both_named(tmp_path):
    found = check_files(tmp_path / "no.csv", tmp_path / "none.csv")
    assert kinds(found) == [Kind.UNREADABLE, Kind.UNREADABLE]


def test_labels_of_their_own_and_a_wrong_separator(tmp_path):
    edges, people = tables(tmp_path, drop=("label",))
    (tmp_path / "y.csv").write_text("id,kind\n" + "".join(f"n{i},{'ab'[i % 2]}\n" for i in range(NODES)))
    found = check_files(edges, people, tmp_path / "y.csv")
    assert found.ready
    assert {(c.file, c.name): c.role.name for c in found.columns}["y.csv", "kind"] == "LABEL"
    people.write_text(people.read_text().replace(",", ";"))
    wrong = check_files(edges, people, label_column="label")
    assert "is the separator right?" in str(wrong.findings[0])


def test_a_direction_that_was_said_is_not_remarked(tmp_path):
    import networkx

    files = tables(tmp_path, edges=[(f"n{i}", f"n{i + 1}") for i in range(NODES - 1)])
    for directed, remarked in ((None, True), (True, False), (False, False)):
        found = check_files(*files, label_column="label", directed=directed)
        assert (Kind.ONE_WAY in kinds(found)) is remarked
        assert found.data.graph.one_way == NODES - 1
    networkx.write_graphml(networkx.karate_club_graph(), tmp_path / "k.graphml")  # which calls itself undirected
    assert Kind.ONE_WAY not in kinds(check_files(tmp_path / "k.graphml", label_column="club"))


def test_parquet_flags_are_numbers(tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    edges, _ = tables(tmp_path)
    draw = np.random.default_rng(3)
    held = {"id": [f"n{i}" for i in range(NODES)], "flag": draw.random(NODES) < 0.5, "label": LABELS.astype(str)}
    pyarrow.parquet.write_table(pyarrow.table(held), tmp_path / "x.parquet")
    found = check_files(edges, tmp_path / "x.parquet")
    assert found.ready
    assert found.one_hot == ()
    assert {column.name: column.kind.name for column in found.columns}["flag"] == "WHOLE"


def test_arrays_and_whole_files(tmp_path):
    data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    np.savez(tmp_path / "e.npz", edge_index=data.edge_index.numpy())
    x = data.features if isinstance(data.features, torch.Tensor) else data.features.to_dense()
    np.save(tmp_path / "x.npy", x.numpy())
    np.save(tmp_path / "y.npy", data.labels.numpy())
    found = check_files(tmp_path / "e.npz", tmp_path / "x.npy", tmp_path / "y.npy")
    assert found.ready
    assert found.data.labels.counts == tuple(data.labels.bincount().tolist())
    torch.save({"edge_index": data.edge_index, "x": x, "y": data.labels}, tmp_path / "d.pt")
    whole = check_files(tmp_path / "d.pt")
    assert whole.ready
    assert whole.data.labels == found.data.labels


@pytest.mark.parametrize("kind", list(Kind))
def test_every_finding_has_a_sentence_in_plain_english(kind):
    from unspool.datasets.checking.finding import Finding

    said = str(Finding(kind, about="x", count=3, of=9, share=0.5, examples=("a", "b"), said="the file is empty"))
    assert len(said) > 15
    assert "\n" not in said
    assert " is no " not in said


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_years_beside_words_are_remarked(layout):
    """Years vary by some units, and hide words of 0 and 1 all the same; rare words alone are as they should be."""
    draw = np.random.default_rng(0)
    words = (draw.random((400, 30)) < 0.02).astype(np.float32)
    words[0] = 1
    years = draw.integers(2000, 2020, 400).astype(np.float32)
    for rows, found in ((np.column_stack([years, words]), ["year"]), (np.column_stack([words[:, 0], words]), [])):
        x = torch.as_tensor(rows)
        names = ["year", *(f"word {i}" for i in range(30))]
        data = datasets.from_tensors(
            [[0], [1]], x if layout == "dense" else x.to_sparse(), feature_names=names, directed=False
        )
        assert [one.about for one in check(data).findings if one.kind is Kind.SCALES] == found
