"""--drop-column, --one-hot, --edge-columns, --weight-column and --name through every door: the card keeps them, and new files are read alike."""

import networkx
import pytest
import torch

from cli.people import ask, card, refuse, train, write_people
from unspool import datasets
from unspool.models.pretrained import load_with_card
from unspool.study import Study

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::unspool.graph.EdgeDirectionWarning")]

HOW = {"drop_columns": ["price", "vip"], "one_hot": ["part"], "label_column": "team", "weight_column": "calls"}
TYPED = [
    "--drop-column",
    "price",
    "--drop-column",
    "vip",
    "--one-hot",
    "part",
    "--label-column",
    "team",
    "--weight-column",
    "calls",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = write_people(tmp_path_factory.mktemp("people"))
    lines = (place / "friends.csv").read_text().splitlines()
    text = [f"{lines[0]},calls,since", *(f"{line},{1 + i % 5},{2000 + i % 7}" for i, line in enumerate(lines[1:]))]
    (place / "friends.csv").write_text("\n".join(text) + "\n")
    return place


def files(folder, people="people.csv"):
    return ["--edges", folder / "friends.csv", "--features", folder / people]


@pytest.fixture(scope="module")
def trained(folder):
    train(folder / "out", *files(folder), *TYPED, "--name", "my people")
    return folder / "out"


def test_the_card_keeps_them(folder, trained):
    data, told = datasets.from_files(folder / "friends.csv", folder / "people.csv", **HOW), card(trained)["data"]
    assert told["hash"] == data.hash
    assert told["name"] == "my people"
    assert told["features"] == ["a", "b", "c", "size", "part=test", "part=train", "part=valid"]
    assert told["categories"] == {"part": ["test", "train", "valid"]}
    assert told["source"]["weight_column"] == "calls"
    assert any(note.endswith("not used: since") for note in told["notes"])


def test_all_doors_give_the_same_numbers(folder, trained, tmp_path):
    small = ["--epochs", 15, "--setting", "hidden=8", "--seeds", 1, "--quiet"]
    ask("study", "run", "GCN", *files(folder), *TYPED, *small, "--out", tmp_path / "s.db")
    (row,) = Study.open(tmp_path / "s.db").rows
    assert row.result.valid_loss == pytest.approx(card(trained)["metrics"]["valid_loss"], rel=1e-6)
    ask("study", "model", tmp_path / "s.db", "1", "--out", tmp_path / "again")
    assert load_with_card(tmp_path / "again")[1]["data"]["categories"] == {"part": ["test", "train", "valid"]}


def test_new_files_are_read_with_the_categories_of_training(folder, trained, tmp_path):
    """One of the categories does not occur in them, and the columns stand in another order."""
    rows = [line.split(",") for line in (folder / "people.csv").read_text().splitlines()]
    order = [8, 0, 3, 1, 2, 4, 5, 6, 7]
    text = [",".join(row[i] if row[i] != "valid" else "test" for i in order) for row in rows]
    (folder / "new.csv").write_text("\n".join(text) + "\n")
    ask("predict", trained / "seed0", *files(folder, "new.csv"), "--out", tmp_path / "new.csv")
    how = {
        **HOW,
        "drop_columns": [],
        "feature_columns": ["a", "b", "c", "size", "part"],
        "one_hot": {"part": ["test", "train", "valid"]},
    }
    data = datasets.from_files(folder / "friends.csv", folder / "new.csv", **how)
    model = load_with_card(trained / "seed0")[0]
    with torch.no_grad():
        best = model(data.features, data.graph).argmax(1)
    said = [line.split(",")[1] for line in (tmp_path / "new.csv").read_text().splitlines()[1:]]
    assert said == [data.classes[int(k)] for k in best]
    ask("predict", trained / "seed0", "--out", tmp_path / "same.csv")
    ask("predict", trained / "seed0", *files(folder), "--out", tmp_path / "again.csv")
    assert (tmp_path / "same.csv").read_text() == (tmp_path / "again.csv").read_text()
    ask("explain", trained / "seed0", "--node", "p3", *files(folder))


def named(*columns):
    return [word for column in columns for word in ("--feature-column", column)]


def test_columns_are_taken_in_the_order_of_training(folder, trained, tmp_path):
    """However they are listed: the weights of the first layer know them by their place."""
    ask("predict", trained / "seed0", "--out", tmp_path / "a.csv")
    other = named("part", "size", "c", "a", "b")
    ask("predict", trained / "seed0", *files(folder), *other, "--out", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    moved = named("b", "price", "c", "size", "part")
    said = refuse("predict", trained / "seed0", *files(folder), *moved, "--out", tmp_path / "c.csv")
    assert "--feature-column b" in said
    (folder / "called.csv").write_text((folder / "people.csv").read_text().replace(",a,", ",age,", 1))
    renamed = [*files(folder, "called.csv"), *named("age", "b", "c", "size", "part")]
    ask("predict", trained / "seed0", *renamed, "--out", tmp_path / "c.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "c.csv").read_text()


def test_attributes_of_graphml_are_found_by_name(tmp_path):
    graph = networkx.cycle_graph(12)
    for node in graph:
        graph.nodes[node].update(a=float(node), b=float(node % 3), team="xy"[node % 2])
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    source = ["--edges", tmp_path / "g.graphml"]
    train(tmp_path / "out", *source, *named("b", "a"), "--label-column", "team")
    ask("predict", tmp_path / "out", "--out", tmp_path / "a.csv")
    ask("predict", tmp_path / "out", *source, "--out", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_an_unknown_category_is_refused(folder, trained, tmp_path):
    (folder / "odd.csv").write_text((folder / "people.csv").read_text().replace(",valid\n", ",later\n"))
    said = refuse("predict", trained / "seed0", *files(folder, "odd.csv"), "--out", tmp_path / "p.csv")
    assert "column 'part'" in said
    assert "'later'" in said
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--drop-column", "nope", "--feature-column", "a"), "--drop-column nope: "),
        (("--drop-column", "team"), "--drop-column team: "),
        (("--one-hot", "nope"), "has no column 'nope'"),
        (("--weight-column", "nope"), "has no column 'nope'"),
        (("--one-hot", "team"), "--one-hot team: "),
    ],
)
def test_what_cannot_be(folder, tmp_path, more, words):
    said = refuse("train", "GCN", *files(folder), "--label-column", "team", *more, "--out", tmp_path)
    assert words in said


@pytest.mark.parametrize("option", ["--drop-column", "--one-hot", "--weight-column", "--name"])
def test_they_belong_to_files(tmp_path, option):
    said = refuse("train", "--dataset", "citeseer", option, "x", "--out", tmp_path)
    assert said == f"{option} belongs to your own files; name the graph with --edges"


def test_denoise_leaves_columns_out(folder, tmp_path):
    out = tmp_path / "d.csv"
    more = [word for name in ("team", "price", "vip", "part") for word in ("--drop-column", name)]
    said = ask("denoise", *files(folder), *more, "--weight", 0.3, "--out", out)
    assert out.read_text().splitlines()[0] == "id,a,b,c,size"
    assert "not used: calls, since" in said


def test_a_large_mean_is_said_by_denoise(folder, tmp_path):
    lines = ["id,v", *(f"p{i},{1000 + i % 3}" for i in range(60))]
    (tmp_path / "v.csv").write_text("\n".join(lines) + "\n")
    named = [
        "--edges",
        folder / "friends.csv",
        "--features",
        tmp_path / "v.csv",
        "--weight",
        0.3,
        "--out",
        tmp_path / "o.csv",
    ]
    assert "bends the mean" in ask("denoise", *named, "--normalise", "symmetric")
    assert "bends the mean" not in ask("denoise", *named)


def test_edges_with_other_names_of_columns(folder, trained, tmp_path):
    lines = (folder / "friends.csv").read_text().splitlines()
    other = tmp_path / "calls.csv"
    other.write_text(
        "\n".join(
            [
                "since,caller,calls,callee",
                *(f"{d},{a},{c},{b}" for a, b, c, d in (line.split(",") for line in lines[1:])),
            ]
        )
    )
    people = ["--features", folder / "people.csv"]
    train(tmp_path / "out", "--edges", other, *people, *TYPED, "--edge-columns", "caller, callee")
    told = card(tmp_path / "out")
    assert told["data"]["hash"] == card(trained)["data"]["hash"]
    assert told["data"]["source"]["edge_columns"] == ["caller", "callee"]
    assert told["metrics"]["test_score"] == card(trained)["metrics"]["test_score"]
    ask("predict", tmp_path / "out", "--edges", other, *people, "--out", tmp_path / "p.csv")  # the model remembers them
    assert "--edge-columns" in refuse("train", "--edges", other, *people, *TYPED)
