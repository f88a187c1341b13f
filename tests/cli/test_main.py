"""The whole command: its version, and how it ends when something is wrong."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

import unspool
from cli.people import refuse
from unspool.cli.main import cli

pytestmark = pytest.mark.long


def run(*arguments, **how):
    return subprocess.run(
        [sys.executable, "-m", "unspool.cli.main", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **how,
    )


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("demo", "--nodes", "30", "--out", tmp_path / "file" / "demo.png")
    assert done.returncode == 2
    assert done.stderr.startswith("unspool: cannot write into")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "--depth", "0"],
        ["demo", "--alpha", "1.0"],
        ["verify", "--trials", "0"],
        ["unroll"],
        ["train", "--set", "depth=3"],  # options of before
        ["train", "--rate", "0.1"],
        ["train", "--select", "accuracy"],
        ["train", "--adjoint", "implicit"],
        ["study", "again", "study.db", "1"],
    ],
)
def test_bad_options_are_one_clear_message(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert "Error" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version():
    assert unspool.__version__ in CliRunner().invoke(cli, ["--version"]).output


@pytest.mark.parametrize(
    "words", [("predict", "model", "--out", "."), ("graph", "build", "--out", "g", "--edges", ".")]
)
def test_a_folder_in_the_place_of_a_file_is_one_sentence(words):
    assert refuse(*words).endswith(" .: expected the name of a file, and this is a folder")


def test_no_path_is_one_sentence():
    assert (
        refuse("train", "SGC", "--out", "")
        == "--out: expected a path, and this one is empty; write . for the current folder"
    )
