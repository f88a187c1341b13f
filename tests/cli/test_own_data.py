"""unspool train on files of one's own: every loss, what the folder says, and the same numbers every time."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import unspool as us
from cli.people import ask, card, cells, history, own, refuse, same, train, write_people
from unspool import datasets
from unspool import train as training
from unspool.cli.spectrum import read_graph
from unspool.cli.train import Reporter
from unspool.models.pretrained import load_with_card

pytestmark = pytest.mark.long


CLASSES = ("--label-column", "team")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_people(tmp_path_factory.mktemp("people"))


@pytest.fixture(scope="module")
def trained(folder):
    train(folder / "classes", *own(folder, *CLASSES), "--seeds", 2)
    return folder / "classes"


def read(folder, **how):
    """The same data through the library."""
    columns = ["a", "b", "c"]
    return datasets.from_files(folder / "friends.csv", folder / "people.csv", feature_columns=columns, **how)


def output(place, data, seed=0):
    with torch.no_grad():
        return load_with_card(place / f"seed{seed}")[0](data.features, data.graph).double()


# -- what is said beforehand -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["train", "study run"])
def test_columns_that_are_features_are_named(folder, tmp_path, command):
    """So that a number to predict which went in as a feature is seen."""
    said = ask(*command.split(), "GCN", "--epochs", 2, "--seeds", 1, "--out", tmp_path / "out", *own(folder, *CLASSES))
    assert "\nfeatures: a, b, c\n" in said


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "decay 0.0005"),
        (("--weight-decay", "0.01"), "decay 0.01"),
        (("--optimiser", "sgd"), "SGD"),
        (("--precision", "bfloat16"), "bfloat16"),
    ],
)
def test_the_configuration_is_said(folder, tmp_path, more, words):
    said = train(tmp_path, *own(folder, *CLASSES), *more, epochs=2, quiet=False)
    assert words in next(line for line in said.splitlines() if line.startswith("GCN, preset"))


def test_two_answers_are_refused(folder, tmp_path):
    said = refuse("train", "GCN", "--out", tmp_path, *own(folder, *CLASSES, "--target-column", "price"))
    assert said.startswith("--label-column team: ")
    assert "--target-column" in said


# -- classes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_the_card_tells_what_was_learnt_from_what(folder, trained, seed):
    data = read(folder, label_column="team")
    split = datasets.splits.repetition(data, seed)
    told, found = card(trained, seed), output(trained, data, seed)
    assert told["data"]["classes"] == ["blue", "green", "red"]
    assert told["data"]["features"] == ["a", "b", "c"]
    assert (told["data"]["hash"], told["data"]["split"]) == (data.hash, split.hash)
    assert told["data"]["transforms"] == []
    wanted = {"edges": str(folder / "friends.csv"), "features": str(folder / "people.csv")}
    assert told["data"]["source"] == {**wanted, "label_column": "team", "feature_columns": ["a", "b", "c"]}
    assert told["task"] == {"kind": "classes", "score": "accuracy"}
    assert (told["trial"]["preset"], told["trial"]["seed"]) == ("default", seed)
    assert told["data"]["fingerprint"].startswith(data.hash[:16])
    right = (found.argmax(1) == data.labels)[split.test].double().mean()
    assert told["metrics"]["test_score"] == pytest.approx(float(right), abs=1e-7)
    assert right > 0.5
    loss = -found.log_softmax(1)[split.valid, data.labels[split.valid]].mean()
    assert told["metrics"]["valid_loss"] == pytest.approx(float(loss), rel=1e-5)


def test_seeds_draw_their_own_random_splits(trained):
    assert card(trained, 0)["data"]["split"] != card(trained, 1)["data"]["split"]


def test_the_history_leads_to_the_kept_epoch(trained):
    rows, kept = history(trained), card(trained)["metrics"]
    assert [row["epoch"] for row in rows] == list(range(1, 16))
    best = min(rows, key=lambda row: row["valid_loss"])
    for name, value in best.items():
        assert value == pytest.approx(kept[name], rel=1e-5)


def test_labels_may_stand_in_a_file_of_their_own(folder, trained):
    people = cells(folder)
    lines = [f"{node},{team}" for node, team in zip(people["id"], people["team"], strict=True) if team]
    (folder / "teams.tsv").write_text("\n".join(["id,label", *reversed(lines)]).replace(",", "\t") + "\n")
    train(folder / "apart", *own(folder, "--labels", folder / "teams.tsv"))
    assert card(folder / "apart")["data"]["hash"] == card(trained)["data"]["hash"]
    assert history(folder / "apart") == history(trained)


def test_columns_that_are_not_named_are_features(folder):
    keep = ("id", "a", "c", "team")
    held = cells(folder)
    rows = zip(*(held[name] for name in keep), strict=True)
    (folder / "few.csv").write_text("\n".join([",".join(keep), *map(",".join, rows)]) + "\n")
    source = ["--edges", folder / "friends.csv", "--features", folder / "few.csv"]
    train(folder / "few", *source, *CLASSES, epochs=2)
    assert card(folder / "few")["data"]["features"] == ["a", "c"]


# -- other losses ------------------------------------------------------------------------------------------------------


def known(folder, *columns):
    """Numbers of the table, NaN where a cell is empty: shape (nodes, columns)."""
    held = cells(folder)
    return np.array([[float(text) if text else math.nan for text in held[name]] for name in columns]).T


def test_two_numbers_with_missing_cells(folder):
    place, names = folder / "numbers", ("price", "size")
    train(place, *own(folder, "--target-column", "price", "--target-column", "size"), epochs=200)
    data, told, truth = read(folder, target_columns=list(names)), card(place), known(folder, *names)
    split = datasets.splits.repetition(data, 0)
    everyone = np.concatenate([split.train, split.valid, split.test])
    assert sorted(everyone) == [i for i in range(60) if i % 7]  # those whose price is known
    assert told["task"]["centre"] == pytest.approx(truth[split.train].mean(0).tolist(), rel=1e-5)
    assert told["task"]["scale"] == pytest.approx(truth[split.train].std(0).tolist(), rel=1e-5)
    assert told["data"]["targets"] == list(names)
    # The score is that of the numbers brought to size one.
    centre, scale = np.array(told["task"]["centre"]), np.array(told["task"]["scale"])
    wanted = ((truth - centre) / scale)[split.test]
    miss = np.square(output(place, data).numpy()[split.test] - wanted).sum()
    r2 = 1 - miss / np.square(wanted - wanted.mean(0)).sum()
    assert told["metrics"]["test_score"] == pytest.approx(r2, abs=1e-4)
    assert r2 > 0.5


def in_order(value, truth):
    """The share of pairs in the right order, ties counted half, by looking at all of them."""
    value, truth = np.asarray(value, dtype=float), np.asarray(truth, dtype=float)
    pairs = [(i, j) for i in range(len(truth)) for j in range(len(truth)) if truth[i] > truth[j]]
    return np.mean([0.5 * (np.sign(value[i] - value[j]) + 1) for i, j in pairs])


def test_two_classes_as_yes_and_no(folder):
    place = folder / "binary"
    train(place, *own(folder, "--label-column", "vip", "--loss", "binary"))
    data, told = read(folder, label_column="vip"), card(place)
    test, found = datasets.splits.repetition(data, 0).test, output(place, data)
    assert found.shape == (60, 1)
    assert told["task"] == {"kind": "binary", "score": "AUC"}
    assert told["data"]["classes"] == ["no", "yes"]
    assert told["metrics"]["test_score"] == pytest.approx(in_order(found[test, 0], data.labels[test]), abs=1e-6)


def test_ranking(folder):
    place = folder / "ranking"
    train(place, *own(folder, "--target-column", "price", "--loss", "ranking"))
    data, told = read(folder, target_columns=["price"]), card(place)
    test, found = datasets.splits.repetition(data, 0).test, output(place, data)
    assert found.shape == (60, 1)
    assert told["task"] == {"kind": "ranking", "score": "pairs in order"}
    truth = known(folder, "price")[test, 0]
    assert told["metrics"]["test_score"] == pytest.approx(in_order(found[test, 0], truth), abs=1e-6)


def test_links(folder):
    place = folder / "links"
    train(place, *own(folder, "--loss", "links"), "--first-seed", 3)
    data, told = read(folder), card(place, 3)
    task = training.link_task(data, seed=3)
    with torch.no_grad():
        h = load_with_card(place / "seed3")[0](task.x, task.graph).double()
    ends = task.loss.pairs[task.test]
    value = (h[ends[:, 0]] * h[ends[:, 1]]).sum(1)
    assert told["task"] == {"kind": "links", "score": "AUC"}
    assert told["metrics"]["test_score"] == pytest.approx(in_order(value, task.target[task.test]), abs=1e-6)


# -- splits ------------------------------------------------------------------------------------------------------------


def test_a_named_split_has_the_sizes_asked_for(folder):
    train(folder / "few-shot", *own(folder, *CLASSES, "--split", "per-class:3/2"), epochs=1)
    data = read(folder, label_column="team")
    assert card(folder / "few-shot")["data"]["split_name"] == "per-class 3/2"
    drawn = datasets.splits.per_class(data.labels, 3, 2, seed=0)
    assert card(folder / "few-shot")["data"]["split"] == drawn.hash
    assert data.labels[drawn.train].bincount().tolist() == [3, 3, 3]


def test_a_column_says_which_nodes_train(folder):
    train(folder / "by-column", *own(folder, *CLASSES, "--split-column", "part"), "--seeds", 2, epochs=2)
    parts = cells(folder)["part"]
    ids = [[i for i, part in enumerate(parts) if part == name] for name in ("train", "valid", "test")]
    wanted = datasets.Split(*ids, nodes=60).hash
    assert [card(folder / "by-column", seed)["data"]["split"] for seed in (0, 1)] == [wanted, wanted]


def test_public_splits_stay_for_all_seeds(tmp_path):
    train(tmp_path, "--dataset", "citeseer", "--seeds", 2, model="SGC", epochs=1)
    public = datasets.load("citeseer").split.hash
    assert [card(tmp_path, seed)["data"]["split"] for seed in (0, 1)] == [public, public]
    assert card(tmp_path)["trial"]["preset"] == "paper"
    assert card(tmp_path)["data"]["transforms"] == ["row_normalised"]


# -- how it is trained -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "said", "kept"),
    [
        ("gcn", "hidden=12", {"hidden": 12}),
        ("gcn", "batch_norm=yes", {"batch_norm": True}),
        ("GCN", "bias=false", {"bias": False}),
        ("APPNP", "teleport=0.25", {"teleport": 0.25}),
        ("GPRGNN", "propagation-dropout=0.1", {"propagation_dropout": 0.1}),
        ("JKNet", "combine=max", {"combine": "max"}),
        ("AirGNN", "adjoint=checkpointed(every=2)", {"adjoint": {"type": "Checkpointed", "every": 2}}),
    ],
)
def test_settings_are_read_as_what_they_are(folder, tmp_path, model, said, kept):
    train(tmp_path, *own(folder, *CLASSES), "--setting", said, model=model, epochs=1)
    told = card(tmp_path)["settings"]
    assert {name: told[name] for name in kept} == kept
    assert all(type(told[name]) is type(value) for name, value in kept.items())


def test_another_optimiser_is_that_of_torch(folder, tmp_path):
    how = ("--optimiser", "sgd", "--lr", "0.5", "--weight-decay", "0.01", "--normalise-rows")
    train(tmp_path, *own(folder, *CLASSES), *how, model="SGC", epochs=5)
    data = read(folder, label_column="team").row_normalised()
    torch.manual_seed(0)
    model = us.models.SGC(3, 3)
    steps = torch.optim.SGD(model.parameters(), lr=0.5, weight_decay=0.01)
    losses, ids = [], datasets.splits.repetition(data, 0).train
    for _ in range(5):
        steps.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data.features, data.graph)[ids], data.labels[ids])
        loss.backward()
        steps.step()
        losses.append(loss.item())
    assert [row["train_loss"] for row in history(tmp_path)] == pytest.approx(losses, rel=1e-5)
    assert card(tmp_path)["trial"]["config"]["optimiser"] == "SGD"
    assert card(tmp_path)["data"]["transforms"] == ["row_normalised"]


def test_bfloat16_is_near_and_not_the_same(folder, trained, tmp_path):
    train(tmp_path, *own(folder, *CLASSES), "--precision", "bfloat16")
    half, full = ([row["train_loss"] for row in history(place)] for place in (tmp_path, trained))
    assert half != full
    assert half == pytest.approx(full, rel=0.05)
    assert all(p.dtype == torch.float32 for p in load_with_card(tmp_path / "seed0")[0].parameters())


def test_the_problem_itself_instead_of_its_steps(folder, tmp_path):
    train(
        tmp_path, *own(folder, *CLASSES), "--lower-level", "exact", "--setting", "teleport=0.3", model="APPNP", epochs=3
    )
    model, told = load_with_card(tmp_path / "seed0")
    assert told["solved_exactly"] is True
    assert told["trial"]["config"]["lower_level"] == "exact"
    data = read(folder, label_column="team")
    model, graph, x = model.double(), data.graph.to(torch.float64), data.features.double()
    with torch.no_grad():
        z, a = model.p_pre(x), graph.to_dense()
        exact = 0.3 * torch.linalg.solve(torch.eye(60) - 0.7 * a, z)
        assert torch.allclose(model(x, graph), model.p_pos(exact), atol=1e-5)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (["--weight-decay", "first=0.01;convolution=0.1"], {"weight_decay": {"first": 0.01, "convolution": 0.1}}),
        (["--weight-decay", "0"], {"weight_decay": 0.0}),
        (["--monitor", "valid_score", "--lr", "2e-2"], {"monitor": "valid_score", "lr": 0.02}),
        (["--monitor", "last-epoch", "--stop", "never"], {"monitor": "last_epoch", "stop": "never"}),
        (["--stop", "above-mean", "--patience", "3", "--min-epochs", "2"], {"stop": "above_mean", "patience": 3, "min_epochs": 2}),
        (["--patience", "7"], {"stop": "patience", "patience": 7}),
        (["--precision", "BFLOAT16", "--optimiser", "RMSprop"], {"precision": "bfloat16", "optimiser": "RMSprop"}),
    ],
)  # fmt: skip
def test_training_is_read_as_what_it_is(folder, tmp_path, said, kept):
    train(tmp_path, *own(folder, *CLASSES), *said, epochs=6)
    told = card(tmp_path)["trial"]["config"]
    assert {name: told[name] for name in kept} == kept
    if kept.get("monitor") == "last_epoch":
        assert card(tmp_path)["metrics"]["epoch"] == 6


def test_decay_by_group_is_that_of_torch(folder, tmp_path):
    how = ("--optimiser", "sgd", "--lr", "0.5", "--weight-decay", "first=0.1;linear=0.02", "--dropout", "0")
    train(tmp_path, *own(folder, *CLASSES), *how, model="MLP", epochs=4)
    data = read(folder, label_column="team")
    torch.manual_seed(0)
    model = us.models.MLP(3, 3, dropout=0.0)
    groups = model.parameter_groups()
    decays = [
        {"params": list(groups[name]), "weight_decay": decay} for name, decay in (("first", 0.1), ("linear", 0.02))
    ]
    steps = torch.optim.SGD(decays, lr=0.5)
    losses, ids = [], datasets.splits.repetition(data, 0).train
    for _ in range(4):
        steps.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data.features, data.graph)[ids], data.labels[ids])
        loss.backward()
        steps.step()
        losses.append(loss.item())
    assert [row["train_loss"] for row in history(tmp_path)] == pytest.approx(losses, rel=1e-5)


# -- what is said and left behind --------------------------------------------------------------------------------------


def test_a_report_unless_none_is_wanted(folder, tmp_path, trained):
    text = train(tmp_path, *own(folder, *CLASSES), "--seeds", 2, quiet=False)
    assert (tmp_path / "report.html").is_file()
    assert f"report: {tmp_path / 'report.html'}" in text
    assert "up to 15 epochs, of which the one with the lowest validation loss is kept" in text
    assert "ends early: after 100 epochs without a better one" in text
    scores = [100 * card(tmp_path, seed)["metrics"]["test_score"] for seed in (0, 1)]
    assert f"test accuracy {np.mean(scores):.2f} ± {np.std(scores, ddof=1):.2f} over 2 seeds" in text
    assert not (trained / "report.html").exists()
    same(tmp_path / "seed0", trained / "seed0")  # told or not, twice the same
    same(tmp_path / "seed1", trained / "seed1")


def test_json_lines_and_silence(folder, tmp_path):
    text = train(tmp_path / "a", *own(folder, *CLASSES), "--json", "--no-report", "--seeds", 2, quiet=False)
    lines = [json.loads(line) for line in text.splitlines()]
    ends, total = [line for line in lines if line["event"] == "seed"], lines[-1]
    assert [line["seed"] for line in ends] == [0, 1]
    for line in ends:
        kept = json.loads((tmp_path / "a" / f"seed{line['seed']}" / "model.json").read_text())["metrics"]
        assert {name: line[name] for name in kept} == kept
    assert total["event"] == "summary"
    assert total["test_mean"] == pytest.approx(np.mean([line["test_score"] for line in ends]))
    assert total["report"] is None
    assert train(tmp_path / "b", *own(folder, *CLASSES)) == ""
    assert sorted(p.name for p in (tmp_path / "b").iterdir()) == ["baselines.json", "seed0"]


# -- cut off -----------------------------------------------------------------------------------------------------------


def interrupt_at(epoch, monkeypatch):
    """Ctrl-C while the n-th epoch is looked at."""
    watch = Reporter.__call__

    def broken(self, now, best):
        if now.epoch == epoch:
            raise KeyboardInterrupt
        watch(self, now, best)

    monkeypatch.setattr(Reporter, "__call__", broken)


@pytest.mark.parametrize("every", [0, 100])  # with snapshots, and without one in time
def test_a_run_that_was_cut_off_ends_as_if_it_had_not_been(folder, trained, tmp_path, monkeypatch, every):
    words = [*own(folder, *CLASSES), "--seeds", 2, "--snapshot-every", every]
    with monkeypatch.context() as patched:
        interrupt_at(9, patched)
        train(tmp_path, *words, code=130)
    assert not (tmp_path / "seed1").exists()
    rows, kept = history(tmp_path), card(tmp_path)["metrics"]
    assert kept["ending"] == "interrupted"
    assert rows == history(trained)[:9]
    assert kept["epoch"] == min(rows, key=lambda row: row["valid_loss"])["epoch"]
    assert (tmp_path / "seed0" / "run.pt").exists() == (every == 0)
    train(tmp_path, *words, "--resume")
    for seed in ("seed0", "seed1"):
        same(tmp_path / seed, trained / seed)
        assert not (tmp_path / seed / "run.pt").exists()
    again = ask(
        "train", "GCN", "--epochs", 15, "--setting", "hidden=8", *words, "--out", tmp_path, "--no-report", "--resume"
    )
    assert again.count("finished before") == 2


def test_the_spectrum_is_that_of_the_named_graph(folder, trained, tmp_path):
    told = ask("spectrum", trained / "seed0", "--edges", folder / "friends.csv", "--out", tmp_path / "a.png")
    assert "Graph(nodes=60, edges=180, undirected" in told
    data, named = read(folder), read_graph(folder / "friends.csv")
    both = [torch.linalg.eigvalsh(graph.to(torch.float64).to_dense()) for graph in (data.graph, named)]
    assert torch.allclose(*both, atol=1e-6)


def test_the_way_out_of_lbfgs_is_one(folder, tmp_path):
    train(tmp_path, *own(folder, *CLASSES), "--optimiser", "lbfgs", "--weight-decay", "0", model="SGC", epochs=2)
    rows = history(tmp_path)
    assert rows[1]["train_loss"] < rows[0]["train_loss"]


# -- tables that are not what they seem --------------------------------------------------------------------------------


def test_an_index_that_was_written_along_is_not_a_feature(folder, tmp_path):
    held = cells(folder)
    rows = zip(map(str, range(60)), *(held[name] for name in ("id", "a", "b", "vip")), strict=True)
    (tmp_path / "people.csv").write_text("\n".join([",id,a,b,vip", *map(",".join, rows)]) + "\n")
    words = ["--edges", folder / "friends.csv", "--features", tmp_path / "people.csv", "--label-column", "vip"]
    assert "a column has no name" in refuse("train", "SGC", *words, "--epochs", "2", "--out", tmp_path / "t")


def test_sizes_far_apart_are_remarked(folder, tmp_path):
    head, *lines = (folder / "people.csv").read_text().splitlines()
    grown = [line.split(",") for line in lines]
    text = "".join(f"{row[0]},{1e4 * float(row[1]):.1f},{','.join(row[2:])}\n" for row in grown)
    (tmp_path / "people.csv").write_text(f"{head}\n{text}")
    words = own(folder, *CLASSES)
    words[words.index(str(folder / "people.csv"))] = tmp_path / "people.csv"
    said = ask("train", "SGC", *words, "--epochs", "2", "--no-report", "--out", tmp_path / "t")
    assert "note: features differ in size: 'a' is" in said


def test_the_files_on_the_page_about_training_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    block = page.partition("**Your own files.**")[2].partition("```\n")[2].partition("```")[0].splitlines()
    wide = block[0].index("nodes.csv")
    for name, cut in (("edges.csv", slice(wide)), ("nodes.csv", slice(wide, None))):
        lines = [line[cut].strip() for line in block]
        assert lines[0] == name
        Path(name).write_text("\n".join(line for line in lines[1:] if line) + "\n")
    command = next(part for part in page.split("`") if part.startswith("unspool train --edges edges.csv"))
    said = ask(*command.split()[1:], "--epochs", "2", "--seeds", "1", "--no-report")
    assert "7 nodes, 6 edges, 2 features, 2 classes" in said
    assert "1 nodes without a label" in said
