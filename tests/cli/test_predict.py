"""unspool predict: what the table says is what the model says, whichever way the data come."""

import csv
import json

import numpy as np
import pytest
import torch

from cli.people import ask, cells, own, refuse, train, write_people
from unspool import datasets
from unspool.models import SGC
from unspool.models.pretrained import load_with_card, save_pretrained

pytestmark = pytest.mark.long


#: The options of each kind of training, and how it is called.
KINDS = {
    "classes": ("--label-column", "team"),
    "numbers": ("--target-column", "price", "--target-column", "size"),
    "binary": ("--label-column", "vip", "--loss", "binary"),
    "ranking": ("--target-column", "price", "--loss", "ranking"),
    "links": ("--loss", "links"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The people, and two seeds of a small GCN for each kind of loss."""
    place = write_people(tmp_path_factory.mktemp("people"))
    for kind, options in KINDS.items():
        train(place / kind, *own(place, *options), "--seeds", 2, epochs=60)
    return place


@pytest.fixture(scope="module")
def data(folder):
    return datasets.from_files(folder / "friends.csv", folder / "people.csv", feature_columns=["a", "b", "c"])


def outputs(place, data):
    """What the model of a folder says, in float64."""
    model, card = load_with_card(place)
    with torch.no_grad():
        return model(data.features, data.graph).double(), card


def table(path):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))
    return {name: [row[name] for row in rows] for name in rows[0]}


def numbers(held, *names):
    return np.array([[float(value) for value in held[name]] for name in names]).T


def predict(checkpoint, out, *more):
    """The table, and what was printed as JSON."""
    told = json.loads(ask("predict", checkpoint, "--out", out, "--json", *more).splitlines()[-1])
    return table(out), told


# -- what is written ---------------------------------------------------------------------------------------------------

TEAMS = ("p_blue", "p_green", "p_red")


def test_probabilities_are_those_of_the_model(folder, data, tmp_path):
    found, told = predict(folder / "classes" / "seed1", tmp_path / "a.csv")
    wanted = outputs(folder / "classes" / "seed1", data)[0].softmax(1).numpy()
    assert list(found) == ["id", "prediction", *TEAMS]
    assert found["id"] == cells(folder)["id"]
    assert np.allclose(numbers(found, *TEAMS), wanted, atol=1e-6)
    assert found["prediction"] == [("blue", "green", "red")[best] for best in wanted.argmax(1)]
    truth = cells(folder)["team"]
    right = [a == b for a, b in zip(found["prediction"], truth, strict=True) if b]
    assert told["accuracy_on_known"] == pytest.approx(np.mean(right))
    assert (told["nodes"], told["models"]) == (60, 1)


def test_a_folder_of_seeds_gives_the_mean(folder, data, tmp_path):
    found, told = predict(folder / "classes", tmp_path / "a.csv")
    each = [outputs(folder / "classes" / f"seed{seed}", data)[0].softmax(1).numpy() for seed in (0, 1)]
    assert not np.allclose(*each, atol=1e-3)
    assert np.allclose(numbers(found, *TEAMS), np.mean(each, axis=0), atol=1e-6)
    assert told["models"] == 2
    assert "averaged over 2 seeds" in ask("predict", folder / "classes", "--out", tmp_path / "b.csv")


def test_numbers_come_back_in_their_own_units(folder, data, tmp_path):
    found, _ = predict(folder / "numbers", tmp_path / "a.csv")
    names = ("predicted_price", "predicted_size")
    each = []
    for seed in (0, 1):
        output, card = outputs(folder / "numbers" / f"seed{seed}", data)
        each.append(output.numpy() * card["task"]["scale"] + card["task"]["centre"])
    assert np.allclose(numbers(found, *names), np.mean(each, axis=0), rtol=1e-5, atol=1e-5)
    for name in ("price", "size"):
        known = [i for i, text in enumerate(cells(folder)[name]) if text]
        truth = numbers({name: [cells(folder)[name][i] for i in known]}, name)[:, 0]
        miss = np.square(numbers(found, f"predicted_{name}")[known, 0] - truth).sum()
        assert 1 - miss / np.square(truth - truth.mean()).sum() > 0.5


def test_yes_and_no(folder, data, tmp_path):
    found, _ = predict(folder / "binary" / "seed0", tmp_path / "a.csv")
    output, card = outputs(folder / "binary" / "seed0", data)
    chance = torch.sigmoid(output[:, 0] / card["evaluation"]["calibration"]["temperature"]).numpy()
    assert np.allclose(numbers(found, "p_yes")[:, 0], chance, atol=1e-6)
    assert found["prediction"] == ["yes" if share > 0.5 else "no" for share in chance]
    assert set(found["prediction"]) == {"yes", "no"}


def test_ranks_count_from_the_best(folder, data, tmp_path):
    found, _ = predict(folder / "ranking" / "seed0", tmp_path / "a.csv")
    score = outputs(folder / "ranking" / "seed0", data)[0][:, 0].numpy()
    assert np.allclose(numbers(found, "score")[:, 0], score, atol=1e-6)
    assert [int(rank) for rank in found["rank"]] == [1 + int((score > value).sum()) for value in score]


def test_all_kinds_of_tables_agree(folder, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = [predict(folder / "classes", tmp_path / f"a{ending}")[0] for ending in (".csv", ".tsv")]
    assert texts[0] == texts[1]
    ask("predict", folder / "classes", "--out", tmp_path / "a.parquet")
    binary = parquet.read_table(tmp_path / "a.parquet").to_pydict()
    assert list(binary) == list(texts[0])
    assert binary["prediction"] == texts[0]["prediction"]
    assert np.allclose(numbers(binary, *TEAMS), numbers(texts[0], *TEAMS), rtol=1e-8)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "a.parquet", "a.tsv"]


# -- which data --------------------------------------------------------------------------------------------------------


def write_columns(folder, name, columns):
    held = cells(folder)
    rows = zip(*(held[column] for column in columns), strict=True)
    (folder / name).write_text("\n".join([",".join(columns), *map(",".join, rows)]) + "\n")
    return folder / name


@pytest.mark.parametrize(
    "columns",
    [("id", "c", "a", "b"), ("vip", "b", "c", "id", "size", "a"), ("id", "a", "b", "c")],
    ids=["permuted", "among others", "without labels"],
)
def test_columns_are_found_by_name(folder, tmp_path, columns):
    file = write_columns(folder, "other.csv", columns)
    whole, _ = predict(folder / "classes", tmp_path / "a.csv")
    found, told = predict(folder / "classes", tmp_path / "b.csv", "--edges", folder / "friends.csv", "--features", file)
    assert found == whole
    assert "accuracy_on_known" not in told


def test_rows_in_another_order_name_the_same_nodes(folder, tmp_path):
    head, *rows = (folder / "people.csv").read_text().splitlines()
    (folder / "turned.csv").write_text("\n".join([head, *reversed(rows)]) + "\n")
    whole, _ = predict(folder / "numbers", tmp_path / "a.csv")
    source = ("--edges", folder / "friends.csv", "--features", folder / "turned.csv")
    found, _ = predict(folder / "numbers", tmp_path / "b.csv", *source)
    assert found["id"] == whole["id"][::-1]
    assert np.allclose(numbers(found, "predicted_price"), numbers(whole, "predicted_price")[::-1], rtol=1e-6)


def test_nodes_that_the_model_never_saw(folder, tmp_path):
    new = write_people(tmp_path / "new", nodes=33, seed=5, first=1000)
    found, told = predict(folder / "classes" / "seed0", tmp_path / "a.csv", *own(new, "--label-column", "team"))
    data = datasets.from_files(new / "friends.csv", new / "people.csv", feature_columns=["a", "b", "c"])
    assert found["id"] == [f"p{i}" for i in range(1000, 1033)]
    wanted = outputs(folder / "classes" / "seed0", data)[0].softmax(1).numpy()
    assert np.allclose(numbers(found, *TEAMS), wanted, atol=1e-6)
    assert told["accuracy_on_known"] > 0.6


def test_features_are_changed_as_in_training(folder, data, tmp_path):
    train(tmp_path / "job", *own(folder, *KINDS["classes"]), "--normalise-rows", epochs=3)
    whole, _ = predict(tmp_path / "job", tmp_path / "a.csv")
    found, _ = predict(tmp_path / "job", tmp_path / "b.csv", *own(folder))
    wanted = outputs(tmp_path / "job" / "seed0", data.row_normalised())[0].softmax(1).numpy()
    assert found == whole
    assert np.allclose(numbers(found, *TEAMS), wanted, atol=1e-6)
    assert "note: the data were row normalised, as in training" in ask(
        "predict", tmp_path / "job", "--out", tmp_path / "c.csv", *own(folder)
    )


def test_a_named_set_is_the_one_it_was_trained_on(tmp_path):
    train(tmp_path / "job", "--dataset", "contextual_sbm", epochs=2)
    whole, told = predict(tmp_path / "job", tmp_path / "a.csv")
    found, _ = predict(tmp_path / "job", tmp_path / "b.csv", "--dataset", "contextual_sbm")
    held = datasets.load("contextual_sbm")
    assert found == whole
    output, card = outputs(tmp_path / "job" / "seed0", held)
    wanted = (output / card["evaluation"]["calibration"]["temperature"]).softmax(1).numpy()
    assert np.allclose(numbers(found, *(f"p_{name}" for name in held.classes)), wanted, atol=1e-6)
    assert told["accuracy_on_known"] == pytest.approx(
        float((torch.tensor(wanted).argmax(1) == held.labels).double().mean())
    )


def test_other_data_under_the_same_name_are_refused_until_they_are_named(folder, tmp_path):
    (tmp_path / "mine").mkdir()
    for name in ("friends.csv", "people.csv"):
        (tmp_path / "mine" / name).write_bytes((folder / name).read_bytes())
    mine = tmp_path / "mine"
    train(tmp_path / "job", *own(mine, *KINDS["classes"]), epochs=1)
    assert "note" not in ask("predict", tmp_path / "job", "--out", tmp_path / "a.csv")
    (mine / "people.csv").write_text((mine / "people.csv").read_text().replace("p1,", "p1,9", 1))
    assert "not what the model was trained on" in refuse("predict", tmp_path / "job", "--out", tmp_path / "b.csv")
    assert not (tmp_path / "b.csv").exists()
    ask("predict", tmp_path / "job", *own(mine, *KINDS["classes"]), "--out", tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text() != (tmp_path / "a.csv").read_text()


def test_a_model_without_a_card_takes_the_data_it_is_given(folder, tmp_path):
    place = save_pretrained(SGC(3, 2), tmp_path / "bare")
    found, _ = predict(place, tmp_path / "a.csv", *own(folder))
    assert list(found) == ["id", "prediction", "p_0", "p_1"]
    assert set(found["prediction"]) <= {"0", "1"}


# -- which nodes -------------------------------------------------------------------------------------------------------


def test_only_nodes_without_a_label(folder, tmp_path):
    whole, _ = predict(folder / "classes", tmp_path / "a.csv")
    found, told = predict(folder / "classes", tmp_path / "b.csv", "--only", "unlabelled")
    assert found["id"] == [f"p{i}" for i in range(0, 60, 10)]
    assert found["p_red"] == whole["p_red"][::10]
    assert "accuracy_on_known" not in told
    found, _ = predict(folder / "numbers", tmp_path / "c.csv", "--only", "unlabelled")
    assert found["id"] == [f"p{i}" for i in range(0, 60, 7)]


@pytest.mark.parametrize("seed", [0, 1])
def test_only_the_nodes_that_a_seed_was_tested_on(folder, tmp_path, seed):
    place = folder / "classes" / f"seed{seed}"
    found, told = predict(place, tmp_path / "a.csv", "--only", "test")
    held = datasets.from_files(
        folder / "friends.csv", folder / "people.csv", feature_columns=["a", "b", "c"], label_column="team"
    )
    test = datasets.splits.repetition(held, seed).test
    assert found["id"] == [f"p{i}" for i in test.tolist()]
    assert told["accuracy_on_known"] == pytest.approx(load_with_card(place)[1]["metrics"]["test_score"])


def test_a_split_of_the_file_is_one_for_all_seeds(folder, tmp_path):
    source = own(folder, "--label-column", "team", "--split-column", "part")
    found, _ = predict(folder / "classes", tmp_path / "a.csv", "--only", "test", *source)
    parts = cells(folder)["part"]
    assert found["id"] == [f"p{i}" for i, part in enumerate(parts) if part == "test"]
    found, _ = predict(
        folder / "classes" / "seed0", tmp_path / "a.csv", "--only", "test", "--split", "random:0.2/0.2/0.5"
    )
    assert len(found["id"]) == 27  # half of the 54 that have a label


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("labelled", [False, True])
def test_graphs_of_one_or_two_nodes(tmp_path, nodes, labelled):
    """Too few for a split, but not for a prediction or an explanation."""
    (tmp_path / "e.csv").write_text("source,target\n" + "".join(f"{i},{(i + 1) % 12}\n" for i in range(12)))
    (tmp_path / "x.csv").write_text("id,a,team\n" + "".join(f"{i},{i % 5},{'xy'[i % 2]}\n" for i in range(12)))
    files = ["--edges", tmp_path / "e.csv", "--features", tmp_path / "x.csv", "--label-column", "team"]
    ask("train", "APPNP", *files, "--epochs", 2, "--out", tmp_path / "o", "--no-report", "--quiet")
    (tmp_path / "e.csv").write_text(f"source,target\nada,{'ada' if nodes == 1 else 'bob'}\n")
    (tmp_path / "x.csv").write_text("id,a,team\nada,3,x\nbob,1,y\n".rsplit("bob", 2 - nodes)[0])
    new = files if labelled else files[:4]
    ask("predict", tmp_path / "o" / "seed0", *new, "--out", tmp_path / "p.csv")
    assert cells(tmp_path, "p.csv")["id"] == ["ada", "bob"][:nodes]
    told = json.loads(ask("explain", tmp_path / "o" / "seed0", *new, "--node", "ada", "--json"))
    assert told["data"] == "e"


# -- what once went wrong for new users --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def persons(tmp_path_factory):
    """People whose names stand in a column called person, and new ones in another order of columns."""
    place, chance = tmp_path_factory.mktemp("persons"), np.random.default_rng(0)
    team = chance.integers(0, 2, 60)
    near = [(a, b) for a in range(60) for b in range(a) if chance.random() < (0.2 if team[a] == team[b] else 0.02)]
    (place / "e.csv").write_text("source,target\n" + "".join(f"n{a},n{b}\n" for a, b in near))
    rows = [f"n{i},{chance.normal():.3f},{team[i] + chance.normal():.3f},t{team[i]}\n" for i in range(60)]
    (place / "x.csv").write_text("person,a,b,team\n" + "".join(rows))
    new = [f"n{i},{chance.normal():.3f},{chance.normal():.3f}\n" for i in range(60)]
    (place / "new.csv").write_text("person,b,a\n" + "".join(new))
    return place


def by_person(place):
    return "--edges", place / "e.csv", "--features", place / "x.csv", "--id-column", "person", "--label-column", "team"


def test_the_id_column_is_remembered(persons, tmp_path):
    said = ask("train", "SGC", *by_person(persons), "--epochs", "3", "--no-report", "--out", tmp_path / "t")
    assert "features: a, b" in said
    new = ("--edges", persons / "e.csv", "--features", persons / "new.csv")
    found, _ = predict(tmp_path / "t", tmp_path / "p.csv", *new)
    assert len(found["id"]) == 60
    ask("explain", tmp_path / "t", "--node", "n3")  # a folder with one seed is that seed


def test_leftovers_of_another_run_are_not_averaged(persons, tmp_path):
    for epochs, seeds in ((4, 3), (2, 1)):
        train(tmp_path / "t", *by_person(persons), "--seeds", seeds, model="SGC", epochs=epochs)
    assert "seed1 was left there by another run" in refuse("predict", tmp_path / "t", "--out", tmp_path / "p.csv")


LEANING = """
import unspool as us

GAIN = 0.5


class Leaning(us.models.Model):
    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        self.propagation = us.unroll(us.Fidelity(1.0) + us.Smoothness(1.0), us.GradientDescent(step=GAIN), 3)
"""


def test_changed_code_is_refused_by_all_that_read_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaning_model.py").write_text(LEANING)
    monkeypatch.syspath_prepend(str(tmp_path))
    named = ["--model", "leaning_model:Leaning"]
    ask(
        "train", named[1], "--dataset", "contextual_sbm", "--epochs", "3", "--seeds", "1", "--out", "job", "--no-report"
    )
    commands = {
        "predict": ["predict", "job"], "explain": ["explain", "job", "--node", "0"],
        "spectrum": ["spectrum", "job", "--out", "spectrum.png"],
    }  # fmt: skip
    for words in commands.values():
        ask(*words, *named)
    monkeypatch.setattr("leaning_model.GAIN", 0.05)
    for words in commands.values():
        said = refuse(*words, *named)
        assert "the code of leaning_model:Leaning has changed since job/seed0 was saved" in said
        assert "take it as it is with --changed-code" in said
        ask(*words, *named, "--changed-code")
    ask("report", "job", *named)
    assert "Seed 0 could not be read: the code of" in (tmp_path / "job" / "report.md").read_text(encoding="utf-8")
    ask("report", "job", *named, "--changed-code")
    assert "could not be read" not in (tmp_path / "job" / "report.md").read_text(encoding="utf-8")
