"""The command ``unspool report``."""

import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from unspool import theory
from unspool.cli.main import cli, main

EXAMPLE = Path(__file__).parents[1] / "reproduce" / "example_results"


@pytest.fixture(autouse=True)
def _few_claims_and_no_data(monkeypatch):
    monkeypatch.setattr(theory, "CLAIMS", theory.CLAIMS[:2])
    monkeypatch.delenv("UNSPOOL_DATA", raising=False)


@pytest.fixture
def failed(monkeypatch, capsys):
    def go(*arguments):
        monkeypatch.setattr(sys, "argv", ["unspool", "report", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        message = capsys.readouterr().err
        assert len(message.strip().splitlines()) == 1
        return left.value.code, message

    return go


def test_a_page_and_both_exports(tmp_path):
    out = tmp_path / "new"
    names = ["--out", out / "a.html", "--markdown", out / "a.md", "--latex", out / "a.tex"]
    done = CliRunner().invoke(cli, ["report", str(EXAMPLE), *map(str, names), "--trials", "1"])
    assert done.exit_code == 0, done.output
    assert sorted(file.name for file in out.iterdir()) == ["a.html", "a.md", "a.tex"]
    assert [line.split(":")[0] for line in done.output.splitlines()] == ["page", "Markdown", "LaTeX"]
    assert (out / "a.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_committed_results_are_the_default(tmp_path, monkeypatch):
    shutil.copytree(EXAMPLE, tmp_path / "experiments" / "results")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["report", "--trials", "1"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "report.html").is_file()


def test_wrong_places_are_one_sentence(failed, tmp_path):
    assert failed(tmp_path / "none", "--out", tmp_path / "a.html")[0] == 2
    code, message = failed(EXAMPLE, "--out", tmp_path / "a.pdf")
    assert code == 2
    assert ".html" in message
    (tmp_path / "file").write_text("")
    assert "cannot write into" in failed(EXAMPLE, "--out", tmp_path / "file" / "a.html")[1]


def test_help_teaches():
    assert "Example: unspool report" in CliRunner().invoke(cli, ["report", "--help"]).output
