"""unspool denoise: signals in, the exact minimiser out, with a weight that is the best by its own rule."""

import json

import numpy as np
import pytest
import torch

import unspool as us
from cli.people import ask, cells, refuse, write_people
from unspool import datasets

#: Weights that the rules choose from, before they are scaled to the graph.
RATIOS = np.logspace(-3, 4, 71)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three noisy signals, whose nodes are listed in another order than in the edges."""
    place = write_people(tmp_path_factory.mktemp("people"))
    held = cells(place)
    rows = list(zip(held["id"], held["a"], held["b"], held["size"], strict=True))
    (place / "noisy.csv").write_text("\n".join(["id,a,b,size", *map(",".join, reversed(rows))]) + "\n")
    return place


@pytest.fixture(scope="module")
def scene(folder):
    """The signals in float64, and the dense Laplacian that belongs to the objective."""
    data = datasets.from_files(folder / "friends.csv", folder / "noisy.csv")
    plain = {"normalise": us.Normalisation.NONE, "loops": 0.0, "directed": False}
    graph = us.Graph.from_edges(data.edge_index, data.nodes, data.edge_weight, **plain).to(torch.float64)
    laplacian = graph.laplacian_times(torch.eye(60, dtype=torch.float64)).numpy()
    x = np.array([[float(text) for text in cells(folder, "noisy.csv")[name]] for name in ("a", "b", "size")]).T
    return x, laplacian, graph


def smoother(weight, laplacian):
    return weight * np.linalg.inv(weight * np.eye(60) + (1 - weight) * laplacian)


def clean(folder, out, *more):
    """The table as numbers, and what was printed as JSON."""
    options = ("--edges", folder / "friends.csv", "--features", folder / "noisy.csv", "--out", out, "--json")
    told = json.loads(ask("denoise", *options, *more))
    held = cells(out.parent, out.name)
    return np.array([[float(value) for value in held[name]] for name in held if name != "id"]).T, told, held


def test_a_weight_by_hand(folder, scene, tmp_path):
    x, laplacian, graph = scene
    found, told, held = clean(folder, tmp_path / "a.csv", "--weight", 0.2)
    assert np.allclose(found, smoother(0.2, laplacian) @ x, rtol=1e-7, atol=1e-8)
    objective = us.Fidelity(0.2) + us.Smoothness(0.8)
    assert np.allclose(found, us.minimise(objective, torch.tensor(x), graph).numpy(), rtol=1e-7, atol=1e-8)
    assert list(held) == ["id", "a", "b", "size"]
    assert held["id"] == [f"p{i}" for i in reversed(range(60))]
    assert (told["nodes"], told["signals"], told["weight"], told["noise"]) == (60, 3, 0.2, None)
    assert told["moved"] == pytest.approx(np.sqrt(np.square(found - x).mean()), rel=1e-5)


def gcv(s, x, noise):
    return np.square(x - s @ x).mean() / (1 - np.trace(s) / 60) ** 2


def sure(s, x, noise):
    return np.square(x - s @ x).mean() - noise**2 + 2 * noise**2 * np.trace(s) / 60


@pytest.mark.parametrize(
    ("options", "rule"),
    [(("--choose", "gcv"), gcv), (("--choose", "sure"), sure), (("--noise", 0.5), sure), ((), sure)],
    ids=["gcv", "sure", "known noise", "nothing said"],
)
def test_the_weight_is_the_best_by_its_rule(folder, scene, tmp_path, options, rule):
    x, laplacian, graph = scene[0][:, :2], *scene[1:]
    found, told, _ = clean(folder, tmp_path / "a.csv", "--feature-column", "a", "--feature-column", "b", *options)
    weights = 1 / (1 + RATIOS / graph.scale)
    if "--noise" in options:
        assert told["noise"] == 0.5
    elif rule is sure:
        rough = np.abs(laplacian @ laplacian @ x) / np.linalg.norm(laplacian @ laplacian, axis=1, keepdims=True)
        # The lower of the two middle values, as torch takes it.
        assert told["noise"] == pytest.approx(np.sort(rough.flatten())[rough.size // 2 - 1] / 0.6744897501960817)
    scores = [rule(smoother(weight, laplacian), x, told["noise"]) for weight in weights]
    assert told["weight"] == pytest.approx(weights[np.argmin(scores)], rel=1e-9)
    assert 0 < np.argmin(scores) < 70
    assert np.allclose(found, smoother(told["weight"], laplacian) @ x, rtol=1e-7, atol=1e-8)


def test_one_signal_alone_has_its_own_weight(folder, scene, tmp_path):
    x, laplacian, _ = scene
    _, every, _ = clean(folder, tmp_path / "a.csv")
    found, told, held = clean(folder, tmp_path / "b.csv", "--feature-column", "size")
    assert list(held) == ["id", "size"]
    assert told["weight"] != every["weight"]
    assert np.allclose(found, smoother(told["weight"], laplacian) @ x[:, 2:], rtol=1e-7, atol=1e-8)


def test_arrays_and_tables_agree(folder, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    found, _, held = clean(folder, tmp_path / "a.csv", "--weight", 0.3)
    source = ("--edges", folder / "friends.csv", "--features", folder / "noisy.csv", "--weight", 0.3)
    for ending in (".npy", ".parquet", ".tsv"):
        ask("denoise", *source, "--out", tmp_path / f"a{ending}")
    assert np.allclose(np.load(tmp_path / "a.npy"), found, rtol=1e-8)
    assert np.load(tmp_path / "a.npy").dtype == np.float64
    binary = parquet.read_table(tmp_path / "a.parquet").to_pydict()
    assert binary["id"] == held["id"]
    assert np.allclose(np.stack([binary[name] for name in ("a", "b", "size")], axis=1), found, rtol=1e-8)
    assert (tmp_path / "a.tsv").read_text().replace("\t", ",") == (tmp_path / "a.csv").read_text()
    assert len(list(tmp_path.iterdir())) == 4


def test_signals_without_names(scene, tmp_path):
    x, _, _ = scene
    ring = np.stack([np.arange(60), np.roll(np.arange(60), -1)])
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "e.npz", edge_index=ring)
    source = ("--edges", tmp_path / "e.npz", "--features", tmp_path / "x.npy")
    ask("denoise", *source, "--weight", 0.5, "--out", tmp_path / "new" / "a.csv")
    held = cells(tmp_path / "new", "a.csv")
    assert list(held) == ["id", "x0", "x1", "x2"]
    assert held["id"] == [str(i) for i in range(60)]
    graph = us.Graph.from_edges(ring, 60, directed=False, normalise=us.Normalisation.NONE, loops=0.0).to(torch.float64)
    wanted = us.minimise(us.Fidelity(0.5) + us.Smoothness(0.5), torch.tensor(x, dtype=torch.float32).double(), graph)
    assert np.allclose(np.array(held["x1"], dtype=float), wanted[:, 1].numpy(), atol=1e-6)


def test_what_a_person_reads(folder, tmp_path):
    source = ("--edges", folder / "friends.csv", "--features", folder / "noisy.csv", "--out", tmp_path / "a.csv")
    text = ask("denoise", *source, "--weight", 0.25)
    assert "minimises  0.25 ‖H − X‖²  +  0.75 ‖B H‖²   (α chosen by hand)" in text
    assert "3 signals on 60 nodes moved by" in text
    assert f"written: {tmp_path / 'a.csv'}" in text
    assert "α chosen by GCV; noise of standard deviation" in ask("denoise", *source, "--choose", "gcv")
    assert "α chosen by SURE; noise of standard deviation 0.5)" in ask("denoise", *source, "--noise", 0.5)


@pytest.mark.parametrize("name", ["tv", "slopes", "trend", "robust"])
def test_other_problems_are_those_of_the_library(folder, scene, tmp_path, name):
    x, _, graph = scene
    found, told, _ = clean(folder, tmp_path / "a.csv", "--problem", name, "--seed", 3)
    wanted = us.denoise.denoise(torch.tensor(x), graph, us.denoise.HeldOut(seed=3), problem=name)
    assert np.allclose(found, wanted.signal.numpy(), atol=1e-9)
    assert (told["problem"], told["weight"], told["filled"]) == (name, wanted.choice.weight, 0)
    by_hand, _, _ = clean(folder, tmp_path / "b.csv", "--problem", name, "--weight", 0.4)
    assert np.allclose(by_hand, us.denoise.denoise(torch.tensor(x), graph, 0.4, problem=name).signal.numpy(), atol=1e-9)


@pytest.mark.parametrize("ending", ["csv", "npy"])
def test_gaps_are_filled_if_asked(tmp_path, ending):
    values = [1.0, np.nan, 3.0, np.nan]
    where = list(own(tmp_path, "id,t", [(v,) for v in values]))
    text = (tmp_path / "x.csv").read_text()
    (tmp_path / "x.csv").write_text(text.replace("b,nan", "b,"))
    if ending == "npy":
        np.save(tmp_path / "x.npy", np.array(values)[:, None])
        (tmp_path / "e.csv").write_text("source,target\n0,1\n1,2\n2,3\n3,0\n")
        where[where.index(tmp_path / "x.csv")] = tmp_path / "x.npy"
    ask(*where, "--weight", 0.999999, code=1)
    said = ask(*where, "--weight", 0.999999, "--fill")
    assert "2 missing values filled in" in said
    found = np.array(next(v for k, v in cells(tmp_path, "o.csv").items() if k != "id"), dtype=float)
    assert np.allclose(found, [1, 2, 3, 2], atol=1e-4)
    told = json.loads(ask(*where, "--fill", "--json"))
    assert told["filled"] == 2


def test_gaps_are_named_as_in_the_table_with_the_way_out(tmp_path):
    where = own(tmp_path, "id,t,u", [(1.0, 2.0), (np.nan, 2.5), (np.nan, 2.0), (1.0, 1.0)])
    text = refuse(*where)
    assert "x.csv: column 't' has no value at node b, and 1 more are missing; --fill fills them in" in text
    with (tmp_path / "x.csv").open("a") as table:
        table.write("lonely,1.0,\n")
    text = refuse(*where, "--fill")
    assert "column 'u' of the signal has no value at node lonely, which has no neighbours, so" in text
    assert not (tmp_path / "o.csv").exists()


def test_bad_signals_leave_the_old_table(folder, tmp_path):
    out = tmp_path / "a.csv"
    out.write_text("old\n")
    source = ("--edges", folder / "friends.csv", "--features", folder / "people.csv", "--out", out)
    ask("denoise", *source, code=1)  # the teams are not numbers
    assert out.read_text() == "old\n"
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def own(place, header, rows):
    """A ring of four nodes with signals of their own, and where the result goes."""
    (place / "e.csv").write_text("source,target\na,b\nb,c\nc,d\nd,a\n")
    lines = [header, *(",".join([name, *map(repr, row)]) for name, row in zip("abcd", rows, strict=True))]
    (place / "x.csv").write_text("\n".join(lines) + "\n")
    return ("denoise", "--edges", place / "e.csv", "--features", place / "x.csv", "--out", place / "o.csv")


def test_a_signal_called_id_and_the_names_of_the_nodes_both_stay(tmp_path):
    ask(
        *own(tmp_path, "key,id,t", [(1.5, 2.0), (1.0, 2.5), (0.5, 2.0), (1.0, 1.0)]),
        "--id-column",
        "key",
        "--weight",
        0.999999,
    )
    held = cells(tmp_path, "o.csv")
    assert list(held) == ["key", "id", "t"]
    assert held["key"] == ["a", "b", "c", "d"]
    assert [round(float(v), 1) for v in held["id"]] == [1.5, 1.0, 0.5, 1.0]


@pytest.mark.parametrize("ending", ["csv", "tsv", "npy", "parquet"])
def test_signals_come_back_with_all_their_digits(tmp_path, ending):
    """A constant is its own minimiser, whatever the weight."""
    pytest.importorskip("pyarrow")
    value = 16777217.123456789
    ask(*own(tmp_path, "id,t", [(value,)] * 4), "--weight", 0.5, "--out", tmp_path / f"o.{ending}")
    if ending == "npy":
        found = np.load(tmp_path / "o.npy")[:, 0]
    elif ending == "parquet":
        found = datasets.tables.read_table(tmp_path / "o.parquet").numbers(1)
    else:
        found = [
            float(line.split("," if ending == "csv" else "\t")[1])
            for line in (tmp_path / f"o.{ending}").read_text().splitlines()[1:]
        ]
    assert np.allclose(found, value, rtol=1e-14, atol=0)


def test_a_missed_tolerance_is_a_note_and_no_python_warning(tmp_path):
    edges = "\n".join(f"{i},{i + 1}" for i in range(999))
    (tmp_path / "edges.csv").write_text("source,target\n" + edges + "\n")
    (tmp_path / "x.csv").write_text("t\n" + "\n".join(str(1 + i % 7) for i in range(1000)) + "\n")
    where = ("--edges", tmp_path / "edges.csv", "--features", tmp_path / "x.csv", "--out", tmp_path / "out.csv")
    told = json.loads(ask("denoise", *where, "--weight", 1e-9, "--json"))  # a warning would be an error here
    assert told["residual"] > 1e-10
    assert told["iterations"] > 100
    assert any("tolerance" in note for note in told["notes"])


def test_constants_survive_unless_models_say_otherwise(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n" + "".join(f"s0,s{i}\n" for i in range(1, 9)) + "s1,s2\n")
    (tmp_path / "x.csv").write_text("id,t\n" + "".join(f"s{i},20\n" for i in range(9)))
    words = ("denoise", "--edges", tmp_path / "e.csv", "--features", tmp_path / "x.csv", "--weight", "0.1")
    ask(*words, "--out", tmp_path / "a.csv")
    ask(*words, "--out", tmp_path / "b.csv", "--normalise", "symmetric")
    plain, bent = (np.array(cells(tmp_path, name)["t"], dtype=float) for name in ("a.csv", "b.csv"))
    assert np.allclose(plain, 20)
    assert not np.allclose(bent, 20, atol=0.1)


@pytest.mark.parametrize("option", ["--weight", "--noise"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", "-1", "0"])
def test_numbers_that_cannot_be_meant_are_refused_before_the_work(folder, tmp_path, option, value):
    source = ("--edges", folder / "friends.csv", "--features", folder / "noisy.csv", "--out", tmp_path / "a.csv")
    text = ask("denoise", *source, f"{option}={value}", code=2)
    assert f"Invalid value for '{option}'" in text
    assert not (tmp_path / "a.csv").exists()
