"""Links on the command line: trained, scored, recommended, explained, reported; the same numbers as in Python."""

import csv
import json

import numpy as np
import pytest
import torch

from cli.people import ask, card, own, refuse, train, write_people
from unspool import datasets, links
from unspool import train as training
from unspool.estimator import LinkPredictor
from unspool.models import APPNP
from unspool.models.pretrained import load_with_card

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The people, two seeds that look for links, and the report."""
    place = write_people(tmp_path_factory.mktemp("links"))
    train(place / "job", *own(place, "--loss", "links"), "--seeds", 2, model="APPNP", epochs=30, quiet=False)
    return place


@pytest.fixture(scope="module")
def data(folder):
    return datasets.from_files(
        folder / "friends.csv", folder / "people.csv", feature_columns=["a", "b", "c"], directed=False
    )


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


def write(path, text):
    path.write_text(text)
    return path


def chances(folder, data, pairs, seeds=(0, 1)):
    """The mean probability over seeds, by hand."""
    found = []
    for seed in seeds:
        model, _ = load_with_card(folder / "job" / f"seed{seed}")
        with torch.no_grad():
            h = model(data.features, data.graph).double().numpy()
        found.append([1 / (1 + np.exp(-h[u] @ h[v])) for u, v in pairs])
    return np.mean(found, axis=0)


PAIRS = [("p1", "p4"), ("p7", "p30"), ("p30", "p7"), ("p1", "p4")]


@pytest.mark.parametrize("seeds", [(0, 1), (1,)])
def test_pairs_of_a_file_are_scored(folder, data, tmp_path, seeds):
    lines = "".join(f"{a},{b}\n" for a, b in PAIRS)
    file = write(tmp_path / "pairs.csv", "source,target\n" + lines)
    job = folder / "job" if len(seeds) > 1 else folder / "job" / f"seed{seeds[0]}"
    told = json.loads(ask("predict", job, "--pairs", file, "--out", tmp_path / "scores.csv", "--json"))
    found = rows(tmp_path / "scores.csv")
    place = {name: k for k, name in enumerate(data.names)}
    ends = [(place[a], place[b]) for a, b in PAIRS]
    assert [(row["source"], row["target"]) for row in found] == PAIRS
    expected = chances(folder, data, ends, seeds)
    assert [float(row["probability"]) for row in found] == pytest.approx(expected.tolist(), abs=1e-8)
    near = data.graph.to_dense()
    assert [row["edge"] == "True" for row in found] == [bool(near[u, v]) for u, v in ends]
    assert told["pairs"] == 4
    assert told["repeated"] == 2
    assert told["models"] == len(seeds)


def test_pairs_come_in_many_tables(folder, tmp_path):
    base = ("p1,p4\n", "who,whom\np1,p4\n", "since,target,source\n5,p4,p1\n", "# a comment\np1,p4\n")
    for number, text in enumerate(base):
        file = write(tmp_path / f"{number}.csv", text)
        said = ask("predict", folder / "job", "--pairs", file, "--out", tmp_path / "s.csv")
        assert ("taken for the names" in said) is ("whom" in text)
        (row,) = rows(tmp_path / "s.csv")
        assert (row["source"], row["target"]) == ("p1", "p4")
    file = write(tmp_path / "tabs.tsv", "p1\tp4\n")
    ask("predict", folder / "job", "--pairs", file, "--out", tmp_path / "s.tsv")
    assert len(rows(tmp_path / "s.tsv")) == 1


def test_nodes_without_names_go_by_their_numbers(tmp_path):
    train(tmp_path / "job", "--dataset", "grid", "--loss", "links", model="SGC", epochs=2)
    file = write(tmp_path / "pairs.csv", "0,399\n5,6\n")
    ask("predict", tmp_path / "job", "--pairs", file, "--out", tmp_path / "s.csv")
    assert [(row["source"], row["edge"]) for row in rows(tmp_path / "s.csv")] == [("0", "False"), ("5", "True")]
    assert "p1" not in ask("predict", tmp_path / "job", "--nodes", "7", "--out", tmp_path / "s.csv")


def test_recommendations_are_new_and_in_order(folder, data, tmp_path):
    said = ask("predict", folder / "job" / "seed0", "--top", 4, "--nodes", "p3,p10", "--out", tmp_path / "top.csv")
    found = rows(tmp_path / "top.csv")
    assert [(row["id"], int(row["rank"])) for row in found] == [(n, r) for n in ("p3", "p10") for r in (1, 2, 3, 4)]
    place, near = {name: k for k, name in enumerate(data.names)}, data.graph.to_dense()
    for node in ("p3", "p10"):
        u = place[node]
        free = [v for v in range(60) if v != u and near[u, v] == 0]
        chance = chances(folder, data, [(u, v) for v in free], (0,))
        best = np.argsort(-chance)[:4]
        mine = [row for row in found if row["id"] == node]
        assert [place[row["other"]] for row in mine] == [free[k] for k in best]
        assert [float(row["probability"]) for row in mine] == pytest.approx(chance[best].tolist(), abs=1e-8)
    assert "as many links as other pairs" in said


def test_ten_recommendations_when_nothing_is_asked(folder, tmp_path):
    ask("predict", folder / "job", "--out", tmp_path / "top.csv")
    found = rows(tmp_path / "top.csv")
    assert len(found) == 600
    assert set(found[0]) == {"id", "rank", "other", "probability", "score"}


def test_the_estimator_says_the_same(folder, data, tmp_path):
    made = LinkPredictor(APPNP, epochs=30, device="cpu", seed=1).fit(data.features.numpy(), graph=data.edge_index)
    pairs = [(0, 1), (5, 50), (33, 2)]
    file = write(tmp_path / "pairs.csv", "".join(f"{data.names[u]},{data.names[v]}\n" for u, v in pairs))
    ask("predict", folder / "job" / "seed1", "--pairs", file, "--out", tmp_path / "s.csv")
    found = [float(row["probability"]) for row in rows(tmp_path / "s.csv")]
    assert found == pytest.approx(made.predict_proba(pairs)[:, 1].tolist(), abs=1e-6)
    ask("predict", folder / "job" / "seed1", "--top", 3, "--out", tmp_path / "t.csv")
    best = made.recommend(k=3)
    assert [row["other"] for row in rows(tmp_path / "t.csv")] == [data.names[v] for v in best.other.tolist()]


def test_the_card_says_how_it_was_measured(folder, data):
    for seed in (0, 1):
        held = card(folder / "job", seed)
        task = training.link_task(data, seed=seed)
        model, _ = load_with_card(folder / "job" / f"seed{seed}")
        assert held["links"] == links.evaluate_links(model, task, seed).to_plain()
        assert held["links"]["network"]["auc"] == pytest.approx(held["metrics"]["test_score"], abs=1e-6)
        assert held["links"]["protocol"]["seed"] == seed


def test_a_pair_is_explained(folder, data, tmp_path):
    job = folder / "job" / "seed0"
    told = json.loads(ask("explain", job, "--node", "p1", "--other", "p4", "--json", "--out", tmp_path / "why.png"))
    place = {name: k for k, name in enumerate(data.names)}
    (chance,) = chances(folder, data, [(place["p1"], place["p4"])], (0,))
    assert told["probability"] == pytest.approx(chance, abs=1e-6)
    for side, name in zip(told["sides"], ("p1", "p4"), strict=True):
        assert side["name"] == name
        assert side["method"] == "exact"
        assert sum(side["parts"].values()) == pytest.approx(told["score"], abs=1e-9)
        assert abs(side["parts"]["remainder"]) < 1e-5
    assert (tmp_path / "why.png").stat().st_size > 10_000
    words = ask("explain", job, "--node", "p1", "--other", "p4")
    assert "what reached p1" in words
    assert "what reached p4" in words


def test_the_report_says_links(folder):
    text = (folder / "job" / "report.md").read_text(encoding="utf-8")
    held = [card(folder / "job", seed)["links"] for seed in (0, 1)]
    assert "Links: given two nodes" in text
    assert "| common neighbours |" in text
    mrr = np.mean([one["network"]["mrr"] for one in held])
    assert f"(MRR) of {mrr:.4f}" in text
    assert "Of 180 links, 9 (5.0 %)" in text
    assert "unspool predict" in text
    page = (folder / "job" / "report.html").read_text(encoding="utf-8")
    assert "Histogram of the scores of test pairs: 18 links" in page


def test_training_says_what_is_reached_without_it(folder, tmp_path):
    said = train(tmp_path / "job", *own(folder, "--loss", "links"), model="SGC", epochs=3, quiet=False)
    assert "the best score without training" in said


def test_small_graphs_have_fewer_recommendations(folder, tmp_path):
    (tmp_path / "e.csv").write_text("source,target\nx,y\ny,z\n")
    (tmp_path / "x.csv").write_text("id,a,b,c\nx,1,0,0\ny,0,1,0\nz,0,0,1\n")
    files = ["--edges", tmp_path / "e.csv", "--features", tmp_path / "x.csv"]
    ask("predict", folder / "job", *files, "--out", tmp_path / "top.csv")
    assert [(row["id"], row["other"]) for row in rows(tmp_path / "top.csv")] == [("x", "z"), ("z", "x")]


@pytest.mark.parametrize("text", ["a\rb", '"', ",", "", "\0"])
def test_names_of_nodes_that_are_none(folder, tmp_path, text):
    refuse("predict", folder / "job", "--nodes", text, "--out", tmp_path / "top.csv")
