"""What once went wrong for new users."""

import os
import signal
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from unspool.cli import main as entry
from unspool.cli import seed
from unspool.cli.main import cli


def ask(*words):
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exit_code == 0, done.output + str(done.exception)
    return done.output


def refused(*words):
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exit_code != 0
    return str(done.exception)


def team(files, features=None):
    """The options that name the files, or other features."""
    x = files / "x.csv" if features is None else features
    return "--edges", files / "e.csv", "--features", x, "--id-column", "person", "--label-column", "team"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    nodes = [f"n{i}" for i in range(60)]
    team = rng.integers(0, 2, 60)
    near = [(a, b) for a in range(60) for b in range(a) if rng.random() < (0.2 if team[a] == team[b] else 0.02)]
    (place / "e.csv").write_text("source,target\n" + "".join(f"{nodes[a]},{nodes[b]}\n" for a, b in near))
    rows = [f"{nodes[i]},{rng.normal():.3f},{team[i] + rng.normal():.3f},t{team[i]}\n" for i in range(60)]
    (place / "x.csv").write_text("person,a,b,team\n" + "".join(rows))
    (place / "new.csv").write_text(
        "person,b,a\n" + "".join(f"{n},{rng.normal():.3f},{rng.normal():.3f}\n" for n in nodes)
    )
    return place


def test_constants_survive_denoising(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n" + "".join(f"s0,s{i}\n" for i in range(1, 9)) + "s1,s2\n")
    (tmp_path / "x.csv").write_text("id,t\n" + "".join(f"s{i},20\n" for i in range(9)))
    words = ("denoise", "--edges", tmp_path / "e.csv", "--features", tmp_path / "x.csv", "--weight", "0.1")
    ask(*words, "--out", tmp_path / "a.csv")
    ask(*words, "--out", tmp_path / "b.csv", "--normalise", "symmetric")
    plain, bent = (
        np.array([float(line.split(",")[1]) for line in (tmp_path / name).read_text().splitlines()[1:]])
        for name in ("a.csv", "b.csv")
    )
    assert np.allclose(plain, 20)
    assert not np.allclose(bent, 20, atol=0.1)


def test_the_id_column_is_remembered(files, tmp_path):
    words = team(files)
    said = ask("train", "SGC", *words, "--epochs", "3", "--no-report", "--out", tmp_path / "t")
    assert "features: a, b" in said
    ask(
        "predict",
        tmp_path / "t",
        "--edges",
        files / "e.csv",
        "--features",
        files / "new.csv",
        "--out",
        tmp_path / "p.csv",
    )
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 61
    ask("explain", tmp_path / "t", "--node", "n3")  # a folder with one seed is that seed


def test_leftovers_of_another_run_are_not_averaged(files, tmp_path):
    words = team(files)
    for epochs, seeds in ((4, 3), (2, 1)):
        ask("train", "SGC", *words, "--epochs", epochs, "--seeds", seeds, "--no-report", "--out", tmp_path / "t")
    assert "seed1 was left there by another run" in refused("predict", tmp_path / "t", "--out", tmp_path / "p.csv")


def test_an_index_that_was_written_along_is_no_feature(files, tmp_path):
    lines = (files / "x.csv").read_text().splitlines()
    (tmp_path / "x.csv").write_text(
        "\n".join([f",{lines[0]}", *(f"{i},{line}" for i, line in enumerate(lines[1:]))]) + "\n"
    )
    words = team(files, tmp_path / "x.csv")
    assert "has a column without a name" in refused("train", "SGC", *words, "--epochs", "2", "--out", tmp_path / "t")


def test_sizes_far_apart_are_remarked(files, tmp_path):
    lines = (files / "x.csv").read_text().splitlines()
    grown = [line.split(",") for line in lines[1:]]
    text = "".join(f"{n},{1e4 * float(a):.1f},{b},{t}\n" for n, a, b, t in grown)
    (tmp_path / "x.csv").write_text(f"{lines[0]}\n{text}")
    words = team(files, tmp_path / "x.csv")
    said = ask("train", "SGC", *words, "--epochs", "2", "--no-report", "--out", tmp_path / "t")
    assert "note: features differ in size (a varies by" in said


def test_the_paper_is_not_blamed_for_another_plan(tmp_path):
    assert "under its own settings" in ask("train", "SGC", "--epochs", "2", "--no-report", "--out", tmp_path / "t")


def test_an_interrupted_job_says_so_in_its_code(tmp_path, monkeypatch, capsys):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let background jobs ignore it

    def cut(self, now, best):
        if now.epoch == 3:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(seed.Watcher, "__call__", cut)
    monkeypatch.setattr(
        sys, "argv", ["unspool", "train", "SGC", "--epochs", "9", "--no-report", "--out", str(tmp_path)]
    )
    with pytest.raises(SystemExit) as ended:
        entry.main()
    signal.signal(signal.SIGINT, before)
    assert ended.value.code == 130
    assert "--resume continues" in capsys.readouterr().out
