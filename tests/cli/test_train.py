"""unspool train: a short run on the built-in data, its folder, and what goes wrong."""

import json

import pytest
import torch
from click.testing import CliRunner

from unspool.cli.main import cli
from unspool.models import SGC, UGDGNN
from unspool.models.folder import load_folder, save_folder


def test_trains_on_the_built_in_data(tmp_path):
    done = CliRunner().invoke(cli, ["train", "--epochs", "4", "--seeds", "2", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "the paper prints 71.68 ± 0.70" in done.output
    model, card = load_folder(tmp_path / "seed1")
    assert card["metrics"]["seed"] == 1
    assert card["data"]["name"] == "CiteSeer"
    assert isinstance(model, UGDGNN)
    assert not (tmp_path / "seed0" / "run.pt").exists()


def test_json_lines_and_the_same_numbers_again(tmp_path):
    lines = []
    for name in ("a", "b"):
        done = CliRunner().invoke(cli, ["train", "SGC", "--epochs", "3", "--json", "--out", str(tmp_path / name)])
        lines.append([json.loads(line) for line in done.output.splitlines()])
    a, b = (next(line for line in found if line["event"] == "seed") for found in lines)
    assert all(a[name] == b[name] for name in a if name not in ("folder", "seconds"))
    assert lines[0][-1]["event"] == "summary"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "NOPE"], "no model called 'NOPE'"),
        (["train", "--dataset", "nowhere"], "no data set 'nowhere'"),
        (["train", "GCNII", "--dataset", "cs", "--preset", "official"], "GCNII has no official setting on cs"),
    ],
)
def test_bad_wishes_are_named(arguments, sentence, tmp_path):
    done = CliRunner().invoke(cli, [*arguments, "--out", str(tmp_path)])
    assert done.exit_code != 0
    assert sentence in str(done.exception)


def test_folders_are_read_whole_or_not_at_all(tmp_path):
    place = save_folder(SGC(4, 2), tmp_path / "model", metrics={"test": 0.5})
    model, card = load_folder(place)
    assert card["objective"] == "‖B H‖²"
    assert model(torch.eye(4), torch.tensor([[0, 1], [1, 0]])).shape == (4, 2)
    save_folder(SGC(4, 2), place)
    assert len(list(place.iterdir())) == 2  # the old weights are gone
    (weights,) = place.glob("*.safetensors")
    weights.write_bytes(b"garbage")
    with pytest.raises(ValueError, match=r"safetensors is damaged"):
        load_folder(place)
    (place / "model.json").write_text("{")
    with pytest.raises(ValueError, match=r"model.json is damaged"):
        load_folder(place)
    (place / "model.json").unlink()
    with pytest.raises(FileNotFoundError, match="holds no finished model"):
        load_folder(place)


def test_finished_seeds_are_not_trained_again(tmp_path):
    wish = ["train", "SGC", "--epochs", "3", "--out", str(tmp_path)]
    CliRunner().invoke(cli, wish)
    before = (tmp_path / "seed0" / "model.json").stat().st_mtime_ns
    done = CliRunner().invoke(cli, [*wish, "--resume", "--seeds", "2"])
    assert "seed 0: finished before" in done.output
    assert (tmp_path / "seed0" / "model.json").stat().st_mtime_ns == before
    assert (tmp_path / "seed1" / "model.json").is_file()
