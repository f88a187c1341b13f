"""unspool data check: everything in one look, and a command that works as it is printed."""

import json
import re
import shlex
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from cli.people import ask, card, cells, write_people
from unspool import datasets
from unspool.cli.main import cli

pytestmark = pytest.mark.long


@pytest.fixture
def folder(tmp_path):
    return write_people(tmp_path / "people")


def files(folder):
    return ["--edges", folder / "friends.csv", "--features", folder / "people.csv"]


def command(said):
    """What is printed under "to train"."""
    return shlex.split(said.partition("\nto train\n")[2].strip())


def trains(words, out):
    """Whether a command works as it is printed, made short."""
    assert words[:2] == ["unspool", "train"]
    ask(*words[1:], "--epochs", 2, "--quiet", "--no-report", "--out", out)
    return card(out)


def test_what_was_read_is_said(folder):
    said = ask("data", "check", *files(folder), "--label-column", "team")
    lines = [line.split() for line in said.splitlines()]
    assert ["edges:", f"{folder}/friends.csv,", "180", "rows"] in lines
    for column in cells(folder):
        assert any(words[:1] == [column] for words in lines), column
    assert "3: blue 18, green 18, red 18; the largest is 33.3 %; 6 nodes without a label" in said
    assert "180 of 180 listed in one direction only; they run both ways" in said
    assert "nodes are called p0, p1, p2, p3, ..." in said


def test_the_command_works_as_it_is_printed(folder, tmp_path):
    """vip and part are text, price has gaps: the check does not end at the first of them."""
    said = ask("data", "check", *files(folder), "--label-column", "team")
    words = command(said)
    found = trains(words, tmp_path / "out")
    assert found["data"]["source"]["one_hot"] == ["vip", "part"]
    assert found["data"]["source"]["drop_columns"] == ["price"]
    part = ["part=test", "part=train", "part=valid"]
    assert found["data"]["features"] == ["a", "b", "c", "size", "vip=no", "vip=yes", *part]


def test_names_that_need_quotes(folder, tmp_path):
    text = (folder / "people.csv").read_text().replace("id,a,b,c", "id,the 'a' & b,b,$c", 1)
    (folder / "my people.csv").write_text(text)
    said = ask("data", "check", "--edges", folder / "friends.csv", "--features", folder / "my people.csv", "--label-column", "team", "--drop-column", "the 'a' & b", "--name", "my `set`")  # fmt: skip
    found = trains(command(said), tmp_path / "out")
    assert found["data"]["name"] == "my `set`"
    assert found["data"]["features"][:2] == ["b", "$c"]


def test_without_a_label_links_can_be_learnt(folder, tmp_path):
    said = ask("data", "check", *files(folder))
    assert "nothing is named to predict" in said
    assert trains(command(said), tmp_path / "out")["task"]["kind"] == "links"


def test_numbers_to_predict(folder, tmp_path):
    said = ask("data", "check", *files(folder), "--target-column", "price", "--target-column", "size")
    assert "unknown for 9 nodes" in said
    assert trains(command(said), tmp_path / "out")["task"]["kind"] == "numbers"


def test_features_that_were_named_stay_named(folder, tmp_path):
    said = ask(
        "data", "check", *files(folder), "--label-column", "team", "--feature-column", "a", "--feature-column", "price"
    )
    assert command(said).count("--feature-column") == 1
    assert trains(command(said), tmp_path / "out")["data"]["features"] == ["a"]


@pytest.mark.parametrize("split", ["random:0.5/0.25/0.25", "per-class:3/3"])
def test_a_split_by_name(folder, split):
    found = json.loads(ask("data", "check", *files(folder), "--label-column", "team", "--split", split, "--json"))
    assert found["data"]["split"]["train"] == {"random:0.5/0.25/0.25": 27, "per-class:3/3": 9}[split]
    assert split in shlex.split(found["command"])


def test_json(folder):
    found = json.loads(ask("data", "check", *files(folder), "--label-column", "team", "--json"))
    assert found["ready"] is True
    assert found["data"]["graph"]["nodes"] == 60
    assert {column["name"]: column["role"] for column in found["columns"]}["team"] == "label"
    leak = next(one for one in found["findings"] if one["about"] == "price")
    assert (leak["kind"], leak["severity"], leak["count"], leak["of"]) == ("missing", "warning", 9, 60)
    assert "--drop-column price" in leak["sentence"]


def test_what_cannot_be_trained_on_ends_with_one(folder):
    with (folder / "friends.csv").open("a") as file:
        file.write("p1,ghost\n")
    done = CliRunner().invoke(cli, [str(w) for w in ("data", "check", *files(folder), "--label-column", "team")])
    assert done.exit_code == 1
    assert "stops training" in done.output
    assert "ghost" in done.output
    assert "to train" not in done.output
    assert "column 'part' is text" in done.output  # and all the rest is said, too


def test_a_whole_file_and_a_named_set(tmp_path):
    data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    x = data.features if isinstance(data.features, torch.Tensor) else data.features.to_dense()
    torch.save({"edge_index": data.edge_index, "x": x, "y": data.labels}, tmp_path / "data.pt")
    said = ask("data", "check", "--edges", tmp_path / "data.pt")
    assert trains(command(said), tmp_path / "out")["data"]["hash"] == datasets.from_files(tmp_path / "data.pt").hash
    assert command(ask("data", "check", "--dataset", "citeseer")) == ["unspool", "train", "--dataset", "citeseer"]


def test_checked_and_trained_data_are_the_same(folder, tmp_path):
    found = json.loads(ask("data", "check", *files(folder), "--label-column", "team", "--json"))
    told = trains(shlex.split(found["command"]), tmp_path / "out")
    assert told["data"]["size"]["features"] == found["data"]["features"]
    assert told["data"]["size"]["nodes"] == found["data"]["graph"]["nodes"]


def test_the_page_shows_what_the_check_prints(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "your-data.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(re.search(r"```python\n(.*?)```", page, flags=re.DOTALL)[1], "page", "exec"), {})
    typed, _, shown = re.search(r"```\n\$ (unspool data check.*?)```", page, flags=re.DOTALL)[1].partition("\n")
    assert ask(*shlex.split(typed)[1:]).strip() == shown.strip()
    for file in ("calls.csv", "customers.csv"):
        for line in Path(file).read_text().splitlines()[:4]:
            assert line in page
