"""What is asked on the command line: several labels, order, counts and weights, from training to predictions and back from cards."""

import csv
import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from unspool import datasets
from unspool.cli.card import what_is_wrong
from unspool.cli.data_options import DataOptions
from unspool.cli.errors import sentence
from unspool.cli.main import cli
from unspool.errors import IncompatibleError, InputError
from unspool.models.pretrained import load_with_card
from unspool.study import Study
from unspool.train import TaskKind

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::unspool.graph.EdgeDirectionWarning")]

NODES, SIZES = 60, ("low", "mid", "high")
#: What is typed for each kind, and what training writes into the card.
ASKED = {
    TaskKind.MULTILABEL: ["--label-column", "sport", "--label-column", "music", "--class-weight", "balanced"],
    TaskKind.ORDINAL: ["--label-column", "size", "--class-order", "low, mid,high", "--sample-weight-column", "counted"],
    TaskKind.COUNTS: ["--target-column", "visits", "--loss", "counts", "--sample-weight-column", "counted"],
    TaskKind.BINARY: ["--label-column", "vip", "--loss", "binary", "--class-weight", "no=1", "--class-weight", "yes=3"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place, chance = tmp_path_factory.mktemp("asked"), np.random.default_rng(0)
    group = np.arange(NODES) % 3
    pairs = chance.integers(0, NODES, (150, 2))
    pairs = {(int(a), int(b)) for a, b in pairs if a < b and (group[a] == group[b] or chance.random() < 0.2)}
    (place / "e.csv").write_text("\n".join(["source,target", *(f"p{a},p{b}" for a, b in sorted(pairs))]) + "\n")
    rows = ["id,a,b,size,sport,music,visits,counted,vip"]
    for i in range(NODES):
        music = "" if i % 5 == 0 else int(group[i] == 1)
        rows.append(
            f"p{i},{group[i] + chance.normal(0, 0.5):.3f},{chance.normal():.3f},{SIZES[group[i]]},{int(group[i] > 0)},{music},"
            f"{chance.poisson(1 + 4 * group[i])},{1 + i % 3},{'yes' if i % 4 == 0 else 'no'}"
        )
    (place / "n.csv").write_text("\n".join(rows) + "\n")
    return place


def run(*arguments):
    done = CliRunner().invoke(cli, [str(part) for part in arguments])
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    return done.output


def refused(*arguments):
    """What is wrong, as a value that becomes one line."""
    problem = CliRunner().invoke(cli, [str(part) for part in arguments]).exception
    assert "\n" not in sentence(problem)
    return problem


def own(folder):
    return [
        "--edges",
        folder / "e.csv",
        "--features",
        folder / "n.csv",
        "--feature-column",
        "a",
        "--feature-column",
        "b",
    ]


@pytest.fixture(scope="module")
def trained(folder):
    """A folder of a trained model for each kind."""
    kept = {}

    def find(kind):
        if kind not in kept:
            out = folder / kind.value
            run(
                "train",
                "GCN",
                *own(folder),
                *ASKED[kind],
                "--epochs",
                12,
                "--hidden",
                8,
                "--seeds",
                2,
                "--jobs",
                1,
                "--out",
                out,
            )
            kept[kind] = out
        return kept[kind]

    return find


@pytest.mark.parametrize("kind", ASKED, ids=lambda kind: kind.value)
def test_cards_say_what_was_asked_and_stand_every_check(trained, kind):
    card = load_with_card(trained(kind) / "seed0")[1]
    assert what_is_wrong(card) is None
    assert card["task"]["kind"] == kind.value
    assert card["task"]["score"] == kind.loss().score_name
    said = {TaskKind.MULTILABEL: "balanced", TaskKind.BINARY: {"no": 1.0, "yes": 3.0}}
    assert card["task"].get("class_weight") == said.get(kind)
    assert card["task"].get("sample_weight") == (True if "--sample-weight-column" in ASKED[kind] else None)
    again = DataOptions.from_record(card["data"]["source"])
    assert again.record() == card["data"]["source"]
    assert again.load().hash == card["data"]["hash"]


@pytest.mark.parametrize("kind", ASKED, ids=lambda kind: kind.value)
def test_predictions_are_what_the_networks_say(folder, trained, kind, tmp_path):
    out = tmp_path / "p.csv"
    run("predict", trained(kind), "--out", out)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    data = datasets.from_files(folder / "e.csv", folder / "n.csv", feature_columns=["a", "b"])
    total = 0.0
    for seed in range(2):
        model, card = load_with_card(trained(kind) / f"seed{seed}")
        with torch.no_grad():
            z = model(data.features, data.graph).double()
        warm = card.get("evaluation", {}).get("calibration") or {}  # yes or no is calibrated, the others are not
        z = z / (1.0 if warm.get("temperature") is None else warm["temperature"])
        total = total + _by_hand(kind, z, card["task"]) / 2
    names = {
        TaskKind.MULTILABEL: ["p_sport", "p_music"], TaskKind.ORDINAL: ["p_low", "p_mid", "p_high"],
        TaskKind.COUNTS: ["predicted_visits"], TaskKind.BINARY: ["p_yes"],
    }[kind]  # fmt: skip
    found = np.array([[float(row[name]) for name in names] for row in rows])
    np.testing.assert_allclose(found, total.numpy(), rtol=1e-6, atol=1e-8)
    if kind is TaskKind.MULTILABEL:
        assert [row["predicted_sport"] for row in rows] == [str(int(p > 0.5)) for p in found[:, 0]]
    if kind is TaskKind.ORDINAL:
        assert [row["prediction"] for row in rows] == [SIZES[best] for best in found.argmax(1)]


def _by_hand(kind, z, task):
    if kind is TaskKind.COUNTS:
        return z.exp() * task["scale"][0]
    if kind is not TaskKind.ORDINAL:
        return torch.sigmoid(z)
    above = torch.sigmoid(torch.stack([z[:, 0], z[:, 0] - torch.log1p(z[:, 1].exp())], 1))
    return torch.stack([1 - above[:, 0], above[:, 0] - above[:, 1], above[:, 1]], 1)


@pytest.mark.parametrize("kind", ASKED, ids=lambda kind: kind.value)
def test_every_kind_is_explained_and_reported(trained, kind):
    told = json.loads(run("explain", trained(kind) / "seed0", "--node", "p1", "--json"))
    assert told["notes"] or kind in (TaskKind.MULTILABEL, TaskKind.BINARY)
    assert (trained(kind) / "report.html").stat().st_size > 1000


@pytest.mark.parametrize("kind", ASKED, ids=lambda kind: kind.value)
def test_a_study_hands_over_the_network_of_its_trial(folder, trained, kind, tmp_path):
    file = tmp_path / "s.db"
    run(
        "study",
        "run",
        "GCN",
        *own(folder),
        *ASKED[kind],
        "--epochs",
        12,
        "--hidden",
        8,
        "--seeds",
        2,
        "--jobs",
        1,
        "--out",
        file,
    )
    run("study", "model", file, 1, "--out", tmp_path / "m")
    run("study", "model", file, 1, *own(folder), *_columns(kind), "--out", tmp_path / "m2")
    card, other = load_with_card(tmp_path / "m")[1], load_with_card(trained(kind) / "seed0")[1]
    assert card["key"] == other["key"] == load_with_card(tmp_path / "m2")[1]["key"]
    assert card["task"] == other["task"]
    (row, _) = Study.open(file).rows
    assert row.data.kind == kind.value


def _columns(kind):
    """Without what only training takes."""
    said = list(ASKED[kind])
    for name in ("--class-weight", "--class-weight", "--loss"):
        if name in said:
            del said[said.index(name) : said.index(name) + 2]
    return said


def test_weights_are_said_aloud(folder, tmp_path):
    told = run(
        "train",
        "SGC",
        *own(folder),
        *ASKED[TaskKind.BINARY],
        "--sample-weight-column",
        "counted",
        "--epochs",
        2,
        "--out",
        tmp_path,
    )
    assert "losses are weighted: nodes by the column counted, class no by 1, class yes by 3" in told


def test_resuming_with_other_weights_is_refused(folder, tmp_path):
    common = ["train", "SGC", *own(folder), "--label-column", "size", "--epochs", 2, "--no-report", "--out", tmp_path]
    run(*common)
    run(*common, "--resume")
    for more in (["--class-weight", "balanced"], ["--sample-weight-column", "counted"]):
        assert isinstance(refused(*common, "--resume", *more), IncompatibleError)


@pytest.mark.parametrize(
    "pairs",
    [("yes",), ("balanced", "yes=1"), ("yes=",), ("=3",), ("yes=1", "yes=2"), ("yes=much",), ("yes=1_0",)],
    ids=str,
)
def test_class_weights_that_cannot_be_read(pairs):
    with pytest.raises(InputError) as caught:
        DataOptions(class_weight=pairs).read_class_weight()
    assert caught.value.argument == "class_weight"


def test_names_with_an_equals_sign_have_weights():
    assert DataOptions(class_weight=("a=b=2", "c = 1")).read_class_weight() == {"a=b": 2.0, "c": 1.0}


@pytest.mark.parametrize(
    ("more", "culprit"),
    [
        (["--label-column", "size", "--loss", "ordinal"], "class_order"),
        (["--label-column", "size", "--class-weight", "low=1"], "class_weight"),
        (["--label-column", "size", "--loss", "multilabel"], "label_columns"),
        (["--target-column", "visits", "--class-weight", "balanced"], "class_weight"),
        (["--target-column", "visits", "--loss", "ranking", "--sample-weight-column", "counted"], "sample_weight"),
        (["--sample-weight-column", "counted"], "sample_weight_column"),
    ],
)
def test_what_cannot_be_asked_is_named(folder, tmp_path, more, culprit):
    shown = ["--edges", folder / "e.csv", "--features", folder / "n.csv", "--feature-column", "b"]
    found = refused("train", "SGC", *shown, *more, "--epochs", 2, "--out", tmp_path / "out")
    assert isinstance(found, InputError)
    assert found.argument == culprit
    option = {"sample_weight": "--sample-weight-column", "label_columns": "--label-column"}.get(culprit, culprit)
    assert option.replace("_", "-") in sentence(found)


def test_what_belongs_to_own_files_is_refused_without_them(tmp_path):
    for more in (
        ["--sample-weight-column", "w"],
        ["--class-order", "a,b"],
        ["--label-column", "a", "--label-column", "b"],
    ):
        assert more[0] in sentence(refused("train", "SGC", *more, "--epochs", 2, "--out", tmp_path / "out"))


def test_classes_of_a_named_set_have_weights(tmp_path):
    run("train", "SGC", "--class-weight", "balanced", "--epochs", 2, "--no-report", "--out", tmp_path)
    card = load_with_card(tmp_path / "seed0")[1]
    assert card["task"]["class_weight"] == "balanced"
    assert card["data"]["source"] == {"dataset": "citeseer", "class_weight": ["balanced"]}
    run("predict", tmp_path, "--out", tmp_path / "p.csv")
